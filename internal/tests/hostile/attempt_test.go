package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/store"
)

func onTake(s *harness.AttemptStore, f func()) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Taken = f
}

func count(s *harness.AttemptStore, limit string) int {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Drawn[limit]
}

func signInsFailed(fired []auth.EventType) (n int) {
	for _, e := range fired {
		if e == auth.EventSignInFailed {
			n++
		}
	}
	return n
}

var unlimited = auth.RateLimits{
	LoginPerAccount: auth.Rate{Burst: 100000, Per: time.Hour}, LoginPerIP: auth.Rate{Burst: 100000, Per: time.Hour},
	ConsecutiveFailures: auth.Rate{Burst: 100000, Per: 100000 * time.Hour}, SignInsPerAccount: auth.Rate{Burst: -1},
}

// A password that was checked was counted and reported, and an attempt that was counted was
// checked, however and whenever its request ends.
func TestJudgedIsCounted(t *testing.T) {
	w, store := harness.NewAttemptWorld(t, auth.WithRateLimits(unlimited))
	ada := w.Account("ada@example.com", harness.GoodPassword)
	in, err := w.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: harness.GoodPassword})
	if err != nil {
		t.Fatal(err)
	}
	doors := map[string]func(ctx context.Context, password string) error{
		"login": w.AttemptLogin,
		"change": func(ctx context.Context, password string) error {
			return w.ChangePassword(ctx, auth.ChangePasswordParams{Caller: auth.Caller{UserID: ada.ID, SessionID: in.SessionID}, Current: password, New: harness.GoodPassword + "!"})
		},
	}
	cuts := map[string]func(try func(context.Context)){
		"never":  func(try func(context.Context)) { try(t.Context()) },
		"before": func(try func(context.Context)) { ctx, cancel := context.WithCancel(t.Context()); cancel(); try(ctx) },
		"between draw and hash": func(try func(context.Context)) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			onTake(store, cancel)
			defer onTake(store, nil)
			try(ctx)
		},
	}
	for us := range 40 { // at any moment of the requests
		cuts[fmt.Sprintf("after %d µs", 25*us)] = func(try func(context.Context)) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(25*us)*time.Microsecond)
			defer cancel()
			try(ctx)
		}
	}
	if err := harness.Refund(w.Auth); err != nil {
		t.Fatal(err)
	}
	for door, try := range doors {
		for cut, run := range cuts {
			w.Fired()
			works, drawn := harness.HashWorks(w.Auth), count(store, "login")
			run(func(ctx context.Context) {
				if err := try(harness.OnDeviceContext(ctx, ""), harness.WrongPassword); err == nil {
					t.Errorf("%s, cut %s: let in", door, cut)
				}
			})
			if err := harness.Refund(w.Auth); err != nil {
				t.Fatal(err)
			}
			judged, counted, told := int(harness.HashWorks(w.Auth)-works), count(store, "login")-drawn, signInsFailed(w.Fired()) //nolint:gosec // a few
			if judged != counted || judged != told {
				t.Errorf("%s, cut %s: %d judged, %d counted, %d told", door, cut, judged, counted, told)
			}
			if cut == "never" && judged != 1 || cut == "before" && judged != 0 {
				t.Errorf("%s, cut %s: %d judged", door, cut, judged)
			}
		}
	}
}

// The attempt of a right password, and of one that could not be checked, is refunded. A
// right password also ends the run of failures before it.
func TestGivenBack(t *testing.T) {
	w, store := harness.NewAttemptWorld(t)
	w.Account("ada@example.com", harness.GoodPassword)
	ctx := harness.OnDeviceContext(t.Context(), "")
	for range 3 {
		if err := w.AttemptLogin(ctx, harness.WrongPassword); !errors.Is(err, auth.CodeInvalidCredentials) {
			t.Fatal(err)
		}
	}
	if err := w.AttemptLogin(ctx, harness.GoodPassword); err != nil {
		t.Fatal(err)
	}
	if err := harness.Refund(w.Auth); err != nil {
		t.Fatal(err)
	}
	if account, run, ip := count(store, "login"), count(store, "login-run"), count(store, "login-ip"); account > 0 || run > 0 || ip != 3 {
		t.Errorf("left of three wrong and a right password: account %d, in a row %d, address %d", account, run, ip)
	}
	for range 10 {
		if err := w.AttemptLogin(ctx, harness.WrongPassword); !errors.Is(err, auth.CodeInvalidCredentials) {
			t.Errorf("after a right password: %v", err)
		}
	}
}

// A refund is written with the next attempt, by itself a little later, or at the latest by Close.
func TestCloseGivesBack(t *testing.T) {
	w, store := harness.NewAttemptWorld(t)
	w.Account("ada@example.com", harness.GoodPassword)
	if err := w.AttemptLogin(harness.OnDeviceContext(t.Context(), ""), harness.GoodPassword); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(store, "login-ip"); n != 0 {
		t.Errorf("%d not given back", n)
	}
}

// Parallel sign-ins with the right password are no failures, even if they are more than the
// limit allows. Those that find no attempt left wait for those that are being checked.
func TestParallelRightPasswords(t *testing.T) {
	w, _ := harness.NewAttemptWorld(t, auth.WithPasswords(auth.PasswordOptions{Workers: 32}), auth.WithRateLimits(auth.RateLimits{LoginPerAccount: auth.Rate{Burst: 3, Per: time.Hour}, SignInsPerAccount: auth.Rate{Burst: -1}}))
	w.Account("ada@example.com", harness.GoodPassword)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			if err := w.AttemptLogin(harness.OnDeviceContext(t.Context(), ""), harness.GoodPassword); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// Of sixty-four parallel attempts at two instances, no more than the limit are checked. The
// right password beyond the limit is refused.
func TestParallelGuessesEverywhere(t *testing.T) {
	secret := auth.WithSecret(testsecret.Of("s"))
	w, store := harness.NewAttemptWorld(t, secret)
	w.Account("ada@example.com", harness.GoodPassword)
	two := authtest.NewOn(t, store, secret, auth.WithClock(w.Clock.Now))
	if err := harness.CheapPasswords(two.Auth); err != nil {
		t.Fatal(err)
	}
	before := harness.HashWorks(w.Auth) + harness.HashWorks(two.Auth)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		count = map[auth.Code]int{}
	)
	for i := range 64 {
		a := []*auth.Auth{w.Auth, two.Auth}[i%2]
		wg.Go(func() {
			_, err := a.Login(harness.OnDeviceContext(t.Context(), ""), auth.LoginParams{Email: "ada@example.com", Password: harness.WrongPassword})
			var e *auth.Error
			if !errors.As(err, &e) {
				t.Errorf("error %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			count[e.Code]++
		})
	}
	wg.Wait()
	if judged := harness.HashWorks(w.Auth) + harness.HashWorks(two.Auth) - before; judged != 10 || count[auth.CodeInvalidCredentials] != 10 || count[auth.CodeRateLimited] != 54 {
		t.Errorf("%d judged, answers %v", judged, count)
	}
	if err := w.AttemptLogin(harness.OnDeviceContext(t.Context(), ""), harness.GoodPassword); !errors.Is(err, auth.CodeRateLimited) {
		t.Errorf("the right one beyond the cap: %v", err)
	}
}

// A login does the same work for every name, and for every password and its form.
func TestEqualWork(t *testing.T) {
	limits := unlimited
	w, _ := harness.NewAttemptWorld(t, auth.WithRateLimits(limits), auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	const right = "five horses battery"
	for _, name := range []string{"ada", "banned"} {
		w.Account(name+"@example.com", right)
	}
	w.Account("nopassword@example.com", "")
	banned, err := w.Store.User(t.Context(), store.ByEmail("banned@example.com"))
	if err != nil {
		t.Fatal(err)
	}
	until := w.Clock.Now().Add(time.Hour)
	w.Patch(banned.ID, store.UserPatch{BannedUntil: &until})
	if _, err := w.SignUp(t.Context(), auth.SignUpParams{Email: "unconfirmed@example.com", Password: right}); err != nil {
		t.Fatal(err)
	}
	for form, c := range map[string]struct {
		right, wrong string
		want         uint64
	}{
		"NFKC": {right, "five wrong horses", 1}, "another": {"ﬁve horses battery", "ﬁve wrong horses", 2},
	} {
		for _, name := range []string{"ada", "banned", "nopassword", "unconfirmed", "unknown"} {
			for _, password := range []string{c.right, c.wrong} {
				before := harness.HashWorks(w.Auth)
				_, err := w.Login(harness.OnDeviceContext(t.Context(), ""), auth.LoginParams{Email: name + "@example.com", Password: password})
				if got := harness.HashWorks(w.Auth) - before; got != c.want {
					t.Errorf("%s form, %s, %q: %d hashes, want %d", form, name, password, got, c.want)
				}
				want := error(auth.CodeInvalidCredentials)
				if password == c.right && name == "ada" {
					want = nil
				} else if password == c.right && name == "banned" {
					want = auth.CodeUserBanned
				}
				if !errors.Is(err, want) {
					t.Errorf("%s form, %s, %q: %v, want %v", form, name, password, err, want)
				}
			}
		}
	}
}

// A hundred failures in a row lock the password for devices that never signed in, whether or
// not the account exists. The lock lasts a day, or, for an existing account, until its owner
// unlocks it. The owner is notified at twenty failures. NIST SP 800-63B-4.
func TestFailuresInARow(t *testing.T) {
	off := auth.Rate{Burst: -1}
	for name, reopen := range map[string]func(w *harness.World){
		"reset": func(w *harness.World) {
			w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
			w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken("ada@example.com", auth.KindResetPassword), "new_password": harness.GoodPassword}).Want(200)
		},
		"magic link": func(w *harness.World) {
			w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink("ada@example.com", nil)}).Want(200)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := harness.NewAttemptWorld(t, auth.WithRateLimits(auth.RateLimits{LoginPerAccount: off, LoginPerIP: off, SignInsPerAccount: off}))
			w.Account("ada@example.com", harness.GoodPassword)
			answers := map[string][]bool{}
			for range 105 {
				for _, who := range []string{"ada", "nobody"} {
					_, err := w.Login(harness.OnDeviceContext(t.Context(), "strange"), auth.LoginParams{Email: who + "@example.com", Password: harness.WrongPassword})
					answers[who] = append(answers[who], errors.Is(err, auth.CodeInvalidCredentials))
					if !errors.Is(err, auth.CodeInvalidCredentials) && !errors.Is(err, auth.CodeRateLimited) {
						t.Fatal(err)
					}
				}
			}
			w.Clock.Advance(48 * time.Hour)
			if !slices.Equal(answers["ada"], answers["nobody"]) || slices.Index(answers["ada"], false) != 100 {
				t.Errorf("judged until %d, and %d without an account", slices.Index(answers["ada"], false), slices.Index(answers["nobody"], false))
			}
			if err := w.AttemptLogin(harness.OnDeviceContext(t.Context(), "strange"), harness.GoodPassword); !errors.Is(err, auth.CodeRateLimited) {
				t.Errorf("the right password, where it is closed: %v", err)
			}
			if err := w.AttemptLogin(harness.OnDeviceContext(t.Context(), harness.OwnDevice), harness.GoodPassword); err != nil {
				t.Errorf("the owner's device: %v", err)
			}
			if err := w.AttemptLogin(harness.OnDeviceContext(t.Context(), ""), harness.GoodPassword); !errors.Is(err, auth.CodeRateLimited) {
				t.Errorf("opened by the owner's device for others: %v", err)
			}
			w.Mail(t, "ada@example.com", auth.KindManyFailedSignIns)
			reopen(w)
			if err := w.AttemptLogin(harness.OnDeviceContext(t.Context(), "strange"), harness.GoodPassword); err != nil {
				t.Errorf("after the owner opened it: %v", err)
			}
			if err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			told := 0
			for _, m := range w.Inbox.Messages() {
				if m.Kind == auth.KindManyFailedSignIns {
					told++
				}
			}
			if told != 1 {
				t.Errorf("told %d times", told)
			}
		})
	}
}

// Each of the owner's devices counts separately. Strangers cannot lock the owner out, and an
// owner's device has no more attempts than a stranger.
func TestDevicesCountApart(t *testing.T) {
	w, _ := harness.NewAttemptWorld(t)
	w.Account("ada@example.com", harness.GoodPassword)
	exhaust := func(device string) {
		t.Helper()
		for range 10 {
			if err := w.AttemptLogin(harness.OnDeviceContext(t.Context(), device), harness.WrongPassword); !errors.Is(err, auth.CodeInvalidCredentials) {
				t.Errorf("%q: %v", device, err)
			}
		}
		if err := w.AttemptLogin(harness.OnDeviceContext(t.Context(), device), harness.GoodPassword); !errors.Is(err, auth.CodeRateLimited) {
			t.Errorf("%q beyond the cap: %v", device, err)
		}
	}
	exhaust("strange")
	if err := w.AttemptLogin(harness.OnDeviceContext(t.Context(), "stranger"), harness.GoodPassword); !errors.Is(err, auth.CodeRateLimited) {
		t.Errorf("another name for a strange device: %v", err)
	}
	if err := w.AttemptLogin(harness.OnDeviceContext(t.Context(), harness.OwnDevice), harness.GoodPassword); err != nil {
		t.Errorf("the owner's: %v", err)
	}
	exhaust(harness.OwnDevice)
	w.Clock.Advance(5 * time.Minute)
	if err := w.AttemptLogin(harness.OnDeviceContext(t.Context(), "strange"), harness.GoodPassword); err != nil {
		t.Errorf("a stranger with the password: %v", err)
	}
}

// A hundred wrong codes in a row lock a second factor for unknown devices, however slowly
// they come. A recovery code refills the attempts.
func TestFactorFailuresInARow(t *testing.T) {
	w, store := harness.NewAttemptWorld(t, auth.WithRateLimits(auth.RateLimits{ConsecutiveFailures: auth.Rate{Burst: 21, Per: 1000 * time.Hour}}))
	ada := w.Enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	verify := func(device, totp, recovery string) error {
		t.Helper()
		_, err := w.VerifyMFA(harness.OnDeviceContext(t.Context(), device), auth.VerifyMFAParams{MFAToken: w.MFAToken(), TOTPCode: totp, RecoveryCode: recovery})
		w.Clock.Advance(5 * time.Minute)
		return err
	}
	for range 21 {
		if err := verify("strange", "000000", ""); !errors.Is(err, auth.CodeInvalidTOTPCode) {
			t.Fatal(err)
		}
	}
	w.Mail(t, "ada@example.com", auth.KindManyFailedSignIns)
	if err := verify("strange", w.Code(ada.Secret, 0), ""); !errors.Is(err, auth.CodeRateLimited) {
		t.Errorf("the right code, where it is closed: %v", err)
	}
	if err := verify(harness.OwnDevice, w.Code(ada.Secret, 0), ""); err != nil {
		t.Errorf("the owner's device: %v", err)
	}
	if err := verify("strange", w.Code(ada.Secret, 0), ""); !errors.Is(err, auth.CodeRateLimited) {
		t.Errorf("opened by the owner's device: %v", err)
	}
	if err := verify("strange", "", ada.Recovery[0]); err != nil {
		t.Errorf("a recovery code: %v", err)
	}
	if err := verify("strange", w.Code(ada.Secret, 0), ""); err != nil {
		t.Errorf("after a recovery code: %v (%d drawn)", err, count(store, "factor-run"))
	}
}

// Each mfa_token allows five attempts over all endpoints, even without a limit by user.
func TestTriesOfMFATokens(t *testing.T) {
	limits := unlimited
	limits.FactorPerUser = auth.Rate{Burst: 1000, Per: time.Hour}
	w, _ := harness.NewAttemptWorld(t, auth.WithRateLimits(limits))
	ada := w.Enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	token := w.MFAToken()
	for range 5 {
		w.PostVerifyMFA(token, "000000").Want(422, auth.CodeInvalidTOTPCode)
	}
	w.PostVerifyMFA(token, w.Code(ada.Secret, 0)).Want(429, auth.CodeRateLimited)
	w.PostVerifyMFA(w.MFAToken(), w.Code(ada.Secret, 0)).Want(200)

	forced, _ := harness.NewAttemptWorld(t, auth.WithRateLimits(limits), auth.WithSettings(auth.Settings{MFARequired: auth.On}))
	forced.Account("ada@example.com", authtest.Password)
	token = harness.DecodeAs[struct {
		MFAToken string `json:"mfa_token"`
	}](forced.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": authtest.Password}).Want(403, auth.CodeMFAEnrollmentRequired)).MFAToken
	setup := harness.DecodeAs[struct{ Secret string }](forced.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(token)).Want(200))
	for range 5 {
		forced.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": "000000"}, harness.Bearer(token)).Want(422, auth.CodeInvalidTOTPCode)
	}
	forced.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": forced.Code(setup.Secret, 0)}, harness.Bearer(token)).Want(429, auth.CodeRateLimited)
}

// Attempts at one name of an account reveal nothing about its other name: each has the
// attempts of an unknown account. A right password refunds both.
func TestNamesOfAnAccount(t *testing.T) {
	w, _ := harness.NewAttemptWorld(t)
	ada := w.Account("ada@example.com", harness.GoodPassword)
	phone, at := harness.PhoneNumber, w.Clock.Now()
	w.Patch(ada.ID, store.UserPatch{Phone: &phone, PhoneVerifiedAt: &at})
	byEmail, byPhone := auth.LoginParams{Email: "ADA@example.com"}, auth.LoginParams{Phone: harness.PhoneNumber}
	nobody := auth.LoginParams{Email: "nobody@example.com"}
	tries := func(p auth.LoginParams) (n int) {
		t.Helper()
		for p.Password = harness.WrongPassword; ; n++ {
			_, err := w.Login(harness.OnDeviceContext(t.Context(), ""), p)
			if errors.Is(err, auth.CodeRateLimited) {
				return n
			}
			if !errors.Is(err, auth.CodeInvalidCredentials) || n > 20 {
				t.Fatal(n, err)
			}
		}
	}
	for name, p := range map[string]auth.LoginParams{"address": byEmail, "number": byPhone, "nobody's": nobody} {
		if n := tries(p); n != 10 {
			t.Errorf("%s: %d tries", name, n)
		}
	}
	w.Clock.Advance(time.Minute) // a few are back
	byPhone.Password = harness.GoodPassword
	if _, err := w.Login(harness.OnDeviceContext(t.Context(), ""), byPhone); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]auth.LoginParams{"address": byEmail, "number": byPhone} {
		if n := tries(p); n != 10 {
			t.Errorf("%s: %d tries after a right password", name, n)
		}
	}
}

// A new secret in front of the old one leaves the counts as they are.
func TestCountsOutliveARotation(t *testing.T) {
	store, one, two := harness.NewStore(t), testsecret.Of("1"), testsecret.Of("2")
	at := time.Now()
	clock := auth.WithClock(func() time.Time { return at })
	guess := func(a *auth.Auth) error {
		_, err := a.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: harness.WrongPassword})
		return err
	}
	a := harness.NewPlainOn(t, store, auth.WithSecret(one), clock)
	for range 10 {
		if err := guess(a); !errors.Is(err, auth.CodeInvalidCredentials) {
			t.Fatal(err)
		}
	}
	if err := guess(harness.NewPlainOn(t, store, auth.WithSecret(two, one), clock)); !errors.Is(err, auth.CodeRateLimited) {
		t.Errorf("after the rotation: %v", err)
	}
}
