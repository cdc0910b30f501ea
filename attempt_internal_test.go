package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/internal/journal"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// newAttemptService is a service that accepts attempts without a limiter's draws.
func newAttemptService(t *testing.T) *Auth {
	t.Helper()
	a := &Auth{keys: testKeys(t), store: &drawing{take: func(draws []store.Draw) (store.Decision, error) {
		return store.Decision{Allowed: true, Remaining: make([]int, len(draws))}, nil
	}}, counter: &journal.Counter{}, recorder: &journal.Recorder{}}
	a.cfg.now = time.Now
	a.pending.bySecret = map[string]*attemptGroup{}
	a.refunds = a.newRefunds()
	a.refunds.after = func(time.Duration, func()) {}
	return a
}

// An attempt that succeeds without a draw is an internal error. A refusal before the draw
// is returned as it is.
func TestWhatIsJudgedHasToBeDrawn(t *testing.T) {
	a := newAttemptService(t)
	count := func(check func(ctx context.Context, draw func() error) error) error {
		return a.countAttempt(t.Context(), attempt{limits: []attemptLimit{a.attemptLimit(Rate{Burst: 3, Per: time.Hour}, "x", "ada")}}, check)
	}
	if err := count(func(context.Context, func() error) error { return nil }); !errors.Is(err, CodeInternal) {
		t.Errorf("without a draw: %v", err)
	}
	if err := count(func(context.Context, func() error) error { return fail(CodeUserBanned, nil) }); !errors.Is(err, CodeUserBanned) {
		t.Errorf("refused before the draw: %v", err)
	}
	if err := count(func(_ context.Context, draw func() error) error { return draw() }); err != nil {
		t.Errorf("with one: %v", err)
	}
}

// An attempt has a time limit before its draw, which starts again at the draw. The end of
// the request does not cancel the attempt after the draw.
func TestGuessesHaveTheirTime(t *testing.T) {
	const most = 30 * time.Second
	for name, c := range map[string]struct {
		waits, judges time.Duration
		alive         bool
	}{
		"at once":                      {0, most - 1, true},
		"for too long":                 {0, most + 1, false},
		"after a wait":                 {most - 1, most - 1, true},
		"for too long after a wait":    {most - 1, most + 1, false},
		"after it waited for too long": {most + 1, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			request, leave := context.WithCancel(t.Context())
			defer leave()
			a, alive := newAttemptService(t), false
			err := a.countAttempt(request, attempt{limits: []attemptLimit{a.attemptLimit(Rate{Burst: 3, Per: time.Hour}, "x", "ada")}}, func(ctx context.Context, draw func() error) error {
				<-time.After(c.waits) // the synctest clock
				if err := draw(); err != nil {
					return err
				}
				leave()
				<-time.After(c.judges)
				synctest.Wait()
				alive = ctx.Err() == nil
				return nil
			})
			if err != nil || alive != c.alive {
				t.Errorf("%s: alive %t, %v", name, alive, err)
			}
		})
	}
}

// Failures under a name cost the same whether or not it belongs to an account: one bucket
// counts consecutive failures. For an unknown account no lasting bucket is written.
func TestRunsAtNamesCostAlike(t *testing.T) {
	a := &Auth{keys: testKeys(t)}
	day, week := Rate{Burst: 100, Per: 24 * time.Hour}, Rate{Burst: 100, Per: 7 * 24 * time.Hour}
	draw := func(r Rate, limit, value string) attemptLimit {
		return attemptLimit{Draw: store.Draw{Key: a.keys.RateLimit(limit, value), Rate: r, Cost: 1}, refills: true}
	}
	short, long := draw(day, "code-run-day", "ada"), draw(week, "code-run", "ada")
	counts := func(d attemptLimit) attemptLimit { d.consecutive = true; return d }
	known := func(d attemptLimit) attemptLimit { d.knownAccount = true; return d }
	for name, c := range map[string]struct {
		rate   Rate
		known  bool
		device string
		want   []attemptLimit
	}{
		"an account's":             {week, true, "", []attemptLimit{short, known(counts(long))}},
		"nobody's":                 {week, false, "", []attemptLimit{counts(short)}},
		"an account's for a day":   {day, true, "", []attemptLimit{counts(draw(day, "code-run", "ada"))}},
		"nobody's for a day":       {day, false, "", []attemptLimit{counts(draw(day, "code-run", "ada"))}},
		"of a device":              {week, true, "phone", []attemptLimit{counts(draw(week, "code-device-run", "ada phone"))}},
		"of a device, for a day":   {day, true, "phone", []attemptLimit{counts(draw(day, "code-device-run", "ada phone"))}},
		"of a device and nobody's": {week, false, "phone", []attemptLimit{counts(draw(week, "code-device-run", "ada phone"))}},
	} {
		a.cfg.limits.ConsecutiveFailures = c.rate
		if got := a.consecutiveFailuresOf("code", "ada", c.known, c.device); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v\nwant %+v", name, got, c.want)
		}
	}
}

// Without a store for second factors no code is valid, and no store is called.
func TestNoFactorWithoutAStore(t *testing.T) {
	a := &Auth{keys: testKeys(t), cfg: config{now: time.Now}}
	for _, code := range []factorCode{{totp: "123456"}, {recovery: "aaaaa-aaaaa"}, {recovery: "aaaaa-aaaaa", removes: &factorRemoval{id: "app"}}} {
		got, err := a.useFactor(t.Context(), factorUse{by: byAuthentication(), user: User{ID: "ada"}, code: code})
		if !errors.Is(err, CodeInvalidTOTPCode) || got.codesLeft != nil || got.User.ID != "" {
			t.Errorf("%+v: %+v, %v", code, got, err)
		}
	}
}

// The owner of an attacked account is looked up again after an outage. An unknown account
// is a final answer.
func TestOwnersAreLookedUpUntilAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := outbox.New(outbox.Options{Queue: 1, Workers: 1, Attempts: 5, Log: slog.New(slog.DiscardHandler)})
		defer func() { _ = b.Close(context.WithoutCancel(t.Context())) }()
		var asked atomic.Int32
		(&Auth{outbox: b}).notifyOwner(t.Context(), func(context.Context) (User, error) {
			if asked.Add(1) < 3 {
				return User{}, errors.New("away")
			}
			return User{}, store.ErrNotFound
		})
		<-time.After(time.Hour)
		if n := asked.Load(); n != 3 {
			t.Errorf("asked %d times", n)
		}
	})
}

// Refunds that no attempt includes are sent to the store a little later. At most one such
// call is scheduled.
func TestReturnsComeByThemselves(t *testing.T) {
	var (
		given []store.Draw
		calls []func()
		fault error
	)
	r := &refunds{
		waiting: map[string]store.Draw{},
		take:    func(_ context.Context, list []store.Draw) error { given = append(given, list...); return fault },
		after: func(d time.Duration, f func()) {
			if d != refundAfter {
				t.Errorf("after %s", d)
			}
			calls = append(calls, f)
		},
	}
	rate := Rate{Burst: 3, Per: time.Hour}
	for range 5 {
		r.add(store.Draw{Key: "a", Rate: rate, Cost: -1}, store.Draw{Key: "off", Cost: -1})
	}
	r.add(store.Draw{Key: "b", Rate: rate, Cost: -2})
	if len(calls) != 1 {
		t.Fatalf("%d calls", len(calls))
	}
	if got := r.pick(1, []store.Draw{{Key: "b"}, {Key: "c"}}); len(got) != 1 || got[0].Key != "b" || got[0].Cost != -2 {
		t.Errorf("taken along %+v", got)
	}
	calls[0]()
	if len(given) != 1 || given[0].Key != "a" || given[0].Cost != -3 { // never more than the burst
		t.Errorf("given back %+v", given)
	}
	r.add(store.Draw{Key: "a", Rate: rate, Cost: -1})
	fault = errors.New("the store is down")
	if len(calls) != 2 {
		t.Fatalf("%d calls", len(calls))
	}
	calls[1]() // lost
	given, fault = nil, nil
	for i := range refundsAtMost + 10 {
		r.add(store.Draw{Key: fmt.Sprint(i), Rate: rate, Cost: -1})
	}
	if err := r.close(t.Context()); err != nil || len(given) != refundsAtMost {
		t.Errorf("%d at the end, %v", len(given), err)
	}
	r.add(store.Draw{Key: "late", Rate: rate, Cost: -1})
	if len(r.waiting) != 0 {
		t.Error("taken after the end")
	}
}

// A decision covers the draws and not the refunds that were sent with them. A refused call
// returns its refunds to the queue; an error loses them.
func TestDecisionsAreAboutWhatIsDrawn(t *testing.T) {
	rate := Rate{Burst: 5, Per: time.Hour}
	draw := func(key string, cost int) store.Draw { return store.Draw{Key: key, Rate: rate, Cost: cost} }
	for name, c := range map[string]struct {
		d    store.Decision
		err  error
		n    int
		took []store.Draw
		want store.Decision
		left int
	}{
		"allowed":          {store.Decision{Allowed: true, Remaining: []int{5, 4, 3, 2}}, nil, 2, []store.Draw{draw("a", -1), draw("z", -2), draw("a", 1), draw("b", 1)}, store.Decision{Allowed: true, Remaining: []int{3, 2}}, 0},
		"refused":          {store.Decision{Remaining: []int{5, 4, 0, 2}, RetryAfter: time.Minute}, nil, 2, []store.Draw{draw("a", -1), draw("z", -2), draw("a", 1), draw("b", 1)}, store.Decision{Remaining: []int{0, 2}, RetryAfter: time.Minute}, 2},
		"of its own alone": {store.Decision{Allowed: true, Remaining: []int{5, 3, 2}}, nil, 1, []store.Draw{draw("a", -1), draw("a", 1), draw("b", 1)}, store.Decision{Allowed: true, Remaining: []int{3, 2}}, 1},
		"without numbers":  {store.Decision{Allowed: true}, nil, 2, []store.Draw{draw("a", -1), draw("z", -2), draw("a", 1), draw("b", 1)}, store.Decision{Allowed: true, Remaining: nil}, 0},
		"failed":           {store.Decision{}, errors.New("away"), 2, []store.Draw{draw("a", -1), draw("z", -2), draw("a", 1), draw("b", 1)}, store.Decision{}, 0},
	} {
		var took []store.Draw
		st := &drawing{take: func(draws []store.Draw) (store.Decision, error) { took = slices.Clone(draws); return c.d, c.err }}
		a := &Auth{store: st, cfg: config{now: time.Now}}
		a.refunds = a.newRefunds()
		a.refunds.after = func(time.Duration, func()) {}
		a.refunds.add(draw("a", -1), draw("z", -2))
		got, err := a.takeWithRefunds(t.Context(), []store.Draw{draw("a", 1), draw("b", 1)}, c.n)
		if !errors.Is(err, c.err) || !reflect.DeepEqual(got, c.want) || !slices.Equal(took, c.took) || len(a.refunds.waiting) != c.left {
			t.Errorf("%s: %+v, %v; took %+v, %d wait", name, got, err, took, len(a.refunds.waiting))
		}
	}
}

// The vectors of RFC 4226, appendix D, and RFC 6238, appendix B (last six of the eight
// digits).
func TestTOTPVectors(t *testing.T) {
	keys := testKeys(t)
	a := &Auth{keys: keys}
	f := Factor{UserID: "u", Secret: keys.Seal([]byte("12345678901234567890"), []byte("u"))}
	for step, want := range []string{"755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"} {
		at := time.Unix(int64(step)*totpPeriod, 0)
		if m, _ := a.matchTOTP(f, want, at); step > 0 && (!m.ok || m.step != int64(step)) {
			t.Errorf("RFC 4226, count %d: %+v", step, m)
		}
	}
	for at, want := range map[int64]string{
		59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130",
	} {
		if m, _ := a.matchTOTP(f, want, time.Unix(at, 0)); !m.ok || m.step != at/totpPeriod {
			t.Errorf("RFC 6238, time %d: %+v", at, m)
		}
		if m, _ := a.matchTOTP(f, fmt.Sprintf("%06d", 0), time.Unix(at, 0)); m.ok {
			t.Errorf("time %d: zeros match", at)
		}
	}
}

// silentCaptcha is a captcha service that does not answer.
type silentCaptcha struct{}

func (silentCaptcha) Verify(ctx context.Context, _ string, _ netip.Addr) error {
	<-ctx.Done()
	return ctx.Err()
}

// If configured, a captcha that cannot be verified lets requests pass, but not those of
// callers who have left.
func TestCaptchaLetsNobodyPassWhoLeft(t *testing.T) {
	t.Parallel()
	store := &drawing{take: func([]store.Draw) (store.Decision, error) { return store.Decision{Allowed: true}, nil }}
	for _, open := range []bool{false, true} {
		a := &Auth{keys: testKeys(t), store: store, cfg: config{
			now: time.Now, log: slog.New(slog.DiscardHandler), captcha: &CaptchaOptions{Verifier: silentCaptcha{}, FailOpen: open, Timeout: time.Millisecond},
		}}
		ctx, leave := context.WithCancel(context.WithValue(t.Context(), captchaKey{}, "token"))
		if err := a.verifyCaptcha(ctx); (err == nil) != open {
			t.Errorf("open %v: %v", open, err)
		}
		if leave(); a.verifyCaptcha(ctx) == nil {
			t.Errorf("open %v: who has left is let pass", open)
		}
	}
}

// A new device id is returned only to the browser that created the session.
func TestNewDevicesAreOfTheirSession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ made, of, want string }{{"one", "one", "one"}, {"one", "other", ""}, {"", "", ""}, {"one", "", ""}} {
		ctx := context.WithValue(t.Context(), newDeviceKey{}, c.made)
		if got := newDevice(ctx, Session{Device: deviceHash(c.of)}); got != c.want {
			t.Errorf("made %q, session of %q: %q", c.made, c.of, got)
		}
	}
}

// An attempt of a caller who has left fails with unavailable, neither allowed nor
// rate-limited. An attempt that waits for others is checked once they are finished.
func TestGuessesThatNobodyWaitsFor(t *testing.T) {
	draws := func(a *Auth) []attemptLimit {
		return []attemptLimit{a.attemptLimit(Rate{Burst: 3, Per: time.Hour}, "x", "ada")}
	}
	t.Run("for its turn", func(t *testing.T) {
		a := newAttemptService(t)
		at := a.pending.join("ada")
		at.drawing <- struct{}{}
		request, leave := context.WithCancel(t.Context())
		leave()
		if d, others, err := a.drawInTurn(request, t.Context(), at, []store.Draw{draws(a)[0].Draw}); !errors.Is(err, CodeUnavailable) || d.Allowed || others != nil {
			t.Errorf("%+v, %v", d, err)
		}
	})
	for name, gone := range map[string]bool{"for others": true, "until others end": false} {
		t.Run(name, func(t *testing.T) {
			a := newAttemptService(t)
			all := draws(a)
			about, attempts := all[0].Key, 0
			a.pending.counted(a.pending.join(about)) // the other attempt
			request, leave := context.WithCancel(t.Context())
			defer leave()
			a.store = &drawing{take: func(draws []store.Draw) (store.Decision, error) {
				if attempts++; attempts > 1 {
					return store.Decision{Allowed: true, Remaining: make([]int, len(draws))}, nil
				}
				if gone {
					leave()
				} else {
					a.pending.leave(about, true)
				}
				return store.Decision{Remaining: make([]int, len(draws)), RetryAfter: time.Minute}, nil
			}}
			d, end, err := a.drawAttempt(request, t.Context(), all)
			end()
			switch {
			case gone && (!errors.Is(err, CodeUnavailable) || d.Allowed || attempts != 1):
				t.Errorf("%+v, %v, %d tries", d, err, attempts)
			case !gone && (err != nil || !d.Allowed || attempts != 2 || len(a.pending.bySecret) != 0):
				t.Errorf("%+v, %v, %d tries, pending %v", d, err, attempts, a.pending.bySecret)
			}
		})
	}
}

// Of several attempts at one secret one draws at a time, because the next one needs to
// know whether there is another to wait for.
func TestOneGuessDrawsAtATime(t *testing.T) {
	p := &pendingAttempts{bySecret: map[string]*attemptGroup{}}
	at := p.join("ada")
	if p.join("ada") != at {
		t.Fatal("not about the same")
	}
	at.drawing <- struct{}{}
	select {
	case at.drawing <- struct{}{}:
		t.Error("two draw at once")
	default:
	}
}
