package gather_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/authmount/auth/internal/gather"
)

// meet makes n calls that share a trip, and returns the trip.
func (f *fixture) meet(n int) (*trip, []*outcome) {
	f.t.Helper()
	first := f.call(f.t.Context(), "first")
	tr := f.left("first")
	list := f.calls(n, "b")
	tr.end <- done
	first.want(f.t, "result of first", nil)
	return f.left(), list
}

// Calls that fail together are made again alone. If the effect is unknown, nothing is
// repeated.
func TestFailures(t *testing.T) {
	for name, test := range map[string]struct {
		end   func(calls []*gather.Call[string, string]) error
		again []int // calls that are made again alone
		err   error // error of the other calls
	}{
		"all":     {end: done},
		"refused": {end: fails(errRefused), again: []int{0, 1, 2}},
		"unknown": {end: fails(errUnknown), err: errUnknown},
		"one left out": {end: func(calls []*gather.Call[string, string]) error {
			return done([]*gather.Call[string, string]{calls[0], calls[2]})
		}, again: []int{1}},
		"refused in part": {end: func(calls []*gather.Call[string, string]) error { _ = done(calls); return errRefused }, again: []int{0, 1, 2}},
		"unknown in part": {end: func(calls []*gather.Call[string, string]) error { _ = done(calls); return errUnknown }, err: errUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, f *fixture) {
				tr, list := f.meet(3)
				tr.end <- test.end
				for range test.again {
					tr := f.left()
					if tr.many {
						t.Errorf("again in company: %v", tr.args)
					}
					tr.end <- done
				}
				f.none("in the end")
				for i, o := range list {
					if test.err != nil {
						o.want(t, "", test.err)
					} else {
						o.want(t, fmt.Sprint("result of b", i), nil)
					}
				}
			})
		})
	}
}

// Without Refused no error is a refusal.
func TestNoRefusals(t *testing.T) {
	bubble(t, 1, func(t *testing.T, f *fixture) {
		begun, end := make(chan struct{}), make(chan struct{})
		g := gather.New(gather.Config[string, string]{
			One:   func(context.Context, string) (string, error) { close(begun); <-end; return "", nil },
			Many:  func(context.Context, []*gather.Call[string, string]) error { return errRefused },
			Limit: 1,
		})
		f.g = g
		f.calls(1, "first")
		<-begun
		o := f.calls(1, "b")[0]
		close(end)
		o.want(t, "", errRefused)
	})
}

// mistake panics. Its name appears in the stack.
func mistake([]*gather.Call[string, string]) error { panic("a mistake") }

// checkPanic checks the error that callers get.
func checkPanic(t *testing.T, o *outcome) {
	t.Helper()
	err := o.fails(t)
	var p *gather.PanicError
	if !errors.As(err, &p) || p.Value != "a mistake" || !strings.Contains(string(p.Stack), "gather_test.mistake") {
		t.Fatalf("%T %v", err, err)
	}
	if text := err.Error(); !strings.HasPrefix(text, "gather: panic: a mistake\n") || !strings.Contains(text, "gather_test.mistake") {
		t.Errorf("says %q", text)
	}
}

// A panic fails the calls of its trip and no others.
func TestPanics(t *testing.T) {
	goesOn := func(t *testing.T, f *fixture) {
		t.Helper()
		tr, list := f.meet(1)
		tr.end <- done
		list[0].want(t, "result of b0", nil)
	}
	t.Run("alone", func(t *testing.T) {
		bubble(t, 1, func(t *testing.T, f *fixture) {
			first := f.call(t.Context(), "first")
			tr := f.left("first")
			list := f.calls(1, "b")
			tr.end <- mistake
			checkPanic(t, first)
			f.left("b0").end <- done
			list[0].want(t, "result of b0", nil)
			goesOn(t, f)
		})
	})
	t.Run("in company", func(t *testing.T) {
		bubble(t, 1, func(t *testing.T, f *fixture) {
			tr, list := f.meet(3)
			waiting := f.calls(1, "c")
			tr.end <- func(calls []*gather.Call[string, string]) error { _ = done(calls); return mistake(calls) }
			for _, o := range list {
				checkPanic(t, o)
			}
			f.left("c0").end <- done
			waiting[0].want(t, "result of c0", nil)
			goesOn(t, f)
		})
	})
	t.Run("alone after company", func(t *testing.T) {
		bubble(t, 1, func(t *testing.T, f *fixture) {
			tr, list := f.meet(2)
			tr.end <- fails(errRefused)
			a, b := f.left(), f.left()
			a.end <- mistake
			b.end <- done
			if a.args[0] == "b1" {
				list[0], list[1] = list[1], list[0]
			}
			checkPanic(t, list[0])
			list[1].want(t, "result of "+b.args[0], nil)
			goesOn(t, f)
		})
	})
	t.Run("an error", func(t *testing.T) {
		bubble(t, 1, func(t *testing.T, f *fixture) {
			first := f.call(t.Context(), "first")
			f.left("first").end <- func([]*gather.Call[string, string]) error { panic(errRefused) }
			err := first.fails(t)
			var p *gather.PanicError
			if !errors.As(err, &p) || errors.Is(err, errRefused) {
				t.Errorf("%T passes for the error %v", err, err)
			}
		})
	})
}

// Refused may panic, too.
func TestRefusedPanics(t *testing.T) {
	bubble(t, 1, func(t *testing.T, f *fixture) {
		begun, end := make(chan struct{}), make(chan struct{})
		f.g = gather.New(gather.Config[string, string]{
			One:     func(context.Context, string) (string, error) { close(begun); <-end; return "", nil },
			Many:    func(context.Context, []*gather.Call[string, string]) error { return errUnknown },
			Refused: func(error) bool { return mistake(nil) == nil },
			Limit:   1,
		})
		f.calls(1, "first")
		<-begun
		o := f.calls(1, "b")[0]
		close(end)
		checkPanic(t, o)
	})
}

// Callers do not wait for a goroutine that exited, as testing.T.FailNow does.
func TestGoexit(t *testing.T) {
	bubble(t, 1, func(t *testing.T, f *fixture) {
		exit := func([]*gather.Call[string, string]) error { runtime.Goexit(); return nil }
		f.calls(1, "first")
		first := f.left("first0")
		list := f.calls(2, "b")
		first.end <- exit
		tr := f.left("b0", "b1")
		waiting := f.calls(1, "c")
		tr.end <- exit
		for _, o := range list {
			if err := o.fails(t); !strings.Contains(err.Error(), "the goroutine of a shared call exited") {
				t.Error(err)
			}
		}
		f.left("c0").end <- done
		waiting[0].want(t, "result of c0", nil)
		f.calls(1, "d")
		f.left("d0").end <- done
	})
}

func TestNewRefuses(t *testing.T) {
	one := func(context.Context, int) (int, error) { return 0, nil }
	many := func(context.Context, []*gather.Call[int, int]) error { return nil }
	for name, c := range map[string]gather.Config[int, int]{"no One": {Many: many, Limit: 1}, "no Many": {One: one, Limit: 1}, "no Limit": {One: one, Many: many}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: taken", name)
				}
			}()
			gather.New(c)
		}()
	}
}

// In parallel with all kinds of results: every caller gets its own result, from a trip
// that started after the call.
func TestParallel(t *testing.T) {
	const callers, rounds = 32, 200
	var clock, under, trips, calls atomic.Int64
	type result struct {
		arg int
		at  int64 // start of its trip
	}
	leave := func() (at int64, land func()) {
		under.Add(1)
		trips.Add(1)
		at = clock.Add(1)
		for range 20 {
			runtime.Gosched()
		}
		return at, func() { under.Add(-1) }
	}
	g := gather.New(gather.Config[int, result]{
		One: func(_ context.Context, arg int) (result, error) {
			at, land := leave()
			defer land()
			if arg%17 == 0 {
				panic(arg)
			}
			return result{arg, at}, nil
		},
		Many: func(_ context.Context, list []*gather.Call[int, result]) error {
			at, land := leave()
			defer land()
			for _, c := range list {
				switch {
				case c.Arg%13 == 0:
					return errRefused
				case c.Arg%17 == 0:
					panic(c.Arg)
				case c.Arg%11 != 0: // other calls are made alone
					c.Return(result{c.Arg, at})
				}
			}
			return nil
		},
		Refused: func(err error) bool { return errors.Is(err, errRefused) },
		Limit:   3,
	})
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for i := range rounds {
				arg := 1 + caller*rounds + i
				ctx, cancel := context.WithCancel(t.Context())
				if arg%7 == 0 {
					go cancel()
				}
				came := clock.Add(1)
				r, err := g.Do(ctx, arg)
				cancel()
				var p *gather.PanicError
				switch {
				case err == nil && (r.arg != arg || r.at <= came || arg%17 == 0):
					t.Errorf("call %d, that came at %d: %+v", arg, came, r)
				case err != nil && !errors.As(err, &p) && (arg%7 != 0 || !errors.Is(err, context.Canceled)):
					t.Errorf("call %d: %v", arg, err)
				}
				calls.Add(1)
			}
		})
	}
	wg.Wait()
	if under.Load() != 0 || trips.Load() >= calls.Load() {
		t.Errorf("%d trips for %d calls, %d under way", trips.Load(), calls.Load(), under.Load())
	}
	if r, err := g.Do(t.Context(), 1); err != nil || r.arg != 1 {
		t.Errorf("afterwards: %+v, %v", r, err)
	}
}
