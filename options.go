package auth

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// Option sets one thing about an Auth. What is left out has the default its
// doc names; what cannot have a safe default, New asks for.
type Option func(*config)

// config is what the options say, before New has checked it.
type config struct {
	errs []error

	secrets   [][]byte
	baseURL   *url.URL
	prefix    string
	prefixed  bool // by WithPrefix
	madeUpURL bool // by WithDevMode
	devMode   bool
	idle      bool // WithoutBackground
	log       *slog.Logger
	now       func() time.Time
	mailer    Mailer
	sms       SMSSender
	phone     PhoneOptions
	mail      MailOptions
	settings  Settings // of WithSettings: locked
	passwords PasswordOptions
	tokens    TokenOptions
	shared    [][]byte // of WithSharedSecret
	signer    crypto.Signer
	verifiers []crypto.PublicKey
	claims    []func(context.Context, User) (map[string]any, error)
	hooks     []Hooks
	captcha   *CaptchaOptions
	providers []provider.Provider
	sessions  SessionOptions
	mfa       MFAOptions
	audit     AuditOptions

	redirects      []redirect.Pattern
	links          LinkOptions
	apiKeys        []string
	secretKeys     []store.APIKey
	limits         RateLimits
	trustedProxies []netip.Prefix
	corsOrigins    []string
	cookies        *CookieOptions
	onRefused      func(http.ResponseWriter, *http.Request, error)
	bodyWait       time.Duration

	openSettings Settings        // of WithSettings within Default
	open         map[string]bool // by option: what it said last, it said within Default
	wrapped      bool            // within Default
	settable     bool            // the option within said something of settings
	keepsFactors bool            // the store is a store.FactorStore
	audited      bool            // WithAuditLog was given
}

// fail adds an error to those of New. Of joined ones each names the option: a log
// may take their lines apart.
func (c *config) fail(option string, err error) {
	if list, ok := err.(interface{ Unwrap() []error }); ok && strings.Contains(err.Error(), "\n") {
		for _, e := range list.Unwrap() {
			c.fail(option, e)
		}
		return
	}
	c.errs = append(c.errs, fmt.Errorf("%s: %w", option, err))
}

// Identity and keys

// WithSecret sets the secret that every key is derived from (HKDF, RFC 5869):
// at least 32 random bytes, the same in every instance. To rotate, put the new
// secret first and the previous ones behind it: tokens of those are good until
// they expire, and second factors for as long as the secret they are sealed under
// is here; a TOTP code that is used seals its factor anew. There is no default. A second call replaces the first.
func WithSecret(current []byte, previous ...[]byte) Option {
	return func(c *config) {
		c.secrets = nil
		for _, s := range append([][]byte{current}, previous...) {
			if len(s) < 32 {
				c.fail("WithSecret", fmt.Errorf("a secret needs at least 32 bytes, this one has %d: is the variable set? openssl rand -hex 32 makes one", len(s)))
			}
			c.secrets = append(c.secrets, append([]byte(nil), s...))
		}
	}
}

// WithBaseURL sets the public URL of the mounted handler, such as
// "https://app.example.com/auth/v1". Its path is also what the handler answers
// at, unless WithPrefix says otherwise. Links in messages and the tokens' issuer
// come from it and never from a request's Host. It has to be https, except on
// loopback hosts in dev mode. There is no default outside dev mode. A second call
// replaces the first.
func WithBaseURL(raw string) Option {
	return func(c *config) {
		c.baseURL = &url.URL{} // one that is bad is not missing, too
		u, err := url.Parse(strings.TrimSuffix(raw, "/"))
		switch {
		case err != nil:
			c.fail("WithBaseURL", err)
		case u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
			c.fail("WithBaseURL", fmt.Errorf("%q is not an absolute http(s) URL without query, such as https://app.example.com/auth/v1", raw))
		default:
			c.baseURL = u
		}
	}
}

// WithPrefix sets the path the handler is mounted at, for handlers that are
// reached by another one than the public URL's. The default is the path of the
// base URL, or "/auth/v1" if that has none. Requests are accepted with and without
// it, so behind http.StripPrefix it is not needed. One that misses it is logged,
// once. A second call replaces the first.
func WithPrefix(prefix string) Option {
	return func(c *config) {
		c.prefix, c.prefixed = strings.TrimSuffix(prefix, "/"), true
		switch {
		case c.prefix == "":
		case !strings.HasPrefix(prefix, "/"):
			c.fail("WithPrefix", fmt.Errorf("%q does not start with a slash", prefix))
		case !plainPath(c.prefix):
			c.fail("WithPrefix", fmt.Errorf("%q is not a plain path", prefix))
		}
	}
}

// TokenOptions are the settings of access tokens.
type TokenOptions struct {
	Issuer    string        // "iss"; default: the base URL
	Audience  string        // "aud"; default "authenticated"
	Life      time.Duration // default 15 minutes, at most 24 hours
	Algorithm string        // of the derived key: "ES256" (default), "EdDSA" or "HS256"
	Remember  int           // verified tokens kept in memory; default 10,000, negative: none
	// TokenType is the "typ" of the header: "at+jwt" (RFC 9068), which is the default,
	// or "JWT" for verifiers that refuse that. "JWT" lets any token pass for an access
	// token that the same key signed for this issuer and audience with a session in
	// it: sign nothing else with that key.
	TokenType string
	// AMRStrings makes "amr" a list of strings (RFC 8176: "pwd", "otp", "sms", "mfa",
	// and the method's own name where that has none), and adds "auth_time", the time of
	// the newest proof. The default is a list of objects with method and timestamp.
	// Claims.AMR has the strings then, and that time for each.
	AMRStrings bool
}

// WithTokens sets how access tokens are made. A second call replaces the first.
func WithTokens(o TokenOptions) Option { return func(c *config) { c.tokens = o } }

// WithSigningKeys replaces the derived signing key: current signs, and previous
// public keys are still accepted and published. The algorithm follows from the
// key: ECDSA P-256 is ES256, Ed25519 is EdDSA, RSA of 2048 bits or more is RS256.
// See WithSharedSecret for HS256 with a secret of the verifier's.
// A second call replaces the first.
func WithSigningKeys(current crypto.Signer, previous ...crypto.PublicKey) Option {
	return func(c *config) {
		if current == nil {
			c.fail("WithSigningKeys", errors.New("the key is nil"))
		}
		c.signer, c.verifiers, c.shared = current, previous, nil
	}
}

// WithClaims adds claims of the application's own to every access token. The
// registered and Authmount's own names cannot be overridden, nor those that may
// become so: act, scope, client_id, org, org_role, is_anonymous, omitted. A token
// stays below 3 kB: of claims that would make it longer the largest are left out,
// are named in [Claims].Omitted ("*": all of them), and the log warns once. So
// whatever a claim withholds must not be allowed where it is missing. An error fails
// the sign-in or refresh with 503. Functions of several calls add up; of claims with
// one name the last counts.
func WithClaims(f func(ctx context.Context, u User) (map[string]any, error)) Option {
	return func(c *config) {
		if f == nil {
			c.fail("WithClaims", errors.New("the function is nil"))
		}
		c.claims = append(c.claims, f)
	}
}

// Sessions

// SessionOptions are how long sessions live, how many a user has, and how
// refreshing is judged.
type SessionOptions struct {
	// RefreshGrace is for how long the refresh token before the current one still
	// yields the current one, so that a lost response or a second tab does no
	// harm. Default 30 s, at most 5 minutes; negative: never, and never late
	// either (see Auth.Refresh).
	RefreshGrace time.Duration
	// IdleTimeout ends a session this long after its last refresh; default 30
	// days.
	IdleTimeout time.Duration
	// Lifetime ends every session this long after sign-in, however active it is;
	// default: no such end.
	Lifetime time.Duration
	// MaxPerUser is how many live sessions a user has at most; with one more, the
	// least active ends. Default 100; negative: any number, which lets whoever
	// can sign in make the lists of sessions as long as they like.
	MaxPerUser int
}

func (o SessionOptions) withDefaults() SessionOptions {
	switch {
	case o.RefreshGrace == 0:
		o.RefreshGrace = 30 * time.Second
	case o.RefreshGrace < 0:
		o.RefreshGrace = 0
	}
	if o.MaxPerUser == 0 {
		o.MaxPerUser = 100
	}
	return o
}

// WithSessions sets how long sessions live and how many a user has. A second call replaces the first.
func WithSessions(o SessionOptions) Option {
	return func(c *config) {
		switch {
		case o.RefreshGrace > 5*time.Minute:
			c.fail("WithSessions", errors.New("RefreshGrace is above 5 minutes"))
		case o.IdleTimeout < 0 || o.Lifetime < 0:
			c.fail("WithSessions", errors.New("IdleTimeout and Lifetime must not be negative"))
		}
		c.says("WithSessions")
		c.sessions = o
	}
}

// What people can do

// WithSettings says what is on, and locks it; fields at zero keep their default and
// can be changed while the service runs. Within [Default] it locks nothing. A second
// call replaces the first of its kind.
func WithSettings(s Settings) Option {
	return func(c *config) {
		for _, f := range settingFields() {
			if f.option != "WithSettings" && !f.unset(&s) {
				c.fail("WithSettings", fmt.Errorf("%s is set with %s", f.name, f.option))
			}
		}
		s.MFARequiredFor = slices.Clone(s.MFARequiredFor)
		if c.says("WithSettings") {
			c.openSettings = s
		} else {
			c.settings = s
		}
	}
}

// WithPasswords sets the password policy and hashing. A second call replaces the
// first.
func WithPasswords(o PasswordOptions) Option {
	return func(c *config) {
		c.says("WithPasswords")
		c.passwords = o
	}
}

// MFAOptions say who needs a second factor besides everybody
// (Settings.MFARequired) and those with "mfa_required": true in AppMetadata, and
// where it need not be shown each time.
type MFAOptions struct {
	// RequiredFor names users who have to set one up before the first session,
	// such as those with a role. It is called at every sign-in and must be quick
	// and safe for concurrent use. Default: nobody.
	RequiredFor func(u User) bool

	// TrustDevices lets users say, with a code of their app, that the device on
	// which they sign in is not asked for one for so long: up to MaxTrust, 30 days.
	// Sessions that begin there without a code are at LevelAAL1. It ends early with
	// whatever changes how the account is signed in to (password, address, number,
	// identities, second factors, recovery codes), with a change of roles, a ban, a
	// takeover, and when all other sessions are ended. Whoever has the device's
	// cookie, or X-Device-Id, and the first factor needs no second one: apps have to
	// make that identifier at random and keep it secret. Default 0: no device is
	// trusted, nor any that was while this was set.
	TrustDevices time.Duration
}

// WithMFA sets who needs a second factor, and whether devices may be trusted. A
// second call replaces the first.
func WithMFA(o MFAOptions) Option {
	return func(c *config) {
		if o.TrustDevices < 0 || o.TrustDevices > store.MaxTrust {
			c.fail("WithMFA", errors.New("TrustDevices is negative or above 30 days"))
		}
		c.mfa = o
	}
}

// WithProvider lets people sign in with outside services; package provider has
// Google, GitHub, Facebook, Twitter, Microsoft, Apple, Discord, OIDC for any
// OpenID provider and OAuth2 for the rest. Register {base URL}/oauth/{name}/callback
// with the service. Further calls add more. The default is none.
func WithProvider(p ...provider.Provider) Option {
	return func(c *config) { c.providers = append(c.providers, p...) }
}

// WithHooks adds functions that are called before and after what happens, behind
// those of earlier calls.
func WithHooks(h Hooks) Option { return func(c *config) { c.hooks = append(c.hooks, h) } }

// Messages and links

// WithMailer sets what delivers e-mail. There is no default outside dev mode.
// A second call replaces the first.
func WithMailer(m Mailer) Option { return func(c *config) { c.mailer = m } }

// WithSMSSender sets what delivers text messages, and switches phone codes on.
// In dev mode without a mailer the default is the inbox. A second call replaces
// the first.
func WithSMSSender(s SMSSender) Option { return func(c *config) { c.sms = s } }

// WithPhone sets how phone codes are made and which countries are served. A
// second call replaces the first.
func WithPhone(o PhoneOptions) Option { return func(c *config) { c.phone = o } }

// WithMail sets names, templates and the send queue. A second call replaces the
// first.
func WithMail(o MailOptions) Option {
	return func(c *config) {
		c.says("WithMail")
		c.mail = o
	}
}

// LinkMode says when a mailed link is completed by being opened.
type LinkMode int

// The modes.
const (
	// ConfirmLinks shows a page with a button, which completes the link, so that
	// mail scanners and previews use no links up. Programs complete it at once:
	// those that accept application/json by name, or accept anything and neither
	// send Sec-Fetch-* headers nor name themselves Mozilla/.
	ConfirmLinks LinkMode = iota
	// DirectLinks completes a link whenever it is opened. Mail scanners that
	// follow links will use them up. With WithCookies a link to sign in keeps its
	// page in browsers: only a post signs one in.
	DirectLinks
	// StrictLinks completes a link at once only for programs that ask for
	// application/json by name, against scanners that pose as other programs.
	StrictLinks
)

// LinkOptions are how mailed links work.
type LinkOptions struct {
	Mode LinkMode // default ConfirmLinks
	// URLs point the links of some messages to pages of the application's own,
	// which have to post the token they get as ?token= to the endpoint. By default
	// they lead to the pages that Authmount serves.
	URLs map[Kind]string
}

// WithLinks sets how mailed links work. A second call replaces the first.
func WithLinks(o LinkOptions) Option {
	return func(c *config) {
		c.links = LinkOptions{Mode: o.Mode, URLs: maps.Clone(o.URLs)}
		if o.Mode < ConfirmLinks || o.Mode > StrictLinks {
			c.fail("WithLinks", errors.New("there is no such mode"))
		}
		for _, raw := range o.URLs {
			if u, err := url.Parse(raw); err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.Fragment != "" {
				c.fail("WithLinks", fmt.Errorf("%q is not an absolute http(s) URL", raw))
			}
		}
	}
}

// WithRedirectURLs sets the allow-list for redirect_to: exact URLs, or URLs
// that end in "/*" for everything below; https, an application's own scheme, or
// http on loopback hosts, where every port matches. A path alone is never allowed.
// Without it no redirect is allowed; dev mode allows loopback hosts. Further calls add more.
func WithRedirectURLs(patterns ...string) Option {
	return func(c *config) {
		c.opens("WithRedirectURLs")
		for _, p := range patterns {
			rp, err := redirect.ParsePattern(p)
			if err != nil {
				c.fail("WithRedirectURLs", err)
				continue
			}
			c.redirects = append(c.redirects, rp)
		}
	}
}

// Requests

// WithAPIKeys requires one of these public keys in the apikey or X-API-Key
// header of every endpoint that is not a browser navigation. They say which
// application is calling and are no secret. By default no key is needed. Where one
// is, public keys of the store (see package admin) will do, too. Further calls add
// more.
func WithAPIKeys(keys ...string) Option {
	return func(c *config) {
		for _, k := range keys {
			if len(k) < 8 {
				c.fail("WithAPIKeys", errors.New("a key needs at least 8 characters"))
			}
		}
		c.apiKeys = append(c.apiKeys, keys...)
	}
}

// WithRateLimits changes the rate limits; fields that are zero keep their
// default. A Rate with a Burst needs a Per. A second call replaces the first.
func WithRateLimits(l RateLimits) Option {
	return func(c *config) {
		if err := l.check(); err != nil {
			c.fail("WithRateLimits", err)
		}
		c.limits = l
	}
}

// WithTrustedProxies names the networks (CIDR) of reverse proxies whose
// X-Forwarded-For and Forwarded headers are believed. A proxy has to see to one of
// them, and should remove the other: where both are there and lead to different
// addresses, the client is taken to be the proxy, so that whoever sends the other
// shares the proxy's rate limits, and no key that is bound to networks is good. A
// Forwarded without an equals sign counts for nothing. By default the client is whoever
// connects. Further calls add more.
func WithTrustedProxies(cidrs ...string) Option {
	return func(c *config) {
		for _, s := range cidrs {
			p, err := netip.ParsePrefix(s)
			if err != nil {
				c.fail("WithTrustedProxies", err)
				continue
			}
			c.trustedProxies = append(c.trustedProxies, p.Masked())
		}
	}
}

// WithCORS lets pages of these origins ("https://app.example.com") call the
// endpoints. "*" means any origin and cannot be used with cookies. By default
// no other origin may. Further calls add more.
func WithCORS(origins ...string) Option {
	return func(c *config) {
		c.opens("WithCORS")
		for _, o := range origins {
			if err := checkOrigin(o); err != nil {
				c.fail("WithCORS", err)
			}
		}
		c.corsOrigins = append(c.corsOrigins, origins...)
	}
}

func checkOrigin(o string) error {
	if u, err := url.Parse(o); o != "*" && (err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.User != nil || strings.Contains(o, "*")) {
		return fmt.Errorf("%q is not an origin like https://app.example.com", o)
	}
	return nil
}

// CookieOptions are the settings of sessions in cookies.
type CookieOptions struct {
	// Name is the middle part of the cookies' names: letters, digits and the other
	// characters of a token (RFC 6265); default "authmount". The cookies are
	// __Host-<name>-access and __Host-<name>-refresh, and __Host-<name>-device for
	// which device it is; on loopback http they lack the prefix, which needs https.
	Name string

	// SignInURL is the page that RequirePage sends visitors to who have to sign in:
	// a path of the same origin, or an https address; default "/account/sign-in", that of package pages. It is
	// given return_to, the path where the visitor was going (see Auth.CheckReturn),
	// and reason, the code of what was missing ("session_ended",
	// "insufficient_aal", …), none for a visitor without a session.
	SignInURL string
}

// WithCookies lets sessions be in HttpOnly cookies, for pages, beside those whose
// tokens are in response bodies, for programs: one Auth serves both.
//
// A sign-in by a form, or by JSON with the header "X-Session-Transport: cookie",
// sets the cookies and returns no tokens; what comes in by cookie goes out by
// cookie; other JSON gets tokens and no cookies. A bearer token wins over cookies,
// and one that is refused never falls back to them. Requests that rely on a
// cookie, or ask for one, and change something are refused with
// CodeCrossSiteRequest (403) unless they come from
// the same origin or one of WithCORS. See [Auth.RequirePage] and [Auth.SetCookies]
// for pages of the application's own. A second call replaces the first.
func WithCookies(o CookieOptions) Option {
	return func(c *config) {
		if o.Name != "" && (&http.Cookie{Name: o.Name}).Valid() != nil { //nolint:gosec // asks of the name only
			c.fail("WithCookies", fmt.Errorf("%q cannot be in a cookie's name", o.Name))
		}
		if o.SignInURL == "" {
			o.SignInURL = "/account/sign-in"
		}
		if u, err := url.Parse(o.SignInURL); !redirect.IsLocal(o.SignInURL) && (err != nil || u.Host == "" || u.User != nil || (u.Scheme != "https" && !isLoopbackHost(u.Hostname()))) {
			c.fail("WithCookies", fmt.Errorf("SignInURL %q is neither a path of the same origin nor an https address", o.SignInURL))
		}
		c.cookies = &o
	}
}

// WithOnRefused chooses what Require, RequirePage and Optional answer when they do
// not let a request through; err is an *Error. Without it Require answers as the
// wire's errors say, and RequirePage sends visitors to the sign-in page;
// [Auth.WriteError] is the wire's answer, for some requests of an f that makes
// pages for others. The cookies of a session that is over are taken away before f
// is called. A second call replaces the first.
func WithOnRefused(f func(w http.ResponseWriter, r *http.Request, err error)) Option {
	return func(c *config) {
		if f == nil {
			c.fail("WithOnRefused", errors.New("the function is nil"))
		}
		c.onRefused = f
	}
}

// The surroundings

// WithLogger sets where the log goes; default slog.Default(). Secrets are never
// logged. A second call replaces the first.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) {
		if l == nil {
			c.fail("WithLogger", errors.New("the logger is nil"))
			return
		}
		c.log = l
	}
}

// WithClock sets the clock, for tests; default time.Now. A second call replaces
// the first.
func WithClock(now func() time.Time) Option {
	return func(c *config) {
		if now == nil {
			c.fail("WithClock", errors.New("the clock is nil"))
			return
		}
		c.now = now
	}
}

// WithoutBackground is for commands that do something and end: New starts nothing that
// goes on behind the callers' backs, no sweeper, no sender of messages, no follower of
// settings and no worker of jobs. With a store that keeps messages (Journal), what is
// to be sent is recorded, and sent by an instance of the service that has the same secret.
func WithoutBackground() Option { return func(c *config) { c.idle = true } }

// WithDevMode is for development on one's own machine: an ephemeral secret if
// none is set, http on loopback, redirects to loopback, and, if no mailer is
// set, messages that go to Inbox instead of being sent. Without WithBaseURL, links
// begin with http://127.0.0.1 and the port that is served; providers call back to
// port 8080. Never use it where others can connect.
func WithDevMode() Option { return func(c *config) { c.devMode = true } }
