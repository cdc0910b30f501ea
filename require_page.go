package auth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/authmount/auth/internal/redirect"
)

// RequirePage is [Auth.Require] for pages, with sessions in cookies ([WithCookies]). It
// refreshes an expired access token: the response sets the new cookies, and next sees
// the new claims. Concurrent requests of one page all succeed, within
// SessionOptions.RefreshGrace. A browser without a live session loses the cookies and
// is redirected (303) to CookieOptions.SignInURL. It is also redirected if it lacks a
// second factor or a fresh sign-in that reqs require, or a second factor that a role of its
// account requires and that HasPermission or HasRole need. Any other refusal is a page with
// the error, or JSON if only JSON is accepted. [WithOnRefused] chooses another
// response. A bearer token is treated as by Require.
//
// A state-changing request by cookie must come from a page of the same origin
// (CodeCrossSiteRequest), so that handlers need no CSRF token of their own. Handlers of
// GET must change nothing.
//
// The response has "Vary: Cookie", and "Cache-Control: no-store" if it sets cookies;
// next must not make it public.
func (a *Auth) RequirePage(next http.Handler, reqs ...Requirement) http.Handler {
	return a.RequirePageAll(reqs...)(next)
}

// RequirePageAll is RequirePage as middleware of a router:
//
//	r.Use(a.RequirePageAll(auth.HasPermission("notes.read")))
func (a *Auth) RequirePageAll(reqs ...Requirement) func(http.Handler) http.Handler {
	if a.cfg.cookies == nil {
		a.cfg.log.Error("auth: RequirePage without WithCookies lets only bearer tokens through")
	}
	return func(next http.Handler) http.Handler { return a.requirePage(next, reqs) }
}

func (a *Auth) requirePage(next http.Handler, reqs []Requirement) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, renewed, err := a.admittedPage(w, r)
		if err == nil {
			err = a.checkRequirements(renewed, c, reqs)
			a.clearEndedCookies(w, r, err)
		}
		if err != nil {
			a.refusePage(w, r, err)
			return
		}
		next.ServeHTTP(w, withClaimsOf(renewed, c))
	})
}

// Optional is Require for handlers that also serve anonymous requests. A request
// without a token passes, one with an invalid bearer token does not. A session in
// cookies is refreshed as by RequirePage. If it has ended, the request is anonymous,
// and the response deletes the cookies. If it needs a second factor to continue, the
// request is anonymous, too.
func (a *Auth) Optional(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, renewed, err := a.admittedPage(w, r)
		switch {
		case err == nil:
			next.ServeHTTP(w, withClaimsOf(renewed, c))
		case errors.Is(err, CodeMFARequired), errors.Is(err, CodeMFAEnrollmentRequired):
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), factorDueKey{}, err)))
		case errors.Is(err, CodeMissingToken), a.hasSessionCookie(r) && !errors.Is(err, CodeCrossSiteRequest):
			next.ServeHTTP(w, r)
		default:
			a.refuse(w, r, err)
		}
	})
}

// factorDueKey is the key of the error that a second factor resolves.
type factorDueKey struct{}

// admittedPage is admitted for a browser. It replaces an expired access token by means
// of the refresh token, and deletes the cookies of an ended session. The request that
// it returns has the new cookies, for handlers that read them.
func (a *Auth) admittedPage(w http.ResponseWriter, r *http.Request) (*Claims, *http.Request, error) {
	if a.hasCookies(r.Context()) {
		w.Header().Add("Vary", "Cookie")
	}
	c, err := a.admitted(r)
	if err == nil || errors.Is(err, CodeCrossSiteRequest) {
		return c, r, err
	}
	token, foreign := a.refreshCookie(r)
	switch {
	case foreign != nil:
		return nil, r, foreign
	case token == "":
		if a.staleCookie(r, err) {
			a.clearCookies(r.Context(), w)
		}
		return nil, r, err
	}
	tokens, err := a.Refresh(a.identify(r.Context(), r), RefreshParams{RefreshToken: token})
	if err != nil {
		a.clearEndedCookies(w, r, err)
		return nil, r, err
	}
	a.setCookies(w, r, tokens, nil)
	if c, err = a.verifyShared(tokens.AccessToken); err == nil {
		c, err = a.completeClaims(r.Context(), c)
	}
	return c, a.withCookies(r, tokens), err
}

// clearEndedCookies deletes the cookies if err says that their session has ended.
func (a *Auth) clearEndedCookies(w http.ResponseWriter, r *http.Request, err error) {
	if _, given := a.givenBearer(r); !given && cookiesInvalid(err) {
		a.clearCookies(r.Context(), w)
	}
}

// withCookies returns the request as the browser will send it with its new cookies.
func (a *Auth) withCookies(r *http.Request, t *Tokens) *http.Request {
	access, refresh := a.cookieNames(r.Context())
	_, persistent := a.replacesCookies(r, t)
	var parts []string
	for _, line := range r.Header["Cookie"] {
		for part := range strings.SplitSeq(line, ";") {
			name, _, _ := strings.Cut(part, "=")
			if name = strings.TrimSpace(name); name != access && name != refresh {
				parts = append(parts, strings.TrimSpace(part))
			}
		}
	}
	value := t.RefreshToken
	if !persistent {
		value += brief
	}
	parts = append(parts, access+"="+t.AccessToken, refresh+"="+value)
	r = r.WithContext(r.Context())
	r.Header = r.Header.Clone()
	r.Header["Cookie"] = []string{strings.Join(parts, "; ")}
	return r
}

// signInErrors returns the errors that a sign-in, or a second factor, resolves.
func signInErrors() []Code {
	return []Code{
		CodeMissingToken, CodeBadToken, CodeTokenStale, CodeSessionEnded, CodeInvalidRefreshToken, CodeRefreshTokenReused, CodeInsufficientAAL, CodeReauthNeeded,
		CodeMFARequired, CodeMFAEnrollmentRequired,
	}
}

// refusePage is refuse for browsers.
func (a *Auth) refusePage(w http.ResponseWriter, r *http.Request, err error) {
	_, given := a.givenBearer(r)
	if a.cfg.onRefused != nil && jarOf(r.Context()) == nil || !a.hasCookies(r.Context()) || given || fromScript(r) {
		a.refuse(w, r, err)
		return
	}
	a.endpoint(func(w http.ResponseWriter, r *http.Request) error {
		var e *Error
		if errors.As(err, &e) && slices.Contains(signInErrors(), e.Code) {
			return seeOther(w, a.signInURL(r, e.Code))
		}
		return a.showProblemOn(w, r, err, page{})
	}).ServeHTTP(w, r)
}

// signInURL returns the URL of the sign-in page for a refused visitor, with a redirect
// back.
func (a *Auth) signInURL(r *http.Request, reason Code) string {
	q := url.Values{}
	if to := a.target(r); to != "" {
		q.Set(fieldReturnTo, to)
	}
	if reason != CodeMissingToken {
		q.Set("reason", string(reason))
	}
	return redirect.WithQuery(a.signInPage(r.Context()), q)
}

// target returns the request's path as the browser sent it, with any stripped prefix;
// "" if a redirect cannot return to it.
func (a *Auth) target(r *http.Request) string {
	to := r.RequestURI
	if !strings.HasPrefix(to, "/") {
		to = r.URL.RequestURI()
	}
	if isUnsafe(r) || !redirect.IsLocal(to) {
		return ""
	}
	if public := a.cfg.publicPath; public != "" && !strings.HasPrefix(to, public+"/") {
		return public + to
	}
	return to
}
