package pages_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

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
