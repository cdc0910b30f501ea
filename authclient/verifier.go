package authclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/keys"
	"github.com/authmount/auth/internal/token"
	"github.com/authmount/auth/store"
)

const (
	keysRefresh = 10 * time.Minute // the server's cache time for its key set
	keysStale   = time.Hour        // after this time without a request, the next one waits for new keys
	keysWait    = 2 * time.Second  // the longest such wait

	// Anyone can invent key ids. So the number of lookups for unknown ids is limited:
	// this many in a row, and one per interval in the long run. A flood of invented ids
	// delays new keys by one interval, so it is short.
	unknownKeys     = 5
	unknownInterval = 5 * time.Second

	keysPause = 5 * time.Second // between attempts while the server does not answer

	startTime = 5 * time.Second // the time limit of NewVerifier without a deadline
)

var errNoAnswerYet = errors.New("the server has not answered in the time for the start")

// Verifier verifies the access tokens of an Authmount server in another process, with
// the same claims, requirements and errors as package auth. It is safe for concurrent
// use, and needs no closing without WithRevocations.
//
// Verifier caches the keys of the server's key set. It reads them again in the
// background every ten minutes, and when a token has an unknown key id, at most every
// five seconds in the long run. While the server does not answer, the last keys remain valid.
// Requests wait for the network only if their key id is unknown, after an hour without
// requests, and while there are no keys.
//
// As with [auth.Auth.Verify], the token of an ended session is valid until it expires.
// To prevent that, set [WithRevocations], require [auth.CheckSession], which calls the
// server each time, or call Revoke.
type Verifier struct {
	wire     *wire
	revoked  *token.Revocations
	keyCache keyCache
	feed     *feed // nil without WithRevocations

	sessionQuestions, keyQuestions questions

	core    atomic.Pointer[token.Verifier] // nil while there are no keys
	readAt  atomic.Int64                   // when the keys were read; Unix nanoseconds
	againAt atomic.Int64                   // after a failure: no read before this time

	mu      sync.Mutex
	issuer  string
	jwks    string
	flight  *flight
	unknown time.Time // when the limit of lookups for unknown keys is fully refunded
}

// flight is one operation for all its waiting callers.
type flight struct {
	done chan struct{}
	err  error

	waiting int    // for a refresh
	cancel  func() // for a refresh
}

// NewVerifier returns a verifier for the server at a URL, and reads its keys. If the
// URL is a bare origin, /auth/v1 is added. ctx limits only NewVerifier itself; if it has no
// deadline, NewVerifier takes at most five seconds. It returns an error if the keys cannot be
// read in this time, see [WithLateStart], or if the server does not accept the key of
// [WithAPIKey]; a server that signs with a shared secret (HS256) publishes no keys.
func NewVerifier(ctx context.Context, url string, opts ...Option) (*Verifier, error) {
	c, err := newConfig(forVerifier, url, opts)
	if err != nil {
		return nil, err
	}
	c.retries = 0
	c.clocks = token.NewClocks(c.log, "authclient: access tokens are refused because the clocks of this machine and of the server differ")
	v := &Verifier{wire: newWire(c), keyCache: newKeyCache(), issuer: c.issuer}
	v.revoked = token.NewRevocations(token.Options{Life: token.MaxLife}, v.Now) // the longest possible, because the server's is not known
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, startTime)
		defer cancel()
	}
	switch err := v.wait(ctx, v.read()); {
	case err != nil && !c.late:
		return nil, fmt.Errorf("authclient.NewVerifier: the keys at %s: %w", c.base, err)
	case err != nil && ctx.Err() != nil: // read logs other failures
		v.logOutage(ctx, errNoAnswerYet)
	}
	if err := v.checkAPIKey(ctx); err != nil {
		return nil, err
	}
	if c.feed != nil {
		if err := v.follow(ctx); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// checkAPIKey finds out at the start whether LiveSession could call the server: the keys are
// public, other endpoints may require an API key. It ignores outages.
func (v *Verifier) checkAPIKey(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	switch err := v.wire.do(ctx, call{method: http.MethodGet, path: "/settings"}, nil); {
	case !errors.Is(err, auth.CodeInvalidAPIKey):
	case v.wire.apiKey != "":
		return fmt.Errorf("authclient.NewVerifier: WithAPIKey: the server does not accept this key: %w", err)
	default:
		v.wire.log.WarnContext(ctx, "authclient: the server requires an API key: until WithAPIKey sets it, routes with auth.CheckSession answer 503")
	}
	return nil
}

// Verify checks an access token as [auth.Auth.Verify] does: signature, issuer,
// audience, type and times. ctx limits the wait for an unknown key. The caller may
// change the claims. Errors (*auth.Error): CodeBadToken; CodeSessionEnded and
// CodeTokenStale after Revoke or by the feed; CodeUnavailable while there are no keys;
// CodeRevocationsUnavailable with FailClosed.
func (v *Verifier) Verify(ctx context.Context, accessToken string) (*auth.Claims, error) {
	k, err := v.keys(ctx)
	var c *token.Claims
	if err == nil {
		c, err = v.verify(ctx, k, accessToken)
	}
	if l, logged := err.(loggedError); logged { //nolint:errorlint // the verifier's own
		err = l.error
	}
	if err != nil {
		return nil, err
	}
	return (*auth.Claims)(c.Clone()), nil
}

// Require passes only requests with a valid access token to next, which reads the
// claims with [ClaimsFrom]. It answers other requests as [auth.Auth.Require] does. The
// requirement auth.CheckSession calls the server. A token that omits its permissions
// because they are too many does not meet auth.HasPermission here, because only the
// server knows the roles.
//
// With [auth.AllowKeys] and [WithSecretKey], the server checks the secret keys of requests.
// Its answers are used for ten seconds, so that a revoked key works for at most so long.
// Keys that are bound to networks are refused here.
func (v *Verifier) Require(next http.Handler, reqs ...auth.Requirement) http.Handler {
	return v.RequireAll(reqs...)(next)
}

// RequireAll is Require in the form that routers take as middleware:
//
//	r.Use(v.RequireAll(auth.HasPermission("notes.read")))
func (v *Verifier) RequireAll(reqs ...auth.Requirement) func(http.Handler) http.Handler {
	keys := v.takesKeys(reqs)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			passed, err := v.admit(r, reqs, keys)
			if err != nil {
				log := v.wire.log
				if l, logged := err.(loggedError); logged { //nolint:errorlint // those of the application wrap none
					err, log = l.error, slog.New(slog.DiscardHandler)
				}
				token.Root.WriteError(w, r, log, err)
				return
			}
			next.ServeHTTP(w, passed)
		})
	}
}

// ClaimsFrom returns the claims of a request that Require passed on, or nil. The caller
// may change them. It is the same as [auth.ClaimsFrom].
func ClaimsFrom(ctx context.Context) *auth.Claims { return auth.ClaimsFrom(ctx) }

// Revoke makes the verifier refuse the access tokens of a revocation, as
// [auth.Auth.Revoke] does. It is for services that receive revocations, for instance
// from a store's WatchRevocations.
func (v *Verifier) Revoke(r store.Revocation) { v.revoked.Add(r) }

// Now returns the time of the verifier's clock, for requirements.
func (v *Verifier) Now() time.Time { return v.wire.now() }

// LiveSession calls the server to check that the session of a request's access token is
// live, see [auth.CheckSession]. It waits for 3 seconds, or for the Timeout of the client of
// WithHTTPClient, and then answers 503.
func (v *Verifier) LiveSession(r *http.Request, _ *auth.Claims) error {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	ctx, cancel := v.checking(r.Context())
	defer cancel()
	err := v.wire.do(ctx, call{method: http.MethodGet, path: "/me", bearer: strings.TrimSpace(token)}, nil)
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e) && (e.Status == http.StatusUnauthorized && e.Code != auth.CodeInvalidAPIKey || e.Code == auth.CodeUserBanned || e.Code == auth.CodeImpersonationForbidden):
		return auth.Reject(e.Code, e.Message)
	}
	v.sessionQuestions.warn(v.wire.log, v.wire.now(), "authclient: the server cannot be asked whether a session is live", err)
	return unavailable()
}

// checking limits the time of a call for which a request waits.
func (v *Verifier) checking(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := v.wire.http.Timeout
	if limit <= 0 {
		limit = checkTime
	}
	return context.WithTimeout(ctx, limit)
}

// admit verifies the access token of a request and checks requirements, and returns the
// request as next receives it. keys reports whether the route takes secret keys.
func (v *Verifier) admit(r *http.Request, reqs []auth.Requirement, keys bool) (*http.Request, error) {
	if text, sent := token.SecretKey(r); keys && sent {
		return v.admitKey(r, text, reqs)
	}
	k, err := v.keys(r.Context())
	if err != nil {
		return nil, err
	}
	text, _, err := token.Bearer(r)
	if err != nil {
		return nil, token.Root.Error(err)
	}
	c, err := v.verify(r.Context(), k, text)
	if err != nil {
		return nil, err
	}
	if err := v.meets(r, c, reqs); err != nil {
		return nil, err
	}
	return r.WithContext(token.NewContext(r.Context(), c)), nil
}

// meets checks requirements. They receive a copy of the claims, because they may be
// application code.
func (v *Verifier) meets(r *http.Request, c *token.Claims, reqs []auth.Requirement) error {
	if len(reqs) == 0 {
		return nil
	}
	own := (*auth.Claims)(c.Clone())
	for _, req := range reqs {
		if err := req.Check(v, r, own); err != nil {
			return err
		}
	}
	return nil
}

// verify checks a token with the keys k. If the token has another key id and newer keys
// can be read, it checks the token again with those.
func (v *Verifier) verify(ctx context.Context, k *token.Verifier, text string) (*token.Claims, error) {
	c, err := k.Verify(text)
	if errors.Is(err, token.ErrOtherKey) && v.mayLookUp() && v.wait(ctx, v.read()) == nil {
		if newer := v.core.Load(); newer != k {
			c, err = newer.Verify(text)
		}
	}
	if err == nil {
		if err := v.revocationsKnown(); err != nil {
			return nil, err
		}
	}
	return c, token.Root.Error(err)
}

// keys returns the current keys, and has them read again in time. Errors:
// CodeUnavailable while there are none.
func (v *Verifier) keys(ctx context.Context) (*token.Verifier, error) {
	k, now := v.core.Load(), v.wire.now().UnixNano()
	age := time.Duration(now - v.readAt.Load())
	if again := v.againAt.Load(); k != nil && age >= 0 && age < keysRefresh || now < again && again-now <= int64(keysPause) { // the clock may have been set back
		return orUnavailable(k)
	}
	f := v.read()
	if k != nil && age < keysStale {
		return k, nil
	}
	limited, cancel := context.WithTimeout(ctx, keysWait)
	defer cancel()
	if v.wait(limited, f) != nil && k != nil && ctx.Err() == nil { // use the last keys, without a wait for each request
		v.againAt.Store(v.wire.now().Add(keysPause).UnixNano())
	}
	return orUnavailable(v.core.Load())
}

func orUnavailable(k *token.Verifier) (*token.Verifier, error) {
	if k == nil {
		return nil, unavailable()
	}
	return k, nil
}

// read starts reading the keys, once for all callers, and without the caller's context,
// because the caller may leave while others wait.
func (v *Verifier) read() *flight {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.flight != nil {
		return v.flight
	}
	f := &flight{done: make(chan struct{})}
	v.flight = f
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), callTime)
		defer cancel()
		f.err = v.fetch(ctx)
		if f.err != nil {
			v.againAt.Store(v.wire.now().Add(keysPause).UnixNano())
			v.logOutage(ctx, f.err)
		}
		v.mu.Lock()
		v.flight = nil
		v.mu.Unlock()
		close(f.done)
	}()
	return f
}

// logOutage logs that the keys cannot be read. NewVerifier returns the error instead.
func (v *Verifier) logOutage(ctx context.Context, err error) {
	switch {
	case v.core.Load() != nil:
		v.wire.log.WarnContext(ctx, "authclient: the keys cannot be read; the last valid ones remain in use", "error", err)
	case v.wire.late:
		v.wire.log.WarnContext(ctx, "authclient: the keys cannot be read; until then, requests are answered with 503", "error", err)
	}
}

func (v *Verifier) wait(ctx context.Context, f *flight) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.done:
		return f.err
	}
}

// fetch reads the keys, and the issuer if it is not known. It reads both below the
// configured URL and ignores the URLs in the discovery document, so that it calls no
// other server.
func (v *Verifier) fetch(ctx context.Context) error {
	v.mu.Lock()
	issuer := v.issuer
	v.mu.Unlock()
	if issuer == "" {
		var doc struct {
			Issuer string `json:"issuer"`
		}
		if err := v.wire.do(ctx, call{method: http.MethodGet, path: "/.well-known/openid-configuration"}, &doc); err != nil {
			return err
		}
		if issuer = doc.Issuer; issuer == "" {
			return &Error{Code: CodeBadResponse, Message: "The discovery document names no issuer."}
		}
	}
	var set rawDocument
	if err := v.wire.do(ctx, call{method: http.MethodGet, path: "/.well-known/jwks.json"}, &set); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.core.Load() == nil || v.jwks != string(set) {
		ring, err := keys.Parse(set)
		if err != nil {
			return &Error{Code: CodeBadResponse, Message: "The server publishes no keys.", cause: err}
		}
		c := v.wire.config
		o := token.Options{Issuer: issuer, Audience: c.audience, TokenType: c.tokType, Remember: c.remember}
		v.core.Store(token.NewVerifier(ring, o, v.revoked, c.clocks, c.now))
	}
	v.issuer, v.jwks = issuer, string(set)
	v.readAt.Store(v.wire.now().UnixNano())
	v.againAt.Store(0)
	return nil
}

// mayLookUp counts a lookup for an unknown key against the limit, and reports whether
// it is allowed.
func (v *Verifier) mayLookUp() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.wire.now()
	full := v.unknown
	if full.Before(now) {
		full = now
	}
	full = full.Add(unknownInterval)
	if full.Sub(now) > unknownKeys*unknownInterval {
		return false
	}
	v.unknown = full
	return true
}

// rawDocument is an unparsed JSON document.
type rawDocument []byte

// UnmarshalJSON stores a copy of the document.
func (d *rawDocument) UnmarshalJSON(b []byte) error {
	*d = append((*d)[:0], b...)
	return nil
}
