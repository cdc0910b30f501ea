package sqlitestore

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/authmount/auth/store"
)

// orders holds the sort keys of lists of accounts, as their indexes have them.
var orders = map[store.UserSort]string{
	store.SortCreated:  `u.created_at`,
	store.SortSignedIn: `coalesce(u.last_sign_in_at, -62135596800000000)`,
	store.SortEmail:    `coalesce(u.email_key, '')`,
}

// pickUsers adds the conditions of a query that no way finds, except its place in the list.
func (b *query) pickUsers(q *store.UserQuery) {
	b.pickNames(q)
	b.pickStates(q)
	b.within(orders[store.SortCreated], q.CreatedFrom, q.CreatedTo)
	b.within(orders[store.SortSignedIn], q.SignedInFrom, q.SignedInTo)
}

// pickNames adds the conditions on ids, addresses and identities.
func (b *query) pickNames(q *store.UserQuery) {
	b.same(`u.id`, strings.ToLower(q.ID))
	if len(q.IDs) > 0 {
		b.where(`u.id in (select value from json_each(?))`, strings.ToLower(jsonOf(q.IDs)))
	}
	if q.Email != "" {
		b.where(`u.email_key = ?`, store.EmailKey(q.Email))
	}
	b.same(`u.phone`, q.Phone)
	switch {
	case q.Subject != "":
		b.where(`u.id = (select i.user_id from auth_identities i where i.provider = ? and i.subject = ?)`, q.Provider, q.Subject)
	case q.Provider != "":
		b.where(`exists (select 1 from auth_identities i where i.user_id = u.id and i.provider = ?)`, q.Provider)
	}
}

// pickStates adds the conditions on the state of accounts.
func (b *query) pickStates(q *store.UserQuery) {
	if len(q.Waiting) > 0 {
		b.where(`u.id in (select r.user_id from auth_user_roles r where r.role in (select value from json_each(?))) and (u.accepted_sequence = 0 or u.accepted_until <= ?)`, jsonOf(q.Waiting), micros(q.Now))
	}
	const linked = `exists (select 1 from auth_identities i where i.user_id = u.id)`
	if q.Banned != nil && !*q.Banned { // otherwise a way
		b.where(`(u.banned_until is null or u.banned_until <= ?)`, micros(q.Now))
	}
	for _, state := range []struct {
		want      *bool
		condition string
	}{
		{q.Confirmed, `(u.email_verified_at is not null or u.phone_verified_at is not null or ` + linked + `)`},
		{q.MFA, `u.mfa_enabled = 1`},
		{q.Password, `u.password_hash <> ''`},
	} {
		switch {
		case state.want == nil:
		case *state.want:
			b.where(state.condition)
		default:
			b.where(`not (` + state.condition + `)`)
		}
	}
}

// pageOfUsers makes of the conditions of a query the statement for a page of accounts. If few
// accounts match, their ids are sorted, and only those of the page are read whole. Otherwise the
// accounts are read in the order of an index.
func (b *query) pageOfUsers(q *store.UserQuery, few bool) {
	order, ok := orders[q.Sort]
	if !ok {
		order = orders[store.SortCreated]
	}
	if few {
		order = `+` + order // which no index has
	}
	direction, than := ``, `>`
	if q.Desc {
		direction, than = ` desc`, `<`
	}
	if c := q.After; c != nil {
		var place any = micros(c.Time)
		if q.Sort == store.SortEmail {
			place = c.Email
		}
		// The first condition alone finds the place in an index of an expression.
		b.where(order+` `+than+`= ? and (`+order+`, u.id) `+than+` (?, ?)`, place, place, c.ID)
	}
	sorted := ` order by ` + order + direction + `, u.id` + direction
	b.end(sorted+` limit ?`, q.Limit)
	if few {
		b.sql = selectUsers + ` where u.id in (select u.id from auth_users u where true` + b.sql + `)` + sorted
	} else {
		b.sql = selectUsers + ` where true` + b.sql
	}
}

// listUsers reads a page of accounts with their metadata as JSON.
func (s *Store) listUsers(ctx context.Context, q *store.UserQuery) (page []user, err error) {
	err = s.patiently(ctx, func(t *tx) error {
		b := &query{}
		b.pageOfUsers(q, t.pick(b, q))
		page = list(t, scanRow, b.sql, b.args...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// ListUsers lists accounts.
func (s *Store) ListUsers(ctx context.Context, q store.UserQuery) ([]store.User, error) {
	rows, err := s.listUsers(ctx, &q)
	if err != nil {
		return nil, err
	}
	all := make([]store.User, len(rows))
	for i := range rows {
		if err := rows[i].parse(); err != nil {
			return nil, failure(ctx, err)
		}
		all[i] = rows[i].User
	}
	return all, nil
}

// ListUserRows is ListUsers, with the metadata as JSON.
func (s *Store) ListUserRows(ctx context.Context, q store.UserQuery) ([]store.UserRow, error) {
	rows, err := s.listUsers(ctx, &q)
	if err != nil {
		return nil, err
	}
	all := make([]store.UserRow, len(rows))
	for i, r := range rows {
		all[i] = store.UserRow{User: r.User, UserMetadataJSON: json.RawMessage(r.userMetadata), AppMetadataJSON: json.RawMessage(r.appMetadata)}
	}
	return all, nil
}

// CountUsers counts all accounts that a query picks. If that takes too long, it returns the
// number of all accounts as the estimate.
func (s *Store) CountUsers(ctx context.Context, q store.UserQuery) (total store.Total, err error) {
	err = s.patiently(ctx, func(t *tx) error {
		b := countUsers(&q)
		if b == nil {
			b = &query{sql: `select count(*) from auth_users u where true`}
			t.pick(b, &q)
		}
		total = store.Total{N: value[int64](t, b.sql, b.args...), Exact: true}
		return nil
	})
	if errors.Is(err, store.ErrTooBroad) {
		err = s.read(ctx, func(t *tx) error {
			total = store.Total{N: value[int64](t, `select count(*) from auth_users`)}
			return nil
		})
	}
	if err != nil {
		return store.Total{}, err
	}
	return total, nil
}

// UserDeleted reports whether a user was deleted.
func (s *Store) UserDeleted(ctx context.Context, id string) (deleted bool, err error) {
	err = s.read(ctx, func(t *tx) error {
		deleted = t.exists(`select 1 from auth_deleted_users where id = ?`, id)
		return nil
	})
	return deleted, err
}
