package auth

import (
	"context"
	"net/http"
	"slices"
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

// or is the switch, or def if it was left alone.
func (s Switch) or(def Switch) Switch {
	if s == 0 {
		return def
	}
	return s
}

// Settings say what is on. A field that WithSettings leaves at zero has the
// default that is named here; what [Auth.Settings] returns has none at zero.
type Settings struct {
	Enabled             Switch // On. Off: every endpoint is 404
	SignUp              Switch // On. Off: nobody new, whether by form, link, code or provider
	RequireConfirmation Switch // Off. On: an address must be confirmed before the first sign-in
	Password            Switch // On: sign-up, login, change and reset of passwords
	MagicLink           Switch // On
	Phone               Switch // On: phone codes, given an SMSSender
	OAuth               Switch // On: sign-in at providers. Off: identities can still be unlinked
	TOTP                Switch // On. Off: no new second factors; those there are stay in force
	MFARequired         Switch // Off. On: everybody has to have a second factor
	AccountDeletion     Switch // Off. On: people may delete their account with DELETE /me
	AutoLinking         Switch // On: a provider's identity joins an account by an address that both sides proved
}

func (s Settings) withDefaults() Settings {
	for _, on := range []*Switch{&s.Enabled, &s.SignUp, &s.Password, &s.MagicLink, &s.Phone, &s.OAuth, &s.TOTP, &s.AutoLinking} {
		*on = on.or(On)
	}
	for _, off := range []*Switch{&s.RequireConfirmation, &s.MFARequired, &s.AccountDeletion} {
		*off = off.or(Off)
	}
	return s
}

// Settings returns what is on at present. It is the one place that flows ask, and
// safe for concurrent use.
func (a *Auth) Settings(context.Context) Settings { return a.cfg.settings }

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
		Password:    PasswordSetting{MinLength: a.passwords.minLength()},
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
