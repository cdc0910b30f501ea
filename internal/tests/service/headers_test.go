package service_test

import (
	"bytes"
	"image"
	_ "image/png"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
)

// Answers have the headers for their content type, caching and next location.
func TestAnswersHaveTheirHeaders(t *testing.T) {
	idp := authtest.StartProvider(t)
	w := harness.NewWorld(t, auth.WithProvider(idp.Google()), auth.WithCookies(auth.CookieOptions{}))
	idp.Now = w.Clock.Now
	s := w.Member("ada@example.com")
	picture := w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(s.AccessToken), harness.Header{Name: "Accept", Value: "image/png"})
	if c, kind, err := image.DecodeConfig(bytes.NewReader(picture.Body)); err != nil || kind != "png" || c.Width != 256 || c.Height != 256 {
		t.Errorf("a picture of %d x %d, %s, %v", c.Width, c.Height, kind, err)
	}
	inbox := func(method, path, host string) *harness.Answer {
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		r.Host, r.RemoteAddr = host, "127.0.0.1:1"
		rec := httptest.NewRecorder()
		auth.NewInbox().ServeHTTP(rec, r)
		return &harness.Answer{T: t, Status: rec.Code, Header: rec.Header(), Body: rec.Body.Bytes()}
	}
	const (
		document = "application/json; charset=utf-8"
		login    = "email=ada@example.com&password=" + harness.GoodPassword
	)
	for name, c := range map[string]struct {
		a      *harness.Answer
		status int
		want   map[string]string // "" is none, "…" any
	}{
		"a document":               {w.Do("GET", "/.well-known/jwks.json", nil), 200, map[string]string{"Content-Type": document, "Cache-Control": "public, max-age=600", "X-Request-Id": "…", "X-Content-Type-Options": "nosniff"}},
		"an account":               {w.Do("GET", "/me", nil, harness.Bearer(s.AccessToken)), 200, map[string]string{"Content-Type": document, "Cache-Control": "no-store"}},
		"an export":                {w.Do("GET", "/me/export", nil, harness.Bearer(s.AccessToken)), 200, map[string]string{"Content-Type": document, "Cache-Control": "no-store", "Content-Disposition": `attachment; filename="account.json"`}},
		"a picture":                {picture, 200, map[string]string{"Content-Type": "image/png", "Cache-Control": "no-store"}},
		"to a provider":            {w.Do("GET", "/oauth/google?redirect_to=https://app.test/", nil), 302, map[string]string{"Location": "…", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "Set-Cookie": "…"}},
		"on from a form":           {w.Do("POST", "/login", login+"&redirect_to=https://app.test/in", harness.Form, harness.SameOrigin), 303, map[string]string{"Location": "https://app.test/in", "Content-Type": "", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}},
		"another method":           {w.Do("GET", "/login", nil), 405, map[string]string{"Allow": "…", "Content-Type": document}},
		"too much":                 {w.Do("POST", "/login", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`), 413, map[string]string{"Connection": "close"}},
		"not too much":             {w.Do("POST", "/login", `{"a":"b"}`), 422, map[string]string{"Connection": ""}},
		"an inbox":                 {inbox("GET", "/dev/inbox", "localhost"), 200, map[string]string{"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", "Allow": ""}},
		"an inbox for programs":    {inbox("GET", "/dev/messages", "localhost"), 200, map[string]string{"Content-Type": document, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}},
		"an inbox without a body":  {inbox("HEAD", "/dev/messages", "localhost"), 200, map[string]string{"Content-Type": document}},
		"an inbox, another method": {inbox("POST", "/dev/messages", "localhost"), 405, map[string]string{"Allow": "GET, HEAD", "Cache-Control": "no-store"}},
		"an inbox of elsewhere":    {inbox("GET", "/dev/messages", "evil.test"), 403, map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}},
	} {
		if c.a.Status != c.status {
			t.Errorf("%s: %d %s", name, c.a.Status, c.a.Body)
		}
		for h, want := range c.want {
			if got := c.a.Header.Get(h); got != want && (want != "…" || got == "") {
				t.Errorf("%s: %s is %q, want %q", name, h, got, want)
			}
		}
	}
}

// A body that is too large does not close an HTTP/2 connection, which serves several
// requests at once.
func TestTooMuchOverHTTP2ClosesNothing(t *testing.T) {
	w := harness.NewWorld(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/auth/v1/login", strings.NewReader(strings.Repeat("x", 1<<20)))
	r.Header.Set("Content-Type", "application/json")
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
	rec := httptest.NewRecorder()
	w.Handler().ServeHTTP(rec, r)
	if rec.Code != http.StatusRequestEntityTooLarge || rec.Header().Get("Connection") != "" {
		t.Errorf("%d, %v", rec.Code, rec.Header())
	}
}
