package admin_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
)

// failing has the n-th of a request's calls of the store fail, and returns that call.
func (o *office) failing(tap *storetap.Tap, at int, send func() *answer) (a *answer, method string) {
	o.mark = func(ctx context.Context) context.Context { return context.WithValue(ctx, ledgerKey{}, true) }
	tap.Reset(storetap.Hooks{
		Skip: func(ctx context.Context, _ string) bool { return ctx.Value(ledgerKey{}) == nil },
		Fault: func(_ context.Context, called string, n int) storetap.Fault {
			if n != at {
				return storetap.NoFault
			}
			method = called
			return storetap.FailsBefore
		},
	})
	a = send()
	tap.Reset(storetap.Hooks{})
	return a, method
}

// If the store fails midway through many accounts, exactly the reported changes were done.
func TestOutagesAmongMany(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
	o := newOffice(t, tap)
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	for k := 1; ; k++ {
		ids := o.crowd(fmt.Sprint("among", k, "x"), 3)
		a, method := o.failing(tap, k, func() *answer {
			return o.do(owner, "POST /users/bulk", `{"action":"ban","reason":"x","ids":`+quoted(ids)+`}`)
		})
		results, _ := a.body["results"].([]any)
		said := map[any]any{}
		for _, r := range results {
			r, _ := r.(map[string]any)
			said[r["id"]] = r["result"]
			if r["result"] == "failed" && r["code"] != string(auth.CodeUnavailable) {
				t.Errorf("call %d, %s, fails: %v", k, method, r)
			}
		}
		for _, id := range ids {
			if o.banned(id) != (said[id] == "done") {
				t.Errorf("call %d, %s, fails: banned %t, and the answer says %v of it", k, method, o.banned(id), said[id])
			}
		}
		if method == "" {
			if len(said) != 3 || a.status != 200 {
				t.Errorf("%d %v", a.status, a.body)
			}
			return
		}
		if len(said) == 3 && a.status != 200 || len(said) == 0 && a.status < 500 || len(said) != 0 && len(said) != 3 {
			t.Errorf("call %d, %s, fails: %d %v", k, method, a.status, a.body)
		}
	}
}

// If the store fails before a job has started, the answer reports it, and no job runs.
func TestOutagesBeforeJobs(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]struct {
		prepare func(o *office, owner *authtest.SignedIn) string
		send    func(o *office, owner *authtest.SignedIn, id string) *answer
		begins  bool
	}{
		"an import": {nil, func(o *office, owner *authtest.SignedIn, _ string) *answer {
			return o.do(owner, "POST /users/import", strings.Repeat(`{"email":"new@example.com"}`+"\n", 201), ndjson)
		}, true},
		"an import of long lines": {nil, func(o *office, owner *authtest.SignedIn, _ string) *answer { // some rows are stored before all are read
			return o.do(owner, "POST /users/import", strings.Repeat(`{"email":"`+strings.Repeat("x", 200<<10)+`"}`+"\n", 8), ndjson)
		}, true},
		"a selection": {nil, func(o *office, owner *authtest.SignedIn, _ string) *answer {
			return o.do(owner, "POST /users/bulk", `{"action":"ban","reason":"x","filter":{"q":"many"},"dry_run":true}`)
		}, false},
		"a selection of everybody": {nil, func(o *office, owner *authtest.SignedIn, _ string) *answer {
			return o.do(owner, "POST /users/bulk", `{"action":"ban","reason":"x","filter":{},"dry_run":true}`)
		}, false},
		"what was selected": {func(o *office, owner *authtest.SignedIn) string {
			a := o.do(owner, "POST /users/bulk", `{"action":"ban","reason":"x","filter":{"q":"many"},"dry_run":true}`).want(200)
			id, _ := a.body["selection_id"].(string)
			return id
		}, func(o *office, owner *authtest.SignedIn, id string) *answer {
			return o.do(owner, "POST /users/bulk", `{"action":"ban","selection_id":"`+id+`"}`)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tap := storetap.New(memstore.New())
			o := newOffice(t, tap)
			owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
			ids := o.crowd("many", 3)
			for k := 1; ; k++ {
				id := ""
				if try.prepare != nil {
					id = try.prepare(o, owner)
				}
				a, method := o.failing(tap, k, func() *answer { return try.send(o, owner, id) })
				if method == "" {
					if a.status >= 300 {
						t.Errorf("%d %v", a.status, a.body)
					}
					if id, ok := a.body["job_id"].(string); ok != try.begins {
						t.Errorf("%v", a.body)
					} else if ok {
						o.done(id)
					}
					break
				}
				if a.status < 500 || len(a.body) == 0 || a.body["job_id"] != nil || a.body["selection_id"] != nil {
					t.Errorf("call %d, %s, fails: %d %v", k, method, a.status, a.body)
				}
			}
			if n := o.countEvents(auth.EventJobStarted); try.begins && n != 1 || !try.begins && n != 0 {
				t.Errorf("%d jobs began", n)
			}
			if o.banned(ids[0]) != (name == "what was selected") {
				t.Error("somebody is banned whom nothing was done to, or the other way round")
			}
		})
	}
}

// An operation with a limit changes and sends nothing if the limit cannot be drawn from.
func TestLimitsThatCannotBeDrawn(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
	o, target := newScene(t, tap)
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	o.hasPhone(owner, "+4930123456")
	raw := o.LoginAs(t, "raw@example.com", authtest.Unverified())
	for i, pattern := range []string{
		"POST /users/" + target.User.ID + `/send {"type":"magic_link"}`, "POST /users/" + raw.User.ID + `/send {"type":"verify"}`, `POST /invitations {"email":"guest@example.com"}`,
		`POST /users {"email":"new@example.com","send":"verify"}`, `POST /users {"email":"new@example.com","send":"invite"}`,
		"POST /settings/test-mail ", "POST /settings/test-sms ", "POST /messages/" + o.failedMessage(target.User) + "/retry ", `POST /users/bulk {"action":"ban","reason":"x","filter":{"q":"target"},"dry_run":true}`, `POST /users/import {"email":"new@example.com"}`,
	} {
		method, rest, _ := strings.Cut(pattern, " ")
		path, body, _ := strings.Cut(rest, " ")
		var headers []string
		if strings.HasSuffix(path, "/import") {
			headers = append(headers, ndjson)
		}
		before := len(o.audit())
		tap.Reset(storetap.Hooks{Fault: func(_ context.Context, called string, _ int) storetap.Fault {
			if called == "Take" {
				return storetap.FailsBefore
			}
			return storetap.NoFault
		}})
		a := o.do(owner, method+" "+path, body, headers...)
		tap.Reset(storetap.Hooks{})
		if a.status < 500 {
			t.Errorf("%d: %s: %d %v", i, pattern, a.status, a.body)
		}
		if n := len(o.audit()); n != before {
			t.Errorf("%s: %d rows of the audit log", pattern, n-before)
		}
	}
}
