package authclient

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/internal/apikey"
	"github.com/authmount/auth/internal/outbound"
	"github.com/authmount/auth/internal/token"
)

// Option configures NewVerifier, NewClient or NewAdmin. The comment of each option
// names the constructors that accept it; the others return an error. A later option
// replaces an earlier one, unless its comment says otherwise.
type Option func(*config)

// The constructors that an option may be for.
const (
	forVerifier = "NewVerifier"
	forClient   = "NewClient"
	forAdmin    = "NewAdmin"
)

type config struct {
	kind string
	errs []error

	base    *url.URL
	plain   bool
	http    *http.Client
	log     *slog.Logger
	now     func() time.Time
	retries int
	apiKey  string

	clocks    *token.Clocks // of a verifier
	secretKey string        // of a verifier
	store     TokenStore
	origins   []string
	device    string
	issuer    string
	audience  string
	tokType   string
	remember  int
	late      bool
	feed      *RevocationOptions // nil: none
}

// takes records an error if the option is not for this constructor.
func (c *config) takes(option string, kinds ...string) {
	if !slices.Contains(kinds, c.kind) {
		c.errs = append(c.errs, fmt.Errorf("%s is for %s", option, strings.Join(kinds, " and ")))
	}
}

// WithHTTPClient sends requests with the transport and the limits of h, which is
// copied. Redirects are never followed, because they would send tokens to URLs that are
// not configured. The default has connections of its own. For all three.
func WithHTTPClient(h *http.Client) Option { return func(c *config) { c.http = h } }

// WithLogger sets the logger for events in the background, without secrets. The default
// is slog.Default. For all three.
func WithLogger(l *slog.Logger) Option { return func(c *config) { c.log = l } }

// WithPlainHTTP allows a URL with http on a host other than loopback. Anyone who can
// read the traffic then sees tokens and keys, so use it only on trusted networks, such
// as a mesh that encrypts. For all three.
func WithPlainHTTP() Option { return func(c *config) { c.plain = true } }

// WithRetries sets how often to repeat a request that failed temporarily (see
// [Error.Temporary]) and may be repeated. The default is 2; 0 repeats none. The pauses
// grow or follow Retry-After, and do not exceed the call's context. For NewClient and
// NewAdmin.
func WithRetries(n int) Option {
	return func(c *config) {
		c.takes("WithRetries", forClient, forAdmin)
		c.retries = max(0, n)
	}
}

// WithAPIKey sets the project's public API key, "pk_…", for servers that require one.
// For NewClient, and for NewVerifier with CheckSession.
func WithAPIKey(key string) Option {
	return func(c *config) {
		c.takes("WithAPIKey", forClient, forVerifier)
		if strings.HasPrefix(key, "sk_") {
			c.errs = append(c.errs, errors.New("WithAPIKey: this is a secret key, which only NewAdmin accepts"))
		}
		c.apiKey = key
	}
}

// WithSecretKey sets the verifier's own secret key, "sk_…". With the scope
// auth.keys.verify, the verifier asks the server about the secret keys that programs send
// to routes with [auth.AllowKeys]; with auth.revocations.read, it may follow revocations,
// see [WithRevocations]. For NewVerifier.
func WithSecretKey(key string) Option {
	return func(c *config) {
		c.takes("WithSecretKey", forVerifier)
		if !strings.HasPrefix(key, apikey.SecretPrefix) {
			c.errs = append(c.errs, errors.New("WithSecretKey: this is not a secret key, sk_…"))
		}
		c.secretKey = key
	}
}

// RevocationOptions are the parameter of WithRevocations.
type RevocationOptions struct {
	// FailClosed refuses all access tokens with 503 revocations_unavailable while the feed
	// is down. The default is to accept tokens until they expire, as without the feed.
	FailClosed bool
}

// WithRevocations makes the verifier follow the server's revocations, over HTTP, so that it
// refuses the access tokens of ended sessions and banned users, and outdated tokens, within
// a second. It needs [WithSecretKey], with the scope auth.revocations.read, and a server
// that follows revocations itself, see WatchRevocations of pgstore and sqlitestore. Close ends it.
//
// NewVerifier waits for the first answer and returns an error if the server refuses, unless
// [WithLateStart] is set. An outage is noticed within six seconds, logged, and reported by
// [Verifier.RevocationsError]. The verifier then reconnects, at any instance of the server,
// and misses nothing. For NewVerifier.
func WithRevocations(o RevocationOptions) Option {
	return func(c *config) {
		c.takes("WithRevocations", forVerifier)
		c.feed = &o
	}
}

// WithTokenStore stores the session in s, such as a [FileStore]; the default is memory.
// For NewClient.
func WithTokenStore(s TokenStore) Option {
	return func(c *config) {
		c.takes("WithTokenStore", forClient)
		c.store = s
	}
}

// WithTokenOrigins adds origins, such as "https://api.example.com", to which
// [Client.Transport] sends the access token in addition to the project's own. Several
// calls add up. For NewClient.
func WithTokenOrigins(origins ...string) Option {
	return func(c *config) {
		c.takes("WithTokenOrigins", forClient)
		for _, o := range origins {
			u, err := url.Parse(o)
			if err != nil || u.Host == "" || u.User != nil || (u.Path != "" && u.Path != "/") {
				c.errs = append(c.errs, errors.New("WithTokenOrigins: an origin is a scheme and a host, https://api.example.com"))
				continue
			}
			if err := outbound.CheckURL(o); err != nil && !c.plain {
				c.errs = append(c.errs, fmt.Errorf("WithTokenOrigins: the origin %w", err))
				continue
			}
			c.origins = append(c.origins, originOf(u))
		}
	}
}

// WithDeviceID sets the X-Device-Id header, by which the server recognises the device.
// The id has 16 to 128 letters and digits; generate it once at random and store it. For
// NewClient.
func WithDeviceID(id string) Option {
	return func(c *config) {
		c.takes("WithDeviceID", forClient)
		c.device = id
	}
}

// WithIssuer sets the issuer of tokens. The default is the issuer in the server's
// discovery document when it is first read. For NewVerifier.
func WithIssuer(issuer string) Option {
	return func(c *config) {
		c.takes("WithIssuer", forVerifier)
		c.issuer = issuer
	}
}

// WithAudience sets the audience of tokens, for a server with an Audience in its
// auth.TokenOptions. The default is "authenticated". For NewVerifier.
func WithAudience(audience string) Option {
	return func(c *config) {
		c.takes("WithAudience", forVerifier)
		c.audience = audience
	}
}

// WithPlainTokenType accepts tokens whose "typ" is "JWT", for a server with that
// TokenType in its auth.TokenOptions. Other JWTs with the same keys are then accepted
// as access tokens, too. For NewVerifier.
func WithPlainTokenType() Option {
	return func(c *config) {
		c.takes("WithPlainTokenType", forVerifier)
		c.tokType = "JWT"
	}
}

// WithRemember sets how many verified tokens are cached, so that the next use needs no
// signature check. The default is 10,000; -1 disables the cache. For NewVerifier.
func WithRemember(n int) Option {
	return func(c *config) {
		c.takes("WithRemember", forVerifier)
		c.remember = n
	}
}

// WithLateStart lets NewVerifier succeed although the server's keys cannot be read yet, or
// its revocations, see [WithRevocations]. NewVerifier waits for the server until the deadline
// of its context, by default for five seconds. Until the keys can be read, the error for all
// tokens is 503 unavailable. For NewVerifier.
func WithLateStart() Option {
	return func(c *config) {
		c.takes("WithLateStart", forVerifier)
		c.late = true
	}
}

// newConfig reads the URL and the options of a constructor.
func newConfig(kind, rawURL string, opts []Option) (*config, error) {
	c := &config{kind: kind, log: slog.Default(), now: time.Now, retries: 2}
	for i, o := range opts {
		if o == nil {
			c.errs = append(c.errs, fmt.Errorf("option %d of %d is nil", i+1, len(opts)))
			continue
		}
		o(c)
	}
	base, err := readURL(rawURL, c.plain)
	if err != nil {
		c.errs = append(c.errs, err)
	}
	if c.feed != nil && c.secretKey == "" {
		c.errs = append(c.errs, errors.New("WithRevocations needs WithSecretKey, with the scope auth.revocations.read"))
	}
	if c.log == nil {
		c.errs = append(c.errs, errors.New("WithLogger: the logger is nil"))
	}
	c.base = base
	if c.http == nil {
		c.http = outbound.NewClient()
	}
	own := *c.http
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	own.Jar = nil // tokens are in headers, and users would share the jar
	c.http = &own
	if err := errors.Join(c.errs...); err != nil {
		return nil, fmt.Errorf("authclient.%s: %w", kind, err)
	}
	return c, nil
}

// readURL returns the base URL of a project. A bare origin gets the usual path.
func readURL(raw string, plain bool) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http"):
		return nil, errors.New("the URL has to be absolute, such as https://app.example.com/auth/v1")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the URL has to be without user, query and fragment")
	}
	if err := outbound.CheckURL(raw); err != nil && !plain {
		return nil, errors.New("the URL is not https: WithPlainHTTP allows it, for networks that are trusted")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	if u.Path == "" {
		u.Path = "/auth/v1"
	}
	u.RawPath = ""
	return u, nil
}

// originOf returns scheme, host and port (RFC 6454), always with the port.
func originOf(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
