package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// UserFilter picks accounts, and their order. An account has to match all fields that are
// set.
type UserFilter struct {
	// Search is an operator's search text: an id, a whole email address or phone number, an
	// @ with a whole domain, or the start of an email address or of any word of a name.
	Search string `query:"q"`

	Email        string            `query:"email"`
	Phone        string            `query:"phone"`
	Provider     string            `query:"provider"`
	Subject      string            `query:"subject"`
	Role         string            `query:"role"`
	MFA          *bool             `query:"mfa"`
	Metadata     map[string]string `query:"metadata."` // members of app_metadata and their texts
	CreatedFrom  time.Time         `query:"created_from"`
	CreatedTo    time.Time         `query:"created_to"`
	SignedInFrom time.Time         `query:"signed_in_from"`
	SignedInTo   time.Time         `query:"signed_in_to"`
	Sort         store.UserSort    `query:"sort"`
	IDs          []string          `query:"ids" is:"id"`
	Status       string            `query:"status"` // "active", "banned", "unconfirmed", "invited", "waiting"
	Order        string            `query:"order"`  // "asc", "desc"; empty: "desc"
}

// ListUsersParams pick accounts.
type ListUsersParams struct {
	UserFilter

	Limit  int    `query:"limit"`  // up to 200; 0: 50
	Count  string `query:"count"`  // "estimate": count all that match, too
	Cursor string `query:"cursor"` // UserPage.NextCursor of the page before
}

// userSearch is a UserFilter in the store's form.
type userSearch struct {
	store.UserQuery

	Search string
	Count  bool
	Waits  bool // has permissions of an operator that it has not accepted
}

// userSearch reads a filter. Errors: CodeValidationFailed.
func (m *Admin) userSearch(f UserFilter) (userSearch, error) {
	p := userSearch{Search: f.Search, UserQuery: store.UserQuery{
		Provider: f.Provider, Subject: f.Subject, Role: f.Role, MFA: f.MFA, Metadata: f.Metadata,
		CreatedFrom: f.CreatedFrom, CreatedTo: f.CreatedTo, SignedInFrom: f.SignedInFrom, SignedInTo: f.SignedInTo,
		Sort: f.Sort, IDs: f.IDs, Desc: f.Order != "asc", Now: m.kit.Now(),
	}}
	var err error
	if p.Email, p.Phone, err = m.addresses(f.Email, f.Phone); err != nil {
		return p, err
	}
	switch f.Status {
	case "":
	case "active":
		p.Banned, p.Confirmed = ptr(false), ptr(true)
	case "waiting":
		p.Waits = true
	case "banned":
		p.Banned = ptr(true)
	case "unconfirmed":
		p.Banned, p.Confirmed = ptr(false), ptr(false)
	case "invited": // unconfirmed accounts without a password, which only a link by mail signs in
		p.Banned, p.Confirmed, p.Password = ptr(false), ptr(false), ptr(false)
	default:
		return p, m.kit.Invalid("status", "has to be active, banned, unconfirmed, invited or waiting")
	}
	if f.Order != "" && f.Order != "asc" && f.Order != "desc" {
		return p, m.kit.Invalid("order", "has to be asc or desc")
	}
	return p, nil
}

// addresses normalises an email address and a phone number, each of which may be empty.
func (m *Admin) addresses(email, phone string) (string, string, error) {
	var err error
	if email != "" {
		if email, err = auth.NormalizeEmail(email); err != nil {
			return "", "", m.kit.Invalid("email", err.Error())
		}
	}
	if phone != "" {
		if phone, err = auth.NormalizePhone(phone); err != nil {
			return "", "", m.kit.Invalid("phone", err.Error())
		}
	}
	return email, phone, nil
}

// Matched is the interpretation of a search.
type Matched string

// Interpretations of a search.
const (
	MatchedID     Matched = "id"
	MatchedEmail  Matched = "email"
	MatchedPhone  Matched = "phone"
	MatchedDomain Matched = "domain" // of email addresses
	MatchedPrefix Matched = "prefix"
)

// UserPage is a page of accounts.
type UserPage struct {
	Users      []auth.User
	Matched    Matched            // the interpretation of UserFilter.Search; empty without
	Count      *store.Total       // if requested
	NextCursor *string            // of the page after; nil: this was the last
	Waiting    map[string]Waiting // by id, if UserFilter.Status is "waiting"

	next *store.UserQuery // the query for the page after
}

// ListUsers lists accounts. Errors: CodeValidationFailed, CodeQueryTooBroad (the
// filters together would read too much), and those of every operation ([Admin]).
func (m *Admin) ListUsers(ctx context.Context, who Actor, p ListUsersParams) (UserPage, error) {
	q, err := m.userSearch(p.UserFilter)
	if err != nil {
		return UserPage{}, err
	}
	if q.Count = p.Count == "estimate"; p.Count != "" && !q.Count {
		return UserPage{}, m.kit.Invalid("count", "has to be estimate")
	}
	query := fingerprint(p.UserFilter)
	at, err := readCursor[userCursor](m, p.Cursor)
	if err != nil {
		return UserPage{}, err
	}
	if at != nil {
		if at.Query != query {
			return UserPage{}, m.kit.Invalid("cursor", "belongs to another list")
		}
		q.After = &at.UserCursor
	}
	q.Limit = pageSize(p.Limit)
	page, err := m.pageOfUsers(ctx, who, q)
	if page.next != nil {
		page.NextCursor = cursorOf(&userCursor{*page.next.After, query})
	}
	if err == nil && q.Waits {
		page.Waiting, err = m.waiting(ctx, page.Users)
	}
	return page, err
}

// pageOfUsers lists accounts, and checks that the actor may see them.
func (m *Admin) pageOfUsers(ctx context.Context, who Actor, p userSearch) (UserPage, error) {
	if _, err := m.reader(ctx, who, opListUsers); err != nil {
		return UserPage{}, err
	}
	return m.listUsers(ctx, p)
}

// listUsers lists up to p.Limit accounts for an operation that has checked the actor.
func (m *Admin) listUsers(ctx context.Context, p userSearch) (UserPage, error) {
	var page UserPage
	q, matched, err := m.searchQuery(ctx, p)
	if err != nil {
		return UserPage{}, err
	}
	page.Matched = matched
	if page.Users, err = m.admin.ListUsers(ctx, q); err != nil {
		return UserPage{}, m.kit.StoreError(err)
	}
	if p.Count {
		n, err := m.admin.CountUsers(ctx, q)
		if err != nil {
			return UserPage{}, m.kit.StoreError(err)
		}
		page.Count = &n
	}
	if len(page.Users) == q.Limit {
		next := q
		next.After = q.Cursor(page.Users[len(page.Users)-1])
		page.next = &next
	}
	return page, nil
}

// listedUser is an account of a list, or after a change of its roles.
type listedUser struct {
	userView

	Waiting *waitingView `json:"waiting,omitempty"`
}

func (p UserPage) reply(m *Admin) reply {
	type count struct {
		Users int64 `json:"users"`
		Exact bool  `json:"exact"`
	}
	out := struct {
		Users      []listedUser `json:"users"`
		Matched    *string      `json:"matched"`
		Count      *count       `json:"count"`
		NextCursor *string      `json:"next_cursor"`
	}{Users: []listedUser{}, Matched: optional(string(p.Matched)), NextCursor: p.NextCursor}
	for _, u := range p.Users {
		listed := listedUser{userView: m.view(u)}
		if w, ok := p.Waiting[u.ID]; ok {
			listed.Waiting = viewWaiting(&w)
		}
		out.Users = append(out.Users, listed)
	}
	if c := p.Count; c != nil {
		out.Count = &count{c.N, c.Exact}
	}
	return reply{body: out}
}

// userCursor is a position in a list of accounts with one filter.
type userCursor struct {
	store.UserCursor

	Query string `json:"query"`
}

// fingerprint identifies a filter.
func fingerprint(f UserFilter) string {
	query, fields := url.Values{}, reflect.ValueOf(f)
	for i := range fields.NumField() {
		if v := fields.Field(i); !v.IsZero() {
			query.Set(fields.Type().Field(i).Tag.Get("query"), fmt.Sprint(reflect.Indirect(v)))
		}
	}
	sum := sha256.Sum256([]byte(query.Encode()))
	return hex.EncodeToString(sum[:8])
}

// searchQuery returns the query for a search, and the interpretation of its text.
func (m *Admin) searchQuery(ctx context.Context, p userSearch) (q store.UserQuery, matched Matched, err error) {
	q = p.UserQuery
	if p.Waits {
		table, err := m.kit.Roles(ctx)
		if err != nil {
			return q, "", err
		}
		q.Waiting = m.kit.OperatorRoles(table)
	}
	if p.Search != "" {
		if matched, err = m.search(ctx, p.Search, &q); err != nil {
			return q, "", err
		}
	}
	return q, matched, m.kit.StoreError(q.Check())
}

// search adds the text of a search to a query. A whole email address or phone number
// without an account may be the start of a longer one.
func (m *Admin) search(ctx context.Context, text string, q *store.UserQuery) (Matched, error) {
	if id, err := uuid.Parse(text); err == nil && len(text) == len(id.String()) {
		q.ID = id.String()
		return MatchedID, nil
	}
	if email, err := auth.NormalizeEmail(text); err == nil {
		if found, err := m.userExists(ctx, store.ByEmail(email)); found || err != nil {
			q.Email = email
			return MatchedEmail, err
		}
	}
	if phone, err := auth.NormalizePhone(text); err == nil {
		if found, err := m.userExists(ctx, store.ByPhone(phone)); found || err != nil {
			q.Phone = phone
			return MatchedPhone, err
		}
	}
	text = strings.TrimSpace(text)
	if domain, ok := strings.CutPrefix(text, "@"); ok && domain != "" && !strings.ContainsAny(domain, "@ ") {
		q.Domain = domain
		return MatchedDomain, nil
	}
	q.Prefix = text
	return MatchedPrefix, nil
}

// userExists reports whether an account has a value.
func (m *Admin) userExists(ctx context.Context, key store.UserKey) (bool, error) {
	_, err := m.store.User(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, m.kit.StoreError(err)
}
