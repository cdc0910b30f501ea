package auth

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"
)

// Assurance levels of sessions.
const (
	LevelAAL1 = "aal1" // one factor
	LevelAAL2 = "aal2" // two
)

// freshFor is how recent a sign-in has to be for changes that could lock the
// owner out (OWASP ASVS 7.5.1).
const freshFor = 15 * time.Minute

// signIn is a proof that was right, on its way to a session.
type signIn struct {
	user   User
	amr    []AMR
	totp   string // a code that came along with the first proof
	second bool   // the second factor was shown
	by     provenBy
	gone   Code // the answer if the user changed or went since the proof was judged
}

// provenBy is what of an account a proof rests on. A sign-in that is under way
// while the account loses it, to its rightful owner for instance, must not
// outlive the loss.
type provenBy struct {
	Provider string  `json:"provider,omitempty"` // an identity, with Subject
	Subject  string  `json:"subject,omitempty"`
	Email    string  `json:"email,omitempty"`
	Phone    string  `json:"phone,omitempty"`
	Password *string `json:"password_hash,omitempty"` // the hash that it was judged by
}

// holds tells whether the proof still rests on something of the user's. The
// store judges the password.
func (b provenBy) holds(u User) bool {
	switch {
	case b.Provider != "":
		return slices.ContainsFunc(u.Identities, func(i Identity) bool { return i.Provider == b.Provider && i.Subject == b.Subject })
	case b.Email != "":
		return EmailKey(u.Email) == EmailKey(b.Email)
	case b.Phone != "":
		return u.Phone == b.Phone
	}
	return true
}

// completeSignIn is the one way to a session: it decides whether the user may
// have one, makes it and hands out its tokens.
func (a *Auth) completeSignIn(ctx context.Context, s signIn) (*Tokens, error) {
	now := a.now()
	if s.user.Banned(now) {
		return nil, fail(CodeUserBanned, nil)
	}
	amr, aal, err := a.secondFactor(ctx, s)
	if err != nil {
		return nil, err
	}
	method := s.amr[0].Method
	if err := a.beforeSignIn(ctx, SignInAttempt{User: s.user, Method: method, Provider: s.by.Provider}); err != nil {
		return nil, err
	}
	sess := a.newSession(ctx, s.user.ID, amr, now)
	sess.AAL = aal
	tokens, err := a.startSession(ctx, s, sess)
	switch {
	case errors.Is(err, ErrStale), errors.Is(err, ErrNotFound):
		return nil, fail(s.gone, err)
	case errors.Is(err, ErrMFARequired): // enabled since the proof was judged
		return nil, a.ask(ctx, CodeMFARequired, PurposeMFA, s)
	case err != nil:
		return nil, storeFailed(err)
	}
	a.emit(ctx, Event{Type: EventSignedIn, UserID: s.user.ID, SessionID: sess.ID, Method: method})
	return tokens, nil
}

// startSession makes the session on the condition that what the proof rests on
// is the user's still: the password hash, or else the very state of the account,
// which is looked at anew if it has changed.
func (a *Auth) startSession(ctx context.Context, s signIn, sess Session) (*Tokens, error) {
	u := s.user
	for range attempts {
		if !s.by.holds(u) {
			return nil, ErrStale
		}
		tokens, err := a.mint(ctx, u, sess)
		if err != nil {
			return nil, err
		}
		n := NewSession{Session: sess, IfPasswordHash: s.by.Password}
		if n.IfPasswordHash == nil {
			n.IfRevision = &u.Revision
		}
		tokens.User, err = a.store.CreateSession(ctx, n)
		if err == nil || !errors.Is(err, ErrStale) || s.by.Password != nil {
			return tokens, err
		}
		if u, err = a.store.User(ctx, ByID(u.ID)); err != nil {
			return nil, err
		}
	}
	return nil, retryAfter(CodeUnavailable, time.Second, ErrStale)
}

func (a *Auth) newSession(ctx context.Context, userID string, amr []AMR, now time.Time) Session {
	cl := clientFrom(ctx)
	s := Session{
		ID: a.newID(), UserID: userID, AAL: LevelAAL1, AMR: amr,
		CreatedAt: now, LastActiveAt: now, RotatedAt: now, IdleUntil: now.Add(a.cfg.idleTimeout),
		IP: cl.ipString(), UserAgent: cl.UserAgent,
	}
	if a.cfg.sessionLifetime > 0 {
		s.ExpiresAt = now.Add(a.cfg.sessionLifetime)
	}
	return s
}

// proof is one entry of a session's amr.
func (a *Auth) proof(method string) []AMR {
	return []AMR{{Method: method, Timestamp: a.now().Unix()}}
}

// mint makes the tokens that stand for a session in its present state.
func (a *Auth) mint(ctx context.Context, u User, s Session) (*Tokens, error) {
	now := a.now()
	access, expires, err := a.accessToken(ctx, u, s, now)
	if err != nil {
		return nil, err
	}
	return &Tokens{
		AccessToken: access, RefreshToken: a.keys.refreshToken(s.ID, s.Counter),
		ExpiresAt: expires, ExpiresIn: int(a.cfg.tokens.life() / time.Second),
		SessionID: s.ID, User: u,
	}, nil
}

// Refresh trades a refresh token for new tokens, and is one compare-and-swap in
// the store. The token before the current one is answered with the current one
// for a short while (WithRefreshGrace); anything older ends the session.
//
// Errors: CodeInvalidRefreshToken, CodeRefreshTokenReused, CodeSessionEnded
// (all with status 400), CodeUserBanned, CodeRateLimited.
func (a *Auth) Refresh(ctx context.Context, refreshToken string) (*Tokens, error) {
	id, counter, ok := a.keys.parseRefreshToken(refreshToken)
	if !ok {
		return nil, fail(CodeInvalidRefreshToken, nil)
	}
	if _, err := a.take(ctx, a.draw(a.cfg.limits.RefreshPerSession, "refresh", id, 1)); err != nil {
		return nil, err
	}
	now, cl := a.now(), clientFrom(ctx)
	s, u, err := a.store.AdvanceSession(ctx, Advance{
		SessionID: id, Counter: counter, Now: now, Grace: a.cfg.refreshGrace,
		IdleUntil: now.Add(a.cfg.idleTimeout), IP: cl.ipString(), UserAgent: cl.UserAgent,
	})
	switch {
	case errors.Is(err, ErrReused):
		a.emit(ctx, Event{Type: EventReused, UserID: s.UserID, SessionID: id})
		return nil, fail(CodeRefreshTokenReused, err)
	case errors.Is(err, ErrSessionEnded), errors.Is(err, ErrNotFound):
		return nil, failStatus(CodeSessionEnded, http.StatusBadRequest, err)
	case err != nil:
		return nil, storeFailed(err)
	}
	tokens, err := a.mint(ctx, u, s)
	if err != nil {
		return nil, err // the old token stays good for the grace period
	}
	a.emit(ctx, Event{Type: EventRefreshed, UserID: u.ID, SessionID: s.ID})
	return tokens, nil
}

func (a *Auth) handleRefresh(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		RefreshToken string `json:"refresh_token"`
	}
	if err := decodeOptional(r, &p); err != nil {
		return err
	}
	if p.RefreshToken == "" {
		p.RefreshToken = a.refreshCookie(r)
	}
	if p.RefreshToken == "" {
		return invalid("refresh_token", "is required")
	}
	tokens, err := a.Refresh(r.Context(), p.RefreshToken)
	if err != nil {
		a.clearCookiesIfOver(w, err)
		return err
	}
	return a.writeTokens(w, tokens)
}

// Current reads the session an access token belongs to, and its user, from the
// store, so that a revoked session, a deleted or a banned user fails at once.
// Errors: CodeSessionEnded (401), CodeUserBanned.
func (a *Auth) Current(ctx context.Context, c *Claims) (Session, User, error) {
	s, u, err := a.store.Session(ctx, c.SessionID, a.now())
	switch {
	case errors.Is(err, ErrSessionEnded), errors.Is(err, ErrNotFound):
		return s, u, fail(CodeSessionEnded, err)
	case err != nil:
		return s, u, storeFailed(err)
	case s.UserID != c.UserID:
		return s, u, fail(CodeSessionEnded, errors.New("session of another user"))
	}
	return s, u, nil
}

// fresh tells whether somebody proved who they are on this session lately.
func (a *Auth) fresh(s Session) bool {
	var newest int64
	for _, m := range s.AMR {
		newest = max(newest, m.Timestamp)
	}
	return a.now().Sub(time.Unix(newest, 0)) < freshFor
}

// LogoutScope says which sessions a logout ends.
type LogoutScope string

// The scopes.
const (
	LogoutLocal  LogoutScope = "local"  // the session itself
	LogoutOthers LogoutScope = "others" // all but the session itself
	LogoutGlobal LogoutScope = "global" // all
)

func (s LogoutScope) filter(sessionID string) SessionFilter {
	switch s {
	case LogoutOthers:
		return SessionFilter{Except: sessionID}
	case LogoutGlobal:
		return SessionFilter{}
	default:
		return SessionFilter{ID: sessionID}
	}
}

// Logout ends sessions of a user. Ending what has ended already is no error.
func (a *Auth) Logout(ctx context.Context, userID, sessionID string, scope LogoutScope) error {
	n, err := a.store.RevokeSessions(ctx, userID, scope.filter(sessionID), a.now())
	if err != nil {
		return storeFailed(err)
	}
	if n > 0 {
		a.emit(ctx, Event{Type: EventSessionsEnded, UserID: userID, SessionID: sessionID})
	}
	return nil
}

// handleLogout takes a bearer token or, from a client whose access token has
// expired, the refresh token. Either may have ended already.
func (a *Auth) handleLogout(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		RefreshToken string `json:"refresh_token"`
	}
	if err := decodeOptional(r, &p); err != nil {
		return err
	}
	scope := LogoutScope(r.URL.Query().Get("scope"))
	switch scope {
	case "":
		scope = LogoutLocal
	case LogoutLocal, LogoutOthers, LogoutGlobal:
	default:
		return invalid("scope", "is none of local, others and global")
	}
	ctx := r.Context()
	userID, sessionID, err := a.loggingOut(ctx, r, p.RefreshToken)
	if err != nil {
		return err
	}
	if sessionID != "" {
		if err := a.Logout(ctx, userID, sessionID, scope); err != nil {
			return err
		}
	}
	if scope != LogoutOthers {
		a.clearCookies(w)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// loggingOut finds the session of a logout. One that has ended is answered as
// no session and no error.
func (a *Auth) loggingOut(ctx context.Context, r *http.Request, refresh string) (userID, sessionID string, err error) {
	if refresh == "" {
		claims, err := a.authenticate(r)
		if err == nil {
			_, _, err = a.Current(ctx, claims)
			if errors.Is(err, CodeSessionEnded) || errors.Is(err, CodeUserBanned) {
				return "", "", nil
			}
			if err != nil {
				return "", "", err
			}
			return claims.UserID, claims.SessionID, nil
		}
		if refresh = a.refreshCookie(r); refresh == "" {
			return "", "", err
		}
	}
	id, _, ok := a.keys.parseRefreshToken(refresh)
	if !ok {
		return "", "", fail(CodeInvalidRefreshToken, nil)
	}
	s, _, err := a.store.Session(ctx, id, a.now())
	switch {
	case errors.Is(err, ErrSessionEnded), errors.Is(err, ErrNotFound), errors.Is(err, ErrBanned):
		return "", "", nil
	case err != nil:
		return "", "", storeFailed(err)
	}
	return s.UserID, s.ID, nil
}

// SessionInfo is one entry of GET /sessions.
type SessionInfo struct {
	ID           string    `json:"id"`
	CreatedAt    time.Time `json:"created_at"`
	LastActiveAt time.Time `json:"last_active_at"`
	ExpiresAt    time.Time `json:"expires_at"`
	IP           any       `json:"ip"`
	UserAgent    any       `json:"user_agent"`
	AAL          string    `json:"aal"`
	AMR          []AMR     `json:"amr"`
	Current      bool      `json:"current"`
}

// Sessions lists a user's live sessions, newest first; currentID marks one.
func (a *Auth) Sessions(ctx context.Context, userID, currentID string) ([]SessionInfo, error) {
	list, err := a.store.Sessions(ctx, userID, a.now())
	if err != nil {
		return nil, storeFailed(err)
	}
	infos := make([]SessionInfo, 0, len(list))
	for _, s := range list {
		infos = append(infos, SessionInfo{
			ID: s.ID, CreatedAt: wireTime(s.CreatedAt), LastActiveAt: wireTime(s.LastActiveAt), ExpiresAt: wireTime(s.End()),
			IP: nullable(s.IP), UserAgent: nullable(s.UserAgent), AAL: s.AAL, AMR: orEmpty(s.AMR), Current: s.ID == currentID,
		})
	}
	return infos, nil
}

func (a *Auth) handleSessions(w http.ResponseWriter, r *http.Request) error {
	me := currentFrom(r.Context())
	list, err := a.Sessions(r.Context(), me.user.ID, me.session.ID)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"sessions": list})
}

// EndSession ends one session of a user. CodeSessionNotFound if the user has no
// such live session, whoever else may have it.
func (a *Auth) EndSession(ctx context.Context, userID, sessionID string) error {
	if !isID(sessionID) {
		return fail(CodeSessionNotFound, nil)
	}
	n, err := a.store.RevokeSessions(ctx, userID, SessionFilter{ID: sessionID}, a.now())
	switch {
	case err != nil:
		return storeFailed(err)
	case n == 0:
		return fail(CodeSessionNotFound, nil)
	}
	a.emit(ctx, Event{Type: EventSessionsEnded, UserID: userID, SessionID: sessionID})
	return nil
}

func (a *Auth) handleEndSession(w http.ResponseWriter, r *http.Request) error {
	me, id := currentFrom(r.Context()), r.PathValue("id")
	if err := a.EndSession(r.Context(), me.user.ID, id); err != nil {
		return err
	}
	if id == me.session.ID {
		a.clearCookies(w)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *Auth) handleEndOtherSessions(w http.ResponseWriter, r *http.Request) error {
	me := currentFrom(r.Context())
	if err := a.Logout(r.Context(), me.user.ID, me.session.ID, LogoutOthers); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
