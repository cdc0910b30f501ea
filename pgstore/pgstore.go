// Package pgstore keeps users, sessions and tokens in Postgres, in a schema of
// their own, for any number of instances.
//
//	store, err := pgstore.Open(ctx, os.Getenv("DATABASE_URL"))
//	if err != nil { … }
//	defer store.Close()
//	if err := store.Migrate(ctx); err != nil { … } // or apply pgstore.Schema() by other means
//	a, err := auth.New(store, …)
//
// Every method of auth.Store is one statement, so that it is one step also behind
// a connection pooler in transaction mode, and holds no lock across a round
// trip. The exceptions say so.
//
// # The application's own tables
//
// [InTx] runs store calls inside a transaction of the application's, and
// auth.Hooks.OnUserCreating runs inside the store's ([Tx]). [AsUser] runs
// statements as the signed-in user, for row-level security.
package pgstore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth"
)

// Store is an auth.Store and auth.FactorStore on Postgres 13 or later. It is safe
// for concurrent use.
type Store struct {
	pool    *pgxpool.Pool
	own     bool // the pool was made by Open
	schema  string
	claims  string // name of the claims function; empty: none
	timeout time.Duration
	holder  string          // names this store among those that sweep
	texts   sync.Map        // statement as written → for this schema
	open    context.Context // ends with Close, and the feeds with it
	close   context.CancelFunc

	reads    gather[string, sessionUser]
	advances gather[auth.Advance, sessionUser]
}

var (
	_ auth.Store       = (*Store)(nil)
	_ auth.FactorStore = (*Store)(nil)
)

// Option changes how a Store works.
type Option func(*Store) error

var (
	plainName     = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,40}$`)
	qualifiedName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}(\.[a-z_][a-z0-9_]{0,62})?$`)
)

// InSchema names the schema that the tables are in; default "auth". Lower-case
// letters, digits and underscores, and no keyword of SQL. Nothing else should be
// in it: the migration takes the right to call its functions from everybody.
func InSchema(name string) Option {
	return func(s *Store) error {
		if !plainName.MatchString(name) {
			return fmt.Errorf("pgstore: schema %q is not made of lower-case letters, digits and underscores", name)
		}
		if name == "public" {
			return errors.New("pgstore: the tables need a schema of their own, not public")
		}
		s.schema = name
		return nil
	}
}

// ClaimsFunction names an SQL function that takes the user's id (uuid) and
// answers jsonb, whose object goes into the user's access tokens as custom
// claims:
//
//	create function shop.claims(id uuid) returns jsonb language sql stable as $$
//		select jsonb_build_object('plan', p.plan) from shop.profiles p where p.user_id = $1
//	$$;
//
// Write $1, or a name that no column has: a bare user_id would be the column, and
// everybody would get the first row's claims. The store's own role has to be able
// to call it and to read what it reads.
//
// It is called in the same round trip as the read before a sign-in or refresh,
// and sees what was committed before; if it fails, so does that, with 503. At a
// sign-up it is called in the transaction that creates the account, which it then
// undoes. auth.New refuses a function that is not there. Names of Authmount's own
// claims are ignored. null means no claims. Keep it quick: it runs before a
// password is judged, and only where there is an account, so that its duration
// tells strangers of one.
func ClaimsFunction(name string) Option {
	return func(s *Store) error {
		if !qualifiedName.MatchString(name) {
			return fmt.Errorf("pgstore: claims function %q is not a plain or qualified name", name)
		}
		s.claims = name
		return nil
	}
}

// Timeout bounds each call, waiting for a connection included; default 10 s.
func Timeout(d time.Duration) Option {
	return func(s *Store) error {
		if d <= 0 {
			return errors.New("pgstore: the timeout must be above zero")
		}
		s.timeout = d
		return nil
	}
}

// Open connects to Postgres with a pool of its own. url is a connection string
// as pgxpool.ParseConfig takes it, with several hosts for failover if need be:
// postgres://user:password@one,two/db?target_session_attrs=read-write. Behind a
// pooler in transaction mode that keeps no prepared statements (PgBouncer unless
// max_prepared_statements is above zero, the default since 1.24), add
// default_query_exec_mode=exec. An empty url means what the PG… environment
// variables say, as with psql. Open does not wait for the database to answer.
func Open(ctx context.Context, url string, opts ...Option) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errBadURL
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("pgstore: %w", err)
	}
	s, err := New(pool, opts...)
	if err != nil {
		pool.Close()
		return nil, err
	}
	s.own = true
	return s, nil
}

// errBadURL does without pgx's error, which repeats the string, in some cases with
// the password.
var errBadURL = errors.New("pgstore: the connection string cannot be parsed: it is postgres://user:password@host/database, with special characters of the password percent-encoded, or host=… user=… dbname=…")

// New makes a Store on a pool of the application's.
func New(pool *pgxpool.Pool, opts ...Option) (*Store, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	s := &Store{pool: pool, schema: defaultSchema, timeout: 10 * time.Second, holder: id.String()}
	atOnce := max(1, int(pool.Config().MaxConns)/2) // the other half is left to everything else
	s.reads = gather[string, sessionUser]{one: s.readOne, many: s.readMany, limit: atOnce}
	s.advances = gather[auth.Advance, sessionUser]{one: s.advanceOne, many: s.advanceMany, limit: atOnce}
	s.open, s.close = context.WithCancel(context.Background())
	for _, o := range opts {
		if err := o(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Close ends WatchRevocations, and the pool that Open made. One that was passed to
// New stays open.
func (s *Store) Close() {
	s.close()
	if s.own {
		s.pool.Close()
	}
}

// Pool is the pool of connections, for the application's own statements.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Ping asks the database for an answer.
func (s *Store) Ping(ctx context.Context) error {
	return s.do(ctx, func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, "select 1")
		return err
	})
}

// querier is a pool or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// retries bounds how often a call is made again that provably changed nothing.
const retries = 3

// do runs one call: in the transaction that the context carries, or on the pool.
func (s *Store) do(ctx context.Context, f func(context.Context, querier) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if tx := Tx(ctx); tx != nil {
		return s.nested(ctx, tx, func(ctx context.Context, tx pgx.Tx) error { return f(ctx, tx) })
	}
	var err error
	for range retries {
		if err = f(ctx, s.pool); err == nil || !changedNothing(err) {
			break
		}
	}
	return s.outcome(err)
}

// inTx is do for the calls that need a transaction.
func (s *Store) inTx(ctx context.Context, f func(context.Context, pgx.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if tx := Tx(ctx); tx != nil {
		return s.nested(ctx, tx, f)
	}
	var err error
	for range retries {
		err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return f(context.WithValue(ctx, txKey{}, tx), tx) })
		if err == nil || !changedNothing(err) {
			break
		}
	}
	return s.outcome(err)
}

// nested keeps an outcome that is an error, such as a conflict, from aborting
// the application's transaction.
func (s *Store) nested(ctx context.Context, tx pgx.Tx, f func(context.Context, pgx.Tx) error) error {
	var kept *counted
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		err := f(context.WithValue(ctx, txKey{}, tx), tx)
		if errors.As(err, &kept) {
			return nil
		}
		return err
	})
	if err == nil && kept != nil {
		return kept
	}
	return s.outcome(err)
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

// unique maps constraints to the values they keep unique.
var unique = map[string]string{
	"users_pkey": "id", "sessions_pkey": "id", "users_email_key_key": "email", "users_phone_key": "phone", "identities_provider_subject_key": "identity",
}

// hookFailed is an error of NewUser.Creating. It is answered as it is: what the
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
			return auth.ErrNotFound
		}
		return err
	}
	switch {
	case s.claims != "" && strings.Contains(e.Where, s.claims[strings.LastIndex(s.claims, ".")+1:]):
		return fmt.Errorf("%w (%s)", err, e.Where)
	case e.Code == "23505" && e.SchemaName == s.schema && unique[e.ConstraintName] != "":
		return &auth.ConflictError{Field: unique[e.ConstraintName]}
	case e.Code == "23503" && e.SchemaName == s.schema: // a user who is gone
		return auth.ErrNotFound
	case e.Code == "22P02" && strings.Contains(e.Message, "uuid") && (ofArgument(e) || s.claims == "" && e.Where == ""): // no id of ours
		return auth.ErrNotFound
	case e.Where != "":
		return fmt.Errorf("%w (%s)", err, e.Where)
	}
	return err
}

var argument = regexp.MustCompile(`^[^\n]*\$\d+( = '|$)`)

// ofArgument tells whether an error is about what a statement was given, and not
// about what it came upon. Postgres names the parameter, or the place in a
// statement that was sent with its arguments in it.
func ofArgument(e *pgconn.PgError) bool { return e.Position > 0 || argument.MatchString(e.Where) }

type txKey struct{}

// InTx makes store calls with the context it returns take part in a transaction
// of the application's: Auth's methods, too. They are undone if it is rolled
// back; e-mails that were sent meanwhile are not. Failed logins, wrong codes and
// ended sessions are undone as well, so use it for what should happen together
// (an import, a sign-up with more), never around a login.
func InTx(ctx context.Context, tx pgx.Tx) context.Context { return context.WithValue(ctx, txKey{}, tx) }

// Tx is the transaction that a context carries, in auth.Hooks.OnUserCreating or
// after InTx; nil if there is none.
func Tx(ctx context.Context) pgx.Tx {
	tx, _ := ctx.Value(txKey{}).(pgx.Tx)
	return tx
}

// sql is a statement for this store's schema.
func (s *Store) sql(text string) string {
	if s.schema == defaultSchema && s.claims == "" {
		return text
	}
	if t, ok := s.texts.Load(text); ok {
		return t.(string)
	}
	t := inSchema(text, s.schema)
	if s.claims != "" {
		t = strings.ReplaceAll(t, claimsColumn, "(case when u.id is not null then "+s.claims+"(u.id) end)")
	}
	s.texts.Store(text, t)
	return t
}
