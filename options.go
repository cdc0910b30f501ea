package auth

import (
	"cmp"
	"context"
	"crypto"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/authmount/auth/internal/keys"
	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// Option configures one aspect of an [Auth]. Each option documents its default. [New]
// reports the options that are required and have no safe default.
type Option func(*config)

// config collects the options, before New checks them.
type config struct {
	errs []error

	secrets        [][]byte
	baseURL        *url.URL
	prefix         string
	prefixed       bool   // by WithPrefix
	publicPath     string // what a proxy strips from the path of each request, or ""
	assumedURL     bool   // by WithDevMode
	devMode        bool
	idle           bool // WithoutBackground
	log            *slog.Logger
	now            func() time.Time
	mailer         Mailer
	sms            SMSSender
	phone          PhoneOptions
	mail           MailOptions
	settings       Settings // of WithSettings: locked
	passwords      PasswordOptions
	tokens         TokenOptions
	shared         [][]byte // of WithSharedSecret
	signer         crypto.Signer
	verifiers      []crypto.PublicKey
	claims         []func(context.Context, User) (map[string]any, error)
	hooks          []Hooks
	captcha        *CaptchaOptions
	providers      []provider.Provider
	sessions       SessionOptions
	mfa            MFAOptions
	audit          AuditOptions
	passkeys       Passkeys
	redirects      []redirect.Pattern
	links          LinkOptions
	apiKeys        []string
	secretKeys     []store.APIKey
	privileged     []string // names of roles
	limits         RateLimits
	trustedProxies []netip.Prefix
	corsOrigins    []string
	cookies        *CookieOptions
	onRefused      func(http.ResponseWriter, *http.Request, error)
	bodyWait       time.Duration

	openSettings Settings        // of WithSettings within Default
	open         map[string]bool // by option: its last call was within Default
	wrapped      bool            // within Default
	settable     bool            // the option within Default sets settings
	keepsFactors bool            // the store is a store.FactorStore
	audited      bool            // WithAuditLog was called
}

// fail adds an error to those of New. It splits joined errors, so that each line of a log
// names the option.
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

// WithSecret sets the secret from which every key is derived (HKDF, RFC 5869): at least 32
// random bytes, the same in every instance. New refuses a text that repeats itself or has
// fewer than 8 different bytes. It is required outside dev mode.
//
// To rotate it, pass the new secret first and the previous ones after it. Tokens of a
// previous secret stay valid until they expire. A second factor stays valid for as long as
// the secret that seals it is passed; using a TOTP code seals its factor again under the
// current secret. Removing a secret too early therefore disables the second factors that it
// still seals.
//
// A second call replaces the first.
func WithSecret(current []byte, previous ...[]byte) Option {
	return func(c *config) {
		c.secrets = nil
		for _, s := range append([][]byte{current}, previous...) {
			if err := keys.CheckSecret(s); err != nil {
				c.fail("WithSecret", fmt.Errorf("%w: is the variable set? openssl rand -hex 32 generates one", err))
			}
			c.secrets = append(c.secrets, append([]byte(nil), s...))
		}
	}
}

// WithBaseURL sets the public URL of the mounted handler, such as
// "https://app.example.com/auth/v1". It is required outside dev mode. It has to be https,
// except on loopback hosts in dev mode.
//
// Links in messages and the issuer of tokens come from this URL and never from a request's
// Host header, because clients control that header. Its path is also the path of the
// handler, unless WithPrefix sets another one. A second call replaces the first.
func WithBaseURL(raw string) Option {
	return func(c *config) {
		c.baseURL = &url.URL{} // an invalid URL is not reported as missing too
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

// WithPrefix sets the path at which the handler is mounted, if it differs from the path of
// the public URL. The default is the path of the base URL, or "/auth/v1" if that has none.
//
// Requests are accepted with and without the prefix, so it is not needed behind
// http.StripPrefix. The first request without it is logged. If it is the end of the base
// URL's path, a proxy is taken to strip the start from all paths of the application: the
// defaults of pages and the return_to of RequirePage then begin with it. A second call
// replaces the first.
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

// TokenOptions configure access tokens.
type TokenOptions struct {
	Issuer    string        // "iss"; default: the base URL
	Audience  string        // "aud"; default "authenticated"
	Life      time.Duration // default 15 minutes, at most 24 hours
	Algorithm string        // of the derived key: "ES256" (default), "EdDSA" or "HS256"
	Remember  int           // verified tokens cached in memory; default 10,000, negative: none
	// TokenType is the "typ" of the header: "at+jwt" (RFC 9068), the default, or "JWT"
	// for verifiers that refuse "at+jwt". With "JWT", every token that the same key
	// signs for this issuer and audience with a session in it passes for an access
	// token: sign nothing else with that key.
	TokenType string
	// AMRStrings makes "amr" a list of strings (RFC 8176: "pwd", "otp", "sms", "mfa",
	// or the method's own name if the RFC has none), and adds "auth_time", the time of
	// the latest authentication. Claims.AMR then has the strings, each with that time.
	// The default is a list of objects with method and timestamp.
	AMRStrings bool
}

// WithTokens configures access tokens. The defaults are those of [TokenOptions]. An access
// token cannot be revoked at services that only verify its signature, so a longer Life lets
// stolen tokens work for longer. A second call replaces the first.
func WithTokens(o TokenOptions) Option { return func(c *config) { c.tokens = o } }

// WithSigningKeys replaces the signing key that is derived from the secret. current signs;
// tokens signed with the keys of the previous public keys are still accepted, and these
// keys are published. The default is the derived key.
//
// The key decides the algorithm: ECDSA P-256 is ES256, Ed25519 is EdDSA, RSA of 2048 bits
// or more is RS256. See WithSharedSecret for HS256. A second call replaces the first, and a
// call of WithSharedSecret.
func WithSigningKeys(current crypto.Signer, previous ...crypto.PublicKey) Option {
	return func(c *config) {
		if current == nil {
			c.fail("WithSigningKeys", errors.New("the key is nil"))
		}
		c.signer, c.verifiers, c.shared = current, previous, nil
	}
}

// WithClaims adds the application's claims to every access token. The default is none.
// Functions of several calls add up; the last function that returns a claim's name decides
// its value.
//
// Registered claims and the claims of Authmount cannot be overridden, nor can the reserved
// names act, scope, client_id, org, org_role, is_anonymous and omitted. An error of f fails
// the sign-in or refresh with 503.
//
// A token stays below 3 kB, because headers and cookies have limits. If claims would exceed
// that, the largest are left out and named in [Claims].Omitted ("*": all of them), and the
// log warns once. A claim can therefore be missing: do not allow anything because a claim
// is absent.
func WithClaims(f func(ctx context.Context, u User) (map[string]any, error)) Option {
	return func(c *config) {
		if f == nil {
			c.fail("WithClaims", errors.New("the function is nil"))
		}
		c.claims = append(c.claims, f)
	}
}

// Sessions

// SessionOptions configure the life of sessions, their number and their refresh.
type SessionOptions struct {
	// RefreshGrace is the time in which the previous refresh token still returns the
	// current one, because responses get lost and tabs refresh at the same time.
	// Default 30 s, at most 5 minutes; negative: never, and never late either (see
	// Auth.Refresh). A longer time hides the reuse of stolen tokens for longer.
	RefreshGrace time.Duration
	// IdleTimeout is the time from the last refresh until a session expires. Default
	// 30 days.
	IdleTimeout time.Duration
	// Lifetime is the time from the sign-in until a session expires, however active it
	// is. Default: unlimited.
	Lifetime time.Duration
	// MaxPerUser is the maximum of live sessions of a user; one more revokes the least
	// active. Default 100; negative: unlimited, which lets a user grow the table of
	// sessions without bound.
	MaxPerUser int
}

func (o SessionOptions) withDefaults() SessionOptions {
	o.RefreshGrace = max(cmp.Or(o.RefreshGrace, 30*time.Second), 0)
	o.MaxPerUser = cmp.Or(o.MaxPerUser, 100)
	return o
}

// WithSessions configures the life of sessions and their number per user. The defaults are
// those of [SessionOptions]. A second call replaces the first.
func WithSessions(o SessionOptions) Option {
	return func(c *config) {
		switch {
		case o.RefreshGrace > 5*time.Minute:
			c.fail("WithSessions", errors.New("RefreshGrace is above 5 minutes"))
		case o.IdleTimeout < 0 || o.Lifetime < 0:
			c.fail("WithSessions", errors.New("IdleTimeout and Lifetime must not be negative"))
		}
		c.recordOption("WithSessions")
		c.sessions = o
	}
}

// Features

// WithSettings sets features and locks them: operators cannot change these fields. Fields
// at zero keep their default, and operators can change them while the service runs. Within
// [Default] it locks nothing. Fields that have an option of their own, such as
// PasswordMinLength, are an error here. A second call replaces the first; calls within
// Default and outside of it add up.
func WithSettings(s Settings) Option {
	return func(c *config) {
		own := Settings{} // a copy, which the caller cannot change
		for _, d := range declaredSettings {
			if d.option != "" && !d.unset(&s) {
				c.fail("WithSettings", fmt.Errorf("%s is set with %s", d.name, d.option))
			}
			d.copy(&own, &s)
		}
		if c.recordOption("WithSettings") {
			c.openSettings = own
		} else {
			c.settings = own
		}
	}
}

// WithPasswords sets the password policy and the cost of hashing. The defaults are those of
// [PasswordOptions]. A second call replaces the first.
func WithPasswords(o PasswordOptions) Option {
	return func(c *config) {
		c.recordOption("WithPasswords")
		c.passwords = o
	}
}

// MFAOptions configure second factors, in addition to Settings.MFARequired,
// Settings.MFARequiredFor and "mfa_required": true in an account's AppMetadata.
type MFAOptions struct {
	// RequiredFor reports whether a user has to set up a second factor before the first
	// session. It is called at every sign-in and must be fast and safe for concurrent
	// use. Default: no user.
	RequiredFor func(u User) bool

	// TrustDevices is the time for which users can trust a device, when they use an app's
	// code or a passkey as the second factor on it: up to MaxTrust, 30 days. A sign-in on
	// a trusted device needs no second factor, and its session is at LevelAAL1. Default 0:
	// no device is trusted, including those that were trusted before.
	//
	// Trust ends early when a credential changes (password, email address, phone
	// number, identities, second factors, recovery codes), when roles change, and with
	// a ban, a takeover or the revocation of all other sessions. The device's cookie or
	// X-Device-Id replaces the second factor, so apps must create that identifier at
	// random and keep it secret.
	TrustDevices time.Duration
}

// WithMFA configures second factors: the users who need one, and trusted devices. By
// default no further user needs one and no device is trusted. A second call replaces the
// first.
func WithMFA(o MFAOptions) Option {
	return func(c *config) {
		if o.TrustDevices < 0 || o.TrustDevices > store.MaxTrust {
			c.fail("WithMFA", errors.New("TrustDevices is negative or above 30 days"))
		}
		c.mfa = o
	}
}

// WithProvider adds sign-in with external providers, see package provider. Register
// {base URL}/oauth/{name}/callback with each. The default is none; further calls add more.
func WithProvider(p ...provider.Provider) Option {
	return func(c *config) { c.providers = append(c.providers, p...) }
}

// WithHooks adds functions that run before and after events. The default is none. Hooks of
// further calls run after those of earlier calls.
func WithHooks(h Hooks) Option { return func(c *config) { c.hooks = append(c.hooks, h) } }

// Messages and links

// WithMailer sets the sender of email. It is required outside dev mode, whose default is
// the inbox. A second call replaces the first.
func WithMailer(m Mailer) Option { return func(c *config) { c.mailer = m } }

// WithSMSSender sets the sender of text messages, and enables codes by text message. The
// default is none; in dev mode without a mailer it is the inbox. Text messages cost money:
// [RateLimits] bounds them. A second call replaces the first.
func WithSMSSender(s SMSSender) Option { return func(c *config) { c.sms = s } }

// WithPhone configures codes by text message and the countries that are served. The
// defaults are those of [PhoneOptions]. A second call replaces the first.
func WithPhone(o PhoneOptions) Option { return func(c *config) { c.phone = o } }

// WithMail configures the application's name, templates and the send queue. The defaults
// are those of [MailOptions]. A second call replaces the first.
func WithMail(o MailOptions) Option {
	return func(c *config) {
		c.recordOption("WithMail")
		c.mail = o
	}
}

// LinkOptions configure mailed links. Opening a link never completes it: its page has a
// button, and programs POST the token to the endpoint. Mail scanners and previews open
// links, too, and would use them up or confirm what nobody read.
type LinkOptions struct {
	// SignInByGET completes magic links whenever they are opened, except in browsers with
	// WithCookies, because only a POST may set the session's cookies. The danger: mail
	// scanners and previews of chats use such links up, and those that do not look like
	// a browser get the session's tokens. Other links are not affected. Default: false.
	SignInByGET bool
	// URLs replace the pages of Authmount by pages of the application, for the links
	// of some kinds of messages. Such a page gets the token as ?token= and has to POST
	// it to the endpoint. Default: the pages of Authmount.
	URLs map[Kind]string
}

// WithLinks configures mailed links. The defaults are those of [LinkOptions]. A second call
// replaces the first.
func WithLinks(o LinkOptions) Option {
	return func(c *config) {
		c.links = LinkOptions{SignInByGET: o.SignInByGET, URLs: maps.Clone(o.URLs)}
		for _, raw := range o.URLs {
			if u, err := url.Parse(raw); err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.Fragment != "" {
				c.fail("WithLinks", fmt.Errorf("%q is not an absolute http(s) URL", raw))
			}
		}
	}
}

// WithRedirectURLs adds to the list of URLs that redirect_to may name: exact URLs, or URLs
// that end in "/*" for every path below. They are https, an application's own scheme, or
// http on loopback hosts with any port. A path without a host is never allowed.
//
// The default is none; dev mode allows loopback hosts. Sign-in codes are sent to these
// URLs, so list only hosts that you control. Further calls add more.
func WithRedirectURLs(patterns ...string) Option {
	return func(c *config) {
		c.recordAdditiveOption("WithRedirectURLs")
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

// WithAPIKeys requires one of these public keys in the apikey or X-API-Key header of every
// request, except navigation in browsers. By default no key is needed. If one is, public
// keys in the store (see package admin) are accepted too.
//
// The keys identify the calling application. They are no secret and protect nothing by
// themselves. Further calls add more.
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

// WithPrivilegedRoles marks names of roles that application code asks for, with
// [HasRole] or [Claims.HasRole], as privileged; owner and admin always are. The name of a
// privileged role counts as a permission when package admin compares the strengths of an
// operator and an account: only its bearer, or an operator with "*", gives or takes it,
// bans, edits or impersonates a bearer. Only an operator with "*" creates or deletes a
// role of such a name. The names of all other roles count for nothing, so prefer
// [HasPermission]. Further calls add more.
func WithPrivilegedRoles(names ...string) Option {
	return func(c *config) {
		for _, name := range names {
			if !isRole(name) {
				c.fail("WithPrivilegedRoles", errors.New("a name is empty or has control characters"))
			}
		}
		c.privileged = append(c.privileged, names...)
	}
}

// WithRateLimits changes the rate limits. Fields at zero keep their default; see
// [RateLimits]. A Rate with a Burst needs a Per. Higher limits let attackers try more
// passwords and codes. A second call replaces the first.
func WithRateLimits(l RateLimits) Option {
	return func(c *config) {
		if err := l.check(); err != nil {
			c.fail("WithRateLimits", err)
		}
		c.limits = l
	}
}

// WithTrustedProxies sets the networks (CIDR) of the reverse proxies whose X-Forwarded-For
// and Forwarded headers are trusted. By default the client is the peer of the connection.
//
// A proxy has to set one of the two headers, and should remove the other: if they name
// different addresses, the proxy itself counts as the client, so a client that sends the
// other header shares the proxy's rate limits, and keys bound to networks are refused. A
// Forwarded header without an equals sign is ignored. Clients in a trusted network can name
// any address, so do not list networks with other hosts. Further calls add more.
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

// WithCORS allows pages of these origins ("https://app.example.com") to call the endpoints,
// and the routes within [Auth.CORS]. By default no other origin is allowed. "*" allows every origin and cannot be combined
// with cookies. With cookies, pages of these origins act as the signed-in user, so list
// only origins that you control. Further calls add more.
func WithCORS(origins ...string) Option {
	return func(c *config) {
		c.recordAdditiveOption("WithCORS")
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

// CookieOptions configure sessions in cookies.
type CookieOptions struct {
	// Name is the middle part of the cookies' names, of the characters of a token (RFC
	// 6265). Default "authmount". The cookies are __Host-<name>-access,
	// __Host-<name>-refresh and __Host-<name>-device, which identifies the device. On
	// loopback http they have no prefix, because the prefix needs https.
	Name string

	// SignInURL is the page to which RequirePage redirects visitors who have to sign
	// in: a path of the same origin, or an https URL. Default "/account/sign-in" as browsers see it, the
	// page of package pages. Its parameters are return_to, the path of the refused
	// request (see Auth.CheckReturn), and reason, the error code ("session_ended",
	// "insufficient_aal", …), which is absent for a visitor without a session.
	SignInURL string
}

// WithCookies adds sessions in HttpOnly cookies, for pages. Programs still get tokens in
// response bodies: one Auth serves both. By default there are no cookies.
//
// A sign-in by a form, or by JSON with the header "X-Session-Transport: cookie", sets the
// cookies and returns no tokens. Requests with a session cookie get cookies; other JSON
// requests get tokens and no cookies. A bearer token takes precedence over cookies, and a
// refused one never falls back to them.
//
// Requests that use or set a cookie and change something are refused with
// CodeCrossSiteRequest (403), unless they come from the same origin or from an origin of
// WithCORS. See [Auth.RequirePage] and [Auth.SetCookies] for the application's own pages. A
// second call replaces the first.
func WithCookies(o CookieOptions) Option {
	return func(c *config) {
		if o.Name != "" && (&http.Cookie{Name: o.Name}).Valid() != nil { //nolint:gosec // only checks the name
			c.fail("WithCookies", fmt.Errorf("%q cannot be in a cookie's name", o.Name))
		}
		if u, err := url.Parse(o.SignInURL); o.SignInURL != "" && !redirect.IsLocal(o.SignInURL) && (err != nil || u.Host == "" || u.User != nil || (u.Scheme != "https" && !isLoopbackHost(u.Hostname()))) {
			c.fail("WithCookies", fmt.Errorf("SignInURL %q is neither a path of the same origin nor an https address", o.SignInURL))
		}
		c.cookies = &o
	}
}

// WithOnRefused sets the response of Require, RequirePage and Optional to requests that
// they refuse; err is an *Error. By default Require responds with the JSON error, and
// RequirePage redirects to the sign-in page.
//
// f can call [Auth.WriteError] for the JSON error. The cookies of an expired session are
// removed before f is called. A second call replaces the first.
func WithOnRefused(f func(w http.ResponseWriter, r *http.Request, err error)) Option {
	return func(c *config) {
		if f == nil {
			c.fail("WithOnRefused", errors.New("the function is nil"))
		}
		c.onRefused = f
	}
}

// Environment

// WithLogger sets the logger. The default is slog.Default(). Secrets are never logged. A
// second call replaces the first.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) {
		if l == nil {
			c.fail("WithLogger", errors.New("the logger is nil"))
			return
		}
		c.log = l
	}
}

// WithClock sets the clock, for tests. The default is time.Now. A second call replaces the
// first.
func WithClock(now func() time.Time) Option {
	return func(c *config) {
		if now == nil {
			c.fail("WithClock", errors.New("the clock is nil"))
			return
		}
		c.now = now
	}
}

// WithoutBackground is for commands that run and exit: New starts no background work, which
// is the sweeper, the sender of messages, the reader of settings and the worker of jobs. By
// default New starts all of it.
//
// With a store that keeps messages (Journal), messages are recorded, and an instance of
// the service with the same secret sends them. Without such an instance nothing is sent.
func WithoutBackground() Option { return func(c *config) { c.idle = true } }

// WithDevMode is for development on your own machine. It creates an ephemeral secret if
// none is set, and allows http and redirects on loopback hosts. If no mailer is set,
// messages are kept in Inbox instead of being sent. Without WithBaseURL, links start with
// http://127.0.0.1 and the port that is served (8080 before the first request), and providers
// call back to port 8080. The default is off.
//
// Never use it where others can connect: anyone who can read the inbox can sign in as any
// user.
func WithDevMode() Option { return func(c *config) { c.devMode = true } }
