// Package pgstore keeps users, sessions and tokens in Postgres, in a schema of
// their own, for any number of instances.
//
//	store, err := pgstore.Open(ctx, os.Getenv("DATABASE_URL"), pgstore.AutoMigrate()) // or apply pgstore.Schema() by other means
//	if err != nil { … }
//	defer store.Close()
//	a, err := auth.New(ctx, store, …)
//
// Every method of store.Store is one step, also behind a connection pooler in
// transaction mode. What everybody does all the time (a sign-up, a login, a
// refresh, a read) is one statement, which holds no lock across a round trip,
// unless its store.Change rests on more than the row that the statement itself
// changes. Everything else is a short transaction: it locks, judges what it has
// locked, and has its effect.
//
// # The application's own tables
//
// [InTx] runs store calls inside a transaction of the application's, and
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
	own      bool // the pool was made by Open
	schema   string
	claims   string // name of the claims function; empty: none
	policies bool   // there are roles for row-level security
	migrates bool   // Open migrates
	timeout  time.Duration
	holder   string          // names this store among those that sweep
	texts    sync.Map        // statement as written → for this schema
	open     context.Context // ends with Close, and the feeds with it
	close    context.CancelFunc

	feeds atomic.Int64 // how many follow revocations
	fedAt atomic.Int64 // when one of them looked last, in Unix nanoseconds

	timeouts timeouts
	troubled troubled
	reads    *gather.Group[string, *sessionUser]
	advances *gather.Group[advance, *sessionUser]
	draws    *gather.Group[draw, int64]
}

var (
	_ store.Store        = (*Store)(nil)
	_ store.FactorStore  = (*Store)(nil)
	_ store.Journal      = (*Store)(nil)
	_ store.ProjectStore = (*Store)(nil)
	_ store.AdminStore   = (*Store)(nil)
)

// Contract is the version of store.Store that this package was written for.
func (s *Store) Contract() int { return 8 }

// Option changes how a Store works.
type Option func(*Store) error

var (
	plainName     = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,40}$`)
	qualifiedName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}(\.[a-z_][a-z0-9_]{0,62})?$`)
)

// WithSchema names the schema that the tables are in; default "auth". Lower-case
// letters, digits and underscores, and no keyword of SQL. Nothing else should be
// in it: the migration takes the right to call its functions from everybody.
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

// WithClaimsFunction names an SQL function that takes the user's id (uuid) and
// returns jsonb, whose object goes into the user's access tokens as custom
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
func WithClaimsFunction(name string) Option {
	return func(s *Store) error {
		if !qualifiedName.MatchString(name) {
			return fmt.Errorf("pgstore: claims function %q is not a plain or qualified name", name)
		}
		s.claims = name
		return nil
	}
}

// AutoMigrate has Open call Migrate before it returns, so that a program runs on an
// empty database as on any other. Instances may start together: one migrates, and
// the others wait for it. The role that connects has to own the schema, or to be
// allowed to make one; see docs/deployment.md for one that is not. It is for Open
// alone: New and Schema do nothing about it.
func AutoMigrate() Option {
	return func(s *Store) error {
		s.migrates = true
		return nil
	}
}

// WithRowLevelSecurity has Migrate and Schema make the roles anon and authenticated,
// which [rls.AsUser] acts as and policies are written for, and let them call auth.uid()
// and the like. They belong to the whole cluster: a role that may not create them
// needs an administrator to have done so. Check then asks whether they are there.
// Without the option, no such role is needed.
func WithRowLevelSecurity() Option {
	return func(s *Store) error {
		s.policies = true
		return nil
	}
}

// WithTimeout bounds each call, waiting for a connection included; default 10 s.
// If a call's context is cancelled while it waits for a connection, it ends at
// once; after that, within a second: a statement on its way is let finish.
func WithTimeout(d time.Duration) Option {
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
// variables say, as with psql. Open does not wait for the database to answer, but
// with AutoMigrate it needs an answer, until ctx ends.
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

// errBadURL does without pgx's error, which repeats the string, in some cases with
// the password.
var errBadURL = errors.New("pgstore: the connection string cannot be parsed: it is postgres://user:password@host/database, with special characters of the password percent-encoded, or host=… user=… dbname=…")

// New makes a Store on a pool of the application's.
func New(pool *pgxpool.Pool, opts ...Option) (*Store, error) {
	id := uuid.Must(uuid.NewV7()).String() // crypto/rand never fails
	s := &Store{pool: pool, schema: defaultSchema, timeout: 10 * time.Second, holder: id}
	atOnce := max(1, int(pool.Config().MaxConns)/2) // the other half is left to everything else
	s.reads = gather.New(gather.Config[string, *sessionUser]{One: s.readOne, Many: s.readMany, Refused: refused, Limit: atOnce})
	s.advances = gather.New(gather.Config[advance, *sessionUser]{One: s.advanceOne, Many: s.advanceMany, Refused: refused, Limit: atOnce})
	s.draws = gather.New(gather.Config[draw, int64]{One: s.drawOne, Many: s.drawMany, Refused: refused, Limit: atOnce})
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
