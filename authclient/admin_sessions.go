package authclient

import (
	"context"
	"iter"
	"time"
)

// Sessions, from the admin side.

// UserSessions is GET /users/{id}/sessions: somebody's live sessions. Newest first.
// Permission: auth.sessions.read.
func (a *Admin) UserSessions(ctx context.Context, userID string, opts ...CallOption) ([]SessionInfo, error) {
	v, err := run[struct {
		Rows []SessionInfo `json:"sessions"`
	}](ctx, a, a.prepared("GET", "/users/"+segment(userID)+"/sessions", nil, opts))
	if err != nil {
		return nil, err
	}
	return v.Rows, nil
}

// SessionQuery picks what Admin.Sessions returns; what is empty picks nothing out.
type SessionQuery struct {
	AAL    string    `query:"aal"`    // One of "aal1", "aal2".
	Before time.Time `query:"before"` // Made before.
	Client string    `query:"client"` // Part of the user agent, whatever its case. Needs user, ip or since beside it.
	Cursor string    `query:"cursor"`
	IP     string    `query:"ip"`
	Limit  int       `query:"limit"`
	Since  time.Time `query:"since"` // Made then or later.
	User   string    `query:"user"`
}

// UserSession is one row of Admin.Sessions.
type UserSession struct {
	Session SessionInfo `json:"session"`
	UserID  string      `json:"user_id"`
}

// SessionPage is one page of Admin.Sessions.
type SessionPage struct {
	NextCursor *string       `json:"next_cursor"` // what to ask for next; nil: that was all
	Sessions   []UserSession `json:"sessions"`
}

// Sessions is GET /sessions: live sessions of everybody. Newest first. Filters have to hold
// together. Permission: auth.sessions.read. It follows cursors to the end; SessionPage
// reads one page.
func (a *Admin) Sessions(ctx context.Context, q SessionQuery, opts ...CallOption) iter.Seq2[UserSession, error] {
	return all(ctx, q, func(q *SessionQuery) *string { return &q.Cursor }, func(ctx context.Context, q SessionQuery) ([]UserSession, *string, error) {
		p, err := a.SessionPage(ctx, q, opts...)
		if err != nil {
			return nil, nil, err
		}
		return p.Sessions, p.NextCursor, nil
	})
}

// SessionPage is one page of Sessions.
func (a *Admin) SessionPage(ctx context.Context, q SessionQuery, opts ...CallOption) (*SessionPage, error) {
	k := a.prepared("GET", "/sessions", nil, opts)
	k.query = queryOf(q)
	return run[SessionPage](ctx, a, k)
}

// EndSession is DELETE /sessions/{id}: end a session. Permission: auth.sessions.revoke.
func (a *Admin) EndSession(ctx context.Context, id, reason string, opts ...CallOption) error {
	err := a.wire.do(ctx, a.prepared("DELETE", "/sessions/"+segment(id), reasonBody(reason), opts), nil)
	return err
}

// EndUserSessions is DELETE /users/{id}/sessions: sign somebody out everywhere. Permission:
// auth.sessions.revoke.
func (a *Admin) EndUserSessions(ctx context.Context, userID, reason string, opts ...CallOption) error {
	err := a.wire.do(ctx, a.prepared("DELETE", "/users/"+segment(userID)+"/sessions", reasonBody(reason), opts), nil)
	return err
}

// RevokeParams are of Admin.RevokeSessions.
type RevokeParams struct {
	All     bool      `json:"all,omitempty"`
	Before  time.Time `json:"before,omitzero"`
	IP      string    `json:"ip,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	UserIDs []string  `json:"user_ids,omitempty"`
}

// RevokeResult is what Admin.RevokeSessions returns.
type RevokeResult struct {
	Ended   int  `json:"ended"`
	More    bool `json:"more"`    // There may be others: repeat it.
	Skipped int  `json:"skipped"` // Accounts that one may not touch, or that are gone.
	Users   int  `json:"users"`   // Whose they were.
}

// RevokeSessions is POST /sessions/revoke: end sessions of several accounts. Of these
// accounts, at this address, made before a time: what is given has to hold together. Of
// 1000 accounts in one call at most; those that one may not touch are skipped, and one's
// own session goes on. all ends everybody's, with their access tokens; it goes alone, and
// needs the permission * and a proof of the last 15 minutes. Permission:
// auth.sessions.revoke.
func (a *Admin) RevokeSessions(ctx context.Context, p RevokeParams, opts ...CallOption) (*RevokeResult, error) {
	return run[RevokeResult](ctx, a, a.prepared("POST", "/sessions/revoke", p, opts))
}
