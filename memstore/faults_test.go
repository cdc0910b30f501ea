package memstore_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// A value that cannot be written as JSON makes its writer fail, and leaves no half of an
// answer.
func TestMetadataThatAreNoJSON(t *testing.T) {
	for what, u := range map[string]store.User{
		"the user's own":    {UserMetadata: map[string]any{"x": make(chan int)}},
		"the application's": {AppMetadata: map[string]any{"x": make(chan int)}},
	} {
		s := memstore.New()
		u.ID = uuid.NewString()
		_, err := s.CreateUser(t.Context(), store.CreateUser{Change: system(now), NewUser: store.NewUser{User: u}})
		ok(t, err)
		if rows, err := s.ListUserRows(t.Context(), store.UserQuery{Limit: 9}); err == nil || rows != nil {
			t.Errorf("%s: %+v, %v", what, rows, err)
		}
		if all, err := s.Dump(t.Context()); err == nil || all != nil {
			t.Errorf("%s: %s", what, all)
		}
	}
}
