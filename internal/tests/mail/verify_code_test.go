package mail_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

func TestVerifyEmailByCode(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp(harness.AdaMail)
	m := w.Mail(t, harness.AdaMail, auth.KindVerifyEmail)
	w.Fired()
	w.VerifyBy(harness.AdaMail, harness.OtherNumber(m.Code)).Want(400, auth.CodeInvalidCode)
	w.VerifyBy("bob@example.com", m.Code).Want(400, auth.CodeInvalidCode)
	w.Do("POST", "/verify-email", map[string]any{"code": m.Code}).Want(422, auth.CodeValidationFailed)
	w.VerifyBy(harness.AdaMail, m.Code, harness.Bearer(s.AccessToken)).Want(200)
	w.WantEvents(auth.EventEmailVerified)
	if u, err := w.Store.User(t.Context(), store.ByEmail(harness.AdaMail)); err != nil || !u.EmailVerified() {
		t.Errorf("user %+v, %v", u, err)
	}
	if !w.Alive(s.AccessToken) {
		t.Error("it dropped the session")
	}
	w.VerifyBy(harness.AdaMail, m.Code).Want(400, auth.CodeInvalidCode)
	w.Do("POST", "/verify-email", map[string]any{"token": harness.TokenIn(t, m.Link)}).Want(400, auth.CodeInvalidToken) // died with it

	bob := w.PostSignUp("bob@example.com")
	m = w.Mail(t, "bob@example.com", auth.KindVerifyEmail)
	w.VerifyBy("bob@example.com", m.Code, harness.Bearer(s.AccessToken)).Want(400, auth.CodeInvalidCode) // another's session
	w.PostConfirm("bob@example.com")
	w.VerifyBy("bob@example.com", m.Code, harness.Bearer(bob.AccessToken)).Want(400, auth.CodeInvalidCode) // died with the link

	w.PostSignUp("cleo@example.com")
	m = w.Mail(t, "cleo@example.com", auth.KindVerifyEmail)
	w.Clock.Advance(10 * time.Minute)
	w.VerifyBy("cleo@example.com", m.Code).Want(400, auth.CodeInvalidCode) // expired, unlike the link
	w.PostConfirm("cleo@example.com")
}

// changeOfAddress is a requested change of a member's email address.
func changeOfAddress(t *testing.T, opts ...auth.Option) (w *harness.World, s harness.Session, token string) {
	t.Helper()
	w = harness.NewWorld(t, opts...)
	s = w.Member(harness.AdaMail)
	w.Do("PATCH", "/me", map[string]any{"email": fresh}, harness.Bearer(s.AccessToken)).Want(200)
	w.Fired()
	return w, s, w.LinkToken(fresh, auth.KindChangeEmail)
}

const fresh = "new@example.com"

func wantAddress(t *testing.T, w *harness.World, s harness.Session, want string) {
	t.Helper()
	if u, err := w.Store.User(t.Context(), store.ByID(s.User.ID)); err != nil || u.Email != want || !u.EmailVerified() {
		t.Errorf("the account is at %s, %v, want %s", u.Email, err, want)
	}
}

// A link to a new address, opened outside of the account, changes nothing: neither by its
// page's buttons nor by a program, nor within another account. Otherwise a stranger's
// mailbox could be added to an account by the stranger's own press.
func TestChangeOfAddressElsewhere(t *testing.T) {
	for cookies, opts := range map[string][]auth.Option{"bearer": nil, "cookies": {auth.WithCookies(auth.CookieOptions{})}} {
		t.Run(cookies, func(t *testing.T) {
			w, s, token := changeOfAddress(t, opts...)
			other := w.Member("eve@example.com")
			w.Do("POST", "/verify-email", map[string]any{"token": token}).Want(401, auth.CodeMissingToken)
			w.Do("POST", "/verify-email", map[string]any{"token": token}, harness.Bearer(other.AccessToken)).Want(400, auth.CodeInvalidToken)
			for _, a := range []*harness.Answer{
				w.Do("GET", "/verify-email?token="+token, nil, harness.Browser).Want(200),
				w.Do("POST", "/verify-email", "token="+token, harness.Form, harness.Browser, harness.SameOrigin).Want(200),
			} {
				page := string(a.Body)
				if i, j := strings.Index(page, "This wasn't me"), strings.Index(page, "That was me"); i < 0 || j < i || !strings.Contains(page, "2026-") || strings.Contains(page, harness.AdaMail) {
					t.Errorf("page %s", page)
				}
			}
			code := w.ShownCode(token)
			w.VerifyBy(fresh, code).Want(400, auth.CodeInvalidCode)
			w.VerifyBy(fresh, code, harness.Bearer(other.AccessToken)).Want(400, auth.CodeInvalidCode)
			w.WantEvents(auth.EventSignedUp, auth.EventSignedIn, auth.EventEmailVerified)
			wantAddress(t, w, s, harness.AdaMail)
		})
	}
}

// The owner completes a change of address by one press where they are signed in, with the
// link or the code, or on the application's own page.
func TestChangeOfAddressByItsOwner(t *testing.T) {
	t.Run("the application's page", func(t *testing.T) {
		w, s, token := changeOfAddress(t)
		w.Do("POST", "/verify-email", map[string]any{"token": token}, harness.Bearer(s.AccessToken)).Want(200)
		w.WantEvents(auth.EventEmailChanged)
		wantAddress(t, w, s, fresh)
	})
	t.Run("another session of the account", func(t *testing.T) {
		w, s, token := changeOfAddress(t)
		w.Do("POST", "/verify-email", map[string]any{"token": token}, harness.Bearer(w.SignInAgain(harness.AdaMail).AccessToken)).Want(200)
		wantAddress(t, w, s, fresh)
	})
	t.Run("a press in the same browser", func(t *testing.T) {
		w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
		access, _ := w.InCookies(harness.AdaMail)
		cookie := harness.Header{Name: "Cookie", Value: harness.AccessCookie + "=" + access}
		w.Do("PATCH", "/me", map[string]any{"email": fresh}, cookie, harness.SameOrigin).Want(200)
		token := w.LinkToken(fresh, auth.KindChangeEmail)
		if page := string(w.Do("GET", "/verify-email?token="+token, nil, cookie, harness.Browser).Want(200).Body); !strings.Contains(page, "Yes, change it") {
			t.Errorf("page %s", page)
		}
		w.Do("POST", "/verify-email", "token="+token, harness.Form, harness.Browser, cookie, harness.SameOrigin).Want(200)
		if u, err := w.Store.User(t.Context(), store.ByEmail(fresh)); err != nil || !u.EmailVerified() {
			t.Errorf("user %+v, %v", u, err)
		}
	})
	t.Run("a code, hours later on the phone", func(t *testing.T) {
		w, s, token := changeOfAddress(t)
		old := w.ShownCode(token)
		w.Clock.Advance(2 * time.Hour)
		s = w.PostRefresh(s.RefreshToken).Session()
		first := w.ShownCode(token)
		code := w.ShownCode(token) // each press shows another one
		for _, over := range []string{old, first, harness.OtherNumber(code)} {
			w.VerifyBy(fresh, over, harness.Bearer(s.AccessToken)).Want(400, auth.CodeInvalidCode)
		}
		w.VerifyBy(fresh, code, harness.Bearer(s.AccessToken)).Want(200)
		wantAddress(t, w, s, fresh)
		w.Mail(t, harness.AdaMail, auth.KindEmailChanged)
		w.Do("POST", "/verify-email", map[string]any{"token": token}, harness.Bearer(s.AccessToken)).Want(400, auth.CodeInvalidToken)
	})
	t.Run("a code ends with the link", func(t *testing.T) {
		w, s, token := changeOfAddress(t)
		w.Clock.Advance(24*time.Hour - time.Minute)
		s = w.PostRefresh(s.RefreshToken).Session()
		code := w.ShownCode(token)
		w.Clock.Advance(time.Minute)
		w.VerifyBy(fresh, code, harness.Bearer(s.AccessToken)).Want(400, auth.CodeInvalidCode)
	})
	t.Run("not in another session by code", func(t *testing.T) {
		w, s, token := changeOfAddress(t)
		w.VerifyBy(fresh, w.ShownCode(token), harness.Bearer(w.SignInAgain(harness.AdaMail).AccessToken)).Want(400, auth.CodeInvalidCode)
		wantAddress(t, w, s, harness.AdaMail)
	})
}

// A change of address ends with the session that requested it, and the page says so.
func TestChangeOfAddressAfterSignOut(t *testing.T) {
	w, s, token := changeOfAddress(t)
	again := w.SignInAgain(harness.AdaMail)
	code := w.ShownCode(token)
	w.Do("POST", "/logout", nil, harness.Bearer(s.AccessToken)).Want(204)
	w.VerifyBy(fresh, code, harness.Bearer(s.AccessToken)).Want(401, auth.CodeSessionEnded)
	w.Do("POST", "/verify-email", map[string]any{"token": token}, harness.Bearer(again.AccessToken)).Want(400, auth.CodeInvalidToken)
	for _, a := range []*harness.Answer{
		w.Do("GET", "/verify-email?token="+token, nil, harness.Browser),
		w.Do("GET", "/verify-email?token="+token, nil, harness.Browser, harness.Bearer(again.AccessToken)),
		w.Do("POST", "/verify-email", "token="+token+"&show_code=1", harness.Form, harness.Browser),
	} {
		if page := string(a.Want(200).Body); !strings.Contains(page, "Ask for the change again") || strings.Contains(page, `class="code"`) {
			t.Errorf("page %s", page)
		}
	}
	wantAddress(t, w, s, harness.AdaMail)
}

// "This wasn't me" ends the request and its code. After three of them the account cannot
// change its address for a day.
func TestChangeOfAddressIsRefused(t *testing.T) {
	w, s, token := changeOfAddress(t)
	ask := func(status int) {
		t.Helper()
		w.Clock.Advance(10 * time.Minute)
		w.Do("PATCH", "/me", map[string]any{"email": fresh}, harness.Bearer(w.SignInAgain(harness.AdaMail).AccessToken)).Want(status)
	}
	for range 3 {
		code := w.ShownCode(token)
		w.Do("POST", "/verify-email", "token="+token+"&disown=1", harness.Form, harness.Browser).Want(200)
		w.VerifyBy(fresh, code, harness.Bearer(s.AccessToken)).Want(400, auth.CodeInvalidCode)
		w.Do("POST", "/verify-email", map[string]any{"token": token}, harness.Bearer(s.AccessToken)).Want(400, auth.CodeInvalidToken)
		wantAddress(t, w, s, harness.AdaMail)
		w.Clock.Advance(10 * time.Minute)
		s = w.SignInAgain(harness.AdaMail)
		if a := w.Do("PATCH", "/me", map[string]any{"email": fresh}, harness.Bearer(s.AccessToken)); a.Status == 200 {
			token = w.LinkToken(fresh, auth.KindChangeEmail)
		} else {
			a.Want(429, auth.CodeRateLimited)
		}
	}
	ask(429)
	w.Clock.Advance(24 * time.Hour)
	ask(200)
	// Another account can still take the address.
	w.Clock.Advance(10 * time.Minute)
	w.Do("PATCH", "/me", map[string]any{"email": fresh}, harness.Bearer(w.Member("eve@example.com").AccessToken)).Want(200)
}

// The link of a change that was completed refuses nothing any more: its page is that of a
// used link, and "This wasn't me" does not count against the account.
func TestCompletedChangeOfAddressIsNotRefused(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{SendGap: auth.Rate{Burst: -1}, SendPerIP: auth.Rate{Burst: -1}}))
	s := w.Member(harness.AdaMail)
	for _, to := range []string{"a1@example.org", "a2@example.org", "a3@example.org", "a4@example.org"} {
		w.Do("PATCH", "/me", map[string]any{"email": to}, harness.Bearer(s.AccessToken)).Want(200)
		token := w.LinkToken(to, auth.KindChangeEmail)
		w.Do("POST", "/verify-email", map[string]any{"token": token}, harness.Bearer(s.AccessToken)).Want(200)
		if page := string(w.Do("GET", "/verify-email?token="+token, nil, harness.Browser).Want(400).Body); strings.Contains(page, "This wasn't me") {
			t.Errorf("page %s", page)
		}
		w.Do("POST", "/verify-email", "token="+token+"&disown=1", harness.Form, harness.Browser).Want(400)
		wantAddress(t, w, s, to)
	}
}

// A thief who replaces each request before its recipient answers is refused as well. Each
// recipient counts once.
func TestReplacedChangeOfAddressIsRefused(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{SendGap: auth.Rate{Burst: -1}, SendPerIP: auth.Rate{Burst: -1}}))
	s := w.Member(harness.AdaMail)
	ask := func(to string, status int) {
		t.Helper()
		w.Do("PATCH", "/me", map[string]any{"email": to}, harness.Bearer(s.AccessToken)).Want(status)
	}
	refuse := func(token string, status int) {
		t.Helper()
		w.Do("POST", "/verify-email", "token="+token+"&disown=1", harness.Form, harness.Browser).Want(status)
	}
	for _, victim := range []string{"v1@example.org", "v2@example.org", "v3@example.org"} {
		ask(victim, 200)
		token := w.LinkToken(victim, auth.KindChangeEmail)
		ask("x"+victim, 200)
		if page := string(w.Do("GET", "/verify-email?token="+token, nil, harness.Browser).Want(200).Body); !strings.Contains(page, "This wasn't me") || strings.Contains(page, "That was me") {
			t.Errorf("page %s", page)
		}
		w.Do("GET", "/verify-email?token="+token, nil).Want(400, auth.CodeInvalidToken)
		w.Do("POST", "/verify-email", map[string]any{"token": token}, harness.Bearer(s.AccessToken)).Want(400, auth.CodeInvalidToken)
		refuse(token, 200)
		refuse(token, 400)
		wantAddress(t, w, s, harness.AdaMail)
	}
	ask(fresh, 429)
	w.Clock.Advance(24 * time.Hour)
	s = w.SignInAgain(harness.AdaMail)
	ask(fresh, 200)
	w.Do("POST", "/verify-email", map[string]any{"token": w.LinkToken(fresh, auth.KindChangeEmail)}, harness.Bearer(s.AccessToken)).Want(200)
	wantAddress(t, w, s, fresh)
}

// An owner who mistypes the new address, and whose recipient refuses it twice, can still
// correct it. A refusal that is pressed twice counts once.
func TestMistypedChangeOfAddress(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{SendGap: auth.Rate{Burst: -1}, SendPerIP: auth.Rate{Burst: -1}}))
	s := w.Member(harness.AdaMail)
	for _, wrong := range []string{"nwe@example.com", "enw@example.com"} {
		w.Do("PATCH", "/me", map[string]any{"email": wrong}, harness.Bearer(s.AccessToken)).Want(200)
		token := w.LinkToken(wrong, auth.KindChangeEmail)
		w.Do("POST", "/verify-email", "token="+token+"&disown=1", harness.Form, harness.Browser).Want(200)
		w.Do("POST", "/verify-email", "token="+token+"&disown=1", harness.Form, harness.Browser).Want(400)
	}
	w.Do("PATCH", "/me", map[string]any{"email": fresh}, harness.Bearer(s.AccessToken)).Want(200)
	w.Do("POST", "/verify-email", map[string]any{"token": w.LinkToken(fresh, auth.KindChangeEmail)}, harness.Bearer(s.AccessToken)).Want(200)
	wantAddress(t, w, s, fresh)
}

// While refusals keep a thief from changing the address, the owner takes it back with the
// links of the notices, and signs in again.
func TestOwnerRecoversWhileChangesAreRefused(t *testing.T) {
	for name, moved := range map[string]bool{"requested": false, "changed": true} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{SendGap: auth.Rate{Burst: -1}, SendPerIP: auth.Rate{Burst: -1}}))
			w.Member(harness.AdaMail)
			thief := harness.Bearer(w.SignInAgain(harness.AdaMail).AccessToken)
			kind := auth.KindEmailChangeRequested
			if moved {
				kind = auth.KindEmailChanged
				w.Do("PATCH", "/me", map[string]any{"email": "evil@example.com"}, thief).Want(200)
				w.Do("POST", "/verify-email", map[string]any{"token": w.LinkToken("evil@example.com", auth.KindChangeEmail)}, thief).Want(200)
			}
			for _, victim := range []string{"v1@example.org", "v2@example.org", "v3@example.org"} {
				w.Do("PATCH", "/me", map[string]any{"email": victim}, thief).Want(200)
				w.Do("POST", "/verify-email", "token="+w.LinkToken(victim, auth.KindChangeEmail)+"&disown=1", harness.Form, harness.Browser).Want(200)
			}
			w.Do("PATCH", "/me", map[string]any{"email": fresh}, thief).Want(429)
			w.Do("POST", "/secure-account", map[string]any{"token": w.StopToken(harness.AdaMail, kind)}).Want(200)
			w.Do("GET", "/me", nil, thief).Want(401)
			w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken(harness.AdaMail, auth.KindResetPassword), "new_password": harness.OwnPassword}).Want(200)
			w.Do("POST", "/login", map[string]any{"email": harness.AdaMail, "password": harness.OwnPassword}).Want(200)
		})
	}
}

// Strangers have five attempts at a code in total. A signed-in user has their own, and the
// link works despite failed attempts.
func TestVerifyEmailGuesses(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp(harness.AdaMail)
	m := w.Mail(t, harness.AdaMail, auth.KindVerifyEmail)
	for _, email := range []string{harness.AdaMail, "nobody@example.com"} {
		var (
			wg    sync.WaitGroup
			mu    sync.Mutex
			count = map[int]int{}
		)
		for i := range 60 {
			from := harness.Header{Name: "RemoteAddr", Value: fmt.Sprintf("198.51.100.%d:1", i+1)}
			wg.Go(func() {
				a := w.DoOn(w.Handler(), "POST", "/verify-email", map[string]any{"email": email, "code": harness.OtherNumber(m.Code)}, from)
				mu.Lock()
				defer mu.Unlock()
				count[a.Status]++
			})
		}
		wg.Wait()
		if count[400] != 5 || count[429] != 55 {
			t.Errorf("%s: %v", email, count)
		}
	}
	w.VerifyBy(harness.AdaMail, m.Code).Want(429, auth.CodeRateLimited)
	for range 4 {
		w.VerifyBy(harness.AdaMail, harness.OtherNumber(m.Code), harness.Bearer(s.AccessToken)).Want(400, auth.CodeInvalidCode)
	}
	w.VerifyBy(harness.AdaMail, m.Code, harness.Bearer(s.AccessToken)).Want(200) // the owner's own attempts

	bob := w.PostSignUp("bob@example.com")
	m = w.Mail(t, "bob@example.com", auth.KindVerifyEmail)
	for range 5 {
		w.VerifyBy("bob@example.com", harness.OtherNumber(m.Code), harness.Bearer(bob.AccessToken)).Want(400, auth.CodeInvalidCode)
	}
	w.VerifyBy("bob@example.com", m.Code, harness.Bearer(bob.AccessToken)).Want(429, auth.CodeRateLimited)
	// A new code has attempts of its own, as far as the address has any left.
	w.Clock.Advance(time.Minute)
	seen := w.MailsSeen()
	w.Do("POST", "/verify-email", nil, harness.Bearer(bob.AccessToken)).Want(200)
	m = w.NewMail("bob@example.com", auth.KindVerifyEmail, seen)
	for range 5 {
		w.VerifyBy("bob@example.com", harness.OtherNumber(m.Code), harness.Bearer(bob.AccessToken)).Want(400, auth.CodeInvalidCode)
	}
	w.Clock.Advance(time.Minute)
	seen = w.MailsSeen()
	w.Do("POST", "/verify-email", nil, harness.Bearer(bob.AccessToken)).Want(200)
	m = w.NewMail("bob@example.com", auth.KindVerifyEmail, seen)
	w.VerifyBy("bob@example.com", m.Code, harness.Bearer(bob.AccessToken)).Want(429, auth.CodeRateLimited) // ten an hour
	w.Do("POST", "/verify-email", map[string]any{"token": harness.TokenIn(t, m.Link)}, harness.Bearer(bob.AccessToken)).Want(200)
}

// A wrong code causes no other work: it creates no account recovery link.
func TestWrongCodesMakeNothing(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.Member(harness.AdaMail)
	w.Do("PATCH", "/me", map[string]any{"email": "new@example.com"}, harness.Bearer(s.AccessToken)).Want(200)
	code := w.ShownCode(w.LinkToken("new@example.com", auth.KindChangeEmail))
	before := len(w.Inbox.Messages())
	for range 3 {
		w.VerifyBy("new@example.com", harness.OtherNumber(code), harness.Bearer(s.AccessToken)).Want(400, auth.CodeInvalidCode)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.Inbox.Messages()); n > before+1 { // the notice of the requested change
		t.Errorf("%d messages, before %d", n, before)
	}
}
