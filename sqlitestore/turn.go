package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"time"
)

// Changes run one at a time, in the order of their arrival. Changes that wait share a commit,
// because the disk takes most of a change's time. Each after the first has a savepoint of its
// own. A change returns after the commit.

const (
	mostShared  = 32   // changes of a commit, so that the first of them does not wait for long
	mostWaiting = 4096 // further changes are refused
)

var (
	errCrowded  = errors.New("too many changes wait")
	errOccupied = errors.New("another change of this process did not finish in time; perhaps a call within a transaction lacks its context")
)

// turns is the queue of the changes of one process.
type turns struct {
	mu      sync.Mutex
	taken   bool // a change runs
	waiting []chan struct{}
	open    *shared // the transaction that the next change may join; only the change that runs uses it
	off     bool    // in tests: only the file's lock keeps changes apart, as in several processes
}

// shared is a transaction of several changes.
type shared struct {
	sql     *sql.Tx
	changes int
	over    chan struct{} // closed after the commit
	err     error         // of the commit, or what prevents it
}

// take waits for a turn, for a limited time. If mine is true, the caller must call pass, even
// after an error.
func (q *turns) take(ctx context.Context, patience time.Duration) (mine bool, err error) {
	if err := ctx.Err(); err != nil || q.off {
		return false, err
	}
	q.mu.Lock()
	if !q.taken {
		q.taken = true
		q.mu.Unlock()
		return true, nil
	}
	if len(q.waiting) >= mostWaiting {
		q.mu.Unlock()
		return false, errCrowded
	}
	called := make(chan struct{})
	q.waiting = append(q.waiting, called)
	q.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-called:
		return true, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = errOccupied
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, called)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i < 0, err
}

// pass starts the next waiting change, which may join the open transaction. It first commits
// that transaction if no change waits, or if it has mostShared changes.
func (q *turns) pass() {
	for {
		q.mu.Lock()
		next := len(q.waiting) > 0
		if q.open == nil || next && q.open.changes < mostShared {
			if q.taken = next; next {
				close(q.waiting[0])
				q.waiting = slices.Delete(q.waiting, 0, 1)
			}
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		q.commit()
	}
}

// commit ends the open transaction, if there is one. Only the change that runs calls it.
func (q *turns) commit() {
	if open := q.open; open != nil {
		q.open = nil
		if open.err == nil {
			open.err = open.sql.Commit()
		} else {
			_ = open.sql.Rollback() // open.err matters
		}
		close(open.over)
	}
}

// errAlone is the error of a change that cannot share a transaction, because it calls a
// function of the application, which may take long or end the transaction.
var errAlone = errors.New("auth: sqlite: this change shares no transaction")

// join runs f in the open transaction, or begins one, and returns when that is committed. An
// error of f undoes only what f did.
func (s *Store) join(ctx context.Context, f func(*tx) error) error {
	mine, err := s.enter(ctx)
	if err != nil {
		if mine {
			s.turns.pass()
		}
		return err
	}
	in, err := func() (*shared, error) {
		defer s.turns.pass()
		return s.runShared(ctx, f)
	}()
	if in != nil {
		if <-in.over; in.err != nil {
			return failure(ctx, in.err)
		}
	}
	return err
}

// runShared runs f in the open transaction, or begins one, which it returns. An error, or a
// panic, of the first change ends the transaction, and of another one its savepoint.
func (s *Store) runShared(ctx context.Context, f func(*tx) error) (in *shared, err error) {
	t := &tx{ctx: context.WithoutCancel(ctx), caller: ctx, shared: true} // an interrupted statement would undo the changes of others
	q, kept := &s.turns, false
	if q.open == nil {
		begun, err := s.writer.BeginTx(context.WithValue(t.ctx, beginning{}, ctx), nil)
		if err != nil {
			return nil, failure(ctx, err)
		}
		q.open = &shared{sql: begun, over: make(chan struct{})}
		defer func() {
			if !kept {
				q.open, in = nil, nil
				_ = begun.Rollback() // the error of f matters
			}
		}()
	}
	in = q.open
	t.on, t.sql = in.sql, in.sql
	if in.changes++; in.changes > 1 {
		t.exec(`savepoint auth`)
		defer func() {
			end := &tx{ctx: t.ctx, on: in.sql}
			if !kept {
				end.exec(`rollback to auth`)
			}
			if end.exec(`release auth`); in.err == nil {
				in.err = end.err
			}
		}()
	}
	err = t.run(f)
	kept = err == nil
	return in, err
}
