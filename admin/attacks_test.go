package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// An actor's own account is recognised in every spelling of its id.
func TestOwnIDInOtherForms(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.LoginAs(t, "other@example.com", authtest.Roles(auth.RoleOwner))
		for _, row := range admin.Table() {
			if !row.Targets || row.Self || !strings.Contains(row.Pattern, "/users/{id}") {
				continue
			}
			for _, id := range []string{strings.ToUpper(owner.User.ID), "{" + owner.User.ID + "}", "urn:uuid:" + owner.User.ID} {
				pattern := strings.NewReplacer("{id}", id, "{role}", "support", "{factor}", owner.User.ID, "{identity}", owner.User.ID).Replace(row.Pattern)
				if a := o.do(owner, pattern, examples[row.Pattern].body); a.status < 400 {
					t.Errorf("%s: %d %v", pattern, a.status, a.body)
				}
			}
		}
	})
}

// A filter that matches every account counts, in any form, as a filter of all
// accounts.
func TestEverybodyByAnotherName(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		o.crowd("crowd", 3)
		support := o.operator("support@example.com", admin.PermUsersBan, admin.PermUsersRead)
		for _, filter := range []string{`{"q":" "}`, `{"created_from":"1970-01-01T00:00:00Z"}`, `{"created_to":"9999-01-01T00:00:00Z"}`} {
			o.do(support, "POST /users/bulk", `{"action":"ban","reason":"x","dry_run":true,"filter":`+filter+`}`).want(403, auth.CodeMissingPermission)
		}
		o.do(o.later(support), "POST /users/bulk", `{"action":"ban","reason":"x","dry_run":true,"filter":{"q":"crowd"}}`).want(403, auth.CodeReauthNeeded)
	})
}

// The id of a deleted account is not used again, because the records of the old account
// would be attributed to the new one, also after the audit log has forgotten it.
func TestIDsAreNotUsedAgain(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		id := o.LoginAs(t, "gone@example.com").User.ID
		o.do(owner, "POST /users/"+id+"/delete", `{"reason":"x"}`).want(204)
		journal, _ := store.Capability[store.Journal](st)
		if _, err := journal.SweepEvents(t.Context(), o.Clock.Now().Add(time.Hour), o.Clock.Now(), 1000); err != nil {
			t.Fatal(err)
		}
		o.do(owner, "POST /users", fmt.Sprintf(`{"id":"%s","email":"next@example.com"}`, id)).want(409, auth.CodeUserAlreadyExists)
		wantResults(t, o.imports(owner, "", fmt.Sprintf(`{"id":"%s","email":"next@example.com"}`, strings.ToUpper(id))), "failed user_already_exists id")
	})
}

// A hook that panics fails only the rows that it was called for.
func TestPanicInAJob(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store, auth.WithHooks(auth.Hooks{OnUserCreating: func(context.Context, auth.User) error { panic("in a hook") }}))
		wantResults(t, o.done(o.begins(t, `{"email":"ada@example.com"}`)), "failed internal")
	})
}

// A panic at one of many accounts is reported for that account. The others are done and
// reported as done, with a job and without.
func TestPanicAtOneOfMany(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		tap := storetap.New(store)
		o := newOffice(t, tap)
		who := admin.System("test").Accepting()
		var bans atomic.Int32
		panics := storetap.Hooks{Background: true, Before: func(_ context.Context, method string, _ int) {
			if method == "UpdateUser" && bans.Add(1)%3 == 2 {
				panic("in a store")
			}
		}}
		wantBans := func(ids []string) {
			t.Helper()
			if !o.banned(ids[0]) || o.banned(ids[1]) || !o.banned(ids[2]) {
				t.Error("all but the second were to be banned")
			}
		}
		named := o.crowd("named", 3)
		tap.Reset(panics)
		res, err := o.adm.Bulk(t.Context(), who, admin.BulkParams{Action: admin.BulkBan, UserIDs: named, BulkDetails: admin.BulkDetails{Reason: "x"}})
		tap.Reset(storetap.Hooks{})
		if err != nil || res.Counts.Done != 2 || res.Counts.Failed != 1 {
			t.Errorf("%+v, %v", res, err)
		}
		wantBans(named)
		bans.Store(0)
		searched := o.crowd("searched", 3)
		id := o.selected(who, admin.BulkBan, "searched")
		tap.Reset(panics)
		got := o.done(o.started(who, admin.BulkBan, id))
		tap.Reset(storetap.Hooks{})
		done := 0
		for _, r := range got {
			if told := r["result"] == "done"; told != o.banned(r["id"].(string)) {
				t.Errorf("%v", r)
			} else if told {
				done++
			}
		}
		if done != 2 || len(got) != len(searched) {
			t.Errorf("%v", got)
		}
	})
}

func (o *office) begins(t *testing.T, rows string) string {
	t.Helper()
	id, err := o.adm.ImportUsers(t.Context(), admin.System("test").Accepting(), admin.ImportUsersParams{}, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Unknown parameters and fields are refused, and names have one spelling.
func TestNothingIsOverlooked(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, target := newScene(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.do(owner, "POST /users/"+target.User.ID+"/ban?dry_run=true", `{"reason":"x"}`).want(422, auth.CodeValidationFailed)
		o.do(owner, "DELETE /roles/"+role+"?dry_run=", "").want(422, auth.CodeValidationFailed)
		wantResults(t, o.imports(owner, "", `{"email":"a@example.com","ROLES":["owner"]}`), "failed validation_failed ROLES")
	})
}

// Another site cannot have a visitor's browser make an export in the visitor's name.
func TestNoExportForAnotherSite(t *testing.T) {
	t.Parallel()
	o := withStaff(t, memstore.New())
	for _, row := range admin.Table() {
		if !strings.HasPrefix(row.Pattern, http.MethodGet) || row.Reads {
			continue
		}
		a := o.do(nil, strings.ReplaceAll(row.Pattern, "{id}", "01a1fb4c-2b13-7a71-806e-d67843451400"), "", o.staff("*"), "Sec-Fetch-Site: cross-site")
		if a.status != 403 || a.body["code"] != string(auth.CodeCrossSiteRequest) {
			t.Errorf("%s: %d %v", row.Pattern, a.status, a.body)
		}
	}
}

// A job that a key started ends with the text of the key.
func TestJobEndsWithTheRotationOfItsKey(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		tap := storetap.New(store)
		o := newOffice(t, tap)
		k := o.key(admin.System("test").Accepting(), admin.PermUsersImport, admin.PermUsersRead)
		var once sync.Once
		tap.Reset(storetap.Hooks{Background: true, Before: func(ctx context.Context, method string, _ int) {
			if method == "JobChunk" { // the job has started
				once.Do(func() {
					if _, err := o.adm.RotateKey(ctx, admin.System("test").Accepting(), admin.RotateKeyParams{ID: k.ID}); err != nil {
						t.Error(err)
					}
				})
			}
		}})
		id, _ := o.do(program(k), "POST /users/import", `{"email":"ada@example.com"}`, ndjson).want(202).body["job_id"].(string)
		wantResults(t, o.done(id), "failed invalid_api_key")
		tap.Reset(storetap.Hooks{})
	})
}
