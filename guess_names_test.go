package auth_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// Every guess draws by the address of the client, whatever is guessed and whichever
// the door; only failures stay drawn.
func TestGuessesDrawByClient(t *testing.T) {
	w, store := guessWorld(t, freely)
	ada := w.enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	ben := w.LoginAs(t, "ben@example.com")
	setup := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, bearer(ben.AccessToken)).want(200))
	w.Clock.Advance(20 * time.Minute)
	stale := w.refresh(ada.RefreshToken).session().AccessToken
	ben = w.LoginAs(t, "ben@example.com")
	login := map[string]any{"email": "nobody@example.com", "password": wrongPassword}
	code, _ := w.askCode(number)
	for name, c := range map[string]struct {
		limit string
		guess func() *answer
		want  int
	}{
		"a password": {"login-ip", func() *answer { return w.do("POST", "/login", login) }, 401},
		"a password, in a session": {"login-ip", func() *answer {
			return w.do("POST", "/me/password", map[string]any{"current_password": wrongPassword, "new_password": goodPassword}, bearer(ben.AccessToken))
		}, 401},
		"a password, once more": {"login-ip", func() *answer {
			return w.do("POST", "/me/confirm", map[string]any{"password": wrongPassword}, bearer(ben.AccessToken))
		}, 401},
		"a factor, once more": {"code-ip", func() *answer {
			return w.do("POST", "/me/confirm", map[string]any{"totp_code": "000000"}, bearer(stale))
		}, 422},
		"a factor with the password": {"code-ip", func() *answer {
			return w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": authtest.Password, "totp_code": "000000"})
		}, 422},
		"a factor after it": {"code-ip", func() *answer { return w.verifyMFA(w.mfaToken(), "000000") }, 422},
		"a recovery code": {"code-ip", func() *answer {
			return w.do("POST", "/2fa/verify", map[string]any{"mfa_token": w.mfaToken(), "recovery_code": "aaaaa-aaaaa"})
		}, 422},
		"a factor, to switch it off": {"code-ip", func() *answer {
			return w.do("POST", "/2fa/disable", map[string]any{"totp_code": "000000"}, bearer(stale))
		}, 422},
		"the first code of a factor": {"code-ip", func() *answer {
			return w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.wrongCode(setup.Secret)}, bearer(ben.AccessToken))
		}, 422},
		"a phone code":            {"code-ip", func() *answer { return w.otp(number, other(code)) }, 400},
		"a phone code, a session": {"code-ip", func() *answer { return w.otp(number, other(code), bearer(ben.AccessToken)) }, 400},
	} {
		before := store.count(c.limit)
		c.guess().want(c.want)
		if err := auth.GiveBack(w.Auth); err != nil {
			t.Fatal(err)
		}
		if n := store.count(c.limit) - before; n != 1 {
			t.Errorf("%s: %d drawn by address", name, n)
		}
	}
	before := store.count("code-ip")
	w.otp(number, code).want(200)
	if err := auth.GiveBack(w.Auth); err != nil {
		t.Fatal(err)
	}
	if n := store.count("code-ip") - before; n != 0 {
		t.Errorf("a right code: %d drawn by address", n)
	}
}

// A client that guesses codes of many numbers is stopped by its address, and others
// are not stopped with it.
func TestGuessingAtManyNumbersIsLimited(t *testing.T) {
	w := newWorld(t)
	at := func(i int) string { return fmt.Sprintf("+4930%08d", i) }
	for i := range 100 {
		w.otp(at(i), "123456", from(1)).want(400, auth.CodeInvalidCode)
	}
	w.otp(at(100), "123456", from(1)).want(429, auth.CodeRateLimited)
	w.otp(at(100), "123456", from(2)).want(400, auth.CodeInvalidCode)
	w.Clock.Advance(5 * time.Minute)
	w.otp(at(101), "123456", from(1)).want(400, auth.CodeInvalidCode)
}

// longest watches what stays drawn, and for how long.
type longest struct {
	auth.Store

	mu    sync.Mutex
	drawn map[string]store.Draw // by key; Cost is what stays
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

// per is the longest that anything is drawn for.
func (s *longest) per(t *testing.T, a *auth.Auth) (per time.Duration) {
	t.Helper()
	if err := auth.GiveBack(a); err != nil {
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

// Guesses at what does not exist are forgotten within a day: anybody can think of
// names without end.
func TestNothingLastsOfNobody(t *testing.T) {
	store := &longest{Store: newStore(t), drawn: map[string]store.Draw{}}
	w := &world{t: t, Env: authtest.NewOn(t, store)}
	w.do("POST", "/login", map[string]any{"email": "nobody@example.com", "password": wrongPassword}).want(401)
	w.do("POST", "/login", map[string]any{"phone": number, "password": wrongPassword}).want(401)
	w.otp(number, "123456").want(400)
	if per := store.per(t, w.Auth); per > 24*time.Hour {
		t.Errorf("a bucket of nobody's lasts %v", per)
	}
	w.LoginAs(t, "ada@example.com")
	w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": wrongPassword}).want(401)
	if per := store.per(t, w.Auth); per < 24*time.Hour*365 {
		t.Errorf("failures in a row at an account last %v", per)
	}
}

// Where confirmation is required, a sign-up with a name at which was guessed before
// opens nothing: that would tell that the name was free.
func TestRunsOutliveASignUp(t *testing.T) {
	for _, c := range []struct {
		name string
		wait time.Duration
	}{{"at once", 0}, {"slowly", 30 * time.Second}} {
		t.Run(c.name, func(t *testing.T) {
			ask := func(taken bool) (answers []int) {
				off := auth.Rate{Burst: -1}
				w, _ := guessWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}), auth.WithRateLimits(auth.RateLimits{LoginPerAccount: off, LoginPerIP: off, SignInsPerAccount: off}))
				if taken {
					w.account("x@example.com", goodPassword)
				}
				guess := func() {
					answers = append(answers, w.do("POST", "/login", map[string]any{"email": "x@example.com", "password": wrongPassword}).status)
				}
				for range 50 {
					guess()
					w.Clock.Advance(c.wait)
				}
				w.do("POST", "/signup", map[string]any{"email": "x@example.com", "password": goodPassword + "!"}).want(200)
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

// What is judged for an account in a minute, counts apart for its owner's devices.
func TestSignInsOfDevicesCountApart(t *testing.T) {
	w, _ := guessWorld(t, auth.WithRateLimits(auth.RateLimits{SignInsPerAccount: auth.Rate{Burst: 3, Per: time.Minute}}))
	w.account("ada@example.com", goodPassword)
	for range 5 {
		if err := w.tryLogin(on(t.Context(), "strange"), wrongPassword); err == nil {
			t.Fatal("let in")
		}
	}
	for range 3 {
		if err := w.tryLogin(on(t.Context(), ownDevice), goodPassword); err != nil {
			t.Errorf("the owner's device: %v", err)
		}
	}
	if err := w.tryLogin(on(t.Context(), ownDevice), goodPassword); err == nil {
		t.Error("a device has no limit")
	}
}

// Those who want an account from everywhere fill its share of the queue for hashes;
// the owner's device has a share of its own.
func TestDevicesWaitApart(t *testing.T) {
	w, _ := guessWorld(t, auth.WithPasswords(auth.PasswordOptions{Workers: 1, Queue: 8, Argon2id: usualCost}))
	ada := w.account("ada@example.com", goodPassword)
	release := auth.FillQueue(w.Auth, ada.ID)
	defer release()
	try := func(device string) error {
		ctx, cancel := context.WithTimeout(on(t.Context(), device), 100*time.Millisecond)
		defer cancel()
		return w.tryLogin(ctx, goodPassword)
	}
	if err := try("strange"); !errors.Is(err, auth.CodeOverloaded) {
		t.Errorf("a stranger: %v", err)
	}
	if err := try(ownDevice); errors.Is(err, auth.CodeOverloaded) {
		t.Errorf("the owner's device: %v", err)
	}
}

// A code whose tries are used up has no others, unless another code is there: a
// sign-up with its number, somebody's wish to have the number and a request that is
// refused change nothing.
func TestUsedUpCodesStayDead(t *testing.T) {
	for _, settings := range []auth.Settings{{RequireConfirmation: auth.Off}, {RequireConfirmation: auth.On}} {
		w := newWorld(t, auth.WithSettings(settings))
		const victim = "+4930111111"
		code, _ := w.askCode(victim)
		w.otp(victim, code).want(200)
		thief := w.LoginAs(t, "thief@example.com")
		w.Clock.Advance(time.Minute)
		code, _ = w.askCode(victim)
		for range 5 {
			w.otp(victim, other(code)).want(400, auth.CodeInvalidCode)
		}
		w.do("POST", "/signup", map[string]any{"phone": victim, "password": goodPassword}, from(9))
		w.otp(victim, other(code)).want(429, auth.CodeRateLimited)
		w.do("POST", "/otp/send", map[string]any{"phone": victim}, from(9)).want(429)
		w.otp(victim, other(code)).want(429, auth.CodeRateLimited)
		w.Clock.Advance(time.Minute)
		w.do("PATCH", "/me", map[string]any{"phone": victim}, bearer(thief.AccessToken)).want(200)
		w.otp(victim, other(code)).want(429, auth.CodeRateLimited)
	}
}

// Where confirmation is required, a sign-up with a number at which was guessed
// before does not tell whether it was free.
func TestTriesOutliveASignUp(t *testing.T) {
	ask := func(taken bool) int {
		w := newWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
		if taken {
			w.otp(number, w.phoneCode(number)).want(200)
			w.Clock.Advance(time.Hour)
		}
		for range 5 {
			w.otp(number, "123456").want(400)
		}
		w.do("POST", "/signup", map[string]any{"phone": number, "password": goodPassword}).want(200)
		return w.otp(number, "123456").status
	}
	if free, taken := ask(false), ask(true); free != taken {
		t.Errorf("free %d, taken %d", free, taken)
	}
}

// Whoever shows that the number is theirs, by a code with the id of its request,
// opens what strangers closed: the codes without the id, and the password.
func TestPhoneCodesReopen(t *testing.T) {
	off := auth.Rate{Burst: -1}
	limits := auth.RateLimits{SendGap: off, SendPerAddress: off, SendPerIP: off, CodesPerAddress: off, CodesPerAddressDaily: off, LoginPerAccount: off, LoginPerIP: off, CodesPerIP: off, SignInsPerAccount: off}
	w, _ := guessWorld(t, auth.WithRateLimits(limits))
	w.otp(number, w.askOnly(number)).want(200)
	u, err := w.Store.User(t.Context(), store.ByPhone(number))
	if err != nil {
		t.Fatal(err)
	}
	c, err := w.Store.Credentials(t.Context(), store.ByID(w.account("ada@example.com", goodPassword).ID))
	if err != nil {
		t.Fatal(err)
	}
	w.patch(u.ID, store.UserPatch{PasswordHash: &c.PasswordHash})
	password := map[string]any{"phone": number, "password": goodPassword}
	for range 20 {
		w.askCode(number)
		for range 5 {
			w.otp(number, "wrong").want(400, auth.CodeInvalidCode)
		}
	}
	for range 100 {
		w.do("POST", "/login", map[string]any{"phone": number, "password": wrongPassword}).want(401)
	}
	w.Clock.Advance(48 * time.Hour)
	w.do("POST", "/login", password).want(429, auth.CodeRateLimited)
	code, request := w.askCode(number)
	w.otp(number, code).want(429, auth.CodeRateLimited)
	w.otpOf(number, code, request).want(200)
	if err := auth.GiveBack(w.Auth); err != nil {
		t.Fatal(err)
	}
	w.do("POST", "/login", password).want(200)
	w.otp(number, w.askOnly(number)).want(200)
}

// askOnly is askCode for the code alone.
func (w *world) askOnly(phone string) string {
	w.t.Helper()
	code, _ := w.askCode(phone)
	return strings.TrimSpace(code)
}

// A reset forgets the devices: those of whoever it throws out have no tries of their
// own, and do not keep the owner's out.
func TestResetForgetsDevices(t *testing.T) {
	w := newWorld(t)
	if err := auth.CheapPasswords(w.Auth); err != nil {
		t.Fatal(err)
	}
	w.account("ada@example.com", goodPassword)
	dev := func(i int) header { return header{"X-Device-Id", fmt.Sprintf("a-device-of-theirs-%06d", i)} }
	for i := range 5 {
		w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": goodPassword}, dev(i), from(i)).want(200)
	}
	w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
	w.do("POST", "/reset-password", map[string]any{"token": w.linkToken("ada@example.com", auth.KindResetPassword), "new_password": goodPassword + "!"}).want(200)
	judged := 0
	for i := range 5 {
		for range 10 {
			if w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": wrongPassword}, dev(i), from(i)).status == 401 {
				judged++
			}
		}
	}
	if judged != 10 {
		t.Errorf("%d guesses judged of the former devices, want those of strangers", judged)
	}
}
