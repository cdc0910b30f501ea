package admin

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// metadataFilter begins the parameters that name members of the metadata.
const metadataFilter = "metadata."

func (m *Admin) handleListUsers(who Actor, w http.ResponseWriter, r *http.Request) error {
	v := m.values(r)
	p := v.userFilters()
	p.Limit = v.limit()
	switch v.text("count") {
	case "":
	case "estimate":
		p.Count = true
	default:
		v.fault("count", "has to be estimate")
	}
	query := fingerprint(v.from)
	if c := v.text("cursor"); c != "" {
		var at userCursor
		if err := m.readCursor(c, &at); err != nil {
			return err
		}
		if at.Query != query {
			return m.kit.Invalid("cursor", "is one of another list")
		}
		p.After = &at.UserCursor
	}
	if err := v.done(); err != nil {
		return err
	}
	page, err := m.ListUsers(r.Context(), who, p)
	if err != nil {
		return err
	}
	return m.writeUsers(w, page, query)
}

// userFilters are the parameters that pick accounts, and their order.
func (v *values) userFilters() ListUsersParams {
	p := ListUsersParams{Search: v.text("q"), UserQuery: store.UserQuery{
		Email: v.address("email", auth.NormalizeEmail), Phone: v.address("phone", auth.NormalizePhone), Provider: v.text("provider"), Subject: v.text("subject"),
		Role: v.text("role"), MFA: v.flag("mfa"), Metadata: v.members(metadataFilter),
		CreatedFrom: v.time("created_from"), CreatedTo: v.time("created_to"),
		SignedInFrom: v.time("signed_in_from"), SignedInTo: v.time("signed_in_to"),
		Sort: store.UserSort(v.text("sort")), Now: v.m.kit.Now(),
	}}
	if ids := v.text("ids"); ids != "" {
		p.IDs = strings.Split(ids, ",")
	}
	switch v.text("status") {
	case "":
	case "active":
		p.Banned, p.Confirmed = ptr(false), ptr(true)
	case "banned":
		p.Banned = ptr(true)
	case "unconfirmed":
		p.Banned, p.Confirmed = ptr(false), ptr(false)
	case "invited": // those of the unconfirmed whom nothing but a link that is mailed lets in
		p.Banned, p.Confirmed, p.Password = ptr(false), ptr(false), ptr(false)
	default:
		v.fault("status", "has to be active, banned, unconfirmed or invited")
	}
	switch v.text("order") {
	case "", "desc":
		p.Desc = true
	case "asc":
	default:
		v.fault("order", "has to be asc or desc")
	}
	return p
}

func (m *Admin) writeUsers(w http.ResponseWriter, page UserPage, query string) error {
	type count struct {
		Users int64 `json:"users"`
		Exact bool  `json:"exact"`
	}
	out := struct {
		Users      []userView `json:"users"`
		Matched    *string    `json:"matched"`
		Count      *count     `json:"count"`
		NextCursor *string    `json:"next_cursor"`
	}{Users: []userView{}, Matched: optional(string(page.Matched))}
	for _, u := range page.Users {
		out.Users = append(out.Users, m.view(u))
	}
	if c := page.Count; c != nil {
		out.Count = &count{c.N, c.Exact}
	}
	if page.Next != nil {
		out.NextCursor = ptr(cursorOf(userCursor{*page.Next.After, query}))
	}
	return m.kit.WriteJSON(w, http.StatusOK, out)
}

// userCursor is a place in a list of accounts, which belongs to its query.
type userCursor struct {
	store.UserCursor

	Query string `json:"query"`
}

// fingerprint tells queries apart, but for which page of them is asked for.
func fingerprint(query url.Values) string {
	same := url.Values{}
	for name, list := range query {
		if name != "cursor" && name != "limit" && name != "count" {
			same[name] = list
		}
	}
	sum := sha256.Sum256([]byte(same.Encode()))
	return hex.EncodeToString(sum[:8])
}

// members are parameters whose names begin so, by the rest of their names.
func (v *values) members(prefix string) map[string]string {
	var all map[string]string
	for name := range v.from {
		if member, ok := strings.CutPrefix(name, prefix); ok {
			if all == nil {
				all = map[string]string{}
			}
			all[member] = v.text(name)
		}
	}
	return all
}

// address is a parameter that people are reached at.
func (v *values) address(name string, clean func(string) (string, error)) string {
	s := v.text(name)
	if s == "" {
		return ""
	}
	s, err := clean(s)
	if err != nil {
		v.fault(name, err.Error())
	}
	return s
}

func (m *Admin) handleLookupUser(who Actor, w http.ResponseWriter, r *http.Request) error {
	v := m.values(r)
	key := store.UserKey{
		Email: v.address("email", auth.NormalizeEmail), Phone: v.address("phone", auth.NormalizePhone),
		Provider: v.text("provider"), Subject: v.text("subject"),
	}
	if err := v.done(); err != nil {
		return err
	}
	a, err := m.LookupUser(r.Context(), who, key)
	return m.writeAccount(w, a, err)
}
