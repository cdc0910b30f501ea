package pgstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
)

// listUsers is what lists of accounts begin with. Which conditions follow depends on
// what is asked, so that each has a plan of its own: one statement for all of them
// would read the whole table.
const listUsers = `select ` + userColumns + ` from auth.users u where true`

// orders are what lists are sorted by, and what the cursor is compared with.
var orders = map[auth.UserSort]struct{ columns, cursor string }{
	auth.SortCreated:  {"u.created_at", "timestamptz"},
	auth.SortSignedIn: {"coalesce(u.last_sign_in_at, '-infinity')", "timestamptz"},
	auth.SortEmail:    {"coalesce(u.email_key, '') collate \"C\"", "text"},
}

// query is a statement in the making.
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

// usersQuery is the statement for a list of accounts.
func usersQuery(q auth.UserQuery) *query {
	b := &query{}
	b.sql.WriteString(listUsers)
	if q.Prefix != "" {
		b.where(`(coalesce(u.email_key, '') collate "C" like ?::text or u.name_key like ?::text)`, prefix(auth.EmailKey(q.Prefix)), prefix(auth.NameKey(q.Prefix)))
	}
	if q.Role != "" {
		b.where(`u.roles <> '{}' and u.roles @> array[?::text]`, q.Role)
	}
	if q.Banned != nil && *q.Banned {
		b.where(`u.banned_until > ?::timestamptz`, q.Now)
	} else if q.Banned != nil {
		b.where(`(u.banned_until is null or u.banned_until <= ?::timestamptz)`, q.Now)
	}
	if q.Confirmed != nil {
		b.where(`(u.email_verified_at is not null or u.phone_verified_at is not null) = ?::boolean`, *q.Confirmed)
	}
	if q.MFA != nil {
		b.where(`u.mfa_enabled = ?::boolean`, *q.MFA)
	}
	for _, bound := range []struct {
		condition string
		at        time.Time
	}{
		{`u.created_at >= ?::timestamptz`, q.CreatedFrom}, {`u.created_at < ?::timestamptz`, q.CreatedTo},
		{`u.last_sign_in_at >= ?::timestamptz`, q.SignedInFrom}, {`coalesce(u.last_sign_in_at, '-infinity') < ?::timestamptz`, q.SignedInTo},
	} {
		if !bound.at.IsZero() {
			b.where(bound.condition, bound.at)
		}
	}
	order, ok := orders[q.Sort]
	if !ok {
		order = orders[auth.SortCreated]
	}
	direction, than := "", ">"
	if q.Desc {
		direction, than = " desc", "<"
	}
	if c := q.After; c != nil {
		var at any = c.Email
		switch {
		case q.Sort == auth.SortEmail:
		case c.Time.IsZero():
			at = "-infinity"
		default:
			at = c.Time.UTC().Format(time.RFC3339Nano)
		}
		b.where(`(`+order.columns+`, u.id) `+than+` (?::text::`+order.cursor+`, ?::uuid)`, at, c.ID)
	}
	b.add(` order by `+order.columns+direction+`, u.id`+direction+` limit ?::integer`, q.Limit)
	return b
}

// prefix is a pattern for what begins so.
func prefix(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s) + "%"
}

// ListUsers lists accounts.
func (s *Store) ListUsers(ctx context.Context, q auth.UserQuery) ([]auth.User, error) {
	b := usersQuery(q)
	list := []auth.User{}
	err := s.do(ctx, func(ctx context.Context, on querier) error {
		list = list[:0]
		rows, err := on.Query(ctx, s.sql(b.sql.String()), b.args...)
		if err != nil {
			return err
		}
		list, err = pgx.AppendRows(list, rows, func(row pgx.CollectableRow) (auth.User, error) {
			var r userRow
			if err := row.Scan(r.into()...); err != nil {
				return auth.User{}, err
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
