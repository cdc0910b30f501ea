package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authclient"
	"github.com/authmount/auth/authtest"
)

// office is the back office under test.
type office struct {
	*authtest.Env
	t   *testing.T
	adm *admin.Admin
	url string
}

func open(t *testing.T) *office {
	t.Helper()
	o := &office{Env: authtest.New(t), t: t}
	var err error
	if o.adm, err = newAdmin(t.Context(), o.Auth, admin.Options{RequireMFA: auth.Off}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(routes(o.Auth, o.adm))
	t.Cleanup(server.Close)
	o.url = server.URL
	return o
}

// hire signs in a user with a role.
func (o *office) hire(email, role string) *authtest.SignedIn {
	o.t.Helper()
	s := o.LoginAs(o.t, email)
	if _, err := o.adm.Grant(o.t.Context(), admin.System("test").Accepting(), admin.GrantParams{UserID: s.User.ID, Role: role}); err != nil {
		o.t.Fatal(err)
	}
	return o.LoginAs(o.t, email)
}

// do sends a request and returns its status and error code.
func (o *office) do(who *authtest.SignedIn, method, path, body string) (int, auth.Code) {
	o.t.Helper()
	r, err := http.NewRequestWithContext(o.t.Context(), method, o.url+path, bytes.NewBufferString(body))
	if err != nil {
		o.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	who.Sign(r)
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = w.Body.Close() }()
	var refusal struct{ Code auth.Code }
	if strings.HasPrefix(w.Header.Get("Content-Type"), "application/json") {
		_ = json.NewDecoder(w.Body).Decode(&refusal)
	}
	return w.StatusCode, refusal.Code
}

func TestWhoMayDoWhat(t *testing.T) {
	o := open(t)
	reader, editor, support := o.LoginAs(t, "reader@example.com"), o.hire("editor@example.com", "editor"), o.hire("support@example.com", admin.RoleSupport)
	about := "/auth/v1/admin/users/" + reader.User.ID
	for _, c := range []struct {
		name         string
		who          *authtest.SignedIn
		method, path string
		body         string
		status       int
		code         auth.Code
	}{
		{"a reader reads", reader, "GET", "/articles", "", 200, ""},
		{"a reader publishes", reader, "POST", "/articles", "", 403, auth.CodeMissingPermission},
		{"an editor publishes", editor, "POST", "/articles", "", 201, ""},
		{"an editor refunds", editor, "POST", "/orders/7/refund", "", 403, auth.CodeMissingPermission},
		{"support refunds", support, "POST", "/orders/7/refund", "", 200, ""},
		{"support publishes", support, "POST", "/articles", "", 403, auth.CodeMissingPermission},
		{"an editor looks into an account", editor, "GET", about, "", 403, auth.CodeNotAdmin},
		{"support looks into an account", support, "GET", about, "", 200, ""},
		{"support makes an owner", support, "PUT", about + "/roles", `{"roles":["owner"]}`, 403, auth.CodeMissingPermission},
		{"support bans a reader", support, "POST", about + "/ban", `{"reason":"spam"}`, 200, ""},
	} {
		if status, code := o.do(c.who, c.method, c.path, c.body); status != c.status || code != c.code {
			t.Errorf("%s: %d %s, want %d %s", c.name, status, code, c.status, c.code)
		}
	}
}

// A former support agent cannot refund with an old token.
func TestRolesEnd(t *testing.T) {
	o := open(t)
	support := o.hire("support@example.com", admin.RoleSupport)
	if _, err := o.adm.Withdraw(t.Context(), admin.System("test").Accepting(), support.User.ID, admin.RoleSupport); err != nil {
		t.Fatal(err)
	}
	if status, code := o.do(support, "POST", "/orders/7/refund", ""); status != http.StatusUnauthorized || code != auth.CodeTokenStale {
		t.Errorf("somebody who left support: %d %s", status, code)
	}
}

// The job deletes accounts that were never verified; with another key it deletes nothing.
func TestCleanUp(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	kept := o.LoginAs(t, "kept@example.com")
	for _, email := range []string{"a@example.com", "b@example.com"} {
		if _, err := o.SignUp(ctx, auth.SignUpParams{Email: email, Password: "correct horse battery"}); err != nil {
			t.Fatal(err)
		}
	}
	o.Clock.Advance(time.Hour)
	key := func(scopes ...string) *authclient.Admin {
		k, err := o.adm.CreateKey(ctx, admin.System("test").Accepting(), admin.CreateKeyParams{Name: "job", Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		c, err := authclient.NewAdmin(o.url, k.Secret.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if n, err := cleanUp(ctx, key(admin.PermUsersRead), o.Clock.Now()); n != 0 || !errors.Is(err, auth.CodeMissingPermission) {
		t.Errorf("a key that may only read: %d deleted, %v", n, err)
	}
	if n, err := cleanUp(ctx, key(admin.PermUsersRead, admin.PermUsersDelete), o.Clock.Now()); err != nil || n != 2 {
		t.Errorf("%d deleted, %v, want 2", n, err)
	}
	if _, err := o.adm.User(ctx, admin.System("test").Accepting(), kept.User.ID); err != nil {
		t.Errorf("one that was confirmed: %v", err)
	}
}
