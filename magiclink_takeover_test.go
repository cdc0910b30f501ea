package auth_test

import (
	"strings"
	"testing"

	"github.com/authmount/auth"
)

// A magic link that takes an unproved account over says so before and after, and in
// a mail.
func TestMagicLinkSaysThatItTakesOver(t *testing.T) {
	const before, after = "Somebody has set up an account with this address", "Somebody had set things up on your account"
	w := newWorld(t, auth.WithCookies(auth.CookieOptions{}))
	attacker := w.signUp(adaMail)
	w.member("bob@example.com")
	for email, says := range map[string]bool{adaMail: true, "bob@example.com": false, "new@example.com": false} {
		token := w.magicLink(email, nil)
		a := w.do("GET", "/magic-link/verify?token="+token, nil, browser).want(200)
		if strings.Contains(string(a.body), before) != says {
			t.Errorf("%s: the page says so: %v", email, !says)
		}
		a = w.do("POST", "/magic-link/verify", "token="+token, form, browser, header{"Sec-Fetch-Site", "same-origin"}).want(200)
		if strings.Contains(string(a.body), after) != says || len(a.header.Values("Set-Cookie")) == 0 {
			t.Errorf("%s: afterwards it says so: %v", email, !says)
		}
	}
	if w.alive(attacker.AccessToken) {
		t.Error("the attacker is signed in")
	}
	w.Mail(t, adaMail, auth.KindTakenOver)
}
