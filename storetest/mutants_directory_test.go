package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
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
		"counts know no filters":      lists(counts, func(q *store.UserQuery) { *q = store.UserQuery{Limit: q.Limit, Now: q.Now} }),
		"filling fills nothing":       fills("the buckets named are filled, and no others", func(c *store.FillLimits) { c.Fill = nil }),
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
