package admin_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/pgstore/rls"
)

// seen is the caller of a request, as the application's handler receives it.
type seen struct {
	Key    *auth.Key
	Claims *auth.Claims
}

// whoCalls answers with the caller.
var whoCalls = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_ = json.NewEncoder(w).Encode(seen{auth.KeyFrom(r.Context()), auth.ClaimsFrom(r.Context())})
})

// visit sends a request to a route of the application, with a bearer token if it is not
// empty.
func visit(t *testing.T, route http.Handler, bearer string, edit ...func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://app.example.com/notes", http.NoBody)
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	for _, e := range edit {
		e(r)
	}
	w := httptest.NewRecorder()
	route.ServeHTTP(w, r)
	return w
}

// wantRefusal checks the status and the code of an answer.
func wantRefusal(t *testing.T, name string, w *httptest.ResponseRecorder, status int, code auth.Code) {
	t.Helper()
	var e struct{ Code auth.Code }
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != status || e.Code != code {
		t.Errorf("%s: %d %s, want %d %s", name, w.Code, w.Body, status, code)
	}
}

func wantKey(t *testing.T, name string, w *httptest.ResponseRecorder, want auth.Key) {
	t.Helper()
	var got seen
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK || got.Key == nil || got.Claims != nil {
		t.Fatalf("%s: %d %s", name, w.Code, w.Body)
	}
	if k := got.Key; k.ID != want.ID || k.Name != want.Name || k.CreatedBy != want.CreatedBy || !slices.Equal(k.Permissions, want.Permissions) {
		t.Errorf("%s: the handler sees %+v, want %+v", name, *k, want)
	}
}

// A route with AllowKeys takes the secret keys that the admin API takes, with the same
// permissions; other routes take none.
func TestRoutesTakeSecretKeys(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		any, writing := o.Require(whoCalls, auth.AllowKeys()), o.Require(whoCalls, auth.HasPermission(notes), auth.AllowKeys())
		ada := o.maker("ada@example.com", notes)
		k, reads := o.key(actor(ada), notes), o.key(admin.System("test"), admin.PermUsersRead)
		text := k.Secret.Reveal()
		wantKey(t, "a key", visit(t, writing, text), auth.Key{ID: k.ID, Name: "a key", CreatedBy: ada.User.ID, Permissions: []string{notes}})
		if w := visit(t, o.Require(whoCalls), text); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "no secret keys") {
			t.Errorf("a route for users only: %d %s", w.Code, w.Body)
		}
		wantKey(t, "without scope", visit(t, any, reads.Secret.Reveal()), auth.Key{ID: reads.ID, Name: "a key", Permissions: []string{admin.PermUsersRead}})
		w := visit(t, writing, reads.Secret.Reveal())
		wantRefusal(t, "without scope", w, 403, auth.CodeMissingPermission)
		if !strings.Contains(w.Body.String(), notes) {
			t.Error("the refusal names no permission:", w.Body)
		}
		wantKey(t, "all scopes", visit(t, writing, o.key(admin.System("test"), "notes.*", "*").Secret.Reveal()), auth.Key{ID: lastKey(o), Name: "a key", Permissions: permissionsOfAllKeys(t, o)})

		// Routes for users are as they were.
		for name, route := range map[string]http.Handler{"no requirement": o.Require(whoCalls), "a permission": o.Require(whoCalls, auth.HasPermission(notes)), "optional": o.Optional(whoCalls), "page": o.RequirePage(whoCalls, auth.AllowKeys())} {
			if w := visit(t, route, text); w.Code != 401 && w.Code != 303 {
				t.Errorf("%s: a key got %d %s", name, w.Code, w.Body)
			}
		}
		for name, route := range map[string]http.Handler{"any": any, "writing": writing} {
			var got seen
			if w := visit(t, route, ada.AccessToken); json.Unmarshal(w.Body.Bytes(), &got) != nil || got.Claims == nil || got.Claims.UserID != ada.User.ID || got.Key != nil {
				t.Errorf("%s: a user got %d %s", name, w.Code, w.Body)
			}
		}
		wantRefusal(t, "a user without the permission", visit(t, writing, o.operator("ben@example.com", admin.PermUsersRead).AccessToken), 403, auth.CodeMissingPermission)

		// The permissions of the creator count at the time of the request.
		o.permit("authtest ada@example.com", admin.PermUsersRead)
		wantRefusal(t, "the creator lost the permission", visit(t, writing, text), 403, auth.CodeMissingPermission)
		o.permit("authtest ada@example.com", notes, admin.PermKeysWrite)
		wantKey(t, "the creator has it again", visit(t, writing, text), auth.Key{ID: k.ID, Name: "a key", CreatedBy: ada.User.ID, Permissions: []string{notes}})
		if _, err := o.adm.BanUser(t.Context(), admin.System("test"), admin.BanUserParams{UserID: ada.User.ID, Reason: "gone"}); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, "the creator is banned", visit(t, any, text), 401, auth.CodeInvalidAPIKey)

		// Keys end.
		if err := o.revoke(t.Context(), reads.ID); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, "revoked", visit(t, any, reads.Secret.Reveal()), 401, auth.CodeInvalidAPIKey)
		public, err := o.adm.CreateKey(t.Context(), admin.System("test"), admin.CreateKeyParams{Name: "app", Public: true})
		if err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, "public", visit(t, any, public.Secret.Reveal()), 401, auth.CodeMissingToken)
		hour, err := o.adm.CreateKey(t.Context(), admin.System("test"), admin.CreateKeyParams{Name: "short", Scopes: []string{notes}, ExpiresAt: o.Clock.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		wantKey(t, "not expired", visit(t, writing, hour.Secret.Reveal()), auth.Key{ID: hour.ID, Name: "short", Permissions: []string{notes}})
		o.Clock.Advance(time.Hour)
		wantRefusal(t, "expired", visit(t, writing, hour.Secret.Reveal()), 401, auth.CodeInvalidAPIKey)
	})
}

// lastKey returns the id of the newest key.
func lastKey(o *office) string {
	o.t.Helper()
	page, err := o.adm.ListKeys(o.t.Context(), admin.System("test"), admin.ListKeysParams{Limit: 1})
	if err != nil {
		o.t.Fatal(err)
	}
	return page.Keys[0].ID
}

// permissionsOfAllKeys returns the permissions of a key with patterns for everything: the
// declared ones that keys may have without a scope of their name, and the pattern.
func permissionsOfAllKeys(t *testing.T, o *office) []string {
	t.Helper()
	list := append(allBut(t, o, append(notForKeys, admin.PermRolesAssign)...), "notes.*")
	slices.Sort(list)
	return list
}

// A key acts as no user, also where a requirement or a function takes one.
func TestKeysAreNoUsers(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	text := o.key(admin.System("test"), notes, "*").Secret.Reveal()
	for name, req := range map[string]auth.Requirement{
		"fresh": auth.FreshAuth(time.Hour), "live": auth.CheckSession(), "factor": auth.AAL2(), "themselves": auth.NotImpersonated(), "role": auth.HasRole("owner"),
	} {
		wantRefusal(t, name, visit(t, o.Require(whoCalls, auth.AllowKeys(), req), text), 403, auth.CodeMissingPermission)
		owner := o.LoginAs(t, name+"@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		if w := visit(t, o.Require(whoCalls, auth.AllowKeys(), req), owner.AccessToken); w.Code != http.StatusOK {
			t.Errorf("%s: a user got %d %s", name, w.Code, w.Body)
		}
	}
	mine := auth.RequirementFunc(func(_ auth.Service, r *http.Request, c *auth.Claims) error {
		if k := auth.KeyFrom(r.Context()); k == nil || !k.HasPermission(notes) || k.HasPermission(admin.PermKeysWrite) || c.UserID != "" || !c.HasPermission(notes) {
			t.Errorf("a requirement sees key %+v, claims %+v", k, c)
		}
		return nil
	})
	w := visit(t, o.Require(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := rls.AsUser(r.Context(), nil, auth.ClaimsFrom(r.Context()), func(pgx.Tx) error { return nil }); err == nil {
			t.Error("AsUser acted for a key")
		}
		if who, err := o.adm.Authorize(r); err != nil || who != (admin.Actor{}) {
			t.Errorf("a page takes the key for %v, %v", who, err)
		}
		auth.KeyFrom(r.Context()).Permissions[0] = "*" // a copy
		whoCalls(w, r)
	}), auth.AllowKeys(), mine), text)
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"*"`) {
		t.Error(w.Code, w.Body)
	}
}

// Only the bearer token is read as a key, and browsers and other networks are refused.
func TestRoutesReadKeysFromBearerOnly(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(), auth.WithCookies(auth.CookieOptions{}))
	route := o.Require(whoCalls, auth.AllowKeys())
	k := o.key(admin.System("test"), notes)
	text := k.Secret.Reveal()
	ada := o.LoginAs(t, "ada@example.com")
	set := httptest.NewRecorder()
	if err := o.SetCookies(set, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://app.example.com/", nil), &ada.Tokens); err != nil {
		t.Fatal(err)
	}
	cookies := set.Result().Cookies()
	if len(cookies) < 2 {
		t.Fatal("no cookies")
	}
	inCookies := func(r *http.Request) {
		for _, c := range cookies {
			r.AddCookie(&http.Cookie{Name: c.Name, Value: text}) //nolint:gosec // of a request
		}
	}
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Add(name, value) }
	}
	for name, w := range map[string]*httptest.ResponseRecorder{
		"cookie":      visit(t, route, "", inCookies),
		"own origin":  visit(t, route, "", inCookies, header("Origin", "https://app.example.com")),
		"apikey":      visit(t, route, "", header("Apikey", text)),
		"x-api-key":   visit(t, route, "", header("X-Api-Key", text)),
		"basic":       visit(t, route, "", header("Authorization", "Basic "+text)),
		"two headers": visit(t, route, text, header("Authorization", "Bearer "+text)),
		"browser":     visit(t, route, text, header("Origin", "https://app.example.com")),
		"navigation":  visit(t, route, text, header("Sec-Fetch-Site", "none")),
		"query":       visit(t, route, "", func(r *http.Request) { r.URL.RawQuery = "access_token=" + text }),
	} {
		if w.Code != http.StatusUnauthorized && w.Code != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	wantKey(t, "beside another user's cookies", visit(t, route, text, func(r *http.Request) {
		for _, c := range cookies {
			r.AddCookie(c)
		}
	}), auth.Key{ID: k.ID, Name: "a key", Permissions: []string{notes}})

	bound, err := o.adm.CreateKey(t.Context(), admin.System("test"), admin.CreateKeyParams{Name: "bound", Scopes: []string{notes}, Networks: []string{"198.51.100.0/24"}})
	if err != nil {
		t.Fatal(err)
	}
	from := func(addr string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = addr } }
	wantRefusal(t, "another network", visit(t, route, bound.Secret.Reveal(), from("203.0.113.1:1")), 401, auth.CodeInvalidAPIKey)
	wantKey(t, "its network", visit(t, route, bound.Secret.Reveal(), from("198.51.100.7:1")), auth.Key{ID: bound.ID, Name: "bound", Permissions: []string{notes}})
}

// Wrong keys count against the limit of their sender, and never block a right one. Requests
// do not count against the hourly limit of a key.
func TestLimitsOfKeysAtRoutes(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(), auth.WithRateLimits(auth.RateLimits{SecretKeysPerIP: auth.Rate{Burst: 3, Per: time.Hour}}))
	route := o.Require(whoCalls, auth.AllowKeys())
	k, err := o.adm.CreateKey(t.Context(), admin.System("test"), admin.CreateKeyParams{Name: "one", Scopes: []string{notes}, HourlyLimit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		wantRefusal(t, "wrong", visit(t, route, "sk_live_invented"), 401, auth.CodeInvalidAPIKey)
	}
	wantRefusal(t, "too many", visit(t, route, "sk_live_invented"), 429, auth.CodeRateLimited)
	for range 3 {
		wantKey(t, "the right one", visit(t, route, k.Secret.Reveal()), auth.Key{ID: k.ID, Name: "one", Permissions: []string{notes}})
	}
}

// A process without package admin does not know the permissions of keys, and says so.
func TestRoutesWithoutAdminRefuseKeys(t *testing.T) {
	t.Parallel()
	var log lines
	const text = "sk_test_0123456789abcdef"
	env := authtest.NewOn(t, memstore.New(), auth.WithSecretKeys(auth.SecretKey{Key: text, Scopes: []string{notes}}), auth.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	route := env.Require(whoCalls, auth.AllowKeys())
	wantRefusal(t, "without admin", visit(t, route, text), 401, auth.CodeInvalidAPIKey)
	if !strings.Contains(log.String(), "admin.New") {
		t.Error("the log does not say why:", log.String())
	}
	if _, err := admin.New(t.Context(), env.Auth, admin.Options{Permissions: []admin.Permission{{Name: notes}}}); err != nil {
		t.Fatal(err)
	}
	w := visit(t, route, text)
	if w.Code != http.StatusOK || bytes.Contains(w.Body.Bytes(), []byte("0123456789abcdef")) {
		t.Error(w.Code, w.Body)
	}
}

// VerifyKey answers about the keys of others, to programs with the permission for it.
func TestVerifyKey(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		service := program(o.key(admin.System("test"), admin.PermKeysVerify))
		ada := o.maker("ada@example.com", notes)
		k := o.key(actor(ada), notes)
		check := func(text string) map[string]any {
			t.Helper()
			return o.do(service, "POST /keys/verify", `{"key":"`+text+`"}`).want(200).body
		}
		if b := check(k.Secret.Reveal()); b["active"] != true || b["id"] != k.ID || b["created_by"] != ada.User.ID || len(b["permissions"].([]any)) != 1 {
			t.Error(b)
		}
		bound, err := o.adm.CreateKey(t.Context(), admin.System("test"), admin.CreateKeyParams{Name: "bound", Scopes: []string{notes}, Networks: []string{"192.0.2.0/24", "0.0.0.0/0"}})
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"bound to networks": bound.Secret.Reveal(), "invented": "sk_live_x", "none": "", "a token": ada.AccessToken} {
			if b := check(text); b["active"] != false || b["id"] != nil || b["name"] != "" || b["created_by"] != nil || len(b["permissions"].([]any)) != 0 {
				t.Errorf("%s: %v", name, b)
			}
		}
		o.permit("authtest ada@example.com", admin.PermKeysWrite)
		if b := check(k.Secret.Reveal()); b["active"] != true || len(b["permissions"].([]any)) != 0 {
			t.Error("the creator lost the permission:", b)
		}
		if err := o.revoke(t.Context(), k.ID); err != nil {
			t.Fatal(err)
		}
		if b := check(k.Secret.Reveal()); b["active"] != false {
			t.Error("revoked:", b)
		}
		o.do(program(o.key(admin.System("test"), admin.PermUsersRead, notes)), "POST /keys/verify", `{"key":"sk_live_x"}`).want(403, auth.CodeMissingPermission)
		o.do(o.maker("ben@example.com", admin.PermKeysRead), "POST /keys/verify", `{"key":"sk_live_x"}`).want(403, auth.CodeMissingPermission)
	})
}
