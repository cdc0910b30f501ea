package dashboard

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/store"
)

// query returns the page's query parameters that an endpoint accepts, with the cursor.
func (v *visit) query(names ...string) url.Values {
	q := v.filtered(names...)
	if cursor := v.r.URL.Query().Get("cursor"); cursor != "" {
		q.Set("cursor", cursor)
	}
	return q
}

// filtered returns the filters of a list without the cursor. A name that ends in a dot
// matches all parameters with that prefix.
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

// byAddress replaces the email addresses and phone numbers of accounts by their ids. The
// operation checks a value that matches no account.
func (v *visit) byAddress(q url.Values, names ...string) url.Values {
	for _, name := range names {
		if !strings.ContainsAny(q.Get(name), "@+") || !v.may("GET /users") {
			continue
		}
		o, err := v.shown(v.d.adm.ListUsers(v.ctx, v.actor, admin.ListUsersParams{UserFilter: admin.UserFilter{Search: q.Get(name)}, Limit: 1}))
		if list := o.list("users"); err == nil && len(list) == 1 && (o.str("matched") == "email" || o.str("matched") == "phone") {
			q.Set(name, list[0].str("id"))
		}
	}
	return q
}

// filters returns the filter fields of a list. Their values are in the page's URL.
func (v *visit) filters(fields ...field) *form {
	q := v.r.URL.Query()
	for i := range fields {
		f := &fields[i]
		f.Label = v.t(f.Label)
		if f.Value = q.Get(f.Name); f.Type == "date" { // a link may hold an instant, a date field may not
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

// atOnce is the number of filters that are not folded away.
const atOnce = 3

// choices returns the options of a select from pairs of value and name.
func (v *visit) choices(pairs ...string) []option {
	var list []option
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, option{Value: pairs[i], Text: v.t(pairs[i+1])})
	}
	return list
}

// locales returns the choice of a person's language, among those of mails and pages.
func (v *visit) locales() field {
	f := field{Name: "locale", Label: v.t("Language"), Type: "select", Options: v.choices("", "The language of your browser")}
	for _, name := range slices.Sorted(slices.Values(v.d.kit.PageTexts().Names)) {
		f.Options = append(f.Options, option{Value: name, Text: cmp.Or(display.Self.Name(language.Make(name)), name)})
	}
	return f
}

// next returns the URL of the next page, or "".
func (v *visit) next(o object) string {
	cursor := o.str("next_cursor")
	if cursor == "" {
		return ""
	}
	return v.here(func(q url.Values) { q.Set("cursor", cursor) })
}

// columns returns column heads that cannot be sorted by.
func (v *visit) columns(names ...string) []column {
	var list []column
	for _, name := range names {
		list = append(list, column{Text: v.t(name)})
	}
	return list
}

// userCell returns a cell that links to an account.
func (v *visit) userCell(id, label string) cell {
	if label == "" {
		label = id
	}
	if id == "" || !v.may("GET /users/{id}") {
		return cell{Text: label}
	}
	return cell{Text: label, To: v.path("/users/" + url.PathEscape(id))}
}

// names returns the labels of accounts by id, or nil if the visitor may not read accounts.
// Deleted accounts have no label.
func (v *visit) names(ids ...string) map[string]string {
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" })
	if len(ids) == 0 || !v.may("GET /users") {
		return nil
	}
	names := map[string]string{}
	for some := range slices.Chunk(ids, store.MaxQueryIDs) {
		found, err := v.shown(v.d.adm.ListUsers(v.ctx, v.actor, admin.ListUsersParams{UserFilter: admin.UserFilter{IDs: some}, Limit: store.MaxQueryIDs}))
		if err != nil {
			return names // ids do instead
		}
		for _, u := range found.list("users") {
			names[u.str("id")] = u.label()
		}
	}
	return names
}

// ids returns the named members of all elements of a list.
func ids(list []object, members ...string) []string {
	var out []string
	for _, o := range list {
		for _, m := range members {
			out = append(out, o.str(m))
		}
	}
	return out
}

// listed calls an operation that lists records. If the operation refuses the query, the
// page shows the error and no list.
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

// redirects returns the configured redirect URLs; a wildcard is represented by its top.
func (v *visit) redirects() []string {
	var list []string
	for _, p := range v.d.kit.Site().Redirects {
		if strings.HasPrefix(p, "http") {
			list = append(list, strings.TrimSuffix(p, "*"))
		}
	}
	return list
}
