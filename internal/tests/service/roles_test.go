package service_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// A token carries the permissions of its roles, and HasPermission passes for exactly these.
func TestHasPermission(t *testing.T) {
	w := harness.NewWorld(t)
	roles, ok := store.Capability[store.ProjectStore](w.Store)
	if !ok {
		t.Fatal("the store keeps no roles")
	}
	put := func(name string, permissions ...string) {
		t.Helper()
		c := store.Change{Now: w.Clock.Now(), By: auth.Authority{System: "test"}}
		if _, err := roles.PutRole(t.Context(), store.PutRole{Change: c, Role: store.RolePermissions{Name: name, Permissions: permissions}}); err != nil {
			t.Fatal(err)
		}
	}
	put("editor", "notes.read", "notes.write")
	put("reader", "notes.read")
	put("curator", "notes.*")
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for i, c := range []struct {
		roles []string
		token []string
		asked string
		want  int
	}{
		{nil, []string{}, "notes.read", 403},
		{[]string{"reader"}, []string{"notes.read"}, "notes.read", 200},
		{[]string{"reader"}, []string{"notes.read"}, "notes.write", 403},
		{[]string{"reader", "editor"}, []string{"notes.read", "notes.write"}, "notes.write", 200},
		{[]string{"curator"}, []string{"notes.*"}, "notes.write", 200},
		{[]string{"curator"}, []string{"notes.*"}, "notesx.write", 403},
		{[]string{"curator"}, []string{"notes.*"}, "*", 403},
		{[]string{"nobody knows"}, []string{}, "notes.read", 403},
		{[]string{auth.RoleOwner}, []string{"*"}, "anything", 200},
	} {
		u := w.LoginAs(t, fmt.Sprintf("user%d@example.com", i), authtest.Roles(c.roles...))
		claims, err := w.Verify(u.AccessToken)
		if err != nil || !slices.Equal(claims.Permissions, c.token) {
			t.Errorf("%v: the token has %v, %v", c.roles, claims.Permissions, err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		u.Sign(r)
		rec := httptest.NewRecorder()
		w.RequireAll(auth.HasPermission(c.asked))(next).ServeHTTP(rec, r)
		if rec.Code != c.want {
			t.Errorf("%v asked for %s: %d", c.roles, c.asked, rec.Code)
		}
	}
}

// A handler may change its claims without an effect on others: a role that it appends grants
// nothing to the next request with the same token.
func TestClaimsAreTheCallersOwn(t *testing.T) {
	w := harness.NewWorld(t)
	ada := w.LoginAs(t, "ada@example.com", authtest.Roles("reader"), authtest.AppMetadata(map[string]any{"plan": map[string]any{"seats": 1}}))
	request := func() *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		ada.Sign(r)
		return r
	}
	spoil := func(c *auth.Claims) {
		c.Roles[0] = "admin"
		c.Roles = append(c.Roles, "admin")
		c.Permissions = append(c.Permissions, "*")
		c.AppMetadata["plan"].(map[string]any)["seats"] = 1000
		c.AMR[0].Method = "totp"
		c.UserID = "root"
	}
	w.Require(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { spoil(auth.ClaimsFrom(r.Context())) }),
		auth.RequirementFunc(func(_ auth.Service, _ *http.Request, c *auth.Claims) error { spoil(c); return nil })).ServeHTTP(httptest.NewRecorder(), request())
	if c, err := w.Verify(ada.AccessToken); err == nil {
		spoil(c)
	}
	rec := httptest.NewRecorder()
	w.Require(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), auth.HasRole("admin")).ServeHTTP(rec, request())
	if rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), `"details":{"role":"admin"}`) {
		t.Errorf("admin route: %d %s", rec.Code, rec.Body)
	}
	c, err := w.Verify(ada.AccessToken)
	if err != nil || c.UserID != ada.User.ID || !slices.Equal(c.Roles, []string{"reader"}) || c.AMR[0].Method != "password" || c.HasPermission("x") ||
		c.AppMetadata["plan"].(map[string]any)["seats"] != 1.0 {
		t.Errorf("claims %+v, %v", c, err)
	}
}
