package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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

// retries bounds how often a call is made again that provably changed nothing.
const retries = 3

// errMoved is for a call that locked the wrong rows, as what said which are the
// right ones has changed meanwhile. It is undone and made again.
var errMoved = errors.New("pgstore: what was to be locked has changed too often")

// counted is an outcome that is an error for the caller and none for the
// transaction: what it counted or revoked stays.
type counted struct{ error }

// do runs one statement: in the transaction that the context carries, or on the
// pool.
func (s *Store) do(ctx context.Context, f func(context.Context, querier) error) error {
	if Tx(ctx) != nil {
		return s.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error { return f(ctx, tx) })
	}
	return s.again(ctx, f)
}

// inTx runs f in a transaction: one of its own, or as a part of the one that the
// context carries. Then an outcome that is an error, such as a conflict, does not
// abort the application's transaction.
func (s *Store) inTx(ctx context.Context, f func(context.Context, pgx.Tx) error) error {
	return s.again(ctx, func(ctx context.Context, within querier) error {
		var kept *counted
		err := pgx.BeginFunc(ctx, within, func(tx pgx.Tx) error {
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

// again makes a call, on the transaction that the context carries or on a
// connection of the pool, and makes it again if it provably changed nothing. It
// bounds the call's time (see bounded).
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
		// The application's transaction is its own to make again.
		if err == nil || !errors.Is(err, errMoved) && (joined != nil || !changedNothing(err)) {
			break
		}
	}
	return s.outcome(err)
}

// bound bounds a call of one statement or several, which is over once done is
// called. It returns the context's error if that has ended.
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

// pooled makes a call on a connection of the pool.
func (s *Store) pooled(b *bounded, f func(context.Context, querier) error) error {
	c, err := s.pool.Acquire(b)
	if err != nil {
		return err
	}
	defer c.Release()
	return within(b, c, f)
}

// within makes a call unless its caller has gone meanwhile.
func within(b *bounded, q querier, f func(context.Context, querier) error) error {
	if err := b.work(); err != nil {
		return err
	}
	return f(b, q)
}

// changedNothing tells whether a call can be made again without harm: it never
// reached the server, or was rolled back for the sake of another.
func changedNothing(err error) bool {
	if pgconn.SafeToRetry(err) {
		return true
	}
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01") // gave way to another
}

// refused tells an error that the database gave from one that leaves open what
// it did.
func refused(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e)
}

// field is which value a constraint keeps unique; empty if it is none of ours.
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
	case "factors_pkey", "factors_enabled_key", "factors_pending_key", "factors_credential_key":
		return "factor"
	case "roles_pkey":
		return "role"
	case "api_keys_hash_key":
		return "key"
	}
	return ""
}

// hookFailed is an error of NewUser.Creating. It is returned as it is: what the
// application's own constraints say, or rows it did not find, are no outcomes of
// the store's, even if they bear the same names.
type hookFailed struct{ error }

func (h hookFailed) Unwrap() error { return h.error }

// outcome makes auth's errors of the database's. Only what is about this store's
// own tables is one: triggers and the claims function may fail for reasons of
// their own.
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
	case e.Code == "23503" && e.SchemaName == s.schema: // a user who is gone
		return store.ErrNotFound
	case e.Where != "":
		return fmt.Errorf("%w (%s)", err, e.Where)
	}
	return err
}

type txKey struct{}

// InTx makes store calls with the context it returns take part in a transaction
// of the application's: Auth's methods, too. They are undone if it is rolled
// back; their messages are sent a few seconds after it was committed. Failed logins, wrong codes and
// ended sessions are undone as well, so use it for what should happen together
// (an import, a sign-up with more), never around a login.
func InTx(ctx context.Context, tx pgx.Tx) context.Context { return context.WithValue(ctx, txKey{}, tx) }

// Tx is the transaction that a context carries, in auth.Hooks.OnUserCreating or
// after InTx. It is nil outside of a change on this store, so on other stores, too:
// test hooks that use it with authtest.NewOn and a Store of this package.
func Tx(ctx context.Context) pgx.Tx {
	tx, _ := ctx.Value(txKey{}).(pgx.Tx)
	return tx
}

// InTransaction tells whether changes with this context come about only with a
// transaction of the application's (InTx).
func (s *Store) InTransaction(ctx context.Context) bool { return Tx(ctx) != nil }

// send sends a batch in one round trip. Each statement of it takes a snapshot of
// its own, and so sees what those before it waited for.
func send(ctx context.Context, tx pgx.Tx, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, b).Close()
}
