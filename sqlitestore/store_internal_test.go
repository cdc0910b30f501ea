package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
	"github.com/authmount/auth/storetest"
)

// empty is the content of a file with the schema and no rows. Creating the tables takes
// longer than most checks.
var empty = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "sqlitestore")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of a test
	path := filepath.Join(dir, "auth.db")
	s, err := Open(path)
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// file returns the path of a new file with the schema and no rows.
func file(t *testing.T) string {
	t.Helper()
	content, err := empty()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "auth.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func opened(t *testing.T) *Store {
	t.Helper()
	s, err := Open(file(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return opened(t) })
}

// Every connection, not only the first, waits for the disk and for other processes, and
// checks foreign keys.
func TestEveryConnection(t *testing.T) {
	s := opened(t)
	for name, db := range map[string]*sql.DB{"writer": s.writer, "reader": s.reader} {
		n := db.Stats().MaxOpenConnections
		for i := range n { // all at the same time, so that each is another one
			c, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close() //nolint:errcheck // of a test
			for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "10000", "temp_store": "2", "secure_delete": "2", "journal_size_limit": "8388608"} {
				var got string
				if err := c.QueryRowContext(t.Context(), "pragma "+pragma).Scan(&got); err != nil || got != want {
					t.Errorf("%s, connection %d of %d: %s = %q, %v; want %q", name, i+1, n, pragma, got, err, want)
				}
			}
		}
	}
}

// lateConnector is a driver whose transactions do not take the write lock, as the defaults
// of others.
type lateConnector struct{ connector }

func (c *lateConnector) Connect(ctx context.Context) (driver.Conn, error) {
	made, err := c.connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &lateConn{made.(*conn)}, nil
}

type lateConn struct{ *conn }

func (c *lateConn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	if _, err := c.ExecContext(ctx, "begin", nil); err != nil {
		return nil, err
	}
	c.begun = true
	return c.conn, nil
}

// The application's own handle serves the contract, also if its driver begins transactions
// without the write lock. Many changes at once stand for many processes: only the file's
// lock keeps them apart. The optional interfaces use the same transactions, so the run leaves
// them to TestStore.
func TestHandleOfTheApplication(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		db := sql.OpenDB(&lateConnector{connector{path: file(t), busy: time.Minute}})
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		db.SetMaxOpenConns(8)
		s, err := New(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		s.turns.off = true
		return struct{ store.Store }{s}
	})
}

// If the application's handle has one connection, even a read within a transaction needs its
// context.
func TestOneConnection(t *testing.T) {
	db := sql.OpenDB(&connector{path: file(t), busy: time.Minute})
	defer db.Close() //nolint:errcheck // of a test
	db.SetMaxOpenConns(1)
	s, err := New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	err = s.InTx(t.Context(), func(ctx context.Context, _ *sql.Tx) error {
		_, read := s.Settings(t.Context())
		_, snapshot := s.Roles(t.Context())
		if !errors.Is(read, ErrOtherContext) || !errors.Is(snapshot, ErrOtherContext) {
			t.Errorf("with another context: %v, %v", read, snapshot)
		}
		_, read = s.Settings(ctx)
		_, snapshot = s.Roles(ctx)
		return errors.Join(read, snapshot)
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := s.Settings(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A goroutine that a transaction waits for is not told apart from other requests. Its change
// does not wait for ever.
func TestWaitingEnds(t *testing.T) {
	s := opened(t)
	s.wait = time.Millisecond
	err := s.InTx(t.Context(), func(context.Context, *sql.Tx) error {
		done := make(chan error)
		go func() { done <- s.Ping(context.WithoutCancel(t.Context())) }()
		if err := <-done; !errors.Is(err, errOccupied) {
			t.Errorf("%v, want errOccupied", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// New refuses a handle whose connections would leave rows behind or fail at once.
func TestNewChecksTheHandle(t *testing.T) {
	for what, set := range map[string]string{"foreign keys": "pragma foreign_keys = off", "no waiting": "pragma busy_timeout = 0", "no log": "pragma journal_mode = delete"} {
		db := sql.OpenDB(&connector{path: filepath.Join(t.TempDir(), "app.db"), busy: time.Second})
		db.SetMaxOpenConns(1)
		if _, err := db.ExecContext(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		if s, err := New(t.Context(), db); err == nil {
			t.Errorf("%s: %v", what, s)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The application's reads do not wait for changes, and change nothing.
func TestReadsOfTheApplication(t *testing.T) {
	s := opened(t)
	err := s.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `create table notes (text text)`); err != nil {
			return err
		}
		var n int
		if err := s.ReadOnly().QueryRowContext(t.Context(), `select count(*) from sqlite_schema where name = 'notes'`).Scan(&n); err != nil || n != 0 {
			t.Errorf("during the change: %d, %v", n, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReadOnly().ExecContext(t.Context(), `insert into notes values ('x')`); err == nil {
		t.Error("written")
	}
	var n int
	if err := s.ReadOnly().QueryRowContext(t.Context(), `select count(*) from notes`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
}

// A list that reads too much ends, and the error does not look like an outage.
func TestPatience(t *testing.T) {
	s := opened(t)
	s.patience = time.Millisecond
	endless := &query{sql: `with recursive n (i) as (select 1 union all select i + 1 from n) select count(*) from n`}
	if _, err := listed(t.Context(), s, endless, scanEvent); !errors.Is(err, store.ErrTooBroad) {
		t.Errorf("%v, want ErrTooBroad", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	s.patience = time.Hour
	if _, err := listed(ctx, s, endless, scanEvent); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrTooBroad) {
		t.Errorf("%v, want the context's error", err)
	}
	if _, err := s.Settings(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Frequent statements, and lists without filters that no index serves, read no whole table.
func TestPlans(t *testing.T) {
	s := opened(t)
	id, now := uuid.NewString(), time.Now()
	pick := func(b *query, q *store.UserQuery) (few bool) {
		if err := s.read(t.Context(), func(tx *tx) error { few = tx.pick(b, q); return nil }); err != nil {
			t.Error(err)
		}
		return few
	}
	users := func(q store.UserQuery) query {
		var b query
		q.Limit, q.Now = 50, now
		b.pageOfUsers(&q, pick(&b, &q))
		return b
	}
	ordered := func(q store.UserQuery) query {
		q.Limit, q.After = 50, &store.UserCursor{Time: now, Email: "x", ID: id}
		var b query
		for _, w := range waysOf(&q) {
			b.where(cmp.Or(w.ordered, w.check), w.args...)
		}
		b.pickUsers(&q)
		b.pageOfUsers(&q, false)
		return b
	}
	yes := true
	for name, q := range map[string]query{
		"by email":                    {selectUsers + ` where u.email_key = ?`, []any{"x"}},
		"by identity":                 {selectUsers + ` where u.id = (select i.user_id from auth_identities i where i.provider = ? and i.subject = ?)`, []any{"x", "x"}},
		"session":                     {selectSessions + ` where s.id = ?`, []any{id}},
		"token":                       {selectTokens + ` where t.purpose = ? and t.hash = ? and t.expires_at > ?`, []any{"x", []byte("x"), 1}},
		"owner":                       {anOwner, []any{1}},
		"created order":               ordered(store.UserQuery{Sort: store.SortCreated, Desc: true}),
		"sign-in order":               ordered(store.UserQuery{Sort: store.SortSignedIn, Desc: true}),
		"email order":                 ordered(store.UserQuery{Sort: store.SortEmail}),
		"many found in created order": ordered(store.UserQuery{Prefix: "a", Domain: "example.com", Role: "admin", Metadata: map[string]string{"plan": "pro"}}),
		"many found in sign-in order": ordered(store.UserQuery{Prefix: "a", Domain: "example.com", Role: "admin", Metadata: map[string]string{"plan": "pro"}, Sort: store.SortSignedIn}),
		"many found in email order":   ordered(store.UserQuery{Prefix: "a", Domain: "example.com", Role: "admin", Metadata: map[string]string{"plan": "pro"}, Sort: store.SortEmail}),
		"prefix":                      users(store.UserQuery{Prefix: "ada"}),
		"domain":                      users(store.UserQuery{Domain: "example.com", Sort: store.SortEmail}),
		"metadata":                    users(store.UserQuery{Metadata: map[string]string{"plan": "pro"}}),
		"domain and metadata":         users(store.UserQuery{Domain: "example.com", Metadata: map[string]string{"plan": "pro"}}),
		"few and more":                users(store.UserQuery{Metadata: map[string]string{"plan": "pro"}, CreatedFrom: now, Banned: &yes}),
		"role":                        users(store.UserQuery{Role: "admin"}),
		"waiting":                     users(store.UserQuery{Waiting: []string{"owner"}, Now: now}),
		"banned":                      users(store.UserQuery{Banned: &yes, Now: now}),
		"identity":                    users(store.UserQuery{Provider: "p", Subject: "s"}),
		"events":                      {`select event from auth_events where true and type = ? order by at desc, id desc limit 50`, []any{"x"}},
		"all events":                  {`select event from auth_events where true order by at desc, id desc limit 50`, nil},
		"impersonation":               {selectImpersonations + ` where i.id = ?2 and ` + liveImpersonation, []any{1, id}},
		"user deleted":                {`delete from auth_users where id = ?`, []any{id}},
	} {
		err := s.read(t.Context(), func(tx *tx) error {
			for _, step := range list(tx, func(scan row) (detail string) {
				var skip any
				scan(&skip, &skip, &skip, &detail)
				return detail
			}, `explain query plan `+q.sql, q.args...) {
				small := strings.Contains(step, "json_each") || strings.Contains(step, "VIRTUAL TABLE") || step == "SCAN CONSTANT ROW" || step == "SCAN auth_project"
				if strings.HasPrefix(step, "SCAN") && !small && name != "all events" || strings.Contains(name, "order") && strings.Contains(step, "TEMP B-TREE FOR ORDER BY") {
					t.Errorf("%s: %s", name, step)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A bound that is no whole microsecond picks the same rows as before they were stored.
func TestUpward(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	if got := upward(at); got != at.UnixMicro() {
		t.Errorf("%d, want %d", got, at.UnixMicro())
	}
	if got := upward(at.Add(1)); got != at.UnixMicro()+1 {
		t.Errorf("%d, want %d", got, at.UnixMicro()+1)
	}
}
