package authclient

import (
	"context"
	"time"
)

// Settings, from the admin side.

// AdminSettings is a part of what the admin side answers.
type AdminSettings struct {
	Revision int64                 `json:"revision"` // Rises with every change; also the ETag, for If-Match.
	Settings AdminSettingsSettings `json:"settings"`
}

// AdminSettingsSettings is a part of what the admin side answers.
type AdminSettingsSettings struct {
	AccountDeletion           SwitchSetting `json:"account_deletion"`
	AutoLinking               SwitchSetting `json:"auto_linking"`
	CORSOrigins               ListSetting   `json:"cors_origins"`
	EmailConfirmationRequired SwitchSetting `json:"email_confirmation_required"`
	Enabled                   SwitchSetting `json:"enabled"`
	MagicLinkEnabled          SwitchSetting `json:"magic_link_enabled"`
	MFARequired               SwitchSetting `json:"mfa_required"`
	MFARequiredFor            ListSetting   `json:"mfa_required_for"`
	OAuthEnabled              SwitchSetting `json:"oauth_enabled"`
	PasswordBreachCheck       SwitchSetting `json:"password_breach_check"`
	PasswordEnabled           SwitchSetting `json:"password_enabled"`
	PasswordMinLength         NumberSetting `json:"password_min_length"`
	PhoneEnabled              SwitchSetting `json:"phone_enabled"`
	RedirectURLs              ListSetting   `json:"redirect_urls"`
	SenderName                TextSetting   `json:"sender_name"`
	SessionIdleTimeout        NumberSetting `json:"session_idle_timeout"`
	SessionLifetime           NumberSetting `json:"session_lifetime"`
	SignupEnabled             SwitchSetting `json:"signup_enabled"`
	Texts                     TextsSetting  `json:"texts"`
	TOTPEnabled               SwitchSetting `json:"totp_enabled"`
}

// SwitchSetting is a part of what the admin side answers.
type SwitchSetting struct {
	Locked        bool   `json:"locked"` // An option of the application says it: it cannot be changed here.
	LockedBecause string `json:"locked_because"`
	Source        string `json:"source"`
	Value         bool   `json:"value"`
}

// ListSetting is a part of what the admin side answers.
type ListSetting struct {
	Locked        bool     `json:"locked"` // An option of the application says it: it cannot be changed here.
	LockedBecause string   `json:"locked_because"`
	Source        string   `json:"source"`
	Value         []string `json:"value"`
}

// NumberSetting is a part of what the admin side answers.
type NumberSetting struct {
	Locked        bool   `json:"locked"` // An option of the application says it: it cannot be changed here.
	LockedBecause string `json:"locked_because"`
	Source        string `json:"source"`
	Value         int    `json:"value"`
}

// TextSetting is a part of what the admin side answers.
type TextSetting struct {
	Locked        bool   `json:"locked"` // An option of the application says it: it cannot be changed here.
	LockedBecause string `json:"locked_because"`
	Source        string `json:"source"`
	Value         string `json:"value"`
}

// TextsSetting is a part of what the admin side answers.
type TextsSetting struct {
	Locked        bool              `json:"locked"` // An option of the application says it: it cannot be changed here.
	LockedBecause string            `json:"locked_because"`
	Source        string            `json:"source"`
	Value         map[string]string `json:"value"`
}

// Settings is GET /settings: the settings. As the store and the options make them.
// Permission: auth.settings.read.
func (a *Admin) Settings(ctx context.Context, opts ...CallOption) (*AdminSettings, error) {
	return run[AdminSettings](ctx, a, a.prepared("GET", "/settings", nil, opts))
}

// SettingsChanges are of Admin.UpdateSettings.
type SettingsChanges struct {
	AccountDeletion           Change[bool]              `json:"account_deletion,omitzero"`
	AutoLinking               Change[bool]              `json:"auto_linking,omitzero"`
	CORSOrigins               Change[[]string]          `json:"cors_origins,omitzero"` // Besides those of the options; only where the option is open.
	EmailConfirmationRequired Change[bool]              `json:"email_confirmation_required,omitzero"`
	Enabled                   Change[bool]              `json:"enabled,omitzero"` // Off: every endpoint is 404, but for /healthz, the admin side, and the sign-in of those who may change settings.
	MagicLinkEnabled          Change[bool]              `json:"magic_link_enabled,omitzero"`
	MFARequired               Change[bool]              `json:"mfa_required,omitzero"`     // Everybody has to have a second factor.
	MFARequiredFor            Change[[]string]          `json:"mfa_required_for,omitzero"` // Roles whose holders have to have a second factor.
	OAuthEnabled              Change[bool]              `json:"oauth_enabled,omitzero"`
	PasswordBreachCheck       Change[bool]              `json:"password_breach_check,omitzero"`
	PasswordEnabled           Change[bool]              `json:"password_enabled,omitzero"`
	PasswordMinLength         Change[int]               `json:"password_min_length,omitzero"` // At least 8.
	PhoneEnabled              Change[bool]              `json:"phone_enabled,omitzero"`
	RedirectURLs              Change[[]string]          `json:"redirect_urls,omitzero"`        // Besides those of the options; only where the option is open.
	SenderName                Change[string]            `json:"sender_name,omitzero"`          // The name of the application in messages and pages.
	SessionIdleTimeout        Change[int]               `json:"session_idle_timeout,omitzero"` // Seconds. Can only be shortened, to 300 at least.
	SessionLifetime           Change[int]               `json:"session_lifetime,omitzero"`     // Seconds; 0: none. Can only be shortened, to 300 at least.
	SignupEnabled             Change[bool]              `json:"signup_enabled,omitzero"`
	Texts                     Change[map[string]string] `json:"texts,omitzero"`        // What mails say besides their templates, by names such as magic_link.subject, magic_link.intro and footer, each with a language behind it, too (footer.de). Plain, and without links.
	TOTPEnabled               Change[bool]              `json:"totp_enabled,omitzero"` // Off: no new second factors.
}

// UpdateSettings is PATCH /settings: change settings. All that are named or none; null
// takes back what was said here. In force in every instance within a second. Needs a proof
// of the last 15 minutes. Permission: auth.settings.write.
func (a *Admin) UpdateSettings(ctx context.Context, p SettingsChanges, opts ...CallOption) (*AdminSettings, error) {
	return run[AdminSettings](ctx, a, a.prepared("PATCH", "/settings", p, opts))
}

// TestResult is a part of what the admin side answers.
type TestResult struct {
	Detail string `json:"detail"` // What was reached, or why it was not.
	Ok     bool   `json:"ok"`
	Queued bool   `json:"queued"` // Not known yet: it is tried again for a while.
}

// TestMail is POST /settings/test-mail: try out the mailer. Sends a mail to one's own
// address, and waits up to ten seconds for the first attempt. Needs a proof of the last 15
// minutes. Permission: auth.settings.write.
func (a *Admin) TestMail(ctx context.Context, opts ...CallOption) (*TestResult, error) {
	return run[TestResult](ctx, a, a.prepared("POST", "/settings/test-mail", nil, opts))
}

// TestSMS is POST /settings/test-sms: try out the text messages. Sends a text to one's own
// number, and waits up to ten seconds for the first attempt. Needs a proof of the last 15
// minutes. Permission: auth.settings.write.
func (a *Admin) TestSMS(ctx context.Context, opts ...CallOption) (*TestResult, error) {
	return run[TestResult](ctx, a, a.prepared("POST", "/settings/test-sms", nil, opts))
}

// TestProvider is POST /settings/test-provider/{name}: try out a provider. Reads its
// discovery document and its keys. Needs a proof of the last 15 minutes. Permission:
// auth.settings.write.
func (a *Admin) TestProvider(ctx context.Context, name string, opts ...CallOption) (*TestResult, error) {
	return run[TestResult](ctx, a, a.prepared("POST", "/settings/test-provider/"+segment(name), nil, opts))
}

// Diagnostics is a part of what the admin side answers.
type Diagnostics struct {
	APIKeys  []DiagnosticsAPIKey `json:"api_keys"` // Secret keys that are live, the oldest texts first, at most 50.
	Client   DiagnosticsClient   `json:"client"`
	Feed     DiagnosticsFeed     `json:"feed"`
	Keys     []DiagnosticsKey    `json:"keys"`
	Mail     DiagnosticsMail     `json:"mail"`
	Now      time.Time           `json:"now"` // By the clock of the instance that answers.
	Settings DiagnosticsSettings `json:"settings"`
	Store    DiagnosticsStore    `json:"store"`
}

// DiagnosticsAPIKey is a part of what the admin side answers.
type DiagnosticsAPIKey struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Ageing     bool       `json:"ageing"` // Its text is older than a year.
	ExpiresAt  *time.Time `json:"expires_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	Since      time.Time  `json:"since"` // When it was made, or rotated last.
}

// DiagnosticsClient is a part of what the admin side answers.
type DiagnosticsClient struct {
	Forwarded      []string `json:"forwarded"` // The headers that speak of another client.
	IP             string   `json:"ip"`        // Whom limits count by.
	Peer           string   `json:"peer"`      // Who is connected: the client, or a proxy.
	TrustedProxies int      `json:"trusted_proxies"`
	Unheeded       bool     `json:"unheeded"` // They count for nothing, as the peer is no trusted proxy.
}

// DiagnosticsFeed is a part of what the admin side answers.
type DiagnosticsFeed struct {
	Following int        `json:"following"` // Feeds of revocations that this instance follows.
	LookedAt  *time.Time `json:"looked_at"`
}

// DiagnosticsKey is a part of what the admin side answers.
type DiagnosticsKey struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Signs     bool   `json:"signs"`
}

// DiagnosticsMail is a part of what the admin side answers.
type DiagnosticsMail struct {
	Here    int        `json:"here"` // Messages in this instance.
	Oldest  *time.Time `json:"oldest"`
	Waiting *int       `json:"waiting"` // In the store, counted up to 10,000.
}

// DiagnosticsSettings is a part of what the admin side answers.
type DiagnosticsSettings struct {
	Failing  bool       `json:"failing"`
	ReadAt   *time.Time `json:"read_at"`
	Revision int64      `json:"revision"`
}

// DiagnosticsStore is a part of what the admin side answers.
type DiagnosticsStore struct {
	AheadBy         *float64   `json:"ahead_by"` // Seconds by which the store's clock is ahead.
	Now             *time.Time `json:"now"`
	ResponseSeconds float64    `json:"response_seconds"`
	SchemaVersion   *int       `json:"schema_version"`
}

// Diagnostics is GET /diagnostics: how the service is doing. As the instance that answers
// sees it. Permission: auth.settings.read.
func (a *Admin) Diagnostics(ctx context.Context, opts ...CallOption) (*Diagnostics, error) {
	return run[Diagnostics](ctx, a, a.prepared("GET", "/diagnostics", nil, opts))
}
