package admin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// worked writes down the results of a job.
func (l *ledger) worked(who, name string) {
	l.t.Helper()
	l.play(who, "GET /jobs/$"+name, "")
	l.play(who, "GET /jobs/$"+name+"/results", "")
}

// Bulk actions on many accounts.
func TestLedgerOfBulk(t *testing.T) {
	scenes(t, "bulk", admin.Options{}, func(l *ledger) {
		l.crew()
		l.signIn("rich", authtest.Roles("sender"))
		l.signIn("raw", authtest.Unverified())
		l.signIn("bea")
		ids := `"ids":["$ada","$bea","$rich","$clerk","$owner","$ada","$bea.session","x"]`
		for _, c := range []string{
			`"action":"ban","reason":"spam","until":"2026-03-01T00:00:00Z"`, `"action":"unban","reason":"sorry"`, `"action":"add_role","role":"writer","reason":"new"`, `"action":"remove_role","role":"writer","reason":"old"`, `"action":"revoke_sessions","reason":"odd"`,
			`"action":"send","type":"magic_link","redirect_to":"https://app.test/in"`,
		} {
			l.once("owner", "POST /users/bulk", "{"+c+","+ids+`,"dry_run":true}`)
			l.once("owner", "POST /users/bulk", "{"+c+","+ids+"}")
		}
		for _, name := range []string{"clerk", "rich", "ada", "bea"} {
			l.signIn(name)
		}
		l.once("clerk", "POST /users/bulk", `{"action":"ban","reason":"x",`+ids+`,"dry_run":true}`)
		l.once("clerk", "POST /users/bulk", `{"action":"ban","reason":"x",`+ids+`}`)
		l.once("clerk", "POST /users/bulk", `{"action":"add_role","role":"writer",`+ids+`}`)
		l.once("owner", "POST /users/bulk", `{"action":"anonymize","reason":"asked","ids":["$bea"]}`)
		l.once("owner", "POST /users/bulk", `{"action":"delete","reason":"asked","ids":["$bea","$raw","$raw"]}`)
		one := `"ids":["$ada"]`
		for _, body := range []string{
			`{}`, `{"action":"praise",` + one + `}`, `{"action":"ban"}`, `{"action":"ban",` + one + `}`, `{"action":"delete",` + one + `}`, `{"action":"anonymize",` + one + `}`, `{"action":"ban","reason":"x","until":"2020-01-01T00:00:00Z",` + one + `}`, `{"action":"unban","reason":"` + strings.Repeat("x", 501) + `",` + one + `}`,
			`{"action":"add_role",` + one + `}`, `{"action":"add_role","role":"none",` + one + `}`, `{"action":"remove_role",` + one + `}`, `{"action":"remove_role","role":"none",` + one + `,"dry_run":true}`, `{"action":"add_role","role":"owner",` + one + `,"dry_run":true}`,
			`{"action":"send",` + one + `}`, `{"action":"send","type":"none",` + one + `}`, `{"action":"send","type":"reset","reason":"x",` + one + `}`, `{"action":"ban","reason":"x","filter":{}}`, `{"action":"ban","reason":"x","filter":{"q":[]},"dry_run":true}`, `{"action":"ban","reason":"x","filter":{"colour":"red"},"dry_run":true}`,
			`{"action":"ban","selection_id":"$ada","reason":"x"}`, `{"action":"ban","selection_id":"$ada","dry_run":true}`, `{"action":"ban","selection_id":"$ada"}`, `{"action":"ban","selection_id":"x"}`, `{"action":"ban","reason":"x","filter":{"role":"none"},"dry_run":true}`,
		} {
			l.once("owner", "POST /users/bulk", body)
		}

		for i := range 3 {
			l.signIn(fmt.Sprint("crowd", i))
		}
		l.made("picked", "owner", "POST /users/bulk", `{"action":"ban","reason":"spam","until":"2026-03-01T00:00:00Z","filter":{"q":"crowd","mfa":false,"order":"asc"},"dry_run":true}`)
		l.once("clerk", "POST /users/bulk", `{"action":"ban","selection_id":"$picked"}`)
		l.once("owner", "POST /users/bulk", `{"action":"unban","selection_id":"$picked"}`)
		l.play("owner", "GET /jobs/$picked", "")
		l.play("owner", "GET /jobs/$picked/results", "")
		l.signIn("crowd3")
		l.made("banned", "owner", "POST /users/bulk", `{"action":"ban","selection_id":"$picked"}`)
		l.worked("owner", "banned")
		l.once("owner", "POST /users/bulk", `{"action":"ban","selection_id":"$picked"}`)
		l.list("owner", "/users?status=banned")
		l.made("everybody", "owner", "POST /users/bulk", `{"action":"revoke_sessions","reason":"a leak","filter":{},"dry_run":true}`)
		l.once("clerk", "POST /users/bulk", `{"action":"revoke_sessions","filter":{},"dry_run":true}`)
		l.once("clerk", "POST /users/bulk", `{"action":"revoke_sessions","filter":{"created_from":"2000-01-01T00:00:00Z"},"dry_run":true}`)
		l.made("some", "clerk", "POST /users/bulk", `{"action":"unban","reason":"sorry","filter":{"status":"banned"},"dry_run":true}`)
		late := l.later(l.who["clerk"])
		l.who["late"] = late
		l.once("late", "POST /users/bulk", `{"action":"unban","selection_id":"$some"}`)
		l.once("late", "POST /users/bulk", `{"action":"unban","reason":"x","filter":{"status":"banned"},"dry_run":true}`)
		l.signIn("clerk")
		l.made("sorry", "clerk", "POST /users/bulk", `{"action":"unban","reason":"sorry","filter":{"status":"banned"},"dry_run":true}`)
		l.made("done", "clerk", "POST /users/bulk", `{"action":"unban","selection_id":"$sorry"}`)
		l.worked("clerk", "done")
		l.play("late", "GET /jobs/$ada", "")
		l.Clock.Advance(time.Hour)
		l.signIn("owner")
		l.once("owner", "POST /users/bulk", `{"action":"revoke_sessions","selection_id":"$everybody"}`)
		l.Clock.Advance(7 * 24 * time.Hour)
		l.signIn("owner")
		l.play("owner", "GET /jobs/$banned", "")
	}, auth.WithRedirectURLs("https://app.test/*"))
}

// Accounts created and changed by an import.
func TestLedgerOfImports(t *testing.T) {
	scenes(t, "imports", admin.Options{}, func(l *ledger) {
		l.crew()
		l.signIn("mover", authtest.Permissions(admin.PermUsersImport, admin.PermUsersRead), authtest.AAL2())
		l.signIn("rich", authtest.Roles("sender"))
		hash := `"password_hash":"$2y$10$abcdefghijklmnopqrstuuRVDvmMCGwCgYV8WNh4b4/GTI1eW9v7G"`
		chosen := func(n int) string { return fmt.Sprintf(`"id":"0195c0de-0000-7000-8000-0000000000%02d"`, n) }
		n := 0
		imports := func(who, query string, rows ...string) {
			n++
			name := fmt.Sprint("job", n)
			if a := l.made(name, who, "POST /users/import"+query, strings.Join(rows, "\n"), ndjson); a.status == 202 {
				l.worked(who, name)
			}
			l.naming = ""
		}
		imports("owner", "",
			`{`+chosen(1)+`,"email":"One@Example.com","email_verified":true,"phone":"+49 30 111","phone_verified":true,"full_name":"One","user_metadata":{"a":1},"app_metadata":{"b":2},"roles":["writer"],"created_at":"2020-01-01T00:00:00Z","last_sign_in_at":"2021-01-01T00:00:00Z",`+hash+`}`,
			``,
			`{`+chosen(2)+`,"email":"two@example.com","email_verified_at":"2020-02-01T00:00:00Z","banned_until":"2030-01-01T00:00:00Z"}`,
			`{`+chosen(3)+`,"phone":"+49 30 333","phone_verified_at":"2020-02-01T00:00:00Z","totp_secret":"JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"}`,
			`{`+chosen(4)+`,"identities":[{"provider":"github","subject":"4","email":"four@example.com","created_at":"2020-01-01T00:00:00Z","last_sign_in_at":"2021-01-01T00:00:00Z"}]}`,
			`{"email":"two@example.com"}`, `{`+chosen(1)+`,"email":"five@example.com"}`, `{"phone":"+4930333"}`, `{"identities":[{"provider":"github","subject":"4"}]}`,
			`{"email":"no address"}`, `{}`, `{"email":"x@example.com","colour":"red"}`, `{"email":1}`, `{"email":"x@example.com","roles":["none"]}`, `{"id":"x","email":"x@example.com"}`, `{"email":"x@example.com","password_hash":"x"}`,
			`{"EMAIL":"x@example.com"}`, `{"email":"x@example.com","email":"y@example.com"}`, `{"email":"last@example.com"}`)
		for i := range 4 {
			l.call(fmt.Sprint("row", i+1), fmt.Sprintf("0195c0de-0000-7000-8000-0000000000%02d", i+1))
			l.play("owner", fmt.Sprintf("GET /users/$row%d", i+1), "")
		}
		imports("mover", "?on_conflict=error", `{"email":"six@example.com"}`, `{"email":"v@example.com","email_verified":true}`, `{"email":"v@example.com","email_verified_at":"2020-01-01T00:00:00Z"}`, `{"phone":"+4930777","phone_verified":true}`, `{"phone":"+4930777","phone_verified_at":"2020-01-01T00:00:00Z"}`,
			`{"email":"v@example.com",`+hash+`}`, `{"email":"v@example.com","totp_secret":"JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"}`, `{"identities":[{"provider":"github","subject":"9"}]}`, `{"email":"v@example.com","roles":["writer"]}`, `{"email":"v@example.com","banned_until":"2030-01-01T00:00:00Z"}`)
		imports("owner", "?on_conflict=skip", `{"email":"ONE@example.com","full_name":"x"}`, `{`+chosen(2)+`,"email":"seven@example.com"}`, `{"email":"eight@example.com","phone":"+4930111"}`, `{"email":"nine@example.com","identities":[{"provider":"github","subject":"4"}]}`, `{"email":"ten@example.com"}`)
		imports("owner", "?on_conflict=update",
			`{"email":"one@example.com","full_name":"Uno","user_metadata":{"a":null,"c":3},"app_metadata":{"d":4}}`, `{"email":"one@example.com"}`, `{`+chosen(1)+`,"email":"uno@example.com","phone":"+49 30 1111"}`, `{`+chosen(1)+`,"email_verified":true,"phone_verified_at":"2020-01-01T00:00:00Z"}`,
			`{`+chosen(1)+`,"email":"two@example.com"}`, `{"email":"two@example.com","banned_until":"2031-01-01T00:00:00Z"}`, `{"email":"two@example.com","banned_until":"2031-01-01T00:00:00Z"}`, `{"email":"two@example.com","banned_until":"2020-01-01T00:00:00Z"}`,
			`{"email":"two@example.com","roles":["writer","writer"]}`, `{"email":"two@example.com","roles":["writer"]}`, `{"email":"two@example.com","roles":["none"]}`, `{"email":"two@example.com",`+hash+`}`, `{"email":"two@example.com","totp_secret":"JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"}`, `{"phone":"+4930333","totp_secret":"JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"}`,
			`{`+chosen(4)+`,"identities":[{"provider":"github","subject":"4"}],"full_name":"Four"}`, `{`+chosen(4)+`,"identities":[{"provider":"github","subject":"5"}]}`, `{"email":"owner@example.com","full_name":"x"}`, `{"email":"owner@example.com","roles":["writer"]}`, `{"email":"eleven@example.com"}`)
		imports("mover", "?on_conflict=update", `{"email":"six@example.com","full_name":"Six"}`, `{"email":"rich@example.com","full_name":"x"}`, `{"email":"six@example.com","email_verified":true}`, `{"email":"six@example.com","roles":["writer"]}`, `{"email":"six@example.com","banned_until":"2031-01-01T00:00:00Z"}`, `{"email":"six@example.com",`+hash+`}`, `{"email":"mover@example.com","full_name":"x"}`, `{"email":"mover@example.com","phone":"+4930888"}`)
		for i := range 4 {
			l.play("owner", fmt.Sprintf("GET /users/$row%d", i+1), "")
		}
		for _, c := range [][2]string{{"?on_conflict=x", "{}"}, {"", ""}, {"", "\n\n"}, {"", "[]"}, {"", "{}\n{"}, {"", `{"a":"` + strings.Repeat("x", 256<<10) + `"}`}, {"?colour=red", "{}"}} {
			l.once("owner", "POST /users/import"+c[0], c[1][:min(len(c[1]), 20)], ndjson)
			if len(c[1]) > 20 {
				a := l.do(l.who["owner"], "POST /users/import", c[1], ndjson)
				l.write("  long:", fmt.Sprint(a.status, " ", a.body["code"], a.body["details"]))
			}
		}
		l.once("owner", "POST /users/import", "{}", "Content-Type: application/json")
		l.once("clerk", "POST /users/import", "{}", ndjson)
		l.play("clerk", "GET /jobs/$job1", "")
		l.play("clerk", "GET /jobs/$job1/results", "")
		l.play("owner", "GET /jobs/x", "")
		l.who["late"] = l.later(l.who["owner"])
		l.once("late", "POST /users/import", "{}", ndjson)
	})
}

// Each operation by an external admin.
func TestLedgerOfStaff(t *testing.T) {
	scenes(t, "staff", admin.Options{Authenticate: authorize}, func(l *ledger) {
		l.permit("writer", notes)
		l.signIn("ada")
		all := l.staff("*")
		some := l.staff(admin.PermUsersRead, admin.PermUsersWrite, admin.PermUsersBan, admin.PermRolesAssign, admin.PermKeysWrite, admin.PermUsersImport, notes, "none")
		weak := l.badge(admin.Identity{ID: "7", Permissions: []string{"*"}, AuthTime: l.Clock.Now()})
		stale := l.badge(admin.Identity{ID: "8", Permissions: []string{"*"}, AAL: store.LevelAAL2, AuthTime: l.Clock.Now().Add(-16 * time.Minute)})
		early := l.badge(admin.Identity{ID: "9", Permissions: []string{"*"}, AAL: store.LevelAAL2, AuthTime: l.Clock.Now().Add(3 * time.Minute)})
		nobody := l.badge(admin.Identity{AAL: store.LevelAAL2, Permissions: []string{"*"}})
		long := l.badge(admin.Identity{ID: strings.Repeat("x", 256), AAL: store.LevelAAL2, Permissions: []string{"*"}})
		longest := l.badge(admin.Identity{ID: strings.Repeat("x ", 127) + "x", AAL: store.LevelAAL2, Permissions: []string{"*"}})
		odd := l.badge(admin.Identity{ID: "a\nb", AAL: store.LevelAAL2, Permissions: []string{"*"}})
		for _, badge := range []string{all, some, weak, stale, early, nobody, long, longest, odd, staffHeader + ": suspended", staffHeader + ": x"} {
			l.once("nobody", "GET /me", "", badge)
			l.once("nobody", "DELETE /users/$ada/factors", "", badge)
		}
		l.once("nobody", "POST /users/$ada/ban", `{"reason":"x"}`, some)
		l.once("nobody", "POST /users/$ada/unban", `{"reason":"x"}`, all, "Idempotency-Key: a")
		l.once("nobody", "POST /users/$ada/unban", `{"reason":"x"}`, all, "Idempotency-Key: a")
		l.once("nobody", "POST /users/$ada/unban", `{"reason":"x"}`, weak)
		l.once("nobody", "PUT /users/$ada/roles", `{"roles":["writer"]}`, some)
		l.once("nobody", "POST /users/$ada/roles/owner", "", some)
		l.once("nobody", "POST /invitations", `{"email":"x@example.com"}`, some)
		l.once("nobody", "POST /invitations", `{"email":"y@example.com","roles":["writer"]}`, some)
		l.once("nobody", "POST /invitations", `{"email":"z@example.com","roles":["writer"]}`, all)
		l.once("nobody", "POST /keys", `{"name":"x","scopes":["auth.users.read"]}`, some)
		l.once("nobody", "POST /keys", `{"name":"x","kind":"public"}`, some)
		l.once("nobody", "POST /keys", `{"name":"x","scopes":["auth.users.read"]}`, all)
		l.once("nobody", "POST /users/$ada/impersonate", `{"reason":"x"}`, all)
		l.once("nobody", "POST /settings/test-mail", "", all)
		l.once("nobody", "POST /sessions/revoke", `{"all":true}`, all)
		l.made("job", "nobody", "POST /users/import", `{"email":"one@example.com"}`, some, ndjson)
		l.once("nobody", "GET /jobs/$job/results", "", some)
		l.made("selected", "nobody", "POST /users/bulk", `{"action":"ban","reason":"x","filter":{"q":"one"},"dry_run":true}`, some)
		l.once("nobody", "POST /users/bulk", `{"action":"ban","selection_id":"$selected"}`, all)
		l.made("banned", "nobody", "POST /users/bulk", `{"action":"ban","selection_id":"$selected"}`, some)
		l.once("nobody", "GET /jobs/$banned/results", "", some)
		if _, err := l.adm.FirstOwnerLink(t.Context()); err == nil {
			t.Error("a first owner beside an admin login of the application's own")
		}
	})
}
