package memstore

import (
	"slices"
	"time"

	"github.com/authmount/auth"
)

// patched is the user after the patch; u is left as it is.
func patched(before *auth.User, p *auth.UserPatch, now time.Time) auth.User {
	u := copyUser(*before)
	if p.DropCredentials {
		if p.Email == nil && p.EmailVerifiedAt == nil {
			u.Email, u.EmailVerifiedAt = "", time.Time{}
		}
		if p.Phone == nil && p.PhoneVerifiedAt == nil {
			u.Phone, u.PhoneVerifiedAt = "", time.Time{}
		}
		u.Identities = nil
	}
	if p.DropCredentials || p.DropFactors {
		u.MFAEnabled = false
	}
	set(&u.Email, p.Email)
	set(&u.EmailVerifiedAt, p.EmailVerifiedAt)
	set(&u.Phone, p.Phone)
	set(&u.PhoneVerifiedAt, p.PhoneVerifiedAt)
	set(&u.FullName, p.FullName)
	set(&u.BannedUntil, p.BannedUntil)
	if p.UserMetadata != nil {
		u.UserMetadata = copyMap(p.UserMetadata)
	}
	if p.AppMetadata != nil {
		u.AppMetadata = copyMap(p.AppMetadata)
	}
	if p.Roles != nil {
		u.Roles = slices.Clone(*p.Roles)
	}
	if p.Unlink != nil {
		u.Identities = slices.DeleteFunc(u.Identities, same(p.Unlink.Provider, p.Unlink.Subject))
	}
	if p.Link != nil {
		u.Identities = append(slices.DeleteFunc(u.Identities, same(p.Link.Provider, p.Link.Subject)), *p.Link)
		sortIdentities(u.Identities)
	}
	u.UpdatedAt = now
	u.Revision++
	if raisesCredentials(before, p) {
		u.CredentialRevision++
	}
	return u
}

// raisesCredentials tells whether a patch touches the ways in, second factors,
// roles or a ban.
func raisesCredentials(u *auth.User, p *auth.UserPatch) bool {
	return p.Email != nil || p.EmailVerifiedAt != nil || p.Phone != nil || p.PhoneVerifiedAt != nil ||
		p.PasswordHash != nil || p.Unlink != nil || p.Roles != nil || p.BannedUntil != nil || p.DropFactors || p.DropCredentials ||
		(p.Link != nil && !slices.ContainsFunc(u.Identities, same(p.Link.Provider, p.Link.Subject)))
}

// patchedHash is the password hash after the patch. A rehash is of the password
// that there was, so it does not survive the end of that one.
func patchedHash(hash string, p *auth.UserPatch) string {
	switch {
	case p.PasswordHash != nil:
		return *p.PasswordHash
	case p.DropCredentials:
		return ""
	case p.Rehash != nil:
		return *p.Rehash
	}
	return hash
}

func same(provider, subject string) func(auth.Identity) bool {
	return func(i auth.Identity) bool { return i.Provider == provider && i.Subject == subject }
}

func sortIdentities(list []auth.Identity) {
	slices.SortStableFunc(list, func(a, b auth.Identity) int { return byAge(a.CreatedAt, a.ID, b.CreatedAt, b.ID) })
}

func set[T any](field, to *T) {
	if to != nil {
		*field = *to
	}
}
