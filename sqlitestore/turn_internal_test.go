package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// crowd is a set of changes that wait while the test has the turn.
type crowd struct {
	t    *testing.T
	s    *Store
	wg   sync.WaitGroup
	mu   sync.Mutex
	txs  []*sql.Tx
	errs map[int]error
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{t: t, s: opened(t), errs: map[int]error{}}
	if err := c.s.write(t.Context(), func(x *tx) error {
		x.exec(`create table t (n integer primary key)`)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if mine, err := c.s.turns.take(t.Context(), time.Minute); !mine || err != nil {
		t.Fatal(mine, err)
	}
	return c
}

// waits starts a change that inserts a row, and then calls f, and waits until it is in the queue.
func (c *crowd) waits(ctx context.Context, n int, f func(*tx) error) {
	c.t.Helper()
	before := c.waiting()
	c.wg.Go(func() {
		err := c.s.write(ctx, func(x *tx) error {
			c.mu.Lock()
			c.txs = append(c.txs, x.sql)
			c.mu.Unlock()
			x.exec(`insert into t values (?)`, n)
			return f(x)
		})
		c.mu.Lock()
		defer c.mu.Unlock()
		c.errs[n] = err
	})
	for c.waiting() == before {
		runtime.Gosched()
	}
}

func (c *crowd) waiting() int {
	c.s.turns.mu.Lock()
	defer c.s.turns.mu.Unlock()
	return len(c.s.turns.waiting)
}

// runs lets the changes run, and returns the rows.
func (c *crowd) runs() (rows []int) {
	c.t.Helper()
	c.s.turns.pass()
	c.wg.Wait()
	if err := c.s.read(c.t.Context(), func(x *tx) error {
		rows = values[int](x, `select n from t order by n`)
		return nil
	}); err != nil {
		c.t.Error(err)
	}
	if c.s.turns.taken || c.s.turns.open != nil || len(c.s.turns.waiting) > 0 {
		c.t.Errorf("left over: %+v", &c.s.turns)
	}
	return rows
}

func succeeds(*tx) error { return nil }

var errOfTest = errors.New("refused")

// Changes that wait share a transaction, in their order. One that fails, or whose caller
// leaves, undoes only its own work.
func TestChangesShareCommits(t *testing.T) {
	c := newCrowd(t)
	leaving, leave := context.WithCancel(t.Context())
	left, gone := context.WithCancel(t.Context())
	c.waits(t.Context(), 1, func(*tx) error { return errOfTest }) // the first begins the transaction
	c.waits(t.Context(), 2, succeeds)
	c.waits(t.Context(), 3, func(*tx) error { return errOfTest })
	c.waits(leaving, 4, func(x *tx) error {
		leave()
		x.exec(`insert into t values (40)`)
		return nil
	})
	c.waits(left, 5, succeeds)
	c.waits(t.Context(), 6, func(x *tx) error {
		x.exec(`insert into t values (2)`) // a duplicate
		return nil
	})
	c.waits(t.Context(), 7, succeeds)
	gone()
	for c.waiting() > 6 {
		runtime.Gosched()
	}
	if rows := c.runs(); !slices.Equal(rows, []int{2, 7}) {
		t.Errorf("rows %v", rows)
	}
	for n, want := range map[int]error{1: errOfTest, 2: nil, 3: errOfTest, 4: context.Canceled, 5: context.Canceled, 7: nil} {
		if !errors.Is(c.errs[n], want) {
			t.Errorf("change %d: %v, want %v", n, c.errs[n], want)
		}
	}
	if c.errs[6] == nil {
		t.Error("a duplicate succeeded")
	}
	if len(slices.Compact(c.txs[1:])) != 1 { // the first one's transaction was undone
		t.Errorf("%d transactions", len(slices.Compact(c.txs)))
	}
}

// If the transaction is lost, no change of it is confirmed, and the next ones work.
func TestSharedTransactionIsLost(t *testing.T) {
	c := newCrowd(t)
	c.waits(t.Context(), 1, succeeds)
	c.waits(t.Context(), 2, func(x *tx) error {
		x.exec(`rollback`) // as SQLite itself does when the disk is full
		return nil
	})
	c.waits(t.Context(), 3, succeeds)
	if rows := c.runs(); len(rows) > 0 {
		t.Errorf("rows %v", rows)
	}
	for n := range 3 {
		if err := c.errs[n+1]; !errors.Is(err, errUndone) {
			t.Errorf("change %d: %v", n+1, err)
		}
	}
	c.mu.Lock()
	c.txs = nil
	c.mu.Unlock()
	if mine, err := c.s.turns.take(t.Context(), time.Minute); !mine || err != nil {
		t.Fatal(mine, err)
	}
	c.waits(t.Context(), 4, succeeds)
	if rows := c.runs(); !slices.Equal(rows, []int{4}) {
		t.Errorf("rows %v", rows)
	}
}

// A change with a function of the application has a transaction of its own, and those before
// it are committed by then.
func TestChangeAlone(t *testing.T) {
	c := newCrowd(t)
	c.waits(t.Context(), 1, succeeds)
	c.waits(t.Context(), 2, func(x *tx) error {
		if x.shared {
			return errAlone
		}
		var seen []int
		err := c.s.read(t.Context(), func(r *tx) error {
			seen = values[int](r, `select n from t order by n`)
			return nil
		})
		if !slices.Contains(seen, 1) {
			return fmt.Errorf("%v is visible", seen)
		}
		return err
	})
	c.waits(t.Context(), 3, succeeds)
	if rows := c.runs(); !slices.Equal(rows, []int{1, 2, 3}) || errors.Join(c.errs[1], c.errs[2], c.errs[3]) != nil {
		t.Errorf("rows %v, errors %v", rows, c.errs)
	}
}

// A change that panics leaves nothing behind, and nobody waits for it.
func TestChangePanics(t *testing.T) {
	c := newCrowd(t)
	c.waits(t.Context(), 1, succeeds)
	c.wg.Go(func() {
		defer func() { _ = recover() }()
		_ = c.s.write(t.Context(), func(x *tx) error {
			x.exec(`insert into t values (2)`)
			panic("of a test")
		})
	})
	for c.waiting() < 2 {
		runtime.Gosched()
	}
	c.waits(t.Context(), 3, succeeds)
	if rows := c.runs(); !slices.Equal(rows, []int{1, 3}) {
		t.Errorf("rows %v", rows)
	}
}

// Many parallel changes are each wholly there or not at all.
func TestParallelSharedChanges(t *testing.T) {
	s := opened(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				err := s.write(ctx, func(x *tx) error {
					x.exec(`insert into auth_limits (key, full_at, seen_at) values (?, 1, 1)`, fmt.Sprint("a", i, n))
					if n%5 == 1 {
						cancel()
					}
					x.exec(`insert into auth_limits (key, full_at, seen_at) values (?, 1, 1)`, fmt.Sprint("b", i, n))
					if n%5 == 2 {
						return errOfTest
					}
					return nil
				})
				cancel()
				if (err != nil) != (n%5 == 1 || n%5 == 2) {
					t.Errorf("%d %d: %v", i, n, err)
				}
			}
		})
	}
	wg.Wait()
	err := s.read(t.Context(), func(x *tx) error {
		if a, b := value[int](x, `select count(*) from auth_limits where key >= 'a' and key < 'b'`), value[int](x, `select count(*) from auth_limits where key >= 'b'`); a != 240 || b != 240 {
			t.Errorf("%d and %d rows, want 240", a, b)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// ending is a context that ends when it has been asked a number of times.
type ending struct {
	context.Context
	mu   sync.Mutex
	left int
}

func (e *ending) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.left--; e.left < 0 {
		return context.Canceled
	}
	return nil
}

// A change whose caller leaves between any two statements takes place as a whole or not at all.
func TestChangeEndsBetweenStatements(t *testing.T) {
	states, _ := rehearsal(t)
	path := file(t)
	s := reopened(t, path)
	for i, step := range script() {
		if states[i] == states[i+1] { // only copies the log
			must(t, step(t.Context(), s))
			continue
		}
		for n := 0; ; n++ {
			err := step(&ending{Context: t.Context(), left: n}, s)
			got := contents(t, path)
			if err == nil {
				if got != states[i+1] {
					t.Errorf("step %d, %d: acknowledged, %s", i, n, found(got, states))
				}
				break
			}
			if !errors.Is(err, context.Canceled) || got != states[i] {
				t.Fatalf("step %d, %d: %v, %s", i, n, err, found(got, states))
			}
		}
	}
}

// A caller that leaves does not wait for another process.
func TestCallerLeavesWhileAnotherProcessWrites(t *testing.T) {
	path := file(t)
	s, err := Open(path, WithBusyTimeout(time.Hour))
	must(t, err)
	defer s.Close() //nolint:errcheck // of a test
	held, err := reopened(t, path).writer.BeginTx(t.Context(), nil)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Ping(ctx) }()
	for s.writer.Stats().InUse == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	must(t, held.Rollback())
	must(t, s.Ping(t.Context()))
}

// Close during a batch hangs nobody and loses no acknowledged change.
func TestCloseDuringBatch(t *testing.T) {
	path := file(t)
	s, err := Open(path)
	must(t, err)
	var acked []string
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			for n := range 1000 {
				name := fmt.Sprint(i, " ", n)
				err := s.write(t.Context(), func(x *tx) error {
					x.exec(`insert into auth_limits values (?, 1, 1)`, name)
					return nil
				})
				if err != nil {
					return
				}
				mu.Lock()
				acked = append(acked, name)
				k := len(acked)
				mu.Unlock()
				if k == 300 {
					_ = s.Close()
				}
			}
		})
	}
	wg.Wait()
	r := reopened(t, path)
	for _, name := range acked {
		if r.count(t, `select count(*) from auth_limits where key = ?`, name) != 1 {
			t.Error("lost", name)
		}
	}
}

// A savepoint that cannot be undone loses the transaction.
func TestSavepointCannotBeUndone(t *testing.T) {
	c := newCrowd(t)
	c.waits(t.Context(), 1, succeeds)
	c.waits(t.Context(), 2, func(x *tx) error {
		x.exec(`release auth`)
		return errOfTest
	})
	c.waits(t.Context(), 3, succeeds)
	if rows := c.runs(); len(rows) > 0 {
		t.Errorf("rows %v", rows)
	}
	if c.errs[1] == nil || c.errs[2] == nil || c.errs[3] == nil {
		t.Errorf("errors %v", c.errs)
	}
}
