package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// Tokens is what a completed sign-in or refresh hands out. In cookie mode the
// two tokens travel as cookies and are null in the JSON form.
type Tokens struct {
	AccessToken  string
	RefreshToken string
	ExpiresAt    time.Time // of the access token
	ExpiresIn    int       // seconds
	SessionID    string
	User         User

	RecoveryCodesLeft *int // after a sign-in with a recovery code
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
	IssuedAt      time.Time
	ExpiresAt     time.Time
	TokenID       string         // "jti"
	Custom        map[string]any // claims of the application's own
}

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

// reserved names cannot be set by custom claims.
var reserved = map[string]bool{
	"iss": true, "sub": true, "aud": true, "exp": true, "nbf": true, "iat": true, "jti": true,
	"session_id": true, "role": true, "roles": true, "permissions": true, "email": true, "email_verified": true,
	"phone": true, "aal": true, "amr": true, "app_metadata": true, "user_metadata": true, "act": true,
}

// accessToken signs the claims of a session.
func (a *Auth) accessToken(ctx context.Context, u User, s Session, now time.Time) (string, time.Time, error) {
	life := a.cfg.tokens.life()
	expires := now.Truncate(time.Second).Add(life)
	custom := u.Claims
	if a.cfg.claims != nil {
		more, err := a.cfg.claims(ctx, u)
		if err != nil {
			return "", time.Time{}, retryAfter(CodeUnavailable, time.Second, fmt.Errorf("custom claims: %w", err))
		}
		custom = map[string]any{}
		maps.Copy(custom, u.Claims)
		maps.Copy(custom, more)
	}
	claims := jwt.MapClaims{
		"iss": a.cfg.tokens.Issuer, "aud": a.cfg.tokens.audience(), "sub": u.ID, "iat": now.Unix(), "exp": expires.Unix(), "jti": a.newID(),
		"session_id": s.ID, "role": tokenRole, "roles": orEmpty(u.Roles), "permissions": []string{},
		"email": nullable(u.Email), "email_verified": u.EmailVerified, "phone": nullable(u.Phone),
		"aal": s.AAL, "amr": orEmpty(s.AMR), "app_metadata": orEmptyMap(u.AppMetadata),
	}
	for name, v := range custom {
		if !reserved[name] {
			claims[name] = v
		}
	}
	encoded, err := json.Marshal(claims)
	if err != nil {
		return "", time.Time{}, fail(CodeInternal, fmt.Errorf("encode access token: %w", err))
	}
	signed, err := a.keys.signing.jwt(encoded)
	if err != nil {
		return "", time.Time{}, fail(CodeInternal, fmt.Errorf("sign access token: %w", err))
	}
	return signed, expires, nil
}

// object is a JSON object of strings in the making: the header of tokens.
type object map[string]string

func (o object) text(name, value string) { o[name] = value }

func (o object) end() ([]byte, error) { return json.Marshal(o) }

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
// it; see CheckSession. Errors: CodeBadToken, CodeSessionEnded.
//
// A token that passed is remembered until it expires. The claims are shared:
// callers must not change them.
func (a *Auth) Verify(token string) (*Claims, error) {
	c, err := a.verify(token)
	if err == nil && a.revoked.ended(c) {
		return nil, fail(CodeSessionEnded, errors.New("revoked"))
	}
	return c, err
}

// verify is Verify for the endpoints, which ask the store about the session.
func (a *Auth) verify(token string) (*Claims, error) {
	now := a.cfg.now()
	if c := a.remember.get(token, now); c != nil {
		return c, nil
	}
	if len(token) > maxTokenLength {
		return nil, fail(CodeBadToken, errors.New("too long"))
	}
	var c Claims
	wire := wireClaims{claims: &c}
	if _, err := a.parser.ParseWithClaims(token, &wire, a.keys.find); err != nil {
		return nil, fail(CodeBadToken, err)
	}
	if c.UserID == "" || c.SessionID == "" {
		return nil, fail(CodeBadToken, errors.New("no subject or session"))
	}
	a.remember.put(token, &c, now)
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

// find picks the verification key. Headers that bring keys along (jku, x5u,
// jwk) play no part; one that must be understood (crit) is refused.
func (k *keyring) find(t *jwt.Token) (any, error) {
	typ, _ := t.Header["typ"].(string)
	if strings.TrimPrefix(strings.ToLower(typ), "application/") != tokenType {
		return nil, errors.New("not an access token")
	}
	if _, ok := t.Header["crit"]; ok {
		return nil, errors.New("critical header")
	}
	id, _ := t.Header["kid"].(string)
	key := k.byID[id]
	if key == nil || key.method.Alg() != t.Method.Alg() {
		return nil, errors.New("unknown key")
	}
	return key.verify, nil
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
	amr, _ := w.MapClaims["amr"].([]any)
	for _, v := range amr {
		entry, _ := v.(map[string]any)
		method, _ := entry["method"].(string)
		at, _ := entry["timestamp"].(float64)
		c.AMR = append(c.AMR, AMR{Method: method, Timestamp: int64(at)})
	}
	if t, err := w.GetIssuedAt(); err == nil && t != nil {
		c.IssuedAt = t.UTC()
	}
	if t, err := w.GetExpirationTime(); err == nil && t != nil {
		c.ExpiresAt = t.UTC()
	}
	for name, v := range w.MapClaims {
		if !reserved[name] {
			if c.Custom == nil {
				c.Custom = map[string]any{}
			}
			c.Custom[name] = v
		}
	}
	return nil
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

// HasRole tells whether the user has a role.
func (c *Claims) HasRole(role string) bool { return slices.Contains(c.Roles, role) }

// HasPermission tells whether the user has a permission.
func (c *Claims) HasPermission(p string) bool { return slices.Contains(c.Permissions, p) }

// Refresh tokens: "v1." and, in base64url, the session's id, its counter and a
// MAC over both. The store keeps only the counter, so a leaked database holds
// nothing that could be used, and a forged token never reaches the store.
const (
	refreshVersion = "v1."
	refreshBody    = 16 + 4
	refreshSize    = refreshBody + sha256.Size
)

func (k *keyring) refreshToken(sessionID string, counter uint32) string {
	id := uuid.MustParse(sessionID)
	b := make([]byte, refreshBody, refreshSize)
	copy(b, id[:])
	binary.BigEndian.PutUint32(b[16:], counter)
	return refreshVersion + base64.RawURLEncoding.EncodeToString(append(b, refreshMAC(k.refresh[0], b)...))
}

// parseRefreshToken checks a token's MAC and reads it.
func (k *keyring) parseRefreshToken(token string) (sessionID string, counter uint32, ok bool) {
	rest, ok := strings.CutPrefix(token, refreshVersion)
	if !ok || len(rest) != base64.RawURLEncoding.EncodedLen(refreshSize) {
		return "", 0, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	if err != nil {
		return "", 0, false
	}
	body, mac := b[:refreshBody], b[refreshBody:]
	for _, key := range k.refresh {
		if hmac.Equal(mac, refreshMAC(key, body)) {
			return uuid.UUID(body[:16]).String(), binary.BigEndian.Uint32(body[16:]), true
		}
	}
	return "", 0, false
}

func refreshMAC(key, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(refreshVersion))
	h.Write(body)
	return h.Sum(nil)
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
