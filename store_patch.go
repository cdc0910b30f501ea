package auth

import (
	"slices"
	"strings"
	"time"
)

// Apply returns what a patch makes of a user and the password hash, for stores
// that patch in Go; c is left as it is. Beside it the store has to do what the
// patch says of sessions (Revoke), tokens (DropTokens) and factors (DropFactors),
// and of all of them for DropCredentials.
func (p *UserPatch) Apply(c Credentials, now time.Time) Credentials {
	u := c.User
	u.Roles, u.Identities = slices.Clone(u.Roles), slices.Clone(u.Identities)
	u.UpdatedAt = now
	u.Revision++
	if p.raisesCredentials(c.User) {
		u.CredentialRevision++
	}
	replace(&c.PasswordHash, p.Rehash)
	if p.DropCredentials { // all but what the patch names, which comes below
		c.PasswordHash, u.Identities = "", nil
		if p.Email == nil && p.EmailVerifiedAt == nil {
			u.Email, u.EmailVerifiedAt = "", time.Time{}
		}
		if p.Phone == nil && p.PhoneVerifiedAt == nil {
			u.Phone, u.PhoneVerifiedAt = "", time.Time{}
		}
	}
	if p.DropCredentials || p.DropFactors {
		u.MFAEnabled = false
	}
	replace(&c.PasswordHash, p.PasswordHash)
	replace(&u.Email, p.Email)
	replace(&u.EmailVerifiedAt, p.EmailVerifiedAt)
	replace(&u.Phone, p.Phone)
	replace(&u.PhoneVerifiedAt, p.PhoneVerifiedAt)
	replace(&u.FullName, p.FullName)
	replace(&u.BannedUntil, p.BannedUntil)
	if p.Roles != nil {
		u.Roles = slices.Clone(*p.Roles)
	}
	u.UserMetadata, u.AppMetadata = cloneObject(u.UserMetadata), cloneObject(u.AppMetadata)
	if p.UserMetadata != nil {
		u.UserMetadata = cloneObject(p.UserMetadata)
	}
	if p.AppMetadata != nil {
		u.AppMetadata = cloneObject(p.AppMetadata)
	}
	if p.Unlink != nil {
		u.Identities = slices.DeleteFunc(u.Identities, sameIdentity(p.Unlink.Provider, p.Unlink.Subject))
	}
	if p.Link != nil {
		u.Identities = append(slices.DeleteFunc(u.Identities, sameIdentity(p.Link.Provider, p.Link.Subject)), *p.Link)
		slices.SortStableFunc(u.Identities, func(a, b Identity) int {
			if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
				return c
			}
			return strings.Compare(a.ID, b.ID)
		})
	}
	c.User = u
	return c
}

// raisesCredentials tells whether a patch touches ways in, second factors, roles
// or a ban.
func (p *UserPatch) raisesCredentials(u User) bool {
	return p.Email != nil || p.EmailVerifiedAt != nil || p.Phone != nil || p.PhoneVerifiedAt != nil ||
		p.PasswordHash != nil || p.Unlink != nil || p.Roles != nil || p.BannedUntil != nil || p.DropFactors || p.DropCredentials ||
		(p.Link != nil && !slices.ContainsFunc(u.Identities, sameIdentity(p.Link.Provider, p.Link.Subject)))
}

func sameIdentity(provider, subject string) func(Identity) bool {
	return func(i Identity) bool { return i.Provider == provider && i.Subject == subject }
}

func replace[T any](field, to *T) {
	if to != nil {
		*field = *to
	}
}
