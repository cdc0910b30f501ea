package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
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
}

// Tx returns the transaction of a context that NewUser.Creating received; nil for any other
// context. Statements in it take effect together with the new user, or not at all. The
// store's methods that are called with the context are part of it, too.
func Tx(ctx context.Context) *sql.Tx {
	j, _ := ctx.Value(txKey{}).(joined)
	return j.sql
}

// InTransaction reports whether changes with this context wait for the end of a transaction.
func (s *Store) InTransaction(ctx context.Context) bool { return s.joined(ctx) != nil }

func (s *Store) joined(ctx context.Context) *sql.Tx {
	if j, _ := ctx.Value(txKey{}).(joined); j.store == s {
		return j.sql
	}
	return nil
}

// write runs f in a transaction that holds the write lock, or in a savepoint of the
// transaction that the context carries. If f fails, everything is undone.
func (s *Store) write(ctx context.Context, f func(*tx) error) error {
	if outer := s.joined(ctx); outer != nil {
		return within(ctx, outer, f)
	}
	if s.opened {
		if err := s.join(ctx, f); !errors.Is(err, errAlone) {
			return err
		}
	}
	return s.transact(ctx, func(t *tx) error {
		// The application's driver may begin transactions without the write lock. A first
		// statement that could write takes it.
		if !s.opened {
			t.exec(`update auth_schema set version = version where false`)
		}
		return f(t)
	})
}

// transact runs f in a transaction of its own.
func (s *Store) transact(ctx context.Context, f func(*tx) error) error {
	mine, err := s.turns.take(ctx)
	if mine {
		defer s.turns.pass()
		s.turns.commit()
	}
	if err != nil {
		return failure(ctx, err)
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

// within runs f in a savepoint.
func within(ctx context.Context, outer *sql.Tx, f func(*tx) error) error {
	t := &tx{ctx: ctx, on: outer, sql: outer}
	t.exec(`savepoint auth`)
	if t.err != nil {
		return failure(ctx, t.err)
	}
	err := t.run(f)
	end := &tx{ctx: context.WithoutCancel(ctx), on: outer}
	if err != nil {
		end.exec(`rollback to auth`)
	}
	end.exec(`release auth`)
	if err == nil && end.err != nil {
		err = failure(ctx, end.err)
	}
	return err
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

// read runs f, which reads with one statement.
func (s *Store) read(ctx context.Context, f func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &tx{ctx: ctx, on: s.reader}
	if outer := s.joined(ctx); outer != nil {
		t.on = outer
	}
	return t.run(f)
}

// snapshot runs f, which reads with several statements, at one state of the file.
func (s *Store) snapshot(ctx context.Context, f func(*tx) error) error {
	if s.joined(ctx) != nil {
		return s.read(ctx, f)
	}
	if err := ctx.Err(); err != nil {
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
