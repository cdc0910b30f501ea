package takeover_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// chooses sets a password by the reset that account recovery sent, and signs in with it.
func chooses(w *harness.World, email string) harness.Session {
	w.T.Helper()
	w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken(email, auth.KindResetPassword), "new_password": harness.GoodPassword}).Want(200)
	return w.SignInAgain(email)
}

// A change of address is reported to the present address when it is requested, even if the
// new one is taken. The link ends the session that requested it and its pending changes, and
// no other session.
func TestStopAPendingChange(t *testing.T) {
	for name, post := range map[string]func(w *harness.World, token string) *harness.Answer{
		"page": func(w *harness.World, token string) *harness.Answer {
			a := w.Do("GET", "/secure-account?token="+token, nil, harness.Browser).Want(200)
			if page := string(a.Body); !strings.Contains(page, "a•••@example.com") && !strings.Contains(page, "<form") {
				w.T.Errorf("page %s", page)
			}
			return w.Do("POST", "/secure-account", "token="+token, harness.Form, harness.Browser)
		},
		"program": func(w *harness.World, token string) *harness.Answer {
			w.Do("GET", "/secure-account?token="+token, nil).Want(200)
			w.Do("HEAD", "/secure-account?token="+token, nil).Want(200)
			return w.Do("POST", "/secure-account", map[string]any{"token": token})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t)
			own := w.Member("ada@example.com")
			w.Clock.Advance(time.Minute)
			thief := w.SignInAgain("ada@example.com")
			w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(thief.AccessToken)).Want(200)
			code := w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code
			w.Do("PATCH", "/me", map[string]any{"email": "thief@example.com"}, harness.Bearer(thief.AccessToken)).Want(200)
			link := w.LinkToken("thief@example.com", auth.KindChangeEmail)
			token := w.StopToken("ada@example.com", auth.KindEmailChangeRequested)
			w.Fired()
			post(w, token).Want(200)
			w.WantEvents(auth.EventAccountSecured)
			if w.Alive(thief.AccessToken) || !w.Alive(own.AccessToken) {
				t.Error("the wrong session ended")
			}
			w.Do("POST", "/verify-email", map[string]any{"token": link}, harness.Bearer(thief.AccessToken)).Want(400, auth.CodeInvalidToken)
			later := w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink("ada@example.com", nil)}).Session()
			w.PostOTP(harness.PhoneNumber, code, harness.Bearer(later.AccessToken)).Want(400, auth.CodeInvalidCode)
			w.Do("POST", "/secure-account", map[string]any{"token": token}).Want(400, auth.CodeInvalidToken) // once
			reset := w.LinkToken("ada@example.com", auth.KindResetPassword)
			w.Do("POST", "/reset-password", map[string]any{"token": reset, "new_password": "the owner's horse battery"}).Want(200)
		})
	}
	t.Run("taken", func(t *testing.T) {
		w := harness.NewWorld(t)
		w.Member("bob@example.com")
		s := w.Member("ada@example.com")
		w.Do("PATCH", "/me", map[string]any{"email": "bob@example.com"}, harness.Bearer(s.AccessToken)).Want(200)
		w.Do("POST", "/secure-account", map[string]any{"token": w.StopToken("ada@example.com", auth.KindEmailChangeRequested)}).Want(200)
		if w.Alive(s.AccessToken) {
			t.Error("the session lives")
		}
	})
	t.Run("not proved", func(t *testing.T) {
		w := harness.NewWorld(t)
		s := w.PostSignUp("ada@example.com")
		w.Do("PATCH", "/me", map[string]any{"email": "new@example.com"}, harness.Bearer(s.AccessToken)).Want(200)
		if list := w.Sent("ada@example.com"); slices.Contains(list, auth.KindEmailChangeRequested) {
			t.Errorf("sent %v", list)
		}
	})
}

// After the change, the notice to the former address takes it back.
func TestTakeAnAddressBack(t *testing.T) {
	w := harness.NewWorld(t, auth.WithMail(auth.MailOptions{Sync: true}))
	w.Member("ada@example.com")
	w.Clock.Advance(time.Hour)
	thief := w.SignInAgain("ada@example.com")
	requested := w.ChangeEmailTo(thief, "ada@example.com", "b@example.com")
	changed := w.StopToken("ada@example.com", auth.KindEmailChanged)
	w.Clock.Advance(time.Hour)
	thief = w.SignInAgain("b@example.com")
	w.ChangeEmailTo(thief, "b@example.com", "c@example.com")
	theirs := w.StopToken("b@example.com", auth.KindEmailChanged)
	w.Clock.Advance(6 * 24 * time.Hour)
	page := w.Do("GET", "/secure-account?token="+changed, nil, harness.Browser).Want(200)
	if !strings.Contains(string(page.Body), "restores this address") {
		t.Errorf("page %s", page.Body)
	}
	w.Fired()
	w.Do("POST", "/secure-account", map[string]any{"token": changed}).Want(200)
	w.WantEvents(auth.EventAccountSecured, auth.EventEmailChanged)
	if u := harness.DecodeAs[harness.User](w.Do("GET", "/me", nil, harness.Bearer(chooses(w, "ada@example.com").AccessToken)).Want(200)); !u.EmailVerified {
		t.Error("the address is not verified any more")
	}
	if w.Alive(thief.AccessToken) {
		t.Error("a session is left")
	}
	w.Mail(t, "c@example.com", auth.KindEmailChanged)
	// The thief's own notice does not outrank the owner's address. The notice of the request
	// has the same rank as the notice of the change.
	w.Do("GET", "/secure-account?token="+theirs, nil).Want(400, auth.CodeInvalidToken)
	w.Do("POST", "/secure-account", map[string]any{"token": theirs}).Want(400, auth.CodeInvalidToken)
	w.SignInAgain("ada@example.com")
	w.Do("POST", "/secure-account", map[string]any{"token": requested}).Want(200)
	reset := w.LinkToken("ada@example.com", auth.KindResetPassword)
	w.Do("POST", "/reset-password", map[string]any{"token": reset, "new_password": "the owner's horse battery"}).Want(200)
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": "the owner's horse battery"}).Want(200)
}

// The link of a notice is valid for a week, even after further requests, and never restores
// an address that belongs to another user by then.
func TestStopLinksLast(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.Member("ada@example.com")
	first := w.ChangeEmailTo(s, "ada@example.com", "b@example.com")
	other := w.Member("ada@example.com")
	w.Clock.Advance(7*24*time.Hour - time.Second)
	s = w.SignInAgain("b@example.com")
	w.Do("POST", "/secure-account", map[string]any{"token": first}).Want(200)
	if w.Alive(s.AccessToken) || w.SignInAgain("ada@example.com").User.ID != other.User.ID {
		t.Error("a later session goes on, or the address of another moved")
	}
	changed := w.StopToken("ada@example.com", auth.KindEmailChanged)
	w.Clock.Advance(time.Second)
	w.Do("GET", "/secure-account?token="+changed, nil).Want(400, auth.CodeInvalidToken)
	w.Do("GET", "/secure-account?token="+changed, nil, harness.Browser).Want(400)
	w.Do("POST", "/secure-account", "token="+changed, harness.Form, harness.Browser).Want(400)
}

// The reset of a stopped session is sent, despite earlier requests.
func TestStopSendsItsReset(t *testing.T) {
	w := harness.NewWorld(t, auth.WithMail(auth.MailOptions{Sync: true}))
	s := w.Member("ada@example.com")
	for range 5 {
		w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
		w.Clock.Advance(time.Minute)
	}
	w.Do("PATCH", "/me", map[string]any{"email": "b@example.com"}, harness.Bearer(s.AccessToken)).Want(200)
	token := w.StopToken("ada@example.com", auth.KindEmailChangeRequested)
	before := len(w.Inbox.Messages())
	w.Do("POST", "/secure-account", map[string]any{"token": token}).Want(200)
	if list := w.Sent("ada@example.com"); list[len(list)-1] != auth.KindResetPassword || len(w.Inbox.Messages()) != before+1 {
		t.Errorf("sent %v", list)
	}
}

// A session's pending changes end with it, for every reason.
func TestPendingChangesEndWithTheirSession(t *testing.T) {
	ends := map[string]func(w *harness.World, own harness.Session){
		"the others": func(w *harness.World, own harness.Session) {
			w.Do("DELETE", "/sessions", nil, harness.Bearer(own.AccessToken)).Want(204)
		},
		"log out others": func(w *harness.World, own harness.Session) {
			w.Do("POST", "/logout?scope=others", nil, harness.Bearer(own.AccessToken)).Want(204)
		},
		"log out all": func(w *harness.World, own harness.Session) {
			w.Do("POST", "/logout?scope=global", nil, harness.Bearer(own.AccessToken)).Want(204)
		},
		"change of password": func(w *harness.World, own harness.Session) {
			w.Do("POST", "/me/password", map[string]any{"current_password": harness.GoodPassword, "new_password": "another horse battery"}, harness.Bearer(own.AccessToken)).Want(200)
		},
		"reset": func(w *harness.World, _ harness.Session) {
			w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
			w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken("ada@example.com", auth.KindResetPassword), "new_password": "another horse battery"}).Want(200)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t)
			own := w.Member("ada@example.com")
			thief := w.SignInAgain("ada@example.com")
			w.Do("PATCH", "/me", map[string]any{"email": "thief@example.com"}, harness.Bearer(thief.AccessToken)).Want(200)
			link := w.LinkToken("thief@example.com", auth.KindChangeEmail)
			w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(thief.AccessToken)).Want(200)
			code := w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code
			end(w, own)
			w.Do("POST", "/verify-email", map[string]any{"token": link}, harness.Bearer(thief.AccessToken)).Want(400, auth.CodeInvalidToken)
			if page := w.Do("POST", "/verify-email", "token="+link, harness.Form, harness.Browser); page.Status == 200 && !strings.Contains(string(page.Body), "Ask for the change again") {
				t.Errorf("page %s", page.Body)
			}
			later := w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink("ada@example.com", nil)}).Session()
			w.PostOTP(harness.PhoneNumber, code, harness.Bearer(later.AccessToken)).Want(400, auth.CodeInvalidCode)
			u, err := w.Store.User(t.Context(), store.ByID(own.User.ID))
			if err != nil || u.Email != "ada@example.com" || u.Phone != "" {
				t.Errorf("user %+v, %v", u, err)
			}
		})
	}
}
