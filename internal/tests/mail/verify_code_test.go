package mail_test

import (
	"fmt"
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
	w.Do("POST", "/verify-email", map[string]any{"token": harness.TokenIn(t, m.Link)}).Want(200)
	w.VerifyBy("bob@example.com", m.Code, harness.Bearer(bob.AccessToken)).Want(400, auth.CodeInvalidCode) // died with the link

	w.PostSignUp("cleo@example.com")
	m = w.Mail(t, "cleo@example.com", auth.KindVerifyEmail)
	w.Clock.Advance(10 * time.Minute)
	w.VerifyBy("cleo@example.com", m.Code).Want(400, auth.CodeInvalidCode) // expired, unlike the link
	w.Do("POST", "/verify-email", map[string]any{"token": harness.TokenIn(t, m.Link)}).Want(200)
}

// A new address is confirmed by its code in the session that requested it or outside any
// session. The code ends with that session.
func TestChangeOfAddressByCode(t *testing.T) {
	const fresh = "new@example.com"
	ask := func(t *testing.T) (*harness.World, harness.Session, auth.Message) {
		w := harness.NewWorld(t)
		s := w.Member(harness.AdaMail)
		w.Do("PATCH", "/me", map[string]any{"email": fresh}, harness.Bearer(s.AccessToken)).Want(200)
		w.Fired()
		return w, s, w.Mail(t, fresh, auth.KindChangeEmail)
	}
	for name, with := range map[string]func(harness.Session) []harness.Header{
		"without a bearer token": func(harness.Session) []harness.Header { return nil },
		"within the session":     func(s harness.Session) []harness.Header { return []harness.Header{harness.Bearer(s.AccessToken)} },
	} {
		t.Run(name, func(t *testing.T) {
			w, s, m := ask(t)
			w.VerifyBy(fresh, harness.OtherNumber(m.Code), with(s)...).Want(400, auth.CodeInvalidCode)
			w.VerifyBy(fresh, m.Code, with(s)...).Want(200)
			w.WantEvents(auth.EventEmailChanged)
			if u, err := w.Store.User(t.Context(), store.ByEmail(fresh)); err != nil || u.ID != s.User.ID || !u.EmailVerified() {
				t.Errorf("user %+v, %v", u, err)
			}
			w.Mail(t, harness.AdaMail, auth.KindEmailChanged)
			w.Do("POST", "/verify-email", map[string]any{"token": harness.TokenIn(t, m.Link)}).Want(400, auth.CodeInvalidToken)
		})
		t.Run(name+", by link first", func(t *testing.T) {
			w, s, m := ask(t)
			w.Do("POST", "/verify-email", map[string]any{"token": harness.TokenIn(t, m.Link)}).Want(200)
			w.VerifyBy(fresh, m.Code, with(s)...).Want(400, auth.CodeInvalidCode)
		})
	}
	t.Run("in another session", func(t *testing.T) {
		w, s, m := ask(t)
		elsewhere := w.Do("POST", "/login", map[string]any{"email": harness.AdaMail, "password": harness.GoodPassword}).Session()
		w.VerifyBy(fresh, m.Code, harness.Bearer(elsewhere.AccessToken)).Want(400, auth.CodeInvalidCode)
		other := w.Member("eve@example.com")
		w.VerifyBy(fresh, m.Code, harness.Bearer(other.AccessToken)).Want(400, auth.CodeInvalidCode)
		w.Do("POST", "/logout", nil, harness.Bearer(s.AccessToken)).Want(204)
		w.VerifyBy(fresh, m.Code).Want(400, auth.CodeInvalidCode)
		if u, err := w.Store.User(t.Context(), store.ByID(s.User.ID)); err != nil || u.Email != harness.AdaMail {
			t.Errorf("user %+v, %v", u, err)
		}
	})
	t.Run("asked for by another since", func(t *testing.T) {
		w, s, m := ask(t)
		w.Clock.Advance(time.Minute)
		eve := w.Member("eve@example.com")
		w.Do("PATCH", "/me", map[string]any{"email": fresh}, harness.Bearer(eve.AccessToken)).Want(200)
		w.VerifyBy(fresh, m.Code).Want(400, auth.CodeInvalidCode)
		w.VerifyBy(fresh, m.Code, harness.Bearer(s.AccessToken)).Want(200) // the session determines the account
	})
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
	w.Do("POST", "/verify-email", map[string]any{"token": harness.TokenIn(t, m.Link)}).Want(200)
}

// A wrong code causes no other work: it creates no account recovery link.
func TestWrongCodesMakeNothing(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.Member(harness.AdaMail)
	w.Do("PATCH", "/me", map[string]any{"email": "new@example.com"}, harness.Bearer(s.AccessToken)).Want(200)
	m := w.Mail(t, "new@example.com", auth.KindChangeEmail)
	before := len(w.Inbox.Messages())
	for range 3 {
		w.VerifyBy("new@example.com", harness.OtherNumber(m.Code)).Want(400, auth.CodeInvalidCode)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.Inbox.Messages()); n > before+1 { // the notice of the requested change
		t.Errorf("%d messages, before %d", n, before)
	}
}
