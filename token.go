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

// Tokens are the result of a completed sign-in or refresh. In cookie mode, the two
// tokens are null in the JSON form.
type Tokens struct {
	AccessToken  string
	RefreshToken string
	ExpiresAt    time.Time // of the access token
	ExpiresIn    int       // seconds
	SessionID    string
	User         User

	RecoveryCodesLeft *int // after a sign-in with a recovery code

	// RecoveryCodes are new recovery codes in place of those that an account recovery link
	// dropped, at the next sign-in or step-up with the authenticator app. They are shown
	// this once.
	RecoveryCodes []string

	device   string // for the cookie of a new device
	remember *bool  // whether the browser keeps the cookies, as set at the start of the sign-in; nil: not set
}

const redacted = "[redacted]" // replaces secrets in the log

// WithSharedSecret signs access tokens by HS256 with a secret that other services know,
// too. It is for verifiers that accept no public key, such as PostgREST with a
// jwt-secret. The secret has at least 32 random bytes and is none of WithSecret's.
// Tokens of the previous ones are still accepted. The key itself signs; nothing is
// derived from it, and it is not published. Of WithSharedSecret and WithSigningKeys,
// the last call counts; a second call replaces the first. The default is a key pair.
//
// Anyone with this secret can create tokens for any user with any role, and Require
// accepts them. With [CheckSession], and at the endpoints, such a token also needs the
// id of a live session of that user. Share the secret only with services that may act
// as any user, and prefer the public keys at /.well-known/jwks.json if the verifier can
// read them. Only tokens of this service's own form are accepted: with its "kid",
// "typ", issuer and audience, a subject and a session. A verifier's own service tokens,
// for instance PostgREST's for anon, are refused. Tokens that were signed by another
// key before are refused, and clients refresh.
func WithSharedSecret(key []byte, previous ...[]byte) Option {
	return func(c *config) {
		c.shared, c.signer, c.verifiers = nil, nil, nil
		for _, s := range append([][]byte{key}, previous...) {
			if err := keys.CheckSecret(s); err != nil {
				c.fail("WithSharedSecret", err)
			}
			c.shared = append(c.shared, bytes.Clone(s))
		}
	}
}

// checkTokens reports conflicts between the options for access tokens.
func (c *config) checkTokens() {
	if err := token.Options(c.tokens).Check(); err != nil {
		c.fail("WithTokens", err)
	}
	if c.shared == nil {
		return
	}
	if alg := c.tokens.Algorithm; alg != "" && alg != "HS256" {
		c.fail("WithSharedSecret", fmt.Errorf("it signs with HS256, but WithTokens is set to %s", alg))
	}
	for _, s := range c.shared {
		if slices.ContainsFunc(c.secrets, func(own []byte) bool { return bytes.Equal(own, s) }) {
			c.fail("WithSharedSecret", errors.New("it is also in WithSecret: a service that knows it could create sessions too"))
		}
	}
}

// newKeys creates the key ring.
func (c *config) newKeys() (*keys.Ring, error) {
	return keys.New(keys.Params{Secrets: c.secrets, Algorithm: c.tokens.Algorithm, Signer: c.signer, Verifiers: c.verifiers, Shared: c.shared})
}

// buildTokens creates the signer and the verifier of access tokens, and the list of
// revocations.
func (a *Auth) buildTokens() error {
	c, err := &a.cfg, error(nil)
	if a.keys, err = c.newKeys(); err != nil {
		return err
	}
	o := token.Options(c.tokens)
	a.revoked = token.NewRevocations(o, a.now)
	a.streams.log = a.revoked.KeepLog(o)
	a.clocks = token.NewClocks(c.log, "auth: access tokens are refused because the clocks of this instance and of the one that issued them differ")
	a.verifier = token.NewVerifier(a.keys, o, a.revoked, a.clocks, c.now)
	a.signer, err = token.NewSigner(a.keys, o, c.log)
	return err
}

// accessToken returns a signed access token for a session.
func (a *Auth) accessToken(ctx context.Context, u User, s Session, custom map[string]any, now time.Time) (string, time.Time, error) {
	return a.signAccess(ctx, u, s, nil, custom, now, now.Truncate(time.Second).Add(token.Options(a.cfg.tokens).Lifetime()))
}

// signAccess is accessToken with an expiry time, for the user or for an impersonator.
func (a *Auth) signAccess(ctx context.Context, u User, s Session, by *store.Impersonation, custom map[string]any, now, expires time.Time) (string, time.Time, error) {
	counts, err := a.standing(ctx, u)
	if err != nil {
		return "", time.Time{}, err
	}
	u.Roles = counts.roles
	signed, err := a.signer.Sign(ctx, token.Grant{
		ID: a.newID(), User: u, Session: s, Impersonation: by, Permissions: counts.permissions, Partial: counts.waits, RolesRevision: counts.revision, Custom: custom, IssuedAt: now, ExpiresAt: expires,
	})
	if err != nil {
		return "", time.Time{}, fail(CodeInternal, err)
	}
	return signed, expires, nil
}

// customClaims returns the custom claims: those of the store, overridden by those of
// WithClaims.
func (a *Auth) customClaims(ctx context.Context, u User) (map[string]any, error) {
	if len(a.cfg.claims) == 0 {
		return u.Claims, nil
	}
	u, err := a.asActor(ctx, u)
	if err != nil {
		return nil, err
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

// Verify checks an access token as RFC 8725 recommends: the algorithm of the key that
// its kid names, issuer, audience, type, and times with 30 s leeway. It does not read
// the store. A session that ended recently therefore still passes, unless Revoke has
// reported it; see CheckSession. Errors: CodeBadToken, CodeSessionEnded,
// CodeTokenStale.
//
// A valid token is cached until it expires. The claims are the caller's own copy.
func (a *Auth) Verify(token string) (*Claims, error) {
	c, err := a.verifyShared(token)
	if err != nil {
		return nil, err
	}
	return c.clone(), nil
}

// verifyShared is Verify without the copy. Its claims are shared and must not be
// changed or passed to the application.
func (a *Auth) verifyShared(text string) (*Claims, error) {
	c, err := a.verifier.Verify(text)
	if err != nil {
		return nil, tokenFailed(err)
	}
	return (*Claims)(c), nil
}

// verify is verifyShared for the endpoints, which read the session from the store.
func (a *Auth) verify(text string) (*Claims, token.Revisions, error) {
	c, revisions, err := a.verifier.Check(text)
	return (*Claims)(c), revisions, tokenFailed(err)
}

// tokenFailed returns the error for the caller of a refused access token. It keeps
// errors that have a code.
func tokenFailed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, token.ErrMissing):
		return fail(CodeMissingToken, nil)
	case errors.Is(err, token.ErrOtherKey):
		return fail(CodeBadToken, errOtherKey)
	case errors.Is(err, token.ErrSecretKey):
		e := fail(CodeBadToken, mistake{err})
		e.Message = "This takes access tokens of users, and no secret keys."
		return e
	case errors.Is(err, token.ErrInvalid):
		return fail(CodeBadToken, err)
	case errors.Is(err, token.ErrSessionEnded):
		return fail(CodeSessionEnded, err)
	case errors.Is(err, token.ErrStale):
		return fail(CodeTokenStale, nil)
	}
	return err
}

// Revoke makes Verify and Require refuse the access tokens of ended sessions, until
// they expire, and stale tokens. A feed such as the store's WatchRevocations calls it in
// every instance; a repetition does no harm. It is safe for concurrent use. The admin API
// passes the revocations on to services without the database, see Revocation.CaughtUp.
func (a *Auth) Revoke(r store.Revocation) { a.revoked.Add(r) }

// handleDiscovery is GET /.well-known/openid-configuration. The document lets verifiers
// that are configured with an issuer find the keys (OpenID Connect Discovery, section
// 3).
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

// newLinkToken returns the secret of a link, 256 random bits, and its hash for the
// store.
func newLinkToken() (secret string, hash []byte) {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	secret = base64.RawURLEncoding.EncodeToString(b)
	return secret, hashLinkToken(secret)
}

// hashLinkToken needs no salt or stretching: the secret has 256 bits.
func hashLinkToken(secret string) []byte { return recordHash("link", secret) }

// recordHash is the key of a token, or of a record that is stored as one. Only a client's link
// tokens are hashed as about a link, so that none can name a record.
func recordHash(about, of string) []byte {
	h := sha256.Sum256([]byte(about + "\x00" + of))
	return h[:]
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
	Omitted       []string // claims that were omitted because the token would be too large; their fields are empty
	IssuedAt      time.Time
	ExpiresAt     time.Time
	TokenID       string         // "jti"
	Impersonator  *SessionRef    // "act": the impersonator and the impersonator's session; nil: none
	Custom        map[string]any // the application's own claims
}

// HasRole reports whether the user has a role. Prefer HasPermission: the name of a role
// protects its bearers against operators only if it is privileged (WithPrivilegedRoles).
func (c *Claims) HasRole(role string) bool {
	rolesAskedFor.add(role)
	return slices.Contains(c.Roles, role)
}

// HasPermission reports whether the token has a permission, by its name or by one that
// covers it: "*", or "notes.*" for "notes.write". Claims from Verify may lack omitted
// permissions (Omitted); [ClaimsFrom] always returns all permissions.
func (c *Claims) HasPermission(p string) bool {
	return slices.ContainsFunc(c.Permissions, func(held string) bool { return grants(held, p) })
}

// Caller returns the user and the session of the token, or the user and the impersonation
// with its operator.
func (c *Claims) Caller() Caller {
	by := Caller{UserID: c.UserID, SessionID: c.SessionID}
	if c.Impersonator != nil {
		by.impersonator = *c.Impersonator
	}
	return by
}

// clone returns a copy that shares nothing with the claims.
func (c *Claims) clone() *Claims { return (*Claims)((*token.Claims)(c).Clone()) }

// completeClaims returns claims with the permissions that their token omitted, from its
// roles. It does not change c, which is shared.
func (a *Auth) completeClaims(ctx context.Context, c *Claims) (*Claims, error) {
	if c == nil || !slices.Contains(c.Omitted, token.ClaimPermissions) {
		return c, nil
	}
	known, err := a.rolePermissions(ctx)
	if err != nil {
		return nil, err
	}
	own := c.clone()
	own.Permissions = known.permissionsOf(c.Roles) // the signer omits the roles of an account that waits, too
	own.Omitted = slices.DeleteFunc(own.Omitted, func(name string) bool { return name == token.ClaimPermissions })
	if len(own.Omitted) == 0 {
		own.Omitted = nil
	}
	return own, nil
}
