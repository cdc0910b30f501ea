package admin_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

func (o *office) give(userID string, roles ...string) {
	o.t.Helper()
	o.must(ignored(o.adm.SetRoles(o.t.Context(), admin.System("test"), admin.SetRolesParams{UserID: userID, Roles: roles})))
}

// A role or permission that an account has, and that its session lacks only without the
// second factor, asks for the factor. All others are refused as before.
func TestWithheldRoleAsksForFactor(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		withheld := auth.WithSettings(auth.Settings{MFARequiredFor: []string{"editor", "support"}})
		o, _ := withRole(t, st, inCookies(withheld)...)
		o.permit("support", admin.PermUsersRead)
		carol, dave, vera := o.LoginAs(t, "carol@example.com"), o.LoginAs(t, "dave@example.com"), o.LoginAs(t, "vera@example.com")
		in := map[string]*linkBrowser{}
		for name, given := range map[string]struct{ id, role string }{
			"carol": {carol.User.ID, "editor"}, "dave": {dave.User.ID, "auditor"},
			"vera": {vera.User.ID, "support"}, // waits for its acceptance
		} {
			in[name] = o.browser()
			in[name].signsIn(name + "@example.com")
			o.give(given.id, given.role)
			in[name].json("/refresh", "")
		}
		page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
		get := func(who string, wrap func(http.Handler, ...auth.Requirement) http.Handler, req auth.Requirement) *httptest.ResponseRecorder {
			t.Helper()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/books?page=2", nil)
			r.Header.Set("Accept", "text/html,*/*")
			r.Header.Set("User-Agent", "Mozilla/5.0")
			for name, value := range in[who].cookies {
				r.AddCookie(&http.Cookie{Name: name, Value: value}) //nolint:gosec // of a request
			}
			w := httptest.NewRecorder()
			wrap(page, req).ServeHTTP(w, r)
			return w
		}
		for name, c := range map[string]struct {
			who     string
			req     auth.Requirement
			asks    bool
			details string
		}{
			"permission":            {"carol", auth.HasPermission(notes), true, `{"permission":"` + notes + `"}`},
			"role":                  {"carol", auth.HasRole("editor"), true, `{"role":"editor"}`},
			"another permission":    {"carol", auth.HasPermission("money.send"), false, `{"permission":"money.send"}`},
			"another role":          {"carol", auth.HasRole("support"), false, `{"role":"support"}`},
			"nobody's permission":   {"dave", auth.HasPermission(notes), false, `{"permission":"` + notes + `"}`},
			"nobody's role":         {"dave", auth.HasRole("editor"), false, `{"role":"editor"}`},
			"unaccepted permission": {"vera", auth.HasPermission(admin.PermUsersRead), false, `{"permission":"` + admin.PermUsersRead + `"}`},
		} {
			code, location := auth.CodeMissingPermission, ""
			if c.asks {
				code, location = auth.CodeInsufficientAAL, "/account/sign-in?reason=insufficient_aal&return_to=%2Fbooks%3Fpage%3D2"
			}
			w := get(c.who, o.RequirePage, c.req)
			if status := map[bool]int{true: 303, false: 403}[c.asks]; w.Code != status || w.Header().Get("Location") != location {
				t.Errorf("%s: the page is %d %s, want %d %s", name, w.Code, w.Header().Get("Location"), status, location)
			}
			w = get(c.who, o.Require, c.req)
			if w.Code != 403 || !strings.Contains(w.Body.String(), `"code":"`+string(code)+`"`) || !strings.Contains(w.Body.String(), `"details":`+c.details) {
				t.Errorf("%s: JSON is %d %s, want %s with %s", name, w.Code, w.Body, code, c.details)
			}
		}

		// A program steps up by the code of a factor, and the role counts at once.
		tokens := o.renewed(carol)
		var set struct{ Secret string }
		o.must(json.Unmarshal(o.postJSON("/2fa/setup-totp", "", tokens.AccessToken).Body.Bytes(), &set))
		w := o.postJSON("/2fa/verify-and-enable", `{"totp_code":"`+o.appCode(set.Secret)+`"}`, tokens.AccessToken)
		if w.Code != 200 || !slices.Contains(o.rolesIn(w), "editor") {
			t.Fatalf("enrolled: %d %s", w.Code, w.Body)
		}
		o.Clock.Advance(time.Minute)
		b := in["carol"]
		b.cookies = map[string]string{}
		waits := b.json("/login", `{"email":"carol@example.com","password":"`+authtest.Password+`"}`)
		b.json("/2fa/verify", `{"mfa_token":"`+waits["mfa_token"].(string)+`","totp_code":"`+o.appCode(set.Secret)+`"}`)
		for name, req := range map[string]auth.Requirement{"permission": auth.HasPermission(notes), "role": auth.HasRole("editor")} {
			if w := get("carol", o.RequirePage, req); w.Code != http.StatusTeapot {
				t.Errorf("%s: %d %s after the factor", name, w.Code, w.Body)
			}
			if w := get("carol", o.Require, req); w.Code != http.StatusTeapot {
				t.Errorf("%s: %d %s after the factor", name, w.Code, w.Body)
			}
		}
		if w := get("carol", o.RequirePage, auth.HasPermission("money.send")); w.Code != 403 {
			t.Errorf("another permission: %d", w.Code)
		}
	})
}

// The check of a permission says that it needs a second factor if every role that permits it
// does.
func TestCheckNamesTheSecondFactor(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st, auth.WithSettings(auth.Settings{MFARequiredFor: []string{"accountant"}}))
		o.permit("accountant", notes)
		o.permit("editor", notes)
		owner := o.operator("owner@example.com", "*")
		ada := o.LoginAs(t, "ada@example.com").User
		for _, c := range []struct {
			role           string
			allowed, needs bool
		}{{"", false, false}, {"accountant", true, true}, {"editor", true, false}} {
			if c.role != "" {
				o.give(ada.ID, c.role)
			}
			if got := o.do(owner, "POST /check", `{"user_id":"`+ada.ID+`","permission":"`+notes+`"}`).want(200).body; got["allowed"] != c.allowed || got["needs_second_factor"] != c.needs {
				t.Errorf("with %q: %v", c.role, got)
			}
		}
	})
}
