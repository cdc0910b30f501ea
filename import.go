package auth

import (
	"context"
	"errors"
	"slices"
	"time"
)

// ImportUserParams bring a user over from another system.
type ImportUserParams struct {
	Email         string
	EmailVerified bool
	FullName      string
	PasswordHash  string // see ValidPasswordHash for the formats; empty: no password
	UserMetadata  map[string]any
	AppMetadata   map[string]any
	Roles         []string
	CreatedAt     time.Time // zero: now
}

// ImportUser adds a user with a password hash made elsewhere; the hash is
// renewed at the first login. Of bcrypt hashes see ValidPasswordHash. No message is sent and no limit applies. Errors:
// CodeValidationFailed, CodeUserAlreadyExists.
func (a *Auth) ImportUser(ctx context.Context, p ImportUserParams) (User, error) {
	email, err := requiredEmail(p.Email)
	if err != nil {
		return User{}, invalid("email", err.Error())
	}
	if p.PasswordHash != "" {
		if err := ValidPasswordHash(p.PasswordHash); err != nil {
			return User{}, invalid("password_hash", err.Error())
		}
	}
	name, err := cleanName(p.FullName)
	if err != nil {
		return User{}, invalid("full_name", err.Error())
	}
	if err := checkMetadata(p.UserMetadata); err != nil {
		return User{}, invalid("user_metadata", err.Error())
	}
	if err := checkMetadata(p.AppMetadata); err != nil {
		return User{}, invalid("app_metadata", err.Error())
	}
	if slices.ContainsFunc(p.Roles, func(r string) bool { return !isRole(r) }) {
		return User{}, invalid("roles", "has one that is empty or has control characters")
	}
	now := a.now()
	if p.CreatedAt.IsZero() {
		p.CreatedAt = now
	}
	u := User{
		ID: a.newID(), Email: email, FullName: name,
		UserMetadata: orEmptyMap(p.UserMetadata), AppMetadata: p.AppMetadata, Roles: p.Roles,
		CreatedAt: wireTime(p.CreatedAt), UpdatedAt: now,
	}
	if p.EmailVerified {
		u.EmailVerifiedAt = now
	}
	c := a.newChange(ctx, ByApplication("").authority(), done(Event{Type: EventUserImported, UserID: u.ID}))
	u, err = a.store.CreateUser(ctx, CreateUser{Change: c, NewUser: NewUser{User: u, PasswordHash: p.PasswordHash, Creating: a.creating()}})
	if errors.Is(err, ErrConflict) {
		return User{}, fail(CodeUserAlreadyExists, err)
	}
	if err != nil {
		return User{}, storeFailed(err)
	}
	a.committed(ctx, c, OutcomeDone, nil)
	return u, nil
}
