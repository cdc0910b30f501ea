package authclient

import (
	"context"
	"time"
)

// What lets one in as somebody, from the admin side.

// SetPasswordParams are of Admin.SetPassword.
type SetPasswordParams struct {
	Password *string `json:"password"` // null removes it.
	Reason   string  `json:"reason,omitempty"`
}

// SetPassword is POST /users/{id}/password: set or remove somebody's password. All their
// sessions end, and they are told by mail. Needs a proof of the last 15 minutes.
// Permission: auth.credentials.
func (a *Admin) SetPassword(ctx context.Context, userID string, p SetPasswordParams, opts ...CallOption) (*AdminUser, error) {
	return run[AdminUser](ctx, a, a.prepared("POST", "/users/"+segment(userID)+"/password", p, opts))
}

// Factors is GET /users/{id}/factors: somebody's second factors. Permission:
// auth.users.read.
func (a *Admin) Factors(ctx context.Context, userID string, opts ...CallOption) ([]Factor, error) {
	v, err := run[struct {
		Rows []Factor `json:"factors"`
	}](ctx, a, a.prepared("GET", "/users/"+segment(userID)+"/factors", nil, opts))
	if err != nil {
		return nil, err
	}
	return v.Rows, nil
}

// RemoveFactors is DELETE /users/{id}/factors: remove all of somebody's second factors.
// With their recovery codes. They are told by mail. Needs a proof of the last 15 minutes.
// Permission: auth.credentials.
func (a *Admin) RemoveFactors(ctx context.Context, userID, reason string, opts ...CallOption) (*AdminUser, error) {
	return run[AdminUser](ctx, a, a.prepared("DELETE", "/users/"+segment(userID)+"/factors", reasonBody(reason), opts))
}

// RemoveFactor is DELETE /users/{id}/factors/{factor}: remove one of somebody's second
// factors. As DELETE /admin/users/{id}/factors. Permission: auth.credentials.
func (a *Admin) RemoveFactor(ctx context.Context, userID, factorID, reason string, opts ...CallOption) (*AdminUser, error) {
	return run[AdminUser](ctx, a, a.prepared("DELETE", "/users/"+segment(userID)+"/factors/"+segment(factorID), reasonBody(reason), opts))
}

// RemoveIdentityParams are of Admin.RemoveIdentity.
type RemoveIdentityParams struct {
	Force  bool   `json:"force,omitempty"` // Also if nobody could sign in any more.
	Reason string `json:"reason,omitempty"`
}

// RemoveIdentity is DELETE /users/{id}/identities/{identity}: take an identity off an
// account. Its owner is told by mail. Needs a proof of the last 15 minutes. Permission:
// auth.credentials.
func (a *Admin) RemoveIdentity(ctx context.Context, userID, identityID string, p RemoveIdentityParams, opts ...CallOption) (*AdminUser, error) {
	return run[AdminUser](ctx, a, a.prepared("DELETE", "/users/"+segment(userID)+"/identities/"+segment(identityID), p, opts))
}

// LinkParams are of Admin.CreateLink.
type LinkParams struct {
	Email      string `json:"email,omitempty"` // In place of user_id.
	RedirectTo string `json:"redirect_to,omitempty"`
	Type       string `json:"type"` // invite: to choose a first password.
	UserID     string `json:"user_id,omitempty"`
}

// Link is what Admin.CreateLink returns.
type Link struct {
	Code      *string   `json:"code"` // Does the same where a code is typed.
	ExpiresAt time.Time `json:"expires_at"`
	RequestID *string   `json:"request_id"` // Goes with the code of a magic link.
	URL       string    `json:"url"`
}

// CreateLink is POST /links: make a link for somebody. To give to the account's owner: it
// does what the mailed one of the type does, whose place it takes. Only for accounts that
// may less than oneself. Needs a proof of the last 15 minutes. The audit log has who made
// it, not the link. Permission: auth.credentials.
func (a *Admin) CreateLink(ctx context.Context, p LinkParams, opts ...CallOption) (*Link, error) {
	return run[Link](ctx, a, a.prepared("POST", "/links", p, opts))
}
