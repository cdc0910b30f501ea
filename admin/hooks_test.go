package admin_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/store"
)

// The application decides on deletions, for every actor.
func TestApplicationDecidesOnDeletions(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		var asked []string
		why := error(auth.Reject(auth.CodeMethodDisabled, "It still has invoices."))
		o := newOffice(t, st, auth.WithHooks(auth.Hooks{BeforeDelete: func(_ context.Context, u auth.User) error {
			asked = append(asked, u.Email)
			return why
		}}))
		ada := o.LoginAs(t, "ada@example.com")
		p := admin.DeleteUserParams{UserID: ada.User.ID, Reason: "asked for it"}
		wantCode(t, o.adm.DeleteUser(t.Context(), admin.System("test").Accepting(), p), auth.CodeMethodDisabled)
		if len(asked) != 1 || asked[0] != "ada@example.com" {
			t.Errorf("asked of %v", asked)
		}
		for _, why = range []error{store.ErrStale, store.ErrNotFound} { // the store's own errors, too
			wantCode(t, o.adm.DeleteUser(t.Context(), admin.System("test").Accepting(), p), auth.CodeInternal)
			wantCode(t, o.DeleteUser(t.Context(), auth.DeleteUserParams{Caller: auth.ByApplication(ada.User.ID)}), auth.CodeInternal)
		}
		if _, err := o.adm.User(t.Context(), admin.System("test").Accepting(), ada.User.ID); err != nil {
			t.Errorf("deleted all the same: %v", err)
		}
	})
}

// No operation deletes an account without that decision.
func TestDeletionsHaveOneDoor(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	deletions := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		deletions += strings.Count(string(text), "kit.DeleteUser(")
		if strings.Contains(string(text), "store.DeleteUser(") {
			t.Errorf("%s deletes by the store", file)
		}
	}
	if deletions == 0 {
		t.Error("nothing deletes an account any more")
	}
}
