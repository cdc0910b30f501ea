package signin_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
)

// said returns the claims of a token without verifying it.
func said(t *testing.T, token string) map[string]any {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	var m map[string]any
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func dataOf(n int) map[string]any { return map[string]any{"x": strings.Repeat("a", n-8)} } // n bytes of JSON

// A token stays below 3 kB, whatever its claims. It names the omitted ones.
func TestTokensStayBelow3kB(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		permissions []string
		app         map[string]any
		custom      map[string]any
		signing     []auth.Option
		omitted     []string
		kept        []string // custom claims
		warns       bool
	}{
		"little":                     {permissions: harness.PermissionClaims(3), app: dataOf(100), custom: map[string]any{"plan": "pro"}, kept: []string{"plan"}},
		"permissions of 1 kB":        {permissions: harness.PermissionClaims(42)}, // 24 bytes each
		"permissions above 1 kB":     {permissions: harness.PermissionClaims(43), omitted: []string{"permissions"}},
		"app_metadata of 1 kB":       {app: dataOf(1024)},
		"app_metadata above 1 kB":    {app: dataOf(1025), omitted: []string{"app_metadata"}},
		"both above":                 {permissions: harness.PermissionClaims(60), app: dataOf(2000), custom: map[string]any{"plan": "pro"}, omitted: []string{"app_metadata", "permissions"}, kept: []string{"plan"}},
		"both of 1 kB are too much":  {permissions: harness.PermissionClaims(42), app: dataOf(1000), omitted: []string{"app_metadata"}},
		"and with RS256":             {permissions: harness.PermissionClaims(42), app: dataOf(1000), signing: []auth.Option{auth.WithSigningKeys(key)}, omitted: []string{"app_metadata"}},
		"a large custom claim":       {app: dataOf(900), custom: map[string]any{"plan": "pro", "orgs": strings.Repeat("o", 2000)}, omitted: []string{"orgs"}, kept: []string{"plan"}, warns: true},
		"one that would be reserved": {custom: map[string]any{"omitted": []string{"app_metadata"}, "act": "x", "scope": "x", "client_id": "x", "org": "x", "org_role": "x", "is_anonymous": false, "plan": "pro"}, kept: []string{"plan"}},
		"many custom claims":         {custom: many(500), omitted: []string{"*"}, warns: true},
	} {
		t.Run(name, func(t *testing.T) {
			opts := append([]auth.Option{auth.WithClaims(func(context.Context, auth.User) (map[string]any, error) { return c.custom, nil })}, c.signing...)
			w := harness.NewWorld(t, opts...)
			ada := w.LoginAs(t, harness.AdaMail, authtest.Permissions(c.permissions...), authtest.AppMetadata(c.app))
			again, err := w.Refresh(t.Context(), auth.RefreshParams{RefreshToken: ada.RefreshToken})
			if err != nil {
				t.Fatal(err)
			}
			for _, token := range []string{ada.AccessToken, again.AccessToken} {
				m := said(t, token)
				if len(token) >= 3000 {
					t.Errorf("%d bytes", len(token))
				}
				claims, err := w.Verify(token)
				if err != nil || !slices.Equal(claims.Omitted, c.omitted) {
					t.Fatalf("omitted %q, want %q, %v", claims.Omitted, c.omitted, err)
				}
				if _, there := m["omitted"]; there != (c.omitted != nil) {
					t.Errorf("omitted %v", m["omitted"])
				}
				for _, name := range []string{"permissions", "app_metadata"} {
					if _, there := m[name]; there == slices.Contains(c.omitted, name) {
						t.Errorf("%s in the token: %v", name, there)
					}
				}
				if got := slices.Sorted(maps.Keys(claims.Custom)); !slices.Equal(got, c.kept) {
					t.Errorf("custom claims %v, want %v", got, c.kept)
				}
			}
			if n := strings.Count(w.Log.String(), "level=WARN"); n != map[bool]int{true: 1}[c.warns] {
				t.Errorf("%d warnings: %s", n, w.Log)
			}
		})
	}
}

// The omission depends on the server's data alone: a user's choice of address moves nothing
// out of the token.
func TestUsersDoNotChooseWhatIsOmitted(t *testing.T) {
	w := harness.NewWorld(t)
	role := w.LoginAs(t, "role@b.de", authtest.Permissions(harness.PermissionClaims(42)...)).User.Roles[0] // the role's name does not depend on the address below
	domain := "@" + strings.Repeat("b", 60) + "." + strings.Repeat("c", 60) + "." + strings.Repeat("d", 60)
	seen := map[bool]bool{}
	for n := 100; n <= 600; n += 25 {
		var first *auth.Claims
		for _, email := range []string{
			fmt.Sprintf("a%d@b.de", n), fmt.Sprintf("a%059d", n) + domain + ".org", fmt.Sprintf("a%d", n) + strings.Repeat("&", 59) + domain + ".org",
		} {
			ada := w.LoginAs(t, email, authtest.Roles(role), authtest.AppMetadata(dataOf(n)))
			c, err := w.Verify(ada.AccessToken)
			if err != nil || len(ada.AccessToken) >= 3000 {
				t.Fatalf("%d bytes, %v", len(ada.AccessToken), err)
			}
			if first == nil {
				first = c
			}
			if !slices.Equal(c.Omitted, first.Omitted) {
				t.Errorf("app_metadata of %d bytes: omitted %q, with an address of %d bytes %q", n, first.Omitted, len(email), c.Omitted)
			}
		}
		seen[slices.Contains(first.Omitted, "app_metadata")] = true
	}
	if len(seen) != 2 {
		t.Errorf("always the same: %v", seen)
	}
}

func many(n int) map[string]any {
	m := map[string]any{}
	for i := range n {
		m[fmt.Sprintf("claim-%d", i)] = i
	}
	return m
}

// Permissions that a token leaves out are not taken for none: the middleware looks
// them up by the roles in the token.
func TestOmittedPermissionsAreLookedUp(t *testing.T) {
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
	ada := w.LoginAs(t, harness.AdaMail, authtest.Permissions(harness.PermissionClaims(60)...))
	if c, err := w.Verify(ada.AccessToken); err != nil || !slices.Contains(c.Omitted, "permissions") {
		t.Fatalf("claims %+v, %v", c, err)
	}
	var seen *auth.Claims
	next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = auth.ClaimsFrom(r.Context()) })
	for name, handler := range map[string]func(reqs ...auth.Requirement) http.Handler{
		"Require":     func(reqs ...auth.Requirement) http.Handler { return w.Require(next, reqs...) },
		"RequirePage": func(reqs ...auth.Requirement) http.Handler { return w.RequirePage(next, reqs...) },
		"Optional":    func(...auth.Requirement) http.Handler { return w.Optional(next) },
	} {
		for permission, want := range map[string]int{"permission-00059.read": 200, "permission-00060.read": 403} {
			seen = nil
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/notes", nil)
			ada.Sign(r)
			rec := httptest.NewRecorder()
			handler(auth.HasPermission(permission)).ServeHTTP(rec, r)
			if name != "Optional" && rec.Code != want {
				t.Errorf("%s, %s: %d", name, permission, rec.Code)
			}
			if rec.Code == 200 && (seen == nil || len(seen.Permissions) != 60 || seen.Omitted != nil) {
				t.Errorf("%s: claims %+v", name, seen)
			}
		}
	}
}
