package takeover_test

import (
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

const squatters = "the attacker's horse"

// toConfirm signs up where confirmation is required, and returns the id of it.
func toConfirm(w *harness.World, email, password string) string {
	w.T.Helper()
	id, _ := harness.DecodeAs[map[string]any](w.Do("POST", "/signup", harness.Credentials(email, password)).Want(200))["request_id"].(string)
	if id == "" {
		w.T.Fatal("no request_id")
	}
	return id
}

// resentAfter is the code that a refused login mails once more, after a time.
func resentAfter(w *harness.World, d time.Duration) string {
	w.T.Helper()
	w.Clock.Advance(d)
	seen := w.MailsSeen()
	w.PostLogin(harness.AdaMail, squatters).Want(401, auth.CodeInvalidCredentials)
	return w.NewMail(harness.AdaMail, auth.KindVerifyEmail, seen).Code
}

// The code of a sign-up confirms it for the person who signed up. For any other reader of
// the mailbox it takes the account over. So an owner who types the code after her own
// sign-up does not confirm an earlier squatter's sign-up.
func TestSignUpCodeConfirmsOnlyItsOwnSignUp(t *testing.T) {
	type made struct {
		first, second string // ids of the sign-ups
		code          string
	}
	for name, c := range map[string]struct {
		prove func(w *harness.World, m made) (id, code string)
		stays bool
	}{
		"with its own id":           {func(_ *harness.World, m made) (string, string) { return m.first, m.code }, true},
		"with a later sign-up's id": {func(_ *harness.World, m made) (string, string) { return m.second, m.code }, false},
		"without an id":             {func(_ *harness.World, m made) (string, string) { return "", m.code }, false},
		"with anything for an id":   {func(_ *harness.World, m made) (string, string) { return "x", m.code }, false},
		"with another account's id": {func(w *harness.World, m made) (string, string) {
			return toConfirm(w, "eve@example.com", squatters), m.code
		}, false},
		"with a magic link's id":      {func(w *harness.World, m made) (string, string) { return askMagicID(w, harness.AdaMail), m.code }, false},
		"sent again, its own id":      {func(w *harness.World, m made) (string, string) { return m.first, resentAfter(w, time.Hour) }, true},
		"sent again, a later one's":   {func(w *harness.World, m made) (string, string) { return m.second, resentAfter(w, time.Hour) }, false},
		"sent again, when it is over": {func(w *harness.World, m made) (string, string) { return m.first, resentAfter(w, 25*time.Hour) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
			m := made{first: toConfirm(w, harness.AdaMail, squatters)}
			m.code = w.Mail(t, harness.AdaMail, auth.KindVerifyEmail).Code
			w.Clock.Advance(2 * time.Minute)
			m.second = toConfirm(w, "Ada@Example.com", harness.GoodPassword)
			w.Mail(t, harness.AdaMail, auth.KindAccountExists) // a later one supersedes its link
			id, code := c.prove(w, m)
			w.Fired()
			body := map[string]any{"email": "ADA@example.com", "code": code, "request_id": id}
			answer := harness.DecodeAs[map[string]any](w.Do("POST", "/verify-email", body).Want(200))
			if u, err := w.Store.User(t.Context(), store.ByEmail(harness.AdaMail)); err != nil || !u.EmailVerified() {
				t.Errorf("user %+v, %v", u, err)
			}
			if c.stays {
				w.WantEvents(auth.EventEmailVerified)
				if len(answer) > 0 {
					t.Errorf("answer %v", answer)
				}
				w.PostLogin(harness.AdaMail, squatters).Want(200)
				return
			}
			w.WantEvents(auth.EventTakenOver, auth.EventEmailVerified)
			if answer["taken_over"] != true || answer["reset_sent"] != true || len(answer) != 2 {
				t.Errorf("answer %v", answer)
			}
			w.PostLogin(harness.AdaMail, squatters).Want(401, auth.CodeInvalidCredentials)
			w.Mail(t, harness.AdaMail, auth.KindTakenOver)
			reset := w.LinkToken(harness.AdaMail, auth.KindResetPassword)
			w.Do("POST", "/reset-password", map[string]any{"token": reset, "new_password": "another horse battery"}).Want(200)
			w.PostLogin(harness.AdaMail, "another horse battery").Want(200)
			w.Do("POST", "/verify-email", body).Want(400, auth.CodeInvalidCode) // used up
		})
	}
}

// askMagicID is the id of a sign-in by mail.
func askMagicID(w *harness.World, email string) string {
	w.T.Helper()
	return harness.DecodeAs[map[string]string](w.Do("POST", "/magic-link/send", map[string]any{"email": email}).Want(200))["request_id"]
}

// Where no sign-up waits for a confirmation, only a session of the account shows that its
// code comes from the person who signed up.
func TestCodeOutsideASessionTakesOver(t *testing.T) {
	for name, c := range map[string]struct {
		within func(w *harness.World, s harness.Session) []harness.Header
		stays  bool
	}{
		"inside": {func(_ *harness.World, s harness.Session) []harness.Header {
			return []harness.Header{harness.Bearer(s.AccessToken)}
		}, true},
		"outside": {func(*harness.World, harness.Session) []harness.Header { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t)
			s := w.Enrol(w.PostSignUp(harness.AdaMail).AccessToken).Session
			w.VerifyBy(harness.AdaMail, w.Mail(t, harness.AdaMail, auth.KindVerifyEmail).Code, c.within(w, s)...).Want(200)
			if w.Alive(s.AccessToken) != c.stays {
				t.Errorf("the session stays: %v", !c.stays)
			}
			u, err := w.Store.User(t.Context(), store.ByEmail(harness.AdaMail))
			if err != nil || !u.EmailVerified() || u.MFAEnabled != c.stays {
				t.Errorf("user %+v, %v", u, err)
			}
		})
	}
}

// A code does not take over an account with a verified address.
func TestCodeOfAProvedAddressTakesNothing(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp(harness.AdaMail)
	code := w.Mail(t, harness.AdaMail, auth.KindVerifyEmail).Code
	now := w.Clock.Now()
	w.Patch(s.User.ID, store.UserPatch{EmailVerifiedAt: &now}) // by an admin's word
	if body := string(w.VerifyBy(harness.AdaMail, code).Want(200).Body); body != "{}\n" && body != "{}" {
		t.Errorf("answer %q", body)
	}
	if !w.Alive(s.AccessToken) {
		t.Error("the session is gone")
	}
}

// Wrong codes get the same answer with the id of the sign-up that created the account and
// with the id of one that found the address taken.
func TestSignUpIDsAreNoOracle(t *testing.T) {
	tries := func(first bool) (list []int) {
		w := harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
		if !first {
			toConfirm(w, harness.AdaMail, squatters)
		}
		id := toConfirm(w, harness.AdaMail, harness.GoodPassword)
		code := harness.OtherNumber(w.Mail(t, harness.AdaMail, auth.KindVerifyEmail).Code)
		for i := range 7 {
			body := map[string]any{"email": harness.AdaMail, "code": code}
			if i != 5 {
				body["request_id"] = id
			}
			list = append(list, w.Do("POST", "/verify-email", body).Status)
		}
		return list
	}
	if free, taken := tries(true), tries(false); !slices.Equal(free, taken) {
		t.Errorf("%v and %v", free, taken)
	}
}

// With a phone number, the id has attempts of its own, whether the number is free or taken.
func TestSignUpByNumberReturnsAnID(t *testing.T) {
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	body := map[string]any{"phone": harness.PhoneNumber, "password": harness.GoodPassword}
	id := harness.DecodeAs[map[string]any](w.Do("POST", "/signup", body).Want(200))["request_id"].(string)
	code := w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code
	for range 5 {
		w.PostOTP(harness.PhoneNumber, harness.OtherNumber(code)).Want(400, auth.CodeInvalidCode)
	}
	w.PostOTP(harness.PhoneNumber, code).Want(429, auth.CodeRateLimited)
	w.Clock.Advance(time.Minute)
	taken := harness.DecodeAs[map[string]any](w.Do("POST", "/signup", body).Want(200))["request_id"].(string)
	if len(taken) != len(id) {
		t.Errorf("%q and %q", id, taken)
	}
	w.Do("POST", "/otp/verify", map[string]any{"phone": harness.PhoneNumber, "otp": code, "request_id": id}).Want(200)
}
