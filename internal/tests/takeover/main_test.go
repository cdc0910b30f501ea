package takeover_test

import (
	"testing"

	"github.com/authmount/auth/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestOnOtherStores runs the scenarios of this package again, on Postgres and on SQLite.
func TestOnOtherStores(t *testing.T) { harness.OnOtherStores(t, 25) }
