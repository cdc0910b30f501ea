package memstore

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/store"
)

// ListUsers scans all accounts, because memory is for tests and small services.
func (s *Store) ListUsers(ctx context.Context, q store.UserQuery) ([]store.User, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	list := []store.User{}
	for _, u := range s.users {
		if picked(u, &q) && (q.After == nil || q.Compare(q.After, q.Cursor(u.User)) < 0) {
			list = append(list, u.User)
		}
	}
	slices.SortFunc(list, func(a, b store.User) int {
		return q.Compare(q.Cursor(a), q.Cursor(b))
	})
	list = slices.Clip(list[:min(len(list), q.Limit)])
	for i := range list {
		list[i] = copyUser(list[i])
	}
	return list, nil
}

// ListUserRows is ListUsers, with the metadata as JSON.
func (s *Store) ListUserRows(ctx context.Context, q store.UserQuery) ([]store.UserRow, error) {
	list, err := s.ListUsers(ctx, q)
	if err != nil {
		return nil, err
	}
	rows := make([]store.UserRow, len(list))
	for i, u := range list {
		r := &rows[i]
		if r.UserMetadataJSON, err = object(u.UserMetadata); err != nil {
			return nil, err
		}
		if r.AppMetadataJSON, err = object(u.AppMetadata); err != nil {
			return nil, err
		}
		r.User = u
		r.UserMetadata, r.AppMetadata = nil, nil
	}
	return rows, nil
}

// object returns metadata as JSON.
func object(m map[string]any) (json.RawMessage, error) {
	if m == nil {
		return json.RawMessage("{}"), nil
	}
	return json.Marshal(m)
}

// CountUsers counts all accounts that a query picks, exactly.
func (s *Store) CountUsers(ctx context.Context, q store.UserQuery) (store.Total, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return store.Total{}, err
	}
	defer unlock()
	c := store.Total{Exact: true}
	for _, u := range s.users {
		if picked(u, &q) {
			c.N++
		}
	}
	return c, nil
}

// picked reports whether an account matches all of a query except its place in the list.
func picked(u *user, q *store.UserQuery) bool {
	within := func(t, from, to time.Time) bool {
		return (from.IsZero() || !t.Before(from)) && (to.IsZero() || t.Before(to))
	}
	begins := q.Prefix == "" || u.Email != "" && strings.HasPrefix(store.EmailKey(u.Email), store.EmailKey(q.Prefix)) ||
		store.NameMatches(u.FullName, q.Prefix)
	linked := q.Provider == "" || slices.ContainsFunc(u.Identities, func(i store.Identity) bool {
		return i.Provider == q.Provider && (q.Subject == "" || i.Subject == q.Subject)
	})
	at := q.Domain == "" || u.Email != "" && store.EmailDomain(u.Email) == store.DomainKey(q.Domain)
	return begins && at && linked && (q.ID == "" || strings.EqualFold(u.ID, q.ID)) &&
		(len(q.IDs) == 0 || slices.ContainsFunc(q.IDs, func(id string) bool { return strings.EqualFold(u.ID, id) })) &&
		(q.Email == "" || u.Email != "" && store.EmailKey(u.Email) == store.EmailKey(q.Email)) && (q.Phone == "" || u.Phone == q.Phone) &&
		(len(q.Waiting) == 0 || !u.Accepted(q.Now) && slices.ContainsFunc(u.Roles, func(r string) bool { return slices.Contains(q.Waiting, r) })) &&
		(q.Role == "" || slices.Contains(u.Roles, q.Role)) && q.HasMetadata(u.AppMetadata) &&
		is(q.Banned, u.Banned(q.Now)) && is(q.Confirmed, !u.Unverified()) && is(q.MFA, u.MFAEnabled) && is(q.Password, u.hash != "") &&
		within(u.CreatedAt, q.CreatedFrom, q.CreatedTo) && within(u.LastSignInAt, q.SignedInFrom, q.SignedInTo)
}
