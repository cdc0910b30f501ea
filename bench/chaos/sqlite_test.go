//go:build faults

package chaos

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/authmount/auth/sqlitestore"
)

// fileRows returns the first column of a statement on a file, which a server may have open.
func fileRows(t *testing.T, path, sql string) (all []string) {
	t.Helper()
	db, err := sqlite3.Open("file:" + path + "?mode=rw")
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := db.Prepare(sql)
	if err != nil {
		t.Fatal(err)
	}
	for s.Step() {
		all = append(all, s.ColumnText(0))
	}
	if err := errors.Join(s.Err(), s.Close(), db.Close()); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return all
}

// wholeFile is whole for a file of SQLite.
func wholeFile(t *testing.T, path string) {
	t.Helper()
	for sql, want := range map[string][]string{
		"pragma integrity_check":   {"ok"},
		"pragma foreign_key_check": nil,
		"select id from auth_users u where password_hash <> '' and not exists (select 1 from auth_sessions s where s.user_id = u.id)":                                                              nil,
		"select id from auth_users u where email_verified_at is null and email_key is not null and not exists (select 1 from auth_tokens t where t.user_id = u.id and t.purpose = 'verify_email')": nil,
		"select id from auth_users u where not exists (select 1 from auth_events e where e.user_id = u.id and e.type = 'user.signed_up')":                                                          nil,
	} {
		if got := fileRows(t, path, sql); !slices.Equal(got, want) {
			t.Errorf("%s: %v", sql, got)
		}
	}
}

// The only server on a file is killed and started again, several times. The load repeats
// requests without an answer.
func TestServerOnSQLiteKilledUnderLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.db")
	s := serve(t, "sqlite:"+path, "-no-rate-limit")
	l := begin(t, 90, s)
	l.mu.Lock()
	l.cuts = true
	l.mu.Unlock()
	for range 5 {
		l.flows(40, 30*time.Second)
		eventually(t, 30*time.Second, "requests in flight", func() bool { return s.inflight.Load() >= 2 })
		s.p.kill(syscall.SIGKILL)
		if got := s.p.cmd.ProcessState.String(); got != "signal: killed" {
			t.Errorf("server ended of itself: %s", got)
		}
		if log, err := os.Stat(path + "-wal"); err != nil || log.Size() == 0 {
			t.Errorf("nothing to recover: %v", err)
		}
		l.mu.Lock()
		refused := l.refused
		l.mu.Unlock()
		eventually(t, 30*time.Second, "a refused connection", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.refused > refused
		})
		s.start(t)
	}
	l.flows(40, 30*time.Second)
	l.end()
	l.report()
	if l.cut == 0 {
		t.Error("no request lost its connection: the kills came at the wrong moment")
	}
	if l.unavailable > 0 {
		t.Errorf("%d answers of 503, and the file was there", l.unavailable)
	}
	s.alive(t)
	l.verify(s, "sqlite:"+path)
	s.p.kill(syscall.SIGKILL)
	restored(t, path)
}

// restored replaces the file of a killed server with a backup of it, which has all accounts
// and no live session.
func restored(t *testing.T, path string) {
	t.Helper()
	users := fileRows(t, path, "select id from auth_users order by id")
	st, err := sqlitestore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	backup := path + ".backup"
	err = errors.Join(st.Backup(t.Context(), backup), st.Close())
	if err == nil {
		err = sqlitestore.Restore(t.Context(), backup, path)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := fileRows(t, path, "select id from auth_users order by id"); !slices.Equal(got, users) || len(users) == 0 {
		t.Errorf("%d users, %d before", len(got), len(users))
	}
	if live := fileRows(t, path, "select id from auth_sessions where revoked = 0"); len(live) > 0 {
		t.Errorf("%d live sessions", len(live))
	}
}

// While the disk is full, changes are answered with 503 and nothing is lost; the same process
// works on once there is space.
func TestServerOnSQLiteWithFullDisk(t *testing.T) {
	dir, fill, free := smallFileSystem(t, "48m")
	if dir == "" {
		return // it was reported
	}
	path := filepath.Join(dir, "auth.db")
	s := serve(t, "sqlite:"+path, "-no-rate-limit")
	l := begin(t, 90, s)
	for range 2 {
		l.flows(40, 30*time.Second)
		fill()
		_, before := l.count()
		eventually(t, 60*time.Second, "answers of 503", func() bool {
			_, n := l.count()
			return n >= before+30
		})
		if out := strings.Join(s.p.tail(), "\n"); !strings.Contains(out, "the disk is full: "+path) {
			t.Errorf("not for the disk's sake:\n%s", out)
		}
		free()
		l.up()
	}
	l.end()
	l.report()
	l.verify(s, "sqlite:"+path)
}
