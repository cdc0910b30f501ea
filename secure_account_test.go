package auth_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// stopToken waits for a notice and returns the token of its link.
func (w *world) stopToken(to string, k auth.Kind) string {
	w.t.Helper()
	m := w.Mail(w.t, to, k)
	u, err := url.Parse(m.Link)
	if err != nil || !strings.HasSuffix(u.Path, "/secure-account") || !strings.Contains(m.Text, m.Link) {
		w.t.Fatalf("link %q in %q", m.Link, m.Text)
	}
	return u.Query().Get("token")
}

// again signs somebody in once more.
func (w *world) again(email string) session {
	w.t.Helper()
	return w.do("POST", "/login", map[string]any{"email": email, "password": goodPassword}).session()
}

// chooses sets a password by the reset that a stop sent, and signs in with it.
func (w *world) chooses(email string) session {
	w.t.Helper()
	w.do("POST", "/reset-password", map[string]any{"token": w.linkToken(email, auth.KindResetPassword), "new_password": goodPassword}).want(200)
	return w.again(email)
}

// A change of address is told to the present one when it is asked for, also if
// the new one is taken; the link stops the session that asked, what it has
// pending, and no other session.
func TestStopAPendingChange(t *testing.T) {
	for name, post := range map[string]func(w *world, token string) *answer{
		"page": func(w *world, token string) *answer {
			a := w.do("GET", "/secure-account?token="+token, nil, browser).want(200)
			if page := string(a.body); !strings.Contains(page, "a•••@example.com") && !strings.Contains(page, "<form") {
				w.t.Errorf("page %s", page)
			}
			return w.do("POST", "/secure-account", "token="+token, form, browser)
		},
		"program": func(w *world, token string) *answer {
			w.do("GET", "/secure-account?token="+token, nil).want(200)
			w.do("HEAD", "/secure-account?token="+token, nil).want(200)
			return w.do("POST", "/secure-account", map[string]any{"token": token})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			own := w.member("ada@example.com")
			w.Clock.Advance(time.Minute)
			thief := w.again("ada@example.com")
			w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(thief.AccessToken)).want(200)
			code := w.Mail(t, number, auth.KindPhoneCode).Code
			w.do("PATCH", "/me", map[string]any{"email": "thief@example.com"}, bearer(thief.AccessToken)).want(200)
			link := w.linkToken("thief@example.com", auth.KindChangeEmail)
			token := w.stopToken("ada@example.com", auth.KindEmailChangeRequested)
			w.fired()
			post(w, token).want(200)
			w.wantEvents(auth.EventAccountSecured)
			if w.alive(thief.AccessToken) || !w.alive(own.AccessToken) {
				t.Error("the wrong session ended")
			}
			w.do("GET", "/verify-email?token="+link, nil).want(400, auth.CodeInvalidToken)
			later := w.do("POST", "/magic-link/verify", map[string]any{"token": w.magicLink("ada@example.com", nil)}).session()
			w.otp(number, code, bearer(later.AccessToken)).want(400, auth.CodeInvalidCode)
			w.do("POST", "/secure-account", map[string]any{"token": token}).want(400, auth.CodeInvalidToken) // once
			reset := w.linkToken("ada@example.com", auth.KindResetPassword)
			w.do("POST", "/reset-password", map[string]any{"token": reset, "new_password": "the owner's horse battery"}).want(200)
		})
	}
	t.Run("taken", func(t *testing.T) {
		w := newWorld(t)
		w.member("bob@example.com")
		s := w.member("ada@example.com")
		w.do("PATCH", "/me", map[string]any{"email": "bob@example.com"}, bearer(s.AccessToken)).want(200)
		w.do("POST", "/secure-account", map[string]any{"token": w.stopToken("ada@example.com", auth.KindEmailChangeRequested)}).want(200)
		if w.alive(s.AccessToken) {
			t.Error("the session lives")
		}
	})
	t.Run("not proved", func(t *testing.T) {
		w := newWorld(t)
		s := w.signUp("ada@example.com")
		w.do("PATCH", "/me", map[string]any{"email": "new@example.com"}, bearer(s.AccessToken)).want(200)
		if list := w.sent("ada@example.com"); slices.Contains(list, auth.KindEmailChangeRequested) {
			t.Errorf("sent %v", list)
		}
	})
}

// After the change, the notice to the former address takes it back.
func TestTakeAnAddressBack(t *testing.T) {
	w := newWorld(t, auth.WithMail(auth.MailOptions{Sync: true}))
	w.member("ada@example.com")
	w.Clock.Advance(time.Hour)
	thief := w.again("ada@example.com")
	requested := w.moves(thief, "ada@example.com", "b@example.com")
	changed := w.stopToken("ada@example.com", auth.KindEmailChanged)
	w.Clock.Advance(time.Hour)
	thief = w.again("b@example.com")
	w.moves(thief, "b@example.com", "c@example.com")
	theirs := w.stopToken("b@example.com", auth.KindEmailChanged)
	w.Clock.Advance(6 * 24 * time.Hour)
	page := w.do("GET", "/secure-account?token="+changed, nil, browser).want(200)
	if !strings.Contains(string(page.body), "gives it this address back") {
		t.Errorf("page %s", page.body)
	}
	w.fired()
	w.do("POST", "/secure-account", map[string]any{"token": changed}).want(200)
	w.wantEvents(auth.EventAccountSecured, auth.EventEmailChanged)
	if u := decodeAs[user](w.do("GET", "/me", nil, bearer(w.chooses("ada@example.com").AccessToken)).want(200)); !u.EmailVerified {
		t.Error("the address is not verified any more")
	}
	if w.alive(thief.AccessToken) {
		t.Error("a session is left")
	}
	w.Mail(t, "c@example.com", auth.KindEmailChanged)
	// The thief's own notice does not outrank the owner's address, and the notice
	// of the request is the same as that of the change.
	w.do("GET", "/secure-account?token="+theirs, nil).want(400, auth.CodeInvalidToken)
	w.do("POST", "/secure-account", map[string]any{"token": theirs}).want(400, auth.CodeInvalidToken)
	w.again("ada@example.com")
	w.do("POST", "/secure-account", map[string]any{"token": requested}).want(200)
	reset := w.linkToken("ada@example.com", auth.KindResetPassword)
	w.do("POST", "/reset-password", map[string]any{"token": reset, "new_password": "the owner's horse battery"}).want(200)
	w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": "the owner's horse battery"}).want(200)
}

// moves changes an account's address and returns the token of the first notice.
func (w *world) moves(s session, from, to string) string {
	w.t.Helper()
	w.do("PATCH", "/me", map[string]any{"email": to}, bearer(s.AccessToken)).want(200)
	token := w.stopToken(from, auth.KindEmailChangeRequested)
	w.do("GET", "/verify-email?token="+w.linkToken(to, auth.KindChangeEmail), nil).want(200)
	return token
}

// A link of a notice is good for a week, also when further requests follow, and
// never gives an address back that is somebody else's by now.
func TestStopLinksLast(t *testing.T) {
	w := newWorld(t)
	s := w.member("ada@example.com")
	first := w.moves(s, "ada@example.com", "b@example.com")
	other := w.member("ada@example.com")
	w.Clock.Advance(7*24*time.Hour - time.Second)
	s = w.again("b@example.com")
	w.do("POST", "/secure-account", map[string]any{"token": first}).want(200)
	if w.alive(s.AccessToken) || w.again("ada@example.com").User.ID != other.User.ID {
		t.Error("a later session goes on, or the address of another moved")
	}
	changed := w.stopToken("ada@example.com", auth.KindEmailChanged)
	w.Clock.Advance(time.Second)
	w.do("GET", "/secure-account?token="+changed, nil).want(400, auth.CodeInvalidToken)
	w.do("GET", "/secure-account?token="+changed, nil, browser).want(400)
	w.do("POST", "/secure-account", "token="+changed, form, browser).want(400)
}

// The reset of a stopped session comes through whatever somebody asked for before.
func TestStopSendsItsReset(t *testing.T) {
	w := newWorld(t, auth.WithMail(auth.MailOptions{Sync: true}))
	s := w.member("ada@example.com")
	for range 5 {
		w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
		w.Clock.Advance(time.Minute)
	}
	w.do("PATCH", "/me", map[string]any{"email": "b@example.com"}, bearer(s.AccessToken)).want(200)
	token := w.stopToken("ada@example.com", auth.KindEmailChangeRequested)
	before := len(w.Inbox.Messages())
	w.do("POST", "/secure-account", map[string]any{"token": token}).want(200)
	if list := w.sent("ada@example.com"); list[len(list)-1] != auth.KindResetPassword || len(w.Inbox.Messages()) != before+1 {
		t.Errorf("sent %v", list)
	}
}

// What a session has pending ends with it, whatever ends it.
func TestPendingChangesEndWithTheirSession(t *testing.T) {
	ends := map[string]func(w *world, own session){
		"the others": func(w *world, own session) { w.do("DELETE", "/sessions", nil, bearer(own.AccessToken)).want(204) },
		"log out others": func(w *world, own session) {
			w.do("POST", "/logout?scope=others", nil, bearer(own.AccessToken)).want(204)
		},
		"log out all": func(w *world, own session) {
			w.do("POST", "/logout?scope=global", nil, bearer(own.AccessToken)).want(204)
		},
		"change of password": func(w *world, own session) {
			w.do("POST", "/me/password", map[string]any{"current_password": goodPassword, "new_password": "another horse battery"}, bearer(own.AccessToken)).want(200)
		},
		"reset": func(w *world, _ session) {
			w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
			w.do("POST", "/reset-password", map[string]any{"token": w.linkToken("ada@example.com", auth.KindResetPassword), "new_password": "another horse battery"}).want(200)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			own := w.member("ada@example.com")
			thief := w.again("ada@example.com")
			w.do("PATCH", "/me", map[string]any{"email": "thief@example.com"}, bearer(thief.AccessToken)).want(200)
			link := w.linkToken("thief@example.com", auth.KindChangeEmail)
			w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(thief.AccessToken)).want(200)
			code := w.Mail(t, number, auth.KindPhoneCode).Code
			end(w, own)
			w.do("GET", "/verify-email?token="+link, nil).want(400, auth.CodeInvalidToken)
			w.do("POST", "/verify-email", "token="+link, form, browser).want(400)
			later := w.do("POST", "/magic-link/verify", map[string]any{"token": w.magicLink("ada@example.com", nil)}).session()
			w.otp(number, code, bearer(later.AccessToken)).want(400, auth.CodeInvalidCode)
			u, err := w.Store.User(t.Context(), store.ByID(own.User.ID))
			if err != nil || u.Email != "ada@example.com" || u.Phone != "" {
				t.Errorf("user %+v, %v", u, err)
			}
		})
	}
}
