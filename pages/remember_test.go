package pages_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/pages"
)

// Verifying a second factor again keeps the life of the session's cookies.
func TestStepUpKeepsWhatWasRemembered(t *testing.T) {
	for name, remember := range map[string]string{"remembered": "1", "until the browser is closed": ""} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, pages.Options{})
			b := s.browser(t)
			b.signIn(address)
			b.open("/account/second-factor")
			secret, _ := enrol(t, b)
			s.Clock.Advance(time.Minute)
			o := s.browser(t)
			o.follow(o.send(http.MethodPost, "/account/sign-in", url.Values{"login": {address}, "password": {password}, "remember": {remember}})) //nolint:bodyclose // a recorder's
			for _, what := range []string{"sign-in", "step-up"} {
				o.open("/account/sign-in/second").want(t, 200, "/account/sign-in/second", "")
				res := o.send(http.MethodPost, "/account/sign-in/second", url.Values{"code": {code(t, s, secret)}}) //nolint:bodyclose // a recorder's
				set := 0
				for _, c := range res.Cookies() {
					if !strings.HasSuffix(c.Name, "access") && !strings.HasSuffix(c.Name, "refresh") {
						continue
					}
					set++
					if kept := c.MaxAge > 0; kept != (remember != "") {
						t.Errorf("%s: %s for %d s", what, c.Name, c.MaxAge)
					}
				}
				if set != 2 {
					t.Errorf("%s: %d cookies", what, set)
				}
				o.follow(res)
				s.Clock.Advance(time.Minute)
			}
		})
	}
}

// A browser whose session needs a second factor to continue sets one up and returns to the
// page that it wanted. Its cookies keep their life.
func TestFactorBecomesRequired(t *testing.T) {
	for name, remember := range map[string]string{"remembered": "1", "until the browser is closed": ""} {
		t.Run(name, func(t *testing.T) {
			var required atomic.Bool
			s := newSite(t, pages.Options{}, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required.Load() }}))
			s.LoginAs(t, address)
			b := s.browser(t)
			b.follow(b.send(http.MethodPost, "/account/sign-in", url.Values{"login": {address}, "password": {password}, "remember": {remember}})) //nolint:bodyclose // a recorder's
			required.Store(true)
			s.Clock.Advance(time.Hour)
			b.open("/notes").want(t, 200, "/account/sign-in/enrol", "Set up a second factor")
			enrol(t, b)
			if !strings.Contains(b.page.body, `href="/notes"`) {
				t.Errorf("it does not lead on: %s", b.page.text())
			}
			b.open("/notes").want(t, 200, "/notes", "")
			for _, c := range b.jar.Cookies(&url.URL{Scheme: "https", Host: b.page.url.Host, Path: "/"}) {
				if brief := strings.HasSuffix(c.Value, ".brief"); strings.HasSuffix(c.Name, "refresh") && brief != (remember == "") {
					t.Errorf("%s=%s", c.Name, c.Value)
				}
			}
		})
	}
}
