package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

// fixed is an id that is the same in each run.
func fixed(name string) string { return uuid.NewSHA1(uuid.Nil, []byte(name)).String() }

var scriptTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func scripted(name string) store.Change {
	return store.Change{
		Now: scriptTime, By: store.Authority{System: "test"},
		Events:   []store.OutcomeEvent{{On: store.OutcomeDone, Event: store.Event{ID: fixed("event " + name), Type: "test", At: scriptTime, UserID: fixed(name)}}},
		Messages: []store.SealedMessage{{ID: fixed("message " + name), Body: []byte("body"), CreatedAt: scriptTime, NextAt: scriptTime, ExpiresAt: scriptTime.Add(time.Hour)}},
	}
}

// script is a series of changes of several rows each, with copies of the log into the file
// between them. The same series has the same result.
func script() []func(context.Context, *Store) error {
	token := func(name string) store.Token {
		return store.Token{Purpose: store.PurposeReset, Hash: []byte("token of " + name), Subject: name, UserID: fixed(name), CreatedAt: scriptTime, ExpiresAt: scriptTime.Add(time.Hour)}
	}
	signUp := func(name string) func(context.Context, *Store) error {
		return func(ctx context.Context, s *Store) error {
			n := store.NewUser{User: store.User{ID: fixed(name), Email: name + "@example.com", Roles: []string{"a", "b"}, CreatedAt: scriptTime, UpdatedAt: scriptTime}, PasswordHash: "first", Tokens: []store.Token{token(name)}}
			n.Session = &store.Session{ID: fixed("session " + name), UserID: n.User.ID, AAL: store.LevelAAL1, CreatedAt: scriptTime, LastActiveAt: scriptTime, RotatedAt: scriptTime, IdleUntil: scriptTime.Add(time.Hour)}
			_, err := s.CreateUser(ctx, store.CreateUser{Change: scripted(name), NewUser: n})
			return err
		}
	}
	reset := func(name string) func(context.Context, *Store) error {
		return func(ctx context.Context, s *Store) error {
			next := "second"
			_, _, err := s.RedeemToken(ctx, store.Redemption{Change: scripted("reset " + name), Purpose: store.PurposeReset, Hash: token(name).Hash, Effect: store.Effect{Patch: &store.UserPatch{PasswordHash: &next, Revoke: &store.SessionFilter{}}}})
			return err
		}
	}
	refresh := func(name string, counter uint32) func(context.Context, *Store) error {
		return func(ctx context.Context, s *Store) error {
			_, _, err := s.AdvanceSession(ctx, store.Advance{Change: scripted(fmt.Sprint("refresh ", name, counter)), SessionID: fixed("session " + name), Counter: counter, IdleUntil: scriptTime.Add(2 * time.Hour)})
			return err
		}
	}
	copyLog := func(ctx context.Context, s *Store) error {
		var busy, pages, copied int
		return s.writer.QueryRowContext(ctx, `pragma wal_checkpoint(restart)`).Scan(&busy, &pages, &copied)
	}
	return []func(context.Context, *Store) error{
		signUp("ada"), refresh("ada", 0), signUp("bob"), copyLog,
		reset("ada"), refresh("bob", 0), copyLog, refresh("bob", 1), signUp("cyd"),
		func(ctx context.Context, s *Store) error {
			return s.DeleteUser(ctx, store.DeleteUser{Change: scripted("delete bob"), UserID: fixed("bob")})
		},
		reset("cyd"), copyLog, signUp("dan"),
	}
}

// contents returns all rows of a file, or its problem.
func contents(t *testing.T, path string) string {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		return err.Error()
	}
	defer s.Close() //nolint:errcheck // of a test
	var all strings.Builder
	err = s.snapshot(t.Context(), func(x *tx) error {
		if got := strings.Join(values[string](x, `pragma integrity_check`), "; "); got != "ok" {
			return errors.New(got)
		}
		if x.exists(`select 1 from pragma_foreign_key_check`) {
			return errors.New("a row without its parent")
		}
		for _, table := range values[string](x, `select name from sqlite_schema where type = 'table' and name like 'auth\_%' escape '\' order by name`) {
			columns := values[string](x, `select name from pragma_table_info(?)`, table)
			for _, row := range values[string](x, `select quote(`+strings.Join(columns, `) || ' ' || quote(`)+`) from `+table+` order by 1`) {
				fmt.Fprintln(&all, table, row)
			}
		}
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return all.String()
}

// rehearsal returns the contents before the script and after each of its changes, and the
// operations that it takes.
func rehearsal(t *testing.T) (states []string, done []operation) {
	t.Helper()
	content, err := empty()
	if err != nil {
		t.Fatal(err)
	}
	d := newDisk(t, 0)
	path := d.put(t, "auth.db", content)
	s, err := Open(path, d.on())
	if err != nil {
		t.Fatal(err)
	}
	states = []string{contents(t, path)}
	for i, step := range script() {
		if err := step(t.Context(), s); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		states = append(states, contents(t, path))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return states, d.done
}

// some leaves out most writes, because there are many and they are much alike.
func some(n int, what operation, every int) bool { return what != opWrite || n%every == 0 }

// A power failure at any operation loses no acknowledged change, and the change that it
// interrupts took place as a whole or not at all.
func TestPowerFailure(t *testing.T) {
	states, done := rehearsal(t)
	for n, what := range done {
		if !some(n, what, 7) {
			continue
		}
		if lost, err := interrupted(t, n+1, states, nil); err != nil {
			t.Errorf("power failure at operation %d, %s: %v", n+1, what, err)
		} else if lost != "" {
			t.Errorf("power failure at operation %d, %s: %s", n+1, what, lost)
		}
	}
	t.Logf("%d operations", len(done))
}

// A power failure while the tables are created leaves a file that can be opened.
func TestPowerFailureAtFirst(t *testing.T) {
	states, _ := rehearsal(t)
	first := newDisk(t, 0)
	s, err := Open(first.put(t, "auth.db", nil), first.on())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for n, what := range first.done {
		if !some(n, what, 41) {
			continue
		}
		d := newDisk(t, uint64(n)) //nolint:gosec // not negative
		d.failAt = n + 1
		if s, err := Open(d.put(t, "auth.db", nil), d.on()); err == nil {
			_ = s.Close() // without power
		}
		if got := contents(t, d.survivors(t, "auth.db")); !d.failed || got != states[0] {
			t.Errorf("power failure at operation %d, %s: %s", n+1, what, found(got, states))
		}
	}
}

// The disk of these tests notices a store that does not wait for it.
func TestPowerFailureWithoutSyncs(t *testing.T) {
	states, done := rehearsal(t)
	losses := 0
	for n := range done {
		if n%50 != 40 {
			continue
		}
		if lost, _ := interrupted(t, n+1, states, func(db *sql.DB) error {
			_, err := db.ExecContext(t.Context(), `pragma synchronous = off`)
			return err
		}); lost != "" {
			losses++
		}
	}
	if losses == 0 {
		t.Error("no power failure lost anything")
	}
}

// interrupted runs the script until a power failure, and returns how the contents differ
// from those of the acknowledged changes.
func interrupted(t *testing.T, at int, states []string, prepare func(*sql.DB) error) (lost string, err error) {
	t.Helper()
	content, err := empty()
	if err != nil {
		return "", err
	}
	d := newDisk(t, uint64(at)) //nolint:gosec // not negative
	path := d.put(t, "auth.db", content)
	d.failAt = at
	acknowledged := 0
	s, err := Open(path, d.on())
	if err == nil && prepare != nil {
		err = prepare(s.writer)
	}
	if err == nil {
		for _, step := range script() {
			if step(t.Context(), s) != nil {
				break
			}
			acknowledged++
		}
		_ = s.Close() // without power
	}
	if !d.failed {
		return "", errors.New("it did not happen")
	}
	switch got := contents(t, d.survivors(t, "auth.db")); {
	case got == states[acknowledged], acknowledged+1 < len(states) && got == states[acknowledged+1]:
		return "", nil
	default:
		return fmt.Sprintf("after %d acknowledged changes, %s", acknowledged, found(got, states)), nil
	}
}

func found(got string, states []string) string {
	for i, s := range states {
		if s == got {
			return fmt.Sprintf("those of %d are there", i)
		}
	}
	return "the file holds: " + got
}

// After an error of the disk or a full disk at any operation the change has taken place as a
// whole or not at all, can be repeated, and the store works on. If a sync fails, its writes
// are lost, also for later syncs that succeed; a power failure at the end loses nothing.
func TestDiskErrors(t *testing.T) {
	states, done := rehearsal(t)
	for what, how := range map[string]fault{"disk error": diskError, "full": diskFull, "lost sync": lostSync} {
		for n, op := range done {
			grows := op == opWrite || op == opTruncate
			if !some(n, op, 23) || how == diskFull && !grows || how == lostSync && op != opSync {
				continue
			}
			if err := persisted(t, n+1, how, states); err != nil {
				t.Errorf("%s at operation %d, %s: %v", what, n+1, op, err)
			}
		}
	}
}

// persisted runs the script to its end, although an operation fails.
func persisted(t *testing.T, at int, how fault, states []string) error {
	t.Helper()
	content, err := empty()
	if err != nil {
		return err
	}
	d := newDisk(t, uint64(at)) //nolint:gosec // not negative
	path := d.put(t, "auth.db", content)
	d.failAt, d.how = at, how
	s, err := Open(path, d.on())
	if err != nil {
		if s, err = Open(path, d.on()); err != nil {
			return fmt.Errorf("opened again: %w", err)
		}
	}
	steps := script()
	for i := 0; i < len(steps); i++ {
		err := steps[i](t.Context(), s)
		if err == nil {
			continue
		}
		if how == diskFull && !strings.Contains(err.Error(), "the disk is full: "+path) {
			return fmt.Errorf("the error of a full disk: %w", err)
		}
		switch contents(t, path) {
		case states[i]:
			if err := steps[i](t.Context(), s); err != nil {
				return fmt.Errorf("step %d, repeated: %w", i, err)
			}
		case states[i+1]: // it took place
		default:
			return fmt.Errorf("step %d took place partly: %w", i, err)
		}
	}
	if how != lostSync {
		_ = s.Close()
	} else {
		d.off = true    // a power failure
		defer s.Close() //nolint:errcheck // without power
	}
	if got := contents(t, d.survivors(t, "auth.db")); got != states[len(states)-1] {
		return errors.New("at the end, " + found(got, states))
	}
	return nil
}
