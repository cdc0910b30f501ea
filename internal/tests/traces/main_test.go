package traces_test

import (
	"testing"

	"github.com/authmount/auth/internal/harness"
)

// Golden files hold traces of the store in memory: a run on Postgres would write no others.
func TestMain(m *testing.M) { harness.MainOnMemory(m) }
