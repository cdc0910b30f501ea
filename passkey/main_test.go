package passkey_test

import (
	"testing"

	"github.com/authmount/auth/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestEverythingOnPostgres runs the tests of this package again, on Postgres.
func TestEverythingOnPostgres(t *testing.T) { harness.EverythingOnPostgres(t, 15) }
