package passkey_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
)

// browser is one browser with its cookies.
type browser struct {
	*world
	cookies map[string]string
	extra   string // further cookies, as a sibling host plants them
}

func (b *browser) post(path string, body any) (int, map[string]any) {
	b.t.Helper()
	raw, err := json.Marshal(body)
	b.must(err)
	r := httptest.NewRequestWithContext(b.t.Context(), http.MethodPost, authtest.BaseURL+path, bytes.NewReader(raw))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Session-Transport", "cookie")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value}) //nolint:gosec // of a request
	}
	if b.extra != "" {
		r.Header.Set("Cookie", strings.TrimPrefix(r.Header.Get("Cookie")+"; "+b.extra, "; "))
	}
	rec := httptest.NewRecorder()
	b.Handler().ServeHTTP(rec, r)
	for _, c := range rec.Result().Cookies() {
		if b.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	var got map[string]any
	_ = json.Unmarshal(rec.Body.Bytes(), &got)
	return rec.Code, got
}

// Two accounts in the tabs of one browser.
func TestTwoAccountsInOneBrowser(t *testing.T) {
	w := newWorld(t, auth.WithCookies(auth.CookieOptions{}))
	_, err := w.add(false)
	w.must(err)
	ada, adas := w.key, w.ada
	w.ada = w.LoginAs(t, "ben@example.com")
	w.key = authenticator.New(origin)
	_, err = w.add(false)
	w.must(err)
	ben := w.key
	w.ada = adas
	b := &browser{world: w, cookies: map[string]string{}}
	begin := func(path string) any {
		t.Helper()
		status, got := b.post(path, map[string]any{})
		if status != http.StatusOK || got["request_id"] != nil {
			t.Fatal(status, got)
		}
		return got["public_key"]
	}
	signs := func(key *authenticator.Authenticator, pk any, want string) {
		t.Helper()
		response, err := key.Get(pk)
		w.must(err)
		status, got := b.post("/passkeys/sign-in/finish", map[string]any{"credential": response})
		u, _ := got["user"].(map[string]any)
		if email, _ := u["email"].(string); email != want {
			t.Errorf("%d %v, want %s", status, got, want)
		}
	}
	autofill := begin("/passkeys/sign-in/begin") // a tab that waits
	signs(ada, begin("/passkeys/sign-in/begin"), "ada@example.com")
	create := begin("/me/passkeys/begin")
	signs(ben, autofill, "ben@example.com") // the other tab, whose request is still valid
	response, err := authenticator.New(origin).Create(create)
	w.must(err)
	if status, got := b.post("/me/passkeys", map[string]any{"credential": response}); status < 400 {
		t.Error("ada's creation in ben's session", status, got)
	}
	if status, _ := b.post("/logout", map[string]any{}); status >= 400 {
		t.Error("logout", status)
	}
	again := begin("/passkeys/sign-in/begin")
	stranger := &browser{world: w, cookies: map[string]string{}}
	stolen, err := ada.Get(again)
	w.must(err)
	if status, got := stranger.post("/passkeys/sign-in/finish", map[string]any{"credential": stolen}); status < 400 {
		t.Error("in another browser", status, got)
	}
	binding := "__Host-authmount-passkey"
	for _, extra := range []string{binding + "=" + strings.Repeat("A", 43), binding + "=" + b.cookies[binding]} {
		b.extra = extra // two cookies of one name: neither counts
		if status, got := b.post("/passkeys/sign-in/finish", map[string]any{"credential": stolen}); status < 400 {
			t.Error("two cookies", status, got)
		}
	}
	b.extra = ""
	if status, got := b.post("/passkeys/sign-in/finish", map[string]any{"credential": stolen, "request_id": ""}); status != http.StatusOK {
		t.Error("honest", status, got)
	}
	// by request_id, beside cookies
	begun, err := w.BeginPasskeySignIn(t.Context())
	w.must(err)
	response, err = ben.Get(begun.PublicKey)
	w.must(err)
	if status, got := b.post("/passkeys/sign-in/finish", map[string]any{"credential": response}); status < 400 {
		t.Error("a request_id's challenge by cookie", status, got)
	}
	mine := begin("/passkeys/sign-in/begin")
	response, err = ben.Get(mine)
	w.must(err)
	if status, got := b.post("/passkeys/sign-in/finish", map[string]any{"credential": response, "request_id": begun.RequestID}); status < 400 {
		t.Error("a cookie's challenge by request_id", status, got)
	}
}
