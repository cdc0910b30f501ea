package auth_test

import (
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

const squatters = "the attacker's horse"

// toConfirm signs up where confirmation is required, and returns the id of it.
func (w *world) toConfirm(email, password string) string {
	w.t.Helper()
	id, _ := decodeAs[map[string]any](w.do("POST", "/signup", credentials(email, password)).want(200))["request_id"].(string)
	if id == "" {
		w.t.Fatal("no request_id")
	}
	return id
}

// resentAfter is the code that a refused login mails once more, after a time.
func (w *world) resentAfter(d time.Duration) string {
	w.t.Helper()
	w.Clock.Advance(d)
	seen := w.mailsSeen()
	w.login(adas, squatters).want(401, auth.CodeInvalidCredentials)
	return w.newMail(adas, auth.KindVerifyEmail, seen).Code
}

// The code of a sign-up confirms it for whoever signed up. For anybody else who
// reads the mailbox it takes the account over, so that the code that an owner types
// at the end of her own sign-up does not confirm a squatter's, who came first.
func TestSignUpCodeConfirmsOnlyItsOwnSignUp(t *testing.T) {
	type made struct {
		first, second string // ids of the sign-ups
		code          string
	}
	for name, c := range map[string]struct {
		prove func(w *world, m made) (id, code string)
		stays bool
	}{
		"with its own id":             {func(_ *world, m made) (string, string) { return m.first, m.code }, true},
		"with a later sign-up's id":   {func(_ *world, m made) (string, string) { return m.second, m.code }, false},
		"without an id":               {func(_ *world, m made) (string, string) { return "", m.code }, false},
		"with anything for an id":     {func(_ *world, m made) (string, string) { return "x", m.code }, false},
		"with another account's id":   {func(w *world, m made) (string, string) { return w.toConfirm("eve@example.com", squatters), m.code }, false},
		"with a magic link's id":      {func(w *world, m made) (string, string) { return w.askMagicID(adas), m.code }, false},
		"sent again, its own id":      {func(w *world, m made) (string, string) { return m.first, w.resentAfter(time.Hour) }, true},
		"sent again, a later one's":   {func(w *world, m made) (string, string) { return m.second, w.resentAfter(time.Hour) }, false},
		"sent again, when it is over": {func(w *world, m made) (string, string) { return m.first, w.resentAfter(25 * time.Hour) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
			m := made{first: w.toConfirm(adas, squatters)}
			m.code = w.Mail(t, adas, auth.KindVerifyEmail).Code
			w.Clock.Advance(2 * time.Minute)
			m.second = w.toConfirm("Ada@Example.com", goodPassword)
			w.Mail(t, adas, auth.KindAccountExists) // whose link a later one supersedes
			id, code := c.prove(w, m)
			w.fired()
			body := map[string]any{"email": "ADA@example.com", "code": code, "request_id": id}
			answer := decodeAs[map[string]any](w.do("POST", "/verify-email", body).want(200))
			if u, err := w.Store.User(t.Context(), store.ByEmail(adas)); err != nil || !u.EmailVerified() {
				t.Errorf("user %+v, %v", u, err)
			}
			if c.stays {
				w.wantEvents(auth.EventEmailVerified)
				if len(answer) > 0 {
					t.Errorf("answer %v", answer)
				}
				w.login(adas, squatters).want(200)
				return
			}
			w.wantEvents(auth.EventTakenOver, auth.EventEmailVerified)
			if answer["taken_over"] != true || answer["reset_sent"] != true || len(answer) != 2 {
				t.Errorf("answer %v", answer)
			}
			w.login(adas, squatters).want(401, auth.CodeInvalidCredentials)
			w.Mail(t, adas, auth.KindTakenOver)
			reset := w.linkToken(adas, auth.KindResetPassword)
			w.do("POST", "/reset-password", map[string]any{"token": reset, "new_password": "another horse battery"}).want(200)
			w.login(adas, "another horse battery").want(200)
			w.do("POST", "/verify-email", body).want(400, auth.CodeInvalidCode) // used up
		})
	}
}

// askMagicID is the id of a sign-in by mail.
func (w *world) askMagicID(email string) string {
	w.t.Helper()
	return decodeAs[map[string]string](w.do("POST", "/magic-link/send", map[string]any{"email": email}).want(200))["request_id"]
}

// Where nobody waits for a confirmation, a session of the account shows that whoever
// gives its code signed up.
func TestCodeOutsideASessionTakesOver(t *testing.T) {
	for name, c := range map[string]struct {
		within func(w *world, s session) []header
		stays  bool
	}{
		"inside":  {func(_ *world, s session) []header { return []header{bearer(s.AccessToken)} }, true},
		"outside": {func(*world, session) []header { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.enrol(w.signUp(adas).AccessToken).session
			w.verifyBy(adas, w.Mail(t, adas, auth.KindVerifyEmail).Code, c.within(w, s)...).want(200)
			if w.alive(s.AccessToken) != c.stays {
				t.Errorf("the session stays: %v", !c.stays)
			}
			u, err := w.Store.User(t.Context(), store.ByEmail(adas))
			if err != nil || !u.EmailVerified() || u.MFAEnabled != c.stays {
				t.Errorf("user %+v, %v", u, err)
			}
		})
	}
}

// An account whose address is proved is not taken over by a code of it.
func TestCodeOfAProvedAddressTakesNothing(t *testing.T) {
	w := newWorld(t)
	s := w.signUp(adas)
	code := w.Mail(t, adas, auth.KindVerifyEmail).Code
	now := w.Clock.Now()
	w.patch(s.User.ID, store.UserPatch{EmailVerifiedAt: &now}) // by an admin's word
	if body := string(w.verifyBy(adas, code).want(200).body); body != "{}\n" && body != "{}" {
		t.Errorf("answer %q", body)
	}
	if !w.alive(s.AccessToken) {
		t.Error("the session is gone")
	}
}

// Wrong codes are answered alike with the id of the sign-up that made the account
// and with that of one that found the address taken.
func TestSignUpIDsAreNoOracle(t *testing.T) {
	tries := func(first bool) (list []int) {
		w := newWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
		if !first {
			w.toConfirm(adas, squatters)
		}
		id := w.toConfirm(adas, goodPassword)
		code := other(w.Mail(t, adas, auth.KindVerifyEmail).Code)
		for i := range 7 {
			body := map[string]any{"email": adas, "code": code}
			if i != 5 {
				body["request_id"] = id
			}
			list = append(list, w.do("POST", "/verify-email", body).status)
		}
		return list
	}
	if free, taken := tries(true), tries(false); !slices.Equal(free, taken) {
		t.Errorf("%v and %v", free, taken)
	}
}

// With a number, the id gives tries of one's own, free or taken.
func TestSignUpByNumberReturnsAnID(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	body := map[string]any{"phone": number, "password": goodPassword}
	id := decodeAs[map[string]any](w.do("POST", "/signup", body).want(200))["request_id"].(string)
	code := w.Mail(t, number, auth.KindPhoneCode).Code
	for range 5 {
		w.otp(number, other(code)).want(400, auth.CodeInvalidCode)
	}
	w.otp(number, code).want(429, auth.CodeRateLimited)
	w.Clock.Advance(time.Minute)
	taken := decodeAs[map[string]any](w.do("POST", "/signup", body).want(200))["request_id"].(string)
	if len(taken) != len(id) {
		t.Errorf("%q and %q", id, taken)
	}
	w.do("POST", "/otp/verify", map[string]any{"phone": number, "otp": code, "request_id": id}).want(200)
}
