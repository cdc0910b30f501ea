package auth_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// verifyBy confirms an address with a code.
func (w *world) verifyBy(email, code string, h ...header) *answer {
	w.t.Helper()
	return w.do("POST", "/verify-email", map[string]any{"email": email, "code": code}, h...)
}

// mailsSeen are the messages that are there.
func (w *world) mailsSeen() map[string]bool {
	seen := map[string]bool{}
	for _, m := range w.Inbox.Messages() {
		seen[m.ID] = true
	}
	return seen
}

func TestVerifyEmailByCode(t *testing.T) {
	w := newWorld(t)
	s := w.signUp(adaMail)
	m := w.Mail(t, adaMail, auth.KindVerifyEmail)
	w.fired()
	w.verifyBy(adaMail, other(m.Code)).want(400, auth.CodeInvalidCode)
	w.verifyBy("bob@example.com", m.Code).want(400, auth.CodeInvalidCode)
	w.do("POST", "/verify-email", map[string]any{"code": m.Code}).want(422, auth.CodeValidationFailed)
	w.verifyBy(adaMail, m.Code, bearer(s.AccessToken)).want(200)
	w.wantEvents(auth.EventEmailVerified)
	if u, err := w.Store.User(t.Context(), store.ByEmail(adaMail)); err != nil || !u.EmailVerified() {
		t.Errorf("user %+v, %v", u, err)
	}
	if !w.alive(s.AccessToken) {
		t.Error("it dropped the session")
	}
	w.verifyBy(adaMail, m.Code).want(400, auth.CodeInvalidCode)
	w.do("POST", "/verify-email", map[string]any{"token": tokenIn(t, m.Link)}).want(400, auth.CodeInvalidToken) // died with it

	bob := w.signUp("bob@example.com")
	m = w.Mail(t, "bob@example.com", auth.KindVerifyEmail)
	w.verifyBy("bob@example.com", m.Code, bearer(s.AccessToken)).want(400, auth.CodeInvalidCode) // another's session
	w.do("POST", "/verify-email", map[string]any{"token": tokenIn(t, m.Link)}).want(200)
	w.verifyBy("bob@example.com", m.Code, bearer(bob.AccessToken)).want(400, auth.CodeInvalidCode) // died with the link

	w.signUp("cleo@example.com")
	m = w.Mail(t, "cleo@example.com", auth.KindVerifyEmail)
	w.Clock.Advance(10 * time.Minute)
	w.verifyBy("cleo@example.com", m.Code).want(400, auth.CodeInvalidCode) // over, unlike the link
	w.do("POST", "/verify-email", map[string]any{"token": tokenIn(t, m.Link)}).want(200)
}

// A new address is confirmed by its code in the session that asked for it, or
// without any, and dies with that session.
func TestChangeOfAddressByCode(t *testing.T) {
	const fresh = "new@example.com"
	ask := func(t *testing.T) (*world, session, auth.Message) {
		w := newWorld(t)
		s := w.member(adaMail)
		w.do("PATCH", "/me", map[string]any{"email": fresh}, bearer(s.AccessToken)).want(200)
		w.fired()
		return w, s, w.Mail(t, fresh, auth.KindChangeEmail)
	}
	for name, with := range map[string]func(session) []header{
		"without a bearer token": func(session) []header { return nil },
		"within the session":     func(s session) []header { return []header{bearer(s.AccessToken)} },
	} {
		t.Run(name, func(t *testing.T) {
			w, s, m := ask(t)
			w.verifyBy(fresh, other(m.Code), with(s)...).want(400, auth.CodeInvalidCode)
			w.verifyBy(fresh, m.Code, with(s)...).want(200)
			w.wantEvents(auth.EventEmailChanged)
			if u, err := w.Store.User(t.Context(), store.ByEmail(fresh)); err != nil || u.ID != s.User.ID || !u.EmailVerified() {
				t.Errorf("user %+v, %v", u, err)
			}
			w.Mail(t, adaMail, auth.KindEmailChanged)
			w.do("POST", "/verify-email", map[string]any{"token": tokenIn(t, m.Link)}).want(400, auth.CodeInvalidToken)
		})
		t.Run(name+", by link first", func(t *testing.T) {
			w, s, m := ask(t)
			w.do("POST", "/verify-email", map[string]any{"token": tokenIn(t, m.Link)}).want(200)
			w.verifyBy(fresh, m.Code, with(s)...).want(400, auth.CodeInvalidCode)
		})
	}
	t.Run("in another session", func(t *testing.T) {
		w, s, m := ask(t)
		elsewhere := w.do("POST", "/login", map[string]any{"email": adaMail, "password": goodPassword}).session()
		w.verifyBy(fresh, m.Code, bearer(elsewhere.AccessToken)).want(400, auth.CodeInvalidCode)
		other := w.member("eve@example.com")
		w.verifyBy(fresh, m.Code, bearer(other.AccessToken)).want(400, auth.CodeInvalidCode)
		w.do("POST", "/logout", nil, bearer(s.AccessToken)).want(204)
		w.verifyBy(fresh, m.Code).want(400, auth.CodeInvalidCode)
		if u, err := w.Store.User(t.Context(), store.ByID(s.User.ID)); err != nil || u.Email != adaMail {
			t.Errorf("user %+v, %v", u, err)
		}
	})
	t.Run("asked for by another since", func(t *testing.T) {
		w, s, m := ask(t)
		w.Clock.Advance(time.Minute)
		eve := w.member("eve@example.com")
		w.do("PATCH", "/me", map[string]any{"email": fresh}, bearer(eve.AccessToken)).want(200)
		w.verifyBy(fresh, m.Code).want(400, auth.CodeInvalidCode)
		w.verifyBy(fresh, m.Code, bearer(s.AccessToken)).want(200) // whose it is, the session says
	})
}

// Strangers have five tries at a code, however many they are; whoever is signed in
// has their own, and the link works whoever guesses.
func TestVerifyEmailGuesses(t *testing.T) {
	w := newWorld(t)
	s := w.signUp(adaMail)
	m := w.Mail(t, adaMail, auth.KindVerifyEmail)
	for _, email := range []string{adaMail, "nobody@example.com"} {
		var (
			wg    sync.WaitGroup
			mu    sync.Mutex
			count = map[int]int{}
		)
		for i := range 60 {
			from := header{"RemoteAddr", fmt.Sprintf("198.51.100.%d:1", i+1)}
			wg.Go(func() {
				a := w.doOn(w.Handler(), "POST", "/verify-email", map[string]any{"email": email, "code": other(m.Code)}, from)
				mu.Lock()
				defer mu.Unlock()
				count[a.status]++
			})
		}
		wg.Wait()
		if count[400] != 5 || count[429] != 55 {
			t.Errorf("%s: %v", email, count)
		}
	}
	w.verifyBy(adaMail, m.Code).want(429, auth.CodeRateLimited)
	for range 4 {
		w.verifyBy(adaMail, other(m.Code), bearer(s.AccessToken)).want(400, auth.CodeInvalidCode)
	}
	w.verifyBy(adaMail, m.Code, bearer(s.AccessToken)).want(200) // the owner's own tries

	bob := w.signUp("bob@example.com")
	m = w.Mail(t, "bob@example.com", auth.KindVerifyEmail)
	for range 5 {
		w.verifyBy("bob@example.com", other(m.Code), bearer(bob.AccessToken)).want(400, auth.CodeInvalidCode)
	}
	w.verifyBy("bob@example.com", m.Code, bearer(bob.AccessToken)).want(429, auth.CodeRateLimited)
	// A new code has tries of its own, as far as the address has any.
	w.Clock.Advance(time.Minute)
	seen := w.mailsSeen()
	w.do("POST", "/verify-email", nil, bearer(bob.AccessToken)).want(200)
	m = w.newMail("bob@example.com", auth.KindVerifyEmail, seen)
	for range 5 {
		w.verifyBy("bob@example.com", other(m.Code), bearer(bob.AccessToken)).want(400, auth.CodeInvalidCode)
	}
	w.Clock.Advance(time.Minute)
	seen = w.mailsSeen()
	w.do("POST", "/verify-email", nil, bearer(bob.AccessToken)).want(200)
	m = w.newMail("bob@example.com", auth.KindVerifyEmail, seen)
	w.verifyBy("bob@example.com", m.Code, bearer(bob.AccessToken)).want(429, auth.CodeRateLimited) // ten an hour
	w.do("POST", "/verify-email", map[string]any{"token": tokenIn(t, m.Link)}).want(200)
}

// A wrong code works nothing out: no link to stop the change is made for it.
func TestWrongCodesMakeNothing(t *testing.T) {
	w := newWorld(t)
	s := w.member(adaMail)
	w.do("PATCH", "/me", map[string]any{"email": "new@example.com"}, bearer(s.AccessToken)).want(200)
	m := w.Mail(t, "new@example.com", auth.KindChangeEmail)
	before := len(w.Inbox.Messages())
	for range 3 {
		w.verifyBy("new@example.com", other(m.Code)).want(400, auth.CodeInvalidCode)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.Inbox.Messages()); n > before+1 { // the notice of the change that was asked for
		t.Errorf("%d messages, before %d", n, before)
	}
}
