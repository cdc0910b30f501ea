package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/authmount/auth/internal/token"
	"github.com/authmount/auth/store"
)

// Somebody may act as somebody else, by a session of its own kind (Impersonation) that
// the admin side begins. Its access token says whose it is and who acts ("act"), lives
// no longer than it, and there is no refresh token. It opens the application's own
// routes and those of Authmount's that the route table lets through (route.act); all
// others are closed to it, those of rooms and those to come among them.

// ImpersonationLife is for how long somebody acts as somebody else at most.
const ImpersonationLife = 15 * time.Minute

// methodImpersonation is the proof of such a session: none of the user's.
const methodImpersonation = "impersonation"

// sessionOf is an impersonation as a session of its user, at the lower level: no factor
// of the user was shown.
func sessionOf(i *store.Impersonation) Session {
	return Session{
		ID: i.ID, UserID: i.UserID, AAL: store.LevelAAL1, AMR: []AMR{{Method: methodImpersonation, Timestamp: i.CreatedAt.Unix()}},
		CreatedAt: i.CreatedAt, LastActiveAt: i.CreatedAt, RotatedAt: i.CreatedAt, IdleUntil: i.ExpiresAt, ExpiresAt: i.ExpiresAt, IP: i.IP, UserAgent: i.UserAgent,
	}
}

// liveImpersonation reads an impersonation, which has to be live.
func (a *Auth) liveImpersonation(ctx context.Context, id string) (store.Impersonation, User, error) {
	if a.admin == nil {
		return store.Impersonation{}, User{}, store.ErrNotFound
	}
	return a.admin.Impersonation(ctx, id, a.now())
}

// currentImpersonation is Current of an impersonation. Errors: CodeSessionEnded.
func (a *Auth) currentImpersonation(ctx context.Context, c *Claims) (Session, User, error) {
	i, u, err := a.liveImpersonation(ctx, c.SessionID)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrSessionEnded):
		return Session{}, User{}, fail(CodeSessionEnded, err)
	case err != nil:
		return Session{}, User{}, storeFailed(err)
	case i.UserID != c.UserID || i.ActorID != c.Impersonator.UserID || i.ActorSessionID != c.Impersonator.ID:
		return Session{}, User{}, fail(CodeSessionEnded, errors.New("impersonation of another"))
	}
	return sessionOf(&i), u, nil
}

// impersonator is the claims of a request whose access token is one of an
// impersonation, live or not; nil of any other request. A token that does not say so
// costs nothing but a look.
func (a *Auth) impersonator(r *http.Request) *Claims {
	text, given := a.givenBearer(r)
	if !given && a.hasCookies(r.Context()) {
		access, _ := a.cookieNames(r.Context())
		if c := soleCookie(r, access); c != nil {
			text = c.Value
		}
	}
	_, payload, _ := strings.Cut(text, ".")
	payload, _, _ = strings.Cut(payload, ".")
	if said, err := base64.RawURLEncoding.DecodeString(payload); err != nil || len(text) > token.MaxLength || !strings.Contains(string(said), `"act"`) {
		return nil
	}
	c, _, err := a.verify(text)
	if err != nil || c.Impersonator == nil {
		return nil
	}
	return c
}

// notImpersonated refuses whoever acts as somebody else: CodeImpersonationForbidden.
// One whose impersonation has ended is nobody in particular.
func (a *Auth) notImpersonated(r *http.Request) error {
	c := a.impersonator(r)
	if c == nil {
		return nil
	}
	_, _, err := a.currentImpersonation(r.Context(), c)
	switch {
	case err == nil:
		return fail(CodeImpersonationForbidden, nil)
	case errors.Is(err, CodeSessionEnded):
		return nil
	}
	return err
}

// deniedImpersonator records that somebody tried an operation of the admin side as
// somebody else, behind their back.
func (a *Auth) deniedImpersonator(rt route, r *http.Request, err error) {
	if rt.access != operating || !errors.Is(err, CodeImpersonationForbidden) {
		return
	}
	c := a.impersonator(r)
	a.emit(r.Context(), Event{Type: EventAdminDenied, Err: err, Actor: Actor{Kind: store.ActorUser, ID: c.Impersonator.UserID, SessionID: c.Impersonator.ID}, UserID: c.UserID, SessionID: c.SessionID,
		Record: &store.Record{Actor: c.Impersonator.UserID, Target: c.UserID, RequestID: requestID(r.Context()), Operation: strings.Replace(rt.pattern, " /admin/", " /", 1), Denied: true}})
}

// impersonationInfos are the live impersonations of a user, for the list of sessions.
func (a *Auth) impersonationInfos(ctx context.Context, p SessionsParams) ([]SessionInfo, error) {
	infos := []SessionInfo{}
	if a.admin == nil {
		return infos, nil
	}
	list, err := a.admin.Impersonations(ctx, p.UserID, a.now())
	if err != nil {
		return nil, storeFailed(err)
	}
	for _, i := range list {
		one := sessionInfo(sessionOf(&i), p.Current)
		one.ImpersonatedBy = i.ActorID
		infos = append(infos, one)
	}
	return infos, nil
}

// impersonationTokens make the access token of a live impersonation.
func (a *Auth) impersonationTokens(ctx context.Context, id string) (*Tokens, error) {
	i, u, err := a.liveImpersonation(ctx, id)
	if err != nil {
		return nil, err
	}
	a.revoked.RaiseRoles(i.RolesRevision) // the roles are as new as what it rests on
	custom, err := a.customClaims(ctx, u)
	if err != nil {
		return nil, err
	}
	now := a.now()
	access, expires, err := a.signAccess(ctx, u, sessionOf(&i), &i, custom, now, i.ExpiresAt.Truncate(time.Second))
	if err != nil {
		return nil, err
	}
	return &Tokens{AccessToken: access, ExpiresAt: expires, ExpiresIn: int(expires.Sub(now) / time.Second), SessionID: i.ID, User: u}, nil
}

// exchangeImpersonation trades the code of a redirect for the token. Errors:
// CodeInvalidCode if the impersonation has ended.
func (a *Auth) exchangeImpersonation(ctx context.Context, id string) (*Tokens, error) {
	t, err := a.impersonationTokens(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrSessionEnded):
		return nil, fail(CodeInvalidCode, err)
	case err != nil:
		return nil, storeFailed(err)
	}
	return t, nil
}

// logoutImpersonation ends an impersonation, and nothing of the user's. One that has
// ended already is no error.
func (a *Auth) logoutImpersonation(w http.ResponseWriter, r *http.Request, claims *Claims, scope LogoutScope) error {
	if scope != "" && scope != LogoutLocal {
		return fail(CodeImpersonationForbidden, nil)
	}
	if _, err := a.accessCookie(r); err != nil { // it has to come from the same origin
		return err
	}
	if a.admin == nil {
		return fail(CodeSessionEnded, lacks[store.AdminStore]())
	}
	ctx := r.Context()
	c := a.newChange(ctx, Authority{Session: claims.Impersonator}, done(Event{Type: EventImpersonationEnded, UserID: claims.UserID, SessionID: claims.SessionID}))
	err := a.admin.EndImpersonation(ctx, store.EndImpersonation{Change: c, ID: claims.SessionID})
	switch {
	case err == nil:
		a.committed(ctx, c, store.OutcomeDone, nil)
	case !errors.Is(err, store.ErrSessionEnded) && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrBanned):
		return storeFailed(err)
	}
	a.signOut(w, r)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (k kit) ImpersonationTokens(ctx context.Context, id string) (any, error) {
	return k.a.impersonationTokens(ctx, id)
}

func (k kit) NewSessionID() string { return k.a.idAt(k.a.now()) }

func (k kit) SessionInfo(s Session, current string) any { return sessionInfo(s, current) }

func (k kit) SessionView(info any) any { return info.(SessionInfo).view() }

func (k kit) CheckRedirect(target string) error { return k.a.allowRedirect(target) }

func (k kit) ImpersonationURL(ctx context.Context, by Authority, id, redirectTo string) (string, error) {
	secret, code := k.a.newLink(store.PurposeExchange, exchangeLife, linkData{Acts: id})
	if err := k.a.putToken(ctx, by, code); err != nil {
		return "", err
	}
	return withQuery(redirectTo, url.Values{"code": {secret}}), nil
}
