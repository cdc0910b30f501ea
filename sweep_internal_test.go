package auth

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// brokenSweep is a store whose first sweep fails.
type brokenSweep struct {
	Store
	calls int
}

func (s *brokenSweep) Sweep(context.Context, time.Time, int) (int, error) {
	if s.calls++; s.calls == 1 {
		return 0, errors.New("no room")
	}
	return 0, nil
}

// A sweep that fails is told, once, and tried again; one that the end of the service
// cuts off is not.
func TestSweepFails(t *testing.T) {
	for name, c := range map[string]struct {
		ended bool
		told  int
	}{"meanwhile": {false, 1}, "at the end": {true, 0}} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			s := &brokenSweep{}
			a := &Auth{store: s}
			a.cfg.now, a.cfg.log = time.Now, slog.New(slog.NewTextHandler(&log, nil))
			ctx, end := context.WithCancel(t.Context())
			defer end()
			if c.ended {
				a.cfg.now = func() time.Time { end(); return time.Now() }
			}
			go a.sweep(ctx)
			<-time.After(2*sweepEvery + time.Second) // the bubble's clock
			end()
			synctest.Wait()
			if n := strings.Count(log.String(), "no room"); n != c.told || !c.ended && s.calls != 2 {
				t.Errorf("%s: told %d times, want %d; %d sweeps:\n%s", name, n, c.told, s.calls, log.String())
			}
		})
	}
}
