package gather_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/internal/gather"
)

const patience = time.Millisecond

var (
	errRefused = errors.New("refused")
	errUnknown = errors.New("the connection broke")
)

// trip is a running round trip that the test ends.
type trip struct {
	ctx  context.Context //nolint:containedctx // what the trip was made with
	args []string
	many bool
	end  chan func(calls []*gather.Call[string, string]) error
}

// done completes all calls of a trip.
func done(calls []*gather.Call[string, string]) error {
	for _, c := range calls {
		c.Return("result of " + c.Arg)
	}
	return nil
}

// fails ends a trip with an error.
func fails(err error) func([]*gather.Call[string, string]) error {
	return func([]*gather.Call[string, string]) error { return err }
}

// fixture is a group in a bubble of testing/synctest. The test observes and ends its trips.
type fixture struct {
	t     *testing.T
	g     *gather.Group[string, string]
	trips chan *trip
}

func newFixture(t *testing.T, limit int) *fixture {
	t.Helper()
	f := &fixture{t: t, trips: make(chan *trip, 1000)}
	f.g = gather.New(gather.Config[string, string]{
		One: func(ctx context.Context, arg string) (string, error) {
			tr := &trip{ctx: ctx, args: []string{arg}, end: make(chan func([]*gather.Call[string, string]) error)}
			f.trips <- tr
			select {
			case end := <-tr.end:
				if err := end(nil); err != nil {
					return "", err
				}
				return "result of " + arg, nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		},
		Many: func(ctx context.Context, calls []*gather.Call[string, string]) error {
			tr := &trip{ctx: ctx, many: true, end: make(chan func([]*gather.Call[string, string]) error)}
			for _, c := range calls {
				tr.args = append(tr.args, c.Arg)
			}
			f.trips <- tr
			return (<-tr.end)(calls)
		},
		Refused: func(err error) bool { return errors.Is(err, errRefused) },
		Limit:   limit,
	})
	return f
}

// outcome is the result of a call, once over is closed.
type outcome struct {
	result string
	err    error
	over   chan struct{}
}

// call starts a call and returns when it is running or waiting.
func (f *fixture) call(ctx context.Context, arg string) *outcome {
	o := &outcome{over: make(chan struct{})}
	go func() {
		defer close(o.over)
		o.result, o.err = f.g.Do(ctx, arg)
	}()
	synctest.Wait()
	return o
}

// calls starts several calls, one after the other.
func (f *fixture) calls(n int, name string) (list []*outcome) {
	for i := range n {
		list = append(list, f.call(f.t.Context(), fmt.Sprint(name, i)))
	}
	return list
}

// left returns the next trip that has started.
func (f *fixture) left(args ...string) *trip {
	f.t.Helper()
	synctest.Wait()
	select {
	case tr := <-f.trips:
		if len(args) > 0 && fmt.Sprint(tr.args) != fmt.Sprint(args) {
			f.t.Fatalf("a trip for %v, want %v", tr.args, args)
		}
		return tr
	default:
		f.t.Fatal("nothing left")
		return nil
	}
}

// none fails if a trip has started.
func (f *fixture) none(when string) {
	f.t.Helper()
	synctest.Wait()
	select {
	case tr := <-f.trips:
		f.t.Fatalf("%s: a trip for %v", when, tr.args)
	default:
	}
}

// after advances the time.
func (f *fixture) after(d time.Duration) {
	<-time.After(d) // fake time
	synctest.Wait()
}

// want checks the result of a call.
func (o *outcome) want(t *testing.T, result string, err error) {
	t.Helper()
	synctest.Wait()
	select {
	case <-o.over:
		if o.result != result || !errors.Is(o.err, err) {
			t.Errorf("%q, %v; want %q, %v", o.result, o.err, result, err)
		}
	default:
		t.Error("the call waits")
	}
}

// fails returns the error of a failed call.
func (o *outcome) fails(t *testing.T) error {
	t.Helper()
	synctest.Wait()
	select {
	case <-o.over:
		if o.err == nil {
			t.Fatalf("it succeeded with %q", o.result)
		}
	default:
		t.Fatal("the call waits")
	}
	return o.err
}

// bubble runs a test with its own clock.
func bubble(t *testing.T, limit int, test func(t *testing.T, f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newFixture(t, limit)) })
}

type spanKey struct{}

// A single call is made alone, with its caller's context.
func TestLoneCall(t *testing.T) {
	bubble(t, 4, func(t *testing.T, f *fixture) {
		for _, err := range []error{nil, errRefused, errUnknown} {
			ctx := context.WithValue(t.Context(), spanKey{}, "span")
			o := f.call(ctx, "a")
			tr := f.left("a")
			if tr.many || tr.ctx.Value(spanKey{}) != "span" || gather.Callers(tr.ctx) != nil {
				t.Errorf("%+v", tr)
			}
			tr.end <- fails(err)
			if want := "result of a"; err == nil {
				o.want(t, want, nil)
			} else {
				o.want(t, "", err)
			}
		}
		f.none("in the end")
	})
}

// Calls that arrive during a trip are made together after it. A call never joins a trip
// that has already started.
func TestCallsShare(t *testing.T) {
	bubble(t, 1, func(t *testing.T, f *fixture) {
		first := f.call(t.Context(), "first")
		tr := f.left("first")
		together := f.calls(3, "b")
		f.none("while one is under way")
		tr.end <- done
		first.want(t, "result of first", nil)
		tr = f.left("b0", "b1", "b2")
		if !tr.many {
			t.Error("not made together")
		}
		later := f.calls(1, "c")
		f.none("with a trip of several under way")
		tr.end <- done
		for i, o := range together {
			o.want(t, fmt.Sprint("result of b", i), nil)
		}
		f.left("c0").end <- done
		later[0].want(t, "result of c0", nil)
		next := f.call(t.Context(), "next")
		if tr := f.left("next"); tr.many {
			t.Error("it met nobody")
		} else {
			tr.end <- done
		}
		next.want(t, "result of next", nil)
	})
}

// A shared trip's context has nothing of the callers' contexts except Callers.
func TestSharedContext(t *testing.T) {
	bubble(t, 1, func(t *testing.T, f *fixture) {
		f.calls(1, "first")
		first := f.left()
		deadline, cancel := context.WithTimeout(context.WithValue(t.Context(), spanKey{}, "one"), time.Hour)
		defer cancel()
		one := f.call(deadline, "one")
		two := f.call(context.WithValue(t.Context(), spanKey{}, "two"), "two")
		first.end <- done
		tr := f.left("one", "two")
		if _, ok := tr.ctx.Deadline(); ok || tr.ctx.Value(spanKey{}) != nil || tr.ctx.Done() != nil {
			t.Error("the trip has something of a caller's")
		}
		var spans []any
		for _, ctx := range gather.Callers(context.WithoutCancel(tr.ctx)) {
			spans = append(spans, ctx.Value(spanKey{}))
		}
		tr.end <- func(calls []*gather.Call[string, string]) error {
			for _, c := range calls {
				spans = append(spans, c.Context().Value(spanKey{}))
			}
			return done(calls)
		}
		one.want(t, "result of one", nil)
		two.want(t, "result of two", nil)
		if fmt.Sprint(spans) != "[one two one two]" {
			t.Errorf("spans %v", spans)
		}
	})
}

// Calls wait for a slow trip no longer than Patience; calls that arrive later do not
// wait.
func TestPatience(t *testing.T) {
	bubble(t, 4, func(t *testing.T, f *fixture) {
		f.calls(1, "slow")
		slow := f.left("slow0")
		f.after(patience / 4)
		f.calls(2, "b")
		f.after(3*patience/4 - 1)
		f.none("before patience ends")
		f.after(1)
		b := f.left("b0", "b1")
		f.calls(1, "c") // the last trip started just now
		f.after(patience - 1)
		f.none("before patience ends again")
		f.after(1)
		c := f.left("c0")
		f.after(patience) // no call is waiting at its end
		f.calls(1, "d")
		d := f.left("d0")
		if d.many {
			t.Error("it met nobody")
		}
		for _, tr := range []*trip{slow, b, c, d} {
			tr.end <- done
		}
		f.none("in the end")
	})
}

// A timer of an earlier wait does not start a later trip too early.
func TestPatienceStartsAnew(t *testing.T) {
	bubble(t, 4, func(t *testing.T, f *fixture) {
		f.calls(1, "a")
		a := f.left("a0")
		f.calls(1, "b") // sets the timer
		a.end <- done
		b := f.left("b0")
		b.end <- done
		f.after(patience / 2)
		f.calls(1, "c")
		c := f.left("c0")
		f.calls(1, "d")
		f.after(patience - 1)
		f.none("before patience ends")
		f.after(1)
		d := f.left("d0")
		c.end <- done
		d.end <- done
	})
}

// At most Limit trips run, however long they take. Waiting calls go with the first that
// ends.
func TestLimit(t *testing.T) {
	bubble(t, 2, func(t *testing.T, f *fixture) {
		f.calls(1, "a")
		a := f.left("a0")
		f.calls(1, "b")
		f.after(patience)
		b := f.left("b0")
		f.calls(2, "c")
		f.after(time.Hour)
		f.none("at the limit")
		late := f.calls(1, "d")
		f.none("at the limit, late")
		a.end <- done
		c := f.left("c0", "c1", "d0")
		f.after(time.Hour)
		b.end <- done
		f.after(time.Hour)
		next := f.calls(1, "e")
		e := f.left("e0") // a trip is allowed, and c is slow
		c.end <- done
		e.end <- done
		late[0].want(t, "result of d0", nil)
		next[0].want(t, "result of e0", nil)
	})
}

// A trip has at most 64 calls. The others wait.
func TestMaxCalls(t *testing.T) {
	for name, lands := range map[string]bool{"after a landing": true, "after patience": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 4, func(t *testing.T, f *fixture) {
				f.calls(1, "first")
				first := f.left()
				waiting := f.calls(100, "b")
				if lands {
					first.end <- done
				} else {
					f.after(patience)
				}
				b := f.left()
				if len(b.args) != 64 || b.args[63] != "b63" {
					t.Fatalf("%d calls", len(b.args))
				}
				f.after(patience - 1)
				f.none("before patience ends")
				f.after(1)
				c := f.left()
				if len(c.args) != 36 || c.args[0] != "b64" {
					t.Fatalf("%d calls", len(c.args))
				}
				if !lands {
					first.end <- done
				}
				b.end <- done
				c.end <- done
				for i, o := range waiting {
					o.want(t, fmt.Sprint("result of b", i), nil)
				}
			})
		})
	}
}

// A canceled caller does not affect others: before its trip, during it, or alone.
func TestCallersLeave(t *testing.T) {
	bubble(t, 1, func(t *testing.T, f *fixture) {
		alone, leaveAlone := context.WithCancel(t.Context())
		waiting, leaveWaiting := context.WithCancel(t.Context())
		company, leaveCompany := context.WithCancel(t.Context())
		defer leaveAlone()
		defer leaveWaiting()
		defer leaveCompany()

		first := f.call(alone, "first")
		f.left("first")
		a := f.call(company, "a")
		b := f.call(waiting, "b")
		c := f.call(t.Context(), "c")
		leaveWaiting()
		b.want(t, "", context.Canceled)
		f.none("when one who waited has left")
		leaveAlone()
		first.want(t, "", context.Canceled)
		tr := f.left("a", "c")
		leaveCompany()
		a.want(t, "", context.Canceled)
		tr.end <- done
		c.want(t, "result of c", nil)

		// All of them leave: the trip ends.
		f.calls(1, "d")
		d := f.left("d0")
		gone, leave := context.WithCancel(t.Context())
		e := f.call(gone, "e")
		leave()
		e.want(t, "", context.Canceled)
		d.end <- done
		f.none("when all have left")
		f.calls(1, "f")
		f.left("f0").end <- done
	})
}
