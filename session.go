package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/token"
	"github.com/authmount/auth/store"
)

// freshFor is the maximum age of a sign-in for changes that could lock the owner out
// (OWASP ASVS 7.5.1).
const freshFor = 15 * time.Minute

// signIn is a sign-in whose first factor was right, before it has a session.
type signIn struct {
	user    User
	amr     []AMR
	code    factorCode      // of a second factor; the zero value: none came with the sign-in
	waiting *store.TokenRef // the token of a sign-in that waits for code, which consumes it; nil: none
	trust   bool            // trust the device, if the code is from an authenticator app
	by      credentialRef
	accepts []byte // the hash of an invitation to accept with the second factor; nil: none
	gone    Code   // the error if the user was changed or deleted since the first factor was checked

	newDevice bool // as expected; the store decides
	onTrusted bool // a trusted device replaces the second factor; the store decides this, too

	within string // the session that needs the second factor to continue; empty: none exists yet

	used *usedFactor // a second factor that was checked before, instead of code

	remember *bool // whether the browser keeps the cookies, as set at the start; nil: not set
}

// credentialRef is the credential or identifier that a sign-in depends on. If the
// account loses it during the sign-in, for instance to its rightful owner, the sign-in
// fails.
type credentialRef struct {
	Provider string `json:"provider,omitempty"` // an identity, with Subject
	Subject  string `json:"subject,omitempty"`
	Email    string `json:"email,omitempty"`
	Phone    string `json:"phone,omitempty"`
	Passkey  string `json:"passkey,omitempty"`  // the id of the factor
	Password []byte `json:"password,omitempty"` // SHA-256 of the stored hash that it was checked against

	Joined int64 `json:"joined,omitempty"` // the sequence of an identity that joined the account in this sign-in
}

// byIdentity returns the dependency on an identity of u. An identity that was the last
// addition to an older account joined it in this sign-in, before the session.
func byIdentity(u User, provider, subject string) credentialRef {
	b := credentialRef{Provider: provider, Subject: subject}
	i := slices.IndexFunc(u.Identities, func(i Identity) bool { return i.Provider == provider && i.Subject == subject })
	if i >= 0 && u.Identities[i].Sequence == u.Sequence && u.Sequence > 1 {
		b.Joined = u.Sequence
	}
	return b
}

// byPassword returns the dependency on a password.
func byPassword(hash string) credentialRef {
	sum := sha256.Sum256([]byte(hash))
	return credentialRef{Password: sum[:]}
}

// isCurrent reports whether the user still has the credential or identifier.
func (b credentialRef) isCurrent(c store.Credentials) bool {
	switch {
	case b.Provider != "":
		return slices.ContainsFunc(c.User.Identities, func(i Identity) bool { return i.Provider == b.Provider && i.Subject == b.Subject })
	case b.Email != "":
		return store.EmailKey(c.User.Email) == store.EmailKey(b.Email)
	case b.Phone != "":
		return c.User.Phone == b.Phone
	case b.Password != nil:
		return c.PasswordHash != "" && subtle.ConstantTimeCompare(byPassword(c.PasswordHash).Password, b.Password) == 1
	}
	return false
}

// completeSignIn is the only function that gives a sign-in a session, except the enrolment
// of a factor and SignUp. It decides
// whether the user may have one, creates it and returns its tokens.
func (a *Auth) completeSignIn(ctx context.Context, s signIn) (*Tokens, error) {
	now := a.now()
	if s.user.Banned(now) {
		return nil, fail(CodeUserBanned, nil)
	}
	if err := a.checkSignInAllowed(ctx, s.user); err != nil {
		return nil, err
	}
	if s.accepts != nil { // no trusted device replaces the factor
		return nil, a.interruptSignIn(ctx, CodeMFARequired, store.PurposeMFA, s)
	}
	if s.waiting != nil || s.code.passkey != nil || s.user.MFAEnabled && s.code != (factorCode{}) {
		return a.signInWithFactor(ctx, s)
	}
	sess, err := a.newSession(ctx, s.user.ID, s.amr, now), error(nil)
	if s.used != nil {
		sess.AAL, sess.AMR = store.LevelAAL2, withAMR(s.amr, s.used.amr)
	} else if s.onTrusted, err = a.withoutFactor(ctx, s); err != nil {
		return nil, err
	}
	if err := a.beforeSignIn(ctx, s.attempt()); err != nil {
		return nil, err
	}
	tokens, err := a.startSession(ctx, s, sess)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, fail(s.gone, err)
	case errors.Is(err, store.ErrMFARequired): // a factor was enabled, or the device's trust expired, since the check above
		return nil, a.interruptSignIn(ctx, CodeMFARequired, store.PurposeMFA, s)
	case err != nil:
		return nil, storeFailed(err)
	}
	tokens.remember = s.remember
	return tokens, nil
}

// attempt returns the sign-in as hooks see it.
func (s *signIn) attempt() SignInAttempt {
	return SignInAttempt{User: s.user, Method: s.amr[0].Method, Provider: s.by.Provider}
}

// signInWithFactor creates the session in the change that consumes the second factor,
// and the token that the sign-in waited with. If the change is refused, neither is used up.
func (a *Auth) signInWithFactor(ctx context.Context, s signIn) (*Tokens, error) {
	use := factorUse{by: byAuthentication(), user: s.user, code: s.code}
	if s.waiting != nil {
		use.limits = []attemptLimit{a.mfaTokenLimit(s.waiting.Hash)}
	}
	var tokens *Tokens
	use.complete = func(own context.Context, f *factorChange) (r store.FactorResult, err error) {
		if f.alone {
			return r, fail(CodeInvalidPasskey, errors.New("both passkeys count as one factor, and two are needed"))
		}
		if err := a.beforeSignIn(own, s.attempt()); err != nil {
			return r, err
		}
		sess := a.newSession(own, s.user.ID, withAMR(s.amr, f.amr), f.Now)
		sess.AAL = store.LevelAAL2
		tokens, err = a.createSession(own, f.Change, s, s.user, sess, f.edit, func(c store.Change, n store.NewSession) (User, error) {
			r, err = f.store(c, store.Completion{Redeem: s.waiting, Create: &n})
			return r.User, err
		})
		if errors.Is(err, store.ErrStale) {
			err = fail(s.gone, err)
		}
		return r, err
	}
	used, err := a.checkFactor(ctx, use)
	if err != nil {
		return nil, err
	}
	tokens.RecoveryCodesLeft, tokens.remember = used.codesLeft, s.remember
	a.addNewCodes(ctx, tokens, used, Caller{UserID: s.user.ID, SessionID: tokens.SessionID}, s.waiting)
	return tokens, nil
}

// createSession mints the tokens of a session of u and has st create it, as the change c
// with the events of a sign-in.
func (a *Auth) createSession(ctx context.Context, c store.Change, s signIn, u User, sess Session, edit func(*Event), st func(store.Change, store.NewSession) (User, error)) (*Tokens, error) {
	tokens, err := a.mint(ctx, u, sess)
	if err != nil {
		return nil, err
	}
	c.Events = append(c.Events, a.newChange(ctx, c.By, done(Event{Type: EventSignedIn, UserID: u.ID, SessionID: sess.ID, Method: sess.AMR[0].Method, Provider: s.by.Provider, Reason: s.reason()}),
		store.OutcomeEvent{On: store.OutcomeSessionsEnded, Event: Event{Type: EventSessionsEnded, UserID: u.ID}}).Events...)
	var ended []string
	tokens.User, err = a.makeSession(ctx, c, u, sess, s.by.Joined, s.newDevice, edit, func(c store.Change, on store.NewDevice) (User, error) {
		return st(c, store.NewSession{
			Session: sess, KeepSessions: max(0, a.cfg.sessions.MaxPerUser), Ended: func(ids []string) { ended = ids }, OnNewDevice: on,
			OnTrustedDevice: s.onTrusted, TrustUntil: a.trustUntil(s, sess),
		})
	})
	if err == nil {
		tokens.User, err = a.asActor(ctx, tokens.User)
	}
	if err != nil {
		return nil, err
	}
	if ended != nil {
		a.committed(ctx, c, store.OutcomeSessionsEnded, func(e *Event) { e.SessionIDs = ended })
	}
	return tokens, nil
}

// startSession creates the session of a sign-in without a second factor, on the
// condition that the account's credentials have not changed since they were checked. If
// they have, it checks once more that the account still has the password or the
// identity. A link or code is refused instead: it is consumed by now, and most changes
// would have revoked it.
func (a *Auth) startSession(ctx context.Context, s signIn, sess Session) (*Tokens, error) {
	u, look := s.user, false
	return change(func() (*Tokens, error) {
		if look && (s.by.Email != "" || s.by.Phone != "") {
			return nil, fail(s.gone, store.ErrStale)
		}
		if look {
			c, err := a.store.Credentials(ctx, store.ByID(u.ID))
			if err != nil {
				return nil, err
			}
			has, err := a.stillHas(ctx, c, s.by)
			if err != nil {
				return nil, err
			}
			if !has {
				return nil, fail(s.gone, errors.New("the credential of this sign-in was removed"))
			}
			u = c.User
			if a.mfaRequired(ctx, u) {
				return nil, fail(s.gone, errors.New("a second factor has become required"))
			}
		}
		look = true
		c := a.newChange(ctx, byAuthentication())
		c.IfUsers = []UserAt{ifCredentialsUnchanged(u)}
		return a.createSession(ctx, c, s, u, sess, nil, func(c store.Change, n store.NewSession) (User, error) {
			return a.store.CreateSession(ctx, store.CreateSession{Change: c, NewSession: n})
		})
	})
}

func (a *Auth) newSession(ctx context.Context, userID string, amr []AMR, now time.Time) Session {
	cl, settings := clientFrom(ctx), a.Settings(ctx)
	s := Session{
		ID: a.idAt(now), UserID: userID, AAL: store.LevelAAL1, AMR: amr,
		CreatedAt: now, LastActiveAt: now, RotatedAt: now, IdleUntil: now.Add(settings.IdleTimeout),
		IP: ipString(cl.IP), UserAgent: cl.UserAgent, Device: cl.Device,
	}
	if settings.Lifetime > 0 {
		s.ExpiresAt = now.Add(settings.Lifetime)
	}
	return s
}

// idAt returns an id for a session. The id contains the session's creation time, by the
// clock of its other times.
//
// A counter orders the ids of one millisecond (RFC 9562, section 6.2, method 1).
func (a *Auth) idAt(now time.Time) string {
	id := uuid.Must(uuid.NewV7()) // crypto/rand never fails
	n := a.sessionCount.Add(1)
	copy(id[:6], binary.BigEndian.AppendUint64(nil, uint64(now.UnixMilli())<<16))
	id[6], id[7] = 0x70|byte(n>>8)&0x0f, byte(n) //nolint:gosec // 12 bits of it
	return id.String()
}

// newAMR returns a list with one entry for a session's amr.
func (a *Auth) newAMR(method string) []AMR {
	return []AMR{{Method: method, Timestamp: a.now().Unix()}}
}

// withAMR returns the list with p in place of any older entry of the same method.
func withAMR(list []AMR, p AMR) []AMR {
	list = slices.DeleteFunc(slices.Clone(list), func(m AMR) bool { return m.Method == p.Method })
	return append(list, p)
}

// mint returns the tokens of a session in its present state.
func (a *Auth) mint(ctx context.Context, u User, s Session) (*Tokens, error) {
	custom, err := a.customClaims(ctx, u)
	if err != nil {
		return nil, err
	}
	t, err := a.mintWith(ctx, u, s, custom)
	if err == nil {
		t.device = newDevice(ctx, s)
	}
	return t, err
}

// mintWith is mint with custom claims that were computed before.
func (a *Auth) mintWith(ctx context.Context, u User, s Session, custom map[string]any) (*Tokens, error) {
	limited, err := u, error(nil)
	if limited.Roles, err = a.rolesIn(ctx, u, s); err != nil {
		return nil, err
	}
	shown, err := a.asActor(ctx, u)
	if err != nil {
		return nil, err
	}
	access, expires, err := a.accessToken(ctx, limited, s, custom, a.now())
	if err != nil {
		return nil, err
	}
	refresh, err := a.keys.RefreshToken(s.ID, s.Counter)
	if err != nil {
		return nil, fail(CodeInternal, err) // the store's id is no UUID
	}
	return &Tokens{
		AccessToken: access, RefreshToken: refresh,
		ExpiresAt: expires, ExpiresIn: int(token.Options(a.cfg.tokens).Lifetime() / time.Second),
		SessionID: s.ID, User: shown,
	}, nil
}

// RefreshParams are the parameters of Refresh.
type RefreshParams struct{ RefreshToken string }

// Refresh exchanges a refresh token for new tokens, in one compare-and-swap of the
// store. The token before the current one yields the current one again: within
// SessionOptions.RefreshGrace from the same device (from another network for at most two
// tokens in a row), otherwise at most once a day and not for two tokens in a row
// (EventReplayed). A repetition within RefreshGrace of a replay gets the same answer. Any
// other token revokes the session. A laptop may fall asleep before the response arrives,
// and a browser may send two requests when it wakes up, while two clients that share a
// session are found at the next round.
//
// If a second factor has become required that the session lacks, Refresh returns
// CodeMFARequired or CodeMFAEnrollmentRequired with a token to continue with, as a
// sign-in does. The refresh token stays valid, and the same session continues with the
// factor. If only roles require it, the new tokens lack these roles.
//
// Errors: CodeInvalidRefreshToken, CodeRefreshTokenReused, CodeSessionEnded (all with
// status 400), CodeMFARequired, CodeMFAEnrollmentRequired, CodeUserBanned,
// CodeRateLimited.
func (a *Auth) Refresh(ctx context.Context, p RefreshParams) (*Tokens, error) {
	id, counter, ok := a.keys.ParseRefreshToken(p.RefreshToken)
	if !ok {
		return nil, fail(CodeInvalidRefreshToken, otherSecret(p.RefreshToken))
	}
	draw := a.draw(a.cfg.limits.RefreshPerSession, "refresh", id, 1)
	claims, factorFor := func(u User) map[string]any { return u.Claims }, factorRule(a.Settings(ctx))
	if a.off() || len(a.cfg.claims) > 0 || a.cfg.mfa.RequiredFor != nil {
		before, counted, err := a.beforeAdvance(ctx, id, counter, draw)
		if err != nil {
			return nil, err
		}
		if claims, factorFor = before, nil; counted {
			draw = store.Draw{}
		}
	}
	cl := clientFrom(ctx)
	var c store.Change
	var other *Client // the client with the current token, if this token was replayed
	advance := func() (Session, User, error) {
		c = a.newChange(ctx, byAuthentication(), store.OutcomeEvent{On: store.OutcomeReused, Event: Event{Type: EventReused, SessionID: id}},
			store.OutcomeEvent{On: store.OutcomeReplayed, Event: Event{Type: EventReplayed, SessionID: id}})
		return a.store.AdvanceSession(ctx, store.Advance{
			Change: c, SessionID: id, Counter: counter, Grace: a.cfg.sessions.RefreshGrace,
			IdleUntil: c.Now.Add(a.Settings(ctx).IdleTimeout), IP: ipString(cl.IP), UserAgent: cl.UserAgent, Device: sentDevice(ctx), Draw: draw,
			FactorFor: factorFor, Replayed: func(o Client) { other = &o },
		})
	}
	s, u, err := advance()
	if errors.Is(err, store.ErrMFARequired) { // the device may be trusted, or only roles be left out
		if claims, _, err = a.beforeAdvance(ctx, id, counter, store.Draw{}); err != nil {
			return nil, err
		}
		draw, factorFor = store.Draw{}, nil
		s, u, err = advance()
	}
	var limited *store.LimitedError
	switch {
	case errors.As(err, &limited):
		return nil, a.decided(store.Decision{RetryAfter: limited.RetryAfter}, nil)
	case errors.Is(err, store.ErrReused):
		a.committed(ctx, c, store.OutcomeReused, about(s.UserID))
		return nil, fail(CodeRefreshTokenReused, err)
	case errors.Is(err, store.ErrSessionEnded), errors.Is(err, store.ErrNotFound):
		return nil, failStatus(CodeSessionEnded, http.StatusBadRequest, err)
	case err != nil:
		return nil, storeFailed(err)
	}
	if other != nil {
		a.committed(ctx, c, store.OutcomeReplayed, func(e *Event) { e.UserID, e.Other = u.ID, other })
	}
	tokens, err := a.mintWith(ctx, u, s, claims(u))
	if err != nil {
		return nil, err // the old token is valid for the grace period
	}
	a.emit(ctx, Event{Type: EventRefreshed, Actor: Actor{Kind: store.ActorUser, ID: u.ID, SessionID: s.ID}, UserID: u.ID, SessionID: s.ID})
	return tokens, nil
}

// beforeAdvance reads the session, makes the checks that can refuse a refresh, and computes
// the application's own claims, before the counter advances: a failure afterwards would
// make the client's next attempt look like a replayed token. Refresh calls it only if there
// may be something to refuse or compute. counted reports that it has counted the limit,
// which it does before more work than the read of the session; otherwise the store counts
// it together with the refresh.
func (a *Auth) beforeAdvance(ctx context.Context, sessionID string, counter uint32, limit store.Draw) (claims func(User) map[string]any, counted bool, err error) {
	off := a.off()
	s, u, err := a.store.Session(ctx, sessionID, a.now())
	switch known := !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrSessionEnded) && !errors.Is(err, store.ErrBanned); {
	case err != nil && known: // an outage is no reason to sign out
		return nil, false, storeFailed(err)
	case err != nil && off:
		return nil, false, fail(CodeNotFound, err)
	case err != nil: // AdvanceSession returns the error
		return func(User) map[string]any { return nil }, false, nil
	}
	take := func() error {
		if counted {
			return nil
		}
		counted = true
		return a.take(ctx, limit)
	}
	if off {
		if err := take(); err != nil {
			return nil, true, err
		}
		if err := a.checkSignInAllowed(ctx, u); err != nil {
			return nil, true, err
		}
	}
	// An outdated token first has to pass AdvanceSession. What is minted afterwards is
	// checked again.
	if counter == s.Counter && s.AAL != store.LevelAAL2 && a.mfaRequired(ctx, u) {
		if err := take(); err != nil {
			return nil, true, err
		}
		if _, err := a.rolesIn(ctx, u, s); err != nil {
			return nil, true, err
		}
	}
	if len(a.cfg.claims) == 0 {
		return func(u User) map[string]any { return u.Claims }, counted, nil
	}
	if err := take(); err != nil {
		return nil, true, err
	}
	custom, err := a.customClaims(ctx, u)
	return func(u User) map[string]any {
		all := maps.Clone(u.Claims)
		if all == nil {
			return custom
		}
		maps.Copy(all, custom)
		return all
	}, counted, err
}

func (a *Auth) handleRefresh(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		RefreshToken string `json:"refresh_token"`
	}
	if err := decodeOptional(r, &p); err != nil {
		return err
	}
	byCookie := p.RefreshToken == ""
	if byCookie {
		var err error
		if p.RefreshToken, err = a.refreshCookie(r); err != nil {
			return err
		}
	}
	if p.RefreshToken == "" {
		return invalid("refresh_token", "is required")
	}
	tokens, err := a.Refresh(r.Context(), RefreshParams(p))
	if err != nil {
		if byCookie && cookiesInvalid(err) {
			a.clearCookies(r.Context(), w)
		}
		return err
	}
	return a.writeTokens(w, r, tokens)
}

// Current reads an access token's session and its user from the store. A revoked
// session and a deleted or banned user therefore fail at once. Errors: CodeSessionEnded
// (401), CodeUserBanned.
func (a *Auth) Current(ctx context.Context, c *Claims) (Session, User, error) {
	s, u, err := a.current(ctx, c)
	if err == nil {
		u, err = a.asActor(ctx, u)
	}
	return s, u, err
}

// current is Current with all roles of the user.
func (a *Auth) current(ctx context.Context, c *Claims) (Session, User, error) {
	if c.Impersonator != nil {
		return a.currentImpersonation(ctx, c)
	}
	return a.liveSession(ctx, c.Caller(), CodeSessionEnded)
}

// liveSession reads a caller's live session and its user. It returns the error gone if
// the session is not live. Errors: CodeImpersonationForbidden.
func (a *Auth) liveSession(ctx context.Context, by Caller, gone Code) (Session, User, error) {
	if err := by.notActing(); err != nil {
		return Session{}, User{}, err
	}
	s, u, err := a.store.Session(ctx, by.session(), a.now())
	switch {
	case errors.Is(err, store.ErrSessionEnded), errors.Is(err, store.ErrNotFound):
		return s, u, fail(gone, err)
	case err != nil:
		return s, u, storeFailed(err)
	case s.UserID != by.UserID:
		return s, u, fail(gone, errors.New("the session belongs to another user"))
	}
	return s, u, nil
}

// SessionsParams are the parameters of Sessions. Current, which may be empty, marks one
// of the sessions.
type SessionsParams struct {
	UserID  string
	Current string
}

// SessionInfo describes one live session of a user; in JSON it is an entry of GET
// /sessions. Times are in UTC, of microseconds.
type SessionInfo struct {
	ID           string
	CreatedAt    time.Time
	LastActiveAt time.Time  // the hour of the last refresh, which is coarse so that it does not show a thief when refreshes happen
	ExpiresAt    time.Time  // the earlier of the end of its lifetime and of the hour of its idle timeout
	IP           netip.Addr // of the last refresh; not valid: unknown
	UserAgent    string
	Device       string // a readable name, such as "Firefox on Linux"; empty: unknown
	AAL          string // LevelAAL1 or LevelAAL2
	AMR          []AMR  // the authentication methods used in it
	Current      bool   // it is SessionsParams.Current

	ImpersonatedBy string // the id of the impersonator; empty: it is the user's own
}

// Sessions lists a user's live sessions, newest first.
func (a *Auth) Sessions(ctx context.Context, p SessionsParams) ([]SessionInfo, error) {
	list, err := a.store.Sessions(ctx, p.UserID, a.now())
	if err != nil {
		return nil, storeFailed(err)
	}
	infos, err := a.impersonationInfos(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		infos = append(infos, sessionInfo(s, p.Current))
	}
	slices.SortStableFunc(infos, func(x, y SessionInfo) int { return y.CreatedAt.Compare(x.CreatedAt) })
	return infos, nil
}

// sessionInfo returns the description of a session. Its times are coarse, because a thief
// who reads the list could present a copied refresh token right after its owner.
func sessionInfo(s Session, current string) SessionInfo {
	active := s.LastActiveAt.Truncate(time.Hour)
	if active.Before(s.CreatedAt) {
		active = s.CreatedAt
	}
	s.IdleUntil = s.IdleUntil.Add(time.Hour - 1).Truncate(time.Hour)
	return SessionInfo{
		ID: s.ID, CreatedAt: wireTime(s.CreatedAt), LastActiveAt: wireTime(active), ExpiresAt: wireTime(s.End()),
		IP: s.Client().IP, UserAgent: s.UserAgent, Device: deviceLabel(s.UserAgent), AAL: s.AAL, AMR: s.AMR, Current: s.ID == current,
	}
}

func (a *Auth) handleSessions(w http.ResponseWriter, r *http.Request) error {
	me := currentFrom(r.Context())
	list, err := a.Sessions(r.Context(), SessionsParams{UserID: me.user.ID, Current: me.session.ID})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"sessions": list})
}
