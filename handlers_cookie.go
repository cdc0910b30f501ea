package auth

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// cookieName is what the names of all cookies have in common.
func (a *Auth) cookieName() string {
	if a.cfg.cookies != nil && a.cfg.cookies.Name != "" {
		return a.cfg.cookies.Name
	}
	return "authmount"
}

// cookieNamed is the name of one cookie. The prefix makes browsers
// refuse it where it could be planted by another host (RFC 6265bis); it needs
// https, so on a loopback host in dev mode it is left out.
func (a *Auth) cookieNamed(what string) string {
	if a.cfg.baseURL.Scheme == "http" {
		return a.cookieName() + "-" + what
	}
	return "__Host-" + a.cookieName() + "-" + what
}

// soleCookie is the cookie of that name, or nil. Of two none is believed: another
// host of the site, or a path below, may have planted one of them.
func soleCookie(r *http.Request, name string) *http.Cookie {
	if all := r.CookiesNamed(name); len(all) == 1 {
		return all[0]
	}
	return nil
}

// CookieSetting says something about the cookies that [Auth.SetCookies] sets.
type CookieSetting func(*cookieSettings)

type cookieSettings struct{ remember *bool }

// Remember tells whether the browser keeps the cookies when it is closed, as
// "remember me" has it; without it they end with the browser's session. What was
// said at the sign-in holds for every refresh.
func Remember(on bool) CookieSetting {
	return func(s *cookieSettings) { s.remember = &on }
}

// SetCookies signs a browser in: the response carries the tokens in cookies that
// scripts cannot read, by the names that [CookieOptions] tells, in place of those
// that it would have carried. It is for pages of the application's own, that call
// [Auth.Login] and the like, and comes before the body:
//
//	tokens, err := a.Login(ctx, auth.LoginParams{…})
//	…
//	err = a.SetCookies(w, r, tokens, auth.Remember(r.FormValue("remember") != ""))
//
// Without [Remember] it is as was said when the sign-in began (StartOAuthParams,
// SendMagicLinkParams); where nothing was, the browser keeps the cookies, unless they
// take the place of cookies of the same session that it does not keep.
//
// A post from another site signs nobody in: CodeCrossSiteRequest, and nothing is
// set; [Auth.CheckOrigin] tells so before the password is judged. On a GET,
// which any site can make a browser send, only the application knows whether the
// visitor wanted this. Without [WithCookies] the error is CodeInternal.
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

// ClearCookies signs a browser out: it forgets the cookies that SetCookies set, but
// for the one that tells which device it is. The session itself goes on until
// [Auth.Logout] ends it. It comes before the body.
func (a *Auth) ClearCookies(w http.ResponseWriter) { a.clearCookies(context.Background(), w) }

// CheckOrigin refuses a request that changes something and that another site made
// a browser send, with CodeCrossSiteRequest; requests of programs, safe methods
// and the origins of WithCORS pass. Handlers of sign-in forms call it first, so
// that no site can sign a visitor in to an account of its own.
func (a *Auth) CheckOrigin(r *http.Request) error { return a.sameOrigin(r) }

// brief marks the refresh token's cookie where the browser is not to keep it: what
// comes back from a browser does not tell for how long it was set.
const brief = ".brief"

// setCookies carries tokens in cookies. No GET may lead here but a provider's
// callback, which is bound to its browser: images and frames of other sites make
// such requests, too.
func (a *Auth) setCookies(w http.ResponseWriter, r *http.Request, t *Tokens, remember *bool) {
	a.insecure(r)
	access, refresh := a.cookieNames(r.Context())
	value, life, idle := t.RefreshToken, t.ExpiresIn, int(a.Settings(r.Context()).IdleTimeout/time.Second)
	if remember == nil {
		remember = t.remember
	}
	if remember == nil {
		same, kept := a.replaces(r, t)
		kept = kept || !same
		remember = &kept
	}
	if !*remember {
		value, life, idle = value+brief, 0, 0
	}
	a.setCookie(w, access, t.AccessToken, life)
	if t.RefreshToken == "" { // of an impersonation: nothing renews it, nor makes it another session
		value, idle = "", -1
	}
	a.setCookie(w, refresh, value, idle)
	if t.device != "" {
		a.setCookie(w, a.cookieNamed("device"), t.device, deviceCookieLife)
	}
}

// replaces tells whether tokens take the place of cookies of the same session, and
// whether the browser keeps those.
func (a *Auth) replaces(r *http.Request, t *Tokens) (same, kept bool) {
	_, refresh := a.cookieNames(r.Context())
	c := soleCookie(r, refresh)
	if c == nil {
		return false, false
	}
	token, forgets := strings.CutSuffix(c.Value, brief)
	id, _, ok := a.keys.ParseRefreshToken(token)
	return ok && id == t.SessionID, !forgets
}

// setCookie sets a cookie, in place of one that the response has set before; a
// maxAge of 0 is as long as the browser is open, and -1 takes it away.
func (a *Auth) setCookie(w http.ResponseWriter, name, value string, maxAge int) {
	h := w.Header()
	h["Set-Cookie"] = slices.DeleteFunc(h["Set-Cookie"], func(line string) bool { return strings.HasPrefix(line, name+"=") })
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store") // nobody else may be given this response
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

// staleCookie tells whether an error is that of an access token in a cookie that is
// no good any more.
func (a *Auth) staleCookie(r *http.Request, err error) bool {
	return a.hasSessionCookie(r) && (errors.Is(err, CodeBadToken) || errors.Is(err, CodeTokenStale) || errors.Is(err, CodeSessionEnded))
}

// over tells whether cookies can never work again after an error, so that the
// browser should not keep sending them. An outage is no reason.
func over(err error) bool {
	return errors.Is(err, CodeSessionEnded) || errors.Is(err, CodeRefreshTokenReused) || errors.Is(err, CodeInvalidRefreshToken)
}

// accessCookie reads the access token from a cookie, if cookie mode is on. A
// request that changes something has to come from the same origin: the browser
// attaches cookies to other sites' requests too.
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

// sessionCookie reads one of the session's cookies; beside a bearer token, right or
// wrong, there is none. Whoever takes it for a credential gives the session back
// in cookies, too.
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

// besideCookies notes that a sign-in goes on from a session, or from one that was,
// whose cookies come with it: what comes of it goes there, too.
func (a *Auth) besideCookies(r *http.Request) error {
	_, err := a.accessCookie(r)
	if err == nil {
		_, err = a.refreshCookie(r)
	}
	return err
}

// hasSessionCookie tells whether a request brings a cookie of a session, right or
// wrong, and no bearer token.
func (a *Auth) hasSessionCookie(r *http.Request) bool {
	access, refresh := a.cookieNames(r.Context())
	_, given := a.givenBearer(r)
	return a.hasCookies(r.Context()) && !given && (soleCookie(r, access) != nil || soleCookie(r, refresh) != nil)
}

// sameOrigin refuses a request that changes something and that another site made a
// browser send. Errors: CodeCrossSiteRequest.
//
// "none" says that the visitor made the request by hand, which is no word on a
// request that names an origin: the origin is judged. "same-origin" stays enough,
// since Origin is "null" where a page tells nobody of its address.
func (a *Auth) sameOrigin(r *http.Request) error {
	if r.Header.Get("Origin") != "" && r.Header.Get("Sec-Fetch-Site") == "none" {
		r = r.WithContext(r.Context())
		r.Header = r.Header.Clone()
		r.Header.Del("Sec-Fetch-Site")
	}
	origins := a.settings.now.Load().crossOrigin
	if jarOf(r.Context()) != nil {
		origins = http.NewCrossOriginProtection() // which trusts nobody else
	}
	if err := origins.Check(r); err != nil {
		return fail(CodeCrossSiteRequest, err)
	}
	return nil
}
