package sqlitestore

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/authmount/auth/store"
)

// way is a condition of a list of accounts that an index serves, in two forms: the statement
// for the ids of all accounts that match, and the condition on one account u, which uses no
// index that would find the account by it.
type way struct {
	ids, check string
	ordered    string // check in a form whose index has the list's order; may be empty
	args       []any  // of each form
}

// waysOf returns the conditions of a query that are ways.
func waysOf(q *store.UserQuery) (ways []way) {
	if q.Prefix != "" {
		email, name := store.EmailKey(q.Prefix), store.NameKey(q.Prefix)
		ways = append(ways, way{
			ids: `select u.id from auth_users u where coalesce(u.email_key, '') >= ? and coalesce(u.email_key, '') < ? and coalesce(u.email_key, '') > ''
				union all select u.id from auth_users u where u.name_key <> '' and u.name_key >= ? and u.name_key < ?
				union all select w.user_id from auth_user_words w where w.word >= ? and w.word < ?`,
			check: `(+u.email_key >= ? and +u.email_key < ? or +u.name_key >= ? and +u.name_key < ?
				or exists (select 1 from auth_user_words w where w.user_id = u.id and w.word >= ? and w.word < ?))`,
			args: []any{email, email + last, name, name + last, name, name + last},
		})
	}
	if q.Domain != "" {
		w := way{
			ids:   `select u.id from auth_users u where u.email_domain = ?`,
			check: `+u.email_domain = ?`,
			args:  []any{store.DomainKey(q.Domain)},
		}
		if q.Sort == "" || q.Sort == store.SortCreated {
			w.ordered = `u.email_domain = ?`
		}
		ways = append(ways, w)
	}
	for _, name := range slices.Sorted(maps.Keys(q.Metadata)) {
		values := []string{}
		for _, v := range store.MetadataValues(q.Metadata[name]) {
			values = append(values, fieldOf(v))
		}
		ways = append(ways, way{
			ids:   `select f.user_id from auth_user_fields f where f.name = ? and f.value in (select value from json_each(?))`,
			check: `exists (select 1 from auth_user_fields f where f.user_id = u.id and f.name = ? and f.value in (select value from json_each(?)))`,
			args:  []any{name, jsonOf(values)},
		})
	}
	if q.Role != "" {
		ways = append(ways, way{
			ids:   `select r.user_id from auth_user_roles r where r.role = ?`,
			check: `exists (select 1 from auth_user_roles r where r.user_id = u.id and r.role = ?)`,
			args:  []any{q.Role},
		})
	}
	if q.Banned != nil && *q.Banned {
		ways = append(ways, way{
			ids:   `select u.id from auth_users u where u.banned_until > ?`,
			check: `+u.banned_until > ?`,
			args:  []any{micros(q.Now)},
		})
	}
	return ways
}

// fewUsers is the highest number of matches of a way that a list reads and sorts. If all ways
// have more, reading the accounts in the list's order fills a page soon.
const fewUsers = 5000

// pick adds all conditions of a query except its place in the list. few reports whether
// the statement finds the accounts by a way with few matches. SQLite has no statistics of the
// tables, so the index entries are counted here.
func (t *tx) pick(b *query, q *store.UserQuery) (few bool) {
	ways := waysOf(q)
	best, fewest := -1, fewUsers+1
	for i, w := range ways {
		n := value[int](t, `select count(*) from (`+w.ids+` limit ?)`, append(slices.Clone(w.args), fewest)...)
		if n < fewest {
			best, fewest = i, n
		}
	}
	for i, w := range ways {
		switch {
		case i == best:
			b.where(`u.id in (`+w.ids+`)`, w.args...)
		case best < 0 && w.ordered != "":
			b.where(w.ordered, w.args...)
		default:
			b.where(w.check, w.args...)
		}
	}
	b.pickUsers(q)
	return best >= 0
}

// countUsers returns the statement that counts the index entries of a query that is one way;
// nil for any other query.
func countUsers(q *store.UserQuery) *query {
	ways, rest := waysOf(q), &query{}
	if rest.pickUsers(q); len(ways) != 1 || rest.sql != "" {
		return nil
	}
	return &query{sql: `with found (id) as (` + ways[0].ids + `) select count(distinct id) from found`, args: ways[0].args}
}

// putWords adds the texts by which lists find the name of an account.
func (t *tx) putWords(u *store.User) {
	for _, word := range store.NameWords(u.FullName) {
		t.exec(`insert into auth_user_words (word, user_id) values (?, ?)`, word, u.ID)
	}
}

// putFields adds the metadata by which lists find an account.
func (t *tx) putFields(id string, fields map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		t.exec(`insert into auth_user_fields (name, value, user_id) values (?, ?, ?)`, name, fields[name], id)
	}
}

// searchable returns the members of metadata that store.UserQuery.Metadata can match.
func searchable(metadata map[string]any) map[string]string {
	fields := map[string]string{}
	for name, v := range metadata {
		var kept any
		if json.Unmarshal([]byte(fieldOf(v)), &kept) != nil {
			continue // reported where all metadata are encoded
		}
		switch kept.(type) {
		case string, float64, bool, nil:
			fields[name] = fieldOf(kept)
		}
	}
	return fields
}

// fieldOf returns a value as JSON.
func fieldOf(v any) string {
	raw, _ := json.Marshal(v) // an error leaves no JSON
	return string(raw)
}
