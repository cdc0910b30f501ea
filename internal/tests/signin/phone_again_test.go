package signin_test

import (
	"context"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// A ban is checked before a code is used up, as with links. A caller with the right code
// gets the error of the ban and can use the code once the ban is lifted. A caller with a
// wrong code gets the usual answer.
func TestBannedCodesAreNotUsedUp(t *testing.T) {
	for name, way := range map[string]struct {
		begin func(w *harness.World) (code, id string)
		give  func(w *harness.World, code, id string) *harness.Answer
	}{
		"by text": {
			func(w *harness.World) (string, string) {
				w.PostOTP(harness.PhoneNumber, w.PhoneCode(harness.PhoneNumber)).Session()
				w.Clock.Advance(2 * time.Minute)
				w.Inbox.Clear()
				return w.PhoneCode(harness.PhoneNumber), ""
			},
			func(w *harness.World, code, _ string) *harness.Answer { return w.PostOTP(harness.PhoneNumber, code) },
		},
		"by mail": {
			func(w *harness.World) (string, string) {
				w.Member(harness.AdaMail)
				m := w.AskByMail(harness.AdaMail, nil)
				return m.Code, m.Request
			},
			func(w *harness.World, code, id string) *harness.Answer {
				return w.ByCode(harness.AdaMail, code, id, nil)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t)
			code, id := way.begin(w)
			key := store.ByEmail(harness.AdaMail)
			if name == "by text" {
				key = store.ByPhone(harness.PhoneNumber)
			}
			u, err := w.Store.User(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			until, over := w.Clock.Now().Add(time.Hour), w.Clock.Now()
			w.Patch(u.ID, store.UserPatch{BannedUntil: &until})
			w.Fired()
			way.give(w, harness.OtherNumber(code), id).Want(400, auth.CodeInvalidCode)
			for range 7 { // more often than the limit of attempts
				way.give(w, code, id).Want(403, auth.CodeUserBanned)
			}
			way.give(w, harness.OtherNumber(code), id).Want(400, auth.CodeInvalidCode)
			w.Patch(u.ID, store.UserPatch{BannedUntil: &over})
			way.give(w, code, id).Session()
			way.give(w, code, id).Want(400, auth.CodeInvalidCode)
		})
	}
}

// A second request for a phone number ends the code of the first, even if the number belongs
// to another user by then.
func TestAskingAgainEndsTheCodeOfATakenNumber(t *testing.T) {
	w := harness.NewWorld(t)
	adas, bobs := w.Member("ada@example.com"), w.Member("bob@example.com")
	ask := func() {
		w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(adas.AccessToken)).Want(200)
	}
	ask()
	code := w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code
	taken, at, none := harness.PhoneNumber, w.Clock.Now(), ""
	w.Patch(bobs.User.ID, store.UserPatch{Phone: &taken, PhoneVerifiedAt: &at})
	w.Clock.Advance(time.Minute)
	ask()
	w.Patch(bobs.User.ID, store.UserPatch{Phone: &none})
	w.PostOTP(harness.PhoneNumber, code, harness.Bearer(adas.AccessToken)).Want(400, auth.CodeInvalidCode)
}

// A sign-in code confirms nothing within a session, because other users' requests must not
// supersede the session's own codes.
func TestSignInCodeConfirmsNothing(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostOTP(harness.PhoneNumber, w.PhoneCode(harness.PhoneNumber)).Session()
	w.Clock.Advance(time.Minute)
	code := w.NewCode("")
	w.PostOTP(harness.PhoneNumber, code, harness.Bearer(s.AccessToken)).Want(400, auth.CodeInvalidCode)
}

// If the budget for text messages cannot be read, no answer says that a code was sent.
func TestNoCodeWithoutTheBudget(t *testing.T) {
	tap := storetap.New(harness.NewStore(t))
	w := &harness.World{T: t, Log: &harness.SyncBuffer{}, Env: authtest.NewOn(t, tap)}
	s := w.Member("ada@example.com")
	ask := func() *harness.Answer {
		return w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(s.AccessToken))
	}
	last := 0 // draw before the code is stored, which is the budget's
	tap.Reset(storetap.Hooks{Before: func(_ context.Context, method string, n int) {
		if method == "PutToken" && last == 0 {
			last = n - 1
		}
	}})
	ask().Want(200)
	w.Clock.Advance(time.Minute)
	tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, n int) storetap.Fault {
		if n != last {
			return storetap.NoFault
		}
		if method != "Take" {
			t.Errorf("%s before the code", method)
		}
		return storetap.FailsBefore
	}})
	ask().Want(503, auth.CodeUnavailable)
}

// The last text message within the budget causes no warning.
func TestLastTextOfTheBudgetIsNoFault(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{SMSBudget: auth.Rate{Burst: 1, Per: time.Hour}}))
	w.Do("POST", "/signup", map[string]any{"phone": harness.PhoneNumber, "password": harness.GoodPassword}).Want(200)
	w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode)
	if lines := w.Lines("not given back"); len(lines) > 0 {
		t.Error(lines)
	}
}

// Strangers' wrong attempts at one code do not use up the attempts of the next, at any endpoint.
func TestNextCodeOfAnAddressHasItsOwnTries(t *testing.T) {
	moved := "countess@example.com"
	for to, c := range map[string]struct {
		kind auth.Kind
		made func(w *harness.World, email string) harness.Session
		ask  func(w *harness.World, me auth.Caller) error
	}{
		harness.AdaMail: {auth.KindVerifyEmail, (*harness.World).PostSignUp, func(w *harness.World, me auth.Caller) error {
			return w.StartEmailVerification(t.Context(), auth.StartEmailVerificationParams{Caller: me})
		}},
		moved: {auth.KindChangeEmail, (*harness.World).Member, func(w *harness.World, me auth.Caller) error {
			_, err := w.UpdateMe(t.Context(), auth.UpdateMeParams{Caller: me, Email: &moved})
			return err
		}},
	} {
		w := harness.NewWorld(t)
		s := c.made(w, harness.AdaMail)
		me := w.ClaimsOf(s).Caller()
		var code string
		var within []harness.Header
		for range 2 {
			w.Clock.Advance(time.Minute)
			seen := w.MailsSeen()
			if err := c.ask(w, me); err != nil {
				t.Fatal(err)
			}
			if m := w.NewMail(to, c.kind, seen); c.kind == auth.KindChangeEmail {
				code, within = w.ShownCode(harness.TokenIn(t, m.Link)), []harness.Header{harness.Bearer(s.AccessToken)}
			} else {
				code = m.Code
			}
			for range 4 {
				w.VerifyBy(to, harness.OtherNumber(code), within...).Want(400, auth.CodeInvalidCode)
			}
		}
		w.VerifyBy(to, code, within...).Want(200)
	}
}
