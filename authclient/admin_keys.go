package authclient

import (
	"context"
	"iter"
	"time"
)

// API keys, from the admin side.

// KeyQuery picks what Admin.Keys returns; what is empty picks nothing out.
type KeyQuery struct {
	Cursor string `query:"cursor"`
	Kind   string `query:"kind"` // One of "secret", "public".
	Limit  int    `query:"limit"`
	Status string `query:"status"` // Without those that were revoked or have expired. One of "live".
}

// APIKey is an API key, without its text.
type APIKey struct {
	ID            string     `json:"id"`
	Name          string     `json:"name"`
	Adopted       bool       `json:"adopted"` // It is the service's own, whatever becomes of who made it.
	CIDRs         []string   `json:"cidrs"`   // Networks from which alone it may be used; none: from anywhere.
	CreatedAt     time.Time  `json:"created_at"`
	CreatedBy     *string    `json:"created_by"` // Whose permissions bound it; null: it is the service's own.
	Environment   string     `json:"environment"`
	ExpiresAt     *time.Time `json:"expires_at"`
	Kind          string     `json:"kind"`           // A secret key opens the admin side to a program; a public one names an application.
	LastUsedAt    *time.Time `json:"last_used_at"`   // To the minute.
	PreviousUntil *time.Time `json:"previous_until"` // Until when the text before the last rotation is good.
	Revision      int64      `json:"revision"`       // Rises with every change; also the ETag, for If-Match.
	RevokedAt     *time.Time `json:"revoked_at"`
	RotatedAt     *time.Time `json:"rotated_at"` // Since when its text is the present one; null: since created_at.
	Scopes        []string   `json:"scopes"`     // Permissions, of which it has those that whoever made it has, too.
	Status        string     `json:"status"`
}

// KeyPage is one page of Admin.Keys.
type KeyPage struct {
	Keys       []APIKey `json:"keys"`
	NextCursor *string  `json:"next_cursor"` // what to ask for next; nil: that was all
}

// Keys is GET /keys: the API keys. Newest first, without their texts. Permission:
// auth.keys.read. It follows cursors to the end; KeyPage reads one page.
func (a *Admin) Keys(ctx context.Context, q KeyQuery, opts ...CallOption) iter.Seq2[APIKey, error] {
	return all(ctx, q, func(q *KeyQuery) *string { return &q.Cursor }, func(ctx context.Context, q KeyQuery) ([]APIKey, *string, error) {
		p, err := a.KeyPage(ctx, q, opts...)
		if err != nil {
			return nil, nil, err
		}
		return p.Keys, p.NextCursor, nil
	})
}

// KeyPage is one page of Keys.
func (a *Admin) KeyPage(ctx context.Context, q KeyQuery, opts ...CallOption) (*KeyPage, error) {
	k := a.prepared("GET", "/keys", nil, opts)
	k.query = queryOf(q)
	return run[KeyPage](ctx, a, k)
}

// CreateKeyParams are of Admin.CreateKey.
type CreateKeyParams struct {
	Name        string     `json:"name"`
	CIDRs       []string   `json:"cidrs,omitempty"`
	Environment string     `json:"environment,omitempty"` // Part of the text, to tell keys apart.
	ExpiresAt   *time.Time `json:"expires_at,omitempty"`  // Absent: never.
	Kind        string     `json:"kind,omitempty"`
	Scopes      []string   `json:"scopes,omitempty"`
}

// NewAPIKey is an API key with its text, which is shown this once.
type NewAPIKey struct {
	APIKey

	Key string `json:"key"` // Keep it: it is kept nowhere else.
}

// CreateKey is POST /keys: make an API key. With permissions that one has, and for as long
// as one has them. Needs a proof of the last 15 minutes. Permission: auth.keys.write.
func (a *Admin) CreateKey(ctx context.Context, p CreateKeyParams, opts ...CallOption) (*NewAPIKey, error) {
	return run[NewAPIKey](ctx, a, a.prepared("POST", "/keys", p, opts))
}

// UpdateKeyChanges are of Admin.UpdateKey.
type UpdateKeyChanges struct {
	Name      Change[string]    `json:"name,omitzero"`
	Adopted   Change[bool]      `json:"adopted,omitzero"` // For owners: it goes on when whoever made it is banned, deleted or may do less.
	CIDRs     Change[[]string]  `json:"cidrs,omitzero"`
	ExpiresAt Change[time.Time] `json:"expires_at,omitzero"` // null: never.
	Scopes    Change[[]string]  `json:"scopes,omitzero"`
}

// UpdateKey is PATCH /keys/{id}: change an API key. What is absent stays. Only keys of
// which one has all permissions; the service's own are for owners. Needs a proof of the
// last 15 minutes. Permission: auth.keys.write.
func (a *Admin) UpdateKey(ctx context.Context, id string, p UpdateKeyChanges, opts ...CallOption) (*APIKey, error) {
	return run[APIKey](ctx, a, a.prepared("PATCH", "/keys/"+segment(id), p, opts))
}

// RevokeKey is DELETE /keys/{id}: revoke an API key. For good; it stays in the list. A
// secret key stops at once, a public one within a second. Needs a proof of the last 15
// minutes. Permission: auth.keys.write.
func (a *Admin) RevokeKey(ctx context.Context, id, reason string, opts ...CallOption) error {
	err := a.wire.do(ctx, a.prepared("DELETE", "/keys/"+segment(id), reasonBody(reason), opts), nil)
	return err
}

// RotateKeyParams are of Admin.RotateKey.
type RotateKeyParams struct {
	Overlap int `json:"overlap,omitempty"` // Seconds for which the text before stays good.
}

// RotateKey is POST /keys/{id}/rotate: give an API key another text. For who made it, or an
// owner. Of two at once one happens, and the other is 412. Needs a proof of the last 15
// minutes. Permission: auth.keys.write.
func (a *Admin) RotateKey(ctx context.Context, id string, p RotateKeyParams, opts ...CallOption) (*NewAPIKey, error) {
	return run[NewAPIKey](ctx, a, a.prepared("POST", "/keys/"+segment(id)+"/rotate", p, opts))
}
