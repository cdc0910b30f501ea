package auth

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"
)

// Switch is whether something is on. The zero value leaves it as it is by
// default.
type Switch uint8

// The positions of a Switch.
const (
	On Switch = iota + 1
	Off
)

// On tells whether the switch is on; one that was left alone is not.
func (s Switch) On() bool { return s == On }

// Settings say what is on, and how long and large things are. A field that no option
// sets has the default that is named here; what [Auth.Settings] returns has all of
// them. WithSettings sets those that no other option is named for.
//
// What an option sets is locked. Everything else, and what an option sets within
// [Default], can be changed while the service runs, by those who hold the permission
// auth.settings.write (package admin), and is in force in every instance within a
// second.
type Settings struct {
	Enabled             Switch   // On. Off: every endpoint is 404, but for /healthz, the admin side, and the sign-in of those who may change settings
	SignUp              Switch   // On. Off: nobody new, whether by form, link, code or provider
	RequireConfirmation Switch   // Off. On: an address must be confirmed before the first sign-in
	Password            Switch   // On: sign-up, login, change and reset of passwords
	MagicLink           Switch   // On
	Phone               Switch   // On: phone codes, given an SMSSender
	OAuth               Switch   // On: sign-in at providers. Off: identities can still be unlinked
	TOTP                Switch   // On. Off: no new second factors; those there are stay in force
	MFARequired         Switch   // Off. On: everybody has to have a second factor
	MFARequiredFor      []string // nobody. Whoever has one of these roles has to have a second factor
	AccountDeletion     Switch   // Off. On: people may delete their account with DELETE /me
	AutoLinking         Switch   // On: a provider's identity joins an account by an address that both sides proved

	PasswordMinLength int           // 8; PasswordOptions.MinLength
	BreachCheck       Switch        // On, given a checker: PasswordOptions.Breach
	IdleTimeout       time.Duration // 30 days; SessionOptions.IdleTimeout, at the next refresh
	Lifetime          time.Duration // 0: none; SessionOptions.Lifetime, of sessions that begin
	RedirectURLs      []string      // none, besides those of WithRedirectURLs
	CORSOrigins       []string      // none, besides those of WithCORS
	SenderName        string        // MailOptions.AppName

	// Texts are words of the operators' own in mails, plain and without links, by
	// names: "magic_link.subject" in place of the subject that the template of a kind
	// has, "magic_link.intro" above what it says, and "footer" below every mail.
	// With a language behind it ("footer.de") a text is for that one.
	Texts map[string]string // none
}

// Settings returns what is in force at present. It is the one place that flows ask,
// reads no store, and is safe for concurrent use.
func (a *Auth) Settings(context.Context) Settings {
	s := a.settings.now.Load().settings
	s.MFARequiredFor, s.RedirectURLs, s.CORSOrigins = slices.Clone(s.MFARequiredFor), slices.Clone(s.RedirectURLs), slices.Clone(s.CORSOrigins)
	s.Texts = maps.Clone(s.Texts)
	return s
}

// PublicSettings is what GET /settings returns: what a sign-in page needs.
type PublicSettings struct {
	Enabled                   bool            `json:"enabled"`
	SignupEnabled             bool            `json:"signup_enabled"`
	EmailConfirmationRequired bool            `json:"email_confirmation_required"`
	Methods                   EnabledMethods  `json:"methods"`
	Providers                 []string        `json:"providers"`
	MFARequired               bool            `json:"mfa_required"`
	Password                  PasswordSetting `json:"password"`
}

// EnabledMethods tells which ways of signing in are on.
type EnabledMethods struct {
	Password  bool `json:"password"`
	MagicLink bool `json:"magic_link"`
	PhoneOTP  bool `json:"phone_otp"`
	OAuth     bool `json:"oauth"`
	TOTP      bool `json:"totp"`
}

// PasswordSetting is what a password form needs to know.
type PasswordSetting struct {
	MinLength int `json:"min_length"`
}

// PublicSettings returns what a sign-in page needs to know.
func (a *Auth) PublicSettings(ctx context.Context) PublicSettings {
	s := a.Settings(ctx)
	return PublicSettings{
		Enabled:                   s.Enabled.On(),
		SignupEnabled:             s.SignUp.On(),
		EmailConfirmationRequired: s.RequireConfirmation.On(),
		Methods: EnabledMethods{
			Password:  s.Password.On(),
			MagicLink: s.MagicLink.On(),
			PhoneOTP:  a.phoneOn(ctx),
			OAuth:     len(a.providers) > 0 && s.OAuth.On(),
			TOTP:      a.totpOn(ctx),
		},
		Providers:   a.providersOn(ctx),
		MFARequired: s.MFARequired.On(),
		Password:    PasswordSetting{MinLength: s.PasswordMinLength},
	}
}

// providersOn are the names of the providers, in the order they were configured.
func (a *Auth) providersOn(ctx context.Context) []string {
	if !a.Settings(ctx).OAuth.On() {
		return []string{}
	}
	return slices.Clone(a.providerNames)
}

func (a *Auth) handleSettings(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, http.StatusOK, a.PublicSettings(r.Context()))
}
