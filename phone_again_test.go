package auth_test

import (
	"context"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// Whoever asks for a number again puts an end to the code that they had, also where the
// number is somebody else's by then.
func TestAskingAgainEndsTheCodeOfATakenNumber(t *testing.T) {
	w := newWorld(t)
	adas, bobs := w.member("ada@example.com"), w.member("bob@example.com")
	ask := func() {
		w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(adas.AccessToken)).want(200)
	}
	ask()
	code := w.Mail(t, number, auth.KindPhoneCode).Code
	taken, at, none := number, w.Clock.Now(), ""
	w.patch(bobs.User.ID, store.UserPatch{Phone: &taken, PhoneVerifiedAt: &at})
	w.Clock.Advance(time.Minute)
	ask()
	w.patch(bobs.User.ID, store.UserPatch{Phone: &none})
	w.otp(number, code, bearer(adas.AccessToken)).want(400, auth.CodeInvalidCode)
}

// A code to sign in with confirms nothing within a session, whose own codes nobody
// else's request supersedes.
func TestSignInCodeConfirmsNothing(t *testing.T) {
	w := newWorld(t)
	s := w.otp(number, w.phoneCode(number)).session()
	w.Clock.Advance(time.Minute)
	code := w.newCode("")
	w.otp(number, code, bearer(s.AccessToken)).want(400, auth.CodeInvalidCode)
}

// Where the budget of texts cannot be asked, nobody is told that a code is on its way.
func TestNoCodeWithoutTheBudget(t *testing.T) {
	tap := storetap.New(newStore(t))
	w := &world{t: t, log: &syncBuffer{}, Env: authtest.NewOn(t, tap)}
	s := w.member("ada@example.com")
	ask := func() *answer {
		return w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(s.AccessToken))
	}
	last := 0 // draw before the code is kept, which is that of the budget
	tap.Reset(storetap.Hooks{Before: func(_ context.Context, method string, n int) {
		if method == "PutToken" && last == 0 {
			last = n - 1
		}
	}})
	ask().want(200)
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
	ask().want(503, auth.CodeUnavailable)
}

// The last text that the budget has room for is no fault to warn of.
func TestLastTextOfTheBudgetIsNoFault(t *testing.T) {
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{SMSBudget: auth.Rate{Burst: 1, Per: time.Hour}}))
	w.do("POST", "/signup", map[string]any{"phone": number, "password": goodPassword}).want(200)
	w.Mail(t, number, auth.KindPhoneCode)
	if lines := w.lines("not given back"); len(lines) > 0 {
		t.Error(lines)
	}
}

// Wrong guesses of strangers at one code do not use up those at the next, wherever it
// was asked for.
func TestNextCodeOfAnAddressHasItsOwnTries(t *testing.T) {
	moved := "countess@example.com"
	for to, c := range map[string]struct {
		kind auth.Kind
		made func(w *world, email string) session
		ask  func(w *world, me auth.Caller) error
	}{
		adaMail: {auth.KindVerifyEmail, (*world).signUp, func(w *world, me auth.Caller) error {
			return w.StartEmailVerification(t.Context(), auth.StartEmailVerificationParams{Caller: me})
		}},
		moved: {auth.KindChangeEmail, (*world).member, func(w *world, me auth.Caller) error {
			_, err := w.UpdateMe(t.Context(), auth.UpdateMeParams{Caller: me, Email: &moved})
			return err
		}},
	} {
		w := newWorld(t)
		me := w.claimsOf(c.made(w, adaMail)).Caller()
		var code string
		for range 2 {
			w.Clock.Advance(time.Minute)
			seen := w.mailsSeen()
			if err := c.ask(w, me); err != nil {
				t.Fatal(err)
			}
			code = w.newMail(to, c.kind, seen).Code
			for range 4 {
				w.verifyBy(to, other(code)).want(400, auth.CodeInvalidCode)
			}
		}
		w.verifyBy(to, code).want(200)
	}
}
