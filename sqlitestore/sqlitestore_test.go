package sqlitestore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/sqlitestore"
	"github.com/authmount/auth/store"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func byTest() store.Change {
	return store.Change{Now: now, By: store.Authority{System: "test"}}
}

func open(t *testing.T, path string) *sqlitestore.Store {
	t.Helper()
	s, err := sqlitestore.Open(path)
	ok(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newUser(email string) store.CreateUser {
	return store.CreateUser{Change: byTest(), NewUser: store.NewUser{User: store.User{ID: uuid.NewString(), Email: email, CreatedAt: now, UpdatedAt: now}}}
}

// The file holds everything that a method confirmed, and the application's own version.
func TestReopened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.db")
	s, err := sqlitestore.Open(path)
	ok(t, err)
	c := newUser("ada@example.com")
	c.User.Roles, c.User.UserMetadata = []string{"b", "a"}, map[string]any{"n": 1.5}
	c.Creating = func(ctx context.Context, _ store.User) error {
		_, err := sqlitestore.Tx(ctx).ExecContext(ctx, "pragma user_version = 7")
		return err
	}
	created, err := s.CreateUser(t.Context(), c)
	ok(t, err)
	ok(t, s.Close())
	s = open(t, path)
	u, err := s.User(t.Context(), store.ByEmail("Ada@example.com"))
	if err != nil || u.ID != created.ID || strings.Join(u.Roles, " ") != "b a" || u.UserMetadata["n"] != 1.5 || !u.CreatedAt.Equal(now) {
		t.Errorf("%+v, %v", u, err)
	}
	c = newUser("bob@example.com")
	version := 0
	c.Creating = func(ctx context.Context, _ store.User) error {
		return sqlitestore.Tx(ctx).QueryRowContext(ctx, "pragma user_version").Scan(&version)
	}
	_, err = s.CreateUser(t.Context(), c)
	ok(t, err)
	if version != 7 {
		t.Errorf("user_version %d", version)
	}
}

// A file of a later program is left alone.
func TestLaterSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.db")
	s := open(t, path)
	c := newUser("")
	c.Creating = func(ctx context.Context, _ store.User) error {
		_, err := sqlitestore.Tx(ctx).ExecContext(ctx, "update auth_schema set version = 99")
		return err
	}
	_, err := s.CreateUser(t.Context(), c)
	ok(t, err)
	if late, err := sqlitestore.Open(path); err == nil || !strings.Contains(err.Error(), "99") {
		t.Errorf("%v, %v", late, err)
	}
}

// Paths that would not be one file are errors.
func TestOpenRefuses(t *testing.T) {
	for _, path := range []string{"", ":memory:", "file:x.db", t.TempDir(), filepath.Join(t.TempDir(), "none", "auth.db")} {
		if s, err := sqlitestore.Open(path); err == nil {
			t.Errorf("%q: %v", path, s)
		}
	}
}

// The application's rows and the store's take effect together, or not at all.
func TestCreatingIsOneTransaction(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "auth.db"))
	mine := errors.New("mine")
	notes := func(ctx context.Context) (n int) {
		c := newUser("")
		c.Creating = func(ctx context.Context, _ store.User) error {
			err := sqlitestore.Tx(ctx).QueryRowContext(ctx, "select count(*) from notes").Scan(&n)
			return errors.Join(err, mine)
		}
		_, _ = s.CreateUser(ctx, c) // undone
		return n
	}
	setUp := newUser("")
	setUp.Creating = func(ctx context.Context, _ store.User) error {
		_, err := sqlitestore.Tx(ctx).ExecContext(ctx, "create table notes (user_id text not null references auth_users) strict")
		return err
	}
	_, err := s.CreateUser(t.Context(), setUp)
	ok(t, err)
	for _, refuse := range []error{mine, nil} {
		c, other := newUser("ada@example.com"), newUser("bob@example.com")
		c.Creating = func(ctx context.Context, u store.User) error {
			if !s.InTransaction(ctx) || s.InTransaction(t.Context()) {
				t.Error("InTransaction")
			}
			if _, err := sqlitestore.Tx(ctx).ExecContext(ctx, "insert into notes values (?)", u.ID); err != nil {
				return err
			}
			if got, err := s.User(ctx, store.ByID(u.ID)); err != nil || got.ID != u.ID {
				t.Errorf("read within: %v", err)
			}
			if _, err := s.User(t.Context(), store.ByID(u.ID)); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("read outside, which does not wait: %v", err)
			}
			if _, err := s.CreateUser(ctx, newUser("Ada@example.com")); !errors.Is(err, store.ErrConflict) {
				t.Errorf("a refused change within: %v", err)
			}
			late := newUser("late@example.com") // refused after it was applied
			late.KeepOwner = true
			if _, err := s.CreateUser(ctx, late); !errors.Is(err, store.ErrLastOwner) {
				t.Errorf("a change within that leaves no owner: %v", err)
			}
			if _, err := s.User(ctx, store.ByID(late.User.ID)); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("the user of the refused change: %v", err)
			}
			if _, err := s.CreateUser(ctx, other); err != nil {
				t.Errorf("a change within: %v", err)
			}
			return refuse
		}
		_, err := s.CreateUser(t.Context(), c)
		if err != refuse { //nolint:errorlint // the error itself, unchanged
			t.Errorf("%v, want %v", err, refuse)
		}
		want := 1
		if refuse != nil {
			want = 0
		}
		users := 0
		for _, id := range []string{c.User.ID, other.User.ID} {
			if _, err := s.User(t.Context(), store.ByID(id)); err == nil {
				users++
			}
		}
		if n := notes(t.Context()); n != want || users != 2*want {
			t.Errorf("after %v: %d notes, %d users", refuse, n, users)
		}
	}
	if sqlitestore.Tx(t.Context()) != nil {
		t.Error("a transaction outside")
	}
}

// If the transaction is undone within Creating, which does not report it, nothing is
// stored, and statements do not take effect one by one.
func TestUndoneWithinCreating(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "auth.db"))
	c, other := newUser("ada@example.com"), newUser("bob@example.com")
	c.Messages = []store.SealedMessage{{ID: uuid.NewString(), Body: []byte("x"), CreatedAt: now, NextAt: now, ExpiresAt: now.Add(time.Hour)}}
	c.Creating = func(ctx context.Context, _ store.User) error {
		if _, err := sqlitestore.Tx(ctx).ExecContext(ctx, "rollback"); err != nil {
			t.Error(err)
		}
		if _, err := s.CreateUser(ctx, other); err == nil {
			t.Error("a change in the transaction that has ended")
		}
		return nil
	}
	if _, err := s.CreateUser(t.Context(), c); err == nil {
		t.Error("created")
	}
	for _, id := range []string{c.User.ID, other.User.ID} {
		if _, err := s.User(t.Context(), store.ByID(id)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%v", err)
		}
	}
	if list, err := s.ClaimMessages(t.Context(), store.ClaimMessages{Now: now, Until: now, Limit: 9}); err != nil || len(list) > 0 {
		t.Errorf("%d messages, %v", len(list), err)
	}
	_, err := s.CreateUser(t.Context(), newUser("ada@example.com"))
	ok(t, err)
}

// A panic of Creating undoes the change and leaves the store usable.
func TestPanicWithinCreating(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "auth.db"))
	c := newUser("ada@example.com")
	c.Creating = func(context.Context, store.User) error { panic("mine") }
	func() {
		defer func() { _ = recover() }()
		_, _ = s.CreateUser(t.Context(), c)
		t.Error("no panic")
	}()
	_, err := s.CreateUser(t.Context(), newUser("ada@example.com"))
	ok(t, err)
}

// Two handles, as of two processes: a code has its attempts once, and a refresh token
// its successor.
func TestTwoHandles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.db")
	handles := []*sqlitestore.Store{open(t, path), open(t, path)}
	code := store.Token{Purpose: store.PurposePhoneCode, Hash: []byte("right"), Subject: "+49301", CreatedAt: now, ExpiresAt: now.Add(time.Hour), MaxAttempts: 5}
	ok(t, handles[0].PutToken(t.Context(), store.PutToken{Change: byTest(), Token: code}))
	var mu sync.Mutex
	results := map[error]int{}
	var wait sync.WaitGroup
	for i := range 40 {
		wait.Go(func() {
			_, _, err := handles[i%2].RedeemCode(t.Context(), store.CodeAttempt{Change: byTest(), Purpose: code.Purpose, Subject: code.Subject, Hash: []byte("wrong")})
			mu.Lock()
			defer mu.Unlock()
			for _, known := range []error{store.ErrWrongCode, store.ErrTooManyAttempts} {
				if errors.Is(err, known) {
					err = known
				}
			}
			results[err]++
		})
	}
	wait.Wait()
	if results[store.ErrWrongCode] != 5 || results[store.ErrTooManyAttempts] != 35 {
		t.Errorf("%v", results)
	}
	c := newUser("ada@example.com")
	sess := store.Session{ID: uuid.NewString(), UserID: c.User.ID, AAL: store.LevelAAL1, CreatedAt: now, LastActiveAt: now, RotatedAt: now, IdleUntil: now.Add(time.Hour)}
	c.Session = &sess
	_, err := handles[0].CreateUser(t.Context(), c)
	ok(t, err)
	for i := range 40 {
		wait.Go(func() {
			if _, _, err := handles[i%2].AdvanceSession(t.Context(), store.Advance{Change: byTest(), SessionID: sess.ID, Grace: time.Minute, IdleUntil: now.Add(time.Hour)}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got, _, err := handles[1].Session(t.Context(), sess.ID, now); err != nil || got.Counter != 1 {
		t.Errorf("counter %d, %v", got.Counter, err)
	}
}

// Secrets are in no error, and an error of the file is no outcome.
func TestErrorsOfTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.db")
	s := open(t, path)
	c := newUser("")
	c.Creating = func(ctx context.Context, _ store.User) error {
		_, err := sqlitestore.Tx(ctx).ExecContext(ctx, "create trigger refuse before insert on auth_tokens begin select raise(abort, 'no tokens'); end")
		return err
	}
	_, err := s.CreateUser(t.Context(), c)
	ok(t, err)
	err = s.PutToken(t.Context(), store.PutToken{Change: byTest(), Token: store.Token{Purpose: store.PurposeReset, Hash: []byte("the hash"), Subject: "the subject", CreatedAt: now, ExpiresAt: now.Add(time.Hour)}})
	if err == nil || !strings.HasPrefix(err.Error(), "auth: sqlite: ") || !strings.Contains(err.Error(), "no tokens") {
		t.Fatal(err)
	}
	for _, secret := range []string{"the hash", "the subject", "insert"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%v names %q", err, secret)
		}
	}
	for _, outcome := range []error{store.ErrConflict, store.ErrNotFound, store.ErrStale} {
		if errors.Is(err, outcome) {
			t.Errorf("%v is %v", err, outcome)
		}
	}
}

// Text that SQL or JSON could change comes back as it was.
func TestStrangeTexts(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "auth.db"))
	for _, text := range []string{"a\x00b", "'\"\\", "%_*", "\u2028é\U0010FFFF", "{}"} {
		c := newUser("")
		c.User.FullName, c.User.Roles = text, []string{text, text}
		c.User.Identities = []store.Identity{{ID: uuid.NewString(), Provider: text, Subject: text, Email: text, CreatedAt: now}}
		c.User.AppMetadata = map[string]any{text: text}
		_, err := s.CreateUser(t.Context(), c)
		ok(t, err)
		u, err := s.User(t.Context(), store.ByIdentity(text, text))
		if err != nil || u.FullName != text || len(u.Roles) != 2 || u.Roles[1] != text || u.Identities[0].Subject != text || u.AppMetadata[text] != text {
			t.Errorf("%q: %+v, %v", text, u, err)
		}
		for what, q := range map[string]store.UserQuery{"role": {Role: text}, "metadata": {Metadata: map[string]string{text: text}}, "name": {Prefix: text}} {
			q.Limit = 9
			if list, err := s.ListUsers(t.Context(), q); err != nil || len(list) != 1 {
				t.Errorf("%q by %s: %d users, %v", text, what, len(list), err)
			}
		}
	}
}

// Nothing is registered with database/sql, and importers of the root do not get a driver.
func TestDriverIsPrivate(t *testing.T) {
	if names := sql.Drivers(); len(names) > 0 {
		t.Errorf("registered: %v", names)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	list.Dir = ".."
	out, err := list.Output()
	ok(t, err)
	if bytes.Contains(out, []byte("sqlite")) {
		t.Error("the root depends on SQLite")
	}
}

// A link to the file finds the same -wal and -shm.
func TestLinkToTheFile(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "auth.db"), filepath.Join(dir, "link.db")
	s := open(t, path)
	ok(t, os.Symlink(path, link))
	c := newUser("ada@example.com")
	_, err := s.CreateUser(t.Context(), c)
	ok(t, err)
	if _, err := open(t, link).User(t.Context(), store.ByID(c.User.ID)); err != nil {
		t.Error(err)
	}
	if stray, err := filepath.Glob(link + "-*"); err != nil || len(stray) > 0 {
		t.Errorf("%v, %v", stray, err)
	}
}
