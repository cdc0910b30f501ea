// Package token signs and verifies access tokens, and stores revocations.
package token

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/authmount/auth/internal/jsonvalue"
	"github.com/authmount/auth/store"
)

// Claims has the fields of auth.Claims: each type converts to the other.
type Claims struct {
	UserID        string
	SessionID     string
	Role          string
	Roles         []string
	Permissions   []string
	Email         string
	EmailVerified bool
	Phone         string
	AAL           string
	AMR           []store.AMR
	AppMetadata   map[string]any
	Omitted       []string
	IssuedAt      time.Time
	ExpiresAt     time.Time
	TokenID       string
	Impersonator  *store.SessionRef
	Custom        map[string]any
}

// Clone returns a deep copy.
func (c *Claims) Clone() *Claims {
	out := *c
	out.Roles, out.Permissions, out.AMR = slices.Clone(c.Roles), slices.Clone(c.Permissions), slices.Clone(c.AMR)
	out.Omitted = slices.Clone(c.Omitted)
	out.AppMetadata, out.Custom = jsonvalue.CloneObject(c.AppMetadata), jsonvalue.CloneObject(c.Custom)
	if c.Impersonator != nil {
		by := *c.Impersonator
		out.Impersonator = &by
	}
	return &out
}

type claimsKey struct{}

// NewContext returns a context with the claims of an admitted request.
func NewContext(ctx context.Context, c *Claims) context.Context {
	return context.WithValue(ctx, claimsKey{}, c)
}

// FromContext returns the claims that NewContext added, or nil. The claims are shared:
// callers must not change them.
func FromContext(ctx context.Context) *Claims {
	c, _ := ctx.Value(claimsKey{}).(*Claims)
	return c
}

// reserved reports whether a claim cannot be set as a custom claim, because the module
// uses it or may use it later.
func reserved(name string) bool {
	switch name {
	case "iss", "sub", "aud", "exp", "nbf", "iat", "jti", "session_id", "role", "roles", "permissions", "email", "email_verified", "phone",
		"aal", "amr", "app_metadata", "user_metadata", "auth_time", "omitted", "act", "rev", "scope", "client_id", "org", "org_role", "is_anonymous":
		return true
	}
	return false
}

// wireClaims decodes a token's claims once, and gives the parser the claims that it
// checks.
type wireClaims struct {
	jwt.MapClaims
	verified *verified
}

func (w *wireClaims) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &w.MapClaims); err != nil {
		return err
	}
	c := &w.verified.claims
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
	if omitted := stringsOf(w.MapClaims["omitted"]); len(omitted) > 0 {
		c.Omitted = omitted
	}
	if act, ok := w.MapClaims["act"]; ok {
		by, _ := act.(map[string]any)
		c.Impersonator = &store.SessionRef{}
		c.Impersonator.UserID, _ = by["sub"].(string)
		c.Impersonator.ID, _ = by["session_id"].(string)
	}
	w.verified.revisions = revisionsOf(w.MapClaims["rev"])
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

// Revisions are the versions of the data from which a token's roles and permissions were
// read: the user's CredentialRevision, and the revision of the table of roles (0 for a
// user without roles). The token of an impersonation also has the actor's
// CredentialRevision.
type Revisions struct{ user, roles, actor int64 }

func revisionsOf(v any) (r Revisions) {
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
