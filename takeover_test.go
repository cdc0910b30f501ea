package auth_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// The page of an account's first verification link asks whose account it is, with
// what is known of who made it.
func TestWasThatYou(t *testing.T) {
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	answer := func(w *world, token, choice string) *answer {
		form2 := url.Values{"token": {token}}
		if choice != "" {
			form2.Set("disown", choice)
		}
		return w.do("POST", "/verify-email", form2.Encode(), form, browser)
	}
	signUp := func(w *world) (session, string) {
		s := w.do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": goodPassword}, header{"User-Agent", firefox}).session()
		token := w.linkToken("ada@example.com", auth.KindVerifyEmail)
		page := string(w.do("GET", "/verify-email?token="+token, nil, browser).want(200).body)
		for _, part := range []string{"Was that you?", "Firefox on Linux", "2026", "that was me", "not me"} {
			if !strings.Contains(page, part) {
				t.Errorf("the page does not say %q: %s", part, page)
			}
		}
		return s, token
	}

	w := newWorld(t)
	s, token := signUp(w)
	answer(w, token, "").want(200)
	if u := decodeAs[user](w.do("GET", "/me", nil, bearer(s.AccessToken)).want(200)); !u.EmailVerified {
		t.Error("yes does not prove the address")
	}
	w.login("ada@example.com", goodPassword).session()

	w = newWorld(t)
	s, token = signUp(w)
	w.enrol(s.AccessToken)
	page := string(answer(w, token, "1").want(200).body)
	if !strings.Contains(page, "yours now") {
		t.Errorf("page %s", page)
	}
	if w.alive(s.AccessToken) {
		t.Error("no leaves the session")
	}
	w.login("ada@example.com", goodPassword).want(401, auth.CodeInvalidCredentials)
	w.Mail(t, "ada@example.com", auth.KindTakenOver)
	reset := w.linkToken("ada@example.com", auth.KindResetPassword)
	w.do("POST", "/reset-password", map[string]any{"token": reset, "new_password": "another horse battery"}).want(200)
	if in := w.login("ada@example.com", "another horse battery").session(); in.User.ID != s.User.ID || in.User.MFAEnabled {
		t.Errorf("user %+v", in.User)
	}
	answer(w, token, "1").want(400) // used up

	// An account that is somebody's already cannot be disowned by a link: a new
	// address of theirs that is not the reader's is simply left alone.
	w = newWorld(t)
	s = w.member("ada@example.com")
	w.do("PATCH", "/me", map[string]any{"email": "eve@example.com"}, bearer(s.AccessToken)).want(200)
	token = w.linkToken("eve@example.com", auth.KindChangeEmail)
	if page := string(w.do("GET", "/verify-email?token="+token, nil, browser).want(200).body); strings.Contains(page, "not me") {
		t.Errorf("page %s", page)
	}
	answer(w, token, "1").want(200)
	if u := decodeAs[user](w.do("GET", "/me", nil, bearer(s.AccessToken)).want(200)); u.Email != "ada@example.com" {
		t.Errorf("user %+v", u)
	}
	w.do("GET", "/verify-email?token="+token, nil).want(400, auth.CodeInvalidToken)
}

// A first proof inside a live session of the account drops nothing; outside of
// one, or inside one of another account, it takes the account over.
func TestFirstProofInsideASession(t *testing.T) {
	for name, c := range map[string]struct {
		within func(w *world, s session) []header
		stays  bool
	}{
		"inside":    {func(_ *world, s session) []header { return []header{bearer(s.AccessToken)} }, true},
		"outside":   {func(*world, session) []header { return nil }, false},
		"another's": {func(w *world, _ session) []header { return []header{bearer(w.signUp("eve@example.com").AccessToken)} }, false},
		"one that is over": {func(w *world, s session) []header {
			w.do("POST", "/logout", nil, bearer(s.AccessToken)).want(204)
			return []header{bearer(s.AccessToken)}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.signUp("ada@example.com")
			second := w.login("ada@example.com", goodPassword).session()
			token := w.magicLink("ada@example.com", nil)
			in := w.do("POST", "/magic-link/verify", map[string]any{"token": token}, c.within(w, s)...).session()
			if !in.User.EmailVerified || in.User.ID != s.User.ID {
				t.Errorf("user %+v", in.User)
			}
			if w.alive(second.AccessToken) != c.stays {
				t.Errorf("the other session stays: %v", !c.stays)
			}
			if got := w.login("ada@example.com", goodPassword).status == 200; got != c.stays {
				t.Errorf("the password stays: %v", got)
			}
		})
	}
}

// What an account may do before anybody has proved it to be theirs.
func TestUnprovedAccounts(t *testing.T) {
	w, _ := providerWorld(t)
	s := w.signUp("ada@exmaple.com")
	w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(s.AccessToken)).want(403, auth.CodeEmailNotVerified)
	w.do("POST", "/me/identities/github", nil, bearer(s.AccessToken)).want(403, auth.CodeEmailNotVerified)
	w.do("PATCH", "/me", map[string]any{"full_name": "Ada"}, bearer(s.AccessToken)).want(200)
	w.do("PATCH", "/me", map[string]any{"email": "ada@example.com"}, bearer(s.AccessToken)).want(200) // a slip of the finger can be mended
	w.do("POST", "/verify-email", map[string]any{"token": w.linkToken("ada@example.com", auth.KindChangeEmail)}, bearer(s.AccessToken)).want(200)
	w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(s.AccessToken)).want(200)
	w.do("POST", "/me/identities/github", nil, bearer(s.AccessToken)).want(200)
	w.enrol(s.AccessToken)
}

// A second factor that a stranger has set up, who does not have the mailbox or the
// number, keeps nobody out who does.
func TestStrangersFactorKeepsNobodyOut(t *testing.T) {
	for name, come := range map[string]func(w *world) *answer{
		"magic link": func(w *world) *answer {
			return w.do("POST", "/magic-link/verify", map[string]any{"token": w.magicLink(ada.Email, nil)})
		},
		"reset": func(w *world) *answer {
			w.do("POST", "/forgot-password", map[string]any{"email": ada.Email}).want(200)
			w.do("POST", "/reset-password", map[string]any{"token": w.linkToken(ada.Email, auth.KindResetPassword), "new_password": ownersPassword}).want(200)
			return w.login(ada.Email, ownersPassword)
		},
		"the code of the sign-up": func(w *world) *answer {
			return w.otp(number, w.Mail(w.t, number, auth.KindPhoneCode).Code)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			who := map[string]any{"email": ada.Email, "password": goodPassword}
			if name == "the code of the sign-up" {
				who = map[string]any{"phone": number, "password": goodPassword}
			}
			stranger := w.enrol(w.do("POST", "/signup", who).session().AccessToken)
			owner := come(w).session()
			if owner.User.ID != stranger.User.ID || owner.User.MFAEnabled || w.claimsOf(owner).AAL != store.LevelAAL1 {
				t.Errorf("user %+v", owner.User)
			}
			if w.alive(stranger.AccessToken) {
				t.Error("the stranger's session lives on")
			}
			w.do("POST", "/login", who).want(401, auth.CodeInvalidCredentials)
			w.enrol(owner.AccessToken) // and the owner may have one
		})
	}
}

// A proxy's own login (HTTP Basic, on a staging site) is no bearer token, and
// keeps nobody from opening a link.
func TestLinkBehindBasicLogin(t *testing.T) {
	w := newWorld(t)
	token := w.magicLink("ada@example.com", nil)
	basic := header{"Authorization", "Basic YTpi"}
	w.do("POST", "/magic-link/verify", "token="+token, form, browser, basic).want(200)
	w.do("POST", "/magic-link/verify", map[string]any{"token": w.magicLink("bob@example.com", nil)}, bearer("x.y.z")).want(401, auth.CodeBadToken)
}

// Whoever knows the password cannot use the owner's links up by changing it again
// and again: what was mailed to the account's own address stays good.
func TestPasswordChangesLeaveTheOwnersLinks(t *testing.T) {
	for name, links := range map[string]func(w *world) func(){
		"a reset": func(w *world) func() {
			w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
			token := w.linkToken("ada@example.com", auth.KindResetPassword)
			return func() {
				w.do("POST", "/reset-password", map[string]any{"token": token, "new_password": "the owner's horse battery"}).want(200)
			}
		},
		"a magic link": func(w *world) func() {
			token := w.magicLink("ada@example.com", nil)
			return func() { w.do("POST", "/magic-link/verify", map[string]any{"token": token}).want(200) }
		},
		"the first verification": func(w *world) func() {
			token := w.linkToken("ada@example.com", auth.KindVerifyEmail)
			return func() { w.do("GET", "/verify-email?token="+token, nil).want(200) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			squatter := w.signUp("ada@example.com")
			redeem := links(w)
			w.do("POST", "/me/password", map[string]any{"current_password": goodPassword, "new_password": "another horse battery"}, bearer(squatter.AccessToken)).want(200)
			redeem()
		})
	}
}
