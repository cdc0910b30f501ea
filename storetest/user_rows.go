package storetest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/authmount/auth/store"
)

// userRows compares AdminStore.ListUserRows with AdminStore.ListUsers.
func userRows() checks {
	return checks{
		"rows are the accounts of a list, page by page": func(b *bench) {
			b.crowd()
			for name, q := range queries() {
				q.Limit = 5
				for range 10 {
					b.rowsOf(name, q)
					list, err := b.admin.ListUsers(b.ctx(), q)
					b.ok(err)
					if len(list) < q.Limit {
						break
					}
					q.After = q.Cursor(list[len(list)-1])
				}
			}
		},
		"rows have metadata as they were given": func(b *bench) {
			u := b.whole()
			_, err := b.update(u.ID, store.UserPatch{
				UserMetadata: map[string]any{"a \"quoted\" \\ name": "with <b>, & \n and \u2028", "ü": []any{nil, true, 1.5, 12345678901.0, map[string]any{}}},
				AppMetadata:  map[string]any{},
			})
			b.ok(err)
			b.rowsOf("of texts that need escapes", store.UserQuery{Limit: 10, Now: now})
			for range 2 {
				list, err := b.admin.ListUserRows(b.ctx(), store.UserQuery{Limit: 10, Now: now})
				b.ok(err)
				need(b, "the number of rows", len(list), 1)
				equal(b, "what there is for no metadata", strings.TrimSpace(string(list[0].AppMetadataJSON)), "{}")
				list[0].Roles[0], list[0].Identities[0].Subject, list[0].UserMetadataJSON[0] = "x", "x", 'x'
			}
		},
		"no rows are no error": func(b *bench) {
			list, err := b.admin.ListUserRows(b.ctx(), store.UserQuery{Limit: 10, Now: now})
			b.ok(err)
			equal(b, "the number of rows", len(list), 0)
		},
	}
}

// rowsOf checks that the rows of a query match its list.
func (b *bench) rowsOf(name string, q store.UserQuery) {
	b.Helper()
	want, err := b.admin.ListUsers(b.ctx(), q)
	b.ok(err)
	rows, err := b.admin.ListUserRows(b.ctx(), q)
	b.of("%s", name).ok(err)
	for i := range want { // lists may have an empty map or nil
		for _, m := range []*map[string]any{&want[i].UserMetadata, &want[i].AppMetadata} {
			if len(*m) == 0 {
				*m = nil
			}
		}
	}
	got := []store.User{}
	for i, r := range rows {
		about := b.of("%s, row %d", name, i)
		equal(about, "the maps of metadata", fmt.Sprint(r.UserMetadata, r.AppMetadata), fmt.Sprint(store.User{}.UserMetadata, store.User{}.AppMetadata))
		r.UserMetadata, r.AppMetadata = about.object(r.UserMetadataJSON), about.object(r.AppMetadataJSON)
		got = append(got, r.User)
	}
	equal(b.of("%s", name), "the rows", got, want)
}

// object decodes metadata.
func (b *bench) object(text json.RawMessage) map[string]any {
	b.Helper()
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil || m == nil {
		b.wrong("metadata", string(text), "the text of an object")
	}
	if len(m) == 0 {
		return nil
	}
	return m
}
