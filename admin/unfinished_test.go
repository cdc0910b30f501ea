package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// A client that repeats a request that revoked a part of all sessions, as after a 503,
// revokes the rest, and no session that was started since.
func TestRevokeAllGoesOn(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		tap := storetap.New(store)
		o := newOffice(t, tap)
		o.adm.EndsAtOnce(2)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		var old []*authtest.SignedIn
		for i := range 5 {
			old = append(old, o.LoginAs(t, fmt.Sprintf("u%d@example.com", i)))
		}
		calls := 0
		tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, _ int) storetap.Fault {
			if method == "EndEverySession" {
				if calls++; calls == 2 {
					return storetap.FailsBefore
				}
			}
			return storetap.NoFault
		}})
		o.do(owner, "POST /sessions/revoke", `{"all":true,"reason":"leak"}`, "Idempotency-Key: all").want(503, auth.CodeUnavailable)
		o.Clock.Advance(time.Minute)
		since := o.LoginAs(t, "since@example.com")
		o.do(owner, "POST /sessions/revoke", `{"all":true,"reason":"leak"}`, "Idempotency-Key: all").want(200)
		o.do(owner, "POST /sessions/revoke", `{"all":true,"reason":"leak"}`, "Idempotency-Key: all").want(200)
		live := func(s *authtest.SignedIn) bool {
			_, _, err := store.Session(t.Context(), s.SessionID, o.Clock.Now())
			return err == nil
		}
		for i, s := range old {
			if live(s) {
				t.Errorf("session %d is live after it was answered that all are ended", i)
			}
		}
		if !live(since) || !live(owner) {
			t.Errorf("a session of later is live: %t; the operator's own: %t", live(since), live(owner))
		}
		if n := o.countEvents(auth.EventSessionsEnded); n != 1 {
			t.Errorf("%d rows of the audit log", n)
		}
	})
}

// A selection that an external admin tried is done with the permissions that they have at
// its start, not at the dry run.
func TestStaffStartWithWhatTheyMay(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := withStaff(t, st)
		target := o.LoginAs(t, "boss@example.com", authtest.Roles("admin"))
		o.LoginAs(t, "ada@example.com") // otherwise it would be all accounts
		id := o.do(nil, "POST /users/bulk", `{"action":"ban","reason":"x","dry_run":true,"filter":{"q":"boss"}}`, o.staff("*")).want(200).body["selection_id"]
		start := fmt.Sprintf(`{"action":"ban","selection_id":"%s"}`, id)
		o.do(nil, "POST /users/bulk", start, o.staff(admin.PermUsersRead, admin.PermUsersBan)).want(404, auth.CodeNotFound)
		admin.Work(t.Context(), o.adm)
		if u, err := o.Store.User(t.Context(), store.ByID(target.User.ID)); err != nil || u.Banned(o.Clock.Now()) {
			t.Errorf("whom they may not touch is banned: %v", err)
		}
		o.do(nil, "POST /users/bulk", start, o.staff("*")).want(202)
	})
}

// A reader loses access to the results of a job together with their permission.
func TestResultsEndWithTheirReader(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.LoginAs(t, "second@example.com", authtest.Roles(auth.RoleOwner))
		rows := make([]string, 2100)
		for i := range rows {
			rows[i] = fmt.Sprintf(`{"email":"r%d@example.com","full_name":"%s"}`, i, strings.Repeat("x", 300)) // each fails, soon
		}
		id := fmt.Sprint(o.do(owner, "POST /users/import", strings.Join(rows, "\n"), "Content-Type: application/x-ndjson").want(202).body["job_id"])
		o.done(id)
		for _, demoted := range []bool{false, true} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/auth/v1/admin/jobs/"+id+"/results", http.NoBody)
			owner.Sign(r)
			w := &meddling{ResponseRecorder: httptest.NewRecorder(), meanwhile: func() {
				if demoted {
					o.patch(owner.User.ID, store.UserPatch{Roles: &[]string{}})
				}
			}}
			func() {
				defer func() { _ = recover() }() // a response that breaks off
				o.mux.ServeHTTP(w, r)
			}()
			if lines := strings.Count(w.Body.String(), "\n"); demoted && lines >= len(rows) || !demoted && lines != len(rows) {
				t.Errorf("demoted %t: %d lines of %d", demoted, lines, len(rows))
			}
		}
	})
}
