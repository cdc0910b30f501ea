package auth

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/internal/journal"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// guesser is a service that guesses can be made at; nothing is drawn from it.
func guesser(t *testing.T) *Auth {
	t.Helper()
	a := &Auth{keys: testKeys(t), store: &drawing{take: func(draws []store.Draw) (store.Decision, error) {
		return store.Decision{Allowed: true, Remaining: make([]int, len(draws))}, nil
	}}, counter: &journal.Counter{}, recorder: &journal.Recorder{}}
	a.cfg.now = time.Now
	a.pending.of = map[string]*pendingGuess{}
	a.refunds = a.newRefunds()
	a.refunds.after = func(time.Duration, func()) {}
	return a
}

// A guess that was judged without a draw is a mistake of ours, and nothing that anybody
// gets anything by.
func TestWhatIsJudgedHasToBeDrawn(t *testing.T) {
	a := guesser(t)
	try := func(judge func(ctx context.Context, draw func() error) error) error {
		return a.guess(t.Context(), attempt{draws: []guessDraw{a.guessDraw(Rate{Burst: 3, Per: time.Hour}, "x", "ada")}}, judge)
	}
	if err := try(func(context.Context, func() error) error { return nil }); !errors.Is(err, CodeInternal) {
		t.Errorf("without a draw: %v", err)
	}
	if err := try(func(context.Context, func() error) error { return fail(CodeUserBanned, nil) }); !errors.Is(err, CodeUserBanned) {
		t.Errorf("refused before the draw: %v", err)
	}
	if err := try(func(_ context.Context, draw func() error) error { return draw() }); err != nil {
		t.Errorf("with one: %v", err)
	}
}

// A guess has its time from the draw on, however long it waited for that; it has the
// same before. The end of the request does not end it.
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
			a, alive := guesser(t), false
			err := a.guess(request, attempt{draws: []guessDraw{a.guessDraw(Rate{Burst: 3, Per: time.Hour}, "x", "ada")}}, func(ctx context.Context, draw func() error) error {
				<-time.After(c.waits) // the bubble's clock
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

// What goes by a name costs alike whether or not it is an account's: one bucket counts
// the failures in a row, and of a name that is nobody's none that lasts.
func TestRunsAtNamesCostAlike(t *testing.T) {
	a := &Auth{keys: testKeys(t)}
	day, week := Rate{Burst: 100, Per: 24 * time.Hour}, Rate{Burst: 100, Per: 7 * 24 * time.Hour}
	draw := func(r Rate, limit, value string) guessDraw {
		return guessDraw{Draw: store.Draw{Key: a.keys.RateLimit(limit, value), Rate: r, Cost: 1}, whole: true}
	}
	short, long := draw(day, "code-run-day", "ada"), draw(week, "code-run", "ada")
	counts := func(d guessDraw) guessDraw { d.run = true; return d }
	known := func(d guessDraw) guessDraw { d.known = true; return d }
	for name, c := range map[string]struct {
		rate   Rate
		known  bool
		device string
		want   []guessDraw
	}{
		"an account's":             {week, true, "", []guessDraw{short, known(counts(long))}},
		"nobody's":                 {week, false, "", []guessDraw{counts(short)}},
		"an account's for a day":   {day, true, "", []guessDraw{counts(draw(day, "code-run", "ada"))}},
		"nobody's for a day":       {day, false, "", []guessDraw{counts(draw(day, "code-run", "ada"))}},
		"of a device":              {week, true, "phone", []guessDraw{counts(draw(week, "code-device-run", "ada phone"))}},
		"of a device, for a day":   {day, true, "phone", []guessDraw{counts(draw(day, "code-device-run", "ada phone"))}},
		"of a device and nobody's": {week, false, "phone", []guessDraw{counts(draw(week, "code-device-run", "ada phone"))}},
	} {
		a.cfg.limits.ConsecutiveFailures = c.rate
		if got := a.inARowBy("code", "ada", c.known, c.device); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v\nwant %+v", name, got, c.want)
		}
	}
}

// Without a store for second factors no code is right, and nobody is asked.
func TestNoFactorWithoutAStore(t *testing.T) {
	a := &Auth{keys: testKeys(t), cfg: config{now: time.Now}}
	for _, code := range []factorCode{{totp: "123456"}, {recovery: "aaaaa-aaaaa"}, {recovery: "aaaaa-aaaaa", disables: true}} {
		got, err := a.useFactor(t.Context(), byProof(), User{ID: "ada"}, code)
		if !errors.Is(err, CodeInvalidTOTPCode) || got != (shown{}) {
			t.Errorf("%+v: %+v, %v", code, got, err)
		}
	}
}

// Whose account it is that somebody guesses at is asked again after an outage; that it is
// nobody's is an answer.
func TestOwnersAreLookedUpUntilAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := outbox.New(outbox.Options{Queue: 1, Workers: 1, Attempts: 5, Log: slog.New(slog.DiscardHandler)})
		defer func() { _ = b.Close(context.WithoutCancel(t.Context())) }()
		var asked atomic.Int32
		(&Auth{outbox: b}).tellOwner(t.Context(), func(context.Context) (User, error) {
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
