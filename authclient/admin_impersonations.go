package authclient

import (
	"context"
	"time"
)

// Acting as somebody else, from the admin side.

// ImpersonateParams are of Admin.Impersonate.
type ImpersonateParams struct {
	Reason     string `json:"reason"`
	RedirectTo string `json:"redirect_to,omitempty"` // Where a browser goes on: the answer has url in place of the token.
}

// ImpersonationToken is what Admin.Impersonate returns.
type ImpersonationToken struct {
	AccessToken string `json:"access_token"`
	ExpiresIn   int    `json:"expires_in"`
	SessionID   string `json:"session_id"`
	URL         string `json:"url"` // redirect_to with a code that POST /exchange trades, within a minute.
}

// Impersonate is POST /users/{id}/impersonate: act as somebody else. For 15 minutes at
// most, and only while one's own session is live. There is no refresh. The token opens the
// application's own routes, GET /me, GET /sessions and POST /logout. One needs all of the
// account's permissions and one more, but for owners, and a proof of the last 15 minutes.
// Permission: auth.impersonate.
func (a *Admin) Impersonate(ctx context.Context, userID string, p ImpersonateParams, opts ...CallOption) (*ImpersonationToken, error) {
	return run[ImpersonationToken](ctx, a, a.prepared("POST", "/users/"+segment(userID)+"/impersonate", p, opts))
}

// Impersonation is a part of what the admin side answers.
type Impersonation struct {
	ID             string    `json:"id"`
	ActorID        string    `json:"actor_id"` // Who acts as the user.
	ActorSessionID string    `json:"actor_session_id"`
	CreatedAt      time.Time `json:"created_at"`
	ExpiresAt      time.Time `json:"expires_at"`
	IP             *string   `json:"ip"`
	Reason         string    `json:"reason"`
	UserAgent      *string   `json:"user_agent"`
	UserID         string    `json:"user_id"`
}

// Impersonations is GET /impersonations: who acts as whom. Right now, newest first, at most
// 1000. Permission: auth.impersonate.
func (a *Admin) Impersonations(ctx context.Context, opts ...CallOption) ([]Impersonation, error) {
	v, err := run[struct {
		Rows []Impersonation `json:"impersonations"`
	}](ctx, a, a.prepared("GET", "/impersonations", nil, opts))
	if err != nil {
		return nil, err
	}
	return v.Rows, nil
}

// EndImpersonation is DELETE /impersonations/{id}: end an impersonation. Permission:
// auth.impersonate.
func (a *Admin) EndImpersonation(ctx context.Context, id, reason string, opts ...CallOption) error {
	err := a.wire.do(ctx, a.prepared("DELETE", "/impersonations/"+segment(id), reasonBody(reason), opts), nil)
	return err
}
