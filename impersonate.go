package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/authmount/auth/internal/token"
	"github.com/authmount/auth/store"
)

// An operator may act as another user, in a session of its own kind (Impersonation)
// that the admin API starts. Its access token names the user and the operator ("act"),
// and expires with the session at the latest. There is no refresh token. The token is
// valid for the application's own routes and for those of Authmount with route.act. All
// other routes refuse it: also those of packages built on Auth and, by default, new
// ones.

// ImpersonationLife is the longest duration of an impersonation.
const ImpersonationLife = 15 * time.Minute

// methodImpersonation is the only amr entry of such a session: the user did not
// authenticate.
const methodImpersonation = "impersonation"

// sessionOf returns an impersonation as a session of its user. It has AAL1, because the
// user showed no second factor.
func sessionOf(i *store.Impersonation) Session {
	return Session{
		ID: i.ID, UserID: i.UserID, AAL: store.LevelAAL1, AMR: []AMR{{Method: methodImpersonation, Timestamp: i.CreatedAt.Unix()}},
		CreatedAt: i.CreatedAt, LastActiveAt: i.CreatedAt, RotatedAt: i.CreatedAt, IdleUntil: i.ExpiresAt, ExpiresAt: i.ExpiresAt, IP: i.IP, UserAgent: i.UserAgent,
	}
}

// liveImpersonation reads an impersonation that is live.
func (a *Auth) liveImpersonation(ctx context.Context, id string) (store.Impersonation, User, error) {
	if a.admin == nil {
		return store.Impersonation{}, User{}, store.ErrNotFound
	}
	return a.admin.Impersonation(ctx, id, a.now())
}

// currentImpersonation is Current for an impersonation. Errors: CodeSessionEnded.
func (a *Auth) currentImpersonation(ctx context.Context, c *Claims) (Session, User, error) {
	i, u, err := a.liveImpersonation(ctx, c.SessionID)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrSessionEnded):
		return Session{}, User{}, fail(CodeSessionEnded, err)
	case err != nil:
		return Session{}, User{}, storeFailed(err)
	case i.UserID != c.UserID || i.ActorID != c.Impersonator.UserID || i.ActorSessionID != c.Impersonator.ID:
		return Session{}, User{}, fail(CodeSessionEnded, errors.New("the impersonation belongs to another operator"))
	}
	return sessionOf(&i), u, nil
}

// impersonator returns the claims of a request with the access token of an
// impersonation, live or not, and nil for any other request. It verifies the token only
// if its payload contains "act".
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
	if decoded, err := base64.RawURLEncoding.DecodeString(payload); err != nil || len(text) > token.MaxLength || !strings.Contains(string(decoded), `"act"`) {
		return nil
	}
	c, _, err := a.verify(text)
	if err != nil || c.Impersonator == nil {
		return nil
	}
	return c
}

// notImpersonated refuses a request of a live impersonation. Errors:
// CodeImpersonationForbidden. The token of an ended one counts as no token.
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

// deniedImpersonator records an operation of the admin API that was refused because the
// request came from an impersonation.
func (a *Auth) deniedImpersonator(rt route, r *http.Request, err error) {
	if rt.access != operating || !errors.Is(err, CodeImpersonationForbidden) {
		return
	}
	c := a.impersonator(r)
	id, server := requestIDs(r.Context())
	a.emit(r.Context(), Event{Type: EventAdminDenied, Err: err, Actor: Actor{Kind: store.ActorUser, ID: c.Impersonator.UserID, SessionID: c.Impersonator.ID}, UserID: c.UserID, SessionID: c.SessionID,
		Record: &store.Record{Actor: c.Impersonator.UserID, Target: c.UserID, RequestID: id, ServerID: server, Operation: strings.Replace(rt.pattern, " /admin/", " /", 1), Denied: true}})
}

// impersonationInfos returns the live impersonations of a user, for the session list.
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

// impersonationTokens creates the access token of a live impersonation. It has the roles
// that the user has in the best case: those that require a second factor only if the user
// has one.
func (a *Auth) impersonationTokens(ctx context.Context, id string) (*Tokens, error) {
	i, u, err := a.liveImpersonation(ctx, id)
	if err != nil {
		return nil, err
	}
	if !u.MFAEnabled {
		u.Roles = rolesWithoutFactor(a.Settings(ctx), u)
	}
	a.revoked.RaiseRoles(i.RolesRevision) // the role table must be at least as new as the impersonation's
	custom, err := a.customClaims(ctx, u)
	if err != nil {
		return nil, err
	}
	shown, err := a.asActor(ctx, u)
	if err != nil {
		return nil, err
	}
	now := a.now()
	access, expires, err := a.signAccess(ctx, u, sessionOf(&i), &i, custom, now, i.ExpiresAt.Truncate(time.Second))
	if err != nil {
		return nil, err
	}
	return &Tokens{AccessToken: access, ExpiresAt: expires, ExpiresIn: int(expires.Sub(now) / time.Second), SessionID: i.ID, User: shown}, nil
}

// exchangeImpersonation trades the code of a redirect for the token. Errors:
// CodeInvalidCode (the impersonation has ended).
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

// endImpersonation is Logout for an impersonation: it ends no session of the user. It
// succeeds if the impersonation has ended already.
func (a *Auth) endImpersonation(ctx context.Context, p LogoutParams) error {
	if p.Scope != "" && p.Scope != LogoutLocal {
		return p.notActing()
	}
	if a.admin == nil {
		return fail(CodeSessionEnded, lacks[store.AdminStore]())
	}
	c := a.newChange(ctx, Authority{Session: &p.impersonator}, done(Event{Type: EventImpersonationEnded, UserID: p.UserID, SessionID: p.SessionID}))
	err := a.admin.EndImpersonation(ctx, store.EndImpersonation{Change: c, ID: p.SessionID})
	switch {
	case err == nil:
		a.committed(ctx, c, store.OutcomeDone, nil)
	case !errors.Is(err, store.ErrSessionEnded) && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrBanned):
		return storeFailed(err)
	}
	return nil
}

func (k kit) ImpersonationTokens(ctx context.Context, id string) (any, error) {
	return k.a.impersonationTokens(ctx, id)
}

func (k kit) NewSessionID() string { return k.a.idAt(k.a.now()) }

func (k kit) SessionInfo(s Session, current string) any { return sessionInfo(s, current) }

func (k kit) SessionView(info any) any { return info.(SessionInfo).view() }

func (k kit) CheckActing(redirectTo, challenge string) error {
	switch {
	case redirectTo == "" && challenge != "":
		return invalid("redirect_to", "is required with code_challenge")
	case redirectTo != "" && !validChallenge(challenge):
		return invalid("code_challenge", "has to be the S256 challenge of the browser that continues")
	}
	return k.a.allowRedirect(redirectTo)
}

func (k kit) ActPage() string {
	pages := k.a.mountedPages.Load()
	if pages == nil {
		return ""
	}
	return k.Site().Origin + pages.ActPath
}

// actCookie is the cookie of StartActing.
const actCookie = "act"

func (k kit) StartActing(w http.ResponseWriter, returnTo string) string {
	verifier := oauth2.GenerateVerifier()
	k.SetCookie(w, actCookie, verifier+"."+base64.RawURLEncoding.EncodeToString([]byte(returnTo)), int(exchangeLife/time.Second))
	return challengeOf(verifier)
}

func (k kit) Acting(r *http.Request) (verifier, returnTo string) {
	verifier, encoded, _ := strings.Cut(k.Cookie(r, actCookie), ".")
	to, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return "", ""
	}
	return verifier, string(to)
}

func (k kit) StopActing(w http.ResponseWriter) { k.SetCookie(w, actCookie, "", -1) }

func (k kit) ActingAs(ctx context.Context, code string) (User, error) {
	t, err := k.a.store.PeekToken(ctx, store.PurposeExchange, hashLinkToken(code), k.a.now())
	var d linkData
	if err == nil {
		err = json.Unmarshal(t.Data, &d)
	}
	var u User
	if err == nil {
		_, u, err = k.a.liveImpersonation(ctx, d.Acts)
	}
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrSessionEnded):
		return User{}, fail(CodeInvalidCode, err)
	case err != nil:
		return User{}, storeFailed(err)
	}
	return u, nil
}

func (k kit) ImpersonationURL(ctx context.Context, by Authority, id, redirectTo, challenge string) (string, error) {
	secret, code := k.a.newLink(store.PurposeExchange, exchangeLife, linkData{Acts: id, Challenge: challenge})
	if err := k.a.putToken(ctx, by, code); err != nil {
		return "", err
	}
	return withQuery(redirectTo, url.Values{"code": {secret}}), nil
}
