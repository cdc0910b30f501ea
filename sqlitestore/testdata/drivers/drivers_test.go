// Package drivers has a module of its own, so that importers of Authmount never see these
// drivers.
package drivers

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"
	_ "modernc.org/sqlite"

	"github.com/authmount/auth/sqlitestore"
	"github.com/authmount/auth/store"
	"github.com/authmount/auth/storetest"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// dsn has the pragmas that New requires, in each driver's own form.
func dsn(driver, path string) string {
	o := url.Values{"_pragma": {"journal_mode(WAL)", "foreign_keys(ON)", "busy_timeout(10000)", "synchronous(OFF)"}}
	if driver == "sqlite3" {
		o = url.Values{"_journal_mode": {"WAL"}, "_foreign_keys": {"on"}, "_busy_timeout": {"10000"}, "_synchronous": {"OFF"}}
	}
	return "file:" + path + "?" + o.Encode()
}

func handle(t *testing.T, driver, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn(driver, path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	db.SetMaxOpenConns(8)
	return db
}

// Two drivers and sqlitestore's own live in one program, under the drivers' usual names.
func TestTogether(t *testing.T) {
	for _, name := range []string{"sqlite", "sqlite3"} {
		if !slices.Contains(sql.Drivers(), name) {
			t.Errorf("registered: %v", sql.Drivers())
		}
	}
	own, err := sqlitestore.Open(filepath.Join(t.TempDir(), "auth.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close() //nolint:errcheck // of a test
	for _, driver := range []string{"sqlite", "sqlite3"} {
		db := handle(t, driver, filepath.Join(t.TempDir(), "app.db"))
		s, err := sqlitestore.New(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(own.Ping(t.Context()), s.Ping(t.Context())); err != nil {
			t.Error(err)
		}
		err = s.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "create table notes (text text not null) strict")
			if err == nil {
				_, err = s.PutSettings(ctx, store.PutSettings{Change: store.Change{Now: start, By: store.Authority{System: "test"}}, Document: []byte("{}")})
			}
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", driver, err)
		}
		if found, err := s.Settings(t.Context()); err != nil || found.Revision != 1 {
			t.Errorf("%s: %+v, %v", driver, found, err)
		}
		if _, err := db.ExecContext(t.Context(), "insert into notes values ('mine')"); err != nil {
			t.Errorf("%s: the application's own table: %v", driver, err)
		}
	}
}

// The conformance suite, on a handle of the driver without cgo.
func TestStore(t *testing.T) {
	// Creating the tables takes longer than most checks.
	path := filepath.Join(t.TempDir(), "empty.db")
	own, err := sqlitestore.Open(path)
	if err == nil {
		err = own.Close()
	}
	empty, unread := os.ReadFile(path)
	if err := errors.Join(err, unread); err != nil {
		t.Fatal(err)
	}
	storetest.Run(t, func(t *testing.T) store.Store {
		path := filepath.Join(t.TempDir(), "app.db")
		if err := os.WriteFile(path, empty, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := sqlitestore.New(t.Context(), handle(t, "sqlite", path))
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
