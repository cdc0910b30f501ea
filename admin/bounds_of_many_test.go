package admin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// A filter that matches more accounts than a selection may have selects none of them.
func TestSelectionHasAnEnd(t *testing.T) {
	t.Parallel()
	st := memstore.New()
	o := newOffice(t, st)
	c := store.CreateUsers{Change: o.change()}
	for i := range 10_001 {
		c.Users = append(c.Users, store.ImportedRow{User: auth.User{ID: uuid.NewString(), Email: fmt.Sprintf("many%d@example.com", i), CreatedAt: o.Clock.Now(), UpdatedAt: o.Clock.Now()}})
	}
	imports, _ := store.Capability[store.AdminStore](st)
	if _, err := imports.CreateUsers(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	res, err := o.adm.Bulk(t.Context(), admin.System("test").Accepting(), admin.BulkParams{Action: admin.BulkUnban, DryRun: true, Filter: &admin.UserFilter{}})
	wantCode(t, err, auth.CodeQueryTooBroad)
	if res.SelectionID != "" {
		t.Error("there is a selection")
	}
}

// Revoking the sessions of an IP address revokes those of all users, up to the number of
// accounts that one call may affect, and the result reports that there are more.
func TestSessionsOfManyAreEndedPageByPage(t *testing.T) {
	t.Parallel()
	st := memstore.New()
	o := newOffice(t, st)
	now := o.Clock.Now()
	for i := range 1001 {
		u := auth.User{ID: uuid.NewString(), Email: fmt.Sprintf("many%d@example.com", i), CreatedAt: now, UpdatedAt: now}
		s := auth.Session{ID: uuid.NewString(), UserID: u.ID, AAL: store.LevelAAL1, CreatedAt: now, LastActiveAt: now, IdleUntil: now.Add(time.Hour), IP: "192.0.2.9"}
		if _, err := st.CreateUser(t.Context(), store.CreateUser{Change: o.change(), NewUser: store.NewUser{User: u, Session: &s}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []admin.RevokeSessionsResult{{Ended: 1000, Users: 1000, More: true}, {Ended: 1, Users: 1}, {}} {
		res, err := o.adm.RevokeSessions(t.Context(), admin.System("test").Accepting(), admin.RevokeSessionsParams{IP: "192.0.2.9"})
		if err != nil || res != want {
			t.Errorf("%+v %v, want %+v", res, err, want)
		}
	}
}

// An owner with a sign-in method is found among any number without one.
func TestOwnerWithAWayInIsFoundAmongMany(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{true, false} {
		o := newOffice(t, memstore.New())
		keeper := func() {
			o.LoginAs(t, "keeper@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
			o.Clock.Advance(time.Second)
		}
		if first {
			keeper()
		}
		for i := range 200 {
			o.imported(fmt.Sprintf("owner%d@example.com", i), auth.RoleOwner)
		}
		o.Clock.Advance(time.Second)
		if !first {
			keeper()
		}
		if _, err := o.adm.SetSettings(t.Context(), admin.System("test").Accepting(), admin.SetSettingsParams{Set: map[string]any{"magic_link_enabled": false}}); err != nil {
			t.Errorf("the keeper is first: %t: %v", first, err)
		}
	}
}

// An import has a maximal number of rows, and empty lines do not evade it.
func TestImportRows(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	owner := o.owner()
	o.adm.ImportRows(3)
	row := `{"email":"a@example.com"}` + "\n"
	o.do(owner, "POST /users/import", strings.Repeat(row, 3), ndjson).want(202)
	o.do(owner, "POST /users/import", strings.Repeat("\n", 5)+row, ndjson).want(202)
	for what, body := range map[string]string{"are more than 3": strings.Repeat(row, 4), "have too many empty lines": strings.Repeat("\n", 6) + row} {
		if a := o.do(owner, "POST /users/import", body, ndjson).want(422, auth.CodeValidationFailed); !strings.Contains(a.text, what) {
			t.Errorf("%s: %s", what, a.text)
		}
	}
}

// A ban with an end beyond the times of JSON is permanent, for a selection, too. Other
// actions ignore the end of a ban.
func TestSelectionsKeepAnyEndOfABan(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	owner := o.owner()
	ids := o.crowd("many", 2)
	for _, action := range []string{"ban", "revoke_sessions"} {
		body := fmt.Sprintf(`{"action":%q,"reason":"x","until":"9999-12-31T23:59:59-01:00","dry_run":true,"filter":{"q":"many"}}`, action)
		id := o.do(owner, "POST /users/bulk", body).want(200).body["selection_id"]
		job := o.do(owner, "POST /users/bulk", fmt.Sprintf(`{"action":%q,"selection_id":%q}`, action, id)).want(202).body["job_id"]
		wantResults(t, o.done(fmt.Sprint(job)), "done", "done")
	}
	if u := o.read(ids[0]); u.BannedUntil.Year() != 9999 {
		t.Errorf("banned until %v", u.BannedUntil)
	}
	until := o.Clock.Now().Add(time.Hour).In(time.FixedZone("nowhere", 25*60*60)) // an offset that JSON cannot express
	ban := admin.BulkParams{Action: admin.BulkBan, DryRun: true, Filter: &admin.UserFilter{Search: "many"}, BulkDetails: admin.BulkDetails{Reason: "x", Until: until}}
	if _, err := o.adm.Bulk(t.Context(), admin.System("test").Accepting(), ban); err != nil {
		t.Error(err)
	}
}
