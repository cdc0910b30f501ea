package auth

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/authmount/auth/internal/wire"
)

// transportHeader is the header by which a script requests a session in cookies.
const transportHeader = "X-Session-Transport"

// transport is how an endpoint returns a session for one request: in the body of the
// response, or in cookies, if they are on and the request
//
//   - was posted by a form,
//   - has the header X-Session-Transport: cookie, or
//   - used a cookie as its credential.
//
// It is decided here for all endpoints. In response to a GET it sets no cookies.
type transport struct {
	cookies  bool
	remember *bool       // whether the browser keeps the cookies; nil: not set
	form     *postedForm // nil: no form
	carried  bool        // a session was returned
}

type transportKey struct{}

// transportOf returns the transport of a context's request; nil if cookies are off, and
// outside of the endpoints.
func transportOf(ctx context.Context) *transport {
	t, _ := ctx.Value(transportKey{}).(*transport)
	return t
}

// cameByCookie records that a cookie was used as the credential.
func (t *transport) cameByCookie() {
	if t != nil {
		t.cookies = true
	}
}

// withTransport decides how the session of a request is returned. A request that
// changes cookies must come from a page of the same origin: another site could
// otherwise sign a visitor in to an account of its own.
func (a *Auth) withTransport(rt route, r *http.Request) (*http.Request, error) {
	if a.cfg.cookies == nil {
		return r, nil
	}
	t := &transport{}
	posted := rt.done != "" && isForm(r)
	requested := r.Header.Get(transportHeader) == "cookie" && rt.access != open // a provider's callback is bound to its browser
	if (posted || requested) && isUnsafe(r) {
		if err := a.sameOrigin(r); err != nil {
			return r, err
		}
		t.cookies = true
	}
	var err error
	switch {
	case posted:
		t.form, err = readPosted(r)
		if err == nil {
			t.remember = t.form.remember
			err = a.checkReturns(rt, t.form)
		}
	case t.cookies && !rt.streams:
		t.remember, err = rememberInJSON(r)
	}
	return r.WithContext(context.WithValue(r.Context(), transportKey{}, t)), err
}

// takesCookies reports whether the response to a request may set cookies, before
// anything else about it is known.
func (a *Auth) takesCookies(r *http.Request) bool {
	switch {
	case a.cfg.cookies == nil:
		return false
	case !isUnsafe(r):
		return !fromScript(r)
	}
	return isForm(r) || r.Header.Get(transportHeader) == "cookie" || a.hasSessionCookie(r)
}

// isUnsafe reports whether a request may change something.
func isUnsafe(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead
}

// rememberInJSON returns "remember" of a JSON body; nil if it is not set. The body
// stays unread for the handler, which reports other errors in it.
func rememberInJSON(r *http.Request) (*bool, error) {
	if isForm(r) {
		return nil, nil
	}
	body, err := readBody(r)
	if err != nil || body == nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var p struct {
		Remember *bool `json:"remember"`
	}
	var wrong *wire.FieldError
	if err := wire.Unmarshal(body, &p); errors.As(err, &wrong) {
		return nil, bodyFailed(err)
	}
	return p.Remember, nil
}

// writeTokens writes the response of a completed sign-in: with the tokens in HttpOnly
// cookies if the request's transport is cookies, otherwise in the body.
func (a *Auth) writeTokens(w http.ResponseWriter, r *http.Request, t *Tokens) error {
	return writeJSON(w, http.StatusOK, a.carried(w, r, t).View()) // not by MarshalJSON, because json.Marshal would validate its result again
}

// carried returns the tokens for the body.
func (a *Auth) carried(w http.ResponseWriter, r *http.Request, t *Tokens) Tokens {
	out := *t
	if by := transportOf(r.Context()); by != nil && by.cookies && isUnsafe(r) {
		remember := by.remember
		if same, _ := a.replacesCookies(r, t); by.form != nil && remember == nil && t.remember == nil && !same { // the box is not checked
			remember = new(bool)
		}
		a.setCookies(w, r, t, remember)
		by.carried = true
		out.AccessToken, out.RefreshToken = "", ""
	}
	return out
}

// signOut deletes a browser's cookies at the logout of their session. The logout of a
// bearer token does not, because the cookies may be of another session.
func (a *Auth) signOut(w http.ResponseWriter, r *http.Request) {
	if by := transportOf(r.Context()); by != nil && by.cookies {
		a.clearCookies(r.Context(), w)
	}
}
