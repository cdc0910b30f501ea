package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/store"
)

// crowd adds accounts that differ in every field that lists filter and sort by. Some have
// equal sort fields.
func (b *bench) crowd() []store.User {
	b.Helper()
	var list []store.User
	for i := range 24 {
		nu := b.newUser("")
		u := &nu.User
		u.CreatedAt = now.Add(time.Duration(i/3) * minute)
		u.UpdatedAt = u.CreatedAt
		if i%5 != 0 {
			u.Email = fmt.Sprintf("%c%d_%%@%s", 'a'+rune(i%4), i, []string{"Example.com", "mail.Example.com", "example.com.org"}[i/8])
		}
		if i%2 == 0 {
			u.EmailVerifiedAt = now
		}
		if i%7 == 0 {
			u.FullName = fmt.Sprintf("Ünal A_%d\\", i)
		}
		if i%7 == 2 {
			u.FullName = fmt.Sprintf("Jean-Luc O'Neill %d Ünalan", i)
		}
		if i%7 == 4 {
			u.FullName = "@example.com 李 Jose\u0301 a" // no address
		}
		if i%3 != 0 {
			u.LastSignInAt = now.Add(time.Duration(i/6) * time.Hour)
		}
		if i%6 == 1 {
			u.BannedUntil = now.Add(minute)
		}
		if i%6 == 2 {
			u.BannedUntil = now // expired, to the microsecond
		}
		if i%4 == 1 {
			u.Roles = []string{"editor", "other"}
		}
		if i%6 == 3 {
			u.Phone = fmt.Sprintf("+49301234%03d", i)
		}
		if i%3 == 1 {
			u.Identities = []store.Identity{{ID: b.id(), Provider: []string{"google", "github"}[i%2], Subject: fmt.Sprint(i), CreatedAt: u.CreatedAt}}
		}
		if i%4 > 1 {
			nu.PasswordHash = ""
		}
		u.UserMetadata = map[string]any{"password": nu.PasswordHash != ""}
		switch i % 5 {
		case 0:
			u.AppMetadata = map[string]any{"plan": "pro", "seats": float64(i), "in": map[string]any{"plan": "deep"}}
		case 1:
			u.AppMetadata = map[string]any{"plan": []any{"pro"}, "seats": "5", "on": i%2 == 0, "left": nil}
		}
		made, err := b.create(nu)
		b.ok(err)
		list = append(list, made)
	}
	return list
}

// expected reports whether a query picks a user.
func expected(u store.User, q store.UserQuery) bool {
	key := ""
	if u.Email != "" {
		key = store.EmailKey(u.Email)
	}
	rest := []bool{
		q.Prefix == "" || key != "" && strings.HasPrefix(key, store.EmailKey(q.Prefix)) || store.NameMatches(u.FullName, q.Prefix),
		q.Domain == "" || strings.HasSuffix(key, "@"+store.DomainKey(q.Domain)),
		q.Role == "" || slices.Contains(u.Roles, q.Role),
		q.Banned == nil || *q.Banned == u.Banned(q.Now),
		q.ID == "" || q.ID == u.ID,
		len(q.IDs) == 0 || slices.Contains(q.IDs, u.ID),
		q.Email == "" || key == store.EmailKey(q.Email),
		q.Phone == "" || u.Phone == q.Phone,
		q.Provider == "" || slices.ContainsFunc(u.Identities, func(i store.Identity) bool {
			return i.Provider == q.Provider && (q.Subject == "" || i.Subject == q.Subject)
		}),
		q.HasMetadata(u.AppMetadata),
		q.Confirmed == nil || *q.Confirmed == !u.Unverified(),
		q.MFA == nil || *q.MFA == u.MFAEnabled,
		q.Password == nil || *q.Password == u.UserMetadata["password"],
		q.CreatedFrom.IsZero() || !u.CreatedAt.Before(q.CreatedFrom),
		q.CreatedTo.IsZero() || u.CreatedAt.Before(q.CreatedTo),
		q.SignedInFrom.IsZero() || !u.LastSignInAt.Before(q.SignedInFrom),
		q.SignedInTo.IsZero() || u.LastSignInAt.Before(q.SignedInTo),
	}
	return !slices.Contains(rest, false)
}

// queries returns the tested queries.
func queries() map[string]store.UserQuery {
	all := map[string]store.UserQuery{}
	for name, q := range map[string]store.UserQuery{
		"all":                       {},
		"by role":                   {Role: "editor"},
		"by a role of nobody":       {Role: "edit"},
		"banned":                    {Banned: ptr(true)},
		"not banned":                {Banned: ptr(false)},
		"confirmed":                 {Confirmed: ptr(true)},
		"not confirmed":             {Confirmed: ptr(false)},
		"with a factor":             {MFA: ptr(true)},
		"without":                   {MFA: ptr(false)},
		"with a password":           {Password: ptr(true)},
		"without one":               {Password: ptr(false)},
		"that nobody can enter yet": {Password: ptr(false), Confirmed: ptr(false), Banned: ptr(false)},
		"made within":               {CreatedFrom: now.Add(2 * minute), CreatedTo: now.Add(5 * minute)},
		"signed in since":           {SignedInFrom: now.Add(time.Hour)},
		"not signed in since":       {SignedInTo: now.Add(time.Hour)},
		"by the begin of a name":    {Prefix: "ÜNAL a_"},
		"by the begin of mail":      {Prefix: "A1"},
		"by a word of a name":       {Prefix: "oN"},
		"by a word after a hyphen":  {Prefix: "LUC o'"},
		"by words":                  {Prefix: "o'neill 2"},
		"by a number in a name":     {Prefix: "16"},
		"by a word of mail or name": {Prefix: "a"},
		"by a letter without case":  {Prefix: "李"},
		"by the end of a word":      {Prefix: "eill"},
		"by a sign in a name":       {Prefix: "@ex"},
		"by a space":                {Prefix: " "},
		"by a domain":               {Domain: "EXAMPLE.com"},
		"by a longer domain":        {Domain: "mail.example.com"},
		"by the end of a domain":    {Domain: "com.org"},
		"by a domain of nobody":     {Domain: "%.com"},
		"domain, name and metadata": {Domain: "example.com", Prefix: "a", Metadata: map[string]string{"plan": "pro"}},
		"wildcards are none":        {Prefix: "%"},
		"nor is one letter":         {Prefix: "a1_"},
		"a backslash is a letter":   {Prefix: `\`},
		"by a whole address":        {Email: "A4_%@example.COM"},
		"by an address of nobody":   {Email: "a4_@example.com"},
		"by a number":               {Phone: "+49301234009"},
		"by a provider":             {Provider: "google"},
		"by an identity":            {Provider: "google", Subject: "4"},
		"by nobody's identity":      {Provider: "github", Subject: "4"},
		"by metadata":               {Metadata: map[string]string{"plan": "pro"}},
		"by a number or its text":   {Metadata: map[string]string{"seats": "5"}},
		"by a truth":                {Metadata: map[string]string{"on": "true"}},
		"by null":                   {Metadata: map[string]string{"left": "null"}},
		"by several members":        {Metadata: map[string]string{"plan": "pro", "seats": "10"}},
		"by a member of nobody's":   {Metadata: map[string]string{"in": "deep"}},
		"all filters":               {Email: "a4_%@example.com", Provider: "google", Subject: "4", Prefix: "a4", MFA: ptr(false), Confirmed: ptr(true), Banned: ptr(false)},
		"editors, confirmed, named": {Prefix: "b", Role: "editor", Confirmed: ptr(false), Banned: ptr(true)},
	} {
		for _, sort := range []store.UserSort{store.SortCreated, store.SortSignedIn, store.SortEmail} {
			q.Sort, q.Now = sort, now
			all[name+", by "+string(sort)] = q
		}
	}
	return all
}

// ids returns the ids of the users in a list.
func ids(list []store.User) []string {
	out := []string{}
	for _, u := range list {
		out = append(out, u.ID)
	}
	return out
}

// directory checks AdminStore.
func directory() checks {
	return checks{
		"lists hold whom a query picks, in its order, page by page": func(b *bench) {
			everybody := b.crowd()
			all := queries()
			for _, name := range slices.Sorted(maps.Keys(all)) {
				q := all[name]
				for _, q.Desc = range []bool{false, true} {
					q.After = nil
					var want []store.User
					for _, u := range everybody {
						if expected(u, q) {
							want = append(want, u)
						}
					}
					slices.SortFunc(want, func(x, y store.User) int { return q.Compare(q.Cursor(x), q.Cursor(y)) })
					for _, q.Limit = range []int{1, 5, 100} {
						b.pages(name, q, want)
					}
				}
			}
		},
		"by an id": func(b *bench) {
			everybody := b.crowd()
			b.pages("by an id", store.UserQuery{ID: everybody[3].ID, Limit: 5, Now: now}, everybody[3:4])
			b.pages("by nobody's id", store.UserQuery{ID: b.id(), Limit: 5, Now: now}, nil)
		},
		"by several ids": func(b *bench) {
			everybody := b.crowd()
			b.pages("by ids", store.UserQuery{IDs: []string{everybody[9].ID, b.id(), everybody[3].ID, strings.ToUpper(everybody[3].ID)}, Limit: 5, Now: now}, []store.User{everybody[3], everybody[9]})
		},
		"counts are of all that a query picks": func(b *bench) {
			everybody := b.crowd()
			for name, q := range queries() {
				n := int64(0)
				for _, u := range everybody {
					if expected(u, q) {
						n++
					}
				}
				q.Limit, q.After = 1, q.Cursor(everybody[2])
				got, err := b.admin.CountUsers(b.ctx(), q)
				b.of("%s", name).ok(err)
				equal(b.of("%s", name), "the count", got, store.Total{N: n, Exact: true})
			}
		},
		"searches follow the changes of an account": func(b *bench) {
			var id string
			find := func(what string, q store.UserQuery, want ...string) {
				b.Helper()
				q.Limit, q.Now = 5, now
				list, err := b.admin.ListUsers(b.ctx(), q)
				b.of("%s", what).ok(err)
				equal(b.of("%s", what), "the list", ids(list), append([]string{}, want...))
			}
			patch := func(p store.UserPatch) {
				b.Helper()
				_, err := b.update(id, p)
				b.ok(err)
			}
			plan := func(text string) store.UserQuery { return store.UserQuery{Metadata: map[string]string{"plan": text}} }
			u := b.newUser("ada@first.example")
			u.User.FullName, u.User.AppMetadata = "Ada Lovelace", map[string]any{"plan": "pro", "seats": 3}
			made, err := b.create(u)
			b.ok(err)
			id = made.ID
			_, err = b.create(b.newUser("other@second.example"))
			b.ok(err)
			find("a new name", store.UserQuery{Prefix: "love"}, id)
			find("a new address", store.UserQuery{Domain: "first.example"}, id)
			find("new metadata", plan("pro"), id)
			patch(store.UserPatch{FullName: ptr("Ada King")})
			find("the name before", store.UserQuery{Prefix: "love"})
			find("the name after", store.UserQuery{Prefix: "king"}, id)
			find("the address, after the name", store.UserQuery{Domain: "first.example"}, id)
			patch(store.UserPatch{Email: ptr("ada@third.example")})
			find("the domain before", store.UserQuery{Domain: "first.example"})
			find("the domain after", store.UserQuery{Domain: "third.example"}, id)
			find("the name, after the address", store.UserQuery{Prefix: "king"}, id)
			patch(store.UserPatch{AppMetadata: map[string]any{"plan": true, "seats": "3"}})
			find("metadata before", plan("pro"))
			find("metadata after", plan("true"), id)
			find("a text instead of a number", store.UserQuery{Metadata: map[string]string{"seats": "3"}}, id)
			patch(store.UserPatch{AppMetadata: map[string]any{}})
			find("no metadata", plan("true"))
			patch(store.UserPatch{Email: ptr("")})
			find("no address", store.UserQuery{Domain: "third.example"})
			patch(store.UserPatch{FullName: ptr("")})
			find("no name", store.UserQuery{Prefix: "king"})
		},
		"imported accounts are found, and neither anonymised nor deleted ones": func(b *bench) {
			find := func(want ...string) {
				b.Helper()
				for what, q := range map[string]store.UserQuery{
					"a word": {Prefix: "hop"}, "a domain": {Domain: "navy.example"}, "metadata": {Metadata: map[string]string{"plan": "pro"}},
				} {
					q.Limit, q.Now = 5, now
					list, err := b.admin.ListUsers(b.ctx(), q)
					b.of("%s", what).ok(err)
					equal(b.of("%s", what), "the list", ids(list), append([]string{}, want...))
				}
			}
			var rows []store.ImportedRow
			for i := range 2 {
				nu := b.newUser(fmt.Sprintf("%d@navy.example", i))
				nu.User.CreatedAt = now.Add(time.Duration(i) * minute)
				nu.User.FullName, nu.User.AppMetadata = "Grace B. Hopper", map[string]any{"plan": "pro"}
				rows = append(rows, store.ImportedRow{User: nu.User, PasswordHash: nu.PasswordHash})
			}
			results, err := b.admin.CreateUsers(b.ctx(), store.CreateUsers{Change: by(now), Users: rows})
			b.ok(err)
			equal(b, "the results", results, []error{nil, nil})
			first, second := rows[0].User.ID, rows[1].User.ID
			find(first, second)
			_, err = b.admin.AnonymizeUser(b.ctx(), store.AnonymizeUser{Change: by(now), UserID: first, Label: "label"})
			b.ok(err)
			find(second)
			b.ok(b.delete(second))
			find()
		},
		"an empty list is no error": func(b *bench) {
			list, err := b.admin.ListUsers(b.ctx(), store.UserQuery{Limit: 10, Now: now})
			b.ok(err)
			equal(b, "the list", list, []store.User{})
		},
		"a list holds whole accounts, and copies": func(b *bench) {
			u := b.whole()
			for range 2 {
				list, err := b.admin.ListUsers(b.ctx(), store.UserQuery{Limit: 10, Now: now})
				b.ok(err)
				need(b, "the list", list, []store.User{u})
				list[0].Roles[0], list[0].UserMetadata["a"], list[0].Identities[0].Subject = "x", "x", "x"
			}
		},
	}
}

// pages reads a list page by page and compares it with want.
func (b *bench) pages(name string, q store.UserQuery, want []store.User) {
	b.Helper()
	q.After = nil
	var got []string
	for range len(want) + 2 {
		list, err := b.admin.ListUsers(b.ctx(), q)
		b.ok(err)
		if len(list) > q.Limit {
			b.of("%s", name).wrong("the number of a page", len(list), fmt.Sprintf("at most %d", q.Limit))
			return
		}
		got = append(got, ids(list)...)
		if len(list) < q.Limit {
			break
		}
		q.After = q.Cursor(list[len(list)-1])
	}
	q.After = nil
	b.page(name, q, got, ids(want))
}
