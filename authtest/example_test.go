package authtest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

var notes = http.NotFoundHandler()

// The test of an application: a user with a permission, and a handler that requires it.
func ExampleNew() {
	_ = func(t *testing.T) {
		env := authtest.New(t)
		ada := env.LoginAs(t, "ada@example.com", authtest.Permissions("notes.write"), authtest.AAL2())

		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/notes", nil)
		ada.Sign(r)
		rec := httptest.NewRecorder()
		env.Require(notes, auth.HasPermission("notes.write"), auth.AAL2()).ServeHTTP(rec, r)
		if rec.Code == http.StatusForbidden {
			t.Error("refused")
		}
	}
}

// A test on the application's own store; in production it comes from pgstore.Open.
func ExampleNewOn() {
	_ = func(t *testing.T) {
		st := memstore.New()
		env := authtest.NewOn(t, st, auth.WithSessions(auth.SessionOptions{Lifetime: time.Hour}))
		env.LoginAs(t, "ada@example.com")
		if _, err := st.User(t.Context(), store.ByEmail("ada@example.com")); err != nil {
			t.Error(err)
		}
	}
}
