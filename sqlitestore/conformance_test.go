package sqlitestore_test

import (
	"path/filepath"
	"testing"

	"github.com/authmount/auth/sqlitestore"
	"github.com/authmount/auth/store"
	"github.com/authmount/auth/storetest"
)

func open(t *testing.T, path string) *sqlitestore.Store {
	t.Helper()
	s, err := sqlitestore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, filepath.Join(t.TempDir(), "auth.db")) })
}
