package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

const ndjson = "Content-Type: application/x-ndjson"

// aJob returns the id of a completed job.
func (o *office) aJob() string {
	o.t.Helper()
	if o.job != "" {
		return o.job
	}
	id, err := o.adm.ImportUsers(o.t.Context(), admin.System("test").Accepting(), admin.ImportUsersParams{}, strings.NewReader("{}\n"))
	if err != nil {
		o.t.Fatal(err)
	}
	o.done(id)
	o.job = id
	return id
}

// done waits for a job, and returns the results of its rows.
func (o *office) done(id string) (results []map[string]any) {
	o.t.Helper()
	o.until("the job is done", func() bool {
		j, err := o.adm.Job(o.t.Context(), admin.System("test").Accepting(), id)
		if err != nil {
			o.t.Fatal(err)
		}
		return j.State == store.JobDone
	})
	var b bytes.Buffer
	if err := o.adm.JobResults(o.t.Context(), admin.System("test").Accepting(), id, &b); err != nil {
		o.t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			o.t.Fatal(err)
		}
		results = append(results, r)
	}
	return results
}

// imports sends rows, and returns their results.
func (o *office) imports(who *authtest.SignedIn, query string, rows ...string) []map[string]any {
	o.t.Helper()
	a := o.do(who, "POST /users/import"+query, strings.Join(rows, "\n"), ndjson).want(202)
	id, _ := a.body["job_id"].(string)
	return o.done(id)
}

// wantResults compares results and codes of rows: "done", "failed validation_failed email".
func wantResults(t *testing.T, got []map[string]any, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d results, want %d: %v", len(got), len(want), got)
	}
	for i, r := range got {
		parts := []string{}
		for _, name := range []string{"result", "code", "field"} {
			if s, _ := r[name].(string); s != "" {
				parts = append(parts, s)
			}
		}
		if s := strings.Join(parts, " "); s != want[i] {
			t.Errorf("row %d: %s, want %s (%v)", i, s, want[i], r)
		}
	}
}

// Rows are imported whole: users sign in with their old credentials.
func TestImport(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		hash, err := bcrypt.GenerateFromPassword([]byte("an old phrase of theirs"), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		const id = "0b2f9e6c-8a3d-4e51-9d2b-6f1a7c3e5d90"
		results := o.imports(owner, "",
			fmt.Sprintf(`{"id":"%s","email":"ada@old.example.com","email_verified":true,"password_hash":"%s","full_name":"Ada","roles":["support"],"app_metadata":{"plan":"gold"},"created_at":"2020-01-02T03:04:05Z","identities":[{"provider":"github","subject":"7"}]}`, id, hash),
			`{"email":"bob@old.example.com","totp_secret":"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ","banned_until":"2999-01-01T00:00:00Z"}`,
			"",
			`{"email":"ADA@old.example.com"}`,
			`{"email":"eve@old.example.com","surname":"Eve"}`,
			`{"email":"eve@old.example.com","roles":["nobody"]}`,
			`{"full_name":"Nobody"}`)
		wantResults(t, results, "done", "done", "failed user_already_exists email", "failed validation_failed surname", "failed role_not_found", "failed validation_failed email")
		if results[0]["id"] != id || results[2]["row"] != 4.0 {
			t.Errorf("%v", results)
		}
		if _, err := o.Login(t.Context(), auth.LoginParams{Email: "ada@old.example.com", Password: "an old phrase of theirs"}); err != nil {
			t.Error(err)
		}
		ada := o.read(id)
		if ada.AppMetadata["plan"] != "gold" || ada.CreatedAt.Year() != 2020 || !ada.EmailVerified() || len(ada.Identities) != 1 || ada.Roles[0] != "support" {
			t.Errorf("%+v", ada)
		}
		bob, err := o.Store.User(t.Context(), store.ByEmail("bob@old.example.com"))
		if err != nil || !bob.MFAEnabled || !bob.Banned(o.Clock.Now()) {
			t.Errorf("%+v %v", bob, err)
		}
		imported := 0
		for _, e := range o.audit() {
			if e.Type == auth.EventUserImported {
				imported++
				if e.Actor.ID != owner.User.ID || e.Record.Operation != "POST /users/import" || e.Record.Target == "" || e.UserID == "" {
					t.Errorf("recorded %+v %+v", e, e.Record)
				}
			}
			if strings.Contains(fmt.Sprintf("%+v", e.Record), string(hash)) {
				t.Error("the audit log has the hash")
			}
		}
		if imported != 2 {
			t.Errorf("%d rows of the audit log for 2 accounts", imported)
		}
	})
}

// If the application has a hook for new accounts, rows are done one after the other, and
// each is reported.
func TestImportAsksTheApplication(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st, auth.WithHooks(auth.Hooks{OnUserCreating: func(_ context.Context, u auth.User) error {
			if strings.HasPrefix(u.Email, "eve") {
				return auth.Reject(auth.CodeSignupDisabled, "Nobody called so.")
			}
			return nil
		}}))
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		results := o.imports(owner, "", `{"email":"ada@old.example.com"}`, `{"email":"eve@old.example.com"}`, `{"email":"bob@old.example.com"}`)
		wantResults(t, results, "done", "failed "+string(auth.CodeSignupDisabled), "done")
		for email, there := range map[string]bool{"ada@old.example.com": true, "eve@old.example.com": false, "bob@old.example.com": true} {
			if _, err := st.User(t.Context(), store.ByEmail(email)); (err == nil) != there {
				t.Errorf("%s: %v", email, err)
			}
		}
	})
}

// Each option for conflicts does the documented thing to an existing account.
func TestImportConflicts(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.imports(owner, "", `{"email":"ada@old.example.com","full_name":"Ada","user_metadata":{"a":1,"b":2}}`)
		ada, err := o.Store.User(t.Context(), store.ByEmail("ada@old.example.com"))
		if err != nil {
			t.Fatal(err)
		}
		const row = `{"email":"ada@old.example.com","full_name":"Countess","user_metadata":{"a":null},"email_verified":true,"phone":"+4930123456","phone_verified":true,"roles":["support"]}`
		wantResults(t, o.imports(owner, "?on_conflict=skip", row), "skipped user_already_exists email")
		wantResults(t, o.imports(owner, "?on_conflict=error", row), "failed user_already_exists email")
		wantResults(t, o.imports(owner, "", `{"email":"bob@old.example.com","email_verified_at":"2020-01-02T03:04:05Z","phone":"+4930123457","phone_verified_at":"2021-01-02T03:04:05Z"}`), "done")
		if bob, err := o.Store.User(t.Context(), store.ByPhone("+4930123457")); err != nil || bob.EmailVerifiedAt.Year() != 2020 || bob.PhoneVerifiedAt.Year() != 2021 {
			t.Errorf("%+v, %v", bob, err)
		}
		wantResults(t, o.imports(owner, "?on_conflict=skip", `{"email":"eve@old.example.com","phone":"+4930123457"}`), "skipped user_already_exists phone")
		if now := o.read(ada.ID); now.FullName != "Ada" || now.Revision != ada.Revision {
			t.Errorf("%+v", now)
		}
		wantResults(t, o.imports(owner, "?on_conflict=update", row, `{"email":"owner@example.com","full_name":"Me"}`, `{"email":"ada@old.example.com","totp_secret":"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"}`),
			"done", "skipped target_stronger", "failed validation_failed totp_secret")
		wantResults(t, o.imports(owner, "?on_conflict=update", `{"email":"ada@old.example.com","full_name":"`+strings.Repeat("x", 1000)+`"}`), "failed validation_failed full_name")
		hash, err := bcrypt.GenerateFromPassword([]byte(authtest.Password), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		wantResults(t, o.imports(owner, "?on_conflict=update", fmt.Sprintf(`{"email":"ada@old.example.com","password_hash":"%s"}`, hash)), "done")
		if !slices.ContainsFunc(o.audit(), func(e auth.Event) bool {
			return e.UserID == ada.ID && e.Record != nil && e.Record.Changes["password"].After == true
		}) {
			t.Error("no event says that the import set a password")
		}
		now := o.read(ada.ID)
		if _, there := now.UserMetadata["a"]; now.FullName != "Countess" || there || !now.EmailVerified() || now.Phone != "+4930123456" || !now.PhoneVerified() || now.Roles[0] != "support" {
			t.Errorf("%+v", now)
		}
		o.do(owner, "POST /users/import?on_conflict=replace", row, ndjson).want(422, auth.CodeValidationFailed)
	})
}

// Each field of a row needs the permission of its own operation, whether the account
// exists or not.
func TestImportNeedsThePermissionOfEachField(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		clerk := o.operator("clerk@example.com", admin.PermUsersImport, admin.PermUsersRead)
		giver := o.operator("giver@example.com", admin.PermUsersImport, admin.PermUsersRead, admin.PermRolesAssign)
		target := o.LoginAs(t, "target@example.com")
		strong := o.LoginAs(t, "strong@example.com", authtest.Permissions(admin.PermKeysRead))
		for i, fields := range []string{`"email_verified":true`, `"password_hash":"$2a$04$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy"`, `"totp_secret":"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"`, `"identities":[{"provider":"github","subject":"9"}]`, `"roles":["support"]`, `"banned_until":"2999-01-01T00:00:00Z"`, `"user_handle":"` + strings.Repeat("A", 43) + `"`} {
			row := fmt.Sprintf(`{"email":"new%d@example.com",%s}`, i, fields)
			wantResults(t, o.imports(clerk, "", row), "failed missing_permission")
			if strings.Contains(fields, "totp") || strings.Contains(fields, "handle") || strings.Contains(fields, "identities") {
				continue
			}
			wantResults(t, o.imports(clerk, "?on_conflict=update", fmt.Sprintf(`{"id":"%s","email":"target@example.com",%s}`, target.User.ID, fields)), "failed missing_permission")
		}
		wantResults(t, o.imports(clerk, "?on_conflict=update", `{"email":"target@example.com","full_name":"Weak"}`), "failed missing_permission")
		wantResults(t, o.imports(giver, "", `{"email":"n@example.com","roles":["support"]}`), "skipped target_stronger")
		wantResults(t, o.imports(giver, "?on_conflict=update", `{"email":"target@example.com","roles":["owner"]}`), "skipped target_stronger")
		wantResults(t, o.imports(clerk, "?on_conflict=update", `{"email":"strong@example.com","full_name":"Weak"}`), "skipped target_stronger")
		long := o.operator("long@example.com", admin.PermUsersImport, admin.PermUsersRead, admin.PermUsersBan)
		wantResults(t, o.imports(long, "?on_conflict=update", `{"email":"banned@example.com","banned_until":"9999-12-30T00:00:00Z"}`, `{"email":"target@example.com","banned_until":"9999-12-30T00:00:00Z"}`), "done", "done")
		for _, email := range []string{"banned@example.com", "target@example.com"} {
			if u, err := o.Store.User(t.Context(), store.ByEmail(email)); err != nil || u.Anonymized() || !u.Banned(o.Clock.Now()) {
				t.Errorf("%s: a ban passes for something else: %v %v", email, u.BannedUntil, err)
			}
		}
		if u := o.read(strong.User.ID); u.FullName == "Weak" {
			t.Error("a stronger account was changed")
		}
		if u := o.read(target.User.ID); len(u.Roles) != 0 {
			t.Errorf("%+v", u)
		}
	})
}

// An invalid import changes nothing, and its error names the mistake.
func TestImportRefuses(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		for name, body := range map[string]string{
			"nothing": "\n", "a list": `[{"email":"a@example.com"}]`, "half a line": "{\"email\":\"a@example.com\"}\n{\"email\":", "a table": "email,name\na@example.com,Ada",
			"a long line": `{"email":"a@example.com","full_name":"` + strings.Repeat("a", 300<<10) + `"}`,
		} {
			if a := o.do(owner, "POST /users/import", body, ndjson); a.status != 422 || a.body["code"] != string(auth.CodeValidationFailed) {
				t.Errorf("%s: %d %v", name, a.status, a.body)
			}
		}
		o.do(owner, "POST /users/import", `{"email":"a@example.com"}`).want(415, auth.CodeUnsupportedMediaType)
		if _, err := o.Store.User(t.Context(), store.ByEmail("a@example.com")); err == nil {
			t.Error("somebody was made")
		}
	})
}

// endless is a line without an end.
type endless struct{ read int64 }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'a'
	}
	e.read += int64(len(b))
	return len(b), nil
}

// The import stops reading a line that is too long, and does not buffer it.
func TestImportOfALineWithoutEnd(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	body := &endless{}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/auth/v1/admin/users/import", body)
	r.Header.Set("Content-Type", "application/x-ndjson")
	owner.Sign(r)
	w := httptest.NewRecorder()
	o.mux.ServeHTTP(w, r)
	if w.Code != 422 || body.read > 1<<20 {
		t.Errorf("%d %s after %d bytes", w.Code, w.Body, body.read)
	}
}

// until waits for a condition that another goroutine brings about.
func (o *office) until(what string, holds func() bool) {
	o.t.Helper()
	tick, deadline := time.NewTicker(5*time.Millisecond), time.After(3*time.Minute)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			o.t.Fatalf("not in time: %s", what)
		}
	}
}

// A job continues after its process ends, before or after any call of the store, and
// nothing is done twice: each account has one row in the audit log, and each row of the
// import has the same result as without the crash.
func TestImportGoesOnAfterACrash(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		tap := storetap.New(st)
		o := newOffice(t, tap)
		for _, fault := range []storetap.Fault{storetap.FailsBefore, storetap.FailsAfter} {
			for k := 1; ; k++ {
				name := fmt.Sprintf("%.8s%d@example.com", strings.ReplaceAll(string(fault), " ", ""), k)
				owner := o.LoginAs(t, "owner"+name, authtest.Roles(auth.RoleOwner), authtest.AAL2())
				o.imports(owner, "", fmt.Sprintf(`{"email":"there%s"}`, name))
				c := &crash{fault: fault, at: int64(k)}
				tap.Reset(c.hooks())
				id, err := o.adm.ImportUsers(t.Context(), actor(owner), admin.ImportUsersParams{OnConflict: admin.OnConflictUpdate}, strings.NewReader(
					fmt.Sprintf("{\"email\":\"one%[1]s\"}\n{\"email\":\"there%[1]s\",\"full_name\":\"There\"}\n{\"email\":\"two%[1]s\"}\n", name)))
				if err != nil {
					t.Fatal(err)
				}
				o.until("the crash, or the end", func() bool {
					j, err := o.adm.Job(t.Context(), admin.System("test").Accepting(), id)
					return c.happened.Load() || err == nil && j.State == store.JobDone
				})
				tap.Reset(storetap.Hooks{})
				o.until("the lease is over", func() bool {
					o.Clock.Advance(time.Minute)
					admin.Work(t.Context(), o.adm)
					j, err := o.adm.Job(t.Context(), admin.System("test").Accepting(), id)
					return err == nil && j.State == store.JobDone
				})
				wantResults(t, o.done(id), "done", "done", "done")
				o.recordedOnce(id, fmt.Sprintf("call %d %s", k, fault))
				if !c.happened.Load() {
					break
				}
			}
		}
	})
}

// recordedOnce checks the audit log's rows of an import of three rows.
func (o *office) recordedOnce(id, when string) {
	o.t.Helper()
	made := map[auth.EventType]int{}
	for _, e := range o.audit() {
		if e.Record.RequestID == id {
			made[e.Type]++
		}
	}
	if made[auth.EventUserImported] != 2 || made[auth.EventUserUpdated] != 1 {
		o.t.Errorf("%s: %v", when, made)
	}
}

// crash makes a call of the store by a job fail.
type crash struct {
	fault    storetap.Fault
	at       int64
	armed    atomic.Bool
	n        atomic.Int64
	happened atomic.Bool
}

func (c *crash) hooks() storetap.Hooks {
	return storetap.Hooks{
		Background: true,
		Skip: func(_ context.Context, method string) bool {
			return slices.Contains([]string{"ClaimMessages", "FinishMessage", "AddEvents", "SweepEvents", "AddCounts", "Settings", "ClaimJob", "Job"}, method)
		},
		After: func(_ context.Context, method string, _ int, err error) {
			if method == "StartJob" && err == nil {
				c.armed.Store(true)
			}
		},
		Fault: func(_ context.Context, _ string, _ int) storetap.Fault {
			if !c.armed.Load() || c.n.Add(1) != c.at {
				return storetap.NoFault
			}
			c.happened.Store(true)
			return c.fault
		},
	}
}
