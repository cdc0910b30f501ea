package sqlitestore

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// connector opens connections to one file for database/sql. It registers no driver, so that
// the application may use any SQLite driver under any name beside it.
type connector struct {
	path string
	busy time.Duration

	kind func(path string) string // names the file system of a path (checkPlace)
	log  *slog.Logger
	vfs  string // the file system in SQLite's registry

	restart int          // restartPages for tests
	copying atomic.Int32 // backups that run
}

// pragmas are those that a connection does not inherit from the file. Temporary files and
// free pages would keep personal data. A log (-wal) that grew is cut when it starts anew.
const pragmas = `pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on; pragma temp_store = memory; pragma secure_delete = fast; pragma journal_size_limit = 8388608`

// The sizes of the log (-wal), in pages of mostly 4 KiB, from which a commit copies it into
// the file, and from which it also waits until the log can start anew. Without the second,
// readers that overlap would keep the log growing for as long as they do.
const (
	copyPages    = 1000
	restartPages = 8000
)

// restartWait limits how long a commit waits for readers of a log of restartPages. It
// covers the time limit of lists (patience).
const restartWait = patience + time.Second

// Connect opens a connection.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := c.create(); err != nil {
		return nil, explained(c.path, err)
	}
	db, err := sqlite3.OpenContext(ctx, c.uri())
	if err != nil {
		return nil, explained(c.path, err)
	}
	err = errors.Join(db.BusyTimeout(c.busy), db.Exec(pragmas))
	if err != nil {
		return nil, explained(c.path, errors.Join(err, db.Close()))
	}
	db.WALHook(c.copyLog())
	return &conn{db: db, path: c.path, stmts: map[string]*stmt{}}, nil
}

// copyLog returns a function for one connection, which runs after each commit. The commit
// stands, so that errors are left to the next one.
func (c *connector) copyLog() func(*sqlite3.Conn, string, int) error {
	restart := cmp.Or(c.restart, restartPages)
	limit := restart
	return func(db *sqlite3.Conn, schema string, pages int) error {
		if pages >= copyPages {
			_, _, _ = db.WALCheckpoint(schema, sqlite3.CHECKPOINT_PASSIVE)
		}
		switch {
		case pages < restart:
			limit = restart
		case pages >= limit && c.copying.Load() == 0: // a backup reads for longer
			limit = 2 * pages // if readers do not end in time, not every commit waits for them
			_ = db.BusyTimeout(restartWait)
			_, _, _ = db.WALCheckpoint(schema, sqlite3.CHECKPOINT_RESTART)
			_ = db.BusyTimeout(c.busy)
		}
		return nil
	}
}

// queryConnector opens connections that cannot change the file.
type queryConnector struct{ *connector }

func (c queryConnector) Connect(ctx context.Context) (driver.Conn, error) {
	made, err := c.connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	opened := made.(*conn)
	if err := opened.db.Exec(`pragma query_only = on`); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

// Driver is required by database/sql, which calls it only for DB.Driver.
func (c *connector) Driver() driver.Driver { return noDriver{} }

type noDriver struct{}

func (noDriver) Open(string) (driver.Conn, error) {
	return nil, errors.New("auth: sqlite: open files with sqlitestore.Open")
}

// create makes the file readable only to its owner, and its shared memory (-shm) to those
// who may read the file. SQLite would create both with the process's default mode. It gives
// the log (-wal) the mode of the file, by modeof.
func (c *connector) create() error {
	if c.vfs != spaceName { // of a test
		return nil
	}
	mode := fs.FileMode(0o600)
	for _, path := range []string{c.path, c.path + "-shm"} {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, mode) //nolint:gosec // the path that the application opens
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		mode = info.Mode().Perm()
	}
	return nil
}

func (c *connector) uri() string {
	path := filepath.ToSlash(c.path)
	if !strings.HasPrefix(path, "/") { // C:/…
		path = "/" + path
	}
	uri := "file://" + (&url.URL{Path: path}).EscapedPath() + "?modeof=" + url.QueryEscape(c.path)
	if c.vfs != "" {
		uri += "&vfs=" + url.QueryEscape(c.vfs)
	}
	return uri
}

// conn is a connection. database/sql uses it from one goroutine at a time.
type conn struct {
	db    *sqlite3.Conn
	path  string
	stmts map[string]*stmt // prepared and idle, by text
	begun bool             // between BeginTx and its end
}

// errUndone is the error of statements in a transaction that has ended, which SQLite would
// apply one by one. Some failures end one, such as a full disk.
var errUndone = errors.New("auth: sqlite: the transaction was undone")

// during sets the context of statements and calls f.
func (c *conn) during(ctx context.Context, f func() error) error {
	if c.begun && c.db.GetAutocommit() {
		return errUndone
	}
	c.db.SetInterrupt(ctx)
	defer c.db.SetInterrupt(context.Background())
	return explained(c.path, f())
}

// keptStmts bounds the statements that a connection keeps prepared. The store has fewer;
// the application's own, in its transactions, may be any number.
const keptStmts = 300

func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c *conn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	if s := c.stmts[query]; s != nil {
		delete(c.stmts, query)
		return s, nil
	}
	prepared, tail, err := c.db.Prepare(query)
	switch {
	case err != nil:
		return nil, explained(c.path, err)
	case prepared == nil || strings.TrimSpace(tail) != "":
		return nil, errors.Join(errors.New("auth: sqlite: not exactly one statement"), prepared.Close())
	}
	return &stmt{c: c, text: query, Stmt: prepared}, nil
}

func (c *conn) Close() error {
	for _, s := range c.stmts {
		_ = s.Stmt.Close() // closing the connection reports the same
	}
	return c.db.Close()
}

func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// beginning is the key of a context that ends only the wait for the write lock, and not the
// transaction.
type beginning struct{}

// BeginTx takes the write lock at once. A transaction that took it later could find that
// another one has changed its data meanwhile, and fail.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if caller, ok := ctx.Value(beginning{}).(context.Context); ok {
		ctx = caller
	}
	begin := "begin immediate"
	if opts.ReadOnly {
		begin = "begin"
	}
	if _, err := c.ExecContext(ctx, begin, nil); err != nil {
		return nil, err
	}
	c.begun = true
	return c, nil
}

// Commit cannot be interrupted, so that its result is known.
func (c *conn) Commit() error {
	if c.db.GetAutocommit() {
		c.begun = false
		return errUndone
	}
	if err := c.db.Exec("commit"); err != nil {
		return explained(c.path, errors.Join(err, c.Rollback()))
	}
	c.begun = false
	return nil
}

func (c *conn) Rollback() error {
	c.begun = false
	if c.db.GetAutocommit() {
		return nil
	}
	return c.db.Exec("rollback")
}

// ExecContext runs statements without parameters, also several.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) > 0 {
		return nil, driver.ErrSkip
	}
	if err := c.during(ctx, func() error { return c.db.Exec(query) }); err != nil {
		return nil, err
	}
	return changed{c.db.LastInsertRowID(), c.db.Changes()}, nil
}

// ResetSession has the pool drop a connection that was left within a transaction.
func (c *conn) ResetSession(context.Context) error {
	if !c.db.GetAutocommit() {
		return driver.ErrBadConn
	}
	return nil
}

type changed struct{ id, rows int64 }

func (r changed) LastInsertId() (int64, error) { return r.id, nil }
func (r changed) RowsAffected() (int64, error) { return r.rows, nil }

// stmt is a prepared statement. Closing it gives it back to the connection.
type stmt struct {
	*sqlite3.Stmt

	c    *conn
	text string
}

func (s *stmt) NumInput() int { return s.BindCount() }

func (s *stmt) Close() error {
	if len(s.c.stmts) < keptStmts && s.c.stmts[s.text] == nil {
		s.c.stmts[s.text] = s
		return nil
	}
	return s.Stmt.Close()
}

func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }
func (s *stmt) Query([]driver.Value) (driver.Rows, error)  { return nil, driver.ErrSkip }

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.bind(args); err != nil {
		return nil, err
	}
	if err := errors.Join(s.c.during(ctx, s.Stmt.Exec), s.ClearBindings()); err != nil {
		return nil, err
	}
	return changed{s.c.db.LastInsertRowID(), s.c.db.Changes()}, nil
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.bind(args); err != nil {
		return nil, err
	}
	return &rows{s: s, ctx: ctx}, nil
}

func (s *stmt) bind(args []driver.NamedValue) (err error) {
	for _, a := range args {
		if a.Name != "" {
			return errors.New("auth: sqlite: named parameters are not supported")
		}
		switch v := a.Value.(type) {
		case nil:
			err = s.BindNull(a.Ordinal)
		case int64:
			err = s.BindInt64(a.Ordinal, v)
		case bool:
			err = s.BindBool(a.Ordinal, v)
		case string:
			err = s.BindText(a.Ordinal, v)
		case []byte:
			err = s.BindBlob(a.Ordinal, v)
		case float64:
			err = s.BindFloat(a.Ordinal, v)
		case time.Time:
			err = s.BindTime(a.Ordinal, v, sqlite3.TimeFormatDefault)
		default:
			err = fmt.Errorf("auth: sqlite: a parameter of type %T", v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rows are the results of a statement. The statement stays valid until they are closed.
type rows struct {
	s   *stmt
	ctx context.Context
}

func (r *rows) Columns() []string {
	names := make([]string, r.s.ColumnCount())
	for i := range names {
		names[i] = r.s.ColumnName(i)
	}
	return names
}

func (r *rows) Close() error { return errors.Join(r.s.Reset(), r.s.ClearBindings()) }

func (r *rows) Next(dest []driver.Value) error {
	err := r.s.c.during(r.ctx, func() error {
		if !r.s.Step() && r.s.Err() == nil {
			return io.EOF
		}
		return r.s.Err()
	})
	if err != nil {
		return err
	}
	for i := range dest {
		switch r.s.ColumnType(i) {
		case sqlite3.INTEGER:
			dest[i] = r.s.ColumnInt64(i)
		case sqlite3.FLOAT:
			dest[i] = r.s.ColumnFloat(i)
		case sqlite3.TEXT:
			dest[i] = r.s.ColumnText(i)
		case sqlite3.BLOB:
			dest[i] = r.s.ColumnBlob(i, []byte{})
		default:
			dest[i] = nil
		}
	}
	return r.s.Err()
}
