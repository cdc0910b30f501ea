package authtest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
)

// answers is how a protected handler answers somebody.
func answers(t *testing.T, env *authtest.Env, who *authtest.SignedIn, reqs ...auth.Requirement) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	who.Sign(r)
	rec := httptest.NewRecorder()
	env.Require(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }), reqs...).ServeHTTP(rec, r)
	return rec.Code
}

func TestLoginAsWithPermissions(t *testing.T) {
	env := authtest.New(t)
	bob := env.LoginAs(t, "bob@example.com", authtest.Roles("editor"))
	ada := env.LoginAs(t, "ada@example.com", authtest.Roles("editor"), authtest.Permissions("notes.write", "tags.*"))
	for permission, want := range map[string]int{"notes.write": 200, "tags.read": 200, "notes.read": 403} {
		if got := answers(t, env, ada, auth.HasPermission(permission), auth.HasRole("editor")); got != want {
			t.Errorf("%s: %d, want %d", permission, got, want)
		}
	}
	if got := answers(t, env, bob, auth.HasPermission("notes.write")); got != 403 {
		t.Errorf("somebody else: %d", got)
	}
}

func TestLoginAsAAL2(t *testing.T) {
	env := authtest.New(t)
	ada := env.LoginAs(t, "ada@example.com", authtest.AAL2())
	if got := answers(t, env, ada, auth.AAL2(), auth.CheckSession()); got != 200 || !ada.User.MFAEnabled {
		t.Errorf("%d, %+v", got, ada.User)
	}
	env.Clock.Advance(time.Hour)
	if got := answers(t, env, env.LoginAs(t, "ada@example.com"), auth.AAL2(), auth.FreshAuth(time.Minute)); got != 200 {
		t.Errorf("again: %d", got)
	}
	if got := answers(t, env, env.LoginAs(t, "bob@example.com"), auth.AAL2()); got != 403 {
		t.Errorf("somebody without: %d", got)
	}
}
