package auth

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/authmount/auth/internal/wire"
)

// transportHeader is the header by which a script asks for a session in cookies.
const transportHeader = "X-Session-Transport"

// transport is how one request of an endpoint gets a session: in the body of the
// response, or in cookies, where they are on and the request
//
//   - was posted by a form,
//   - asks for them by the header X-Session-Transport: cookie, or
//   - came by a cookie itself: somebody took one for a credential.
//
// It is judged here, for all endpoints alike. A GET gets no cookies.
type transport struct {
	cookies  bool
	remember *bool       // what the request says of keeping them
	form     *postedForm // nil: it was no form
	carried  bool        // a session has gone out
}

type transportKey struct{}

// transportOf is the transport of the request that a context is of; nil where
// cookies are off, and outside of the endpoints.
func transportOf(ctx context.Context) *transport {
	t, _ := ctx.Value(transportKey{}).(*transport)
	return t
}

// cameByCookie notes that a cookie was taken for a credential.
func (t *transport) cameByCookie() {
	if t != nil {
		t.cookies = true
	}
}

// withTransport judges how the session of a request goes out. What is to change a
// browser's cookies has to come from a page of the same origin: another site
// could sign a visitor in to an account of its own.
func (a *Auth) withTransport(rt route, r *http.Request) (*http.Request, error) {
	if a.cfg.cookies == nil {
		return r, nil
	}
	t := &transport{}
	posted := rt.done != "" && isForm(r)
	asked := r.Header.Get(transportHeader) == "cookie" && rt.access != open // a provider's callback is bound to its browser
	if (posted || asked) && isUnsafe(r) {
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
		t.remember, err = rememberOf(r)
	}
	return r.WithContext(context.WithValue(r.Context(), transportKey{}, t)), err
}

// takesCookies tells whether the response to a request may set cookies, before
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

// isUnsafe tells a request that may change something from one that only reads.
func isUnsafe(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead
}

// rememberOf reads what a JSON body says of keeping the cookies; nil if nothing.
// The body stays there for the handler, which tells what else is wrong with it.
func rememberOf(r *http.Request) (*bool, error) {
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

// writeTokens writes a completed sign-in: in cookies that scripts cannot read, and
// not in the body, where the request's transport is cookies.
func (a *Auth) writeTokens(w http.ResponseWriter, r *http.Request, t *Tokens) error {
	return writeJSON(w, http.StatusOK, a.carried(w, r, t).View()) // not by way of MarshalJSON, which would be gone over once more
}

// carried is what the body carries of tokens.
func (a *Auth) carried(w http.ResponseWriter, r *http.Request, t *Tokens) Tokens {
	out := *t
	if by := transportOf(r.Context()); by != nil && by.cookies && isUnsafe(r) {
		remember := by.remember
		if same, _ := a.replaces(r, t); by.form != nil && remember == nil && t.remember == nil && !same { // the box is not ticked
			remember = new(bool)
		}
		a.setCookies(w, r, t, remember)
		by.carried = true
		out.AccessToken, out.RefreshToken = "", ""
	}
	return out
}

// signOut takes a browser's cookies away with the session that they were of. The
// logout of a bearer token leaves them: they may be of another session.
func (a *Auth) signOut(w http.ResponseWriter, r *http.Request) {
	if by := transportOf(r.Context()); by != nil && by.cookies {
		a.clearCookies(r.Context(), w)
	}
}
