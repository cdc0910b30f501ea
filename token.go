package auth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/authmount/auth/internal/keys"
	"github.com/authmount/auth/internal/token"
	"github.com/authmount/auth/store"
)

// Tokens is what a completed sign-in or refresh hands out. Where they travel in
// cookies the two tokens are null in the JSON form.
type Tokens struct {
	AccessToken  string
	RefreshToken string
	ExpiresAt    time.Time // of the access token
	ExpiresIn    int       // seconds
	SessionID    string
	User         User

	RecoveryCodesLeft *int // after a sign-in with a recovery code

	device   string // for the cookie of a new device
	remember *bool  // what was said of the cookies when the sign-in began; nil: nothing
}

const redacted = "[redacted]" // in the log, for what holds secrets

// WithSharedSecret signs access tokens by HS256 with a secret that others know, too,
// for verifiers that take no public key, such as PostgREST with a jwt-secret: at
// least 32 random bytes, and none of WithSecret's. Previous ones, behind it, are
// still accepted. The key itself signs; nothing is derived from it, and it is
// published nowhere. It and WithSigningKeys replace each other, the last one counts.
// The default is a key pair. A second call replaces the first.
//
// Whoever has this secret can make tokens in anybody's name, with any role, which
// Require lets in; with [CheckSession], and at the endpoints, only where they know
// the id of a live session of that user. So share it only with what you would let
// act as everybody, and prefer the public keys at /.well-known/jwks.json where the
// verifier can read them. Accepted are only tokens of this service's own form: with
// "kid", "typ", issuer and audience as here, a subject and a session. A verifier's
// own service tokens, for instance PostgREST's for anon, are none. Tokens that were
// signed before by another key are refused, and clients refresh.
func WithSharedSecret(key []byte, previous ...[]byte) Option {
	return func(c *config) {
		c.shared, c.signer, c.verifiers = nil, nil, nil
		for _, s := range append([][]byte{key}, previous...) {
			if len(s) < 32 {
				c.fail("WithSharedSecret", fmt.Errorf("a secret needs at least 32 bytes, this one has %d", len(s)))
			}
			c.shared = append(c.shared, bytes.Clone(s))
		}
	}
}

// checkTokens collects what does not go together about access tokens.
func (c *config) checkTokens() {
	if err := token.Options(c.tokens).Check(); err != nil {
		c.fail("WithTokens", err)
	}
	if c.shared == nil {
		return
	}
	if alg := c.tokens.Algorithm; alg != "" && alg != "HS256" {
		c.fail("WithSharedSecret", fmt.Errorf("it signs by HS256, and WithTokens asks for %s", alg))
	}
	for _, s := range c.shared {
		if slices.ContainsFunc(c.secrets, func(own []byte) bool { return bytes.Equal(own, s) }) {
			c.fail("WithSharedSecret", errors.New("it is one of WithSecret's: whoever knew it could make sessions, too"))
		}
	}
}

// newKeys makes the ring of keys.
func (c *config) newKeys() (*keys.Ring, error) {
	return keys.New(keys.Params{Secrets: c.secrets, Algorithm: c.tokens.Algorithm, Signer: c.signer, Verifiers: c.verifiers, Shared: c.shared})
}

// buildTokens makes the parts that sign and verify access tokens, and remember
// revocations.
func (a *Auth) buildTokens() error {
	c, err := &a.cfg, error(nil)
	if a.keys, err = c.newKeys(); err != nil {
		return err
	}
	o := token.Options(c.tokens)
	a.revoked = token.NewRevocations(o, a.now)
	a.verifier = token.NewVerifier(a.keys, o, a.revoked, c.now)
	a.signer, err = token.NewSigner(a.keys, o, c.log)
	return err
}

// accessToken signs the claims of a session.
func (a *Auth) accessToken(ctx context.Context, u User, s Session, custom map[string]any, now time.Time) (string, time.Time, error) {
	return a.signAccess(ctx, u, s, nil, custom, now, now.Truncate(time.Second).Add(token.Options(a.cfg.tokens).Lifetime()))
}

// signAccess is accessToken until a time, for the user, or for who acts as them.
func (a *Auth) signAccess(ctx context.Context, u User, s Session, by *store.Impersonation, custom map[string]any, now, expires time.Time) (string, time.Time, error) {
	permissions, revision, err := a.permissionsOf(ctx, u.Roles)
	if err != nil {
		return "", time.Time{}, err
	}
	signed, err := a.signer.Sign(ctx, token.Grant{
		ID: a.newID(), User: u, Session: s, Impersonation: by, Permissions: permissions, RolesRevision: revision, Custom: custom, IssuedAt: now, ExpiresAt: expires,
	})
	if err != nil {
		return "", time.Time{}, fail(CodeInternal, err)
	}
	return signed, expires, nil
}

// customClaims are those of the application's own: of the store, then of
// WithClaims.
func (a *Auth) customClaims(ctx context.Context, u User) (map[string]any, error) {
	if len(a.cfg.claims) == 0 {
		return u.Claims, nil
	}
	custom := maps.Clone(u.Claims)
	if custom == nil {
		custom = map[string]any{}
	}
	for _, f := range a.cfg.claims {
		more, err := f(ctx, u)
		if err != nil {
			return nil, retryAfter(CodeUnavailable, time.Second, fmt.Errorf("custom claims: %w", err))
		}
		maps.Copy(custom, more)
	}
	return custom, nil
}

// Verify checks an access token as RFC 8725 asks: the algorithm pinned to the
// key its kid names, issuer, audience, type and times with 30 s leeway. It reads
// no store, so a session that ended lately still passes, unless Revoke told of
// it; see CheckSession. Errors: CodeBadToken, CodeSessionEnded, CodeTokenStale.
//
// A token that passed is remembered until it expires. The claims are the caller's
// own copy.
func (a *Auth) Verify(token string) (*Claims, error) {
	c, err := a.verifyShared(token)
	if err != nil {
		return nil, err
	}
	return c.clone(), nil
}

// verifyShared is Verify without the copy: its claims are also others', and must
// not be changed or handed out.
func (a *Auth) verifyShared(text string) (*Claims, error) {
	c, err := a.verifier.Verify(text)
	if err != nil {
		return nil, tokenFailed(err)
	}
	return (*Claims)(c), nil
}

// verify is verifyShared for the endpoints, which ask the store about the session.
func (a *Auth) verify(text string) (*Claims, token.Revisions, error) {
	c, revisions, err := a.verifier.Check(text)
	return (*Claims)(c), revisions, tokenFailed(err)
}

// tokenFailed is the error for callers of a refused access token. It keeps errors that
// have a code.
func tokenFailed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, token.ErrMissing):
		return fail(CodeMissingToken, nil)
	case errors.Is(err, token.ErrOtherKey):
		return fail(CodeBadToken, errOtherKey)
	case errors.Is(err, token.ErrInvalid):
		return fail(CodeBadToken, err)
	case errors.Is(err, token.ErrSessionEnded):
		return fail(CodeSessionEnded, err)
	case errors.Is(err, token.ErrStale):
		return fail(CodeTokenStale, nil)
	}
	return err
}

// Revoke makes Verify and Require refuse the access tokens of what has ended,
// for as long as they would live, and those that are stale. A feed such as
// pgstore's WatchRevocations calls it in every instance; a repetition does no harm.
// It is safe for concurrent use.
func (a *Auth) Revoke(r store.Revocation) { a.revoked.Add(r) }

// handleDiscovery is GET /.well-known/openid-configuration: enough for verifiers
// that take an issuer to find the keys (OpenID Connect Discovery, section 3).
func (a *Auth) handleDiscovery(w http.ResponseWriter, _ *http.Request) error {
	doc, err := json.Marshal(map[string]any{
		"issuer":                                a.cfg.tokens.Issuer,
		"jwks_uri":                              a.publicURL().JoinPath("/.well-known/jwks.json").String(),
		"id_token_signing_alg_values_supported": []string{a.keys.Signing().Algorithm},
		"subject_types_supported":               []string{"public"},
		"response_types_supported":              []string{},
	})
	if err != nil {
		return fail(CodeInternal, err)
	}
	return writeDocument(w, doc)
}

// newLinkToken makes the secret of a link, 256 random bits, and what is stored
// of it.
func newLinkToken() (secret string, hash []byte) {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	secret = base64.RawURLEncoding.EncodeToString(b)
	return secret, hashLinkToken(secret)
}

// hashLinkToken needs no salt or stretching: the secret has 256 bits.
func hashLinkToken(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// LogValue keeps the tokens out of the log.
func (t Tokens) LogValue() slog.Value {
	return slog.GroupValue(slog.String("session_id", t.SessionID), slog.String("user_id", t.User.ID), slog.String("tokens", redacted))
}

// Claims are the contents of an access token.
type Claims struct {
	UserID        string // "sub"
	SessionID     string
	Role          string // the Postgres role
	Roles         []string
	Permissions   []string
	Email         string
	EmailVerified bool
	Phone         string
	AAL           string
	AMR           []AMR
	AppMetadata   map[string]any
	Omitted       []string // claims that would have made the token too large; their fields are empty and say nothing
	IssuedAt      time.Time
	ExpiresAt     time.Time
	TokenID       string         // "jti"
	Impersonator  *SessionRef    // "act": who acts as the user, by which session of theirs; nil: it is the user
	Custom        map[string]any // claims of the application's own
}

// HasRole tells whether the user has a role.
func (c *Claims) HasRole(role string) bool { return slices.Contains(c.Roles, role) }

// HasPermission tells whether the token has a permission, by its name or by one
// that covers it: "*", or "notes.*" for "notes.write". Claims from Verify may lack
// what the token left out (Omitted); [ClaimsFrom] has the permissions in any case.
func (c *Claims) HasPermission(p string) bool {
	return slices.ContainsFunc(c.Permissions, func(held string) bool { return grants(held, p) })
}

// Caller is who the token was issued to, in the session that it was issued in.
func (c *Claims) Caller() Caller { return Caller{UserID: c.UserID, SessionID: c.SessionID} }

// clone is a copy that shares nothing with the claims.
func (c *Claims) clone() *Claims { return (*Claims)((*token.Claims)(c).Clone()) }

// whole are claims with the permissions that their token left out, by its roles, for
// whoever judges by them. The claims themselves are others', too.
func (a *Auth) whole(ctx context.Context, c *Claims) (*Claims, error) {
	if c == nil || !slices.Contains(c.Omitted, token.ClaimPermissions) {
		return c, nil
	}
	permissions, _, err := a.permissionsOf(ctx, c.Roles)
	if err != nil {
		return nil, err
	}
	own := c.clone()
	own.Permissions = permissions
	own.Omitted = slices.DeleteFunc(own.Omitted, func(name string) bool { return name == token.ClaimPermissions })
	if len(own.Omitted) == 0 {
		own.Omitted = nil
	}
	return own, nil
}
