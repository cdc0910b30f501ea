package pages_test

import (
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/pages"
)

// If devices may be trusted, the page for a code of the app has a checkbox at sign-in
// only, and a browser that checked it is not asked again.
func TestTrustThisDevice(t *testing.T) {
	for name, life := range map[string]time.Duration{"on": 30 * 24 * time.Hour, "off": 0} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, pages.Options{}, auth.WithMFA(auth.MFAOptions{TrustDevices: life}))
			b := s.browser(t)
			b.signIn(address)
			b.open("/account/second-factor")
			secret, _ := enrol(t, b)
			other := s.browser(t)
			signIn := func(b *browser) *shown {
				b.open("/account/sign-in?return_to=/notes")
				return b.submit("login", address, "password", password)
			}
			p := signIn(other).want(t, 200, "/account/sign-in/second", "Second factor")
			if is := boxed(p); is != (life > 0) {
				t.Fatalf("there is a box: %v", is)
			}
			if life == 0 {
				return
			}
			if p := other.open("/account/sign-in/second?with=recovery"); boxed(p) {
				t.Error("a box beside recovery codes")
			}
			other.open("/account/sign-in/second")
			s.Clock.Advance(time.Minute)
			other.submit("code", code(t, s, secret), "trust_device", "1").want(t, 200, "/notes", "")
			other.open("/account/")
			other.press("/account/sign-out")
			signIn(other).want(t, 200, "/notes", "")
			signIn(s.browser(t)).want(t, 200, "/account/sign-in/second", "")
		})
	}
}

// boxed reports whether a page offers to trust the device.
func boxed(p *shown) bool { return attr(p.input("trust_device"), "type") == "checkbox" }
