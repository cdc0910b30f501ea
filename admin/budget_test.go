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
	"github.com/authmount/auth/internal/host"
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
			if text, _ := a.body["message"].(string); !strings.Contains(text, "hourly budget of accounts") || strings.Contains(text, "hourly_limit") != strings.HasPrefix(who.AccessToken, "sk_") {
				o.t.Errorf("%s: the answer does not name the budget: %q", pattern, text)
			}
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

// reached are further requests that ban, sign out or mail somebody, or change an address,
// where the example of the operation does not.
var reached = map[string][]string{
	"PATCH /users/{id}":     {`{"email":"$id@new.example.com"}`, `{"email":"$id@new.example.com","email_verified":true}`, `{"phone":"+4930123456"}`, `{"email_verified":false}`},
	"POST /users":           {`{"email":"$id@new.example.com","send":"invite"}`, `{"email":"$id@new.example.com","send":"verify"}`},
	"PUT /users/{id}/roles": {`{"roles":["support"],"address":"$email"}`},
	"POST /users/import": {
		`{"id":"$id","email":"$email","banned_until":"2090-01-01T00:00:00Z"}`, `{"id":"$id","email":"$id@new.example.com"}`,
		`{"id":"$id","email":"$email","phone":"+4930123456"}`,
	},
	"POST /users/bulk": {
		`{"action":"delete","ids":["$id"],"reason":"x"}`, `{"action":"anonymize","ids":["$id"],"reason":"x"}`,
		`{"action":"revoke_sessions","ids":["$id"]}`, `{"action":"send","type":"reset","ids":["$id"]}`,
	},
}

// No operation bans, deletes, signs out or mails anybody, shows a link, or changes an
// address or a password, for an actor who has used up the budget.
func TestOperationsThatReachAccountsCount(t *testing.T) {
	use := func(o *office, s *authtest.SignedIn, limit string, n int) func() {
		kit := host.Of(o)
		return func() {
			o.must(kit.CheckLimits(o.t.Context(), kit.Draw(auth.Rate{Burst: n, Per: time.Hour}, limit, "user:"+s.User.ID, n)))
		}
	}
	actors := map[string]func(o *office) (s *authtest.SignedIn, use func()){
		"a person": func(o *office) (*authtest.SignedIn, func()) {
			s := o.operator("person@example.com", allBut(o.t, o)...)
			o.hasPhone(s, "+4930123457")
			return s, use(o, s, "admin-person", 200)
		},
		"a stale session": func(o *office) (*authtest.SignedIn, func()) {
			s := o.later(o.operator("stale@example.com", allBut(o.t, o)...))
			return s, use(o, s, "admin-not-recent", 50)
		},
		"a key": func(o *office) (*authtest.SignedIn, func()) { // with every permission by name
			scopes := slices.DeleteFunc(allBut(o.t, o), func(p string) bool { return slices.Contains(admin.NotForKeys(), p) })
			k, err := o.adm.CreateKey(o.t.Context(), admin.System("test"), admin.CreateKeyParams{Name: "a key", HourlyLimit: 1, Scopes: scopes})
			o.must(err)
			return program(k), func() {
				if n := o.reach(program(k), o.crowd("first", 2), portions[0]); n != 1 {
					o.t.Fatalf("the key reached %d accounts", n)
				}
			}
		},
	}
	for _, row := range admin.Table() {
		if row.Reads {
			continue
		}
		for i, body := range append([]string{""}, reached[row.Pattern]...) {
			for who, create := range actors {
				t.Run(fmt.Sprint(row.Pattern, i, who), func(t *testing.T) {
					t.Parallel()
					o := newOffice(t, memstore.New())
					actor, use := create(o)
					o.fill()
					target := o.LoginAs(t, "ada@example.com")
					sent := func() int {
						o.settled()
						own := func(m store.MessageRecord) bool { return m.UserID != "" && m.UserID == actor.User.ID }
						return len(slices.DeleteFunc(o.messages(admin.MessagesParams{Limit: 200}), own))
					}
					var before auth.User
					messages := 0
					o.alter = func(pattern, example string, headers []string) (string, string, []string) {
						if body != "" {
							example = strings.NewReplacer("$id", target.User.ID, "$email", target.User.Email).Replace(body)
						}
						if row.Pattern == "POST /users/import" {
							pattern += "?on_conflict=update"
						}
						use()
						before, messages = o.read(target.User.ID), sent()
						return pattern, example, headers
					}
					a := o.try(actor, row, target)
					if a.status != examples[row.Pattern].status && a.status != 403 && a.status != 429 {
						t.Fatalf("%d %s", a.status, a.text)
					}
					if id, _ := a.body["job_id"].(string); id != "" {
						o.done(id)
					}
					if n := sent() - messages; n != 0 {
						t.Errorf("%d messages", n)
					}
					if a.body["url"] != nil {
						t.Error("a link is shown")
					}
					if _, _, err := o.Store.Session(t.Context(), target.SessionID, o.Clock.Now()); err != nil {
						t.Errorf("the session: %v", err)
					}
					u, err := o.Store.User(t.Context(), store.ByID(target.User.ID))
					if err != nil || u.Banned(o.Clock.Now()) || u.Email != before.Email || u.Phone != before.Phone || u.EmailVerified() != before.EmailVerified() {
						t.Errorf("the account: %+v, %v", u, err)
					}
				})
			}
		}
	}
}

// The message about an impersonation counts, and an impersonation without one does not.
func TestBudgetOfImpersonations(t *testing.T) {
	for name, of := range map[string]admin.Options{"with mail": {NotifyImpersonated: true}, "without": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOfficeWith(t, memstore.New(), of)
			clerk := o.operator("clerk@example.com", admin.PermImpersonate)
			want := 205
			if of.NotifyImpersonated {
				want = 200
			}
			if n := o.reach(clerk, o.crowd("crowd", 205), func(id string) string { return "POST /users/" + id + `/impersonate|{"reason":"x"}` }); n != want {
				t.Errorf("impersonated %d accounts, want %d", n, want)
			}
		})
	}
}

// Changes that reach nobody are free: a key synchronises names and metadata, and imports
// new users, without end, also after its budget is used up.
func TestBudgetLeavesOtherChangesAlone(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		clerk := o.operator("clerk@example.com", append(slices.Clone(reaching), admin.PermUsersImport, admin.PermUsersWrite, admin.PermCredentials)...)
		key := program(o.keyOf(clerk.User, append(slices.Clone(reaching), admin.PermUsersImport, admin.PermUsersWrite, admin.PermCredentials)...))
		if n := o.reach(key, o.crowd("banned", 51), portions[0]); n != 50 {
			t.Fatalf("the key banned %d", n)
		}
		var same, fresh []string
		for i, id := range o.crowd("same", 60) {
			o.do(key, "PATCH /users/"+id, fmt.Sprintf(`{"email":"same%d@example.com","email_verified":true,"full_name":"N","app_metadata":{"n":%d}}`, i, i)).want(200)
			same = append(same, fmt.Sprintf(`{"id":%q,"email":"same%d@example.com","email_verified":true,"full_name":"M","user_metadata":{"n":1}}`, id, i))
			fresh = append(fresh, fmt.Sprintf(`{"email":"fresh%d@example.com","email_verified":true,"phone":"+49301234%03d","banned_until":"2090-01-01T00:00:00Z"}`, i, i))
		}
		for _, r := range append(o.imports(key, "?on_conflict=update", same...), o.imports(key, "", fresh...)...) {
			if r["result"] != "done" {
				t.Fatal(r)
			}
		}
	})
}

// An import that updates accounts bans no more of them than other operations.
func TestBudgetOfAnImport(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		clerk := o.operator("clerk@example.com", append(slices.Clone(reaching), admin.PermUsersImport)...)
		key := program(o.keyOf(clerk.User, append(slices.Clone(reaching), admin.PermUsersImport)...))
		bans := func(who *authtest.SignedIn, name string, n int) (banned int) {
			ids, rows := o.crowd(name, n), []string{}
			for i, id := range ids {
				rows = append(rows, fmt.Sprintf(`{"id":%q,"email":"%s%d@example.com","banned_until":"2090-01-01T00:00:00Z"}`, id, name, i))
			}
			for i, r := range o.imports(who, "?on_conflict=update", rows...) {
				if o.banned(ids[i]) {
					banned++
				} else if r["code"] != string(auth.CodeRateLimited) {
					t.Fatal(r)
				}
			}
			return banned
		}
		if n := bans(key, "key", 55); n != 50 {
			t.Errorf("a key banned %d accounts, want 50", n)
		}
		if n := bans(clerk, "clerk", 155); n != 150 {
			t.Errorf("a clerk banned %d more accounts than the key, want 150", n)
		}
	})
}

// A request to revoke the sessions of more accounts than the budget has left returns the
// accounts that it reached. The next one is refused whole.
func TestBudgetEndsWithinARequest(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		thief := o.later(o.operator("thief@example.com", reaching...))
		ids := o.crowd("many", 55)
		body := `{"user_ids":` + quoted(ids) + `}`
		a := o.do(thief, "POST /sessions/revoke", body, "Idempotency-Key: one").want(200)
		if a.body["users"] != 50.0 || a.body["more"] != true {
			t.Errorf("%v, want 50 users, and more", a.body)
		}
		rows := slices.DeleteFunc(o.audit(), func(e auth.Event) bool { return e.Type != auth.EventSessionsEnded })
		for i, e := range rows { // in the order of the request
			if want := ids[len(rows)-1-i]; e.UserID != want {
				t.Fatalf("row %d is about %s, want %s", i, e.UserID, want)
			}
		}
		o.do(thief, "POST /sessions/revoke", body).want(429, auth.CodeRateLimited)
		o.Clock.Advance(10 * time.Minute)
		if a := o.do(thief, "POST /sessions/revoke", body, "Idempotency-Key: one").want(200); a.body["users"] != 55.0 || a.body["more"] != false {
			t.Errorf("%v, want the rest", a.body)
		}
	})
}

// Whoever has authenticated recently reaches 200 accounts, or one in twenty; with "*" all,
// such as an owner who cleans up after an attack of spammers.
func TestBudgetAfterRecentAuthentication(t *testing.T) {
	o := newOffice(t, memstore.New())
	ids := o.crowd("spam", 5000)
	o.Clock.Advance(25 * time.Hour)
	clerk := o.operator("clerk@example.com", reaching...)
	if n := o.reach(clerk, ids[:260], portions[0]); n != len(ids)/20 {
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

// An operator cannot make accounts to reach more of the others. Imports of an owner leave
// the share as it is.
func TestBudgetDoesNotGrowByImports(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		ids := o.crowd("people", 300)
		o.Clock.Advance(25 * time.Hour)
		clerk := o.operator("clerk@example.com", append(slices.Clone(reaching), admin.PermUsersImport)...)
		rows := func(name, created string) (rows []string) {
			for i := range 5000 {
				rows = append(rows, fmt.Sprintf(`{"email":"%s%d@example.com"%s}`, name, i, created))
			}
			return rows
		}
		owner, old := o.operator("owner@example.com", "*"), `,"created_at":"2020-01-01T00:00:00Z"`
		key := program(o.keyOf(owner.User, admin.PermUsersImport, admin.PermUsersRead))
		o.imports(key, "", rows("new", old)...)
		if n := o.reach(clerk, ids[:230], portions[0]); n != 230 {
			t.Errorf("after an import by an owner's key a clerk reached %d accounts, want 230", n)
		}
		o.Clock.Advance(2 * time.Hour)
		clerk = o.LoginAs(t, "clerk@example.com", authtest.AAL2())
		o.imports(clerk, "", rows("junk", old)...)
		if n := o.reach(clerk, o.crowd("others", 300), portions[0]); n != 200 {
			t.Errorf("after an import a clerk reached %d accounts, want 200", n)
		}
		o.Clock.Advance(25 * time.Hour)
		clerk = o.LoginAs(t, "clerk@example.com", authtest.AAL2())
		if n := o.reach(clerk, o.crowd("more", 300), portions[0]); n != 300 {
			t.Errorf("a day later the clerk reached %d accounts of 300", n)
		}
	})
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

// Only its creator or an owner raises a key's ceiling; others may lower it.
func TestCeilingOfAnothersKey(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		ada := o.operator("ada@example.com", admin.PermKeysWrite, admin.PermUsersDelete)
		ben := o.operator("ben@example.com", admin.PermKeysWrite, admin.PermUsersDelete)
		a := o.do(ada, "POST /keys", `{"name":"nightly","scopes":["auth.users.delete"]}`).want(200)
		at := "PATCH /keys/" + a.body["id"].(string)
		o.do(ben, at, `{"hourly_limit":50}`).want(200)
		o.do(ben, at, `{"hourly_limit":51}`).want(403, auth.CodeTargetStronger)
		o.do(ben, at, `{"hourly_limit":10,"name":"n"}`).want(200)
		o.do(ben, at, `{"hourly_limit":0}`).want(403, auth.CodeTargetStronger)
		o.do(ada, at, `{"hourly_limit":60}`).want(200)
		o.do(owner, at, `{"hourly_limit":70}`).want(200)
		o.do(ben, at, `{"hourly_limit":70,"name":"nightly"}`).want(200)
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

// A dry run says what the budget still allows, now and after recent authentication, and
// which code the rest would have. It counts nothing.
func TestDryRunReportsTheBudget(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		ids := o.crowd("account", 60)
		want := func(who *authtest.SignedIn, body string, left, recent, code any) {
			t.Helper()
			a := o.do(who, "POST /users/bulk", strings.Replace(body, "{", `{"ids":["`+strings.Join(ids[5:], `","`)+`"],"dry_run":true,`, 1)).want(200)
			budget, _ := a.body["budget"].(map[string]any)
			if budget == nil || budget["left"] != left || budget["left_recent"] != recent || budget["code"] != code || a.body["done"] != 55.0 {
				t.Errorf("%s: %v done, the budget is %v, want %v, %v and %v", body, a.body["done"], a.body["budget"], left, recent, code)
			}
		}
		ban := `{"action":"ban","reason":"x"}`
		person := o.operator("person@example.com", reaching...)
		want(person, ban, 200.0, 200.0, nil)
		person = o.later(person)
		want(person, ban, 50.0, 200.0, "rate_limited")
		if n := o.reach(person, ids[:5], portions[0]); n != 5 {
			t.Fatalf("%d bans", n)
		}
		for range 2 {
			want(person, ban, 45.0, 195.0, "rate_limited")
		}
		owner := o.operator("owner2@example.com", "*")
		want(owner, `{"action":"send","type":"reset"}`, nil, nil, nil)
		want(o.later(owner), ban, 50.0, nil, "rate_limited")
		k, err := o.adm.CreateKey(t.Context(), admin.System("test"), admin.CreateKeyParams{Name: "a key", HourlyLimit: 70, Scopes: []string{admin.PermUsersBan}})
		o.must(err)
		want(program(k), ban, 70.0, 70.0, nil)
		person = o.renewed(person)
		if a := o.do(person, "POST /users/bulk", `{"action":"unban","ids":["`+ids[9]+`"],"dry_run":true}`).want(200); a.body["budget"] != nil {
			t.Errorf("unban counts against %v", a.body["budget"])
		}
		if a := o.do(person, "POST /users/bulk", `{"action":"ban","reason":"x","ids":["`+ids[9]+`"]}`).want(200); a.body["budget"] != nil {
			t.Errorf("the operation itself reports %v", a.body["budget"])
		}
	})
}
