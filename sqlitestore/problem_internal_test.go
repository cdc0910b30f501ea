//go:build linux

package sqlitestore

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/authmount/auth/store"
)

// unprivileged runs f without the right of root to write everywhere.
func unprivileged(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	must(t, syscall.Setfsuid(65534))
	defer syscall.Setfsuid(0) //nolint:errcheck // of a test
	f()
}

// chmod changes modes, and returns a function that changes them back.
func chmod(t *testing.T, modes map[string]os.FileMode) (back func()) {
	t.Helper()
	was := map[string]os.FileMode{}
	for path, mode := range modes {
		info, err := os.Stat(path)
		must(t, err)
		was[path] = info.Mode()
		must(t, os.Chmod(path, mode))
	}
	return func() {
		for path, mode := range was {
			must(t, os.Chmod(path, mode))
		}
	}
}

// A file or folder that may only be read is named in the error, and once it can be written
// again it opens.
func TestReadOnly(t *testing.T) {
	for what, modes := range map[string]func(dir, path string) map[string]os.FileMode{
		"file":       func(_, path string) map[string]os.FileMode { return map[string]os.FileMode{path: 0o444} },
		"folder":     func(dir, path string) map[string]os.FileMode { return map[string]os.FileMode{dir: 0o555, path: 0o666} },
		"unreadable": func(_, path string) map[string]os.FileMode { return map[string]os.FileMode{path: 0} },
	} {
		path := file(t)
		dir := filepath.Dir(path)
		for outer := dir; len(outer) > len(os.TempDir()); outer = filepath.Dir(outer) {
			must(t, os.Chmod(outer, 0o755)) //nolint:gosec // of this test
		}
		back := chmod(t, modes(dir, path))
		var err error
		unprivileged(t, func() { _, err = Open(path) })
		back()
		if err == nil || !strings.HasPrefix(err.Error(), "auth: sqlite: the program may not write to the file or its directory: "+dir) || !errors.Is(err, os.ErrPermission) {
			t.Errorf("%s: %v", what, err)
		}
		s, err := Open(path)
		must(t, err)
		if _, err := s.CreateUser(t.Context(), user1("ada")); err != nil {
			t.Errorf("%s, writable again: %v", what, err)
		}
		must(t, s.Close())
	}
}

// A file that was overwritten in parts is reported as damaged, by Open or by the methods that
// read the part, and no error is an outcome. With a backup in its place the same path works.
func TestDamaged(t *testing.T) {
	healthy := opened(t)
	for _, name := range []string{"ada", "bob", "cyd"} {
		_, err := healthy.CreateUser(t.Context(), user1(name))
		must(t, err)
	}
	from := backup(t, healthy)
	good, err := os.ReadFile(from)
	must(t, err)
	for what, part := range map[string][2]int{"header": {0, 100}, "first page": {100, 4096}, "middle": {4096, len(good)}} {
		path := filepath.Join(t.TempDir(), "auth.db")
		bad := append([]byte{}, good...)
		for i := part[0]; i < part[1]; i++ {
			bad[i] ^= 0x5a
		}
		must(t, os.WriteFile(path, bad, 0o600))
		s, err := Open(path)
		if err == nil {
			_, err = s.CreateUser(t.Context(), user1("dan"))
			if _, read := s.User(t.Context(), store.ByEmail("ada@example.com")); !errors.Is(read, ErrDamaged) || errors.Is(read, store.ErrNotFound) {
				t.Errorf("%s: reading: %v", what, read)
			}
			must(t, s.Close())
		}
		if !errors.Is(err, ErrDamaged) || !strings.HasPrefix(err.Error(), "auth: sqlite: the file is damaged: "+path) {
			t.Errorf("%s: %v", what, err)
		}
		must(t, Restore(t.Context(), from, path))
		s = reopened(t, path)
		if _, err := s.CreateUser(t.Context(), user1("dan")); err != nil || s.count(t, `select count(*) from auth_users`) != 4 {
			t.Errorf("%s, restored: %v", what, err)
		}
	}
}
