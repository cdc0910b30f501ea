package auth

import (
	"context"
	"errors"
	"net/http"

	"github.com/authmount/auth/store"
)

// LogoutScope selects the sessions that a logout ends.
type LogoutScope string

// The scopes.
const (
	LogoutLocal  LogoutScope = "local"  // the session itself
	LogoutOthers LogoutScope = "others" // all but the session itself
	LogoutGlobal LogoutScope = "global" // all
)

func (s LogoutScope) check() error {
	switch s {
	case "", LogoutLocal, LogoutOthers, LogoutGlobal:
		return nil
	}
	return invalid("scope", "must be local, others or global")
}

func (s LogoutScope) filter(sessionID string) store.SessionFilter {
	switch s {
	case LogoutOthers:
		return store.SessionFilter{Except: sessionID}
	case LogoutGlobal:
		return store.SessionFilter{}
	default:
		return store.SessionFilter{ID: sessionID}
	}
}

// LogoutParams are the parameters of Logout.
type LogoutParams struct {
	Caller
	Scope LogoutScope // default LogoutLocal
}

// Logout ends sessions of a user. If the caller's session has ended already, it ends
// nothing and returns nil. An operator who acts as the user ends the impersonation with
// LogoutLocal. Errors: CodeValidationFailed (an unknown scope; no SessionID, unless the
// application ends all sessions), CodeImpersonationForbidden (another scope while acting as
// the user).
func (a *Auth) Logout(ctx context.Context, p LogoutParams) error {
	if err := p.Scope.check(); err != nil {
		return err
	}
	if p.SessionID == "" && (!p.application || p.Scope != LogoutGlobal) {
		return invalid("session_id", "is required, unless the application ends all sessions")
	}
	if p.notActing() != nil {
		return a.endImpersonation(ctx, p)
	}
	_, err := a.endSessions(ctx, p.authority(), p.UserID, p.Scope.filter(p.SessionID), false)
	if errors.Is(err, CodeUserBanned) { // a banned user may end only their own session
		_, err = a.endSessions(ctx, byFlow("logout"), p.UserID, store.SessionFilter{ID: p.session()}, false)
	}
	if errors.Is(err, CodeSessionEnded) {
		return nil
	}
	return err
}

// endSessions ends a user's sessions, and returns their ids, which are also in the event.
// forget reports whether the device of a single session is forgotten.
func (a *Auth) endSessions(ctx context.Context, by Authority, userID string, f store.SessionFilter, forget bool) ([]string, error) {
	c := a.newChange(ctx, by, store.OutcomeEvent{On: store.OutcomeSessionsEnded, Event: Event{Type: EventSessionsEnded, UserID: userID}})
	r := store.RevokeSessions{Change: c, UserID: userID, Filter: f, DropDevices: forget}
	if f.ID == "" { // also stop sign-ins in progress, and forget the devices
		r.DropTokens, r.DropDevices = purposesOfPassword(), true
	}
	ended, err := a.store.RevokeSessions(ctx, r)
	if err != nil {
		return nil, storeFailed(err)
	}
	if len(ended) > 0 {
		a.committed(ctx, c, store.OutcomeSessionsEnded, func(e *Event) { e.SessionIDs = ended })
	}
	return ended, nil
}

// handleLogout takes the session from the refresh token in the body, else from the access
// token, else from the refresh cookie. The session may have ended already.
func (a *Auth) handleLogout(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		RefreshToken string `json:"refresh_token"`
	}
	if err := decodeOptional(r, &p); err != nil {
		return err
	}
	scope := LogoutScope(r.URL.Query().Get("scope"))
	if err := scope.check(); err != nil {
		return err
	}
	ctx := r.Context()
	if c := a.impersonator(r); c != nil {
		if _, err := a.accessCookie(r); err != nil { // refuses requests from another origin
			return err
		}
		if err := a.Logout(ctx, LogoutParams{Caller: c.Caller(), Scope: scope}); err != nil {
			return err
		}
		a.signOut(w, r)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	by, old, err := a.logoutSession(ctx, r, p.RefreshToken)
	if err != nil {
		return err
	}
	ends := scope
	if old {
		ends = LogoutLocal
	}
	if by.SessionID != "" {
		if err := a.Logout(ctx, LogoutParams{Caller: by, Scope: ends}); err != nil {
			return err
		}
	}
	if ends != LogoutOthers {
		a.signOut(w, r)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// logoutSession returns the session of a logout, and the zero Caller for an ended session.
// old reports that the refresh token was replaced more than once. Such a token may be a
// stolen copy, so it can end only its own session (RFC 9700, 4.14.2).
func (a *Auth) logoutSession(ctx context.Context, r *http.Request, refresh string) (by Caller, old bool, err error) {
	if refresh == "" {
		claims, _, err := a.authenticate(r)
		if err == nil {
			return claims.Caller(), false, nil
		}
		var foreign error
		switch refresh, foreign = a.refreshCookie(r); {
		case foreign != nil:
			return Caller{}, false, foreign
		case refresh == "":
			return Caller{}, false, err
		}
	}
	id, counter, ok := a.keys.ParseRefreshToken(refresh)
	if !ok {
		return Caller{}, false, fail(CodeInvalidRefreshToken, nil)
	}
	s, _, err := a.store.Session(ctx, id, a.now())
	switch {
	case errors.Is(err, store.ErrSessionEnded), errors.Is(err, store.ErrNotFound):
		return Caller{}, false, nil
	case err != nil && !errors.Is(err, store.ErrBanned):
		return Caller{}, false, storeFailed(err)
	}
	return Caller{UserID: s.UserID, SessionID: s.ID}, counter+1 < s.Counter, nil
}

// EndSessionParams are the parameters of EndSession. End is the id of the session to
// end.
type EndSessionParams struct {
	Caller
	TargetSessionID string
}

// EndSession ends one session of a user. It forgets the session's device, unless the
// session is the caller's own. Errors: CodeSessionNotFound (the user has no such live
// session), CodeSessionEnded, CodeUserBanned.
func (a *Auth) EndSession(ctx context.Context, p EndSessionParams) error {
	if err := p.notActing(); err != nil {
		return err
	}
	if !isID(p.TargetSessionID) {
		return fail(CodeSessionNotFound, nil)
	}
	ended, err := a.endSessions(ctx, p.authority(), p.UserID, store.SessionFilter{ID: p.TargetSessionID}, p.TargetSessionID != p.SessionID)
	if err == nil && len(ended) == 0 {
		err = fail(CodeSessionNotFound, nil)
	}
	return err
}

func (a *Auth) handleEndSession(w http.ResponseWriter, r *http.Request) error {
	me, id := currentFrom(r.Context()), r.PathValue("id")
	if err := a.EndSession(r.Context(), EndSessionParams{Caller: me.caller(), TargetSessionID: id}); err != nil {
		return err
	}
	if id == me.session.ID {
		a.signOut(w, r)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *Auth) handleEndOtherSessions(w http.ResponseWriter, r *http.Request) error {
	me := currentFrom(r.Context())
	if _, err := a.endSessions(r.Context(), me.caller().authority(), me.user.ID, LogoutOthers.filter(me.session.ID), true); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
