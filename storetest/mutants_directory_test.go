package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/store"
)

func directoryMutants() map[string]mutant {
	lists := func(check string, edit func(*store.UserQuery)) mutant {
		return caught("directory/"+check, func(b base) store.Store {
			return editsQuery{b, capability[store.AdminStore](b), edit}
		})
	}
	fills := func(check string, edit func(*store.FillLimits)) mutant {
		return caught("filling/"+check, func(b base) store.Store {
			return editsFilling{b, capability[store.AdminStore](b), edit}
		})
	}
	rows := func(check string, edit func(*store.UserQuery, []store.UserRow) []store.UserRow) mutant {
		return caught("rows/"+check, func(b base) store.Store {
			return editsRows{b, capability[store.AdminStore](b), edit}
		})
	}
	searches := func(check string, finds func(store.User, *store.UserQuery) bool) mutant {
		return caught("directory/"+check, func(b base) store.Store {
			return &searchesItself{base: b, AdminStore: capability[store.AdminStore](b), finds: finds, keep: func(*store.User, store.User) {}, first: map[string]store.User{}}
		})
	}
	keeps := func(check string, keep func(u *store.User, first store.User)) mutant {
		return caught("directory/"+check, func(b base) store.Store {
			return &searchesItself{base: b, AdminStore: capability[store.AdminStore](b), finds: found, keep: keep, first: map[string]store.User{}}
		})
	}
	const changed, gone = "searches follow the changes of an account", "imported accounts are found, and neither anonymised nor deleted ones"
	const given = "rows have metadata as they were given"
	const whole, counts = "lists hold whom a query picks, in its order, page by page", "counts are of all that a query picks"
	return map[string]mutant{
		"rows are of whomever": rows("rows are the accounts of a list, page by page", func(q *store.UserQuery, list []store.UserRow) []store.UserRow {
			q.Banned = nil
			return list
		}),
		"rows do not go on": rows("rows are the accounts of a list, page by page", func(q *store.UserQuery, list []store.UserRow) []store.UserRow {
			q.After = nil
			return list
		}),
		"rows have the metadata of the application twice": rows(given, func(_ *store.UserQuery, list []store.UserRow) []store.UserRow {
			for i := range list {
				list[i].UserMetadataJSON = list[i].AppMetadataJSON
			}
			return list
		}),
		"rows have null for no metadata": rows(given, func(_ *store.UserQuery, list []store.UserRow) []store.UserRow {
			for i := range list {
				list[i].AppMetadataJSON = json.RawMessage("null")
			}
			return list
		}),
		"rows have metadata that are no JSON": rows(given, func(_ *store.UserQuery, list []store.UserRow) []store.UserRow {
			for i := range list {
				list[i].UserMetadataJSON = bytes.ReplaceAll(list[i].UserMetadataJSON, []byte(`\\`), []byte(`\`))
			}
			return list
		}),
		"nobody is a row": rows("no rows are no error", func(_ *store.UserQuery, list []store.UserRow) []store.UserRow {
			return append(list, store.UserRow{UserMetadataJSON: json.RawMessage("{}"), AppMetadataJSON: json.RawMessage("{}")})
		}),
		"lists know no metadata":      lists(whole, func(q *store.UserQuery) { q.Metadata = nil }),
		"lists know no passwords":     lists(whole, func(q *store.UserQuery) { q.Password = nil }),
		"lists know no subjects":      lists(whole, func(q *store.UserQuery) { q.Subject = "" }),
		"lists know no whole address": lists(whole, func(q *store.UserQuery) { q.Email = "" }),
		"lists know no numbers":       lists(whole, func(q *store.UserQuery) { q.Phone = "" }),
		"lists know no ids":           lists("by an id", func(q *store.UserQuery) { q.ID = "" }),
		"lists know no lists of ids":  lists("by several ids", func(q *store.UserQuery) { q.IDs = nil }),
		"lists know no domains":       lists(whole, func(q *store.UserQuery) { q.Domain = "" }),
		"lists know only whole names": searches(whole, func(u store.User, q *store.UserQuery) bool {
			return found(u, q) && (q.Prefix == "" || byMail(u, q.Prefix) || strings.HasPrefix(store.NameKey(u.FullName), store.NameKey(q.Prefix)))
		}),
		"lists know no text across words": searches(whole, func(u store.User, q *store.UserQuery) bool {
			words := strings.Fields(store.NameKey(u.FullName))
			return found(u, q) && (q.Prefix == "" || byMail(u, q.Prefix) || slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, store.NameKey(q.Prefix)) }))
		}),
		"lists find names by any part": searches(whole, func(u store.User, q *store.UserQuery) bool {
			return found(u, q) || q.Prefix != "" && q.Domain == "" && strings.Contains(store.NameKey(u.FullName), store.NameKey(q.Prefix)) && q.HasMetadata(u.AppMetadata)
		}),
		"lists know no names": searches(whole, func(u store.User, q *store.UserQuery) bool {
			return found(u, q) && (q.Prefix == "" || byMail(u, q.Prefix))
		}),
		"lists know no starts of addresses": searches(whole, func(u store.User, q *store.UserQuery) bool {
			return found(u, q) && (q.Prefix == "" || store.NameMatches(u.FullName, q.Prefix))
		}),
		"domains are ends of addresses": searches(whole, func(u store.User, q *store.UserQuery) bool {
			rest := *q
			rest.Domain = ""
			return found(u, &rest) && strings.HasSuffix(store.EmailKey(u.Email), store.DomainKey(q.Domain))
		}),
		"names keep their first words":         keeps(changed, func(u *store.User, first store.User) { u.FullName = first.FullName }),
		"addresses keep their first domain":    keeps(changed, func(u *store.User, first store.User) { u.Email = first.Email }),
		"accounts keep their first metadata":   keeps(changed, func(u *store.User, first store.User) { u.AppMetadata = first.AppMetadata }),
		"anonymised accounts keep their names": keeps(gone, func(u *store.User, first store.User) { u.FullName = first.FullName }),
		"imports have no names":                keeps(gone, func(u *store.User, _ store.User) { u.FullName = "" }),
		"counts know no filters":               lists(counts, func(q *store.UserQuery) { *q = store.UserQuery{Limit: q.Limit, Now: q.Now} }),
		"filling fills nothing":                fills("the buckets named are filled, and no others", func(c *store.FillLimits) { c.Fill = nil }),
		"filling fills more": fills("the buckets named are filled, and no others", func(c *store.FillLimits) {
			c.Fill = append(c.Fill, store.Draw{Key: "b", Rate: store.Rate{Burst: 5, Per: time.Minute}, Cost: 5})
		}),
		"filling knows no number": fills("a bucket is filled to a number, and no fuller one is emptied", func(c *store.FillLimits) {
			for i := range c.Fill {
				c.Fill[i].Cost = 5
			}
		}),
		"filling knows no conditions": fills("nobody's buckets stay, and so do those of a change that is refused", func(c *store.FillLimits) { c.IfUsers = nil }),
	}
}

// editsQuery alters the query of each list.
type editsQuery struct {
	base
	store.AdminStore
	edit func(*store.UserQuery)
}

func (s editsQuery) ListUsers(ctx context.Context, q store.UserQuery) ([]store.User, error) {
	s.edit(&q)
	return s.AdminStore.ListUsers(ctx, q)
}

func (s editsQuery) CountUsers(ctx context.Context, q store.UserQuery) (store.Total, error) {
	s.edit(&q)
	return s.AdminStore.CountUsers(ctx, q)
}

// byMail and found report whether a search picks an account.
func byMail(u store.User, prefix string) bool {
	return u.Email != "" && strings.HasPrefix(store.EmailKey(u.Email), store.EmailKey(prefix))
}

func found(u store.User, q *store.UserQuery) bool {
	return (q.Prefix == "" || byMail(u, q.Prefix) || store.NameMatches(u.FullName, q.Prefix)) &&
		(q.Domain == "" || store.EmailDomain(u.Email) == store.DomainKey(q.Domain)) && q.HasMetadata(u.AppMetadata)
}

// searchesItself lists the accounts for which finds is true. Before, keep may replace fields
// by those with which the account was first listed.
type searchesItself struct {
	base
	store.AdminStore
	finds func(store.User, *store.UserQuery) bool
	keep  func(u *store.User, first store.User)
	first map[string]store.User
}

func (s *searchesItself) ListUsers(ctx context.Context, q store.UserQuery) ([]store.User, error) {
	all := q
	all.Prefix, all.Domain, all.Metadata, all.Limit = "", "", nil, 1000
	list, err := s.AdminStore.ListUsers(ctx, all)
	list = slices.DeleteFunc(list, func(u store.User) bool {
		if _, known := s.first[u.ID]; !known {
			s.first[u.ID] = u
		}
		s.keep(&u, s.first[u.ID])
		return !s.finds(u, &q)
	})
	return list[:min(len(list), q.Limit)], err
}

// editsRows returns other rows than requested.
type editsRows struct {
	base
	store.AdminStore
	edit func(*store.UserQuery, []store.UserRow) []store.UserRow
}

func (s editsRows) ListUserRows(ctx context.Context, q store.UserQuery) ([]store.UserRow, error) {
	s.edit(&q, nil)
	list, err := s.AdminStore.ListUserRows(ctx, q)
	return s.edit(&q, list), err
}

// editsFilling alters the list of the limits to fill.
type editsFilling struct {
	base
	store.AdminStore
	edit func(*store.FillLimits)
}

func (s editsFilling) FillLimits(ctx context.Context, c store.FillLimits) error {
	s.edit(&c)
	return s.AdminStore.FillLimits(ctx, c)
}
