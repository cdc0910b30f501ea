// Package sqlitestore keeps users, sessions and tokens in one SQLite file, for services on one
// machine. It implements every optional interface of package store,
// needs no cgo, and registers no database/sql driver.
//
//	store, err := sqlitestore.Open("auth.db")
//
// An application that keeps its own tables in the same file passes its own handle, of any
// driver:
//
//	store, err := sqlitestore.New(ctx, db)
//
// [Tx] returns the transaction of a sign-up, InTx runs store calls and the application's
// statements in one transaction, and ReadOnly is a handle for the application's own reads.
//
// Choose it for one machine. Several processes on that machine may share the file;
// WatchRevocations reports to each which sessions others ended. A process opens the file with
// one SQLite library only: with Open, or with the application's driver and New. If one of two
// libraries closes a file, the system drops the locks of the other. Open refuses files on NFS,
// SMB and 9p, where they would get damaged, and logs a warning on FUSE; New does not know the
// place. For several machines, choose pgstore.
//
// Differences to pgstore:
//
//   - One change happens at a time, and each waits until the disk has it (synchronous=FULL).
//     Changes that arrive meanwhile share the next wait, if the store was opened by Open.
//     Reads never wait for changes.
//   - Rate limits are written in the same way. On Postgres they cost no write to the disk.
//     A request that a limit refuses writes nothing.
//   - InTx begins the transaction itself, because there is one at a time. A store call within
//     it, or within auth.Hooks.OnUserCreating, needs its context; another context is
//     ErrOtherContext. Long transactions hold up every sign-in.
//   - WatchRevocations reads a table five times a second.
//   - There is no row-level security for the application's own queries.
//   - Lists that no index serves (parts of user agents, unconfirmed accounts, combinations of
//     filters) read the table, for two seconds at most; then the error is store.ErrTooBroad.
//   - A change fails with its events if these cannot be recorded (Change.Unrecorded is never
//     called).
//   - The claims of access tokens cannot be computed by a function of the database.
//
// All tables begin with auth_. The version of the schema is in auth_schema; the pragma
// user_version is left to the application.
//
// # Durability
//
// A change that a method confirmed survives a crash of the process and a power failure, if
// the disk does what it confirms. An error names the problem of the file, such as a full disk;
// the change then took place as a whole or not at all, and the store works on when the problem
// is gone. ErrDamaged is the error of a file that needs a backup.
//
// Store.Backup copies the file while the service runs, and Restore puts a backup in its place
// while it does not:
//
//	err := store.Backup(ctx, "/backups/2026-01-02.db")
//	err := sqlitestore.Restore(ctx, "/backups/2026-01-02.db", "auth.db")
//
// A plain copy of the file lacks the changes that are still in the -wal file, and brings back
// sessions that ended and links that were used.
//
// The -wal file is copied into the file from 4 MB on. While something reads without a pause it
// grows to about 32 MB; then a change waits for the readers, for three seconds at most. It
// grows further only beside a read transaction of the application or a backup that does not
// end.
package sqlitestore

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/authmount/auth/store"
)

// Store is a store.Store on SQLite. It is safe for concurrent use.
type Store struct {
	writer  *sql.DB
	reader  *sql.DB
	queries *sql.DB // of ReadOnly
	turns   turns
	caller  atomic.Int64 // the goroutine in which a function of the application runs within a change; 0: none
	file    *connector   // of Open, whose files Close closes; nil: the handle is the application's

	open  context.Context // ends with Close
	close context.CancelFunc

	wait     time.Duration // the time limit for waiting for other changes of this process
	patience time.Duration // the time limit for reading a list
	copying  *atomic.Int32 // backups that run
}

// newStore returns a store. file is nil for the application's own handle.
func newStore(writer, reader *sql.DB, file *connector) *Store {
	s := &Store{writer: writer, reader: reader, queries: reader, file: file, wait: defaultBusy, patience: patience, copying: new(atomic.Int32)}
	if file != nil {
		s.copying = &file.copying
	}
	s.open, s.close = context.WithCancel(context.Background())
	return s
}

var (
	_ store.Store        = (*Store)(nil)
	_ store.FactorStore  = (*Store)(nil)
	_ store.Journal      = (*Store)(nil)
	_ store.ProjectStore = (*Store)(nil)
	_ store.AdminStore   = (*Store)(nil)
)

// Option is an option of Open.
type Option func(*connector)

// WithBusyTimeout sets how long a change waits for a change of another process. The default
// is ten seconds.
func WithBusyTimeout(d time.Duration) Option { return func(c *connector) { c.busy = d } }

// defaultBusy is the default of WithBusyTimeout.
const defaultBusy = 10 * time.Second

// Open opens a file, which it creates if there is none, readable only to its owner.
func Open(path string, opts ...Option) (*Store, error) {
	if path == "" || path == ":memory:" || strings.HasPrefix(path, "file:") {
		return nil, errors.New("auth: sqlite: Open needs the path of a file; package memstore keeps everything in memory")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("auth: sqlite: %w", err)
	}
	path = followed(path) // -wal and -shm are beside the file, not beside a link to it
	registerSpace()
	c := &connector{path: path, busy: defaultBusy, vfs: spaceName, kind: fileSystem, log: slog.Default()}
	for _, o := range opts {
		o(c)
	}
	if err := c.checkPlace(); err != nil {
		return nil, err
	}
	s := newStore(sql.OpenDB(c), sql.OpenDB(c), c)
	s.queries = sql.OpenDB(queryConnector{c})
	s.writer.SetMaxOpenConns(1)
	readers := max(4, runtime.GOMAXPROCS(0))
	s.reader.SetMaxOpenConns(readers)
	s.reader.SetMaxIdleConns(readers)
	if err := s.prepare(context.Background()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// ReadOnly returns a handle for the application's own reads, which do not wait for changes and
// cannot make any: InTx makes those. After New it is the handle that New received.
func (s *Store) ReadOnly() *sql.DB { return s.queries }

// New uses the application's own handle, which Close does not close. Each connection of the
// handle has to set the pragmas journal_mode=WAL, foreign_keys=ON and a busy_timeout, and
// should set synchronous=FULL. It needs SQLite 3.44 or later. The drivers
// github.com/ncruces/go-sqlite3/driver and modernc.org/sqlite set them by
//
//	file:app.db?_pragma=journal_mode(wal)&_pragma=foreign_keys(on)&_pragma=busy_timeout(10000)&_pragma=synchronous(full)
//
// and github.com/mattn/go-sqlite3 by
//
//	file:app.db?_journal_mode=wal&_foreign_keys=on&_busy_timeout=10000&_synchronous=full
//
// The driver creates the files, which hold password hashes, so make their folder readable only
// to the service. The error names a pragma that is missing.
func New(ctx context.Context, db *sql.DB) (*Store, error) {
	s := newStore(db, db, nil)
	var foreign, busy int
	var journal string
	err := errors.Join(db.QueryRowContext(ctx, `pragma foreign_keys`).Scan(&foreign), db.QueryRowContext(ctx, `pragma busy_timeout`).Scan(&busy),
		db.QueryRowContext(ctx, `pragma journal_mode`).Scan(&journal))
	if err == nil && (foreign == 0 || busy == 0 || journal != "wal") {
		err = errors.New("connections need the pragmas journal_mode=WAL, foreign_keys=ON and busy_timeout")
	}
	if err != nil {
		return nil, fmt.Errorf("auth: sqlite: %w", err)
	}
	return s, s.prepare(ctx)
}

// Close ends WatchRevocations and closes the files that Open opened.
func (s *Store) Close() error {
	s.close()
	if s.file == nil {
		return nil
	}
	return errors.Join(s.queries.Close(), s.reader.Close(), s.writer.Close())
}

//go:embed schema.sql
var schema string

// schemaVersion is the version of the schema that this package needs.
const schemaVersion = 1

// prepare creates the tables if there are none.
func (s *Store) prepare(ctx context.Context) error {
	return s.transact(ctx, func(t *tx) error {
		if value[int](t, `select count(*) from sqlite_schema where type = 'table' and name = 'auth_schema'`) == 0 {
			for statement := range strings.SplitSeq(strings.TrimSuffix(schema, ";\n"), ";\n") {
				t.exec(statement)
			}
		}
		v := value[string](t, `select version from auth_schema`)
		if t.err != nil {
			return nil
		}
		if err := fits(v); err != nil {
			return fmt.Errorf("auth: sqlite: %w", err)
		}
		return nil
	})
}

// Contract returns the version of the store contract that this store was written for.
func (s *Store) Contract() int { return 16 }

// Ping reports whether the file can be read and written.
func (s *Store) Ping(ctx context.Context) error {
	return s.write(ctx, func(*tx) error { return nil })
}
