package sqlitestore_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/authmount/auth/sqlitestore"
)

// The secret stays the same, and only its owner can read it.
func TestDevelopmentSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.db")
	first, err := sqlitestore.DevelopmentSecret(path)
	ok(t, err)
	again, err := sqlitestore.DevelopmentSecret(path)
	ok(t, err)
	info, err := os.Stat(path + ".secret")
	ok(t, err)
	if len(first) < 32 || !bytes.Equal(first, again) || info.Mode().Perm() != 0o600 {
		t.Errorf("%d bytes, the same: %v, mode %v", len(first), bytes.Equal(first, again), info.Mode())
	}
	ok(t, os.WriteFile(path+".secret", []byte("short\n"), 0o600))
	if _, err := sqlitestore.DevelopmentSecret(path); err == nil {
		t.Error("a short secret is taken")
	}
	other, err := sqlitestore.DevelopmentSecret(filepath.Join(t.TempDir(), "auth.db"))
	if ok(t, err); bytes.Equal(other, first) {
		t.Error("two databases have one secret")
	}
	if _, err := sqlitestore.DevelopmentSecret(filepath.Join(t.TempDir(), "none", "auth.db")); err == nil {
		t.Error("no error without the folder")
	}
}
