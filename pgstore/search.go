package pgstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

// way is a condition of a list of accounts in two forms: the statement for the ids of all
// accounts that match, by an index, and the condition on one account u. Postgres itself cannot
// choose, because it finds no rows by an "or" of two tables. The second form is within a
// coalesce, of which Postgres expects that half of all rows match, and so reads them in the
// list's order.
type way struct {
	ids, check string
	args       []any // of either form
}

// waysOf returns the conditions of a query that are ways.
func waysOf(q store.UserQuery) (ways []way) {
	if q.Prefix != "" {
		email, name := prefix(store.EmailKey(q.Prefix)), prefix(store.NameKey(q.Prefix))
		ways = append(ways, way{
			ids: `select m.id from auth.users m where coalesce(m.email_key, '') collate "C" like ?::text and m.email_key is not null
		union all select n.id from auth.users n where n.name_key like ?::text
		union all select w.user_id from auth.user_words w where w.word like ?::text`,
			// "offset 0" looks up the words of one account instead of reading all that match.
			check: `coalesce(u.email_key like ?::text or u.name_key like ?::text
		or exists (select from auth.user_words w where w.user_id = u.id and w.word like ?::text offset 0), false)`,
			args: []any{email, name, name},
		})
	}
	if q.Domain != "" {
		ways = append(ways, way{
			ids:   `select m.id from auth.users m where split_part(m.email_key, '@', -1) collate "C" = ?::text`,
			check: `coalesce(split_part(u.email_key, '@', -1) = ?::text, false)`,
			args:  []any{store.DomainKey(q.Domain)},
		})
	}
	return ways
}

// prefix returns a LIKE pattern for texts that begin with s.
func prefix(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s) + "%"
}

// fewUsers is the highest number of matches of a way that a list reads and sorts. If all ways
// have more, reading the accounts in the list's order fills a page soon.
const fewUsers = 5000

// narrow returns the way of a query with the fewest matches, or -1 if all have more than
// fewUsers.
func (s *Store) narrow(ctx context.Context, on querier, ways []way) (best int, err error) {
	best, fewest := -1, int64(fewUsers+1)
	if len(ways) == 0 {
		return best, nil
	}
	b := &query{}
	b.sql.WriteString("select array[")
	for i, w := range ways {
		if i > 0 {
			b.sql.WriteString(", ")
		}
		b.add(`(select count(*) from (`+w.ids+fmt.Sprintf(` limit %d) found)`, fewUsers+1), w.args...)
	}
	b.sql.WriteString("]")
	err = s.readList(ctx, on, b, func(rows pgx.Rows) error {
		counts, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[[]int64])
		for i, n := range counts {
			if n < fewest {
				best, fewest = i, n
			}
		}
		return err
	})
	return best, err
}

// listUsers reads a page of accounts.
func (s *Store) listUsers(ctx context.Context, q store.UserQuery, read func(pgx.Rows) error) error {
	return tooBroad(s.do(ctx, func(ctx context.Context, on querier) error {
		best, err := s.narrow(ctx, on, waysOf(q))
		if err != nil {
			return err
		}
		return s.readList(ctx, on, usersQuery(q, best), read)
	}))
}
