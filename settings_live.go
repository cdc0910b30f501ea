package auth

import (
	"context"
	"fmt"
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

// settingsEvery is the interval at which each instance reads the settings in the
// background, and settingsWait the timeout of one read. No request reads them or waits for a read.
const (
	settingsEvery = time.Second * 9 / 10 // a change is in force within a second, including the read
	settingsWait  = 5 * time.Second
)

// liveSettings are the settings in force in this process.
type liveSettings struct {
	options optionSettings

	reading sync.Mutex // held from a read until its settings are in force, so that an older read cannot come last
	now     atomic.Pointer[inForce]
	readAt  atomic.Int64 // time of the last read, in Unix nanoseconds; 0: never
	failing atomic.Bool
}

// inForce are the settings in force, and values derived from them. It is immutable.
type inForce struct {
	settings    Settings
	revision    int64
	redirects   []redirect.Pattern
	cors        *cors.Cors // of the endpoints; nil: no other origin is allowed
	routesCORS  *cors.Cors // of the application's own routes
	crossOrigin *http.CrossOriginProtection
}

// put puts the options and a stored document in force. It logs the stored values that it
// ignores.
func (a *Auth) put(ctx context.Context, stored store.StoredSettings) error {
	d, err := parseDocument(stored.Document)
	if err != nil {
		return err
	}
	s, faults := a.settings.options.settle(&a.cfg, d)
	if len(faults) > 0 {
		a.cfg.log.WarnContext(ctx, "auth: some stored settings are ignored", "revision", stored.Revision, "reasons", faults)
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
		f.cors = a.newCORS(origins, "Accept", "Accept-Language", "Apikey", "Authorization", "Content-Type", captchaHeader, "X-Api-Key", "X-Device-Id", "X-Request-Id", transportHeader)
		f.routesCORS = a.newCORS(origins, "*")
	}
	for _, o := range append(origins, originOf(a.cfg.baseURL.String())) {
		if o == "*" {
			continue // WithCORS("*") excludes cookies, and only cookies need this protection
		}
		if err := f.crossOrigin.AddTrustedOrigin(o); err != nil {
			return fmt.Errorf("WithCORS: %w", err)
		}
	}
	a.settings.now.Store(f)
	return nil
}

// readSettings reads the store, and puts its settings in force if their revision is new.
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

// followSettings reads the settings periodically until ctx ends. While the store cannot
// be read, the settings of the last read stay in force.
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
				a.cfg.log.WarnContext(ctx, "auth: the settings cannot be read; the last ones remain in force", "error", err)
			} else {
				a.cfg.log.InfoContext(ctx, "auth: the settings can be read again")
			}
		}
	}
}

func (a *Auth) newCORS(origins []string, headers ...string) *cors.Cors {
	return cors.New(cors.Options{
		AllowedOrigins:   origins,
		AllowedMethods:   []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowedHeaders:   headers,
		ExposedHeaders:   []string{"Date", "Retry-After", "X-Request-Id"},
		AllowCredentials: a.cfg.cookies != nil,
		MaxAge:           600,
	})
}

// withCORS applies the list of allowed origins that is in force to the endpoints.
func (a *Auth) withCORS(h http.Handler) http.Handler {
	return a.corsOf(h, func() *cors.Cors { return a.settings.now.Load().cors })
}

// corsKey is the context key of the Auth whose CORS answers a request, so that its endpoints
// below CORS do not repeat the headers.
type corsKey struct{}

func (a *Auth) corsOf(h http.Handler, present func() *cors.Cors) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := present()
		if c == nil || r.Context().Value(corsKey{}) == a {
			h.ServeHTTP(w, r)
			return
		}
		c.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), corsKey{}, a)), h.ServeHTTP)
	})
}

// CORS lets the origins of WithCORS, and those of the setting cors_origins, call the
// application's own routes as they call the endpoints, with any request header. It answers
// their preflight requests, so it goes around Require and around routers that select by
// method:
//
//	http.ListenAndServe(addr, a.CORS(mux))
func (a *Auth) CORS(next http.Handler) http.Handler {
	return a.corsOf(next, func() *cors.Cors { return a.settings.now.Load().routesCORS })
}

// mailTexts are the operators' texts in mails. The map is shared: do not change it.
func (a *Auth) mailTexts() map[string]string { return a.settings.now.Load().settings.Texts }

// appName is the application's name in messages and pages.
func (a *Auth) appName() string { return visible.Line(a.settings.now.Load().settings.SenderName) }

// permSettings is the permission to change settings. Its holders can sign in while the
// service is switched off, because they have to switch it on again.
const permSettings = "auth.settings.write"

// off reports whether sign-ins are switched off (Settings.Enabled).
func (a *Auth) off() bool { return !a.settings.now.Load().settings.Enabled.On() }

// checkSignInAllowed checks whether a user may sign in, also while the service is
// switched off. Errors: CodeNotFound, as from an endpoint that is off.
func (a *Auth) checkSignInAllowed(ctx context.Context, u User) error {
	if !a.off() {
		return nil
	}
	held, err := a.standing(ctx, u)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(held.permissions, func(p string) bool { return grants(p, permSettings) }) {
		return fail(CodeNotFound, nil)
	}
	return nil
}

// canSignIn reports whether a user could sign in under s: by a method that is on, and with
// a second factor if the user has one, or if s or factor requires one. passkey: the user has
// one. passkeysOnly: the user's second factors are passkeys, without a recovery code.
func (a *Auth) canSignIn(s Settings, c store.Credentials, factor, passkey, passkeysOnly bool) bool {
	u := &c.User
	linked := slices.ContainsFunc(u.Identities, func(i Identity) bool { return a.providers[i.Provider] != nil })
	switch {
	case s.Password.On() && c.PasswordHash != "" && (!s.RequireConfirmation.On() || u.EmailVerified() || u.PhoneVerified()):
	case s.MagicLink.On() && u.Email != "" && u.EmailVerified():
	case s.Phone.On() && a.cfg.sms != nil && u.PhoneVerified():
	case s.OAuth.On() && linked:
	case passkey && a.cfg.passkeys != nil && s.Passkey.On():
		return true // it is two factors at once
	default:
		return false
	}
	if u.MFAEnabled {
		return !passkeysOnly || s.Passkey.On()
	}
	return !factor && !a.mfaRequiredBy(s, *u) || a.factors != nil && s.hasFactorKind(&a.cfg)
}
