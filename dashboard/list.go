package dashboard

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/store"
)

// query is what of the page's address an endpoint is asked with, and at which page.
func (v *visit) query(names ...string) url.Values {
	q := v.filtered(names...)
	if cursor := v.r.URL.Query().Get("cursor"); cursor != "" {
		q.Set("cursor", cursor)
	}
	return q
}

// filtered is what a list is asked by, whichever page of it. A name that ends in a dot
// stands for all that begin so.
func (v *visit) filtered(names ...string) url.Values {
	q := url.Values{}
	for name, list := range v.r.URL.Query() {
		begin, _, dotted := strings.Cut(name, ".")
		if (slices.Contains(names, name) || dotted && slices.Contains(names, begin+".")) && list[0] != "" {
			q.Set(name, list[0])
		}
	}
	for _, name := range []string{"created_from", "created_to", "signed_in_from", "signed_in_to", "since", "before", "from", "to"} {
		if day := q.Get(name); day != "" && !strings.Contains(day, "T") { // a browser's date, in UTC
			q.Set(name, day+"T00:00:00Z")
		}
	}
	return q
}

// byAddress puts ids in place of the addresses and numbers of accounts that people know
// them by. One that nobody has is left for the operation to judge.
func (v *visit) byAddress(q url.Values, names ...string) url.Values {
	for _, name := range names {
		if !strings.ContainsAny(q.Get(name), "@+") || !v.may("GET /users") {
			continue
		}
		o, err := v.shown(v.d.adm.ListUsers(v.ctx, v.who, admin.ListUsersParams{UserFilter: admin.UserFilter{Search: q.Get(name)}, Limit: 1}))
		if list := o.list("users"); err == nil && len(list) == 1 && (o.str("matched") == "email" || o.str("matched") == "phone") {
			q.Set(name, list[0].str("id"))
		}
	}
	return q
}

// filters are fields that a list is asked by: they are in its address.
func (v *visit) filters(fields ...field) *form {
	q := v.r.URL.Query()
	for i := range fields {
		f := &fields[i]
		f.Label = v.t(f.Label)
		if f.Value = q.Get(f.Name); f.Type == "date" { // a link may name an instant, which such a field does not take
			f.Value, _, _ = strings.Cut(f.Value, "T")
		}
		f.Options = slices.Clone(f.Options)
		for j := range f.Options {
			f.Options[j].Chosen = slices.Contains(q[f.Name], f.Options[j].Value) || f.Type == "select" && f.Options[j].Value == f.Value
		}
	}
	out := &form{To: v.r.URL.Path, Method: "get", Submit: v.t("Show"), Fields: fields}
	if len(fields) > atOnce+1 {
		out.Fields, out.More = fields[:atOnce], fields[atOnce:]
		out.Open = slices.ContainsFunc(out.More, func(f field) bool { return f.Value != "" })
	}
	return out
}

// atOnce is how many filters are shown; the others are folded away.
const atOnce = 3

// choices are the values of a select, with their names.
func (v *visit) choices(pairs ...string) []option {
	var list []option
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, option{Value: pairs[i], Text: v.t(pairs[i+1])})
	}
	return list
}

// next is the page after, by the cursor that an endpoint gave.
func (v *visit) next(o object) string {
	cursor := o.str("next_cursor")
	if cursor == "" {
		return ""
	}
	return v.here(func(q url.Values) { q.Set("cursor", cursor) })
}

// columns are heads of a table without an order to choose.
func (v *visit) columns(names ...string) []column {
	var list []column
	for _, name := range names {
		list = append(list, column{Text: v.t(name)})
	}
	return list
}

// user is a cell that leads to an account.
func (v *visit) user(id, label string) cell {
	if label == "" {
		label = id
	}
	if id == "" || !v.may("GET /users/{id}") {
		return cell{Text: label}
	}
	return cell{Text: label, To: v.path("/users/" + url.PathEscape(id))}
}

// names are what accounts are called, by their ids, for lists of something else; nil
// for visitors who may not read accounts. An account that is gone has no name.
func (v *visit) names(ids ...string) map[string]string {
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" })
	if len(ids) == 0 || !v.may("GET /users") {
		return nil
	}
	names := map[string]string{}
	for some := range slices.Chunk(ids, store.MaxQueryIDs) {
		found, err := v.shown(v.d.adm.ListUsers(v.ctx, v.who, admin.ListUsersParams{UserFilter: admin.UserFilter{IDs: some}, Limit: store.MaxQueryIDs}))
		if err != nil {
			return names // ids do for names
		}
		for _, u := range found.list("users") {
			names[u.str("id")] = u.label()
		}
	}
	return names
}

// ids are what members of a list's elements say.
func ids(list []object, members ...string) []string {
	var out []string
	for _, o := range list {
		for _, m := range members {
			out = append(out, o.str(m))
		}
	}
	return out
}

// listed is a list as far as it can be: a query that the operation refuses is told of,
// and shows nothing.
func listed[P, R any](v *visit, p *page, query url.Values, do func(context.Context, admin.Actor, P) (R, error)) (object, error) {
	o, err := find(v, query, do)
	switch e := asError(err); {
	case e != nil && (e.Code == auth.CodeValidationFailed || e.Code == auth.CodeQueryTooBroad):
		p.Blocks = append(p.Blocks, block{Text: v.problemText(e), Warn: true})
		p.Refused = true
		return nil, nil
	}
	return o, err
}

// redirects are where pages may lead to: the addresses of the list, and what is at the top
// of those that stand for everything below.
func (v *visit) redirects() []string {
	var list []string
	for _, p := range v.d.kit.Site().Redirects {
		if strings.HasPrefix(p, "http") {
			list = append(list, strings.TrimSuffix(p, "*"))
		}
	}
	return list
}
