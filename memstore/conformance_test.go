package memstore_test

import (
	"testing"

	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
	"github.com/authmount/auth/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return memstore.New() })
}
