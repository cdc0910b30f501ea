//go:build unix

package sqlitestore_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/authmount/auth/sqlitestore"
)

// Only the owner of the process can read the files, with any umask. If the operator chose the
// mode of the file, it stays, and the other files get the same.
func TestModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := filepath.Join(t.TempDir(), "auth.db")
	for _, want := range []os.FileMode{0o600, 0o640} {
		s, err := sqlitestore.Open(path)
		ok(t, err)
		_, err = s.CreateUser(t.Context(), newUser(""))
		ok(t, err)
		for _, suffix := range []string{"", "-wal", "-shm"} {
			wantMode(t, path+suffix, want)
		}
		copied := path + want.String()
		ok(t, s.Backup(t.Context(), copied))
		ok(t, s.Close())
		wantMode(t, copied, 0o600)
		ok(t, os.Chmod(path, 0o640)) //nolint:gosec // what the test is about
	}
}

// A restored file and those beside it are readable only to their owner.
func TestModesRestored(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "auth.db"), filepath.Join(dir, "backup.db")
	s, err := sqlitestore.Open(path)
	ok(t, err)
	ok(t, s.Backup(t.Context(), copied))
	ok(t, s.Close())
	ok(t, os.Chmod(path, 0o644))   //nolint:gosec // what the test is about
	ok(t, os.Chmod(copied, 0o644)) //nolint:gosec // what the test is about
	ok(t, sqlitestore.Restore(t.Context(), copied, path))
	s, err = sqlitestore.Open(path)
	ok(t, err)
	_, err = s.CreateUser(t.Context(), newUser(""))
	ok(t, err)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		wantMode(t, path+suffix, 0o600)
	}
	ok(t, s.Close())
}

func wantMode(t *testing.T, path string, want os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	ok(t, err)
	if info.Mode() != want {
		t.Errorf("%s: %v, want %v", path, info.Mode(), want)
	}
}
