package pages_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/pages"
)

// The public pages and those that need a recent sign-in, listed again to detect a mistake
// in the table of routes.
var (
	forEverybody = []string{
		"/sign-in", "/sign-in/mail", "/sign-in/phone", "/sign-in/code", "/sign-in/with/acme", "/sign-in/back", "/sign-in/second", "/sign-in/enrol",
		"/sign-in/confirm", "/sign-up", "/sign-up/code", "/forgot-password", "/forgot-password/sent", "/act", "/sign-out", "/signed-out",
	}
	forRecent = []string{"/identities", "/passkeys", "/passkeys/new", "/email", "/phone", "/second-factor", "/delete"}
	apart     = []string{
		"/sign-in", "/sign-in/mail", "/sign-in/phone", "/sign-in/code", "/sign-in/with/acme", "/sign-in/back", "/sign-in/second", "/sign-in/enrol",
		"/forgot-password", "/forgot-password/sent", "/sign-out", "/signed-out", "/second-factor",
	}
)

// The account needs a session for GET and POST, and pages that could take over an account
// need a recent sign-in.
func TestPagesAskWhoIsThere(t *testing.T) {
	s := newSite(t, pages.Options{}, auth.WithSettings(auth.Settings{AccountDeletion: auth.On}))
	b := s.browser(t)
	b.signIn(address)
	s.Clock.Advance(20 * time.Minute)
	b.open("/account/") // renews the access token, not the sign-in
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for _, path := range s.pages.Paths(method) {
			at := strings.TrimPrefix(path, "/account")
			asks := func(b *browser) bool {
				res := b.send(method, path, url.Values{}) //nolint:bodyclose // a recorder's
				to, _, _ := strings.Cut(res.Header.Get("Location"), "?")
				return to == "/account/sign-in" && !slices.Contains(forEverybody, at)
			}
			if asks(s.browser(t)) == slices.Contains(forEverybody, at) {
				t.Errorf("%s %s takes nobody for somebody", method, at)
			}
			if at != "/sign-out" && asks(b) != slices.Contains(forRecent, at) {
				t.Errorf("%s %s does not tell a sign-in of long ago from one of lately", method, at)
			}
		}
	}
}

// Pages with separate sessions have sign-in and sign-out, but no account.
func TestPagesApartHaveNoAccount(t *testing.T) {
	want := slices.Sorted(slices.Values(apart))
	if got := pages.Apart(); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// Pages in the middle of a flow redirect to its start if the browser has no state.
func TestNothingInTheMiddleOfNothing(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	for path, want := range map[string]string{
		"/account/sign-in/code": "/account/sign-in", "/account/sign-in/second": "/account/sign-in", "/account/sign-in/enrol": "/account/sign-in",
		"/account/sign-up/code": "/account/sign-in", "/account/email/code": "/account/email", "/account/phone/code": "/account/phone",
	} {
		who := s.browser(t)
		if !strings.Contains(path, "/sign-") {
			who = b
		}
		if got := who.send(http.MethodGet, path, nil).Header.Get("Location"); got != want { //nolint:bodyclose // a recorder's
			t.Errorf("%s leads to %q", path, got)
		}
	}
	for _, path := range []string{"/account/sign-in/code", "/account/sign-in/second", "/account/sign-in/enrol"} {
		if got := s.browser(t).send(http.MethodPost, path, url.Values{"code": {"123456"}}).Header.Get("Location"); got != "/account/sign-in" { //nolint:bodyclose // likewise
			t.Errorf("%s, posted, leads to %q", path, got)
		}
	}
}

// A sign-in link works only in the browser that requested it, not in one that requested
// another link or none.
func TestLinkOfAnotherBrowser(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.open("/account/sign-in/mail")
	b.submit("email", "mallory@example.com")
	link := s.Mail(t, "mallory@example.com", auth.KindMagicLink).Link
	busy := s.browser(t)
	busy.open("/account/sign-in/mail")
	busy.submit("email", address)
	if p := busy.open(link); strings.Contains(p.body, "<form") {
		t.Error("another's link opens in the middle of a sign-in")
	}
	_, err := s.SendMagicLink(t.Context(), auth.SendMagicLinkParams{
		Email: "eve@example.com", RedirectTo: origin + "/account/sign-in/back", CodeChallenge: oauth2.S256ChallengeFromVerifier(""),
	})
	if err != nil {
		t.Fatal(err)
	}
	if p := s.browser(t).open(s.Mail(t, "eve@example.com", auth.KindMagicLink).Link); p.status != 200 || strings.Contains(p.body, "<form") {
		t.Errorf("a link that is bound to nothing opens everywhere: %d", p.status)
	}
}

// Sign-out deletes the state of flows.
func TestSignOutForgetsWhatWasBegun(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	b.open("/account/phone")
	b.submit("phone", "+491701234567").want(t, 200, "/account/phone/code", "")
	b.open("/account/")
	b.press("/account/sign-out").want(t, 200, "/account/signed-out", "")
	if p := b.open("/account/sign-in/code").want(t, 200, "/account/sign-in", ""); strings.Contains(p.body, "+491701234567") {
		t.Error(p.text())
	}
}

// A session that was ended elsewhere is reported on public pages and causes no redirect
// loop.
func TestEndedSessionDoesNotGoInCircles(t *testing.T) {
	s := newSite(t, pages.Options{})
	other := authtest.NewOn(t, s.Store, s.SameKeys())
	b := s.browser(t)
	b.signIn(address)
	u := s.LoginAs(t, address)
	by := auth.Caller{UserID: u.User.ID, SessionID: u.SessionID}
	if err := other.Logout(t.Context(), auth.LogoutParams{Caller: by, Scope: auth.LogoutGlobal}); err != nil {
		t.Fatal(err)
	}
	b.open("/account/sign-in?reason=insufficient_aal").want(t, 401, "/account/sign-in", "")
}
