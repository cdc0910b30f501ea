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
			info, err := os.Stat(path + suffix)
			ok(t, err)
			if info.Mode() != want {
				t.Errorf("%s: %v, want %v", suffix, info.Mode(), want)
			}
		}
		ok(t, s.Close())
		ok(t, os.Chmod(path, 0o640)) //nolint:gosec // what the test is about
	}
}
