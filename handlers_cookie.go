package auth

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/store"
)

// cookieName returns the common part of all cookie names.
func (a *Auth) cookieName() string {
	if a.cfg.cookies != nil && a.cfg.cookies.Name != "" {
		return a.cfg.cookies.Name
	}
	return "authmount"
}

// cookieNamed returns the name of one cookie. The prefix makes browsers refuse cookies
// that another host planted (RFC 6265bis). It needs https, so dev mode leaves it out on
// a loopback host.
func (a *Auth) cookieNamed(name string) string {
	if a.cfg.baseURL.Scheme == "http" {
		return a.cookieName() + "-" + name
	}
	return "__Host-" + a.cookieName() + "-" + name
}

// soleCookie returns the cookie of a name, or nil. If there are two it returns nil,
// because another host of the site, or a path below, may have planted one.
func soleCookie(r *http.Request, name string) *http.Cookie {
	if all := r.CookiesNamed(name); len(all) == 1 {
		return all[0]
	}
	return nil
}

// CookieSetting configures the cookies that [Auth.SetCookies] sets.
type CookieSetting func(*cookieSettings)

type cookieSettings struct{ remember *bool }

// Remember sets whether the browser keeps the cookies after it is closed ("remember
// me"). Otherwise they end with the browser's session. The choice at the sign-in
// applies to every refresh.
func Remember(on bool) CookieSetting {
	return func(s *cookieSettings) { s.remember = &on }
}

// SetCookies signs a browser in. It sets the tokens in cookies that scripts cannot
// read, with the names in [CookieOptions], and replaces those set earlier in the same
// response. It is for the application's own pages that call [Auth.Login] and similar
// methods. Call it before writing the body:
//
//	tokens, err := a.Login(ctx, auth.LoginParams{…})
//	…
//	err = a.SetCookies(w, r, tokens, auth.Remember(r.FormValue("remember") != ""))
//
// Without [Remember] the choice at the start of the sign-in applies (StartOAuthParams,
// SendMagicLinkParams). If there was none, the browser keeps the cookies, unless they
// replace cookies of the same session that it does not keep.
//
// A post from another site fails with CodeCrossSiteRequest and sets nothing. Call
// [Auth.CheckOrigin] to find that out before the password is checked. Any site can make
// a browser send a GET, so only the application knows whether the visitor wanted it.
// Without [WithCookies] the error is CodeInternal.
func (a *Auth) SetCookies(w http.ResponseWriter, r *http.Request, t *Tokens, settings ...CookieSetting) error {
	if !a.hasCookies(r.Context()) {
		return fail(CodeInternal, errors.New("SetCookies needs the option WithCookies"))
	}
	if err := a.sameOrigin(r); err != nil {
		return err
	}
	var s cookieSettings
	for _, set := range settings {
		set(&s)
	}
	a.setCookies(w, r, t, s.remember)
	return nil
}

// ClearCookies signs a browser out: it deletes the cookies of SetCookies, except the
// device cookie. The session stays live until [Auth.Logout] revokes it. Call it before
// writing the body.
func (a *Auth) ClearCookies(w http.ResponseWriter) { a.clearCookies(context.Background(), w) }

// CheckOrigin refuses a state-changing request that another site made a browser send, with
// CodeCrossSiteRequest. Requests of programs, safe methods and the origins of WithCORS
// pass. Handlers of sign-in forms call it first, so that no site can sign a visitor in
// to the attacker's account.
func (a *Auth) CheckOrigin(r *http.Request) error { return a.sameOrigin(r) }

// brief marks a refresh token cookie that the browser does not keep when it is closed.
// Browsers do not send back the lifetime of a cookie.
const brief = ".brief"

// setCookies sets the tokens as cookies. No GET may call it except a provider's
// callback, which is bound to its browser, because images and frames of other sites
// also send GETs.
func (a *Auth) setCookies(w http.ResponseWriter, r *http.Request, t *Tokens, remember *bool) {
	a.insecure(r)
	access, refresh := a.cookieNames(r.Context())
	value, life, idle := t.RefreshToken, t.ExpiresIn, int(a.Settings(r.Context()).IdleTimeout/time.Second)
	if remember == nil {
		remember = t.remember
	}
	if remember == nil {
		same, persistent := a.replacesCookies(r, t)
		persistent = persistent || !same
		remember = &persistent
	}
	if !*remember {
		value, life, idle = value+brief, 0, 0
	}
	a.setCookie(w, access, t.AccessToken, life)
	if t.RefreshToken == "" { // an impersonation: it cannot be refreshed or continued in another session
		value, idle = "", -1
	}
	a.setCookie(w, refresh, value, idle)
	if t.device != "" {
		a.setCookie(w, a.cookieNamed("device"), t.device, deviceCookieLife)
	}
}

// replacesCookies reports whether tokens replace cookies of the same session, and
// whether the browser keeps those.
func (a *Auth) replacesCookies(r *http.Request, t *Tokens) (same, persistent bool) {
	_, refresh := a.cookieNames(r.Context())
	c := soleCookie(r, refresh)
	if c == nil {
		return false, false
	}
	token, forgets := strings.CutSuffix(c.Value, brief)
	id, _, ok := a.keys.ParseRefreshToken(token)
	return ok && id == t.SessionID, !forgets
}

// setCookie sets a cookie, and replaces one of the same name in the response. A maxAge
// of 0 lasts until the browser is closed, and -1 deletes the cookie.
func (a *Auth) setCookie(w http.ResponseWriter, name, value string, maxAge int) {
	h := w.Header()
	h["Set-Cookie"] = slices.DeleteFunc(h["Set-Cookie"], func(line string) bool { return strings.HasPrefix(line, name+"=") })
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store") // caches must not give this response to others
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever the base URL is https; http is for loopback only
		Name: name, Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: a.cfg.baseURL.Scheme == "https", SameSite: http.SameSiteLaxMode,
	})
}

func (a *Auth) clearCookies(ctx context.Context, w http.ResponseWriter) {
	if !a.hasCookies(ctx) {
		return
	}
	access, refresh := a.cookieNames(ctx)
	a.setCookie(w, access, "", -1)
	a.setCookie(w, refresh, "", -1)
}

// staleCookie reports whether err is about an access token in a cookie that is not
// valid any more.
func (a *Auth) staleCookie(r *http.Request, err error) bool {
	return a.hasSessionCookie(r) && (errors.Is(err, CodeBadToken) || errors.Is(err, CodeTokenStale) || errors.Is(err, CodeSessionEnded))
}

// cookiesInvalid reports whether err means that the cookies can never work again, so
// that the browser should delete them. An outage does not.
func cookiesInvalid(err error) bool {
	return errors.Is(err, CodeSessionEnded) || errors.Is(err, CodeRefreshTokenReused) || errors.Is(err, CodeInvalidRefreshToken)
}

// accessCookie reads the access token from a cookie, in cookie mode. A state-changing
// request must come from the same origin, because browsers also attach cookies to other
// sites' requests.
func (a *Auth) accessCookie(r *http.Request) (string, error) {
	access, _ := a.cookieNames(r.Context())
	return a.sessionCookie(r, access)
}

// refreshCookie is accessCookie for the refresh token.
func (a *Auth) refreshCookie(r *http.Request) (string, error) {
	_, refresh := a.cookieNames(r.Context())
	value, err := a.sessionCookie(r, refresh)
	return strings.TrimSuffix(value, brief), err
}

// sessionCookie reads a cookie of the session. It returns "" if there is a bearer
// token, right or wrong. It records that the credential came from a cookie, so that new
// tokens are returned in cookies.
func (a *Auth) sessionCookie(r *http.Request, name string) (string, error) {
	if _, given := a.givenBearer(r); given || !a.hasCookies(r.Context()) {
		return "", nil
	}
	c := soleCookie(r, name)
	if c == nil || c.Value == "" {
		return "", nil
	}
	if err := a.sameOrigin(r); err != nil {
		return "", err
	}
	transportOf(r.Context()).cameByCookie()
	return c.Value, nil
}

// sessionOfRefreshCookie returns the live session that a browser could refresh, without
// rotating the token; the zero Caller if there is none. It outlives the access token's
// cookie. Only the newest token counts, because an older one may be a stolen copy.
func (a *Auth) sessionOfRefreshCookie(r *http.Request) (Caller, error) {
	refresh, err := a.refreshCookie(r)
	if err != nil {
		return Caller{}, err
	}
	id, counter, ok := a.keys.ParseRefreshToken(refresh)
	if !ok {
		return Caller{}, nil
	}
	s, u, err := a.store.Session(r.Context(), id, a.now())
	switch {
	case errors.Is(err, store.ErrSessionEnded), errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrBanned):
		return Caller{}, nil
	case err != nil:
		return Caller{}, storeFailed(err)
	case counter != s.Counter, s.AAL != store.LevelAAL2 && a.mfaRequired(r.Context(), u):
		return Caller{}, nil
	}
	return Caller{UserID: u.ID, SessionID: s.ID}, nil
}

// noteSessionCookies records that a sign-in's request has session cookies, live or not,
// so that its tokens are returned in cookies, too.
func (a *Auth) noteSessionCookies(r *http.Request) error {
	_, err := a.accessCookie(r)
	if err == nil {
		_, err = a.refreshCookie(r)
	}
	return err
}

// hasSessionCookie reports whether a request has a session cookie, right or wrong, and
// no bearer token.
func (a *Auth) hasSessionCookie(r *http.Request) bool {
	access, refresh := a.cookieNames(r.Context())
	_, given := a.givenBearer(r)
	return a.hasCookies(r.Context()) && !given && (soleCookie(r, access) != nil || soleCookie(r, refresh) != nil)
}

// sameOrigin refuses a state-changing request that another site made a browser send.
// Errors: CodeCrossSiteRequest.
//
// Sec-Fetch-Site "none" means that the visitor made the request by hand. It decides
// nothing if the request has an Origin: then the origin is checked. "same-origin" is
// enough, because Origin is "null" on pages that hide their URL.
func (a *Auth) sameOrigin(r *http.Request) error {
	if r.Header.Get("Origin") != "" && r.Header.Get("Sec-Fetch-Site") == "none" {
		r = r.WithContext(r.Context())
		r.Header = r.Header.Clone()
		r.Header.Del("Sec-Fetch-Site")
	}
	origins := a.settings.now.Load().crossOrigin
	own := r.Context().Value(cookieRuleKey{}) == ownOrigin
	if own || jarOf(r.Context()) != nil {
		origins = a.ownOrigin() // trusts no other origin
	}
	if own && !isUnsafe(r) { // WithCORS lets other origins read the answer
		r = r.WithContext(r.Context())
		r.Method = http.MethodPost
	}
	if err := origins.Check(r); err != nil {
		return fail(CodeCrossSiteRequest, err)
	}
	return nil
}

// ownOrigin trusts the origin of the base URL, also where a proxy replaces the Host header.
func (a *Auth) ownOrigin() *http.CrossOriginProtection {
	p := http.NewCrossOriginProtection()
	if err := p.AddTrustedOrigin(originOf(a.cfg.baseURL.String())); err != nil {
		panic(err) // New has checked the base URL
	}
	return p
}

type cookieRuleKey struct{}

// cookieRule limits the use of cookies as credentials.
type cookieRule int

const (
	noCookies cookieRule = iota + 1 // they do not count
	ownOrigin                       // they count on requests of the service's own origin, reads included
)

// withCookieRule keeps scripts in the application's pages, and in those of WithCORS, from
// acting with the session of an operator who visits them.
func withCookieRule(rt route, r *http.Request) *http.Request {
	if !rt.takesSecretKeys() {
		return r
	}
	rule := ownOrigin
	if rt.access == operating && !rt.cookies {
		rule = noCookies
	}
	return r.WithContext(context.WithValue(r.Context(), cookieRuleKey{}, rule))
}
