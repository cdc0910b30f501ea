package auth

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/cors"

	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/internal/visible"
	"github.com/authmount/auth/store"
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

// How often each instance looks whether somebody has changed the settings, and for
// how long. No request waits for it, nor makes it.
const (
	settingsEvery = time.Second * 9 / 10 // with the reading itself, within a second
	settingsWait  = 5 * time.Second
)

// liveSettings are the settings in force in this process.
type liveSettings struct {
	options optionSettings

	reading sync.Mutex // one reads and puts in force at a time, so that nothing older comes last
	now     atomic.Pointer[inForce]
	readAt  atomic.Int64 // when the store was read last, in Unix nanoseconds; 0: never
	failing atomic.Bool
}

// inForce is what is in force at one time, with what is made of it. It is not written
// to any more.
type inForce struct {
	settings    Settings
	revision    int64
	redirects   []redirect.Pattern
	cors        *cors.Cors // nil: no other origin may call
	crossOrigin *http.CrossOriginProtection
}

// put puts the options and a document in force. What of the document does not count,
// the log tells.
func (a *Auth) put(ctx context.Context, stored store.StoredSettings) error {
	d, err := parseDocument(stored.Document)
	if err != nil {
		return err
	}
	s, faults := a.settings.options.settle(&a.cfg, d)
	if len(faults) > 0 {
		a.cfg.log.WarnContext(ctx, "auth: settings in the store that do not count", "revision", stored.Revision, "why", faults)
	}
	if !s.Enabled.On() {
		s.SignUp = Off
	}
	f := &inForce{settings: s, revision: stored.Revision, redirects: slices.Clone(a.cfg.redirects), crossOrigin: http.NewCrossOriginProtection()}
	for _, u := range s.RedirectURLs {
		p, err := redirect.ParsePattern(u)
		if err != nil {
			return err
		}
		f.redirects = append(f.redirects, p)
	}
	origins := append(slices.Clone(a.cfg.corsOrigins), s.CORSOrigins...)
	if len(origins) > 0 {
		f.cors = a.newCORS(origins)
	}
	for _, o := range append(origins, originOf(a.cfg.baseURL.String())) {
		if o == "*" {
			continue // excludes cookies, which are all that is protected
		}
		if err := f.crossOrigin.AddTrustedOrigin(o); err != nil {
			return fmt.Errorf("WithCORS: %w", err)
		}
	}
	a.settings.now.Store(f)
	return nil
}

// readSettings brings what is in force up to what the store has.
func (a *Auth) readSettings(ctx context.Context) error {
	l := &a.settings
	if a.project == nil {
		return nil
	}
	l.reading.Lock()
	defer l.reading.Unlock()
	stored, err := a.project.Settings(ctx)
	if err != nil {
		return err
	}
	l.readAt.Store(time.Now().UnixNano())
	if now := l.now.Load(); now != nil && now.revision == stored.Revision {
		return nil
	}
	return a.put(ctx, stored)
}

// followSettings reads the settings again and again, until ctx ends. While the store
// cannot be read, what was read last stays in force.
func (a *Auth) followSettings(ctx context.Context) {
	if a.project == nil {
		return
	}
	tick := time.NewTicker(settingsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		reading, cancel := context.WithTimeout(ctx, settingsWait)
		err := a.readSettings(reading)
		cancel()
		if failing := err != nil && ctx.Err() == nil; failing != a.settings.failing.Swap(failing) {
			if failing {
				a.cfg.log.WarnContext(ctx, "auth: the settings cannot be read; those read last stay in force", "error", err)
			} else {
				a.cfg.log.InfoContext(ctx, "auth: the settings can be read again")
			}
		}
	}
}

func (a *Auth) newCORS(origins []string) *cors.Cors {
	return cors.New(cors.Options{
		AllowedOrigins:   origins,
		AllowedMethods:   []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowedHeaders:   []string{"Accept", "Accept-Language", "Apikey", "Authorization", "Content-Type", captchaHeader, "X-Api-Key", "X-Device-Id", "X-Request-Id", transportHeader},
		ExposedHeaders:   []string{"Date", "Retry-After", "X-Request-Id"},
		AllowCredentials: a.cfg.cookies != nil,
		MaxAge:           600,
	})
}

// withCORS answers other origins by the list that is in force.
func (a *Auth) withCORS(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := a.settings.now.Load().cors; c != nil {
			c.ServeHTTP(w, r, h.ServeHTTP)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// mailTexts are what operators have mails say. They are shared, and not to be changed.
func (a *Auth) mailTexts() map[string]string { return a.settings.now.Load().settings.Texts }

// appName is the name of the application, as messages and pages show it.
func (a *Auth) appName() string { return visible.Line(a.settings.now.Load().settings.SenderName) }

// permSettings is the permission of those who may change settings, and so may sign in
// while everything is switched off: nobody else could switch it on again.
const permSettings = "auth.settings.write"

// letIn judges whether somebody may come in while the service is switched off. Errors:
// CodeNotFound, as for everything then.
func (a *Auth) letIn(ctx context.Context, u User) error {
	if a.settings.now.Load().settings.Enabled.On() {
		return nil
	}
	held, _, err := a.permissionsOf(ctx, u.Roles)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(held, func(p string) bool { return grants(p, permSettings) }) {
		return fail(CodeNotFound, nil)
	}
	return nil
}

// wayIn tells whether somebody could sign in under settings, with something of theirs
// that is proved and the second factor that they would be asked for: by the settings, or
// anyway.
func (a *Auth) wayIn(s Settings, c store.Credentials, factor bool) bool {
	u := &c.User
	linked := slices.ContainsFunc(u.Identities, func(i Identity) bool { return a.providers[i.Provider] != nil })
	switch {
	case s.Password.On() && c.PasswordHash != "" && (!s.RequireConfirmation.On() || u.EmailVerified() || u.PhoneVerified()):
	case s.MagicLink.On() && u.Email != "" && u.EmailVerified():
	case s.Phone.On() && a.cfg.sms != nil && u.PhoneVerified():
	case s.OAuth.On() && linked:
	default:
		return false
	}
	return u.MFAEnabled || !factor && !a.mfaRequiredBy(s, *u) || a.factors != nil && s.TOTP.On()
}
