package memstore_test

import (
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) auth.Store { return memstore.New() })
}
