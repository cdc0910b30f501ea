package admin

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// ListUsersParams pick accounts.
type ListUsersParams struct {
	store.UserQuery

	// Search is what somebody types to find an account: an id, or a whole address or
	// number that somebody has, or else what an address or name begins with.
	Search string
	Count  bool // count all that match, too
}

// Matched is what a search was taken for.
type Matched string

// What a search may be.
const (
	MatchedID     Matched = "id"
	MatchedEmail  Matched = "email"
	MatchedPhone  Matched = "phone"
	MatchedPrefix Matched = "prefix"
)

// UserPage is a page of accounts.
type UserPage struct {
	Users   []auth.User
	Matched Matched          // what ListUsersParams.Search was taken for; empty without
	Count   *store.Total     // if it was asked for
	Next    *store.UserQuery // what to ask for the page after; nil: this was the last
}

// ListUsers lists accounts. Errors: CodeValidationFailed, CodeQueryTooBroad (the
// filters together would read too much), and those of every operation ([Admin]).
func (m *Admin) ListUsers(ctx context.Context, who Actor, p ListUsersParams) (UserPage, error) {
	if _, err := m.reader(ctx, who, opListUsers); err != nil {
		return UserPage{}, err
	}
	p.Limit = pageSize(p.Limit)
	return m.listUsers(ctx, p)
}

// listUsers lists accounts for an operation that may, as many as p.Limit says.
func (m *Admin) listUsers(ctx context.Context, p ListUsersParams) (UserPage, error) {
	var page UserPage
	q, matched, err := m.searched(ctx, p)
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
		page.Next = &next
	}
	return page, nil
}

// searched is the query for accounts that somebody asks for, and what the text was taken
// for that they typed.
func (m *Admin) searched(ctx context.Context, p ListUsersParams) (q store.UserQuery, matched Matched, err error) {
	q = p.UserQuery
	if p.Search != "" {
		if matched, err = m.search(ctx, p.Search, &q); err != nil {
			return q, "", err
		}
	}
	return q, matched, m.kit.StoreError(q.Check())
}

// search adds to a query what somebody typed. A whole address or number that nobody
// has may be the begin of a longer one.
func (m *Admin) search(ctx context.Context, text string, q *store.UserQuery) (Matched, error) {
	if id, err := uuid.Parse(text); err == nil && len(text) == len(id.String()) {
		q.ID = id.String()
		return MatchedID, nil
	}
	if email, err := auth.NormalizeEmail(text); err == nil {
		if found, err := m.has(ctx, store.ByEmail(email)); found || err != nil {
			q.Email = email
			return MatchedEmail, err
		}
	}
	if phone, err := auth.NormalizePhone(text); err == nil {
		if found, err := m.has(ctx, store.ByPhone(phone)); found || err != nil {
			q.Phone = phone
			return MatchedPhone, err
		}
	}
	q.Prefix = strings.TrimSpace(text)
	return MatchedPrefix, nil
}

// has tells whether anybody has a value.
func (m *Admin) has(ctx context.Context, key store.UserKey) (bool, error) {
	_, err := m.store.User(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, m.kit.StoreError(err)
}
