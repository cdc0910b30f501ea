package admin

import (
	"context"
	"errors"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

var (
	opUserSessions = operation{pattern: "GET /users/{id}/sessions", permission: PermSessionsRead, fails: []auth.Code{auth.CodeUserNotFound}}
	opEndSession   = operation{spends: true, bodyless: true, pattern: "DELETE /sessions/{id}", permission: PermSessionsRevoke, against: managing, self: true, fails: []auth.Code{auth.CodeSessionNotFound}}
	opEndSessions  = operation{spends: true, bodyless: true, pattern: "DELETE /users/{id}/sessions", permission: PermSessionsRevoke, against: managing, self: true}

	sessionEndpoints = []endpoint{
		op(opUserSessions, listed("sessions", func(m *Admin, ctx context.Context, who Actor, p idOnly) ([]auth.SessionInfo, error) {
			return m.UserSessions(ctx, who, p.ID)
		}, func(m *Admin, s auth.SessionInfo) any { return m.kit.SessionView(s) })),
		op(opEndSessions, silent(func(m *Admin, ctx context.Context, who Actor, p idAndReason) error {
			_, err := m.EndSessions(ctx, who, p.ID, p.Reason)
			return err
		})),
		op(opEndSession, silent(func(m *Admin, ctx context.Context, who Actor, p idAndReason) error {
			return m.EndSession(ctx, who, p.ID, p.Reason)
		})),
		op(opListSessions, (*Admin).ListSessions),
		op(opRevokeSessions, (*Admin).RevokeSessions),
	}
)

// UserSessions lists the live sessions of an account, newest first. Errors:
// CodeUserNotFound.
func (m *Admin) UserSessions(ctx context.Context, who Actor, userID string) ([]auth.SessionInfo, error) {
	if _, err := m.reader(ctx, who, opUserSessions); err != nil {
		return nil, err
	}
	if _, err := m.store.User(ctx, store.ByID(userID)); err != nil {
		return nil, m.notFound(err)
	}
	return m.auth.Sessions(ctx, auth.SessionsParams{UserID: userID})
}

// EndSessions signs an account out everywhere, and returns the ids of the revoked
// sessions, sorted. It also deletes the tokens of sign-ins in progress. Errors:
// CodeUserNotFound, CodeTargetStronger.
func (m *Admin) EndSessions(ctx context.Context, who Actor, userID, reason string) ([]string, error) {
	return carryOut(ctx, m, who, opEndSessions, userID, auth.EventSessionsEnded, func(t *attempt) (_ []string, err error) {
		if err := m.setReason(t, reason); err != nil {
			return nil, err
		}
		t.ended, err = m.store.RevokeSessions(ctx, m.kit.RemoveTokens(store.RevokeSessions{Change: t.change, UserID: t.target.ID}))
		return t.ended, err
	})
}

// EndSession revokes a session; one that has ended is no error. Errors:
// CodeSessionNotFound, CodeTargetStronger.
func (m *Admin) EndSession(ctx context.Context, who Actor, id, reason string) error {
	if _, err := m.reader(ctx, who, opEndSession); err != nil {
		return err
	}
	s, _, err := m.store.Session(ctx, id, m.kit.Now())
	switch {
	case errors.Is(err, store.ErrSessionEnded):
		return nil
	case errors.Is(err, store.ErrNotFound):
		return m.fail(auth.CodeSessionNotFound, err)
	case err != nil && !errors.Is(err, store.ErrBanned):
		return m.kit.StoreError(err)
	}
	_, err = carryOut(ctx, m, who, opEndSession, s.UserID, auth.EventSessionsEnded, func(t *attempt) (_ []string, err error) {
		if err := m.setReason(t, reason); err != nil {
			return nil, err
		}
		t.ended, err = m.store.RevokeSessions(ctx, store.RevokeSessions{Change: t.change, UserID: t.target.ID, Filter: store.SessionFilter{ID: id}})
		return t.ended, err
	})
	return err
}
