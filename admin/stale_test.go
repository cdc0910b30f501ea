package admin_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// After a change of roles, a user gets a request to refresh from the application's own
// routes and from the endpoints, is not signed out, and continues with the new
// permissions.
func TestStaleTokensAreRefreshed(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		code := admin.System("test").Accepting()
		o.permit("editor", notes)
		ada := o.LoginAs(t, "ada@example.com")
		o.mux.Handle("GET /write", o.Require(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), auth.HasPermission(notes)))
		o.mux.Handle("/auth/v1/", o.Handler())
		get := func(path string) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			ada.Sign(r)
			w := httptest.NewRecorder()
			o.mux.ServeHTTP(w, r)
			return w.Code
		}
		want := func(write, me int) {
			t.Helper()
			if got := [2]int{get("/write"), get("/auth/v1/me")}; got != [2]int{write, me} {
				t.Errorf("%v, want %d %d", got, write, me)
			}
		}
		want(403, 200)
		if _, err := o.adm.Grant(t.Context(), code, admin.GrantParams{UserID: ada.User.ID, Role: "editor"}); err != nil {
			t.Fatal(err)
		}
		want(401, 401)
		ada = o.renewed(ada)
		want(200, 200)
		o.permit("editor")
		want(401, 401)
		ada = o.renewed(ada)
		want(403, 200)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.permit("writer", notes)
		wantResults(t, o.imports(owner, "?on_conflict=update", `{"email":"ada@example.com","full_name":"Ada"}`), "done")
		want(403, 200)
		wantResults(t, o.imports(owner, "?on_conflict=update", `{"email":"ada@example.com","roles":["writer"]}`), "done")
		want(401, 401)
		ada = o.renewed(ada)
		want(200, 200)
	})
}

// A ban takes effect on the application's own routes at once, in the process that carried it
// out: an access token of the account is refused, and cannot be refreshed.
func TestBanRefusesTokensAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		for name, ban := range map[string]func(s *authtest.SignedIn){
			"one": func(s *authtest.SignedIn) {
				o.do(owner, "POST /users/"+s.User.ID+"/ban", `{"reason":"spam"}`).want(200)
			},
			"bulk": func(s *authtest.SignedIn) {
				o.do(owner, "POST /users/bulk", `{"action":"ban","reason":"spam","ids":["`+s.User.ID+`"]}`).want(200)
			},
			"import": func(s *authtest.SignedIn) {
				wantResults(t, o.imports(owner, "?on_conflict=update", `{"email":"`+s.User.Email+`","banned_until":"2030-01-01T00:00:00Z"}`), "done")
			},
		} {
			ada := o.LoginAs(t, name+"@example.com")
			if _, err := o.Verify(ada.AccessToken); err != nil {
				t.Fatal(err)
			}
			ban(ada)
			if _, err := o.Verify(ada.AccessToken); !errors.Is(err, auth.CodeTokenStale) {
				t.Errorf("%s: %v, want %s", name, err, auth.CodeTokenStale)
			}
			if _, err := o.Refresh(t.Context(), auth.RefreshParams{RefreshToken: ada.RefreshToken}); err == nil {
				t.Errorf("%s: refreshed", name)
			}
		}
	})
}
