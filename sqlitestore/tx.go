package sqlitestore

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
)

// tx runs statements, in a transaction or on the readers. After the first error it runs
// none: results are then empty, and the functions below return that error in the end. So a
// method reads as a list of statements and decisions.
type tx struct {
	ctx context.Context
	on  querier
	sql *sql.Tx // of a change; nil for reads
	err error

	shared bool            // with other changes
	caller context.Context // of a shared transaction: ends the change between two statements; otherwise nil
}

type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

type txKey struct{}

// joined is the transaction that a context carries.
type joined struct {
	store *Store
	sql   *sql.Tx

	// Calls take turns, because savepoints of parallel ones would undo each other's work.
	turn   chan struct{} // holds one entry while a call runs, and after the function's end
	holder atomic.Int64  // the goroutine of that call, whose inner calls need no turn
	over   chan struct{} // closed when the function has ended
}

// take waits for the end of other calls within the transaction.
func (j *joined) take(ctx context.Context) (pass func(), err error) {
	me := goroutine()
	if me != 0 && j.holder.Load() == me {
		return func() {}, nil
	}
	timer := time.NewTimer(j.store.wait)
	defer timer.Stop()
	select {
	case j.turn <- struct{}{}:
		j.holder.Store(me)
		return func() {
			j.holder.Store(0)
			<-j.turn
		}, nil
	case <-j.over:
		return nil, sql.ErrTxDone
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, errOccupied
	}
}

// end ends the function's part of the transaction. The error reports a call that still runs,
// of which the commit would keep a part.
func (j *joined) end() error {
	close(j.over)
	select {
	case j.turn <- struct{}{}:
		return nil
	default:
		return errOutlives
	}
}

var errOutlives = errors.New("auth: sqlite: a call within the transaction runs after the end of its function")

// Tx returns the transaction of a context that NewUser.Creating (auth.Hooks.OnUserCreating)
// or the function of InTx received; nil for any other context. Statements in it take effect
// together with the change, or not at all. The store's methods and Auth's methods that are
// called with the context are part of it, too. The application does not end it.
func Tx(ctx context.Context) *sql.Tx {
	if j, _ := ctx.Value(txKey{}).(*joined); j != nil {
		return j.sql
	}
	return nil
}

// InTx runs f in a transaction, which is committed if f returns nil, and otherwise undone.
// Store calls and Auth's methods with the context of f are part of it; a call that fails
// undoes only its own work. An InTx within another one is a part of that. The messages of
// the changes are sent a few seconds after the commit. An undone transaction also undoes the
// counting of failed logins and wrong codes and the end of sessions. So use InTx for changes
// that belong together (an import, a sign-up with more rows), and never around a login.
//
// All other changes wait for the end of f, in this process at most ten seconds, so f should
// be short and not wait for others. Store calls of f need its context. Another context has
// the error ErrOtherContext at once if f itself makes the call. In a goroutine that f
// started and waits for, the call fails after those ten seconds. Calls that goroutines make
// with the context of f take turns, and have to end before f does.
//
// Errors: that of f, unchanged; ctx's error; an error if the commit fails, if f ended the
// transaction itself, or if a call with its context still runs when f returns.
func (s *Store) InTx(ctx context.Context, f func(ctx context.Context, tx *sql.Tx) error) error {
	return s.write(ctx, func(t *tx) error {
		return s.call(t, func(ctx context.Context) error { return f(ctx, t.sql) })
	})
}

// ErrOtherContext is the error of a store call that a function makes within a transaction
// (auth.Hooks.OnUserCreating, InTx) with another context than the one that it received. The
// call would wait for the end of the transaction, and so for itself.
var ErrOtherContext = errors.New("auth: sqlite: a call within a transaction needs the context of the transaction, because it would wait for itself")

// call calls a function of the application within a transaction.
func (s *Store) call(t *tx, f func(context.Context) error) error {
	if t.shared {
		return errAlone
	}
	if s.caller.CompareAndSwap(0, goroutine()) {
		defer s.caller.Store(0)
	}
	j := &joined{store: s, sql: t.sql, turn: make(chan struct{}, 1), over: make(chan struct{})}
	err := f(context.WithValue(t.ctx, txKey{}, j))
	if outlives := j.end(); err == nil {
		err = outlives
	}
	return err
}

// called reports whether a function of the application that runs within a transaction has
// made the present call. Contexts do not show it, because requests and their goroutines may
// share one. While the function runs, its goroutine makes no other calls.
func (s *Store) called() bool {
	id := s.caller.Load()
	return id != 0 && id == goroutine()
}

// goroutine returns the number of the present goroutine, which Go shows only in the first
// line of a stack trace ("goroutine 7 [running]:"); 0 if that has another form.
func goroutine() int64 {
	var buf [64]byte
	line := buf[:runtime.Stack(buf[:], false)]
	number, _, _ := bytes.Cut(bytes.TrimPrefix(line, []byte("goroutine ")), []byte(" "))
	id, _ := strconv.ParseInt(string(number), 10, 64)
	return id
}

// InTransaction reports whether changes with this context wait for the end of a transaction.
func (s *Store) InTransaction(ctx context.Context) bool { return s.joined(ctx) != nil }

func (s *Store) joined(ctx context.Context) *joined {
	if j, _ := ctx.Value(txKey{}).(*joined); j != nil && j.store == s {
		return j
	}
	return nil
}

// write runs f in a transaction that holds the write lock, or in a savepoint of the
// transaction that the context carries. If f fails, everything is undone.
func (s *Store) write(ctx context.Context, f func(*tx) error) error {
	if outer := s.joined(ctx); outer != nil {
		return within(ctx, outer, f)
	}
	if s.file != nil {
		if err := s.join(ctx, f); !errors.Is(err, errAlone) {
			return err
		}
	}
	return s.transact(ctx, func(t *tx) error {
		// The application's driver may begin transactions without the write lock. A first
		// statement that could write takes it.
		if s.file == nil {
			t.exec(`update auth_schema set version = version where false`)
		}
		return f(t)
	})
}

// transact runs f in a transaction of its own.
func (s *Store) transact(ctx context.Context, f func(*tx) error) error {
	mine, err := s.enter(ctx)
	if mine {
		defer s.turns.pass()
		s.turns.commit()
	}
	if err != nil {
		return err
	}
	begun, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return failure(ctx, err)
	}
	defer begun.Rollback() //nolint:errcheck // without effect after Commit; otherwise the first error matters
	t := &tx{ctx: ctx, on: begun, sql: begun}
	if err := t.run(f); err != nil {
		return err
	}
	if err := begun.Commit(); err != nil {
		return failure(ctx, err)
	}
	return nil
}

// enter waits for a turn, as turns.take does. It also returns ErrOtherContext.
func (s *Store) enter(ctx context.Context) (mine bool, err error) {
	if s.called() {
		return false, ErrOtherContext
	}
	if mine, err = s.turns.take(ctx, s.wait); err != nil {
		err = failure(ctx, err)
	}
	return mine, err
}

// within runs f in a savepoint.
func within(ctx context.Context, j *joined, f func(*tx) error) error {
	pass, err := j.take(ctx)
	if err != nil {
		return failure(ctx, err)
	}
	defer pass()
	outer := j.sql
	t := &tx{ctx: ctx, on: outer, sql: outer}
	t.exec(`savepoint auth`)
	if t.err != nil {
		return failure(ctx, t.err)
	}
	end := &tx{ctx: context.WithoutCancel(ctx), on: outer}
	done := false
	defer func() {
		if !done { // an error or a panic
			end.exec(`rollback to auth`)
			end.exec(`release auth`)
		}
	}()
	if err := t.run(f); err != nil {
		return err
	}
	done = true
	if end.exec(`release auth`); end.err != nil {
		return failure(ctx, end.err)
	}
	return nil
}

// run calls f. An error of a statement precedes that of f, which decided on empty results.
func (t *tx) run(f func(*tx) error) error {
	err := f(t)
	if t.err != nil {
		ctx := t.ctx
		if t.caller != nil {
			ctx = t.caller
		}
		return failure(ctx, t.err)
	}
	return err
}

// mayRead refuses a read within a transaction, without its context, if the application's
// handle has no other connection. With one, it reads the state before the transaction.
func (s *Store) mayRead(ctx context.Context) error {
	if s.joined(ctx) == nil && s.called() && s.reader.Stats().MaxOpenConnections == 1 {
		return ErrOtherContext
	}
	return ctx.Err()
}

// read runs f, which reads with one statement.
func (s *Store) read(ctx context.Context, f func(*tx) error) error {
	if err := s.mayRead(ctx); err != nil {
		return err
	}
	t := &tx{ctx: ctx, on: s.reader}
	if outer := s.joined(ctx); outer != nil {
		t.on = outer.sql
	}
	return t.run(f)
}

// snapshot runs f, which reads with several statements, at one state of the file.
func (s *Store) snapshot(ctx context.Context, f func(*tx) error) error {
	if s.joined(ctx) != nil {
		return s.read(ctx, f)
	}
	if err := s.mayRead(ctx); err != nil {
		return err
	}
	c, err := s.reader.Conn(ctx)
	if err != nil {
		return failure(ctx, err)
	}
	defer c.Close() //nolint:errcheck // it only returns the connection to the pool
	// Not BeginTx, with which some drivers take the write lock.
	t := &tx{ctx: ctx, on: c}
	t.exec(`begin`)
	err = t.run(f)
	end := &tx{ctx: context.WithoutCancel(ctx), on: c}
	if end.exec(`rollback`); end.err != nil {
		_ = c.Raw(func(any) error { return driver.ErrBadConn }) // drops the connection
	}
	return err
}

// failure is the error of a statement, or that of the context that stopped it.
func failure(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	return fmt.Errorf("auth: sqlite: %w", err)
}

// over reports whether no more statements run.
func (t *tx) over() bool {
	if t.err == nil && t.caller != nil {
		t.err = t.caller.Err()
	}
	return t.err != nil
}

// exec runs a statement and returns the number of rows that it changed.
func (t *tx) exec(query string, args ...any) int64 {
	if t.over() {
		return 0
	}
	result, err := t.on.ExecContext(t.ctx, query, args...)
	if err != nil {
		t.err = err
		return 0
	}
	n, err := result.RowsAffected()
	t.err = err
	return n
}

// row scans the columns of one row.
type row func(dest ...any)

// list returns the rows of a statement. It is never nil.
func list[T any](t *tx, read func(row) T, query string, args ...any) []T {
	all := []T{}
	if t.over() {
		return all
	}
	rows, err := t.on.QueryContext(t.ctx, query, args...)
	if err != nil {
		t.err = err
		return all
	}
	defer rows.Close() //nolint:errcheck // Err reports the same
	for rows.Next() {
		v := read(func(dest ...any) {
			if err := rows.Scan(dest...); err != nil {
				t.err = errors.Join(t.err, err)
			}
		})
		if t.err != nil {
			return all
		}
		all = append(all, v)
	}
	t.err = rows.Err()
	return all
}

// first returns the first row of a statement; nil if there is none.
func first[T any](t *tx, read func(row) T, query string, args ...any) *T {
	all := list(t, read, query, args...)
	if len(all) == 0 {
		return nil
	}
	return &all[0]
}

// values returns the only column of a statement's rows.
func values[T any](t *tx, query string, args ...any) []T {
	return list(t, func(scan row) (v T) {
		scan(&v)
		return v
	}, query, args...)
}

// value returns the only column of the first row; zero if there is none.
func value[T any](t *tx, query string, args ...any) (v T) {
	if all := values[T](t, query, args...); len(all) > 0 {
		v = all[0]
	}
	return v
}

// exists reports whether a statement has a row.
func (t *tx) exists(query string, args ...any) bool { return len(values[any](t, query, args...)) > 0 }
