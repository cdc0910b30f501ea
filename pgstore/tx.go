package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth/store"
)

// querier is a pool or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
	Begin(ctx context.Context) (pgx.Tx, error)
}

// retries bounds how often a call that provably changed nothing is run.
const retries = 3

// errMoved is returned by a call that locked the wrong rows, because the row that names
// them changed meanwhile. The call is undone and run again.
var errMoved = errors.New("pgstore: what was to be locked has changed too often")

// counted is an error for the caller of a transaction that is committed all the same,
// with the attempts that it counted or the sessions that it revoked.
type counted struct{ error }

// do runs f in the transaction that the context carries, or on the pool.
func (s *Store) do(ctx context.Context, f func(context.Context, querier) error) error {
	if Tx(ctx) != nil {
		return s.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error { return f(ctx, tx) })
	}
	return s.again(ctx, single(f))
}

// inTx runs f in a transaction of its own, or in a savepoint of the one that the
// context carries. An error such as a conflict then does not abort the application's
// transaction.
func (s *Store) inTx(ctx context.Context, f func(context.Context, pgx.Tx) error) error {
	return s.again(ctx, func(ctx context.Context, within querier) error {
		var kept *counted
		err := begin(ctx, within, func(tx pgx.Tx) error {
			err := f(context.WithValue(ctx, txKey{}, tx), tx)
			if errors.As(err, &kept) {
				return nil
			}
			return err
		})
		if err == nil && kept != nil {
			return kept.error
		}
		return err
	})
}

// readCommitted is the isolation level of the store's transactions, whatever the default
// of the database: their locks come first, and each statement then reads the rows that
// others committed meanwhile. At a stricter level these changes fail with conflicts.
var readCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

// begin runs f in a savepoint of a transaction, or in a transaction on a connection.
func begin(ctx context.Context, q querier, f func(pgx.Tx) error) error {
	if c, ok := q.(*pgxpool.Conn); ok {
		return pgx.BeginTxFunc(ctx, c, readCommitted, f)
	}
	return pgx.BeginFunc(ctx, q, f)
}

// again runs a call, on the transaction that the context carries or on a connection of
// the pool, and repeats it if it provably changed nothing. It limits the call's
// duration (see bounded).
func (s *Store) again(ctx context.Context, f func(context.Context, querier) error) error {
	b, done, err := s.bound(ctx)
	if err != nil {
		return err
	}
	defer done()
	joined := Tx(ctx)
	for range retries {
		if joined != nil {
			err = within(b, joined, f)
		} else {
			err = s.pooled(b, f)
		}
		// Only the application can repeat its own transaction.
		if err == nil || !errors.Is(err, errMoved) && (joined != nil || !changedNothing(err)) {
			break
		}
	}
	return s.outcome(err)
}

// bound limits the duration of a call of one or several statements; done ends it. It
// returns the context's error if that has ended.
func (s *Store) bound(ctx context.Context) (b *bounded, done func(), err error) {
	if b, ok := ctx.(*bounded); ok { // the call is a part of another one
		return b, func() {}, b.Err()
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	b = s.timeouts.begin(ctx, s.timeout)
	return b, func() { s.timeouts.done(b) }, nil
}

// single gives a call of one statement a transaction, if it would otherwise run at a
// stricter level than [readCommitted], the default of its database.
func single(f func(context.Context, querier) error) func(context.Context, querier) error {
	return func(ctx context.Context, q querier) error {
		c, ok := q.(*pgxpool.Conn)
		if !ok {
			return f(ctx, q)
		}
		if stricter, err := isStricter(ctx, c.Conn()); err != nil {
			return err
		} else if !stricter {
			return f(ctx, q)
		}
		return begin(ctx, q, func(tx pgx.Tx) error { return f(ctx, tx) })
	}
}

// pooled runs a call on a connection of the pool.
func (s *Store) pooled(b *bounded, f func(context.Context, querier) error) error {
	c, err := s.pool.Acquire(b)
	if err != nil {
		return err
	}
	defer c.Release()
	return within(b, c, f)
}

// isStricter reports whether statements outside of transactions are isolated more
// strictly than by [readCommitted]. It asks the server once for each connection.
func isStricter(ctx context.Context, c *pgx.Conn) (bool, error) {
	const key = "authmount: stricter isolation"
	known := c.PgConn().CustomData()
	if is, ok := known[key].(bool); ok {
		return is, nil
	}
	r := c.PgConn().ExecParams(ctx, "select current_setting('default_transaction_isolation')", nil, nil, nil, nil).Read()
	if r.Err != nil {
		return false, r.Err
	}
	level := string(r.Rows[0][0])
	is := level != string(pgx.ReadCommitted) && level != string(pgx.ReadUncommitted)
	known[key] = is
	return is, nil
}

// within runs a call unless its caller has left meanwhile.
func within(b *bounded, q querier, f func(context.Context, querier) error) error {
	if err := b.work(); err != nil {
		return err
	}
	return f(b, q)
}

// changedNothing reports whether a call can be repeated without harm: it never reached
// the server, or was rolled back in favour of another.
func changedNothing(err error) bool {
	if pgconn.SafeToRetry(err) {
		return true
	}
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01") // serialisation_failure, deadlock_detected
}

// refused reports whether the database itself returned an error. Other errors leave
// open whether the statement took effect.
func refused(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e)
}

// field returns the field that a constraint keeps unique, or "" for other constraints.
func field(constraint string) string {
	switch constraint {
	case "users_pkey", "identities_pkey", "sessions_pkey", "impersonations_pkey":
		return "id"
	case "users_email_key_key":
		return "email"
	case "users_handle_key":
		return "handle"
	case "users_phone_key":
		return "phone"
	case "identities_provider_subject_key":
		return "identity"
	case "tokens_pkey":
		return "token"
	case "factors_pkey", "factors_enabled_key", "factors_pending_key", "factors_credential_key":
		return "factor"
	case "roles_pkey":
		return "role"
	case "api_keys_hash_key":
		return "key"
	}
	return ""
}

// hookFailed is an error of NewUser.Creating, which is returned unchanged. Constraints
// of the application's tables and rows that the hook does not find are not outcomes of
// the store, even if they have the same names.
type hookFailed struct{ error }

func (h hookFailed) Unwrap() error { return h.error }

// outcome converts errors of the database to errors of package store. It converts only
// errors about this store's own tables, because triggers and the claims function may
// fail for reasons of their own.
func (s *Store) outcome(err error) error {
	var hook hookFailed
	if errors.As(err, &hook) {
		return hook.error
	}
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		if errors.Is(err, pgx.ErrNoRows) {
			return store.ErrNotFound
		}
		return err
	}
	switch {
	case s.claims != "" && strings.Contains(e.Where, s.claims[strings.LastIndex(s.claims, ".")+1:]):
		return fmt.Errorf("%w (%s)", err, e.Where)
	case e.Code == "23505" && e.SchemaName == s.schema && field(e.ConstraintName) != "":
		return &store.ConflictError{Field: field(e.ConstraintName)}
	case e.Code == "23503" && e.SchemaName == s.schema: // the user was deleted
		return store.ErrNotFound
	case e.Where != "":
		return fmt.Errorf("%w (%s)", err, e.Where)
	}
	return err
}

type txKey struct{}

// InTx returns a context with which store calls and Auth's methods take part in the
// application's transaction. A rollback undoes them; their messages are sent a few
// seconds after the commit. A rollback also undoes the counting of failed logins and
// wrong codes and the end of sessions. So use InTx for changes that belong together (an
// import, a sign-up with more rows), and never around a login.
func InTx(ctx context.Context, tx pgx.Tx) context.Context { return context.WithValue(ctx, txKey{}, tx) }

// Tx returns the transaction that a context carries, in auth.Hooks.OnUserCreating or
// after InTx. It is nil outside of a change on this store, and so with other stores:
// test hooks that use it with authtest.NewOn and a Store of this package.
func Tx(ctx context.Context) pgx.Tx {
	tx, _ := ctx.Value(txKey{}).(pgx.Tx)
	return tx
}

// InTransaction reports whether changes with this context are part of the application's
// transaction (InTx).
func (s *Store) InTransaction(ctx context.Context) bool { return Tx(ctx) != nil }

// send sends a batch in one round trip. Each statement takes its own snapshot, and so
// sees the changes for which the statements before it waited.
func send(ctx context.Context, tx pgx.Tx, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, b).Close()
}
