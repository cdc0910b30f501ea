package admin_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// people creates accounts that differ in every field that lists can filter by.
func (l *ledger) people() {
	l.t.Helper()
	at := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339, text)
		if err != nil {
			l.t.Fatal(err)
		}
		return v
	}
	hash := "$2y$10$abcdefghijklmnopqrstuuRVDvmMCGwCgYV8WNh4b4/GTI1eW9v7G"
	for name, p := range map[string]auth.ImportUserParams{
		"amy":  {Email: "amy@one.example", EmailVerified: true, FullName: "Amy Z.", PasswordHash: hash, Roles: []string{"writer"}, AppMetadata: map[string]any{"team": "a", "level": 3.0, "vip": true}, CreatedAt: at("2025-01-01T00:00:00Z"), LastSignInAt: at("2025-06-01T00:00:00Z")},
		"ben":  {Email: "ben@one.example", FullName: "Ben Y.", CreatedAt: at("2025-02-01T00:00:00Z")},
		"cat":  {Phone: "+4930111", PhoneVerified: true, FullName: "amyable cat", CreatedAt: at("2025-03-01T00:00:00Z"), LastSignInAt: at("2025-07-01T00:00:00Z")},
		"dan":  {Email: "dan@two.example", EmailVerified: true, BannedUntil: at("2027-01-01T00:00:00Z"), AppMetadata: map[string]any{"team": "b"}, CreatedAt: at("2025-04-01T00:00:00Z")},
		"eve":  {Email: "eve@two.example", PasswordHash: hash, CreatedAt: at("2025-05-01T00:00:00Z")},
		"fay":  {Identities: []auth.Identity{{Provider: "github", Subject: "77", CreatedAt: at("2025-06-01T00:00:00Z")}}, CreatedAt: at("2025-06-01T00:00:00Z")},
		"gus":  {Email: "gus@two.example", EmailVerified: true, TOTPSecret: "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP", Roles: []string{"writer", "sender"}, CreatedAt: at("2025-07-01T00:00:00Z"), LastSignInAt: at("2025-08-01T00:00:00Z")},
		"hana": {Email: "hana@three.example", Phone: "+4930222", FullName: `=1+1 "x";y`, UserMetadata: map[string]any{"note": "<b>"}, CreatedAt: at("2025-08-01T00:00:00Z")},
	} {
		p.ID = fmt.Sprintf("0195c0de-0000-7000-8000-0000000000%02x", name[0])
		u, err := l.ImportUser(l.t.Context(), p)
		if err != nil {
			l.t.Fatal(name, err)
		}
		l.call(name, u.ID)
	}
}

// The accounts that each parameter of the lists selects, and the fields of each account.
func TestLedgerOfUserLists(t *testing.T) {
	scenes(t, "user_lists", admin.Options{}, func(l *ledger) {
		l.permit("writer", notes)
		l.permit("sender", "money.send")
		l.signIn("owner", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		l.people()
		l.play("owner", "GET /users", "")
		for _, query := range []string{
			"q=amy", "q=amy@one.example", "q=AMY@ONE.example", "q=%2B4930111", "q=%2B49301", "q=$gus", "q=z", "q=CAT", "q=amyable+c", "q=@ONE.example", "q=%20@two.example+", "q=@example", "q=@", "q=@x@y", "q=@amy+z", "q=nobody", "q=%20", "email=amy@one.example", "email=x", "phone=%2B4930222", "phone=x",
			"provider=github", "provider=github&subject=77", "provider=github&subject=78", "subject=77", "role=writer", "role=sender", "role=owner", "role=none", "mfa=true", "mfa=false", "mfa=maybe", "mfa=",
			"status=active", "status=banned", "status=unconfirmed", "status=invited", "status=other", "metadata.team=a", "metadata.team=b", "metadata.level=3", "metadata.vip=true", "metadata.team=a&metadata.level=3", "metadata.team=a&metadata.level=4", "metadata.=a",
			"created_from=2025-03-01T00:00:00Z", "created_to=2025-03-01T00:00:00Z", "created_from=2025-02-01T00:00:00Z&created_to=2025-04-01T00:00:00%2B01:00", "created_from=x", "created_to=x",
			"signed_in_from=2025-07-01T00:00:00Z", "signed_in_to=2025-07-01T00:00:00Z", "signed_in_from=x", "signed_in_to=x",
			"sort=email", "sort=created_at&order=asc", "sort=last_sign_in_at", "sort=last_sign_in_at&order=desc", "sort=colour", "order=asc", "order=up", "ids=$amy,$ben", "ids=$amy,x", "ids=$amy,", "limit=2", "limit=0", "limit=-1", "limit=x", "limit=1000",
			"count=estimate", "count=exact", "count=estimate&status=banned", "count=estimate&limit=2", "cursor=x", "cursor=e30", "colour=red", "status=active&status=banned", "%zz", "q=%ff", "q=%00",
		} {
			l.list("owner", "/users?"+query)
		}
		l.pages("owner", "/users?limit=3&sort=email&order=asc&status=active")
		l.pages("owner", "/users?limit=3")
		next := l.list("owner", "/users?limit=1&role=writer").body["next_cursor"]
		l.list("owner", fmt.Sprint("/users?limit=3&role=writer&count=estimate&cursor=", next))
		l.list("owner", fmt.Sprint("/users?role=sender&cursor=", next))
		l.list("owner", fmt.Sprint("/audit-logs?cursor=", next))

		l.play("owner", "GET /roles/writer/users", "")
		l.play("owner", "GET /roles/owner/users", "")
		l.play("owner", "GET /roles/none/users", "")
		l.pages("owner", "/roles/writer/users?limit=1")
		for _, query := range []string{"limit=0", "cursor=x", "cursor=e30", "colour=red"} {
			l.list("owner", "/roles/writer/users?"+query)
		}

		for _, query := range []string{
			"", "?format=csv", "?format=ndjson&status=active", "?format=xml", "?fields=id,email", "?fields=id,id", "?fields=colour", "?format=csv&fields=email,password_hash,totp_secret,id&q=gus", "?fields=password_hash&role=owner",
			"?fields=totp_secret&ids=$gus,$amy,$owner", "?q=amy&email=amy@one.example&phone=%2B4930222&provider=github&subject=1&role=writer&mfa=true&status=invited&metadata.a=b&created_from=2025-01-01T00:00:00Z&created_to=2025-02-01T00:00:00Z&signed_in_from=2025-01-01T00:00:00Z&signed_in_to=2025-02-01T00:00:00Z&sort=email&order=asc&ids=$amy",
			"?limit=3", "?created_from=x", "?status=x",
		} {
			l.once("owner", "GET /users/export"+query, "")
		}
		l.once("owner", "HEAD /users/export?format=csv", "")
		l.once("owner", "GET /users/export", "", "Sec-Fetch-Site: cross-site")
	})
}

// pages lists page by page to the end.
func (l *ledger) pages(who, pattern string) {
	l.t.Helper()
	for cursor := ""; ; {
		next, ok := l.list(who, pattern+cursor).body["next_cursor"].(string)
		if !ok {
			return
		}
		if cursor = "&cursor=" + next; !strings.Contains(pattern, "?") {
			cursor = "?cursor=" + next
		}
	}
}

// from is a client at an IP address, with a browser.
func (l *ledger) from(ip, browser string) func(string, ...authtest.UserOption) {
	return func(name string, opts ...authtest.UserOption) {
		l.t.Helper()
		l.signIn(name, opts...)
		l.Clock.Advance(time.Second)
		ctx := auth.ContextWithClient(l.t.Context(), auth.Client{IP: netip.MustParseAddr(ip), UserAgent: browser})
		tokens, err := l.Login(ctx, auth.LoginParams{Email: name + "@example.com", Password: authtest.Password})
		if err != nil {
			l.t.Fatal(err)
		}
		l.who[name] = &authtest.SignedIn{Tokens: *tokens}
		l.call(name+".visit", tokens.SessionID)
	}
}

// The list of all sessions, and their end.
func TestLedgerOfSessions(t *testing.T) {
	scenes(t, "sessions", admin.Options{}, func(l *ledger) {
		l.crew()
		l.signIn("desk", authtest.Permissions(admin.PermSessionsRead, admin.PermSessionsRevoke, admin.PermUsersRead), authtest.AAL2())
		l.from("192.0.2.7", "Mozilla/5.0 (X11; Linux x86_64) Firefox/120.0")("bea")
		l.from("192.0.2.8", "curl/8")("cal", authtest.Roles("sender"))
		l.from("192.0.2.8", "curl/8")("dee")
		l.from("192.0.2.9", "curl/8")("eli")
		l.play("desk", "GET /sessions", "")
		for _, query := range []string{
			"user=$bea", "user=x", "ip=192.0.2.8", "ip=x", "aal=aal2", "aal=aal1", "aal=x", "client=curl", "client=x", "since=2026-01-02T03:04:15Z", "since=x", "before=2026-01-02T03:04:15Z", "before=x",
			"limit=2", "limit=0", "cursor=x", "cursor=e30", "colour=red",
		} {
			l.list("desk", "/sessions?"+query)
		}
		l.pages("desk", "/sessions?limit=3&since=2026-01-02T03:04:10Z")
		l.play("desk", "GET /users/$bea/sessions", "")
		l.play("desk", "GET /users/$desk/sessions", "")
		l.play("desk", "GET /users/$desk.session/sessions", "")

		l.play("desk", "DELETE /sessions/$bea.visit", `{"reason":"odd"}`)
		l.play("desk", "DELETE /sessions/$bea.visit", `{"reason":"odd"}`)
		l.play("desk", "DELETE /sessions/$bea", "")
		l.play("desk", "DELETE /sessions/$cal.visit", "")
		l.play("desk", "DELETE /sessions/$bea.session", "", `If-Match: "1"`)
		l.play("clerk", "DELETE /sessions/$ada.session", "")
		l.play("desk", "DELETE /users/$bea/sessions", `{"reason":"all of them"}`)
		l.play("desk", "DELETE /users/$bea/sessions", "")
		l.play("desk", "DELETE /users/$cal/sessions", "")
		l.play("desk", "DELETE /users/$bea.visit/sessions", "")

		for _, body := range []string{
			`{}`, `{"all":true,"ip":"192.0.2.8"}`, `{"all":true,"user_ids":["$dee"]}`, `{"all":true,"before":"2026-01-02T03:04:15Z"}`, `{"ip":"x"}`, `{"before":"x"}`, `{"user_ids":[1]}`, `{"user_ids":["x"]}`,
			`{"user_ids":["$cal","$dee","$dee","$bea.visit"],"reason":"some"}`, `{"ip":"192.0.2.8","reason":"the place"}`, `{"ip":"192.0.2.9","before":"2026-01-02T03:04:05Z"}`, `{"user_ids":["$eli"],"ip":"192.0.2.8"}`, `{"user_ids":["$eli"],"ip":"192.0.2.9"}`,
			`{"user_ids":["$desk"]}`, `{"all":true,"reason":"x"}`, `{"before":"2999-01-01T00:00:00Z"}`,
		} {
			l.once("desk", "POST /sessions/revoke", body)
		}
		l.once("desk", "POST /sessions/revoke", `{"before":"2026-01-02T03:04:09Z","reason":"old"}`)
		l.once("owner", "POST /sessions/revoke", `{"all":true,"reason":"a leak"}`)
		l.play("owner", "GET /sessions", "")

		late := l.later(l.who["owner"])
		l.who["late"] = late
		l.once("late", "POST /sessions/revoke", `{"before":"2026-01-02T03:04:09Z"}`)
		l.once("late", "POST /sessions/revoke", `{"all":true}`)
	})
}

// The audit log by each of its parameters, the timeline of an account, and exports.
func TestLedgerOfAuditLists(t *testing.T) {
	scenes(t, "audit_lists", admin.Options{}, func(l *ledger) {
		l.crew()
		l.play("owner", "POST /users/$ada/ban", `{"reason":"x"}`, "X-Request-Id: req-1", "User-Agent: test")
		l.play("clerk", "POST /users/$ada/unban", `{"reason":"=cmd"}`)
		l.play("clerk", "POST /users/$owner/ban", `{"reason":"x"}`)
		l.Clock.Advance(time.Second)
		ctx := auth.ContextWithClient(t.Context(), auth.Client{IP: netip.MustParseAddr("192.0.2.7"), UserAgent: "guesser, \"one\""})
		if _, err := l.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: "wrong password"}); err == nil {
			t.Fatal("signed in")
		}
		l.play("owner", "GET /audit-logs", "")
		for _, query := range []string{
			"actor=$clerk", "actor=x", "action=user.banned", "action=user", "action=none", "target=ada@example.com", "target=none", "user=$ada", "user=x", "request_id=req-1", "request_id=x", "outcome=denied", "outcome=failed", "outcome=done", "outcome=x",
			"from=2026-01-02T03:04:10Z", "to=2026-01-02T03:04:10Z", "from=x", "to=x", "from=2026-01-03T00:00:00Z&to=2026-01-02T00:00:00Z", "ip=192.0.2.7", "ip=::ffff:192.0.2.7", "ip=x", "limit=2", "limit=x", "cursor=x", "cursor=e30", "colour=red",
		} {
			l.list("owner", "/audit-logs?"+query)
		}
		l.pages("owner", "/audit-logs?limit=4")
		l.play("owner", "GET /users/$ada/events", "")
		l.pages("owner", "/users/$ada/events?limit=2")
		next := fmt.Sprint(l.list("owner", "/users/$ada/events?limit=1").body["next_cursor"])
		l.list("owner", "/users/$ada/events?cursor="+next)
		l.list("owner", "/users/$owner/events?cursor="+next)
		l.list("owner", "/audit-logs?cursor="+next)
		for _, path := range []string{"/users/x/events", "/users/$ada/events?colour=red", "/users/$ada/events?limit=0", "/users/$ada.session/events"} {
			l.list("owner", path)
		}
		id := l.audit()[0].ID
		l.call("event", id)
		l.play("owner", "GET /audit-logs/$event", "")
		l.play("owner", "GET /audit-logs/x", "")
		l.play("owner", "GET /audit-logs/$ada", "")
		l.play("owner", "GET /audit-logs/$event?x=1", "")
		for _, query := range []string{
			"", "?format=csv", "?format=xml", "?action=user.banned&format=ndjson", "?user=$ada&actor=$owner&target=ada@example.com&action=user.banned&request_id=req-1&outcome=done&ip=192.0.2.1&from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z",
			"?action=none", "?limit=1", "?outcome=x", "?from=x",
		} {
			l.once("owner", "GET /audit-logs/export"+query, "")
		}
		l.once("owner", "HEAD /audit-logs/export", "")
		l.once("owner", "GET /audit-logs/export", "", "Sec-Fetch-Site: same-site")
		l.once("clerk", "GET /audit-logs/export", "")
	})
}
