package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/authmount/auth/store"
)

// Calls that goroutines make in one transaction do not undo each other's work.
func TestParallelWithin(t *testing.T) {
	s := opened(t)
	must(t, s.InTx(t.Context(), func(ctx context.Context, _ *sql.Tx) error {
		in, ended := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		var first, second error
		wg.Go(func() {
			first = s.write(ctx, func(x *tx) error {
				x.exec(`insert into auth_limits values ('first', 1, 1)`)
				close(in)
				for range 1000 { // the second would begin meanwhile
					runtime.Gosched()
				}
				return errOfTest
			})
			close(ended)
		})
		<-in
		wg.Go(func() {
			second = s.write(ctx, func(x *tx) error {
				x.exec(`insert into auth_limits values ('second', 1, 1)`)
				<-ended
				return nil
			})
		})
		wg.Wait()
		if !errors.Is(first, errOfTest) || second != nil {
			t.Errorf("%v, %v", first, second)
		}
		return nil
	}))
	if n := s.count(t, `select count(*) from auth_limits where key = 'first'`); n != 0 {
		t.Error("a failed change stands")
	}
	if n := s.count(t, `select count(*) from auth_limits where key = 'second'`); n != 1 {
		t.Error("an acknowledged change was undone")
	}
}

// A call that still runs when f returns is not committed in part.
func TestWithinOutlives(t *testing.T) {
	s := opened(t)
	out := make(chan struct{})
	var wg sync.WaitGroup
	var late error
	var left context.Context
	err := s.InTx(t.Context(), func(ctx context.Context, x *sql.Tx) error {
		in := make(chan struct{})
		left = ctx
		wg.Go(func() {
			late = s.write(ctx, func(x *tx) error {
				x.exec(`insert into auth_limits values ('half', 1, 1)`)
				close(in)
				<-out
				x.exec(`insert into auth_limits values ('whole', 1, 1)`)
				return nil
			})
		})
		<-in
		return nil
	})
	close(out)
	wg.Wait()
	if !errors.Is(err, errOutlives) || late == nil {
		t.Errorf("%v, %v", err, late)
	}
	if n := s.count(t, `select count(*) from auth_limits`); n != 0 {
		t.Error("half a change was committed")
	}
	if err := s.Ping(left); !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("a call after the end: %v", err)
	}
}

// A backup whose schema was changed is refused, and triggers in it do not keep what Restore ends.
func TestRestoreOfCraftedFile(t *testing.T) {
	for name, crafted := range map[string]string{
		"a column with a default":   `alter table auth_sessions add column x integer not null default 1`,
		"a trigger that ignores":    `create trigger x before update on auth_sessions begin select raise(ignore); end; create trigger y before delete on auth_tokens begin select raise(ignore); end`,
		"a trigger that undoes":     `create trigger x after update of revoked on auth_sessions when new.revoked = 1 begin update auth_sessions set revoked = 0 where id = new.id; end`,
		"a missing trigger":         `drop trigger auth_session_revoked`,
		"a trigger with other work": `drop trigger auth_session_revoked; create trigger auth_session_revoked after update of revoked on auth_sessions begin select 1; end`,
		"a view":                    `alter table auth_tokens rename to kept; create view auth_tokens as select * from kept; create trigger z instead of delete on auth_tokens begin select 1; end`,
		"a missing unique index":    `drop index auth_tokens_subject`,
	} {
		s := opened(t)
		_, err := s.writer.ExecContext(t.Context(), rows1)
		must(t, err)
		_, err = s.writer.ExecContext(t.Context(), crafted)
		must(t, err)
		from := backupRaw(t, s)
		to := filepath.Join(t.TempDir(), "auth.db")
		err = Restore(t.Context(), from, to)
		if !strings.Contains(name, "a trigger that") {
			if err == nil || !strings.Contains(err.Error(), "the schema of this package") {
				t.Errorf("%s: %v", name, err)
			}
			if exists(to) {
				t.Errorf("%s: the file was created", name)
			}
			continue
		}
		must(t, err)
		r := reopened(t, to)
		if n := r.count(t, `select (select count(*) from auth_sessions where revoked = 0) + (select count(*) from auth_tokens)`); n != 0 {
			t.Errorf("%s: %d sessions and links stayed valid", name, n)
		}
	}
}

func backupRaw(t *testing.T, s *Store) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup.db")
	_, err := s.reader.ExecContext(t.Context(), `vacuum into ?`, path)
	must(t, err)
	return path
}

// A link to a file that does not exist yet is followed as one to a file: Open refuses it on a network file
// system, and keeps -wal and -shm beside the file.
func TestOpenDanglingLink(t *testing.T) {
	local, far := t.TempDir(), t.TempDir()
	link, real := filepath.Join(local, "auth.db"), filepath.Join(far, "auth.db")
	must(t, os.Symlink(real, link))
	a, err := Open(link, func(c *connector) {
		c.kind = func(path string) string {
			if p, err := filepath.EvalSymlinks(path); err == nil {
				path = p
			}
			if path == real || path == far {
				return "NFS"
			}
			return ""
		}
	})
	if err == nil {
		t.Error("opened on NFS")
		_ = a.Close()
	}
	_ = os.Remove(real)
	a = reopened(t, link)
	_, err = a.CreateUser(t.Context(), user1("ada"))
	must(t, err)
	b := reopened(t, link)
	if n := b.count(t, `select count(*) from auth_users`); n != 1 {
		t.Errorf("%d users", n)
	}
	if got := names(t, local); !slices.Equal(got, []string{"auth.db"}) {
		t.Errorf("beside the link: %v", got)
	}
}

// No character in a name keeps an account from lists of its prefix.
func TestPrefixBeforeAnyCharacter(t *testing.T) {
	s := opened(t)
	c := user1("ada")
	c.User.FullName = "Ada\U0010FFFFx Eve\U0010FFFFx"
	_, err := s.CreateUser(t.Context(), c)
	must(t, err)
	for _, prefix := range []string{"ada", "eve", "eve\U0010FFFF"} {
		if found, err := s.ListUsers(t.Context(), store.UserQuery{Prefix: prefix, Limit: 10, Now: scriptTime}); err != nil || len(found) != 1 {
			t.Errorf("%q: %d users, %v", prefix, len(found), err)
		}
	}
}
