package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/authmount/auth/internal/tokencache"
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

// Limits of access tokens.
const (
	leeway         = 30 * time.Second
	accessLife     = 15 * time.Minute
	maxAccessLife  = 24 * time.Hour
	maxTokenLength = 16 << 10
	tokenType      = "at+jwt" // RFC 9068, so that no other JWT passes for one
	tokenAudience  = "authenticated"
	tokenRole      = "authenticated"
)

// defaultRemember is how many verified tokens are kept.
const defaultRemember = 10_000

// claimsCache remembers the claims of verified access tokens.
type claimsCache = tokencache.Cache[*Claims]

// newClaimsCache makes a cache for about n tokens; 0 is the default and a
// negative n none.
func newClaimsCache(n int) *claimsCache {
	if n == 0 {
		n = defaultRemember
	}
	return tokencache.New[*Claims](n)
}

// reserved tells a claim that cannot be set by custom claims: those there are,
// and those that there may come to be.
func reserved(name string) bool {
	switch name {
	case "iss", "sub", "aud", "exp", "nbf", "iat", "jti", "session_id", "role", "roles", "permissions", "email", "email_verified", "phone",
		"aal", "amr", "app_metadata", "user_metadata", "auth_time", "omitted", "act", "rev", "scope", "client_id", "org", "org_role", "is_anonymous":
		return true
	}
	return false
}

// accessToken signs the claims of a session.
func (a *Auth) accessToken(ctx context.Context, u User, s Session, custom map[string]any, now time.Time) (string, time.Time, error) {
	return a.signAccess(ctx, u, s, nil, custom, now, now.Truncate(time.Second).Add(a.cfg.tokens.life()))
}

// signAccess is accessToken until a time, for the user, or for who acts as them.
func (a *Auth) signAccess(ctx context.Context, u User, s Session, by *store.Impersonation, custom map[string]any, now, expires time.Time) (string, time.Time, error) {
	permissions, revision, err := a.permissionsOf(ctx, u.Roles)
	if err != nil {
		return "", time.Time{}, err
	}
	amr, authTime := a.cfg.tokens.amrClaim(s)
	revisions := []int64{u.CredentialRevision, revision}
	var act *actClaim
	if by != nil {
		act = &actClaim{Subject: by.ActorID, SessionID: by.ActorSessionID}
		revisions = []int64{by.UserRevision, by.RolesRevision, by.ActorRevision}
	}
	claims, err := a.claimsJSON(ctx, accessClaims{
		Issuer: a.cfg.tokens.Issuer, Audience: a.cfg.tokens.audience(), Subject: u.ID, IssuedAt: now.Unix(), Expires: expires.Unix(), ID: a.newID(),
		SessionID: s.ID, Role: tokenRole, Roles: orEmpty(u.Roles),
		Email: optional(u.Email), EmailVerified: u.EmailVerified(), Phone: optional(u.Phone),
		AAL: s.AAL, AMR: amr, AuthTime: authTime, Revisions: revisions, Act: act,
	}, permissions, u.AppMetadata, custom)
	if err != nil {
		return "", time.Time{}, fail(CodeInternal, fmt.Errorf("encode access token: %w", err))
	}
	signed, err := a.keys.jwt(claims)
	if err != nil {
		return "", time.Time{}, fail(CodeInternal, fmt.Errorf("sign access token: %w", err))
	}
	return signed, expires, nil
}

// accessClaims are what an access token says besides custom claims.
type accessClaims struct {
	Issuer        string          `json:"iss"`
	Audience      string          `json:"aud"`
	Subject       string          `json:"sub"`
	IssuedAt      int64           `json:"iat"`
	Expires       int64           `json:"exp"`
	ID            string          `json:"jti"`
	SessionID     string          `json:"session_id"`
	Role          string          `json:"role"`
	Roles         []string        `json:"roles"`
	Permissions   json.RawMessage `json:"permissions,omitempty"`
	Email         *string         `json:"email"`
	EmailVerified bool            `json:"email_verified"`
	Phone         *string         `json:"phone"`
	AAL           string          `json:"aal"`
	AMR           any             `json:"amr"`
	AuthTime      *int64          `json:"auth_time,omitempty"`
	AppMetadata   json.RawMessage `json:"app_metadata,omitempty"`
	Revisions     []int64         `json:"rev"`               // what it rests on, see tokenRevisions
	Act           *actClaim       `json:"act,omitempty"`     // who acts as the subject (RFC 8693, section 4.1)
	Omitted       []string        `json:"omitted,omitempty"` // what was left out; see token_size.go
}

type actClaim struct {
	Subject   string `json:"sub"`
	SessionID string `json:"session_id"`
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

func (o TokenOptions) life() time.Duration {
	if o.Life == 0 {
		return accessLife
	}
	return o.Life
}

func (o TokenOptions) audience() string {
	if o.Audience == "" {
		return tokenAudience
	}
	return o.Audience
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
func (a *Auth) verifyShared(token string) (*Claims, error) {
	c, err := a.verify(token)
	if err == nil {
		err = a.revoked.judge(c)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// verify is verifyShared for the endpoints, which ask the store about the session.
func (a *Auth) verify(token string) (*Claims, error) {
	now := a.cfg.now()
	if c, ok := a.remember.Get(token, now); ok {
		return c, nil
	}
	if len(token) > maxTokenLength {
		return nil, fail(CodeBadToken, errors.New("too long"))
	}
	var c Claims
	wire := wireClaims{claims: &c}
	if _, err := a.parser.ParseWithClaims(token, &wire, a.keys.find); err != nil {
		if iss, _ := wire.GetIssuer(); errors.Is(err, errUnknownKey) && iss == a.cfg.tokens.Issuer {
			err = errOtherKey
		}
		return nil, fail(CodeBadToken, err)
	}
	if c.UserID == "" || c.SessionID == "" {
		return nil, fail(CodeBadToken, errors.New("no subject or session"))
	}
	a.remember.Put(token, &c, c.ExpiresAt.Add(leeway), now)
	return &c, nil
}

func newParser(c *config) *jwt.Parser {
	return jwt.NewParser(
		jwt.WithValidMethods([]string{"ES256", "RS256", "EdDSA", "HS256"}),
		jwt.WithIssuer(c.tokens.Issuer),
		jwt.WithAudience(c.tokens.audience()),
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithLeeway(leeway),
		jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(c.now),
	)
}

var errUnknownKey = errors.New("unknown key")

// find picks the verification key. Headers that bring keys along (jku, x5u,
// jwk) play no part; one that must be understood (crit) is refused.
func (k *keyring) find(t *jwt.Token) (any, error) {
	typ, _ := t.Header["typ"].(string)
	if !k.options.accepts(typ) {
		return nil, errors.New("not an access token")
	}
	if _, ok := t.Header["crit"]; ok {
		return nil, errors.New("critical header")
	}
	id, _ := t.Header["kid"].(string)
	key, ok := k.Verifier(id, t.Method.Alg())
	if !ok {
		return nil, errUnknownKey
	}
	return key, nil
}

// wireClaims decodes a token's claims once, and shows the parser those that it
// checks.
type wireClaims struct {
	jwt.MapClaims
	claims *Claims
}

func (w *wireClaims) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &w.MapClaims); err != nil {
		return err
	}
	c := w.claims
	c.UserID, _ = w.MapClaims["sub"].(string)
	c.TokenID, _ = w.MapClaims["jti"].(string)
	c.SessionID, _ = w.MapClaims["session_id"].(string)
	c.Role, _ = w.MapClaims["role"].(string)
	c.Roles = stringsOf(w.MapClaims["roles"])
	c.Permissions = stringsOf(w.MapClaims["permissions"])
	c.Email, _ = w.MapClaims["email"].(string)
	c.EmailVerified, _ = w.MapClaims["email_verified"].(bool)
	c.Phone, _ = w.MapClaims["phone"].(string)
	c.AAL, _ = w.MapClaims["aal"].(string)
	c.AppMetadata, _ = w.MapClaims["app_metadata"].(map[string]any)
	if left := stringsOf(w.MapClaims["omitted"]); len(left) > 0 {
		c.Omitted = left
	}
	if act, ok := w.MapClaims["act"]; ok {
		by, _ := act.(map[string]any)
		c.Impersonator = &SessionRef{}
		c.Impersonator.UserID, _ = by["sub"].(string)
		c.Impersonator.ID, _ = by["session_id"].(string)
	}
	c.revisions = revisionsOf(w.MapClaims["rev"])
	authTime, _ := w.MapClaims["auth_time"].(float64)
	c.AMR = amrOf(w.MapClaims["amr"], authTime)
	if t, err := w.GetIssuedAt(); err == nil && t != nil {
		c.IssuedAt = t.UTC()
	}
	if t, err := w.GetExpirationTime(); err == nil && t != nil {
		c.ExpiresAt = t.UTC()
	}
	for name, v := range w.MapClaims {
		if !reserved(name) {
			if c.Custom == nil {
				c.Custom = map[string]any{}
			}
			c.Custom[name] = v
		}
	}
	return nil
}

// tokenRevisions are what a token's roles and permissions rest on: the user's
// CredentialRevision, and the revision of the table of roles, which is 0 for a user
// without roles. Whoever acts as the user has theirs behind it.
type tokenRevisions struct{ user, roles, actor int64 }

func revisionsOf(v any) (r tokenRevisions) {
	list, _ := v.([]any)
	for i, into := range []*int64{&r.user, &r.roles, &r.actor} {
		if i < len(list) {
			n, _ := list[i].(float64)
			*into = int64(n)
		}
	}
	return r
}

func stringsOf(v any) []string {
	list, _ := v.([]any)
	out := make([]string, 0, len(list))
	for _, e := range list {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}
	return out
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
