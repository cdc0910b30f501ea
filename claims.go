package auth

import (
	"context"
	"slices"
	"time"

	"github.com/authmount/auth/internal/token"
)

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
