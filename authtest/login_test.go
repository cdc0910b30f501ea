package authtest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// answers returns the status of a protected handler for a user.
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

// listener is a test that records its log.
type listener struct {
	testing.TB
	said string
}

func (l *listener) Logf(format string, values ...any) { l.said += fmt.Sprintf(format, values...) }

// Undefined roles, such as misspelled ones, are logged.
func TestUndefinedRolesAreLogged(t *testing.T) {
	env := authtest.New(t)
	l := &listener{TB: t}
	env.LoginAs(l, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.Permissions("notes.write"))
	if l.said != "" {
		t.Errorf("of roles that are there: %s", l.said)
	}
	env.LoginAs(l, "ada@example.com", authtest.Roles("editr"))
	if !strings.Contains(l.said, `"editr"`) {
		t.Errorf("said %q", l.said)
	}
}

// hiding is an application's store that wraps another one.
type hiding struct{ auth.Store }

func (h hiding) Unwrap() auth.Store { return h.Store }

// The options of LoginAs combine, also on another store, and persist at the next sign-in.
func TestLoginAsOptions(t *testing.T) {
	inner := memstore.New()
	env := authtest.NewOn(t, hiding{inner})
	opts := []authtest.UserOption{
		authtest.Permissions("notes.write"), authtest.AAL2(), authtest.Roles("editor"), authtest.Permissions("tags.*"),
		authtest.AppMetadata(map[string]any{"team": "a"}),
	}
	all := []auth.Requirement{auth.HasPermission("notes.write"), auth.HasPermission("tags.read"), auth.HasRole("editor"), auth.AAL2(), auth.CheckSession()}
	for range 2 {
		ada := env.LoginAs(t, "ada@example.com", opts...)
		if got := answers(t, env, ada, all...); got != 200 || ada.User.AppMetadata["team"] != "a" {
			t.Errorf("%d, %+v", got, ada.User)
		}
		if got := answers(t, env, ada, auth.HasPermission("notes.delete")); got != 403 {
			t.Errorf("more than was given: %d", got)
		}
	}
	if u, err := inner.User(t.Context(), store.ByEmail("ada@example.com")); err != nil || !u.MFAEnabled {
		t.Errorf("in the store: %+v, %v", u, err)
	}
	other := authtest.NewOn(t, inner, env.SameKeys())
	if got := answers(t, other, env.LoginAs(t, "ada@example.com"), all...); got != 200 {
		t.Errorf("at another instance: %d", got)
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
	for name, required := range map[string]auth.Settings{"everybody": {MFARequired: auth.On}, "editors": {MFARequiredFor: []string{"editor"}}} {
		env := authtest.New(t, auth.WithSettings(required))
		for range 2 { // the second sign-in uses the factor
			ada := env.LoginAs(t, "ada@example.com", authtest.Roles("editor"), authtest.AAL2())
			if got := answers(t, env, ada, auth.AAL2(), auth.HasRole("editor")); got != 200 {
				t.Errorf("required of %s: %d", name, got)
			}
		}
	}
}
