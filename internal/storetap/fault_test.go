package storetap_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

const somebody = "0190f7a8-0000-7000-8000-000000000001"

// create is a change for testing faults.
func create(ctx context.Context, s store.Store) (store.User, error) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return s.CreateUser(ctx, store.CreateUser{
		Change:  store.Change{Now: now, By: store.Authority{System: "test"}},
		NewUser: store.NewUser{User: store.User{ID: somebody, Email: "ada@example.com", CreatedAt: now, UpdatedAt: now}},
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault  storetap.Fault
		err    error
		effect bool
		left   bool // the caller
	}{
		{storetap.NoFault, nil, true, false},
		{storetap.LeavesBefore, context.Canceled, false, true},
		{storetap.LeavesDuring, nil, true, true}, // memory looks at a context once
		{storetap.LeavesAfter, nil, true, true},
		{storetap.FailsBefore, storetap.ErrFault, false, false},
		{storetap.FailsAfter, storetap.ErrFault, true, false},
		{storetap.Waits, nil, true, false},
	} {
		t.Run(string(c.fault), func(t *testing.T) {
			t.Parallel()
			tap := storetap.New(memstore.New())
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			release, truth := make(chan struct{}), error(nil)
			tap.Reset(storetap.Hooks{
				Fault: func(_ context.Context, method string, n int) storetap.Fault {
					if method != "CreateUser" || n != 1 {
						t.Errorf("call %d, %s", n, method)
					}
					if c.fault == storetap.Waits {
						go close(release)
					}
					return c.fault
				},
				After:   func(_ context.Context, _ string, _ int, err error) { truth = err },
				Leave:   leave,
				Release: release,
			})
			u, err := create(ctx, tap)
			if !errors.Is(err, c.err) || (err != nil && !reflect.DeepEqual(u, store.User{})) || (err == nil && u.ID != somebody) {
				t.Errorf("%+v, %v", u, err)
			}
			if (truth == nil) != c.effect {
				t.Errorf("the hook was told %v", truth)
			}
			if left := ctx.Err() != nil; left != c.left {
				t.Errorf("left %v", left)
			}
			if c.fault == storetap.Waits {
				<-release
			}
			tap.Reset(storetap.Hooks{})
			if _, err := tap.User(t.Context(), store.ByID(somebody)); (err == nil) != c.effect {
				t.Errorf("afterwards %v", err)
			}
		})
	}
	if len(storetap.Faults()) != 6 {
		t.Error("a fault without a line above")
	}
}

// A canceled context ends the wait for a blocked store.
func TestWaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
	ctx, leave := context.WithCancel(t.Context())
	tap.Reset(storetap.Hooks{Fault: func(context.Context, string, int) storetap.Fault {
		leave()
		return storetap.Waits
	}})
	if _, err := create(ctx, tap); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A store that looks at its context again finds that the caller has left.
func TestLeavingDuring(t *testing.T) {
	t.Parallel()
	inner := &watching{Store: memstore.New()}
	tap := storetap.New(inner)
	ctx, leave := context.WithCancel(t.Context()) //nolint:gosec // the fault calls it
	tap.Reset(storetap.Hooks{Leave: leave, Fault: func(context.Context, string, int) storetap.Fault { return storetap.LeavesDuring }})
	if _, err := tap.User(ctx, store.ByID(somebody)); !errors.Is(err, context.Canceled) || inner.first != nil {
		t.Errorf("%v, at first %v", err, inner.first)
	}
}

// watching is a store at work while its caller leaves.
type watching struct {
	store.Store
	first error
}

func (w *watching) User(ctx context.Context, _ store.UserKey) (store.User, error) {
	w.first = ctx.Err()
	_ = ctx.Err() // at work
	<-ctx.Done()
	return store.User{}, ctx.Err()
}

func TestDraws(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
	var took []store.Draw
	tap.Reset(storetap.Hooks{
		Draws: func(draws []store.Draw) []store.Draw {
			edited := append([]store.Draw{}, draws...)
			edited[0].Cost = 0
			return edited
		},
		Took:  func(draws []store.Draw, _ store.Decision) { took = append(took, draws...) },
		Fault: func(context.Context, string, int) storetap.Fault { return storetap.FailsAfter },
	})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	draws := []store.Draw{{Key: "a", Rate: store.Rate{Burst: 1, Per: time.Hour}, Cost: 1}, {Key: "b", Rate: store.Rate{Burst: 1, Per: time.Hour}, Cost: 1}}
	if _, err := tap.Take(t.Context(), draws, now); !errors.Is(err, storetap.ErrFault) {
		t.Error(err)
	}
	if len(took) != 2 || took[0].Cost != 0 || took[1].Cost != 1 || draws[0].Cost != 1 {
		t.Errorf("took %+v", took)
	}
	tap.Reset(storetap.Hooks{})
	if d, err := tap.Take(t.Context(), draws[:1], now); err != nil || !d.Allowed {
		t.Errorf("the draw that was edited out: %+v, %v", d, err)
	}
	if d, err := tap.Take(t.Context(), draws[1:], now); err != nil || d.Allowed {
		t.Errorf("the draw whose answer was lost: %+v, %v", d, err)
	}
}
