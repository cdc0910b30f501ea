package sqlitestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/authmount/auth/store"
)

func user1(name string) store.CreateUser {
	return store.CreateUser{Change: scripted(name), NewUser: store.NewUser{User: store.User{ID: fixed(name), Email: name + "@example.com", CreatedAt: scriptTime, UpdatedAt: scriptTime}}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func reopened(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (s *Store) count(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	must(t, s.read(t.Context(), func(x *tx) error {
		n = value[int](x, query, args...)
		return nil
	}))
	return n
}

// names lists the files in a folder.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// A backup is beside the working directory's other files if its path is relative.
func TestBackupByRelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, opened(t).Backup(t.Context(), "backup.db"))
	must(t, Restore(t.Context(), "backup.db", "auth.db"))
	reopened(t, "auth.db")
}

// A backup under load holds every change that was acknowledged before, and only whole ones.
// An existing file is not replaced.
func TestBackup(t *testing.T) {
	s := opened(t)
	dir := t.TempDir()
	stop := make(chan struct{})
	var load sync.WaitGroup
	created := make(chan int, 100_000)
	load.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.CreateUser(t.Context(), user1(fmt.Sprint("user", i))); err != nil {
				t.Error(err)
				return
			}
			created <- i
		}
	})
	for range 3 {
		<-created
	}
	for i := range 3 {
		before := <-created
		path := filepath.Join(dir, fmt.Sprint("backup", i))
		must(t, s.Backup(t.Context(), path))
		b := reopened(t, path)
		if n, whole := b.count(t, `select count(*) from auth_users`), b.count(t, `select count(*) from auth_events`); n <= before || n != whole {
			t.Errorf("%d users and %d events of at least %d", n, whole, before+1)
		}
		must(t, b.Close())
	}
	close(stop)
	load.Wait()
	path := filepath.Join(dir, "backup0")
	was, err := os.ReadFile(path)
	must(t, err)
	if err := s.Backup(t.Context(), path); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("over a file: %v", err)
	}
	if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, was) {
		t.Errorf("the file was replaced: %v", err)
	}
	if err := s.Backup(t.Context(), filepath.Join(dir, "none", "backup")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no folder: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Backup(ctx, filepath.Join(dir, "late")); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	c := user1("within")
	c.Creating = func(ctx context.Context, _ store.User) error { return s.Backup(ctx, filepath.Join(dir, "within")) }
	if _, err := s.CreateUser(t.Context(), c); err == nil {
		t.Error("within a transaction")
	}
	if got := names(t, dir); !slices.Equal(got, []string{"backup0", "backup1", "backup2"}) {
		t.Errorf("left: %v", got)
	}
}

// backup returns the path of a backup of s.
func backup(t *testing.T, s *Store) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup.db")
	must(t, s.Backup(t.Context(), path))
	return path
}

// Restore decides about every table.
func TestRestoreKnowsAllTables(t *testing.T) {
	s := opened(t)
	var known []string
	for _, r := range restored {
		known = append(known, r.table)
	}
	slices.Sort(known)
	must(t, s.read(t.Context(), func(x *tx) error {
		if got := values[string](x, `select name from sqlite_schema where type = 'table' and name like 'auth\_%' escape '\' order by name`); !slices.Equal(got, known) {
			t.Errorf("tables %v, restored %v", got, known)
		}
		return nil
	}))
}

// rows fills a file with records of all kinds that a restore ends.
const rows1 = `
insert into auth_users (id, email, full_name, name_key, user_metadata, app_metadata, password_hash, mfa_enabled, created_at, updated_at, revision, credential_revision, notes, sequence, password_sequence, password_added_by, email_sequence, email_added_by, email_verified_sequence, email_verified_added_by, phone_sequence, phone_added_by, phone_verified_sequence, phone_verified_added_by, accepted_sequence)
	values ('u', '', '', '', '{}', '{}', 'hash', 1, 1, 1, 5, 3, '', 9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
insert into auth_sessions (id, user_id, counter, rotated_at, aal, amr, created_at, last_active_at, idle_until, ip, user_agent, device, rotated_device, sequence, added_by) values ('s', 'u', 0, 1, 'aal1', '[]', 1, 1, 9000000000000000, '', '', 'd', '', 1, 0);
insert into auth_devices values ('u', 'd', 1, 1, 9000000000000000, 3, 1, 0);
insert into auth_tokens (purpose, hash, subject, user_id, data, created_at, expires_at, max_attempts, attempts, sequence, added_by) values ('reset_password', x'01', 's', 'u', x'', 1, 9000000000000000, 5, 0, 1, 0), ('invitation', x'02', 'i', null, x'', 1, 9000000000000000, 0, 0, 0, 0);
insert into auth_factors (id, user_id, kind, several, required, label, secret, state, enabled, created_at, sequence, added_by) values ('f', 'u', 'totp', 0, 1, '', x'', x'07', 1, 1, 1, 0), ('g', 'u', 'passkey', 1, 0, '', x'', x'', 0, 1, 0, 0);
insert into auth_recovery_codes values ('u', x'01');
insert into auth_messages (id, recipient, purpose, hash, body, created_at, next_at, expires_at, attempts) values ('m', '', '', x'', x'', 1, 1, 9000000000000000, 0);
insert into auth_message_log (id, kind, channel, shown, user_id, recipient, state, created_at, updated_at) values ('m', 'k', 'email', '', '', '', 'queued', 1, 1), ('n', 'k', 'email', '', '', '', 'sent', 1, 1);
insert into auth_idempotency values ('a', 'r', 'k', x'', x'', 9000000000000000);
insert into auth_impersonations values ('i', 'u', 'u', 's', '', 1, 9000000000000000, 0, '', '', 1, 3, 3, 0);
insert into auth_jobs (id, kind, state, actor, params, created_at, expires_at) values ('j', 'ban', 'running', x'', x'', 1, 2), ('k', 'ban', 'done', x'', x'', 1, 2);
insert into auth_job_chunks values ('j', 0, 1, x'01', x''), ('k', 0, 1, x'', x'01');
insert into auth_deleted_users values ('old');
insert into auth_privileged_roles values ('root');
insert into auth_limits values ('l', 1, 1);`

// Restore ends what a backup would make valid again, and keeps what later answers depend on.
func TestRestoreEnds(t *testing.T) {
	s := opened(t)
	_, err := s.writer.ExecContext(t.Context(), rows1)
	must(t, err)
	from := backup(t, s)
	was, err := os.ReadFile(from)
	must(t, err)
	for _, c := range []struct {
		name            string
		opts            []RestoreOption
		sessions, codes int
	}{
		{"by default", nil, 0, 0},
		{"codes kept", []RestoreOption{KeepRecoveryCodes()}, 0, 1},
		{"all kept", []RestoreOption{KeepSessions()}, 1, 1},
	} {
		to := filepath.Join(t.TempDir(), "auth.db")
		must(t, Restore(t.Context(), from, to, c.opts...))
		r := reopened(t, to)
		raised := 1_000_000 * (1 - c.sessions)
		for query, want := range map[string]int{
			`select count(*) from auth_sessions where revoked = 0`:                          c.sessions,
			`select count(*) from auth_sessions`:                                            1,
			`select count(*) from auth_tokens`:                                              2 * c.sessions,
			`select count(*) from auth_devices where trusted_until is not null`:             c.sessions,
			`select count(*) from auth_devices`:                                             1,
			`select count(*) from auth_factors where enabled = 0`:                           c.sessions,
			`select count(*) from auth_factors where enabled = 1 and state = x'07'`:         1,
			`select count(*) from auth_recovery_codes`:                                      c.codes,
			`select count(*) from auth_messages`:                                            c.sessions,
			`select count(*) from auth_message_log where state = 'queued'`:                  c.sessions,
			`select count(*) from auth_message_log where state = 'sent'`:                    1,
			`select count(*) from auth_idempotency`:                                         1,
			`select count(*) from auth_impersonations where ended = 0`:                      c.sessions,
			`select count(*) from auth_jobs where state <> 'done'`:                          c.sessions,
			`select count(*) from auth_job_chunks`:                                          1 + c.sessions,
			`select count(*) from auth_deleted_users`:                                       1,
			`select count(*) from auth_privileged_roles`:                                    1,
			`select count(*) from auth_limits`:                                              1,
			`select count(*) from auth_revocations where everybody_until is not null`:       1 - c.sessions,
			`select revision from auth_users`:                                               5 + raised,
			`select credential_revision from auth_users`:                                    3 + raised,
			`select roles_revision from auth_project`:                                       raised,
			`select count(*) from auth_users where password_hash = 'hash' and sequence = 9`: 1,
		} {
			if got := r.count(t, query); got != want {
				t.Errorf("%s, %s: %d, want %d", c.name, query, got, want)
			}
		}
		must(t, r.Close())
	}
	if is, err := os.ReadFile(from); err != nil || !bytes.Equal(is, was) {
		t.Errorf("the backup was changed: %v", err)
	}
	if got := names(t, filepath.Dir(from)); len(got) != 1 {
		t.Errorf("beside the backup: %v", got)
	}
}

// A file that is open, in this process or another, is not replaced.
func TestRestoreOfAnOpenFile(t *testing.T) {
	if path := os.Getenv("HOLD_OPEN"); path != "" { // the other process
		s, err := Open(path)
		must(t, err)
		_, _ = os.Stdout.WriteString("open\n")
		_, _ = os.Stdin.Read(make([]byte, 1))
		must(t, s.Close())
		return
	}
	s := opened(t)
	_, err := s.CreateUser(t.Context(), user1("ada"))
	must(t, err)
	from, to := backup(t, s), file(t)
	refused := func(who string) {
		t.Helper()
		if err := Restore(t.Context(), from, to); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), to) {
			t.Errorf("open in %s: %v", who, err)
		}
	}
	mine := reopened(t, to)
	refused("this process")
	_, err = mine.CreateUser(t.Context(), user1("bob"))
	must(t, err)
	must(t, mine.Close())

	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRestoreOfAnOpenFile$") //nolint:gosec // this test
	other.Env = append(os.Environ(), "HOLD_OPEN="+to)
	in, err := other.StdinPipe()
	must(t, err)
	out, err := other.StdoutPipe()
	must(t, err)
	must(t, other.Start())
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	refused("another process")
	must(t, in.Close())
	must(t, other.Wait())

	if n := reopened(t, to).count(t, `select count(*) from auth_users where id = ?`, fixed("bob")); n != 1 {
		t.Error("the refused file was changed")
	}
}

// A file that is no sound backup replaces nothing.
func TestRestoreChecks(t *testing.T) {
	s := opened(t)
	_, err := s.CreateUser(t.Context(), user1("ada"))
	must(t, err)
	good, err := os.ReadFile(backup(t, s))
	must(t, err)
	later := opened(t)
	_, err = later.writer.ExecContext(t.Context(), `update auth_schema set version = 99`)
	must(t, err)
	lost := opened(t)
	_, err = lost.CreateUser(t.Context(), user1("ada"))
	must(t, err)
	must(t, func() error {
		c, err := lost.writer.Conn(t.Context())
		must(t, err)
		_, err = c.ExecContext(t.Context(), `pragma foreign_keys = off; insert into auth_recovery_codes values ('nobody', x'01')`)
		return errors.Join(err, c.Close())
	}())
	at := func(content []byte) string {
		path := filepath.Join(t.TempDir(), "backup.db")
		must(t, os.WriteFile(path, content, 0o600)) //nolint:gosec // of this test
		return path
	}
	flipped := func(from, to int) string {
		b := bytes.Clone(good)
		for i := range b[from:to] {
			b[from+i] ^= 0x5a
		}
		return at(b)
	}
	content, err := os.ReadFile(file(t))
	must(t, err)
	to := at(content)
	for what, c := range map[string]struct {
		from    string
		damaged bool
		problem string
	}{
		"no file":         {from: filepath.Join(t.TempDir(), "none"), problem: "no such file"},
		"header":          {flipped(0, 16), true, "damaged"},
		"middle":          {flipped(len(good)/2, len(good)/2+3*4096), true, "damaged"},
		"cut":             {at(good[:len(good)/2]), true, "damaged"},
		"text":            {at([]byte(strings.Repeat("no database ", 1000))), true, "damaged"},
		"empty":           {from: at(nil), problem: "holds no tables of this package"},
		"later program":   {from: copied(t, later), problem: "the schema has version 99, this program needs"},
		"missing parents": {copied(t, lost), true, "auth_recovery_codes"},
		"the file itself": {from: to, problem: "the same file"},
	} {
		err := Restore(t.Context(), c.from, to)
		if err == nil || errors.Is(err, ErrDamaged) != c.damaged || !strings.Contains(err.Error(), c.problem) || !strings.HasPrefix(err.Error(), "auth: sqlite: ") {
			t.Errorf("%s: %v", what, err)
		}
		if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: the file was changed, %v", what, err)
		}
	}
	if got := names(t, filepath.Dir(to)); len(got) != 1 {
		t.Errorf("left: %v", got)
	}
	if err := lost.Backup(t.Context(), filepath.Join(t.TempDir(), "b")); !errors.Is(err, ErrDamaged) {
		t.Errorf("backup of a file with missing parents: %v", err)
	}
}

// copied returns the path of a copy of an open file, as cp makes one of a closed one.
func copied(t *testing.T, s *Store) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copy.db")
	_, err := s.writer.ExecContext(t.Context(), `vacuum into ?`, path)
	must(t, err)
	return path
}

// crashed returns the path of a copy of a file and its log, as a killed process leaves them.
func crashed(t *testing.T, s *Store) string {
	t.Helper()
	var from string
	must(t, s.read(t.Context(), func(x *tx) error {
		from = value[string](x, `select file from pragma_database_list where name = 'main'`)
		return nil
	}))
	to := filepath.Join(t.TempDir(), "auth.db")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		b, err := os.ReadFile(from + suffix)
		must(t, err)
		must(t, os.WriteFile(to+suffix, b, 0o600)) //nolint:gosec // of this test
	}
	return to
}

// The log of the old file, whole or damaged, does not get into the new one. A program that
// opened the old file at the last moment cannot write to either.
func TestRestoreReplaces(t *testing.T) {
	s := opened(t)
	_, err := s.CreateUser(t.Context(), user1("ada"))
	must(t, err)
	from := backup(t, s)
	_, err = s.CreateUser(t.Context(), user1("bob"))
	must(t, err)
	for _, damaged := range []bool{false, true} {
		to := crashed(t, s)
		late, err := direct(t.Context(), to, "mode=rw")
		must(t, err)
		if damaged {
			f, err := os.OpenFile(to, os.O_RDWR, 0)
			must(t, err)
			_, err = f.WriteAt(bytes.Repeat([]byte{0x5a}, 8192), 0)
			must(t, errors.Join(err, f.Close()))
			must(t, os.Remove(to+"-shm"))
			if err := lock(t, to, func() { err = Restore(t.Context(), from, to) }); err == nil {
				t.Fatal("not locked")
			}
			if !errors.Is(err, ErrInUse) {
				t.Errorf("damaged and open: %v", err)
			}
		}
		must(t, Restore(t.Context(), from, to))
		if err := late.Exec(pragmas); err == nil {
			err = late.Exec(`create table x (y)`)
			if err == nil {
				t.Error("the old file can be written")
			}
		} else if !damaged && !errors.Is(err, sqlite3.READONLY_DBMOVED) {
			t.Errorf("the late program: %v", err)
		}
		must(t, late.Close())
		r := reopened(t, to)
		if n := r.count(t, `select count(*) from auth_users`); n != 1 {
			t.Errorf("%d users, want those of the backup", n)
		}
		if _, err := r.CreateUser(t.Context(), user1("bob")); err != nil {
			t.Error(err)
		}
		must(t, r.Close())
		if got := contents(t, to); !strings.HasPrefix(got, "auth_") {
			t.Error(got)
		}
	}
	stale := crashed(t, s)
	must(t, os.Remove(stale))
	must(t, Restore(t.Context(), from, stale))
	if n := reopened(t, stale).count(t, `select count(*) from auth_users`); n != 1 {
		t.Errorf("%d users beside the log of a file that is gone", n)
	}
}

// lock runs f while a connection has a lock on a file, although SQLite cannot read it.
func lock(t *testing.T, path string, f func()) error {
	t.Helper()
	release, err := seizeDamaged(t.Context(), path)
	must(t, err)
	defer release()
	f()
	return errors.New("locked")
}
