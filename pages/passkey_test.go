package pages_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/pages"
	"github.com/authmount/auth/passkey"
)

func passkeySite(t *testing.T, opts ...auth.Option) *site {
	t.Helper()
	return newSite(t, pages.Options{}, append([]auth.Option{auth.WithPasskeys(passkey.New(passkey.Options{}))}, opts...)...)
}

// options posts a form for the options of its passkey, as the script does.
func (b *browser) options(action string, fields url.Values) (publicKey map[string]any) {
	b.t.Helper()
	form := url.Values{"do": {"passkey"}, "options": {""}}
	for name, value := range fields {
		form[name] = value
	}
	res := b.send(http.MethodPost, action, form) //nolint:bodyclose // a recorder's
	var begun struct {
		PublicKey map[string]any `json:"public_key"`
	}
	if err := json.NewDecoder(res.Body).Decode(&begun); err != nil || res.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %d %v", action, res.StatusCode, err)
	}
	return begun.PublicKey
}

// finish posts a form with a credential.
func (b *browser) finish(action string, credential []byte) *shown {
	b.t.Helper()
	return b.follow(b.send(http.MethodPost, action, url.Values{"do": {"passkey"}, "credential": {string(credential)}})) //nolint:bodyclose // likewise
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// withPasskey signs a new user in, who adds a passkey.
func withPasskey(t *testing.T, s *site) (*browser, *authenticator.Authenticator) {
	t.Helper()
	b, key := s.browser(t), authenticator.New(origin)
	b.signIn(address)
	b.finish("/account/passkeys", must[json.RawMessage](t)(key.Create(b.options("/account/passkeys", nil)))).want(t, 200, "/account/", "")
	if !strings.Contains(b.page.text(), "Your passkey was added.") {
		t.Fatal(b.page.text())
	}
	return b, key
}

// Only the pages that use passkeys allow scripts, and only files of this origin.
func TestPolicyWithPasskeys(t *testing.T) {
	s := passkeySite(t)
	b := s.browser(t)
	for path, scripts := range map[string]bool{"/account/sign-in": true, "/account/sign-up": true, "/account/forgot-password": false, "/account/sign-in/mail": false, "/account/nowhere": false} {
		page := b.open(path)
		policy := page.header.Get("Content-Security-Policy")
		if got := strings.Contains(policy, "script-src 'self'; connect-src 'self'; require-trusted-types-for 'script';"); got != scripts || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %s", path, policy)
		}
		for _, script := range page.all("script") {
			if attr(script, "src") != "/auth/v1/pages/passkey.js" || script.FirstChild != nil {
				t.Errorf("%s has another script", path)
			}
		}
		if got := len(page.all("script")) == 1; got != scripts {
			t.Errorf("%s has %d scripts", path, len(page.all("script")))
		}
	}
	b.page = nil
	res := b.send(http.MethodGet, "/auth/v1/pages/passkey.js", nil) //nolint:bodyclose // a recorder's
	if res.Header.Get("Content-Type") != "text/javascript; charset=utf-8" || res.Header.Get("ETag") == "" || res.ContentLength > 6000 {
		t.Errorf("%v, %d bytes", res.Header, res.ContentLength)
	}
}

// An assertion signs in the browser that asked for it, and no other one.
func TestPasskeyOfAnotherBrowser(t *testing.T) {
	s := passkeySite(t)
	_, key := withPasskey(t, s)
	own, other := s.browser(t), s.browser(t)
	credential := must[json.RawMessage](t)(key.Get(own.options("/account/sign-in", nil)))
	other.options("/account/sign-in", nil)
	other.finish("/account/sign-in", credential).want(t, 422, "/account/sign-in", "Sign in to Notes")
	if !strings.Contains(other.page.text(), "This passkey did not work.") {
		t.Error(other.page.text())
	}
	own = s.browser(t)
	credential = must[json.RawMessage](t)(key.Get(own.options("/account/sign-in", nil)))
	own.finish("/account/sign-in?return_to=/notes", credential).want(t, 200, "/notes", "")
}

// The token of a sign-in that waits for its second factor stays in the browser's cookie.
func TestPasskeyAfterPassword(t *testing.T) {
	s := passkeySite(t)
	b, key := withPasskey(t, s)
	id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(b.page.body)[1]
	credential := must[json.RawMessage](t)(key.Get(b.options("/account/passkeys", url.Values{"do": {"second_on"}})))
	page := b.follow(b.send(http.MethodPost, "/account/passkeys", url.Values{"do": {"second_on"}, "id": {id}, "credential": {string(credential)}})) //nolint:bodyclose // a recorder's
	if page.heading() != "Your recovery codes" {
		t.Fatal(page.text())
	}
	b = s.browser(t)
	b.open("/account/sign-in?return_to=/notes")
	b.submit("login", address, "password", password).want(t, 200, "/account/sign-in/second", "Second factor")
	if strings.Contains(b.page.text(), "authenticator app") || b.page.find("code") == nil {
		t.Errorf("a page for an app that does not exist: %s", b.page.text())
	}
	options := b.options("/account/sign-in/second", nil)
	if raw, err := json.Marshal(options); err != nil || strings.Contains(string(raw), "mfa_token") {
		t.Errorf("%s, %v", raw, err)
	}
	b.finish("/account/sign-in/second", must[json.RawMessage](t)(key.Get(options))).want(t, 200, "/notes", "")
}

// A passkey that its authenticator has already is reported as such.
func TestPasskeyExists(t *testing.T) {
	b, _ := withPasskey(t, passkeySite(t))
	page := b.follow(b.send(http.MethodPost, "/account/passkeys", url.Values{"do": {"passkey"}, "failure": {"InvalidStateError"}})) //nolint:bodyclose // a recorder's
	if page.status != http.StatusConflict || !strings.Contains(page.text(), "This passkey is registered already.") {
		t.Errorf("%d %s", page.status, page.text())
	}
}

// A browser without the script is not led to a page that needs it.
func TestPasskeyIsOfferedToScripts(t *testing.T) {
	s := passkeySite(t)
	s.LoginAs(t, address)
	b := s.browser(t)
	b.open("/account/sign-in?return_to=/notes")
	b.submit("login", address, "password", password).want(t, 200, "/notes", "")
	b = s.browser(t)
	b.open("/account/sign-in?return_to=/notes")
	b.submit("login", address, "password", password, "passkeys", "1").want(t, 200, "/account/passkeys/new", "Sign in faster next time")
	for _, link := range b.page.all("a") {
		if textOf(link) == "Not now" && attr(link, "href") != "/notes" {
			t.Errorf("it goes on to %s", attr(link, "href"))
		}
	}
}

// While an account needs a second factor and has only a passkey, the page that changes the email
// address asks for the passkey first, and comes back.
func TestPasskeyBeforeAnotherAddress(t *testing.T) {
	required := false
	s := passkeySite(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required }}))
	b, key := withPasskey(t, s)
	required = true
	b.open("/account/email")
	b.submit("email", "other@example.com").want(t, 200, "/account/sign-in/second", "Second factor")
	b.finish("/account/sign-in/second", must[json.RawMessage](t)(key.Get(b.options("/account/sign-in/second", nil)))).want(t, 200, "/account/email", "")
	b.submit("email", "other@example.com").want(t, 200, "/account/email/code", "")
}
