package auth_test

import (
	"testing"

	"github.com/authmount/auth/store"
)

// A copy of a record shares nothing with it that could be changed.
func TestRecordCloneIsApart(t *testing.T) {
	t.Parallel()
	r := &store.Record{Changes: map[string]store.FieldChange{"roles": {After: "editor"}}}
	r.Clone().Changes["roles"] = store.FieldChange{After: "owner"}
	if r.Changes["roles"].After != "editor" {
		t.Errorf("the copy changed %v", r.Changes)
	}
}
