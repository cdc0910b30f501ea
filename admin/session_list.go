package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

var (
	opListSessions   = operation{pattern: "GET /sessions", permission: PermSessionsRead}
	opRevokeSessions = operation{spends: true, pattern: "POST /sessions/revoke", permission: PermSessionsRevoke, against: managing, self: true, skips: true, fails: []auth.Code{auth.CodeReauthNeeded}}
	opRevokeAll      = operation{pattern: opRevokeSessions.pattern, permission: permAll, stepUp: true}
)

// ListSessionsParams pick sessions. A session has to match all fields that are set.
type ListSessionsParams struct {
	UserID string    `query:"user"`
	IP     string    `query:"ip"`
	AAL    string    `query:"aal"`
	Client string    `query:"client"` // a part of the user agent
	Since  time.Time `query:"since"`  // created from, inclusive
	Before time.Time `query:"before"` // created before
	Limit  int       `query:"limit"`  // up to 200; 0: 50
	Cursor string    `query:"cursor"` // SessionPage.NextCursor of the page before
}

// SessionPage is a page of sessions.
type SessionPage struct {
	Sessions   []SessionOf `json:"sessions"`
	NextCursor *string     `json:"next_cursor"` // of the page after; nil: this was the last
}

// SessionOf is a session in a list of several users' sessions.
type SessionOf struct {
	UserID  string `json:"user_id"`
	Session any    `json:"session"` // as GET /sessions shows it to its user
}

// ListSessions lists live sessions of all users, newest first. Errors:
// CodeValidationFailed.
func (m *Admin) ListSessions(ctx context.Context, who Actor, p ListSessionsParams) (SessionPage, error) {
	after, err := readCursor[store.SessionCursor](m, p.Cursor)
	if err != nil {
		return SessionPage{}, err
	}
	if _, err := m.reader(ctx, who, opListSessions); err != nil {
		return SessionPage{}, err
	}
	list, next, err := m.sessionPage(ctx, store.SessionQuery{UserID: p.UserID, IP: p.IP, AAL: p.AAL, Client: p.Client, Since: p.Since, Before: p.Before, Limit: p.Limit, After: after})
	if err != nil {
		return SessionPage{}, err
	}
	page := SessionPage{Sessions: []SessionOf{}}
	if next != nil {
		page.NextCursor = cursorOf(next.After)
	}
	for _, s := range list {
		page.Sessions = append(page.Sessions, SessionOf{s.UserID, m.kit.SessionView(m.kit.SessionInfo(s, who.caller.SessionID))})
	}
	return page, nil
}

// sessionPage reads a page of sessions, and returns the query for the page after, if
// there is one.
func (m *Admin) sessionPage(ctx context.Context, q store.SessionQuery) (list []auth.Session, next *store.SessionQuery, err error) {
	q.Limit, q.Now = pageSize(q.Limit), m.kit.Now()
	if err := q.Check(); err != nil {
		return nil, nil, m.kit.StoreError(err)
	}
	if list, err = m.admin.ListSessions(ctx, q); err != nil {
		return nil, nil, m.kit.StoreError(err)
	}
	if len(list) == q.Limit {
		last := list[len(list)-1]
		q.After = &store.SessionCursor{Time: last.CreatedAt, ID: last.ID}
		next = &q
	}
	return list, next, nil
}

// maxRevoked limits the accounts of one call.
const maxRevoked = 1000

// RevokeSessionsParams pick sessions to revoke: of these accounts, from this IP address,
// created before a time. A session has to match all that are set; or All.
type RevokeSessionsParams struct {
	UserIDs []string  `json:"user_ids" is:"id"` // up to 1000
	IP      string    `json:"ip"`
	Before  time.Time `json:"before"`
	All     bool      `json:"all"` // alone
	Reason  string    `json:"reason"`
}

// RevokeSessionsResult counts the revoked sessions.
type RevokeSessionsResult struct {
	Ended   int  `json:"ended"`   // sessions
	Users   int  `json:"users"`   // accounts that had them; 0 with All
	Skipped int  `json:"skipped"` // accounts that are too strong for the actor, or gone
	More    bool `json:"more"`    // there may be more: repeat the call; of UserIDs the rest follow the first Users + Skipped
}

// RevokeSessions revokes sessions of up to 1000 accounts in one call, each with its own
// row in the audit log. It skips accounts that are too strong for the actor, and keeps
// the actor's own session. All revokes the sessions of all users. It requires the
// permission "*" and recent authentication (15 minutes), and also revokes the access
// tokens: in this process at once, and in processes that follow the feed within a second.
// Before alone also requires recent authentication, and is the same as All if it is in
// the future. If the actor's budget of accounts is used up in between, the result reports
// the accounts until then, with More. Errors: CodeValidationFailed, CodeRateLimited (nothing was
// revoked), for All CodeMissingPermission, and for All and Before alone CodeReauthNeeded.
func (m *Admin) RevokeSessions(ctx context.Context, who Actor, p RevokeSessionsParams) (RevokeSessionsResult, error) {
	var res RevokeSessionsResult
	p.Before = p.Before.UTC()
	a, err := m.reader(ctx, who, opRevokeSessions)
	if err != nil {
		return res, err
	}
	filtered := len(p.UserIDs) > 0 || p.IP != "" || !p.Before.IsZero()
	switch {
	case p.All && filtered:
		return res, m.kit.Invalid("all", "cannot be combined with other fields")
	case !p.All && !filtered:
		return res, m.kit.Invalid("user_ids", "or ip, before or all is required")
	case len(p.UserIDs) > maxRevoked:
		return res, m.kit.Invalid("user_ids", fmt.Sprintf("are more than %d", maxRevoked))
	case len(p.Reason) > maxReason:
		return res, m.kit.Invalid("reason", "is too long")
	case p.All, len(p.UserIDs) == 0 && p.IP == "" && p.Before.After(m.kit.Now()): // every session matches
		return m.revokeAll(ctx, who, p.Reason)
	}
	if len(p.UserIDs) == 0 && p.IP == "" { // every earlier sign-in: almost as broad as All
		if err := m.allow(a, operation{permission: opRevokeSessions.permission, stepUp: true}); err != nil {
			return res, m.denied(ctx, &attempt{acting: a, record: m.recordOf(ctx, a, opRevokeSessions)}, err)
		}
	}
	ids := each(p.UserIDs)
	if len(ids) == 0 {
		if ids, res.More, err = m.whoHasSessions(ctx, p); err != nil {
			return res, err
		}
	}
	for _, id := range ids {
		ended, err := carryOut(m.onceFor(ctx, id), m, who, opRevokeSessions, id, auth.EventSessionsEnded, func(t *attempt) (_ []string, err error) {
			t.keepReason(p.Reason)
			f := store.SessionFilter{IP: p.IP, Before: p.Before}
			if a.user != nil {
				f.Except = a.session.ID
			}
			c := store.RevokeSessions{Change: t.change, UserID: t.target.ID, Filter: f}
			if p.IP == "" && p.Before.IsZero() {
				c = m.kit.RemoveTokens(c)
			}
			if err := m.storeEnded(ctx, t, f); err != nil {
				return nil, err
			}
			c.Change = t.change
			t.ended, err = m.store.RevokeSessions(ctx, c)
			return t.ended, err
		})
		switch {
		case errors.Is(err, auth.CodeTargetStronger), errors.Is(err, auth.CodeUserNotFound):
			res.Skipped++
		case errors.Is(err, auth.CodeRateLimited) && res.Users > 0:
			res.More = true
			return res, nil
		case err != nil:
			return res, err
		default:
			res.Users++
			res.Ended += len(ended)
		}
	}
	return res, nil
}

// storeEnded stores the sessions that a request is about to revoke, for its repetition.
func (m *Admin) storeEnded(ctx context.Context, t *attempt, f store.SessionFilter) error {
	if t.change.Idempotency == nil {
		return nil
	}
	list, err := m.store.Sessions(ctx, t.target.ID, t.change.Now)
	if err != nil {
		return err
	}
	ids := []string{}
	for _, s := range list {
		if s.ID != f.Except && (f.IP == "" || f.IP == s.IP) && (f.Before.IsZero() || s.CreatedAt.Before(f.Before)) {
			ids = append(ids, s.ID)
		}
	}
	return t.keep(ids)
}

// whoHasSessions returns up to maxRevoked accounts with matching live sessions, and
// whether there may be more.
func (m *Admin) whoHasSessions(ctx context.Context, p RevokeSessionsParams) (ids []string, more bool, err error) {
	seen := map[string]bool{}
	q := store.SessionQuery{IP: p.IP, Before: p.Before, Limit: maxPage}
	for {
		list, next, err := m.sessionPage(ctx, q)
		if err != nil {
			return nil, false, err
		}
		for _, s := range list {
			if !seen[s.UserID] && len(ids) == maxRevoked {
				return ids, true, nil
			}
			if !seen[s.UserID] {
				seen[s.UserID] = true
				ids = append(ids, s.UserID)
			}
		}
		if next == nil {
			return ids, false, nil
		}
		q = *next
	}
}

// revokedAtOnce is how many sessions one change of revokeAll revokes.
const revokedAtOnce = 5000

// revokedAll is the progress of revokeAll. It is stored with the first change, so that a
// repeated request revokes the rest, and no session that was started since.
type revokedAll struct {
	RevokeSessionsResult
	At     time.Time `json:"at"`
	Until  int64     `json:"until"` // AdminStore.SessionOrder at that time
	Except string    `json:"except,omitempty"`
	whole  bool
}

// revokeAll revokes all sessions. The first change notifies the feed and writes the row
// of the audit log. Further changes revoke the rest, a part at a time.
func (m *Admin) revokeAll(ctx context.Context, who Actor, why string) (RevokeSessionsResult, error) {
	res, err := carryOut(ctx, m, who, opRevokeAll, "", auth.EventSessionsEnded, func(t *attempt) (res revokedAll, err error) {
		t.keepReason(why)
		t.record.Target = permAll
		res.At = t.change.Now
		if res.Until, err = m.admin.SessionOrder(ctx); err != nil {
			return res, err
		}
		if t.user != nil {
			res.Except = t.session.ID
		}
		if err := t.keep(res); err != nil {
			return res, err
		}
		res.Ended, res.whole, err = m.revokePart(ctx, t.change, res)
		return res, err
	})
	if err != nil || res.whole {
		return res.RevokeSessionsResult, err
	}
	a, err := m.resolve(ctx, who, opRevokeAll)
	for err == nil && !res.whole {
		var n int
		n, res.whole, err = m.revokePart(ctx, m.kit.Change(ctx, a.by), res)
		res.Ended += n
	}
	if err != nil {
		err = m.kit.StoreError(fmt.Errorf("%d sessions were revoked before this error; repeat the request: %w", res.Ended, err))
	}
	return res.RevokeSessionsResult, err
}

// revokePart revokes some of the sessions, and reports whether none are left.
func (m *Admin) revokePart(ctx context.Context, c store.Change, of revokedAll) (n int, whole bool, err error) {
	n, err = m.admin.EndEverySession(ctx, store.EndEverySession{Change: c, Until: of.Until, At: of.At, Except: of.Except, Limit: m.endsAtOnce})
	if err == nil {
		m.auth.Revoke(store.Revocation{All: true, At: of.At, Spared: of.Except})
	}
	return n, err == nil && n < m.endsAtOnce, err
}
