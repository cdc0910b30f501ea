package auth

import "slices"

// Settings say what is switched off or demanded. The zero value is the default.
type Settings struct {
	Disabled            bool // every endpoint answers 404
	SignupDisabled      bool // nobody new: no sign-up, no accounts made by links, codes or providers
	RequireConfirmation bool // an e-mail address must be confirmed before the first sign-in
	PasswordDisabled    bool // no sign-up, login, change or reset of passwords
	MagicLinkDisabled   bool
	PhoneDisabled       bool // no phone codes
	OAuthDisabled       bool // no sign-in at providers; identities can be unlinked
	TOTPDisabled        bool // no new second factors; those there are stay in force
}

// PublicSettings is what GET /settings answers: what a sign-in page needs.
type PublicSettings struct {
	Enabled                   bool            `json:"enabled"`
	SignupEnabled             bool            `json:"signup_enabled"`
	EmailConfirmationRequired bool            `json:"email_confirmation_required"`
	Methods                   EnabledMethods  `json:"methods"`
	Providers                 []string        `json:"providers"`
	MFARequired               bool            `json:"mfa_required"`
	Password                  PasswordSetting `json:"password"`
}

// EnabledMethods tells which ways of signing in are switched on.
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

// Settings answers what is switched on.
func (a *Auth) Settings() PublicSettings {
	s := a.cfg.settings
	return PublicSettings{
		Enabled:                   !s.Disabled,
		SignupEnabled:             !s.SignupDisabled,
		EmailConfirmationRequired: s.RequireConfirmation,
		Methods: EnabledMethods{
			Password:  !s.PasswordDisabled,
			MagicLink: !s.MagicLinkDisabled,
			PhoneOTP:  !a.phoneOff(),
			OAuth:     len(a.providers) > 0 && !s.OAuthDisabled,
			TOTP:      !a.totpOff(),
		},
		Providers:   a.providersOn(),
		MFARequired: a.cfg.mfaRequired,
		Password:    PasswordSetting{MinLength: a.passwords.minLength()},
	}
}

// providersOn are the names of the providers, in the order they were configured.
func (a *Auth) providersOn() []string {
	if a.cfg.settings.OAuthDisabled {
		return []string{}
	}
	return slices.Clone(a.providerNames)
}
