package admin_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

const (
	aHash   = "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy"
	aSecret = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
)

// armed is a user with a password and a second factor.
func (o *office) armed(email string, roles ...string) auth.User {
	o.t.Helper()
	u, err := o.ImportUser(o.t.Context(), auth.ImportUserParams{Email: email, EmailVerified: true, FullName: "=1+1", PasswordHash: aHash, TOTPSecret: aSecret, Accepted: true, Roles: roles})
	if err != nil {
		o.t.Fatal(err)
	}
	return u
}

// lines are the lines of an NDJSON export, by address.
func (a *answer) lines() map[string]map[string]any {
	a.t.Helper()
	all := map[string]map[string]any{}
	for _, line := range strings.Split(strings.TrimSuffix(a.text, "\n"), "\n") {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			a.t.Fatalf("%v: %s", err, line)
		}
		email, _ := row["email"].(string)
		if all[email] != nil {
			a.t.Errorf("%s comes twice", email)
		}
		all[email] = row
	}
	return all
}

// An export has each account that the filters select, once, in both formats, and no secret
// that was not named; it is in the audit log.
func TestUsersExport(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.permit("writer")
		o.adm.ExportPage(200)
		var list []auth.ImportUserParams
		for i := range 450 { // more than two pages
			list = append(list, auth.ImportUserParams{Email: fmt.Sprintf("u%d@example.com", i), FullName: []string{"=HYPERLINK(1)", "@x", "Ada \"B\", C"}[i%3], PasswordHash: aHash, Roles: []string{"writer"}, AppMetadata: map[string]any{"plan": "a,b"}})
		}
		for _, p := range list {
			if _, err := o.ImportUser(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		a := o.do(owner, "GET /users/export?role=writer", "").want(200)
		rows := a.lines()
		if len(rows) != len(list) || rows["u7@example.com"]["full_name"] != "@x" || rows["u7@example.com"]["phone"] != nil || len(rows["u7@example.com"]) != 16 {
			t.Errorf("%d rows, such as %v", len(rows), rows["u7@example.com"])
		}
		if strings.Contains(a.text, aHash) || a.header.Get("Content-Type") != "application/x-ndjson" || !strings.Contains(a.header.Get("Content-Disposition"), "users.ndjson") {
			t.Errorf("%v", a.header)
		}
		row := o.audit()[0]
		if row.Type != auth.EventUsersExported || row.Record.Changes["role"].After != "writer" || row.Record.Changes["format"].After != "ndjson" || row.Record.Changes["fields"].After == nil {
			t.Errorf("recorded %+v", row)
		}
		a = o.do(owner, "GET /users/export?role=writer&format=csv&fields=full_name,email,roles,app_metadata", "").want(200)
		table, err := csv.NewReader(strings.NewReader(a.text)).ReadAll()
		if err != nil || len(table) != len(list)+1 || !slices.Equal(table[0], []string{"full_name", "email", "roles", "app_metadata"}) {
			t.Fatalf("%d rows, %v, %v", len(table), table[0], err)
		}
		for _, row := range table[1:] {
			if !slices.Contains([]string{"'=HYPERLINK(1)", "'@x", "Ada \"B\", C"}, row[0]) || row[2] != `["writer"]` || row[3] != `{"plan":"a,b"}` {
				t.Fatalf("a row %q", row)
			}
		}
		if n := len(o.do(owner, "GET /users/export?q=u44&fields=email", "").want(200).lines()); n != 11 {
			t.Errorf("a search picks %d", n)
		}
		for _, query := range []string{"?fields=secret", "?fields=email,email", "?fields=", "?format=xml", "?limit=5", "?cursor=x", "?sort=nonsense"} {
			a := o.do(owner, "GET /users/export"+query, "")
			if query == "?fields=" {
				a.want(200)
				continue
			}
			a.want(422, auth.CodeValidationFailed)
		}
	})
}

// An export omits the secrets of accounts that the actor is not stronger than, and the
// actor's own.
func TestUsersExportSecrets(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		const query = "GET /users/export?fields=email,password_hash,totp_secret"
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		held := []string{admin.PermUsersExport, admin.PermCredentials, admin.PermUsersRead, notes}
		clerk := o.operator("clerk@example.com", held...)
		o.permit("equal", held...)
		o.permit("reader", admin.PermUsersRead)
		o.permit("rich", "money.send")
		o.armed("nobody@example.com")
		o.armed("reader@example.com", "reader")
		o.armed("equal@example.com", "equal")
		o.armed("rich@example.com", "rich")
		o.armed("boss@example.com", auth.RoleOwner)

		a := o.do(o.operator("lacks@example.com", admin.PermUsersExport, notes), query, "").want(403, auth.CodeMissingPermission)
		if d, _ := a.body["details"].(map[string]any); d["permission"] != admin.PermCredentials {
			t.Errorf("the refusal names %v", a.body)
		}
		want := func(who *authtest.SignedIn, given map[string]bool) {
			t.Helper()
			rows := o.do(who, query, "").want(200).lines()
			for email, given := range given {
				row := rows[email]
				if given && (row["password_hash"] != aHash || row["totp_secret"] != aSecret || row["secrets_withheld"] != false) {
					t.Errorf("%s: %v", email, row)
				}
				if !given && (row["password_hash"] != nil || row["totp_secret"] != nil || row["secrets_withheld"] != true) {
					t.Errorf("%s: %v", email, row)
				}
			}
		}
		want(clerk, map[string]bool{"nobody@example.com": true, "reader@example.com": true, "equal@example.com": false, "rich@example.com": false, "boss@example.com": false, "clerk@example.com": false})
		want(owner, map[string]bool{"nobody@example.com": true, "equal@example.com": true, "rich@example.com": true, "boss@example.com": true, "owner@example.com": false})
		if a := o.do(owner, "GET /users/export", "").want(200); strings.Contains(a.text, aHash) || strings.Contains(a.text, aSecret) || strings.Contains(a.text, "withheld") {
			t.Error("secrets that nobody named")
		}
		if text, err := json.Marshal(o.audit()); err != nil || strings.Contains(string(text), aHash) || strings.Contains(string(text), aSecret) {
			t.Errorf("the audit log has secrets: %v", err)
		}
		o.do(o.later(owner), query, "").want(403, auth.CodeReauthNeeded)
	})
}

// An export that is not recorded writes nothing; one that breaks off does not look
// complete; it ends with its client.
func TestUsersExportBreaksOff(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		tap := storetap.New(store)
		o := newOffice(t, tap)
		o.adm.ExportPage(200)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.LoginAs(t, "second@example.com", authtest.Roles(auth.RoleOwner))
		for i := range 450 {
			o.imported(fmt.Sprintf("u%d@example.com", i))
		}
		failing := func(method string, nth int) {
			n := 0
			tap.Reset(storetap.Hooks{Background: true, Fault: func(_ context.Context, m string, _ int) storetap.Fault {
				if m == method {
					n++
				}
				if m == method && n == nth {
					return storetap.FailsBefore
				}
				return storetap.NoFault
			}})
		}
		failing("AddEvents", 1)
		if a := o.do(owner, "GET /users/export", ""); a.status < 500 || strings.Contains(a.text, "@example.com") {
			t.Errorf("not recorded: %d %.100s", a.status, a.text)
		}
		failing("ListUserRows", 2)
		func() {
			defer func() {
				if v := recover(); v != http.ErrAbortHandler { //nolint:errorlint // the very one
					t.Errorf("recovered %v", v)
				}
			}()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/auth/v1/admin/users/export", http.NoBody)
			owner.Sign(r)
			o.mux.ServeHTTP(httptest.NewRecorder(), r)
		}()
		tap.Reset(storetap.Hooks{})
		ctx, leave := context.WithCancel(t.Context())
		read := 0
		err := o.adm.ExportUsers(ctx, admin.System("test").Accepting(), admin.ExportUsersParams{}, writerFunc(func(b []byte) (int, error) {
			read += strings.Count(string(b), "\n")
			leave()
			return len(b), nil
		}))
		if err == nil || read > 300 {
			t.Errorf("%d lines after the client had gone, %v", read, err)
		}
	})
}

// Every export of many accounts ends when its actor loses the permission.
func TestExportsEndWithTheirActor(t *testing.T) {
	tried := 0
	for _, row := range admin.Table() {
		if !strings.HasPrefix(row.Pattern, "GET ") || !strings.HasSuffix(row.Pattern, "/export") || strings.Contains(row.Pattern, "{") {
			continue
		}
		tried++
		t.Run(row.Pattern, func(t *testing.T) {
			onStores(t, func(t *testing.T, st auth.Store) {
				o := newOffice(t, st)
				o.adm.ExportPage(200)
				owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
				o.LoginAs(t, "second@example.com", authtest.Roles(auth.RoleOwner))
				for i := range 450 {
					o.imported(fmt.Sprintf("u%d@example.com", i))
				}
				var list []auth.Event
				for range 1100 {
					list = append(list, auth.Event{ID: host.Of(o).NewID(), Type: auth.EventSignInFailed, At: o.Clock.Now().UTC()})
				}
				events, _ := store.Capability[store.Journal](st)
				if err := events.AddEvents(t.Context(), list); err != nil {
					t.Fatal(err)
				}
				for _, demoted := range []bool{false, true} {
					r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/auth/v1/admin"+strings.TrimPrefix(row.Pattern, "GET "), http.NoBody)
					owner.Sign(r)
					w := &meddling{ResponseRecorder: httptest.NewRecorder(), meanwhile: func() {
						if demoted {
							o.patch(owner.User.ID, store.UserPatch{Roles: &[]string{}})
						}
					}}
					broken := func() (broken bool) {
						defer func() { broken = recover() == http.ErrAbortHandler }() //nolint:errorlint // the very one
						o.mux.ServeHTTP(w, r)
						return false
					}()
					if lines := strings.Count(w.Body.String(), "\n"); broken != demoted || demoted && lines > 700 || !demoted && lines < 450 {
						t.Errorf("demoted %t: broken off %t, %d lines", demoted, broken, lines)
					}
				}
			})
		})
	}
	if tried < 2 {
		t.Errorf("%d exports", tried)
	}
}

// meddling runs a function while a response is written.
type meddling struct {
	*httptest.ResponseRecorder
	meanwhile func()
}

func (w *meddling) Write(b []byte) (int, error) {
	if w.meanwhile != nil && len(b) > 0 {
		w.meanwhile()
		w.meanwhile = nil
	}
	return w.ResponseRecorder.Write(b)
}
