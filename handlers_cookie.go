package auth

import (
	"errors"
	"net/http"
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

// cookieNames are the names of the tokens' cookies.
func (a *Auth) cookieNames() (access, refresh string) {
	return a.cookieNamed("access"), a.cookieNamed("refresh")
}

// soleCookie is the cookie of that name, or nil. Of two none is believed: another
// host of the site, or a path below, may have planted one of them.
func soleCookie(r *http.Request, name string) *http.Cookie {
	if all := r.CookiesNamed(name); len(all) == 1 {
		return all[0]
	}
	return nil
}

// setCookies carries tokens in cookies. No GET may lead here but a provider's
// callback, which is bound to its browser: images and frames of other sites make
// such requests, too.
func (a *Auth) setCookies(w http.ResponseWriter, t *Tokens) {
	access, refresh := a.cookieNames()
	a.setCookie(w, access, t.AccessToken, t.ExpiresIn)
	a.setCookie(w, refresh, t.RefreshToken, int(a.cfg.sessions.IdleTimeout/time.Second))
	if t.device != "" {
		a.setCookie(w, a.cookieNamed("device"), t.device, deviceCookieLife)
	}
}

func (a *Auth) setCookie(w http.ResponseWriter, name, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever the base URL is https; http is for loopback only
		Name: name, Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: a.cfg.baseURL.Scheme == "https", SameSite: http.SameSiteLaxMode,
	})
}

func (a *Auth) clearCookies(w http.ResponseWriter) {
	if a.cfg.cookies == nil {
		return
	}
	access, refresh := a.cookieNames()
	a.setCookie(w, access, "", -1)
	a.setCookie(w, refresh, "", -1)
}

// clearCookiesIfOver drops cookies that can never work again, so that a browser
// does not keep sending them. An outage is no reason.
func (a *Auth) clearCookiesIfOver(w http.ResponseWriter, err error) {
	if errors.Is(err, CodeSessionEnded) || errors.Is(err, CodeRefreshTokenReused) || errors.Is(err, CodeInvalidRefreshToken) {
		a.clearCookies(w)
	}
}

// accessCookie reads the access token from a cookie, if cookie mode is on. A
// request that changes something has to come from the same origin: the browser
// attaches cookies to other sites' requests too.
func (a *Auth) accessCookie(r *http.Request) (string, error) {
	if a.cfg.cookies == nil {
		return "", nil
	}
	access, _ := a.cookieNames()
	return a.sameOriginCookie(r, access)
}

// refreshCookie is accessCookie for the refresh token.
func (a *Auth) refreshCookie(r *http.Request) (string, error) {
	if a.cfg.cookies == nil {
		return "", nil
	}
	_, refresh := a.cookieNames()
	return a.sameOriginCookie(r, refresh)
}

func (a *Auth) sameOriginCookie(r *http.Request, name string) (string, error) {
	c := soleCookie(r, name)
	if c == nil || c.Value == "" {
		return "", nil
	}
	if err := a.sameOrigin(r); err != nil {
		return "", err
	}
	return c.Value, nil
}

// sameOrigin refuses a request that changes something and that another site made a
// browser send. Errors: CodeCrossSiteRequest.
func (a *Auth) sameOrigin(r *http.Request) error {
	if err := a.crossOrigin.Check(r); err != nil {
		return fail(CodeCrossSiteRequest, err)
	}
	return nil
}
