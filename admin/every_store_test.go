package admin_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// plain is a store without any optional interface except those of the next one.
type plain struct {
	auth.Store
	next auth.Store
}

func (p plain) Unwrap() auth.Store { return p.next }

// Stores with one optional interface each.
type (
	withFactors struct {
		plain
		store.FactorStore
	}
	withJournal struct {
		plain
		store.Journal
	}
	withProject struct {
		plain
		store.ProjectStore
	}
	withAdmin struct {
		plain
		store.AdminStore
	}
)

// Without any one of its required interfaces the admin side does not start, and the error
// names the interface.
func TestEachInterfaceIsNeeded(t *testing.T) {
	t.Parallel()
	m := memstore.New()
	links := []struct {
		name string
		add  func(p plain) auth.Store
	}{
		{"store.Journal", func(p plain) auth.Store { return withJournal{p, m} }},
		{"store.ProjectStore", func(p plain) auth.Store { return withProject{p, m} }},
		{"store.AdminStore", func(p plain) auth.Store { return withAdmin{p, m} }},
	}
	for missing := range len(links) + 1 {
		var s auth.Store = withFactors{plain{Store: m}, m}
		want := ""
		for i, l := range links {
			if i == missing {
				want = "admin: the store does not implement " + l.name
				continue
			}
			s = l.add(plain{m, s})
		}
		got := ""
		adm, err := admin.New(t.Context(), authtest.NewOn(t, s).Auth, admin.Options{})
		if err != nil {
			got = err.Error()
		}
		if got != want || (adm == nil) != (want != "") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// If the first roles cannot be added, or a scope or a permission is invalid, the admin
// side does not start either.
func TestNewTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, failing := range []string{"Roles", "PutRole"} {
		tap := storetap.New(memstore.New())
		env := authtest.NewOn(t, tap)
		tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, _ int) storetap.Fault {
			if method == failing {
				return storetap.FailsBefore
			}
			return storetap.NoFault
		}})
		adm, err := admin.New(t.Context(), env.Auth, admin.Options{})
		if adm != nil || err == nil || !strings.HasPrefix(err.Error(), "admin: add the first roles: ") || errors.Unwrap(err) == nil {
			t.Errorf("where %s fails: %v", failing, err)
		}
	}
	for want, of := range map[string]admin.Options{
		`admin: permission "Notes": use up to 64 `: {Permissions: []admin.Permission{{Name: "Notes"}}},
		`admin: permission "auth.x": names that `:  {Permissions: []admin.Permission{{Name: "auth.x"}}},
		`admin: permission "a.b" is declared twi`:  {Permissions: []admin.Permission{{Name: "a.b"}, {Name: "a.b"}}},
	} {
		if adm, err := admin.New(t.Context(), authtest.New(t).Auth, of); adm != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	env := authtest.New(t, auth.WithSecretKeys(auth.SecretKey{Key: "sk_test_of_the_options", Scopes: []string{"no.such"}}))
	if adm, err := admin.New(t.Context(), env.Auth, admin.Options{}); adm != nil || err == nil || err.Error() != "admin: WithSecretKeys: the scope no.such is not declared" {
		t.Errorf("%v", err)
	}
	off := auth.WithSettings(auth.Settings{TOTP: auth.Off})
	if adm, err := admin.New(t.Context(), authtest.New(t, off).Auth, admin.Options{}); adm != nil || err == nil || !strings.HasPrefix(err.Error(), "admin: operators need a second factor") {
		t.Errorf("no kind of second factor: %v", err)
	}
	for _, o := range []struct {
		auth []auth.Option
		adm  admin.Options
	}{{[]auth.Option{auth.Default(off)}, admin.Options{}}, {[]auth.Option{off}, admin.Options{RequireMFA: auth.Off}}, {[]auth.Option{off, harness.WithPasskeys()}, admin.Options{}}} {
		if _, err := admin.New(t.Context(), authtest.New(t, o.auth...).Auth, o.adm); err != nil {
			t.Error(err)
		}
	}
	long := strings.Repeat("a", 61) + ".bc"
	for name, fits := range map[string]bool{long: true, long + "d": false} {
		if _, err := admin.New(t.Context(), authtest.New(t).Auth, admin.Options{Permissions: []admin.Permission{{Name: name}}}); (err == nil) != fits {
			t.Errorf("a permission with %d bytes: %v", len(name), err)
		}
	}
}

// A route that requires a permission that nobody declared refuses everybody but owners: the
// log says why. It says nothing where a user merely lacks a declared one.
func TestUndeclaredPermissionIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	env := authtest.New(t, auth.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if _, err := admin.New(t.Context(), env.Auth, admin.Options{Permissions: []admin.Permission{{Name: "notes.write"}}}); err != nil {
		t.Fatal(err)
	}
	ada := env.LoginAs(t, "ada@example.com")
	for name, logged := range map[string]bool{"notes.write": false, "note.wirte": true} {
		log.Reset()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/notes", http.NoBody)
		ada.Sign(r)
		rec := httptest.NewRecorder()
		env.Require(http.NotFoundHandler(), auth.HasPermission(name)).ServeHTTP(rec, r)
		if got := strings.Contains(log.String(), name) && strings.Contains(log.String(), "admin.Options.Permissions does not declare it"); got != logged || rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), name) {
			t.Errorf("%s: %d %s, log %s", name, rec.Code, rec.Body, log.String())
		}
	}
}
