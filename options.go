package auth

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/authmount/auth/provider"
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
	devMode   bool
	log       *slog.Logger
	now       func() time.Time
	mailer    Mailer
	sms       SMSSender
	phone     PhoneOptions
	mail      MailOptions
	settings  Settings
	passwords PasswordOptions
	tokens    TokenOptions
	signer    crypto.Signer
	verifiers []crypto.PublicKey
	claims    func(context.Context, User) (map[string]any, error)
	hooks     Hooks
	providers []provider.Provider

	noAutoLinking bool

	refreshGrace    time.Duration
	sessionLifetime time.Duration
	idleTimeout     time.Duration

	redirects      []redirectPattern
	linkURLs       map[Kind]string
	links          linkMode
	apiKeys        []string
	limits         RateLimits
	trustedProxies []netip.Prefix
	corsOrigins    []string
	cookies        *CookieOptions
	deletion       bool
	mfaRequired    bool
	mfaRequiredFor func(User) bool
}

func (c *config) fail(option string, err error) {
	c.errs = append(c.errs, fmt.Errorf("%s: %w", option, err))
}

// Identity and keys

// WithSecret sets the secret that every key is derived from (HKDF, RFC 5869):
// at least 32 random bytes, the same in every instance. To rotate, put the new
// secret first and the previous ones behind it: tokens of those are good until
// they expire, and second factors for as long as the secret they were set up
// under is here. There is no default.
func WithSecret(current []byte, previous ...[]byte) Option {
	return func(c *config) {
		c.secrets = nil
		for _, s := range append([][]byte{current}, previous...) {
			if len(s) < 32 {
				c.fail("WithSecret", fmt.Errorf("a secret needs at least 32 bytes, this one has %d", len(s)))
			}
			c.secrets = append(c.secrets, append([]byte(nil), s...))
		}
	}
}

// WithBaseURL sets the public URL of the mounted handler, such as
// "https://app.example.com/auth/v1". Links in messages and the tokens' issuer
// come from it and never from a request's Host. It has to be https, except on
// loopback hosts in dev mode. There is no default outside dev mode.
func WithBaseURL(raw string) Option {
	return func(c *config) {
		u, err := url.Parse(strings.TrimSuffix(raw, "/"))
		switch {
		case err != nil:
			c.fail("WithBaseURL", err)
		case u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
			c.fail("WithBaseURL", fmt.Errorf("%q is not an absolute http(s) URL without query", raw))
		default:
			c.baseURL = u
		}
	}
}

// WithPrefix sets the path the handler is mounted at, "/auth/v1" by default.
// Requests are accepted with and without it.
func WithPrefix(prefix string) Option {
	return func(c *config) {
		c.prefix = strings.TrimSuffix(prefix, "/")
		switch {
		case c.prefix == "":
		case !strings.HasPrefix(prefix, "/"):
			c.fail("WithPrefix", fmt.Errorf("%q does not start with a slash", prefix))
		case path.Clean(c.prefix) != c.prefix || strings.ContainsAny(c.prefix, "{} \t"): // http.ServeMux has other uses for them
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
}

// WithTokens sets how access tokens are made.
func WithTokens(o TokenOptions) Option { return func(c *config) { c.tokens = o } }

// WithSigningKeys replaces the derived signing key: current signs, and previous
// public keys are still accepted and published. The algorithm follows from the
// key: ECDSA P-256 is ES256, Ed25519 is EdDSA, RSA of 2048 bits or more is RS256.
func WithSigningKeys(current crypto.Signer, previous ...crypto.PublicKey) Option {
	return func(c *config) {
		if current == nil {
			c.fail("WithSigningKeys", errors.New("the key is nil"))
		}
		c.signer, c.verifiers = current, previous
	}
}

// WithClaims adds claims of the application's own to every access token. The
// registered and Authmount's own names cannot be overridden. An error fails the
// sign-in or refresh with 503.
func WithClaims(f func(ctx context.Context, u User) (map[string]any, error)) Option {
	return func(c *config) { c.claims = f }
}

// Sessions

// WithRefreshGrace sets for how long the refresh token before the current one
// is still answered with the current one, so that a lost response or a second
// tab does no harm. The default is 30 s; 0 allows no repetition.
func WithRefreshGrace(d time.Duration) Option { return func(c *config) { c.refreshGrace = d } }

// WithSessionLifetime ends every session this long after sign-in, however
// active it is. The default, 0, sets no such end.
func WithSessionLifetime(d time.Duration) Option {
	return func(c *config) {
		if d < 0 {
			c.fail("WithSessionLifetime", errors.New("is negative"))
		}
		c.sessionLifetime = d
	}
}

// WithIdleTimeout ends a session this long after its last refresh. The default
// is 30 days.
func WithIdleTimeout(d time.Duration) Option {
	return func(c *config) {
		if d <= 0 {
			c.fail("WithIdleTimeout", errors.New("must be above zero"))
		}
		c.idleTimeout = d
	}
}

// What people can do

// WithSettings says what is switched on. By default everything is, and an
// e-mail address need not be confirmed before the first sign-in.
func WithSettings(s Settings) Option { return func(c *config) { c.settings = s } }

// WithPasswords sets the password policy and hashing.
func WithPasswords(o PasswordOptions) Option { return func(c *config) { c.passwords = o } }

// WithAccountDeletion lets people delete their account with DELETE /me.
func WithAccountDeletion() Option { return func(c *config) { c.deletion = true } }

// WithMFARequired makes everybody set up a second factor before the first
// session. For one user, set "mfa_required" to true in AppMetadata.
func WithMFARequired() Option { return func(c *config) { c.mfaRequired = true } }

// WithMFARequiredFor is WithMFARequired for the users that a function names, such
// as those with a role. It is called at every sign-in.
func WithMFARequiredFor(who func(u User) bool) Option {
	return func(c *config) { c.mfaRequiredFor = who }
}

// WithProvider lets people sign in with outside services; package provider has
// Google, GitHub, Facebook, Twitter, Microsoft, Apple, Discord, OIDC for any
// OpenID provider and OAuth2 for the rest. Register {base URL}/oauth/{name}/callback
// with the service. A second call adds to the first. The default is none.
func WithProvider(p ...provider.Provider) Option {
	return func(c *config) { c.providers = append(c.providers, p...) }
}

// WithAutoLinking(false) never joins a provider's identity to an account by its
// address: people then have to sign in first and link the identity. By default
// it joins if both the provider and the account proved the address.
func WithAutoLinking(on bool) Option { return func(c *config) { c.noAutoLinking = !on } }

// WithHooks sets functions that are called before and after what happens.
func WithHooks(h Hooks) Option { return func(c *config) { c.hooks = h } }

// Messages and links

// WithMailer sets what delivers e-mail. There is no default outside dev mode.
func WithMailer(m Mailer) Option { return func(c *config) { c.mailer = m } }

// WithSMSSender sets what delivers text messages, and switches phone codes on.
// In dev mode without a mailer the default is the inbox.
func WithSMSSender(s SMSSender) Option { return func(c *config) { c.sms = s } }

// WithPhone sets how phone codes are made and which countries are served.
func WithPhone(o PhoneOptions) Option { return func(c *config) { c.phone = o } }

// WithMail sets names, templates and the send queue.
func WithMail(o MailOptions) Option {
	return func(c *config) {
		o.Sync = o.Sync || c.mail.Sync
		c.mail = o
	}
}

// WithSyncSend makes a request wait until its message is handed over, instead
// of queueing it. Answers then take as long as the mail server does, and longer
// for accounts that exist: use it only where nobody can tell, such as scripts.
func WithSyncSend() Option { return func(c *config) { c.mail.Sync = true } }

// WithLinkURL points the link of a message to a page of the application's own,
// which has to post the token it gets as ?token= to the endpoint. The default
// is the page Authmount serves.
func WithLinkURL(k Kind, rawURL string) Option {
	return func(c *config) {
		u, err := url.Parse(rawURL)
		if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.Fragment != "" {
			c.fail("WithLinkURL", fmt.Errorf("%q is not an absolute http(s) URL", rawURL))
			return
		}
		if c.linkURLs == nil {
			c.linkURLs = map[Kind]string{}
		}
		c.linkURLs[k] = rawURL
	}
}

// WithDirectLinks completes a link when it is opened, without the confirm page.
// Mail scanners that follow links will then use them up.
func WithDirectLinks() Option { return func(c *config) { c.links = directLinks } }

// WithStrictLinks shows the confirm page for every GET that does not ask for
// application/json by name, against scanners that hide their being browsers.
func WithStrictLinks() Option { return func(c *config) { c.links = strictLinks } }

// WithRedirectURLs sets the allow-list for redirect_to: exact URLs, or URLs
// that end in "/*" for everything below. On loopback hosts every port matches.
// Without it no redirect is allowed; dev mode allows loopback hosts.
func WithRedirectURLs(patterns ...string) Option {
	return func(c *config) {
		for _, p := range patterns {
			rp, err := parseRedirectPattern(p)
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
// application is calling and are no secret. By default no key is needed.
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
// default.
func WithRateLimits(l RateLimits) Option { return func(c *config) { c.limits = l } }

// WithTrustedProxies names the networks (CIDR) of reverse proxies whose
// X-Forwarded-For and Forwarded headers are believed. By default the client is
// whoever connects.
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
// no other origin may.
func WithCORS(origins ...string) Option {
	return func(c *config) {
		for _, o := range origins {
			if u, err := url.Parse(o); o != "*" && (err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || strings.Contains(o, "*")) {
				c.fail("WithCORS", fmt.Errorf("%q is not an origin like https://app.example.com", o))
			}
		}
		c.corsOrigins = append(c.corsOrigins, origins...)
	}
}

// CookieOptions are the settings of cookie mode.
type CookieOptions struct {
	// Name is the middle part of the cookies' names; default "authmount".
	Name string
}

// WithCookies carries tokens in HttpOnly cookies instead of response bodies, for
// applications rendered on the server. Requests that rely on a cookie and
// change something are refused unless they come from the same origin.
func WithCookies(o CookieOptions) Option { return func(c *config) { c.cookies = &o } }

// The surroundings

// WithLogger sets where the log goes; default slog.Default(). Secrets are never
// logged.
func WithLogger(l *slog.Logger) Option { return func(c *config) { c.log = l } }

// WithClock sets the clock, for tests; default time.Now.
func WithClock(now func() time.Time) Option { return func(c *config) { c.now = now } }

// WithDevMode is for development on one's own machine: an ephemeral secret if
// none is set, http on loopback, redirects to loopback, and, if no mailer is
// set, messages that go to Inbox instead of being sent. Never use it where
// others can connect.
func WithDevMode() Option { return func(c *config) { c.devMode = true } }
