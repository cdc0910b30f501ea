package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/token"
)

// mount builds a handler from a route table.
func (a *Auth) mount(routes []route) http.Handler {
	byPath := map[string]map[string]route{}
	for _, rt := range routes {
		method, pattern, _ := strings.Cut(rt.pattern, " ")
		if byPath[pattern] == nil {
			byPath[pattern] = map[string]route{}
		}
		byPath[pattern][method] = rt
	}
	// The handler works with and without the mount's prefix. Two muxes avoid collisions
	// between endpoints and a prefix of the same name.
	bare, mounted := http.NewServeMux(), http.NewServeMux()
	for pattern, methods := range byPath {
		allow := allowed(methods)
		h := a.endpoint(func(w http.ResponseWriter, r *http.Request) error {
			a.waitForBody(w, r)
			method := r.Method
			if method == http.MethodHead {
				method = http.MethodGet
			}
			rt, ok := methods[method]
			if !ok {
				w.Header().Set("Allow", allow)
				return fail(CodeMethodNotAllowed, nil)
			}
			return a.serve(rt, w, r)
		})
		bare.Handle(pattern, h)
		mounted.Handle(a.cfg.prefix+pattern, h)
	}
	notFound := a.endpoint(func(w http.ResponseWriter, r *http.Request) error {
		a.waitForBody(w, r)
		a.logMissedRequest(r.Context(), bare, r.URL.Path)
		return fail(CodeNotFound, nil)
	})
	bare.Handle("/", notFound)
	mounted.Handle("/", notFound)
	return a.withCORS(a.byPrefix(bare, mounted, notFound))
}

func allowed(methods map[string]route) string {
	var list []string
	for m := range methods {
		list = append(list, m)
		if m == http.MethodGet {
			list = append(list, http.MethodHead)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// endpoint turns a handler that returns an error into an http.Handler. It sets the
// request id, recovers from panics, and writes error responses.
func (a *Auth) endpoint(h func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(a.identify(withRequestID(w, r), r))
		defer func() {
			if v := recover(); v != nil {
				if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
					panic(v)
				}
				a.writeError(w, r, fail(CodeInternal, fmt.Errorf("panic: %v\n%s", v, debug.Stack())))
			}
		}()
		if err := h(w, r); err != nil {
			a.writeError(w, r, err)
		}
	})
}

// withRequestID sets the headers of every response, and returns the request's context
// with the request id. If the client chose it, the context also has an id that no client
// can choose, because a client may repeat the id of another request.
func withRequestID(w http.ResponseWriter, r *http.Request) context.Context {
	ctx, own := r.Context(), uuid.Must(uuid.NewV7()).String() // crypto/rand never fails
	id := r.Header.Get("X-Request-Id")
	if validRequestID(id) {
		ctx = context.WithValue(ctx, serverIDKey{}, own)
	} else {
		id = own
	}
	w.Header().Set("X-Request-Id", id)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	return context.WithValue(ctx, requestIDKey{}, id)
}

// requestIDs returns the ids of a context's request, for its rows of the audit log. server
// is "" unless the client chose id.
func requestIDs(ctx context.Context) (id, server string) {
	id, _ = ctx.Value(requestIDKey{}).(string)
	server, _ = ctx.Value(serverIDKey{}).(string)
	return id, server
}

// serve reads the whole request, enforces the route's access, and calls it.
func (a *Auth) serve(rt route, w http.ResponseWriter, r *http.Request) error {
	var err error
	r = withCookieRule(rt, r)
	if !rt.streams {
		err = a.takeBody(w, r)
	}
	if !rt.whenOff && a.off() { // checked after the body, because the setting may change meanwhile
		return fail(CodeNotFound, nil)
	}
	if err != nil {
		return err
	}
	if !rt.act {
		if err := a.notImpersonated(r); err != nil {
			a.deniedImpersonator(rt, r, err)
			return err
		}
	}
	if rt.form != nil && isForm(r) {
		return rt.form(w, r)
	}
	r, err = a.withTransport(rt, r)
	if err == nil {
		err = a.admit(rt, w, r)
	}
	if err != nil && rt.done != "" && isForm(r) && acceptsByName(r, "text/html") {
		return a.showProblemOn(w, r, err, page{})
	}
	return err
}

// admit enforces a route's access and calls it.
func (a *Auth) admit(rt route, w http.ResponseWriter, r *http.Request) error {
	if rt.access == open {
		return rt.handle(w, r)
	}
	if _, _, err := token.Bearer(r); rt.takesSecretKeys() && errors.Is(err, token.ErrSeveral) {
		return tokenFailed(err) // before a secret key or the application's own login is read
	}
	if secret, ok := givenSecretKey(r); ok && rt.takesSecretKeys() {
		r, err := a.admitSecretKey(r, secret)
		if err != nil {
			return err
		}
		return rt.handle(w, r)
	}
	if rt.access == elsewhere {
		if _, given := a.givenBearer(r); !given || r.Header.Get("Cookie") != "" { // the application's own login is mostly a cookie
			if err := a.sameOrigin(r); err != nil {
				return err
			}
		}
		return rt.handle(w, r)
	}
	if err := a.checkKey(r); err != nil {
		return err
	}
	r = a.withCaptcha(r)
	if rt.captcha {
		if err := a.verifyCaptcha(r.Context()); err != nil {
			return err
		}
	}
	if rt.access != keyed {
		find := a.live
		if rt.access == enrolling {
			find = a.enrolment
		}
		me, err := find(r)
		if err == nil && !rt.authenticates {
			err = a.checkSignInAllowed(r.Context(), me.user)
		}
		if err != nil {
			return err
		}
		r = r.WithContext(context.WithValue(r.Context(), currentKey{}, me))
	}
	if t := transportOf(r.Context()); t != nil && t.form != nil {
		return a.answerForm(rt, w, r)
	}
	return rt.handle(w, r)
}

// maxLanguages bounds the work of reading Accept-Language.
const maxLanguages = 256

type (
	requestIDKey struct{}
	serverIDKey  struct{}
	languageKey  struct{}
	currentKey   struct{}
)

// current is the session and user of a signed-in request, read from the store.
type current struct {
	session  Session
	user     User
	mfaToken string // of a sign-in that waits for enrolment; there is no session
}

// caller returns the Caller of a signed-in request.
func (c current) caller() Caller { return Caller{UserID: c.user.ID, SessionID: c.session.ID} }

// live reads the session of a request's access token. It refuses a token that is known
// to be stale, as Require does, so that clients learn of it at every endpoint. The
// endpoints themselves rely on the store in any case.
func (a *Auth) live(r *http.Request) (current, error) {
	claims, revisions, err := a.authenticate(r)
	if err == nil && claims.Impersonator == nil && a.revoked.Stale((*token.Claims)(claims), revisions) {
		err = tokenFailed(token.ErrStale)
	}
	if err != nil {
		return current{}, err
	}
	s, u, err := a.current(r.Context(), claims)
	return current{session: s, user: u}, err
}

func currentFrom(ctx context.Context) current {
	c, _ := ctx.Value(currentKey{}).(current)
	return c
}

func validRequestID(id string) bool {
	return id != "" && len(id) <= 128 && !strings.ContainsFunc(id, notUnreserved)
}

// checkKey compares the API key with each configured one, in constant time, and with
// the store's public ones.
func (a *Auth) checkKey(r *http.Request) error {
	if len(a.cfg.apiKeys) == 0 {
		return nil
	}
	key := r.Header.Get("Apikey")
	if key == "" {
		key = r.Header.Get("X-Api-Key")
	}
	if t := transportOf(r.Context()); key == "" && t != nil && t.form != nil {
		key = t.form.values.Get(fieldAPIKey)
	}
	switch {
	case a.isAPIKey(key):
		return nil
	case key == "":
		return fail(CodeInvalidAPIKey, errNoAPIKey)
	}
	switch stored, err := a.isStoredKey(r.Context(), key); {
	case err != nil:
		return err
	case stored:
		return nil
	}
	return fail(CodeInvalidAPIKey, errUnknownAPIKey)
}

func (a *Auth) isAPIKey(key string) bool {
	if len(a.cfg.apiKeys) == 0 {
		return false
	}
	given, ok := sha256.Sum256([]byte(key)), 0
	for _, k := range a.cfg.apiKeys {
		want := sha256.Sum256([]byte(k))
		ok |= subtle.ConstantTimeCompare(given[:], want[:])
	}
	return ok == 1
}

// writeError logs an error and writes it as the response.
func (a *Auth) writeError(w http.ResponseWriter, r *http.Request, err error) {
	respond(w, a.logged(r, err))
}

// respond writes every error response.
func respond(w http.ResponseWriter, e *Error) {
	body := struct {
		Code      Code           `json:"code"`
		Message   string         `json:"message"`
		RequestID string         `json:"request_id"`
		Details   map[string]any `json:"details,omitempty"`
		MFAToken  string         `json:"mfa_token,omitempty"`
		ExpiresIn int            `json:"expires_in,omitempty"`
		Factors   []string       `json:"factors,omitempty"`
	}{Code: e.Code, Message: e.Message, RequestID: w.Header().Get("X-Request-Id"), MFAToken: e.MFAToken, ExpiresIn: e.ExpiresIn, Factors: e.Factors}
	switch {
	case e.Fields != nil:
		body.Details = map[string]any{"fields": e.Fields}
	case e.Reasons != nil:
		body.Details = map[string]any{"reasons": e.Reasons}
	case e.Permission != "":
		body.Details = map[string]any{"permission": e.Permission}
	case e.Role != "":
		body.Details = map[string]any{"role": e.Role}
	}
	writeErrorHeaders(w, e)
	_ = writeJSON(w, e.Status, body) // cannot fail: strings only
}

// writeErrorHeaders sets the headers that the error's status requires.
func writeErrorHeaders(w http.ResponseWriter, e *Error) {
	h := w.Header()
	h.Del("Cache-Control")
	switch e.Status {
	case http.StatusUnauthorized:
		challenge := "Bearer"
		if e.Code == CodeBadToken || e.Code == CodeTokenStale || e.Code == CodeSessionEnded {
			challenge = `Bearer error="invalid_token"` // RFC 6750, section 3.1
		}
		h.Set("WWW-Authenticate", challenge)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		h.Set("Retry-After", strconv.Itoa(max(1, int((e.RetryAfter+time.Second-1)/time.Second))))
	}
}

// logged converts any error to an *Error and logs it.
func (a *Auth) logged(r *http.Request, err error) *Error {
	e := asError(err)
	if e.Code == CodeOverloaded {
		a.logOverload(r.Context())
	}
	logFailure(a.cfg.log, r, e, err)
	return e
}

// asError returns the *Error in err, or CodeInternal.
func asError(err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		e = fail(CodeInternal, err)
	}
	return e
}

// logFailure logs a failed request. e is the *Error in err.
func logFailure(log *slog.Logger, r *http.Request, e *Error, err error) {
	id, server := requestIDs(r.Context())
	attrs := []any{"method", r.Method, "path", r.URL.Path, "code", string(e.Code), "request_id", id}
	if server != "" {
		attrs = append(attrs, "server_request_id", server)
	}
	if e.cause != nil {
		attrs = append(attrs, "cause", e.cause.Error())
	}
	log.Log(r.Context(), logLevel(e, err), "auth: request failed", attrs...)
}

func (a *Auth) handleJWKS(w http.ResponseWriter, _ *http.Request) error {
	return writeDocument(w, a.keys.JWKS())
}

// writeDocument writes a public document that may be cached.
func writeDocument(w http.ResponseWriter, doc []byte) error {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "public, max-age=600")
	_, _ = w.Write(doc) // the client may have disconnected
	return nil
}

// JWKS returns the public keys that verify access tokens (RFC 7517), as JSON.
func (a *Auth) JWKS() []byte { return a.keys.JWKS() }

func (a *Auth) handleHealth(w http.ResponseWriter, r *http.Request) error {
	if err := a.store.Ping(r.Context()); err != nil {
		return storeFailed(err)
	}
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// within returns the session of the access token that a request carries in addition
// to its link or code, or that of the browser's refresh token. It may have ended or belong
// to another account; the store checks that. A missing session or an invalid cookie is no
// error.
func (a *Auth) within(r *http.Request) (Caller, error) {
	claims, _, err := a.authenticate(r)
	_, given := a.givenBearer(r)
	switch {
	case err != nil && !given && !errors.Is(err, CodeCrossSiteRequest):
		return a.sessionOfRefreshCookie(r) // no token, an old cookie, or a proxy's own login, is no reason to refuse a link
	case err != nil:
		return Caller{}, err
	}
	return claims.Caller(), nil
}
