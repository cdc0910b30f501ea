package authclient

import (
	"context"
)

// Who one is, from the admin side.

// Whoami is what Admin.Me returns.
type Whoami struct {
	Actor         Actor      `json:"actor"`
	Impersonating bool       `json:"impersonating"`
	Permissions   []string   `json:"permissions"`
	User          *AdminUser `json:"user"`
}

// Actor is in whose name something happens.
type Actor struct {
	ID        string  `json:"id"`
	Kind      string  `json:"kind"`
	Label     string  `json:"label"` // As people call them.
	SessionID *string `json:"session_id"`
}

// AdminUser is an account as the admin side shows it.
type AdminUser struct {
	User

	Revision int64  `json:"revision"` // Rises with every change; also the ETag, for If-Match.
	Status   string `json:"status"`
}

// Me is GET /me: who one is on the admin side.
func (a *Admin) Me(ctx context.Context, opts ...CallOption) (*Whoami, error) {
	return run[Whoami](ctx, a, a.prepared("GET", "/me", nil, opts))
}
