package authclient

import (
	"context"
	"encoding/json"
	"iter"
	"time"
)

// Accounts, from the admin side.

// UserQuery picks what Admin.Users returns; what is empty picks nothing out.
type UserQuery struct {
	Count        string            `query:"count"` // Count all that match, exactly up to 10,000. One of "estimate".
	CreatedFrom  time.Time         `query:"created_from"`
	CreatedTo    time.Time         `query:"created_to"` // Exclusive.
	Cursor       string            `query:"cursor"`     // Of the same query; any other one is refused.
	Email        string            `query:"email"`      // The whole address, whatever its case.
	Limit        int               `query:"limit"`
	MFA          *bool             `query:"mfa"`
	Order        string            `query:"order"` // One of "asc", "desc".
	Phone        string            `query:"phone"`
	Provider     string            `query:"provider"` // There is an identity of it.
	Q            string            `query:"q"`        // An id, or a whole address or number that somebody has, or else what an address or name begins with; matched tells which.
	Role         string            `query:"role"`
	SignedInFrom time.Time         `query:"signed_in_from"`
	SignedInTo   time.Time         `query:"signed_in_to"` // Exclusive.
	Sort         string            `query:"sort"`         // One of "created_at", "last_sign_in_at", "email".
	Status       string            `query:"status"`       // invited: those of the unconfirmed who have no password, so that nothing but a link that is mailed lets them in; they are shown as unconfirmed. One of "active", "banned", "unconfirmed", "invited".
	Subject      string            `query:"subject"`      // With provider: this one.
	Metadata     map[string]string `query:"metadata."`    // Members of app_metadata.
}

// UserPageCount is a part of what the admin side answers.
type UserPageCount struct {
	Exact bool `json:"exact"`
	Users int  `json:"users"`
}

// UserPage is one page of Admin.Users.
type UserPage struct {
	Count      *UserPageCount `json:"count"`
	Matched    *string        `json:"matched"`     // What q was taken for.
	NextCursor *string        `json:"next_cursor"` // what to ask for next; nil: that was all
	Users      []AdminUser    `json:"users"`
}

// Users is GET /users: accounts. Filters have to hold together. metadata.<name>=<value>
// picks by a member of app_metadata, up to ten of them: its value is that text, or the
// number, true, false or null that it spells. Filters that would read too much together:
// 422 query_too_broad. Permission: auth.users.read. It follows cursors to the end; UserPage
// reads one page.
func (a *Admin) Users(ctx context.Context, q UserQuery, opts ...CallOption) iter.Seq2[AdminUser, error] {
	return all(ctx, q, func(q *UserQuery) *string { return &q.Cursor }, func(ctx context.Context, q UserQuery) ([]AdminUser, *string, error) {
		p, err := a.UserPage(ctx, q, opts...)
		if err != nil {
			return nil, nil, err
		}
		return p.Users, p.NextCursor, nil
	})
}

// UserPage is one page of Users.
func (a *Admin) UserPage(ctx context.Context, q UserQuery, opts ...CallOption) (*UserPage, error) {
	k := a.prepared("GET", "/users", nil, opts)
	k.query = queryOf(q)
	return run[UserPage](ctx, a, k)
}

// UserLookup picks what Admin.LookupUser returns; what is empty picks nothing out.
type UserLookup struct {
	Email    string `query:"email"`
	Phone    string `query:"phone"`
	Provider string `query:"provider"`
	Subject  string `query:"subject"`
}

// Account is everything that operators see of an account.
type Account struct {
	AdminUser

	Factors           []Factor               `json:"factors"`
	HasPassword       bool                   `json:"has_password"`
	Locks             []AccountLock          `json:"locks"` // Limits on failures that are used up.
	Notes             string                 `json:"notes"`
	PendingChanges    []AccountPendingChange `json:"pending_changes"` // What waits for its proof.
	RecoveryCodesLeft int                    `json:"recovery_codes_left"`
}

// Factor is a second factor that is enabled.
type Factor struct {
	ID         string     `json:"id"`
	CreatedAt  time.Time  `json:"created_at"`
	Kind       string     `json:"kind"`
	Label      *string    `json:"label"`
	LastUsedAt *time.Time `json:"last_used_at"`
}

// AccountLock is a part of what the admin side answers.
type AccountLock struct {
	Limit string    `json:"limit"`
	Until time.Time `json:"until"`
}

// AccountPendingChange is a part of what the admin side answers.
type AccountPendingChange struct {
	ExpiresAt time.Time `json:"expires_at"`
	Field     string    `json:"field"`
	Value     string    `json:"value"`
}

// LookupUser is GET /users/lookup: the one account that has a value. An address (whatever
// its case), a number, or provider and subject: one of them. Permission: auth.users.read.
func (a *Admin) LookupUser(ctx context.Context, q UserLookup, opts ...CallOption) (*Account, error) {
	k := a.prepared("GET", "/users/lookup", nil, opts)
	k.query = queryOf(q)
	return run[Account](ctx, a, k)
}

// User is GET /users/{id}: one account. Permission: auth.users.read.
func (a *Admin) User(ctx context.Context, userID string, opts ...CallOption) (*Account, error) {
	return run[Account](ctx, a, a.prepared("GET", "/users/"+segment(userID), nil, opts))
}

// CreateUserParams are of Admin.CreateUser.
type CreateUserParams struct {
	ID            string         `json:"id,omitempty"` // Absent: a new one.
	AppMetadata   map[string]any `json:"app_metadata,omitempty"`
	Email         string         `json:"email,omitempty"`
	EmailVerified bool           `json:"email_verified,omitempty"`
	FullName      string         `json:"full_name,omitempty"`
	Notes         string         `json:"notes,omitempty"`
	Password      string         `json:"password,omitempty"`      // Absent: none.
	PasswordHash  string         `json:"password_hash,omitempty"` // In place of a password: argon2, bcrypt, scrypt or PBKDF2.
	Phone         string         `json:"phone,omitempty"`
	PhoneVerified bool           `json:"phone_verified,omitempty"`
	Roles         []string       `json:"roles,omitempty"`
	Send          string         `json:"send,omitempty"` // verify: mail the link that proves the address. invite: mail the link by which its owner chooses a password, and proves the address by that; good for seven days.
	UserMetadata  map[string]any `json:"user_metadata,omitempty"`
}

// CreateUser is POST /users: make an account. With an address, a number, or both. password,
// password_hash and true verified flags need auth.credentials, too, roles need
// auth.roles.assign and the permissions of the roles, and either needs a proof of the last
// 15 minutes. Permission: auth.users.write.
func (a *Admin) CreateUser(ctx context.Context, p CreateUserParams, opts ...CallOption) (*AdminUser, error) {
	return run[AdminUser](ctx, a, a.prepared("POST", "/users", p, opts))
}

// UpdateUserChanges are of Admin.UpdateUser.
type UpdateUserChanges struct {
	AppMetadata   Change[map[string]any] `json:"app_metadata,omitzero"` // A merge patch (RFC 7396).
	Email         Change[string]         `json:"email,omitzero"`
	EmailVerified Change[bool]           `json:"email_verified,omitzero"`
	FullName      Change[string]         `json:"full_name,omitzero"`
	Notes         Change[string]         `json:"notes,omitzero"`
	Phone         Change[string]         `json:"phone,omitzero"`
	PhoneVerified Change[bool]           `json:"phone_verified,omitzero"`
	UserMetadata  Change[map[string]any] `json:"user_metadata,omitzero"` // A merge patch (RFC 7396).
}

// UpdateUser is PATCH /users/{id}: edit an account. Absent members stay. email, phone and
// the verified flags need auth.credentials and a proof of the last 15 minutes, too; a new
// address or number is not verified unless that is said with it, and whoever has the former
// and the new address is told. Nobody writes their own app_metadata or ways in. Permission:
// auth.users.write.
func (a *Admin) UpdateUser(ctx context.Context, userID string, p UpdateUserChanges, opts ...CallOption) (*AdminUser, error) {
	return run[AdminUser](ctx, a, a.prepared("PATCH", "/users/"+segment(userID), p, opts))
}

// DeleteUser is POST /users/{id}/delete: delete an account. With everything of it but its
// rows of the audit log. Permission: auth.users.delete.
func (a *Admin) DeleteUser(ctx context.Context, userID, reason string, opts ...CallOption) error {
	err := a.wire.do(ctx, a.prepared("POST", "/users/"+segment(userID)+"/delete", reasonBody(reason), opts), nil)
	return err
}

// AnonymizeUser is POST /users/{id}/anonymize: make an account nobody's. Whatever tells who
// it was of goes, for good, also from the audit log; the id stays. Nobody signs in to it
// any more. The reason stays in the audit log: name nobody there. Permission:
// auth.users.delete.
func (a *Admin) AnonymizeUser(ctx context.Context, userID, reason string, opts ...CallOption) (*AdminUser, error) {
	return run[AdminUser](ctx, a, a.prepared("POST", "/users/"+segment(userID)+"/anonymize", reasonBody(reason), opts))
}

// ExportUser is GET /users/{id}/export: everything that is held about somebody. What GET
// /me/export has, for a request under data protection law. Who else acted is left out. It
// is recorded itself. Needs a proof of the last 15 minutes. Permission: auth.users.export.
func (a *Admin) ExportUser(ctx context.Context, userID string, opts ...CallOption) (json.RawMessage, error) {
	v, err := run[json.RawMessage](ctx, a, a.prepared("GET", "/users/"+segment(userID)+"/export", nil, opts))
	if err != nil {
		return nil, err
	}
	return *v, nil
}

// BanParams are of Admin.BanUser.
type BanParams struct {
	Reason string     `json:"reason"`
	Until  *time.Time `json:"until,omitempty"` // Absent: for ever.
}

// BanUser is POST /users/{id}/ban: ban an account. Its sessions end. Permission:
// auth.users.ban.
func (a *Admin) BanUser(ctx context.Context, userID string, p BanParams, opts ...CallOption) (*AdminUser, error) {
	return run[AdminUser](ctx, a, a.prepared("POST", "/users/"+segment(userID)+"/ban", p, opts))
}

// UnbanUser is POST /users/{id}/unban: lift a ban. Permission: auth.users.ban.
func (a *Admin) UnbanUser(ctx context.Context, userID, reason string, opts ...CallOption) (*AdminUser, error) {
	return run[AdminUser](ctx, a, a.prepared("POST", "/users/"+segment(userID)+"/unban", reasonBody(reason), opts))
}

// UnlockUser is POST /users/{id}/unlock: clear the limits on failures. Those of passwords,
// codes and second factors, whatever the name and device. Permission: auth.users.ban.
func (a *Admin) UnlockUser(ctx context.Context, userID, reason string, opts ...CallOption) (*AdminUser, error) {
	return run[AdminUser](ctx, a, a.prepared("POST", "/users/"+segment(userID)+"/unlock", reasonBody(reason), opts))
}
