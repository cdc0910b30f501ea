package takeover_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// A magic link that takes an unverified account over says so before and after, and in a mail.
func TestMagicLinkSaysThatItTakesOver(t *testing.T) {
	const before, after = "Someone has set up an account with this address", "Your account was set up before your address was confirmed"
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
	attacker := w.PostSignUp(harness.AdaMail)
	w.Member("bob@example.com")
	for email, says := range map[string]bool{harness.AdaMail: true, "bob@example.com": false, "new@example.com": false} {
		token := w.MagicLink(email, nil)
		a := w.Do("GET", "/magic-link/verify?token="+token, nil, harness.Browser).Want(200)
		if strings.Contains(string(a.Body), before) != says {
			t.Errorf("%s: the page says so: %v", email, !says)
		}
		a = w.Do("POST", "/magic-link/verify", "token="+token, harness.Form, harness.Browser, harness.Header{Name: "Sec-Fetch-Site", Value: "same-origin"}).Want(200)
		if strings.Contains(string(a.Body), after) != says || len(a.Header.Values("Set-Cookie")) == 0 {
			t.Errorf("%s: afterwards it says so: %v", email, !says)
		}
	}
	if w.Alive(attacker.AccessToken) {
		t.Error("the attacker is signed in")
	}
	w.Mail(t, harness.AdaMail, auth.KindTakenOver)
}

// A takeover deletes the stranger's profile: it neither stays on the account nor appears as
// the name in the owner's mails.
func TestTakeoverDropsTheProfile(t *testing.T) {
	const line = "Ada call now +1 900 555 0100"
	ways := map[string]func(w *harness.World){
		"magic link": func(w *harness.World) {
			w.Do("POST", "/magic-link/verify", map[string]any{"token": w.AskByMail("ada@example.com", nil).Token}).Want(200)
		},
		"no, not me": func(w *harness.World) {
			body := url.Values{"token": {w.LinkToken("ada@example.com", auth.KindVerifyEmail)}, "disown": {"1"}}
			w.Do("POST", "/verify-email", body.Encode(), harness.Form, harness.Browser).Want(200)
		},
		"reset": func(w *harness.World) {
			w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
			token := w.LinkToken("ada@example.com", auth.KindResetPassword)
			w.Do("POST", "/reset-password", map[string]any{"token": token, "new_password": "another horse battery"}).Want(200)
		},
	}
	for name, takeOver := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorld(t)
			id := w.Do("POST", "/signup", map[string]any{
				"email": "ada@example.com", "password": harness.GoodPassword, "full_name": line, "user_metadata": map[string]any{"payout": "evil"},
			}).Session().User.ID
			takeOver(w)
			u, err := w.Store.User(t.Context(), store.ByID(id))
			if err != nil || !u.EmailVerified() || u.FullName != "" || len(u.UserMetadata) > 0 {
				t.Errorf("%v, name %q, metadata %v", err, u.FullName, u.UserMetadata)
			}
			w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"})
			for _, m := range w.Inbox.Messages() {
				if strings.Contains(m.Text, "900 555") {
					t.Errorf("%s says %s", m.Kind, m.Text)
				}
			}
		})
	}
}

// A confirmation within a session of the account keeps the profile.
func TestProofWithinKeepsTheProfile(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword, "full_name": "Ada"}).Session()
	w.Do("POST", "/verify-email", map[string]any{"token": w.LinkToken("ada@example.com", auth.KindVerifyEmail)}, harness.Bearer(s.AccessToken)).Want(200)
	u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
	if err != nil || !u.EmailVerified() || u.FullName != "Ada" {
		t.Errorf("%v, %+v", err, u)
	}
}

// The page of an account's first verification link asks who created the account and shows
// the known facts about its creation.
func TestWasThatYou(t *testing.T) {
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	answer := func(w *harness.World, token, choice string) *harness.Answer {
		form2 := url.Values{"token": {token}, "password": {harness.GoodPassword}}
		if choice != "" {
			form2.Set("disown", choice)
		}
		return w.Do("POST", "/verify-email", form2.Encode(), harness.Form, harness.Browser)
	}
	signUp := func(w *harness.World) (harness.Session, string) {
		s := w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}, harness.Header{Name: "User-Agent", Value: firefox}).Session()
		token := w.LinkToken("ada@example.com", auth.KindVerifyEmail)
		page := string(w.Do("GET", "/verify-email?token="+token, nil, harness.Browser).Want(200).Body)
		for _, part := range []string{"Did you create this account?", "Firefox on Linux", "2026", "That was me", "wasn't me"} {
			if !strings.Contains(page, part) {
				t.Errorf("the page does not say %q: %s", part, page)
			}
		}
		return s, token
	}

	w := harness.NewWorld(t)
	s, token := signUp(w)
	answer(w, token, "").Want(200)
	if u := harness.DecodeAs[harness.User](w.Do("GET", "/me", nil, harness.Bearer(s.AccessToken)).Want(200)); !u.EmailVerified {
		t.Error("yes does not prove the address")
	}
	w.PostLogin("ada@example.com", harness.GoodPassword).Session()

	w = harness.NewWorld(t)
	s, token = signUp(w)
	w.Enrol(s.AccessToken)
	page := string(answer(w, token, "1").Want(200).Body)
	if !strings.Contains(page, "yours now") {
		t.Errorf("page %s", page)
	}
	if w.Alive(s.AccessToken) {
		t.Error("no leaves the session")
	}
	w.PostLogin("ada@example.com", harness.GoodPassword).Want(401, auth.CodeInvalidCredentials)
	w.Mail(t, "ada@example.com", auth.KindTakenOver)
	reset := w.LinkToken("ada@example.com", auth.KindResetPassword)
	w.Do("POST", "/reset-password", map[string]any{"token": reset, "new_password": "another horse battery"}).Want(200)
	if in := w.PostLogin("ada@example.com", "another horse battery").Session(); in.User.ID != s.User.ID || in.User.MFAEnabled {
		t.Errorf("user %+v", in.User)
	}
	answer(w, token, "1").Want(400) // used up

	// A link cannot disown an account that its owner has verified: the new address, which is
	// not the reader's, is simply not confirmed.
	w = harness.NewWorld(t)
	s = w.Member("ada@example.com")
	w.Do("PATCH", "/me", map[string]any{"email": "eve@example.com"}, harness.Bearer(s.AccessToken)).Want(200)
	token = w.LinkToken("eve@example.com", auth.KindChangeEmail)
	if page := string(w.Do("GET", "/verify-email?token="+token, nil, harness.Browser).Want(200).Body); !strings.Contains(page, "wasn't me") {
		t.Errorf("page %s", page)
	}
	answer(w, token, "1").Want(200)
	if u := harness.DecodeAs[harness.User](w.Do("GET", "/me", nil, harness.Bearer(s.AccessToken)).Want(200)); u.Email != "ada@example.com" {
		t.Errorf("user %+v", u)
	}
	w.Do("POST", "/verify-email", map[string]any{"token": token}).Want(400, auth.CodeInvalidToken)
}

// A first verification inside a live session of the account deletes nothing. Outside of one,
// or inside one of another account, it takes the account over.
func TestFirstProofInsideASession(t *testing.T) {
	for name, c := range map[string]struct {
		within func(w *harness.World, s harness.Session) []harness.Header
		stays  bool
	}{
		"inside": {func(_ *harness.World, s harness.Session) []harness.Header {
			return []harness.Header{harness.Bearer(s.AccessToken)}
		}, true},
		"outside": {func(*harness.World, harness.Session) []harness.Header { return nil }, false},
		"another's": {func(w *harness.World, _ harness.Session) []harness.Header {
			return []harness.Header{harness.Bearer(w.PostSignUp("eve@example.com").AccessToken)}
		}, false},
		"one that is over": {func(w *harness.World, s harness.Session) []harness.Header {
			w.Do("POST", "/logout", nil, harness.Bearer(s.AccessToken)).Want(204)
			return []harness.Header{harness.Bearer(s.AccessToken)}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t)
			s := w.PostSignUp("ada@example.com")
			second := w.PostLogin("ada@example.com", harness.GoodPassword).Session()
			token := w.MagicLink("ada@example.com", nil)
			in := w.Do("POST", "/magic-link/verify", map[string]any{"token": token}, c.within(w, s)...).Session()
			if !in.User.EmailVerified || in.User.ID != s.User.ID {
				t.Errorf("user %+v", in.User)
			}
			if w.Alive(second.AccessToken) != c.stays {
				t.Errorf("the other session stays: %v", !c.stays)
			}
			if got := w.PostLogin("ada@example.com", harness.GoodPassword).Status == 200; got != c.stays {
				t.Errorf("the password stays: %v", got)
			}
		})
	}
}

// The permitted operations of an unverified account.
func TestUnprovedAccounts(t *testing.T) {
	w, _ := harness.NewProviderWorld(t)
	s := w.PostSignUp("ada@exmaple.com")
	w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(s.AccessToken)).Want(403, auth.CodeEmailNotVerified)
	w.Do("POST", "/me/identities/github", nil, harness.Bearer(s.AccessToken)).Want(403, auth.CodeEmailNotVerified)
	w.Do("PATCH", "/me", map[string]any{"full_name": "Ada"}, harness.Bearer(s.AccessToken)).Want(200)
	w.Do("PATCH", "/me", map[string]any{"email": "ada@example.com"}, harness.Bearer(s.AccessToken)).Want(200) // a typing error can be fixed
	w.Do("POST", "/verify-email", map[string]any{"token": w.LinkToken("ada@example.com", auth.KindChangeEmail)}, harness.Bearer(s.AccessToken)).Want(200)
	w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(s.AccessToken)).Want(200)
	w.Do("POST", "/me/identities/github", nil, harness.Bearer(s.AccessToken)).Want(200)
	w.Enrol(s.AccessToken)
}

// A second factor that a stranger without the mailbox or phone number has set up does not
// lock out the holder.
func TestStrangersFactorKeepsNobodyOut(t *testing.T) {
	for name, come := range map[string]func(w *harness.World) *harness.Answer{
		"magic link": func(w *harness.World) *harness.Answer {
			return w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink(harness.Ada.Email, nil)})
		},
		"reset": func(w *harness.World) *harness.Answer {
			w.Do("POST", "/forgot-password", map[string]any{"email": harness.Ada.Email}).Want(200)
			w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken(harness.Ada.Email, auth.KindResetPassword), "new_password": harness.OwnersPassword}).Want(200)
			return w.PostLogin(harness.Ada.Email, harness.OwnersPassword)
		},
		"the code of the sign-up": func(w *harness.World) *harness.Answer {
			return w.PostOTP(harness.PhoneNumber, w.Mail(w.T, harness.PhoneNumber, auth.KindPhoneCode).Code)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t)
			who := map[string]any{"email": harness.Ada.Email, "password": harness.GoodPassword}
			if name == "the code of the sign-up" {
				who = map[string]any{"phone": harness.PhoneNumber, "password": harness.GoodPassword}
			}
			stranger := w.Enrol(w.Do("POST", "/signup", who).Session().AccessToken)
			owner := come(w).Session()
			if owner.User.ID != stranger.User.ID || owner.User.MFAEnabled || w.ClaimsOf(owner).AAL != store.LevelAAL1 {
				t.Errorf("user %+v", owner.User)
			}
			if w.Alive(stranger.AccessToken) {
				t.Error("the stranger's session lives on")
			}
			w.Do("POST", "/login", who).Want(401, auth.CodeInvalidCredentials)
			w.Enrol(owner.AccessToken) // and the owner may have one
		})
	}
}

// A proxy's own login (HTTP Basic, on a staging site) is no bearer token and blocks no link.
func TestLinkBehindBasicLogin(t *testing.T) {
	w := harness.NewWorld(t)
	token := w.MagicLink("ada@example.com", nil)
	basic := harness.Header{Name: "Authorization", Value: "Basic YTpi"}
	w.Do("POST", "/magic-link/verify", "token="+token, harness.Form, harness.Browser, basic).Want(200)
	w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink("bob@example.com", nil)}, harness.Bearer("x.y.z")).Want(401, auth.CodeBadToken)
}

// A holder of the password cannot use up the owner's links by repeated changes: links to the
// account's own address stay valid.
func TestPasswordChangesLeaveTheOwnersLinks(t *testing.T) {
	for name, links := range map[string]func(w *harness.World) func(){
		"a reset": func(w *harness.World) func() {
			w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
			token := w.LinkToken("ada@example.com", auth.KindResetPassword)
			return func() {
				w.Do("POST", "/reset-password", map[string]any{"token": token, "new_password": "the owner's horse battery"}).Want(200)
			}
		},
		"a magic link": func(w *harness.World) func() {
			token := w.MagicLink("ada@example.com", nil)
			return func() { w.Do("POST", "/magic-link/verify", map[string]any{"token": token}).Want(200) }
		},
		"the first verification": func(w *harness.World) func() {
			token := w.LinkToken("ada@example.com", auth.KindVerifyEmail)
			return func() {
				w.Do("POST", "/verify-email", map[string]any{"token": token, "password": "another horse battery"}).Want(200)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t)
			squatter := w.PostSignUp("ada@example.com")
			redeem := links(w)
			w.Do("POST", "/me/password", map[string]any{"current_password": harness.GoodPassword, "new_password": "another horse battery"}, harness.Bearer(squatter.AccessToken)).Want(200)
			redeem()
		})
	}
}
