package memstore

import (
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/internal/jsonvalue"
	"github.com/authmount/auth/store"
)

// Copies separate the store's values from the caller's, and bring times into one form.

// utc returns t as it is stored: in UTC, to the microsecond.
func utc(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func allUTC(times ...*time.Time) {
	for _, t := range times {
		*t = utc(*t)
	}
}

func copyUser(u store.User) store.User {
	u.UserMetadata, u.AppMetadata = jsonvalue.CloneObject(u.UserMetadata), jsonvalue.CloneObject(u.AppMetadata)
	u.Roles, u.Identities = slices.Clone(u.Roles), slices.Clone(u.Identities)
	u.Claims = nil // not stored
	allUTC(&u.EmailVerifiedAt, &u.PhoneVerifiedAt, &u.CreatedAt, &u.UpdatedAt, &u.LastSignInAt, &u.BannedUntil, &u.AcceptedUntil)
	for i := range u.Identities {
		allUTC(&u.Identities[i].CreatedAt, &u.Identities[i].LastSignInAt)
	}
	return u
}

func copySession(s store.Session) store.Session {
	s.AMR = slices.Clone(s.AMR)
	allUTC(&s.RotatedAt, &s.CreatedAt, &s.LastActiveAt, &s.IdleUntil, &s.ExpiresAt)
	return s
}

func copyToken(t store.Token) store.Token {
	t.Hash, t.Data, t.Code = slices.Clone(t.Hash), slices.Clone(t.Data), slices.Clone(t.Code)
	allUTC(&t.CreatedAt, &t.ExpiresAt, &t.CodeExpiresAt)
	return t
}

func cloneAll(list [][]byte) [][]byte {
	out := make([][]byte, len(list))
	for i, b := range list {
		out[i] = slices.Clone(b)
	}
	return out
}

// byAge orders lists by time and then by id.
func byAge(a time.Time, aID string, b time.Time, bID string) int {
	if c := a.Compare(b); c != 0 {
		return c
	}
	return strings.Compare(aID, bID)
}

func sortIdentities(list []store.Identity) {
	slices.SortStableFunc(list, func(a, b store.Identity) int { return byAge(a.CreatedAt, a.ID, b.CreatedAt, b.ID) })
}
