package pages_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/pages"
	"github.com/authmount/auth/store"
)

// The state between pages fits into a cookie with any target; a target that is too long
// is replaced by Home.
func TestFlowFitsInCookie(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	b.open("/account/second-factor")
	secret, _ := enrol(t, b)
	for to, kept := range map[string]bool{
		"/notes?" + strings.Repeat("a&", 900):   false,
		"/notes?" + strings.Repeat("&", 1017):   true,
		"/notes?" + strings.Repeat("\"", 1017):  true,
		"/notes?" + strings.Repeat("<>", 508):   true,
		"/notes?" + strings.Repeat("&", 1018):   false,
		"/notes?page=2&sort=" + "title%20first": true,
	} {
		s.Clock.Advance(time.Minute)
		o := s.browser(t)
		at := "/account/sign-in?" + url.Values{"return_to": {to}}.Encode()
		o.open(at).want(t, 200, "/account/sign-in", "")
		res := o.send(http.MethodPost, at, url.Values{"login": {address}, "password": {password}}) //nolint:bodyclose // a recorder's
		for _, line := range res.Header["Set-Cookie"] {
			if len(line) > 4096 {
				t.Errorf("a cookie of %d bytes: %.60s", len(line), line)
			}
		}
		o.follow(res)
		res = o.send(http.MethodPost, "/account/sign-in/second", url.Values{"code": {code(t, s, secret)}}) //nolint:bodyclose // likewise
		if got := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || (got == to) != kept {
			t.Errorf("%d bytes: %d to %.40s", len(to), res.StatusCode, got)
		}
	}
}

// The state of a sign-in expires after twenty minutes.
func TestFlowLife(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	b.open("/account/second-factor")
	enrol(t, b)
	s.Clock.Advance(time.Minute)
	o := s.browser(t)
	o.open("/account/sign-in")
	res := o.send(http.MethodPost, "/account/sign-in", url.Values{"login": {address}, "password": {password}}) //nolint:bodyclose // a recorder's
	n := 0
	for _, c := range res.Cookies() {
		if c.Value == "" || !strings.HasSuffix(c.Name, "pages") {
			continue
		}
		n++
		if c.MaxAge != 20*60 || !c.HttpOnly {
			t.Errorf("%s is kept for %d s", c.Name, c.MaxAge)
		}
	}
	if n == 0 {
		t.Error("nothing is kept")
	}
}

// An account that is created on a page keeps the page's language, if the browser named one.
func TestAccountKeepsThePagesLanguage(t *testing.T) {
	t.Parallel()
	s := newSite(t, pages.Options{})
	for language, want := range map[string]any{"fr-CA, en;q=0.5": "fr", "": nil} {
		b, email := s.browser(t), "visitor"+language[:min(2, len(language))]+"@example.com"
		if b.header.Del("Accept-Language"); language != "" {
			b.header.Set("Accept-Language", language)
		}
		b.open("/account/sign-up")
		b.submit("email", email, "password", password)
		u, err := s.Store.User(t.Context(), store.ByEmail(email))
		if err != nil || u.UserMetadata["locale"] != want {
			t.Errorf("%q: %v %v", language, u.UserMetadata, err)
		}
		b = s.browser(t)
		if b.header.Del("Accept-Language"); language != "" {
			b.header.Set("Accept-Language", language)
		}
		email = "mail-" + email
		b.open("/account/sign-in/mail")
		b.submit("email", email)
		b.submit("code", s.Mail(t, email, auth.KindMagicLink).Code)
		if u, err = s.Store.User(t.Context(), store.ByEmail(email)); err != nil || u.UserMetadata["locale"] != want {
			t.Errorf("by mail, %q: %v %v", language, u.UserMetadata, err)
		}
	}
}
