package pgstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
)

// auth.New refuses a store with another schema version, with Check's error.
func TestNewChecks(t *testing.T) {
	s := unmigrated(t, pgtest.Database(t))
	refused := func(want error, says string) {
		t.Helper()
		if err := newOn(t.Context(), s); !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
			t.Errorf("auth.New: %v, want %v and %q", err, want, says)
		}
	}
	refused(pgstore.ErrSchemaBehind, `call Migrate or apply Schema: schema "auth" is at 0, the package at `)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, s.Pool(), "insert into auth.schema_version (version, name, compatible_from) values (999, 'from the future', 999)")
	refused(pgstore.ErrSchemaAhead, `update the package: schema "auth" is at 999, the package at `)
}
