package pages_test

import (
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/pages"
	"github.com/authmount/auth/store"
)

// After account recovery dropped the recovery codes, the next sign-in with the app shows new
// ones, and continues from there to the page that it was for.
func TestSignInShowsNewRecoveryCodes(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	b.open("/account/second-factor")
	secret, _ := enrol(t, b)
	s.Clock.Advance(time.Minute)
	signsIn := func(with string) *shown {
		s.Clock.Advance(time.Minute)
		o := s.browser(t)
		o.open("/account/sign-in")
		o.submit("login", address, "password", with).want(t, 200, "/account/sign-in/second", "")
		return o.submit("code", code(t, s, secret))
	}
	signsIn(password).want(t, 200, "/", "")
	_, link, _ := strings.Cut(s.Mail(t, address, auth.KindNewDevice).Link, "token=")
	u, err := s.Store.User(t.Context(), store.ByEmail(address))
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := s.Store.Sessions(t.Context(), u.ID, s.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.NewRecoveryCodes(t.Context(), auth.NewRecoveryCodesParams{Caller: auth.Caller{UserID: u.ID, SessionID: sessions[0].ID}}); err != nil {
		t.Fatal(err)
	}
	if err := s.SecureAccount(t.Context(), auth.SecureAccountParams{Token: link}); err != nil {
		t.Fatal(err)
	}
	const chosen = "the owner's horse battery"
	_, reset, _ := strings.Cut(s.Mail(t, address, auth.KindResetPassword).Link, "token=")
	if err := s.ResetPassword(t.Context(), auth.ResetPasswordParams{Token: reset, NewPassword: chosen}); err != nil {
		t.Fatal(err)
	}
	p := signsIn(chosen).want(t, 200, "/account/sign-in/second", "Your recovery codes")
	if n := strings.Count(p.body, "<li><code>"); n != 10 || !strings.Contains(p.body, `href="/"`) {
		t.Errorf("%d recovery codes, want 10 and a link to continue: %s", n, p.body)
	}
	signsIn(chosen).want(t, 200, "/", "")
}
