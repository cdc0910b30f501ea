package token

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/authmount/auth/internal/keys"
	"github.com/authmount/auth/store"
)

// Signer signs access tokens. It is safe for concurrent use.
type Signer struct {
	key     keys.SigningKey
	method  jwt.SigningMethod // of key
	head    string            // the encoded header of access tokens
	options Options
	log     *slog.Logger

	oversizedOnce sync.Once
}

// NewSigner returns a signer with the ring's signing key.
func NewSigner(ring *keys.Ring, o Options, log *slog.Logger) (*Signer, error) {
	key := ring.Signing()
	head, err := json.Marshal(map[string]string{"alg": key.Algorithm, "kid": key.ID, "typ": o.typ()})
	if err != nil {
		return nil, err
	}
	return &Signer{
		key: key, method: jwt.GetSigningMethod(key.Algorithm),
		head: base64.RawURLEncoding.EncodeToString(head), options: o, log: log,
	}, nil
}

// Grant is the content of a new access token.
type Grant struct {
	ID            string // "jti"
	User          store.User
	Session       store.Session
	Impersonation *store.Impersonation // nil for the user's own session
	Permissions   []string             // granted by the user's roles
	Partial       bool                 // Permissions are not all that the roles grant
	RolesRevision int64                // revision of the table of roles when Permissions were read
	Custom        map[string]any       // custom claims
	IssuedAt      time.Time
	ExpiresAt     time.Time
}

// Sign returns an access token. If custom claims are too large for a token, it omits them
// and logs that once.
func (s *Signer) Sign(ctx context.Context, g Grant) (string, error) {
	u := g.User
	amr, authTime := s.options.amrClaim(g.Session)
	revisions := []int64{u.CredentialRevision, g.RolesRevision}
	var act *actClaim
	if by := g.Impersonation; by != nil {
		act = &actClaim{Subject: by.ActorID, SessionID: by.ActorSessionID}
		revisions = []int64{by.UserRevision, by.RolesRevision, by.ActorRevision}
	}
	claims, err := s.claimsJSON(ctx, accessClaims{
		Issuer: s.options.Issuer, Audience: s.options.audience(), Subject: u.ID, IssuedAt: g.IssuedAt.Unix(), Expires: g.ExpiresAt.Unix(), ID: g.ID,
		SessionID: g.Session.ID, Role: postgresRole, Roles: nonNil(u.Roles),
		Email: optional(u.Email), EmailVerified: u.EmailVerified(), Phone: optional(u.Phone),
		AAL: g.Session.AAL, AMR: amr, AuthTime: authTime, Revisions: revisions, Act: act, partial: g.Partial,
	}, g.Permissions, u.AppMetadata, g.Custom)
	if err != nil {
		return "", fmt.Errorf("encode access token: %w", err)
	}
	text, err := s.encode(claims)
	if err != nil {
		return "", fmt.Errorf("sign access token: %w", err)
	}
	return text, nil
}

// encode returns an access token with the claims, a JSON object. It does not use jwt.Token,
// because that encodes the header again for each token and needs a map of claims, which
// takes longer than an HS256 signature.
func (s *Signer) encode(claims []byte) (string, error) {
	text := s.head + "." + base64.RawURLEncoding.EncodeToString(claims)
	signature, err := s.method.Sign(text, s.key.Key)
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// accessClaims are the claims of an access token, without custom claims.
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
	Revisions     []int64         `json:"rev"`               // see Revisions
	Act           *actClaim       `json:"act,omitempty"`     // the impersonator (RFC 8693, section 4.1)
	Omitted       []string        `json:"omitted,omitempty"` // see size.go

	partial bool // the roles grant more than Permissions
}

type actClaim struct {
	Subject   string `json:"sub"`
	SessionID string `json:"session_id"`
}

// optional returns nil for an empty string.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// nonNil replaces a nil list, which JSON would encode as null, by an empty one.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
