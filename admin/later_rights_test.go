package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// A selection of all accounts includes an owner when it is started, too, and not only in
// the dry run.
func TestSelectionOfEverybodyOutlivesNoOwner(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	o.permit("guard", admin.PermUsersBan, admin.PermUsersRead)
	o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	boss := o.LoginAs(t, "boss@example.com", authtest.Roles(auth.RoleOwner, "guard"), authtest.AAL2())
	ids := o.crowd("many", 3)
	tried := o.do(boss, "POST /users/bulk", `{"action":"ban","reason":"x","dry_run":true,"filter":{}}`).want(200)
	few := o.do(boss, "POST /users/bulk", `{"action":"ban","reason":"x","dry_run":true,"filter":{"q":"many0@example.com"}}`).want(200)
	if _, err := o.adm.SetRoles(t.Context(), admin.System("test").Accepting(), admin.SetRolesParams{UserID: boss.User.ID, Roles: []string{"guard"}}); err != nil {
		t.Fatal(err)
	}
	boss = o.renewed(boss)
	o.do(boss, "POST /users/bulk", fmt.Sprintf(`{"action":"ban","selection_id":"%v"}`, tried.body["selection_id"])).want(403, auth.CodeMissingPermission)
	o.done(fmt.Sprint(o.do(boss, "POST /users/bulk", fmt.Sprintf(`{"action":"ban","selection_id":"%v"}`, few.body["selection_id"])).want(202).body["job_id"]))
	if !o.banned(ids[0]) || o.banned(ids[1]) {
		t.Error("another than the selected is banned")
	}
}

// If the application decides who is an admin, no account becomes the owner by a link.
func TestNoFirstOwnerBesideAuthorize(t *testing.T) {
	t.Parallel()
	if link, err := withStaff(t, memstore.New()).adm.FirstOwnerLink(t.Context()); !errors.Is(err, auth.CodeInternal) || link != "" {
		t.Error(link, err)
	}
}

// An actor without the permission cannot read jobs, and the refusal is recorded under the
// operation.
func TestJobsOfOthersAreNotRead(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	clerk := o.operator("clerk@example.com", admin.PermStatsRead)
	for _, operation := range []string{"GET /jobs/{id}", "GET /jobs/{id}/results"} {
		o.do(clerk, strings.ReplaceAll(operation, "{id}", o.aJob()), "").want(403, auth.CodeMissingPermission)
		o.until("the refusal is recorded", func() bool {
			p, err := o.adm.AuditLog(t.Context(), admin.System("test").Accepting(), admin.AuditLogParams{Limit: 50})
			if err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(p.Events, func(e auth.Event) bool {
				return e.Record != nil && e.Record.Denied && e.Record.Operation == operation
			})
		})
	}
	o.do(clerk, "GET /jobs/nothing", "").want(404, auth.CodeNotFound)
}

// overJobs is a store in which jobs are over before they start.
type overJobs struct{ *memstore.Store }

func (overJobs) StartJob(context.Context, store.StartJob) (store.Job, error) {
	return store.Job{}, store.ErrNotFound
}

// A job that is over before it starts is not found, which is no internal error.
func TestJobThatIsOverIsNotBegun(t *testing.T) {
	t.Parallel()
	o := newOffice(t, overJobs{memstore.New()})
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	o.do(owner, "POST /users/import", `{"email":"ada@example.com"}`, ndjson).want(404, auth.CodeNotFound)
}

// The log has jobs that fail, and no others: neither those that are done nor the absence
// of jobs.
func TestLogOfJobsThatGoWell(t *testing.T) {
	t.Parallel()
	var log lines
	o := newOffice(t, memstore.New(), auth.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	for range 2 {
		o.job = ""
		o.aJob()
	}
	if strings.Contains(log.String(), "waits for another try") {
		t.Error(log.String())
	}
}

// A key that is unreadable or would never work is refused with its invalid field.
func TestKeysThatMakeNoSense(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	good := admin.CreateKeyParams{Name: "k", Scopes: []string{admin.PermUsersRead}}
	for name, row := range map[string]struct {
		set   func(*admin.CreateKeyParams)
		field string
	}{
		"a name of spaces":     {func(p *admin.CreateKeyParams) { p.Name = "  " }, "name"},
		"two lines":            {func(p *admin.CreateKeyParams) { p.Name = "a\nb" }, "name"},
		"delete":               {func(p *admin.CreateKeyParams) { p.Name = "a\x7fb" }, "name"},
		"no text":              {func(p *admin.CreateKeyParams) { p.Name = "a\xffb" }, "name"},
		"an environment":       {func(p *admin.CreateKeyParams) { p.Environment = "te_st" }, "environment"},
		"no scopes":            {func(p *admin.CreateKeyParams) { p.Scopes = nil }, "scopes"},
		"a public one with":    {func(p *admin.CreateKeyParams) { p.Public = true }, "scopes"},
		"no network":           {func(p *admin.CreateKeyParams) { p.Networks = []string{"192.0.2.1"} }, "cidrs"},
		"one in another's":     {func(p *admin.CreateKeyParams) { p.Networks = []string{"::ffff:192.0.2.0/120"} }, "cidrs"},
		"until now":            {func(p *admin.CreateKeyParams) { p.ExpiresAt = o.Clock.Now() }, "expires_at"},
		"until a moment later": {func(p *admin.CreateKeyParams) { p.ExpiresAt = o.Clock.Now().Add(time.Second) }, ""},
	} {
		p := good
		row.set(&p)
		_, err := o.adm.CreateKey(t.Context(), admin.System("test").Accepting(), p)
		var e *auth.Error
		switch {
		case row.field == "" && err == nil:
		case !errors.As(err, &e) || e.Code != auth.CodeValidationFailed || e.Fields[row.field] == "":
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every operation refuses a misspelt query parameter, instead of ignoring it.
func TestMisspeltQueries(t *testing.T) {
	t.Parallel()
	o, target := newScene(t, memstore.New())
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	for _, path := range []string{
		"/settings", "/users", "/users/lookup", "/audit-logs", "/audit-logs/export", "/sessions", "/keys", "/stats", "/overview", "/messages", "/invitations",
		"/impersonations", "/users/export", "/users/" + target.User.ID + "/events",
	} {
		if a := o.do(owner, "GET "+path+"?colour=red", ""); a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	for _, two := range []string{"id=" + target.User.ID + "&email=x@example.com", "email=x@example.com&phone=%2B491701234567", "phone=%2B491701234567&provider=acme&subject=1", "provider=acme", "subject=1", ""} {
		if a := o.do(owner, "GET /users/lookup?"+two, ""); a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", two, a.status)
		}
	}
}

// Without an interval, statistics are by the hour for up to two days, and by the day for
// longer spans.
func TestIntervalsOfFigures(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	now := o.Clock.Now()
	for from, want := range map[time.Time]store.Interval{{}: store.Hourly, now.Add(-48 * time.Hour): store.Hourly, now.Add(-48*time.Hour - time.Second): store.Daily, now.AddDate(0, -1, 0): store.Daily} {
		s, err := o.adm.Stats(t.Context(), admin.System("test").Accepting(), admin.StatsParams{From: from})
		if err != nil || s.Interval != want {
			t.Errorf("from %v: %v, %v", from, s.Interval, err)
		}
	}
}

// The record of a new account has all its fields, and a role keeps its description.
func TestMakingIsRecordedWhole(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	o.permit("writer", notes)
	u, err := o.adm.CreateUser(t.Context(), admin.System("test").Accepting(), admin.CreateUserParams{Email: "ada@example.com", Roles: []string{"writer"}})
	if err != nil {
		t.Fatal(err)
	}
	rows := o.audit()
	i := slices.IndexFunc(rows, func(e auth.Event) bool { return e.UserID == u.ID })
	if i < 0 || rows[i].Record.Changes["roles"].After == nil {
		t.Errorf("the roles are not recorded: %+v", rows)
	}
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	o.do(owner, "POST /roles", `{"name":"reader","description":"Reads.","permissions":[]}`).want(201)
	if a := o.do(owner, "GET /roles/reader", "").want(200); a.body["description"] != "Reads." {
		t.Error(a.body)
	}
	if a := o.do(owner, "GET /users/"+u.ID, "").want(200); a.header.Get("ETag") == "" {
		t.Error("an account without a revision")
	}
}

// An import keeps the time at which an email address was verified, and reports a phone
// number that is taken as such.
func TestImportKeepsWhenItWasProved(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	got := o.imports(owner, "", `{"email":"ada@example.com","email_verified_at":"2020-01-02T03:04:05Z","phone":"+491701234567","phone_verified_at":"2021-01-02T03:04:05Z"}`,
		`{"email":"bob@example.com","phone":"+491701234567"}`)
	wantResults(t, got, "done", "failed user_already_exists phone")
	if ada := o.read(fmt.Sprint(got[0]["id"])); ada.EmailVerifiedAt.Year() != 2020 || ada.PhoneVerifiedAt.Year() != 2021 {
		t.Errorf("%+v", ada)
	}
}

// A filter with a condition that all accounts meet counts as a filter of all accounts,
// too.
func TestSelectionOfAllByAConditionIsOfEverybody(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	guard := o.operator("guard@example.com", admin.PermUsersBan, admin.PermUsersRead)
	o.crowd("many", 2)
	const try = `{"action":"ban","reason":"x","dry_run":true,"filter":`
	o.do(guard, "POST /users/bulk", try+`{"created_from":"2000-01-02T03:04:05Z"}}`).want(403, auth.CodeMissingPermission)
	o.do(guard, "POST /users/bulk", try+`{"created_from":"2000-01-02T03:04:05Z","q":"many"}}`).want(200)
}
