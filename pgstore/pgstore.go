// Package pgstore keeps users, sessions and tokens in Postgres, in a schema of
// their own, for any number of instances.
//
//	store, err := pgstore.Open(ctx, os.Getenv("DATABASE_URL"), pgstore.AutoMigrate()) // or apply pgstore.Schema() by other means
//	if err != nil { … }
//	defer store.Close()
//	a, err := auth.New(ctx, store, …)
//
// Every method of store.Store is atomic, also behind a connection pooler in transaction
// mode. Frequent calls (a sign-up, a login, a refresh, a read) are one statement, and
// hold no lock across a round trip, unless their store.Change depends on more than the
// row that the statement changes. Every other call is a short transaction: it locks
// rows, checks them, and then changes them.
//
// # The application's own tables
//
// [InTx] runs store calls inside the application's transaction, and
// auth.Hooks.OnUserCreating runs inside the store's ([Tx]). [rls.AsUser] runs
// statements as the signed-in user, for row-level security.
package pgstore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth/internal/gather"
	"github.com/authmount/auth/store"
)

// Store is a store.Store on Postgres 13 or later, with every optional interface. It is
// safe for concurrent use.
type Store struct {
	pool     *pgxpool.Pool
	own      bool // Open created the pool
	schema   string
	claims   string // name of the claims function; empty: none
	policies bool   // WithRowLevelSecurity
	migrates bool   // AutoMigrate
	timeout  time.Duration
	holder   string          // identifies this store in the lease of the sweep
	texts    sync.Map        // statement as written → for this schema
	open     context.Context // cancelled by Close, which ends the feeds
	close    context.CancelFunc

	feeds atomic.Int64 // running WatchRevocations
	fedAt atomic.Int64 // last read by one of them, in Unix nanoseconds

	timeouts timeouts
	troubled troubled
	reads    *gather.Group[string, *sessionUser]
	advances *gather.Group[advance, *sessionUser]
	draws    *gather.Group[draw, level]
}

var (
	_ store.Store        = (*Store)(nil)
	_ store.FactorStore  = (*Store)(nil)
	_ store.Journal      = (*Store)(nil)
	_ store.ProjectStore = (*Store)(nil)
	_ store.AdminStore   = (*Store)(nil)
)

// Contract is the version of store.Store that this package was written for.
func (s *Store) Contract() int { return 16 }

// Option changes how a Store works.
type Option func(*Store) error

var (
	plainName     = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,40}$`)
	qualifiedName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}(\.[a-z_][a-z0-9_]{0,62})?$`)
)

// WithSchema names the schema that the tables are in; default "auth". The name consists
// of lower-case letters, digits and underscores, and is no SQL keyword. Keep nothing
// else in the schema, because the migration revokes the right to call its functions
// from PUBLIC.
func WithSchema(name string) Option {
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

// WithClaimsFunction names an SQL function that takes the user's id (uuid) and returns
// a jsonb object. Its members become custom claims of the user's access tokens:
//
//	create function shop.claims(id uuid) returns jsonb language sql stable as $$
//		select jsonb_build_object('plan', p.plan) from shop.profiles p where p.user_id = $1
//	$$;
//
// Write $1, or a name that no column has: a bare user_id would be the column, and every
// user would get the first row's claims. The store's role needs the right to call the
// function and to read its tables.
//
// The store calls the function in the same round trip as the read before a sign-in or
// refresh; the function sees committed data. If it fails, the sign-in or refresh fails
// with 503. At a sign-up the store calls it in the transaction that creates the
// account, and its failure undoes that. auth.New refuses a function that does not
// exist. Names of Authmount's own claims are ignored. null means no claims. Keep the
// function quick: it runs before the password is checked, and only if the account
// exists, so a slow one reveals that.
func WithClaimsFunction(name string) Option {
	return func(s *Store) error {
		if !qualifiedName.MatchString(name) {
			return fmt.Errorf("pgstore: claims function %q is not a plain or qualified name", name)
		}
		s.claims = name
		return nil
	}
}

// AutoMigrate has Open call Migrate before it returns, so that a program also starts on
// an empty database. Instances may start together: one migrates, and the others wait
// for it. The connecting role must own the schema or have the right to create it; for
// other roles see docs/deployment.md. New and Schema ignore this option.
func AutoMigrate() Option {
	return func(s *Store) error {
		s.migrates = true
		return nil
	}
}

// WithRowLevelSecurity has Migrate and Schema create the roles anon and authenticated,
// and grant them the right to call auth.uid(), auth.jwt(), auth.role(), auth.email()
// and auth.authorize(). [rls.AsUser] runs statements as these roles, and policies are
// written for them. The roles belong to the whole cluster; if the migrating role may
// not create them, an administrator has to. Check fails if they are missing. Without
// this option the roles are not needed.
func WithRowLevelSecurity() Option {
	return func(s *Store) error {
		s.policies = true
		return nil
	}
}

// WithTimeout limits the duration of each call, including the wait for a connection;
// default 10 s. If a call's context is cancelled, the call returns at once while it
// waits for a connection, and otherwise within a second, because a statement that was
// sent may finish.
func WithTimeout(d time.Duration) Option {
	return func(s *Store) error {
		if d <= 0 {
			return errors.New("pgstore: the timeout must be above zero")
		}
		s.timeout = d
		return nil
	}
}

// Open connects to Postgres with a pool of its own. url is a connection string for
// pgxpool.ParseConfig, which may list several hosts for failover:
// postgres://user:password@one,two/db?target_session_attrs=read-write. Behind a pooler
// in transaction mode that keeps no prepared statements (PgBouncer unless
// max_prepared_statements is above zero, the default since 1.24), add
// default_query_exec_mode=exec. If url is empty, the PG… environment variables apply,
// as with psql. Open does not wait for the database, except with AutoMigrate, where it
// waits until ctx ends.
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
	if s.migrates {
		if err := s.Migrate(ctx); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// errBadURL replaces pgx's error, which repeats the connection string and sometimes the
// password.
var errBadURL = errors.New("pgstore: the connection string cannot be parsed: it is postgres://user:password@host/database, with special characters of the password percent-encoded, or host=… user=… dbname=…")

// New returns a Store on the application's pool.
func New(pool *pgxpool.Pool, opts ...Option) (*Store, error) {
	id := uuid.Must(uuid.NewV7()).String() // crypto/rand never fails
	s := &Store{pool: pool, schema: defaultSchema, timeout: 10 * time.Second, holder: id}
	atOnce := max(1, int(pool.Config().MaxConns)/2) // the other half is for all other calls
	s.reads = gather.New(gather.Config[string, *sessionUser]{One: s.readOne, Many: s.readMany, Refused: refused, Limit: atOnce})
	s.advances = gather.New(gather.Config[advance, *sessionUser]{One: s.advanceOne, Many: s.advanceMany, Refused: refused, Limit: atOnce})
	s.draws = gather.New(gather.Config[draw, level]{One: s.drawOne, Many: s.drawMany, Refused: refused, Limit: atOnce})
	s.open, s.close = context.WithCancel(context.Background())
	for _, o := range opts {
		if err := o(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Close ends WatchRevocations and closes a pool that Open created. It does not close a
// pool that was passed to New.
func (s *Store) Close() {
	s.close()
	if s.own {
		s.pool.Close()
	}
}

// Pool returns the pool of connections, for the application's own statements.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Ping checks that the database answers and accepts changes.
func (s *Store) Ping(ctx context.Context) error {
	return s.do(ctx, func(ctx context.Context, q querier) error {
		var readOnly bool
		if err := q.QueryRow(ctx, "select current_setting('transaction_read_only')::boolean").Scan(&readOnly); err != nil {
			return err
		}
		if readOnly { // a standby, or a primary whose operators or disk allow no changes
			return errReadOnly
		}
		return nil
	})
}

var errReadOnly = errors.New("pgstore: the database is read-only")

// sql returns a statement, written for the schema auth, for this store's schema and
// claims function.
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
