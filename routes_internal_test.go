package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/store"
)

// routeFlags repeats the access flags of the route table, so that no route is opened to
// more callers, and no guard removed, by accident.
const routeFlags = `
DELETE /me/identities/{provider}: signedIn
DELETE /me/passkeys/{id}: signedIn
DELETE /me: signedIn
DELETE /sessions/{id}: signedIn
DELETE /sessions: signedIn
GET /.well-known/jwks.json: open
GET /.well-known/openid-configuration: open
GET /healthz: open whenOff
GET /invitations/accept: open
GET /magic-link/verify: open whenOff
GET /me/export: signedIn
GET /me/passkeys: signedIn
GET /me: signedIn whenOff act
GET /oauth/{provider}/callback: open whenOff
GET /oauth/{provider}: open whenOff
GET /openapi.json: open
GET /pages/passkey.js: open whenOff
GET /reset-password: open
GET /secure-account: open
GET /sessions: signedIn act
GET /settings: keyed
GET /verify-email: open
PATCH /me/passkeys/{id}: signedIn
PATCH /me: signedIn
POST /2fa/disable: signedIn
POST /2fa/passkey: keyed whenOff
POST /2fa/recovery-codes: signedIn
POST /2fa/setup-totp: enrolling whenOff
POST /2fa/verify-and-enable: enrolling whenOff
POST /2fa/verify: keyed whenOff done=signed_in
POST /exchange: keyed whenOff done=signed_in
POST /forgot-password: keyed captcha done=sent
POST /invitations/accept: keyed form
POST /login: keyed whenOff done=signed_in
POST /logout: keyed whenOff act done=signed_out
POST /magic-link/send: keyed captcha whenOff done=sent
POST /magic-link/verify: keyed whenOff form
POST /me/confirm: signedIn whenOff
POST /me/identities/{provider}: signedIn
POST /me/passkeys/begin: enrolling whenOff
POST /me/passkeys: enrolling whenOff
POST /me/password: signedIn
POST /oauth/{provider}/callback: open whenOff
POST /oauth/{provider}/id-token: keyed whenOff
POST /otp/send: keyed captcha whenOff done=sent
POST /otp/verify: keyed whenOff done=signed_in
POST /passkeys/sign-in/begin: keyed whenOff
POST /passkeys/sign-in/finish: keyed whenOff
POST /refresh: keyed whenOff
POST /reset-password: keyed form
POST /secure-account: keyed form
POST /signup: keyed captcha done=sent
POST /verify-email: keyed form
`

// Each route has its intended access and guards.
func TestRoutesAreGuardedAsIsMeant(t *testing.T) {
	names := map[access]string{open: "open", keyed: "keyed", signedIn: "signedIn", enrolling: "enrolling"}
	var got []string
	for _, r := range (&Auth{}).routes() {
		line := r.pattern + ": " + names[r.access]
		for _, flag := range []struct {
			name string
			on   bool
		}{{"captcha", r.captcha}, {"whenOff", r.whenOff}, {"streams", r.streams}, {"judges", r.authenticates}, {"act", r.act}, {"done=" + r.done, r.done != ""}, {"form", r.form != nil}} {
			if flag.on {
				line += " " + flag.name
			}
		}
		if got = append(got, line); r.handle == nil {
			t.Errorf("%s: nobody handles it", r.pattern)
		}
	}
	slices.Sort(got)
	want := strings.Split(strings.TrimSpace(routeFlags), "\n")
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("not meant: %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("meant, and not so: %s", line)
		}
	}
}

// An error response has its status, code, message, details and headers. Its cause is only
// logged.
func TestErrorsAreAnsweredWhole(t *testing.T) {
	with := func(c Code, edit func(*Error)) *Error {
		e := fail(c, errors.New("the cause"))
		edit(e)
		return e
	}
	plain := func(*Error) {}
	type answer struct {
		details any
		more    map[string]any
		headers map[string]string
	}
	const invalidToken = `Bearer error="invalid_token"`
	for name, c := range map[string]struct {
		err  error
		code Code
		want answer
	}{
		"fields":            {with(CodeValidationFailed, func(e *Error) { e.Fields = map[string]string{"a": "is wrong"} }), CodeValidationFailed, answer{details: map[string]any{"fields": map[string]any{"a": "is wrong"}}}},
		"reasons":           {with(CodeWeakPassword, func(e *Error) { e.Reasons = []string{"length"} }), CodeWeakPassword, answer{details: map[string]any{"reasons": []any{"length"}}}},
		"no reasons":        {with(CodeWeakPassword, func(e *Error) { e.Reasons = []string{} }), CodeWeakPassword, answer{details: map[string]any{"reasons": []any{}}}},
		"permission":        {with(CodeMissingPermission, func(e *Error) { e.Permission = "notes.write" }), CodeMissingPermission, answer{details: map[string]any{"permission": "notes.write"}}},
		"role":              {with(CodeMissingPermission, func(e *Error) { e.Role = "editor" }), CodeMissingPermission, answer{details: map[string]any{"role": "editor"}}},
		"none of those":     {with(CodeMissingPermission, plain), CodeMissingPermission, answer{}},
		"second factor":     {with(CodeMFARequired, func(e *Error) { e.MFAToken, e.ExpiresIn, e.Factors = "token", 300, []string{"totp"} }), CodeMFARequired, answer{more: map[string]any{"mfa_token": "token", "expires_in": 300.0, "factors": []any{"totp"}}}},
		"its own message":   {with(CodeUserBanned, func(e *Error) { e.Message = "Not today." }), CodeUserBanned, answer{more: map[string]any{"message": "Not today."}}},
		"its own status":    {failStatus(CodeSessionEnded, http.StatusBadRequest, nil), CodeSessionEnded, answer{}},
		"no token":          {with(CodeMissingToken, plain), CodeMissingToken, answer{headers: map[string]string{"Www-Authenticate": "Bearer"}}},
		"a bad token":       {with(CodeBadToken, plain), CodeBadToken, answer{headers: map[string]string{"Www-Authenticate": invalidToken}}},
		"a stale token":     {with(CodeTokenStale, plain), CodeTokenStale, answer{headers: map[string]string{"Www-Authenticate": invalidToken}}},
		"an ended session":  {with(CodeSessionEnded, plain), CodeSessionEnded, answer{headers: map[string]string{"Www-Authenticate": invalidToken}}},
		"limited":           {retryAfter(CodeRateLimited, 7*time.Second, nil), CodeRateLimited, answer{headers: map[string]string{"Retry-After": "7"}}},
		"limited a little":  {retryAfter(CodeRateLimited, 0, nil), CodeRateLimited, answer{headers: map[string]string{"Retry-After": "1"}}},
		"limited over 1 s":  {retryAfter(CodeRateLimited, time.Second+1, nil), CodeRateLimited, answer{headers: map[string]string{"Retry-After": "2"}}},
		"away":              {retryAfter(CodeUnavailable, time.Minute, errors.New("the cause")), CodeUnavailable, answer{headers: map[string]string{"Retry-After": "60"}}},
		"of no kind":        {errors.New("the cause"), CodeInternal, answer{}},
		"wrapped":           {fmt.Errorf("outside: %w", fail(CodeNotFound, nil)), CodeNotFound, answer{}},
		"of no known code":  {Reject("nonsense", "Said."), CodeInternal, answer{more: map[string]any{"message": "Said."}}},
		"of the hook's own": {Reject(CodeSignupDisabled, ""), CodeSignupDisabled, answer{}},
	} {
		var log bytes.Buffer
		a := &Auth{cfg: config{now: time.Now, log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}}
		w := httptest.NewRecorder()
		w.Header().Set("X-Request-Id", "r")
		w.Header().Set("Cache-Control", "public")
		a.writeError(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/path?secret=1", http.NoBody), c.err)
		status := errorTable[c.code].Status
		if name == "its own status" {
			status = http.StatusBadRequest
		}
		want := map[string]any{"code": string(c.code), "message": errorTable[c.code].Message, "request_id": "r"}
		maps.Copy(want, c.want.more)
		if c.want.details != nil {
			want["details"] = c.want.details
		}
		var got map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != status || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d %s\nwant %d %v", name, w.Code, w.Body, status, want)
		}
		for _, h := range []string{"Www-Authenticate", "Retry-After"} {
			if w.Header().Get(h) != c.want.headers[h] {
				t.Errorf("%s: %s is %q", name, h, w.Header().Get(h))
			}
		}
		if strings.Contains(w.Header().Get("Cache-Control"), "public") {
			t.Errorf("%s: it may be cached", name)
		}
		logged := log.String()
		for _, part := range []string{"method=POST", "path=/path ", "code=" + string(c.code)} {
			if !strings.Contains(logged, part) {
				t.Errorf("%s: the log does not say %s: %s", name, part, logged)
			}
		}
		if strings.Contains(logged, "secret") || strings.Contains(c.err.Error(), "the cause") != strings.Contains(logged, "the cause") {
			t.Errorf("%s: the log says %s", name, logged)
		}
	}
}

// Store errors are mapped to the codes of callers. Unknown ones are temporary outages.
func TestFaultsOfStoresHaveTheirNames(t *testing.T) {
	typed := fail(CodeInvalidToken, nil)
	for err, want := range map[error]Code{
		store.ErrBanned: CodeUserBanned, store.ErrSessionEnded: CodeSessionEnded, store.ErrLastOwner: CodeLastOwner, store.ErrOwned: CodeRoleInUse, store.ErrTooBroad: CodeQueryTooBroad,
		store.ErrInvalidChange: CodeInternal, store.ErrNotFound: CodeUnavailable, store.ErrStale: CodeUnavailable, errors.New("away"): CodeUnavailable, error(typed): CodeInvalidToken,
	} {
		for _, given := range []error{err, fmt.Errorf("the store: %w", err)} {
			var e *Error
			got := storeFailed(given)
			if !errors.As(got, &e) || e.Code != want || !errors.Is(got, err) || e.Code == CodeUnavailable && e.RetryAfter != time.Second {
				t.Errorf("%v: %v", given, got)
			}
			if want == CodeRoleInUse && !strings.Contains(e.Message, "already has, or had, an owner") {
				t.Errorf("%v: says %q", given, e.Message)
			}
		}
	}
	if err := storeFailed(nil); err != nil {
		t.Error(err)
	}
	for err, want := range map[error]Code{store.ErrNotFound: CodeUserNotFound, errors.New("away"): CodeUnavailable, store.ErrBanned: CodeUserBanned} {
		if got := goneOr(CodeUserNotFound, err); !errors.Is(got, want) {
			t.Errorf("%v: %v", err, got)
		}
	}
	e := fail(CodeValidationFailed, errors.New("why"))
	e.Fields = map[string]string{"b": "is long", "a": "is short"}
	if got := e.Error(); got != "auth: validation_failed: a is short: b is long: why" {
		t.Error(got)
	}
	if reason(e) != "validation_failed" || reason(errors.New("busy")) != "busy" {
		t.Error("reasons of events")
	}
}

// A change is decided again while its preconditions fail, a limited number of times. A
// refusal is returned immediately.
func TestChangesAreDecidedAnewSoOften(t *testing.T) {
	for name, c := range map[string]struct {
		errs  []error // of the attempts; the last one repeats
		tries int
		want  error
	}{
		"at once":               {[]error{nil}, 1, nil},
		"at the second":         {[]error{store.ErrStale, nil}, 2, nil},
		"wrapped":               {[]error{fmt.Errorf("x: %w", store.ErrStale), nil}, 2, nil},
		"never":                 {[]error{store.ErrStale}, 20, CodeUnavailable},
		"refused":               {[]error{store.ErrStale, fail(CodeUserBanned, nil)}, 2, CodeUserBanned},
		"refused for staleness": {[]error{fail(CodeInvalidToken, store.ErrStale)}, 1, CodeInvalidToken},
		"another error":         {[]error{store.ErrNotFound}, 1, store.ErrNotFound},
	} {
		attempts := 0
		got, err := change(func() (int, error) {
			attempts++
			return attempts, c.errs[min(attempts, len(c.errs))-1]
		})
		if attempts != c.tries || !errors.Is(err, c.want) || c.want == nil && (err != nil || got != attempts) || name == "never" && got != 0 {
			t.Errorf("%s: %d after %d tries, %v", name, got, attempts, err)
		}
	}
}

// Values that JSON cannot represent and errors without a code are internal errors.
func TestWhatHasNoWordsIsOurs(t *testing.T) {
	w := httptest.NewRecorder()
	if err := writeJSON(w, http.StatusOK, math.NaN()); !errors.Is(err, CodeInternal) || w.Body.Len() > 0 {
		t.Errorf("%v, %s", err, w.Body)
	}
	if q := errorQuery(errors.New("away")); q.Get("error") != "server_error" || q.Get("error_code") != string(CodeInternal) {
		t.Errorf("%v", q)
	}
}

// The log describes a refused redirect without its secret parts, and lists the first few
// allowed URLs.
func TestRefusedRedirectsAreDescribed(t *testing.T) {
	long := strings.Repeat("a", 200-len("https://evil.test/"))
	for raw, want := range map[string]string{
		"https://ada:hush@evil.test/in?token=hush#hush": "https://evil.test/in", "/in": "/in", "": "", "https://evil.test/%": "(not a URL)",
		"https://evil.test/" + long: "https://evil.test/" + long, "https://evil.test/" + long + "b": "https://evil.test/" + long + "…",
	} {
		if got := describedURL(raw); got != want {
			t.Errorf("%q is told as %q", raw, got)
		}
	}
	var all []redirect.Pattern
	for n, want := range []string{
		"nothing", "https://0.test/", "https://0.test/, https://1.test/", "https://0.test/, https://1.test/, https://2.test/", "https://0.test/, https://1.test/, https://2.test/, https://3.test/",
		"https://0.test/, https://1.test/, https://2.test/, https://3.test/, https://4.test/", "https://0.test/, https://1.test/, https://2.test/, https://3.test/, https://4.test/, …",
	} {
		err := notListed("https://evil.test/?a=b", all, store.ErrNotFound)
		if got := err.Error(); got != "redirect_to https://evil.test/: "+store.ErrNotFound.Error()+"; WithRedirectURLs has "+want || !errors.Is(err, store.ErrNotFound) || !errors.As(err, &mistake{}) {
			t.Errorf("%d: %s", n, got)
		}
		all = append(all, redirect.Pattern{Scheme: "https", Host: string(rune('0'+n)) + ".test", Path: "/"})
	}
}

// A change that always conflicts fails with an error that permits a retry. A refusal is
// not repeated.
func TestChangeGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want Code
		n    int
	}{
		"changed meanwhile": {store.ErrStale, CodeUnavailable, 20},
		"refused":           {fail(CodeUserBanned, store.ErrStale), CodeUserBanned, 1},
	} {
		n := 0
		v, err := change(func() (int, error) { n++; return n, c.err })
		var e *Error
		if n != c.n || !errors.As(err, &e) || e.Code != c.want || c.n > 1 && (v != 0 || e.RetryAfter != time.Second) {
			t.Errorf("%s: %d times, %d, %v", name, n, v, err)
		}
	}
}
