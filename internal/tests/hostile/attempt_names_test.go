package hostile_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// Every attempt counts against the limit of the client's IP address, at every endpoint and
// for every kind of secret. Only failures stay counted.
func TestGuessesDrawByClient(t *testing.T) {
	w, store := harness.NewAttemptWorld(t, freely)
	ada := w.Enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	ben := w.LoginAs(t, "ben@example.com")
	setup := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(ben.AccessToken)).Want(200))
	w.Clock.Advance(20 * time.Minute)
	stale := w.PostRefresh(ada.RefreshToken).Session().AccessToken
	ben = w.LoginAs(t, "ben@example.com")
	login := map[string]any{"email": "nobody@example.com", "password": harness.WrongPassword}
	code, _ := w.AskCode(harness.PhoneNumber)
	for name, c := range map[string]struct {
		limit string
		guess func() *harness.Answer
		want  int
	}{
		"a password": {"login-ip", func() *harness.Answer { return w.Do("POST", "/login", login) }, 401},
		"a password, in a session": {"login-ip", func() *harness.Answer {
			return w.Do("POST", "/me/password", map[string]any{"current_password": harness.WrongPassword, "new_password": harness.GoodPassword}, harness.Bearer(ben.AccessToken))
		}, 401},
		"a password, once more": {"login-ip", func() *harness.Answer {
			return w.Do("POST", "/me/confirm", map[string]any{"password": harness.WrongPassword}, harness.Bearer(ben.AccessToken))
		}, 401},
		"a factor, once more": {"code-ip", func() *harness.Answer {
			return w.Do("POST", "/me/confirm", map[string]any{"totp_code": "000000"}, harness.Bearer(stale))
		}, 422},
		"a factor with the password": {"code-ip", func() *harness.Answer {
			return w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": authtest.Password, "totp_code": "000000"})
		}, 422},
		"a factor after it": {"code-ip", func() *harness.Answer { return w.PostVerifyMFA(w.MFAToken(), "000000") }, 422},
		"a recovery code": {"code-ip", func() *harness.Answer {
			return w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": w.MFAToken(), "recovery_code": "aaaaa-aaaaa"})
		}, 422},
		"a factor, to switch it off": {"code-ip", func() *harness.Answer {
			return w.Do("POST", "/2fa/disable", map[string]any{"totp_code": "000000"}, harness.Bearer(stale))
		}, 422},
		"the first code of a factor": {"code-ip", func() *harness.Answer {
			return w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": wrongCode(w, setup.Secret)}, harness.Bearer(ben.AccessToken))
		}, 422},
		"a phone code": {"code-ip", func() *harness.Answer { return w.PostOTP(harness.PhoneNumber, harness.OtherNumber(code)) }, 400},
		"a phone code, a session": {"code-ip", func() *harness.Answer {
			return w.PostOTP(harness.PhoneNumber, harness.OtherNumber(code), harness.Bearer(ben.AccessToken))
		}, 400},
	} {
		before := count(store, c.limit)
		c.guess().Want(c.want)
		if err := harness.Refund(w.Auth); err != nil {
			t.Fatal(err)
		}
		if n := count(store, c.limit) - before; n != 1 {
			t.Errorf("%s: %d drawn by address", name, n)
		}
	}
	before := count(store, "code-ip")
	w.PostOTP(harness.PhoneNumber, code).Want(200)
	if err := harness.Refund(w.Auth); err != nil {
		t.Fatal(err)
	}
	if n := count(store, "code-ip") - before; n != 0 {
		t.Errorf("a right code: %d drawn by address", n)
	}
}

// A client that attempts codes of many phone numbers is limited by its IP address. Other
// clients are not.
func TestGuessingAtManyNumbersIsLimited(t *testing.T) {
	w := harness.NewWorld(t)
	at := func(i int) string { return fmt.Sprintf("+4930%08d", i) }
	for i := range 100 {
		w.PostOTP(at(i), "123456", harness.FromAddress(1)).Want(400, auth.CodeInvalidCode)
	}
	w.PostOTP(at(100), "123456", harness.FromAddress(1)).Want(429, auth.CodeRateLimited)
	w.PostOTP(at(100), "123456", harness.FromAddress(2)).Want(400, auth.CodeInvalidCode)
	w.Clock.Advance(5 * time.Minute)
	w.PostOTP(at(101), "123456", harness.FromAddress(1)).Want(400, auth.CodeInvalidCode)
}

// longest observes which draws stay counted, and for how long.
type longest struct {
	auth.Store

	mu    sync.Mutex
	drawn map[string]store.Draw // by key; Cost is the part that stays
}

func (s *longest) Unwrap() auth.Store { return s.Store }

func (s *longest) Take(ctx context.Context, draws []store.Draw, now time.Time) (store.Decision, error) {
	s.mu.Lock()
	for _, d := range draws {
		d.Cost = max(d.Cost+s.drawn[d.Key].Cost, 0)
		s.drawn[d.Key] = d
	}
	s.mu.Unlock()
	return s.Store.Take(ctx, draws, now)
}

// per is the longest period of any draw.
func (s *longest) per(t *testing.T, a *auth.Auth) (per time.Duration) {
	t.Helper()
	if err := harness.Refund(a); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.drawn {
		if d.Cost > 0 {
			per = max(per, d.Rate.Per)
		}
	}
	return per
}

// Failed attempts at unknown names are forgotten within a day, because anybody can invent
// names without end.
func TestNothingLastsOfNobody(t *testing.T) {
	store := &longest{Store: harness.NewStore(t), drawn: map[string]store.Draw{}}
	w := &harness.World{T: t, Env: authtest.NewOn(t, store)}
	w.Do("POST", "/login", map[string]any{"email": "nobody@example.com", "password": harness.WrongPassword}).Want(401)
	w.Do("POST", "/login", map[string]any{"phone": harness.PhoneNumber, "password": harness.WrongPassword}).Want(401)
	w.PostOTP(harness.PhoneNumber, "123456").Want(400)
	if per := store.per(t, w.Auth); per > 24*time.Hour {
		t.Errorf("a bucket of nobody's lasts %v", per)
	}
	w.LoginAs(t, "ada@example.com")
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": harness.WrongPassword}).Want(401)
	if per := store.per(t, w.Auth); per < 24*time.Hour*365 {
		t.Errorf("failures in a row at an account last %v", per)
	}
}

// Where confirmation is required, a sign-up with a name does not reset the failed attempts
// at it. A reset would reveal that the name was free.
func TestRunsOutliveASignUp(t *testing.T) {
	for _, c := range []struct {
		name string
		wait time.Duration
	}{{"at once", 0}, {"slowly", 30 * time.Second}} {
		t.Run(c.name, func(t *testing.T) {
			ask := func(taken bool) (answers []int) {
				off := auth.Rate{Burst: -1}
				w, _ := harness.NewAttemptWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}), auth.WithRateLimits(auth.RateLimits{LoginPerAccount: off, LoginPerIP: off, SignInsPerAccount: off}))
				if taken {
					w.Account("x@example.com", harness.GoodPassword)
				}
				guess := func() {
					answers = append(answers, w.Do("POST", "/login", map[string]any{"email": "x@example.com", "password": harness.WrongPassword}).Status)
				}
				for range 50 {
					guess()
					w.Clock.Advance(c.wait)
				}
				w.Do("POST", "/signup", map[string]any{"email": "x@example.com", "password": harness.GoodPassword + "!"}).Want(200)
				for range 55 {
					guess()
				}
				return answers
			}
			free, taken := ask(false), ask(true)
			if c.wait == 0 && (!slices.Equal(free, taken) || slices.Index(free, 429) != 100) {
				t.Errorf("judged until %d where the name was free, %d where it was taken", slices.Index(free, 429), slices.Index(taken, 429))
			}
			if free[50] != taken[50] || slices.Contains(free[:100], 429) || slices.Contains(taken[:100], 429) {
				t.Errorf("after the sign-up: free %v, taken %v", free[48:], taken[48:])
			}
		})
	}
}

// Sign-ins that are counted by account and minute count separately for the owner's devices.
func TestSignInsOfDevicesCountApart(t *testing.T) {
	w, _ := harness.NewAttemptWorld(t, auth.WithRateLimits(auth.RateLimits{SignInsPerAccount: auth.Rate{Burst: 3, Per: time.Minute}}))
	w.Account("ada@example.com", harness.GoodPassword)
	for range 5 {
		if err := w.AttemptLogin(harness.OnDeviceContext(t.Context(), "strange"), harness.WrongPassword); err == nil {
			t.Fatal("let in")
		}
	}
	for range 3 {
		if err := w.AttemptLogin(harness.OnDeviceContext(t.Context(), harness.OwnDevice), harness.GoodPassword); err != nil {
			t.Errorf("the owner's device: %v", err)
		}
	}
	if err := w.AttemptLogin(harness.OnDeviceContext(t.Context(), harness.OwnDevice), harness.GoodPassword); err == nil {
		t.Error("a device has no limit")
	}
}

// A code without attempts left gets no more, unless another code is sent. A sign-up with its
// phone number, another user's request for the number and a refused request change nothing.
func TestUsedUpCodesStayDead(t *testing.T) {
	for _, settings := range []auth.Settings{{RequireConfirmation: auth.Off}, {RequireConfirmation: auth.On}} {
		w := harness.NewWorld(t, auth.WithSettings(settings))
		const victim = "+4930111111"
		code, _ := w.AskCode(victim)
		w.PostOTP(victim, code).Want(200)
		thief := w.LoginAs(t, "thief@example.com")
		w.Clock.Advance(time.Minute)
		code, _ = w.AskCode(victim)
		for range 5 {
			w.PostOTP(victim, harness.OtherNumber(code)).Want(400, auth.CodeInvalidCode)
		}
		w.Do("POST", "/signup", map[string]any{"phone": victim, "password": harness.GoodPassword}, harness.FromAddress(9))
		w.PostOTP(victim, harness.OtherNumber(code)).Want(429, auth.CodeRateLimited)
		w.Do("POST", "/otp/send", map[string]any{"phone": victim}, harness.FromAddress(9)).Want(429)
		w.PostOTP(victim, harness.OtherNumber(code)).Want(429, auth.CodeRateLimited)
		w.Clock.Advance(time.Minute)
		w.Do("PATCH", "/me", map[string]any{"phone": victim}, harness.Bearer(thief.AccessToken)).Want(200)
		w.PostOTP(victim, harness.OtherNumber(code)).Want(429, auth.CodeRateLimited)
	}
}

// Where confirmation is required, a sign-up with a phone number after failed attempts does
// not reveal whether the number was free.
func TestTriesOutliveASignUp(t *testing.T) {
	ask := func(taken bool) int {
		w := harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
		if taken {
			w.PostOTP(harness.PhoneNumber, w.PhoneCode(harness.PhoneNumber)).Want(200)
			w.Clock.Advance(time.Hour)
		}
		for range 5 {
			w.PostOTP(harness.PhoneNumber, "123456").Want(400)
		}
		w.Do("POST", "/signup", map[string]any{"phone": harness.PhoneNumber, "password": harness.GoodPassword}).Want(200)
		return w.PostOTP(harness.PhoneNumber, "123456").Status
	}
	if free, taken := ask(false), ask(true); free != taken {
		t.Errorf("free %d, taken %d", free, taken)
	}
}

// A code with the id of its request shows that the caller has the phone number. It unlocks
// the codes without the id, and the password, which strangers locked.
func TestPhoneCodesReopen(t *testing.T) {
	off := auth.Rate{Burst: -1}
	limits := auth.RateLimits{SendGap: off, SendPerAddress: off, SendPerIP: off, CodesPerAddress: off, CodesPerAddressDaily: off, CodesPerRecipientDaily: off, LoginPerAccount: off, LoginPerIP: off, CodesPerIP: off, SignInsPerAccount: off}
	w, _ := harness.NewAttemptWorld(t, auth.WithRateLimits(limits))
	w.PostOTP(harness.PhoneNumber, askOnly(w, harness.PhoneNumber)).Want(200)
	u, err := w.Store.User(t.Context(), store.ByPhone(harness.PhoneNumber))
	if err != nil {
		t.Fatal(err)
	}
	c, err := w.Store.Credentials(t.Context(), store.ByID(w.Account("ada@example.com", harness.GoodPassword).ID))
	if err != nil {
		t.Fatal(err)
	}
	w.Patch(u.ID, store.UserPatch{PasswordHash: &c.PasswordHash})
	password := map[string]any{"phone": harness.PhoneNumber, "password": harness.GoodPassword}
	for range 20 {
		w.AskCode(harness.PhoneNumber)
		for range 5 {
			w.PostOTP(harness.PhoneNumber, "wrong").Want(400, auth.CodeInvalidCode)
		}
	}
	for range 100 {
		w.Do("POST", "/login", map[string]any{"phone": harness.PhoneNumber, "password": harness.WrongPassword}).Want(401)
	}
	w.Clock.Advance(48 * time.Hour)
	w.Do("POST", "/login", password).Want(429, auth.CodeRateLimited)
	code, request := w.AskCode(harness.PhoneNumber)
	w.PostOTP(harness.PhoneNumber, code).Want(429, auth.CodeRateLimited)
	w.OTPOf(harness.PhoneNumber, code, request).Want(200)
	if err := harness.Refund(w.Auth); err != nil {
		t.Fatal(err)
	}
	w.Do("POST", "/login", password).Want(200)
	w.PostOTP(harness.PhoneNumber, askOnly(w, harness.PhoneNumber)).Want(200)
}

// askOnly is askCode for the code alone.
func askOnly(w *harness.World, phone string) string {
	w.T.Helper()
	code, _ := w.AskCode(phone)
	return strings.TrimSpace(code)
}

// A reset forgets the devices. The intruder's devices lose their own attempts and do not
// lock out the owner's devices.
func TestResetForgetsDevices(t *testing.T) {
	w := harness.NewWorld(t)
	if err := harness.CheapPasswords(w.Auth); err != nil {
		t.Fatal(err)
	}
	w.Account("ada@example.com", harness.GoodPassword)
	dev := func(i int) harness.Header {
		return harness.Header{Name: "X-Device-Id", Value: fmt.Sprintf("a-device-of-theirs-%06d", i)}
	}
	for i := range 5 {
		w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}, dev(i), harness.FromAddress(i)).Want(200)
	}
	w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
	w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken("ada@example.com", auth.KindResetPassword), "new_password": harness.GoodPassword + "!"}).Want(200)
	judged := 0
	for i := range 5 {
		for range 10 {
			if w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": harness.WrongPassword}, dev(i), harness.FromAddress(i)).Status == 401 {
				judged++
			}
		}
	}
	if judged != 10 {
		t.Errorf("%d guesses judged of the former devices, want those of strangers", judged)
	}
}
