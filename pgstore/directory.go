package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/authmount/auth/store"
)

// Lists and counts of accounts begin with these statements. Each query adds only its
// own conditions and so has its own plan, because one statement for all conditions
// would read the whole table.
const (
	listUsers     = `select ` + userColumns + ` from auth.users u where true`
	someUsers     = `select u.id from auth.users u where true`
	countUsers    = `select count(*) from (%s limit %d) picked`
	estimateUsers = `explain (format json) %s`
)

// bounds applies to the next statement in the same transaction. It limits the reading
// time, and has the statement planned for its actual values, because the share of rows
// that a condition selects depends on the table and on the value.
const bounds = `select set_config('statement_timeout', $1::text, true), set_config('plan_cache_mode', 'force_custom_plan', true)`

// fullPage bounds the capacity that is allocated for a list before it is read.
const fullPage = 1000

// listPatience is the time limit for reading a list.
const listPatience = 2 * time.Second

// orders holds the sort keys of lists, and the type to which the cursor is cast.
var orders = map[store.UserSort]struct{ columns, cursor string }{
	store.SortCreated:  {"u.created_at", "timestamptz"},
	store.SortSignedIn: {"coalesce(u.last_sign_in_at, '-infinity')", "timestamptz"},
	store.SortEmail:    {"coalesce(u.email_key, '') collate \"C\"", "text"},
}

// query builds a statement.
type query struct {
	sql  strings.Builder
	args []any
}

// where adds a condition, in which each ? is an argument.
func (b *query) where(condition string, args ...any) {
	b.sql.WriteString(" and ")
	b.add(condition, args...)
}

func (b *query) add(text string, args ...any) {
	for _, arg := range args {
		before, after, _ := strings.Cut(text, "?")
		b.args = append(b.args, arg)
		fmt.Fprintf(&b.sql, "%s$%d", before, len(b.args))
		text = after
	}
	b.sql.WriteString(text)
}

// usersQuery returns the statement for a list of accounts. best is the way with few matches,
// or -1 (Store.narrow).
func usersQuery(q store.UserQuery, best int) *query {
	b := &query{}
	b.sql.WriteString(listUsers)
	for i, w := range waysOf(q) {
		if i == best {
			b.where(`u.id in (with found (id) as materialized (`+w.ids+`) select found.id from found)`, w.args...)
		} else {
			b.where(w.check, w.args...)
		}
	}
	b.filter(q)
	b.page(q)
	return b
}

// filter adds all conditions of a query that are no ways. A condition that has an index is
// written as the index expression.
func (b *query) filter(q store.UserQuery) {
	b.filterNames(q)
	b.filterFacts(q)
	for _, bound := range []struct {
		condition string
		at        time.Time
	}{
		{`u.created_at >= ?::timestamptz`, q.CreatedFrom}, {`u.created_at < ?::timestamptz`, q.CreatedTo},
		{`coalesce(u.last_sign_in_at, '-infinity') >= ?::timestamptz`, q.SignedInFrom}, {`coalesce(u.last_sign_in_at, '-infinity') < ?::timestamptz`, q.SignedInTo},
	} {
		if !bound.at.IsZero() {
			b.where(bound.condition, bound.at)
		}
	}
}

// filterNames adds the conditions on ids, addresses and identities.
func (b *query) filterNames(q store.UserQuery) {
	if q.ID != "" {
		b.where(`u.id = ?::uuid`, q.ID)
	}
	if len(q.IDs) > 0 {
		b.where(`u.id = any(?::uuid[])`, q.IDs)
	}
	if q.Email != "" {
		b.where(`u.email_key = ?::text`, store.EmailKey(q.Email))
	}
	if q.Phone != "" {
		b.where(`u.phone = ?::text`, q.Phone)
	}
	switch {
	case q.Subject != "":
		b.where(`u.id = (select i.user_id from auth.identities i where i.provider = ?::text and i.subject = ?::text)`, q.Provider, q.Subject)
	case q.Provider != "":
		b.where(`exists (select from auth.identities i where i.user_id = u.id and i.provider = ?::text)`, q.Provider)
	}
}

// filterFacts adds the conditions on roles, metadata and the state of accounts.
func (b *query) filterFacts(q store.UserQuery) {
	if q.Role != "" {
		b.where(`u.roles <> '{}' and u.roles @> array[?::text]`, q.Role)
	}
	if len(q.Waiting) > 0 {
		b.where(`u.roles <> '{}' and u.roles && ?::text[] and (u.accepted_sequence = 0 or u.accepted_until <= ?::timestamptz)`, q.Waiting, q.Now)
	}
	for _, name := range slices.Sorted(maps.Keys(q.Metadata)) {
		var either []string
		var args []any
		for _, v := range store.MetadataValues(q.Metadata[name]) {
			either = append(either, `u.app_metadata @> ?::jsonb`)
			args = append(args, text(map[string]any{name: v}))
		}
		b.where(`u.app_metadata <> '{}' and (`+strings.Join(either, " or ")+`)`, args...)
	}
	if q.Banned != nil && *q.Banned {
		b.where(`u.banned_until > ?::timestamptz`, q.Now)
	} else if q.Banned != nil {
		b.where(`(u.banned_until is null or u.banned_until <= ?::timestamptz)`, q.Now)
	}
	if q.Confirmed != nil && *q.Confirmed {
		b.where(`(u.email_verified_at is not null or u.phone_verified_at is not null or (` + hasIdentity + `))`)
	} else if q.Confirmed != nil {
		b.where(`u.email_verified_at is null and u.phone_verified_at is null and not (` + hasIdentity + `)`)
	}
	if q.MFA != nil && *q.MFA {
		b.where(`u.mfa_enabled`)
	} else if q.MFA != nil {
		b.where(`not u.mfa_enabled`)
	}
	if q.Password != nil && *q.Password {
		b.where(`u.password_hash <> ''`)
	} else if q.Password != nil {
		b.where(`u.password_hash = ''`)
	}
}

// hasIdentity looks for identities only of users who have or had one. It calls a
// function because Postgres would turn a sub-select into a table of all identities.
const hasIdentity = `u.linked and auth.identities_of(u.id) is not null`

// page adds the cursor, the order and the limit.
func (b *query) page(q store.UserQuery) {
	order, ok := orders[q.Sort]
	if !ok {
		order = orders[store.SortCreated]
	}
	direction, than := "", ">"
	if q.Desc {
		direction, than = " desc", "<"
	}
	if c := q.After; c != nil {
		var at any = c.Email
		switch {
		case q.Sort == store.SortEmail:
		case c.Time.IsZero():
			at = "-infinity"
		default:
			at = c.Time.UTC().Format(time.RFC3339Nano)
		}
		b.where(`(`+order.columns+`, u.id) `+than+` (?::text::`+order.cursor+`, ?::uuid)`, at, c.ID)
	}
	b.add(` order by `+order.columns+direction+`, u.id`+direction+` limit ?::integer`, q.Limit)
}

// ListUsers lists accounts. Within the application's transaction (InTx) only that
// transaction's own timeouts limit it.
func (s *Store) ListUsers(ctx context.Context, q store.UserQuery) ([]store.User, error) {
	list := []store.User{}
	if q.Limit > store.MaxQueryIDs { // exports: all pages but the last are full
		list = make([]store.User, 0, min(q.Limit, fullPage))
	}
	err := s.listUsers(ctx, q, func(rows pgx.Rows) (err error) {
		list, err = pgx.AppendRows(list[:0], rows, func(row pgx.CollectableRow) (store.User, error) {
			var r userRow
			if err := row.Scan(r.into()...); err != nil {
				return store.User{}, err
			}
			return r.user()
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// ListUserRows lists accounts with their metadata as raw JSON. Exports of a hundred
// thousand accounts and more use it, so all rows are scanned into the same variables.
func (s *Store) ListUserRows(ctx context.Context, q store.UserQuery) ([]store.UserRow, error) {
	var list []store.UserRow
	err := s.listUsers(ctx, q, func(rows pgx.Rows) error {
		defer rows.Close()
		list = make([]store.UserRow, 0, min(q.Limit, fullPage))
		var r userRow
		into := r.into()
		for rows.Next() {
			r = userRow{}
			if err := rows.Scan(into...); err != nil {
				return err
			}
			row, err := r.asKept()
			if err != nil {
				return err
			}
			list = append(list, row)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// CountUsers counts up to store.CountedExactly accounts, and otherwise returns the
// planner's estimate.
func (s *Store) CountUsers(ctx context.Context, q store.UserQuery) (store.Total, error) {
	some := &query{}
	some.sql.WriteString(someUsers)
	for _, w := range waysOf(q) {
		some.where(`u.id in (`+w.ids+`)`, w.args...)
	}
	some.filter(q)
	var n int64
	err := s.bounded(ctx, some.as(countUsers, store.CountedExactly+1), func(rows pgx.Rows) (err error) {
		n, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
		return err
	})
	if err != nil && !errors.Is(err, store.ErrTooBroad) {
		return store.Total{}, err
	}
	if err == nil && n <= store.CountedExactly {
		return store.Total{N: n, Exact: true}, nil
	}
	least := n // 0 if counting took too long
	var plan []struct {
		Plan struct {
			Rows float64 `json:"Plan Rows"`
		}
	}
	err = s.bounded(ctx, some.as(estimateUsers), func(rows pgx.Rows) error {
		raw, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[[]byte])
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, &plan)
	})
	if err != nil {
		return store.Total{}, err
	}
	return store.Total{N: max(least, int64(plan[0].Plan.Rows))}, nil
}

// as returns a statement around this one, with the same arguments.
func (b *query) as(around string, more ...any) *query {
	out := &query{args: b.args}
	fmt.Fprintf(&out.sql, around, append([]any{b.sql.String()}, more...)...)
	return out
}

// bounded runs a query within listPatience. Errors: store.ErrTooBroad if it takes
// longer.
func (s *Store) bounded(ctx context.Context, b *query, read func(pgx.Rows) error) error {
	return tooBroad(s.do(ctx, func(ctx context.Context, on querier) error { return s.readList(ctx, on, b, read) }))
}

// readList runs a query within listPatience, as a part of a call.
func (s *Store) readList(ctx context.Context, on querier, b *query, read func(pgx.Rows) error) error {
	batch := &pgx.Batch{}
	if Tx(ctx) == nil { // otherwise the settings would apply to the rest of the application's transaction
		batch.Queue(bounds, strconv.FormatInt(listPatience.Milliseconds(), 10))
	}
	batch.Queue(s.sql(b.sql.String()), b.args...).Query(read)
	return on.SendBatch(ctx, batch).Close()
}

// tooBroad returns the error of readList to the caller.
func tooBroad(err error) error {
	var e *pgconn.PgError
	if errors.As(err, &e) && e.Code == "57014" {
		return fmt.Errorf("%w: %w", store.ErrTooBroad, err)
	}
	return err
}
