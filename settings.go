package auth

import (
	"context"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/redirect"
)

// Switch turns something on or off. The zero value keeps the default.
type Switch uint8

// The positions of a Switch.
const (
	On Switch = iota + 1
	Off
)

// On reports whether s is [On].
func (s Switch) On() bool { return s == On }

// Settings turn features on and off, and set their limits. A field that no option sets
// has the default that is named beside it; [Auth.Settings] returns every field.
// [WithSettings] sets the fields that have no option of their own.
//
// An option locks the fields that it sets. Every other field, and every field that an
// option sets within [Default], can be changed while the service runs, by operators with
// the permission auth.settings.write (package admin). A change is in force in every
// instance within a second. See docs/settings.md.
type Settings struct {
	Enabled             Switch   // default On; Off answers 404 everywhere, except to operators who may change settings
	SignUp              Switch   // default On; Off: no new accounts, by any method
	RequireConfirmation Switch   // default Off; On: an email address must be verified before the first sign-in
	Password            Switch   // default On: passwords
	MagicLink           Switch   // default On: sign-in links by email
	Phone               Switch   // default On: codes by text message; they need an SMSSender
	OAuth               Switch   // default On: sign-in with providers; identities can be unlinked in either position
	Passkey             Switch   // default On; Off: nobody signs in with a passkey or adds one. Needs WithPasskeys
	TOTP                Switch   // default On; Off: no new second factors; existing ones stay in force
	MFARequired         Switch   // default Off; On: everybody needs a second factor
	MFARequiredFor      []string // default none; holders of these roles need a second factor
	AccountDeletion     Switch   // default Off; On: users may delete their account with DELETE /me
	AutoLinking         Switch   // default On: a provider's identity joins the account whose email address both have verified

	PasswordMinLength int           // default 8; set by PasswordOptions.MinLength
	BreachCheck       Switch        // default On with a PasswordOptions.Breach, which sets it
	IdleTimeout       time.Duration // default 30 days; set by SessionOptions.IdleTimeout; counts from the next refresh
	Lifetime          time.Duration // default 0, unlimited; set by SessionOptions.Lifetime; applies to new sessions
	RedirectURLs      []string      // default none; further entries for the list of WithRedirectURLs
	CORSOrigins       []string      // default none; further entries for the list of WithCORS
	SenderName        string        // default the host of the base URL; set by MailOptions.AppName

	// Texts replace or add words in mails, plain and without links. "magic_link.subject"
	// replaces the subject of a kind's template, "magic_link.intro" is a paragraph above
	// its text, and "footer" is below every mail. A language at the end ("footer.de")
	// limits a text to that language. Default none.
	Texts map[string]string
}

// setting declares one setting: its field, option, default, bounds and texts. Options,
// the stored document, the admin API, its OpenAPI description, the dashboard and
// docs/settings.md all read this declaration. The type of the field decides the type of
// the setting (see kind).
type setting struct {
	name        string              // on the wire and in the store; it never changes
	label       string              // on the dashboard, in English; templates/languages/*/dashboard.json has the translations
	description string              // in the OpenAPI document and in docs/settings.md
	at          func(*Settings) any // a pointer to the field
	def         func(*config) any   // the default; nil: zero

	option string                                // the option that sets it; "": WithSettings
	take   func(*config, *Settings)              // moves the option's value into the settings; nil: there is none to move
	min    int64                                 // of a number, or of a number of seconds
	max    func(_ *config, base *Settings) int64 // of the same, given the settings without stored values; nil: none
	valid  func(string) error                    // of a text, or of each entry of a list
	closed func(*config) string                  // the reason why it cannot be stored, or ""; nil: it can

	example any // as JSON, of lists and texts
}

// declaredSettings are all settings, in the order in which they are listed.
var declaredSettings = []setting{
	{
		name: "enabled", label: "Service",
		description: "Off: every endpoint answers 404, except /healthz, the admin endpoints, and the sign-in of accounts that may change settings.",
		at:          func(s *Settings) any { return &s.Enabled }, def: is(On),
	},
	{
		name: "signup_enabled", label: "Sign-up",
		description: "Off: no new accounts, by any method.",
		at:          func(s *Settings) any { return &s.SignUp }, def: is(On),
	},
	{
		name: "email_confirmation_required", label: "Email addresses must be verified first",
		description: "On: an email address must be verified before the first sign-in.",
		at:          func(s *Settings) any { return &s.RequireConfirmation }, def: is(Off),
	},
	{
		name: "password_enabled", label: "Passwords",
		description: "Sign-up, sign-in, change and reset with passwords.",
		at:          func(s *Settings) any { return &s.Password }, def: is(On),
	},
	{
		name: "magic_link_enabled", label: "Magic links",
		description: "Sign-in links by email. Off, while passkeys are on: still sent to addresses that no account has verified, and to accounts without a password, phone number or provider.",
		at:          func(s *Settings) any { return &s.MagicLink }, def: is(On),
	},
	{
		name: "phone_enabled", label: "Codes by text message",
		description: "Sign-in codes by text message. They need an SMSSender.",
		at:          func(s *Settings) any { return &s.Phone }, def: is(On),
	},
	{
		name: "oauth_enabled", label: "Providers",
		description: "Sign-in with providers. Off: identities can still be unlinked.",
		at:          func(s *Settings) any { return &s.OAuth }, def: is(On),
	},
	{
		name: "passkey_enabled", label: "Passkeys",
		description: "Sign-in with passkeys, and second factors that are passkeys. They need auth.WithPasskeys. Off: passkeys stay stored, and cannot be used or added. Refused while a second factor is required and authenticator apps are off.",
		at:          func(s *Settings) any { return &s.Passkey }, def: is(On),
	},
	{
		name: "totp_enabled", label: "Authenticator apps",
		description: "Off: no new authenticator apps; existing ones stay in force. Refused while a second factor is required and passkeys are off.",
		at:          func(s *Settings) any { return &s.TOTP }, def: is(On),
	},
	{
		name: "mfa_required", label: "Second factor for everybody",
		description: "Everybody needs a second factor.",
		at:          func(s *Settings) any { return &s.MFARequired }, def: is(Off),
		closed: needsFactors,
	},
	{
		name: "mfa_required_for", label: "Second factor for roles",
		description: "Holders of these roles need a second factor.",
		at:          func(s *Settings) any { return &s.MFARequiredFor },
		valid:       checkRoleName, closed: needsFactors, example: []string{"editor"},
	},
	{
		name: "account_deletion", label: "Users may delete their account",
		description: "Users may delete their own account.",
		at:          func(s *Settings) any { return &s.AccountDeletion }, def: is(Off),
	},
	{
		name: "auto_linking", label: "Link identities by verified email address",
		description: "A provider's identity joins the account whose email address both the provider and the account have verified.",
		at:          func(s *Settings) any { return &s.AutoLinking }, def: is(On),
	},
	{
		name: "password_min_length", label: "Minimum length of passwords",
		description: "Characters that a new password needs, up to PasswordOptions.MaxLength.",
		at:          func(s *Settings) any { return &s.PasswordMinLength }, def: is(minPasswordLength),
		option: "WithPasswords", take: func(c *config, s *Settings) { s.PasswordMinLength = c.passwords.MinLength },
		min: minPasswordLength, max: func(c *config, _ *Settings) int64 { return int64(c.passwords.maxLength()) },
	},
	{
		name: "password_breach_check", label: "Check passwords against known leaks",
		description: "New passwords are looked up in known leaks. It needs PasswordOptions.Breach, which turns it on.",
		at:          func(s *Settings) any { return &s.BreachCheck }, def: is(Off),
		option: "WithPasswords", take: func(c *config, s *Settings) {
			if c.passwords.Breach != nil {
				s.BreachCheck = On
			}
		},
		closed: func(c *config) string {
			return closedUnless(c.passwords.Breach != nil, "needs a checker: PasswordOptions.Breach")
		},
	},
	{
		name: "session_idle_timeout", label: "Sessions expire when idle for",
		description: "Time from a session's last refresh until it expires. It counts from the next refresh. Can only be shortened.",
		at:          func(s *Settings) any { return &s.IdleTimeout }, def: is(30 * 24 * time.Hour),
		option: "WithSessions", take: func(c *config, s *Settings) { s.IdleTimeout, c.sessions.IdleTimeout = c.sessions.IdleTimeout, 0 },
		min: minSessionSeconds, max: func(_ *config, base *Settings) int64 { return onlyShorter(base.IdleTimeout) },
	},
	{
		name: "session_lifetime", label: "Sessions expire after",
		description: "Time from the sign-in until a session expires, however active it is; 0 is unlimited. It applies to new sessions. Can only be shortened.",
		at:          func(s *Settings) any { return &s.Lifetime },
		option:      "WithSessions", take: func(c *config, s *Settings) { s.Lifetime, c.sessions.Lifetime = c.sessions.Lifetime, 0 },
		min: minSessionSeconds, max: func(_ *config, base *Settings) int64 { return onlyShorter(base.Lifetime) },
	},
	{
		name: "redirect_urls", label: "Further redirect URLs",
		description: "URLs that redirect_to may name in addition to those of the option. Only where the option is within auth.Default, because sign-in codes are sent to these URLs.",
		at:          func(s *Settings) any { return &s.RedirectURLs },
		option:      "WithRedirectURLs", valid: func(u string) error { _, err := redirect.ParsePattern(u); return err },
		closed: func(c *config) string {
			return closedUnless(c.open["WithRedirectURLs"], "can be added only where the option is open: auth.Default(auth.WithRedirectURLs(…))")
		},
		example: []string{"https://two.example.com/*"},
	},
	{
		name: "cors_origins", label: "Further allowed origins",
		description: "Origins that may call the endpoints in addition to those of the option: https, or http on loopback, and never *. Only where the option is within auth.Default.",
		at:          func(s *Settings) any { return &s.CORSOrigins },
		option:      "WithCORS", valid: checkStoredOrigin,
		closed: func(c *config) string {
			return closedUnless(c.open["WithCORS"], "can be added only where the option is open: auth.Default(auth.WithCORS(…))")
		},
		example: []string{"https://two.example.com"},
	},
	{
		name: "sender_name", label: "Sender name",
		description: "The application's name in messages and pages, by default the host name of the base URL. Package pages reads it when it starts.",
		at:          func(s *Settings) any { return &s.SenderName },
		def: func(c *config) any {
			if c.baseURL == nil {
				return ""
			}
			return c.baseURL.Hostname()
		},
		option: "WithMail", take: func(c *config, s *Settings) { s.SenderName, c.mail.AppName = c.mail.AppName, "" },
		valid: checkSenderName, example: "Notes",
	},
	{
		name: "texts", label: "Texts of mails",
		description: "Words in mails, plain and without links, by names: magic_link.subject replaces the subject of a kind's template (150 characters), magic_link.intro is a paragraph above its text (1000), and footer is below every mail; each also for one language (footer.de). Text messages have none. A change replaces the whole object.",
		at:          func(s *Settings) any { return &s.Texts },
		example:     map[string]string{"footer": "Notes Ltd"},
	},
}

// minSessionSeconds is the shortest stored time of sessions: with less, operators could
// not stay signed in for long enough to undo it.
const minSessionSeconds = 5 * 60

func is(v any) func(*config) any { return func(*config) any { return v } }

// onlyShorter is the maximum of a time that can only be shortened; 0 is unlimited.
func onlyShorter(base time.Duration) int64 {
	if base == 0 {
		return math.MaxInt64
	}
	return int64(base / time.Second)
}

func closedUnless(open bool, reason string) string {
	if open {
		return ""
	}
	return reason
}

func needsFactors(c *config) string {
	return closedUnless(c.keepsFactors, "needs a store that keeps second factors (FactorStore)")
}

// hostSettings are the declarations for the packages that are built on Auth.
func hostSettings() []host.SettingDeclaration {
	var list []host.SettingDeclaration
	for _, d := range declaredSettings {
		list = append(list, host.SettingDeclaration{
			Name: d.name, Kind: d.kind(), Label: d.label, Description: d.describe(), Min: d.min, MaxEntries: d.maxEntries(), Example: d.example,
		})
	}
	return list
}

// Settings returns the settings in force. It reads no store, and is safe for concurrent
// use.
func (a *Auth) Settings(context.Context) Settings {
	s := a.settings.now.Load().settings
	s.MFARequiredFor, s.RedirectURLs, s.CORSOrigins = slices.Clone(s.MFARequiredFor), slices.Clone(s.RedirectURLs), slices.Clone(s.CORSOrigins)
	s.Texts = maps.Clone(s.Texts)
	return s
}

// PublicSettings are the settings that a sign-in page needs. GET /settings returns them.
type PublicSettings struct {
	Enabled                   bool            `json:"enabled"`
	SignupEnabled             bool            `json:"signup_enabled"`
	EmailConfirmationRequired bool            `json:"email_confirmation_required"`
	Methods                   EnabledMethods  `json:"methods"`
	Providers                 []string        `json:"providers"`
	MFARequired               bool            `json:"mfa_required"`
	Password                  PasswordSetting `json:"password"`
}

// EnabledMethods lists the sign-in methods that are on.
type EnabledMethods struct {
	Password  bool `json:"password"`
	MagicLink bool `json:"magic_link"`
	PhoneOTP  bool `json:"phone_otp"`
	OAuth     bool `json:"oauth"`
	TOTP      bool `json:"totp"`
	Passkey   bool `json:"passkey"`
}

// PasswordSetting is the part of the password policy that forms show.
type PasswordSetting struct {
	MinLength int `json:"min_length"`
}

// PublicSettings returns the settings that a sign-in page needs.
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
			Passkey:   a.passkeysOn(ctx),
		},
		Providers:   a.providersOn(ctx),
		MFARequired: s.MFARequired.On(),
		Password:    PasswordSetting{MinLength: s.PasswordMinLength},
	}
}

// providersOn lists the names of the providers, in the order of the options.
func (a *Auth) providersOn(ctx context.Context) []string {
	if !a.Settings(ctx).OAuth.On() {
		return []string{}
	}
	return slices.Clone(a.providerNames)
}

func (a *Auth) handleSettings(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, http.StatusOK, a.PublicSettings(r.Context()))
}
