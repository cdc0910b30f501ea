package token

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/authmount/auth/internal/apikey"
	"github.com/authmount/auth/internal/keys"
	"github.com/authmount/auth/internal/tokencache"
)

// Verifier verifies the access tokens of one issuer. It is safe for concurrent use.
type Verifier struct {
	ring    *keys.Ring
	options Options
	parser  *jwt.Parser
	cache   *tokencache.Cache[*verified]
	revoked *Revocations
	clocks  *Clocks
	now     func() time.Time
}

// verified is the content of a valid token.
type verified struct {
	claims    Claims
	revisions Revisions
}

// NewVerifier returns a verifier with the issuer's keys. Its cache of verified tokens
// starts empty, because a token that another verifier accepted may be signed with a key
// that was removed. revoked and clocks may be shared with other verifiers; clocks may be nil.
func NewVerifier(ring *keys.Ring, o Options, revoked *Revocations, clocks *Clocks, now func() time.Time) *Verifier {
	n := o.Remember
	if n == 0 {
		n = DefaultRemember
	}
	return &Verifier{
		ring: ring, options: o, revoked: revoked, clocks: clocks, now: now, cache: tokencache.New[*verified](n),
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{"ES256", "RS256", "EdDSA", "HS256"}),
			jwt.WithIssuer(o.Issuer),
			jwt.WithAudience(o.audience()),
			jwt.WithExpirationRequired(),
			jwt.WithIssuedAt(),
			jwt.WithLeeway(leeway),
			jwt.WithStrictDecoding(),
			jwt.WithTimeFunc(now),
		),
	}
}

// Verify checks a token as Check does, and rejects a revoked or stale token. The claims
// are shared: callers must not change them. Errors: those of Check, ErrSessionEnded and
// ErrStale.
func (v *Verifier) Verify(text string) (*Claims, error) {
	t, err := v.check(text)
	if err == nil {
		err = v.revoked.check(&t.claims, t.revisions)
	}
	if err != nil {
		return nil, err
	}
	return &t.claims, nil
}

// Check checks a token's form, signature, issuer, audience, type and times, but not
// whether it was revoked. The claims are shared: callers must not change them. Errors:
// ErrInvalid and ErrOtherKey.
func (v *Verifier) Check(text string) (*Claims, Revisions, error) {
	t, err := v.check(text)
	if err != nil {
		return nil, Revisions{}, err
	}
	return &t.claims, t.revisions, nil
}

func (v *Verifier) check(text string) (*verified, error) {
	now := v.now()
	if t, ok := v.cache.Get(text, now); ok {
		return t, nil
	}
	switch {
	case strings.HasPrefix(text, apikey.SecretPrefix):
		return nil, ErrSecretKey
	case len(text) > MaxLength:
		return nil, &refusal{ErrInvalid, errors.New("too long")}
	}
	t := &verified{}
	wire := wireClaims{verified: t}
	if _, err := v.parser.ParseWithClaims(text, &wire, v.verificationKey); err != nil {
		if iss, _ := wire.GetIssuer(); errors.Is(err, errUnknownKey) && iss == v.options.Issuer {
			return nil, ErrOtherKey
		}
		if errors.Is(err, jwt.ErrTokenInvalidClaims) { // the signature is valid
			var notBefore time.Time
			if nbf, err := wire.GetNotBefore(); err == nil && nbf != nil {
				notBefore = nbf.UTC()
			}
			v.clocks.refused(t, notBefore, now, err)
		}
		return nil, &refusal{ErrInvalid, err}
	}
	c := &t.claims
	if c.UserID == "" || c.SessionID == "" {
		return nil, &refusal{ErrInvalid, errors.New("no subject or session")}
	}
	v.cache.Put(text, t, c.ExpiresAt.Add(leeway), now)
	return t, nil
}

var errUnknownKey = errors.New("unknown key")

// verificationKey returns the verification key. It ignores headers that contain keys (jku, x5u, jwk)
// and rejects critical headers (crit).
func (v *Verifier) verificationKey(t *jwt.Token) (any, error) {
	typ, _ := t.Header["typ"].(string)
	if !v.options.accepts(typ) {
		return nil, errors.New("not an access token")
	}
	if _, ok := t.Header["crit"]; ok {
		return nil, errors.New("critical header")
	}
	id, _ := t.Header["kid"].(string)
	key, ok := v.ring.Verifier(id, t.Method.Alg())
	if !ok {
		return nil, errUnknownKey
	}
	return key, nil
}

// Bearer returns the access token in a request's Authorization header (RFC 6750, section
// 2.1). given is true if the header has a bearer token, valid or not. Some client
// libraries send the public API key there before sign-in: it is not a token. Two headers
// are no token, because a proxy and this service could each read another one. Errors:
// ErrMissing and ErrInvalid; ErrSeveral, which is an ErrInvalid.
func Bearer(r *http.Request) (text string, given bool, err error) {
	if len(r.Header["Authorization"]) > 1 {
		return "", true, ErrSeveral
	}
	header := r.Header.Get("Authorization")
	scheme, text, _ := strings.Cut(header, " ")
	switch text = strings.TrimSpace(text); {
	case !strings.EqualFold(scheme, "Bearer"):
		if header != "" {
			return "", false, errNoBearer
		}
		return "", false, ErrMissing
	case isPublicKey(text):
		return "", false, ErrMissing
	case text == "":
		return "", true, errEmptyBearer
	}
	return text, true, nil
}

// SecretKey returns the secret API key of a request's only Authorization header, if the
// header has one. Cookies and other headers are not read.
func SecretKey(r *http.Request) (string, bool) {
	text, given, err := Bearer(r)
	return text, given && err == nil && strings.HasPrefix(text, apikey.SecretPrefix)
}

func isPublicKey(text string) bool {
	parts, ok := apikey.Parse(text)
	return ok && parts.Public
}

// Errors of verification.
var (
	ErrMissing      = errors.New("no access token")
	ErrInvalid      = errors.New("invalid access token")
	ErrOtherKey     = errors.New("access token of this issuer signed with an unknown key") // the key may be new
	ErrSessionEnded = errors.New("the session has expired or was revoked")
	ErrStale        = errors.New("stale access token")
)

// ErrSeveral is the error of a request with several Authorization headers.
var ErrSeveral error = &refusal{ErrInvalid, errors.New("several Authorization headers")}

// ErrSecretKey is the error of a secret key where only access tokens are accepted.
var ErrSecretKey error = &refusal{ErrInvalid, errors.New("a secret key, where auth.AllowKeys is missing")}

var (
	errNoBearer      = &refusal{ErrInvalid, errors.New("the Authorization header has no bearer token")}
	errEmptyBearer   = &refusal{ErrInvalid, errors.New("empty bearer token")}
	errRevoked       = &refusal{ErrSessionEnded, errors.New("revoked")}
	errImpersonation = &refusal{ErrSessionEnded, errors.New("roles or permissions changed during the impersonation")}
)

// refusal is an error of one of the kinds above, with the text of its cause.
type refusal struct{ kind, cause error }

func (r *refusal) Error() string { return r.cause.Error() }

// Is matches the kind.
func (r *refusal) Is(target error) bool { return target == r.kind }

// Unwrap returns the cause.
func (r *refusal) Unwrap() error { return r.cause }

// Root holds functions of package auth that package authclient uses and applications
// cannot see. Package auth sets it in an init function.
var Root struct {
	// Error converts an error of this package to an *auth.Error. It returns other errors
	// unchanged.
	Error func(error) error

	// SecretInBrowser returns the error for a secret key that a browser sent.
	SecretInBrowser func() error

	// WriteError writes the response for err as auth.Auth.WriteError does.
	WriteError func(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error)
}
