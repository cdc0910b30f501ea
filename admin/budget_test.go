package admin_test

import (
	"fmt"
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

// reaching are the permissions that reach many accounts.
var reaching = []string{admin.PermUsersRead, admin.PermUsersBan, admin.PermUsersDelete, admin.PermSessionsRead, admin.PermSessionsRevoke, admin.PermMessagesRead, admin.PermMessagesSend}

// reach runs an operation on each account in turn, and returns how many it was done to.
func (o *office) reach(who *authtest.SignedIn, ids []string, one func(id string) string) (n int) {
	o.t.Helper()
	for _, id := range ids {
		pattern, body, _ := strings.Cut(one(id), "|")
		switch a := o.do(who, pattern, body); a.status {
		case 200, 202, 204:
			n++
		case 403:
			a.want(403, auth.CodeReauthNeeded)
		default:
			a.want(429, auth.CodeRateLimited)
		}
	}
	return n
}

// portions are ways to reach one account of many. Each is an operation of the table.
var portions = []func(id string) string{
	func(id string) string { return "POST /users/" + id + `/ban|{"reason":"x"}` },
	func(id string) string { return "DELETE /users/" + id + "/sessions" },
	func(id string) string { return "POST /sessions/revoke|" + `{"user_ids":["` + id + `"]}` },
	func(id string) string { return "POST /users/" + id + `/send|{"type":"reset"}` },
	func(id string) string { return "POST /users/" + id + `/delete|{"reason":"x"}` },
	func(id string) string { return "POST /users/" + id + `/anonymize|{"reason":"x"}` },
}

// A stale session reaches fifty accounts in an hour, whichever operations it uses and in
// whatever portions. It deletes none.
func TestBudgetOfAStaleSession(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		for i, one := range portions {
			thief := o.later(o.operator(fmt.Sprintf("thief%d@example.com", i), reaching...))
			want := 50
			if i > 3 {
				want = 0
			}
			if n := o.reach(thief, o.crowd(fmt.Sprint("crowd", i), 55), one); n != want {
				t.Errorf("portion %d reached %d accounts, want %d", i, n, want)
			}
		}
		thief := o.later(o.operator("thief@example.com", reaching...))
		n, ids := 0, o.crowd("all", 80)
		for i, chunk := range slices.Collect(slices.Chunk(ids, 10)) {
			if i%2 == 0 {
				n += o.reach(thief, chunk, portions[i/2%4])
				continue
			}
			a := o.do(thief, "POST /users/bulk", `{"action":"ban","reason":"x","ids":["`+strings.Join(chunk, `","`)+`"]}`).want(200)
			n += int(a.body["done"].(float64))
		}
		if n != 50 {
			t.Errorf("all together reached %d accounts, want 50", n)
		}
		o.Clock.Advance(time.Hour)
		if n := o.reach(o.renewed(thief), o.crowd("later", 5), portions[0]); n != 5 {
			t.Errorf("an hour later it reached %d of 5", n)
		}
	})
}

// Every operation that bans, deletes, signs out or mails somebody either counts or needs
// recent authentication.
func TestOperationsThatReachAccountsCount(t *testing.T) {
	for _, row := range admin.Table() {
		if row.Reads || row.StepUp || row.Spends || row.Pattern == "POST /users/bulk" { // bulk runs the operations of single accounts
			continue
		}
		t.Run(row.Pattern, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, memstore.New())
			target := o.fill()
			owner := o.operator("owner@example.com", "*")
			o.settled()
			before := len(o.messages(admin.MessagesParams{UserID: target.User.ID}))
			o.try(owner, row, target)
			o.settled()
			if n := len(o.messages(admin.MessagesParams{UserID: target.User.ID})); n > before && row.Pattern != "POST /users/{id}/impersonate" {
				t.Errorf("%d messages", n-before)
			}
			if _, _, err := o.Store.Session(t.Context(), target.SessionID, o.Clock.Now()); err != nil {
				t.Errorf("the session: %v", err)
			}
			if u, err := o.Store.User(t.Context(), store.ByID(target.User.ID)); err != nil || u.Banned(o.Clock.Now()) {
				t.Errorf("the account: %v", err)
			}
		})
	}
}

// Whoever has authenticated recently reaches 200 accounts, or one in twenty; with "*" all,
// such as an owner who cleans up after an attack of spammers.
func TestBudgetAfterRecentAuthentication(t *testing.T) {
	o := newOffice(t, memstore.New())
	clerk := o.operator("clerk@example.com", reaching...)
	ids := o.crowd("spam", 5000)
	if n := o.reach(clerk, ids[:260], portions[0]); n != (len(ids)+1)/20 {
		t.Errorf("a clerk reached %d of 260 accounts", n)
	}
	owner := o.operator("owner@example.com", "*")
	a := o.do(owner, "POST /users/bulk", `{"action":"delete","reason":"spam","filter":{"q":"spam"},"dry_run":true}`).want(200)
	job := o.do(owner, "POST /users/bulk", `{"action":"delete","selection_id":"`+a.body["selection_id"].(string)+`"}`).want(202)
	o.Clock.Advance(20 * time.Minute) // the job goes on, although the confirmation gets old
	done := 0
	for _, r := range o.done(job.body["job_id"].(string)) {
		if r["result"] == "done" {
			done++
		}
	}
	if done != len(ids) {
		t.Errorf("%d of %d were deleted", done, len(ids))
	}
}

func TestBudgetOfAClerk(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		clerk := o.operator("clerk@example.com", reaching...)
		ids := o.crowd("people", 215)
		if n := o.reach(clerk, ids[:195], portions[0]); n != 195 {
			t.Errorf("reached %d of 195", n)
		}
		k := o.keyOf(clerk.User, reaching...) // it shares the budget
		if n := o.reach(program(k), ids[195:], portions[0]); n != 5 {
			t.Errorf("a clerk with a key reached %d accounts, want 200", 195+n)
		}
	})
}

// A key reaches fifty accounts in an hour, or what its creator wrote.
func TestBudgetOfAKey(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		create := func(limit string) *authtest.SignedIn {
			a := o.do(owner, "POST /keys", `{"name":"nightly","scopes":["auth.users.delete"]`+limit+`}`).want(200)
			return &authtest.SignedIn{Tokens: auth.Tokens{AccessToken: a.body["key"].(string)}}
		}
		if n := o.reach(create(""), o.crowd("some", 55), portions[4]); n != 50 {
			t.Errorf("a key reached %d accounts, want 50", n)
		}
		if n := o.reach(create(`,"hourly_limit":60`), o.crowd("more", 65), portions[4]); n != 60 {
			t.Errorf("a key with a limit of 60 reached %d accounts", n)
		}
		o.do(owner, "POST /keys", `{"name":"nightly","scopes":["auth.users.delete"],"hourly_limit":-1}`).want(422, auth.CodeValidationFailed)
		for _, id := range o.crowd("x", 55) { // the system is not counted
			if _, err := o.adm.BanUser(t.Context(), admin.System("cron"), admin.BanUserParams{UserID: id, Reason: "x"}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// An operation that is refused or does nothing costs none of the budget.
func TestRefusedOperationsCostNoBudget(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		stale := o.later(o.operator("stale@example.com", reaching...))
		ids := o.crowd("crowd", 55)
		for _, id := range ids {
			o.do(stale, "POST /users/"+id+"/ban", `{"reason":"x"}`, `If-Match: "99"`).want(412, auth.CodePreconditionFailed)
		}
		if n := o.reach(stale, ids, portions[0]); n != 50 {
			t.Errorf("it reached %d accounts, want 50", n)
		}
	})
}
