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
	method  jwt.SigningMethod // of the key
	head    string            // of access tokens, encoded
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
	Impersonation *store.Impersonation // nil: it is the user
	Permissions   []string             // of the user's roles
	RolesRevision int64                // of the table that Permissions were read from
	Custom        map[string]any       // claims of the application's own
	IssuedAt      time.Time
	ExpiresAt     time.Time
}

// Sign returns an access token. It logs once that custom claims were left out of a
// token because they were too large.
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
		SessionID: g.Session.ID, Role: postgresRole, Roles: orEmpty(u.Roles),
		Email: optional(u.Email), EmailVerified: u.EmailVerified(), Phone: optional(u.Phone),
		AAL: g.Session.AAL, AMR: amr, AuthTime: authTime, Revisions: revisions, Act: act,
	}, g.Permissions, u.AppMetadata, g.Custom)
	if err != nil {
		return "", fmt.Errorf("encode access token: %w", err)
	}
	text, err := s.jwt(claims)
	if err != nil {
		return "", fmt.Errorf("sign access token: %w", err)
	}
	return text, nil
}

// jwt is an access token with these claims, an object in JSON. It is put together
// here because a token of the jwt package would encode its header anew, and a map
// of claims, which takes longer than to sign them with HS256.
func (s *Signer) jwt(claims []byte) (string, error) {
	text := s.head + "." + base64.RawURLEncoding.EncodeToString(claims)
	signature, err := s.method.Sign(text, s.key.Key)
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
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
	Revisions     []int64         `json:"rev"`               // what it rests on, see Revisions
	Act           *actClaim       `json:"act,omitempty"`     // who acts as the subject (RFC 8693, section 4.1)
	Omitted       []string        `json:"omitted,omitempty"` // what was left out; see size.go
}

type actClaim struct {
	Subject   string `json:"sub"`
	SessionID string `json:"session_id"`
}

// optional is nil for an empty text.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// orEmpty is an empty list for nil, which JSON would call null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
