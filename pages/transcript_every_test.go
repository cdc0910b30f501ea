package pages_test

import (
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/pages"
)

// visitor is a browser after certain steps.
type visitor struct {
	name string
	come func(b *browser, email string)
}

func visitors(required *atomic.Bool) []visitor {
	signIn := func(b *browser, email string) {
		b.site.LoginAs(b.t, email)
		b.open("/account/sign-in")
		b.submit("login", email, "password", password)
	}
	return []visitor{
		{"nobody", func(*browser, string) {}},
		{"signed in", signIn},
		{"signed in long ago", func(b *browser, email string) {
			signIn(b, email)
			b.site.Clock.Advance(20 * time.Minute)
			b.open("/account/") // renews the access token, not the sign-in
		}},
		{"with second factor", func(b *browser, email string) {
			signIn(b, email)
			b.open("/account/second-factor")
			enrol(b.t, b)
		}},
		{"asked for second factor", func(b *browser, email string) {
			first := b.site.browser(b.t)
			signIn(first, email)
			first.open("/account/second-factor")
			enrol(b.t, first)
			b.open("/account/sign-in?return_to=/notes")
			b.submit("login", email, "password", password, "remember", "on")
		}},
		{"has to set one up", func(b *browser, email string) {
			b.site.LoginAs(b.t, email)
			required.Store(true)
			b.open("/account/sign-in?return_to=/notes")
			b.submit("login", email, "password", password)
			required.Store(false)
		}},
		{"waits for a code", func(b *browser, email string) {
			b.open("/account/sign-in/mail?return_to=/notes")
			b.submit("email", email)
		}},
	}
}

// every are the queries for every page.
var every = []string{
	"", "return_to=/notes", "return_to=https://evil.example/", "with=recovery", "remember=false",
	"reason=session_ended", "reason=reauth_needed", "reason=insufficient_aal", "error=x&error_code=oauth_denied", "error=x&error_code=unheard_of", "error=x", "code=x",
}

// wrong are invalid forms.
var wrong = []url.Values{
	{},
	{
		"login": {" ada@example.com "}, "password": {"wrong-Passphrase-1"}, "email": {" none "}, "phone": {" 12 "}, "code": {" 12 - 34 "}, "full_name": {" "},
		"current_password": {"wrong-Passphrase-1"}, "id": {"x"}, "provider": {"nobody"}, "do": {"unlink"}, "with": {"recovery"}, "trust_device": {"on"}, "qr": {"data:image/png;base64,abcd"},
	},
	{
		"login": {"+491701234567"}, "password": {"short"}, "email": {"ada@new.example"}, "phone": {"+491701234567"}, "code": {"000 000"}, "full_name": {"Ada"},
		"current_password": {password}, "provider": {"acme"}, "do": {"enable"}, "secret": {"JBSWY3DPEHPK3PXP"}, "qr": {"data:image/png;base64,abcd"}, "remember": {"on"},
	},
}

// Every page for every visitor, with all queries and with empty or wrong forms.
func TestTranscriptOfEveryPage(t *testing.T) {
	idp := authtest.StartProvider(t)
	tr := newTranscript(t)
	var required atomic.Bool
	for _, v := range visitors(&required) {
		tr.say("%s", v.name)
		s := newSite(t, pages.Options{}, auth.WithProvider(idp.OIDC("acme")), auth.WithRateLimits(auth.RateLimits{Off: true}),
			auth.WithSettings(auth.Settings{AccountDeletion: auth.On, RequireConfirmation: auth.On}),
			auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required.Load() }, TrustDevices: 12 * time.Hour}))
		idp.Now = s.Clock.Now
		plain := s.handler
		tr.of(s)
		taped, n := s.handler, 0
		come := func() *browser { // a new visitor
			n++
			s.handler = plain
			b := s.browser(t)
			v.come(b, fmt.Sprintf("ada%d@example.com", n))
			b.page = nil
			s.handler = taped
			return b
		}
		kept := come().jar.Cookies(&url.URL{Scheme: "https", Host: "auth.test", Path: "/account/"})
		again := func() *browser { // a new visitor with the same history
			b := s.browser(t)
			b.jar.SetCookies(&url.URL{Scheme: "https", Host: "auth.test", Path: "/"}, kept)
			return b
		}
		for _, path := range s.pages.Paths(http.MethodGet) {
			for _, q := range every {
				_ = again().send(http.MethodGet, path+"?"+q, nil) //nolint:bodyclose // a recorder's
			}
			_ = again().send(http.MethodHead, path+"?code=x", nil) //nolint:bodyclose // likewise
		}
		for _, path := range s.pages.Posts() {
			for _, form := range wrong {
				_ = come().send(http.MethodPost, path+"?return_to=/notes", form) //nolint:bodyclose // likewise
			}
		}
	}
	tr.compare("every_page")
}
