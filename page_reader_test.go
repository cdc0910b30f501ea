package auth_test

import (
	"strings"
	"testing"

	"github.com/authmount/auth"
)

// Whoever opens a verification link in the browser that has a live session of that
// very account is not asked whether it was them: their proof drops nothing.
func TestWhoeverIsSignedInIsNotAskedWhoseAccountItIs(t *testing.T) {
	w, ada := cookieWorld(t)
	eve := jarOf(w.do("POST", "/signup", credentials("eve@example.com", goodPassword), transport).want(200))
	ended := jarOf(w.do("POST", "/login", credentials("ada@example.com", goodPassword), transport).want(200))
	w.do("POST", "/logout", nil, ended.sent(), sameSite).want(204)
	token := w.linkToken("ada@example.com", auth.KindVerifyEmail)
	for name, c := range map[string]struct {
		cookies []header
		asks    bool
	}{
		"no session":          {nil, true},
		"a live session":      {[]header{ada.sent()}, false},
		"somebody else's":     {[]header{eve.sent()}, true},
		"one that has ended":  {[]header{ended.sent()}, true},
		"a token of no worth": {[]header{cookies(accessCookie + "=x.y.z")}, true},
	} {
		page := string(w.do("GET", "/verify-email?token="+token, nil, append([]header{browser}, c.cookies...)...).want(200).body)
		if asks := strings.Contains(page, "Was that you?"); asks != c.asks || strings.Contains(page, "Confirm your e") == c.asks {
			t.Errorf("%s: asks %v: %s", name, asks, page)
		}
	}
	w.do("POST", "/verify-email", "token="+token, form, browser, ada.sent(), sameSite).want(200)
	if !w.alive(ada.access.Value) {
		t.Error("the session ended")
	}
}

// The page to choose a password tells of the other devices that it signs out, but
// not somebody who was never here, in every language and also where the first choice
// was refused.
func TestPageOfAFirstPasswordTellsOfNoDevices(t *testing.T) {
	w := newWorld(t)
	u := w.imported(auth.ImportUserParams{Email: "new@example.com", EmailVerified: true})
	if err := w.SendWelcome(t.Context(), auth.SendWelcomeParams{UserID: u.ID}); err != nil {
		t.Fatal(err)
	}
	w.signUp("ada@example.com")
	w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
	for token, tells := range map[string]bool{
		w.linkToken("new@example.com", auth.KindWelcome):       false,
		w.linkToken("ada@example.com", auth.KindResetPassword): true,
	} {
		for locale, words := range map[string]string{"en": "other devices", "de": "anderen Geräte"} {
			in := header{"Accept-Language", locale}
			for what, a := range map[string]*answer{
				"shown":       w.do("GET", "/reset-password?token="+token, nil, browser, in).want(200),
				"shown again": w.do("POST", "/reset-password", "token="+token+"&new_password=short", form, browser, sameSite, in).want(422),
			} {
				if page := string(a.body); strings.Contains(page, words) != tells || !strings.Contains(page, "new_password") {
					t.Errorf("%s, %s: tells of devices %v: %s", what, locale, !tells, page)
				}
			}
		}
	}
}
