package admin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// Roles: their permissions, their holders, and the actors who may change both.
func TestLedgerOfRoles(t *testing.T) {
	scenes(t, "roles", admin.Options{}, func(l *ledger) {
		l.crew()
		l.signIn("chief", authtest.Permissions(admin.PermUsersRead, admin.PermRolesRead, admin.PermRolesWrite, admin.PermRolesAssign, notes), authtest.AAL2())
		l.signIn("rich", authtest.Roles("sender"))
		l.play("chief", "GET /permissions", "")
		l.play("chief", "GET /roles", "")
		l.play("chief", "GET /roles/writer", "")
		l.play("chief", "GET /roles/owner", "")
		l.play("chief", "GET /roles/none", "")
		l.play("chief", "GET /roles/matrix", "")
		for _, body := range []string{
			`{"name":"editor","description":"Edits.","permissions":["notes.write","notes.write"],"dry_run":true}`, `{"name":"editor"}`, `{"name":"Editor"}`, `{"name":""}`, `{"name":"matrix"}`, `{"name":"owner"}`, `{"name":"x","permissions":["none"]}`, `{"name":"x","permissions":["money.send"]}`, `{"name":"x","permissions":["*"]}`,
			`{"name":"` + strings.Repeat("x", 63) + `","dry_run":true}`, `{"name":"` + strings.Repeat("x", 64) + `","dry_run":true}`, `{"name":"x","description":"` + strings.Repeat("x", 500) + `","dry_run":true}`, `{"name":"x","description":"` + strings.Repeat("x", 501) + `"}`,
			`{"name":"x","description":"a\u0000b"}`, `{"name":1}`,
		} {
			l.play("chief", "POST /roles", body)
		}
		l.play("chief", "POST /roles", `{"name":"lector","permissions":["notes.*"]}`, `If-Match: "1"`)
		l.play("chief", "POST /roles", `{"name":"lector","permissions":["notes.*"],"description":"Reads."}`, `If-Match: "8"`)
		for _, body := range []string{
			`{"permissions":["notes.write"],"dry_run":true}`, `{"permissions":["notes.write"]}`, `{"description":"Writes."}`, `{"description":"Writes."}`, `{"description":"","permissions":[]}`, `{"permissions":["none"]}`, `{"permissions":["money.send"]}`, `{"description":"` + strings.Repeat("x", 501) + `"}`, `{}`, `{"permissions":1}`,
		} {
			l.play("chief", "PATCH /roles/editor", body)
		}
		l.play("chief", "PATCH /roles/editor", `{"description":"x"}`, `If-Match: "1"`)
		l.play("chief", "PATCH /roles/sender", `{"description":"x"}`)
		l.play("chief", "PATCH /roles/owner", `{"description":"x"}`)
		l.play("chief", "PATCH /roles/none", `{"description":"x"}`)
		l.play("chief", "PATCH /roles/No-Name", `{"description":"x"}`)

		for _, body := range []string{`{"roles":["writer","editor","writer"],"reason":"promoted"}`, `{"roles":["editor"]}`, `{"roles":["none"]}`, `{"roles":["sender"]}`, `{"roles":["owner"]}`, `{}`, `{"roles":1}`} {
			l.play("chief", "PUT /users/$ada/roles", body)
		}
		l.play("chief", "PUT /users/$ada/roles", `{"roles":[]}`, `If-Match: "1"`)
		l.play("chief", "PUT /users/$rich/roles", `{"roles":[]}`)
		l.play("chief", "PUT /users/$chief/roles", `{"roles":[]}`)
		l.play("chief", "POST /users/$ada/roles/writer", `{"reason":"one more"}`)
		l.play("chief", "POST /users/$ada/roles/writer", "", `If-Match: "1"`)
		l.play("chief", "POST /users/$ada/roles/none", "")
		l.play("chief", "POST /users/$ada/roles/sender", "")
		l.play("chief", "POST /users/$rich/roles/writer", "")
		l.play("chief", "DELETE /users/$ada/roles/writer", `{"reason":"one less"}`)
		l.play("chief", "DELETE /users/$ada/roles/writer", "")
		l.play("chief", "DELETE /users/$ada/roles/writer", "", `If-Match: "1"`)
		l.play("chief", "DELETE /users/$rich/roles/sender", "")
		l.play("owner", "POST /users/$rich/roles/owner", "")
		l.play("owner", "POST /users/$ada/roles/sender", "")
		l.play("owner", "POST /users/$ada/roles/sender", `{"address":"eve@example.com"}`)
		l.play("owner", "POST /users/bulk", `{"action":"add_role","role":"sender","ids":["$ada"]}`)
		l.play("chief", "GET /users/$ada", "")
		l.play("clerk", "POST /users/$ada/roles/writer", "")

		l.play("chief", "DELETE /roles/editor", "")
		l.play("chief", "DELETE /users/$ada/roles/editor", "")
		l.play("chief", "DELETE /roles/editor?dry_run=true", "")
		l.play("chief", "DELETE /roles/editor?dry_run=x", "")
		l.play("chief", "DELETE /roles/editor", "", `If-Match: "1"`)
		l.play("chief", "DELETE /roles/sender", "")
		l.play("chief", "DELETE /roles/owner", "")
		l.play("chief", "DELETE /roles/editor?dry_run=false", "")
		l.play("chief", "DELETE /roles/editor", "")

		for _, body := range []string{`{"user_id":"$rich","permission":"notes.write"}`, `{"user_id":"$rich","permission":"money.send"}`, `{"user_id":"$ada","permission":"money.send"}`, `{"user_id":"$ada","permission":"notes.write"}`, `{"user_id":"$ada","permission":""}`, `{"user_id":"$ada.session","permission":"notes.write"}`, `{}`} {
			l.play("chief", "POST /check", body)
		}
		l.play("clerk", "POST /check", `{"user_id":"$ada","permission":"notes.write"}`)
	})
}

// API keys, and the operations that programs may do with them.
func TestLedgerOfKeys(t *testing.T) {
	scenes(t, "keys", admin.Options{}, func(l *ledger) {
		l.crew()
		l.signIn("smith", authtest.Permissions(admin.PermKeysRead, admin.PermKeysWrite, admin.PermUsersRead, admin.PermUsersBan, admin.PermUsersImport, notes), authtest.AAL2())
		l.signIn("other", authtest.Permissions(admin.PermKeysRead, admin.PermKeysWrite, admin.PermUsersRead), authtest.AAL2())
		made := func(name, who, body string) {
			a := l.made(name, who, "POST /keys", body)
			text, _ := a.body["key"].(string)
			l.who[name] = bearing(text)
		}
		made("robot", "smith", `{"name":" robot ","kind":"secret","scopes":["notes.write","auth.users.read","auth.users.ban","auth.users.read"],"environment":"test","cidrs":["192.0.2.1/24","2001:db8::1/32"],"expires_at":"2026-02-01T01:00:00+01:00"}`)
		made("page", "smith", `{"name":"page","kind":"public"}`)
		made("plain", "smith", `{"name":"plain","scopes":["auth.users.*"]}`)
		made("chief", "owner", `{"name":"chief","scopes":["*"]}`)
		for _, body := range []string{
			`{}`, `{"name":"x"}`, `{"name":"x","kind":"other","scopes":["auth.users.read"]}`, `{"name":"x","kind":"public","scopes":["auth.users.read"]}`, `{"name":"  ","scopes":["auth.users.read"]}`, `{"name":"a\u0007b","scopes":["auth.users.read"]}`, `{"name":"a\nb","scopes":["auth.users.read"]}`,
			`{"name":"x","scopes":["none"]}`, `{"name":"x","scopes":["auth.keys.write"]}`, `{"name":"x","scopes":["money.send"]}`, `{"name":"x","scopes":["auth.users.read"],"environment":"Live"}`, `{"name":"x","scopes":["auth.users.read"],"cidrs":["192.0.2.1"]}`, `{"name":"x","scopes":["auth.users.read"],"cidrs":["::ffff:192.0.2.0/120"]}`,
			`{"name":"x","scopes":["auth.users.read"],"expires_at":"2026-01-02T03:04:05Z"}`, `{"name":"x","scopes":["auth.users.read"],"expires_at":"x"}`, `{"name":1}`,
		} {
			l.play("smith", "POST /keys", body)
		}
		l.play("smith", "GET /keys", "")
		for _, query := range []string{"kind=secret", "kind=public", "kind=x", "status=live", "status=dead", "limit=0", "limit=2", "cursor=x", "cursor=e30", "colour=red"} {
			l.list("smith", "/keys?"+query)
		}
		l.pages("smith", "/keys?limit=2")

		l.play("robot", "GET /me", "")
		l.play("robot", "GET /users/$ada", "")
		l.play("robot", "POST /users/$ada/ban", `{"reason":"a program"}`)
		l.play("robot", "POST /users/$smith/ban", `{"reason":"its maker"}`)
		l.play("robot", "POST /users/$owner/ban", `{"reason":"x"}`)
		l.play("robot", "GET /keys", "")
		l.play("chief", "GET /me", "")
		l.play("chief", "POST /keys", `{"name":"x","scopes":["auth.users.read"]}`)
		l.play("page", "GET /me", "")

		for _, body := range []string{
			`{"name":"robot two"}`, `{"name":"robot two"}`, `{"scopes":["auth.users.read"]}`, `{"cidrs":[]}`, `{"expires_at":"2026-03-01T00:00:00Z"}`, `{"expires_at":null}`, `{"expires_at":"2026-01-02T03:04:05Z"}`, `{"expires_at":"x"}`, `{"name":""}`, `{"scopes":[]}`, `{"scopes":["money.send"]}`, `{"cidrs":["x"]}`, `{"adopted":true}`, `{}`,
		} {
			l.play("smith", "PATCH /keys/$robot", body)
		}
		l.play("smith", "PATCH /keys/$robot", `{"name":"x"}`, `If-Match: "1"`)
		l.play("owner", "PATCH /keys/$robot", `{"adopted":true}`)
		l.play("smith", "PATCH /keys/$robot", `{"name":"mine"}`)
		l.play("owner", "PATCH /keys/$robot", `{"adopted":false,"name":"robot"}`)
		l.play("other", "PATCH /keys/$robot", `{"name":"x"}`)
		l.play("other", "PATCH /keys/$plain", `{"name":"x"}`)
		l.play("smith", "PATCH /keys/$ada", `{"name":"x"}`)

		l.play("smith", "POST /keys/$robot/rotate", `{"overlap":-1}`)
		l.play("smith", "POST /keys/$robot/rotate", `{"overlap":2592001}`)
		l.play("smith", "POST /keys/$robot/rotate", `{"overlap":2592000}`)
		l.play("robot", "GET /me", "")
		l.play("smith", "POST /keys/$robot/rotate", `{"overlap":60}`, `If-Match: "1"`)
		l.play("smith", "POST /keys/$robot/rotate", "")
		l.play("robot", "GET /me", "")
		l.play("other", "POST /keys/$robot/rotate", "")
		l.play("owner", "POST /keys/$robot/rotate", "")
		l.play("smith", "POST /keys/$chief/rotate", "")
		l.play("smith", "POST /keys/$ada/rotate", "")

		l.play("other", "DELETE /keys/$robot", `{"reason":"x"}`, `If-Match: "1"`)
		l.play("other", "DELETE /keys/$robot", `{"reason":"leaked"}`)
		l.play("other", "DELETE /keys/$robot", `{"reason":"leaked"}`)
		l.play("other", "DELETE /keys/$plain", "")
		l.play("smith", "DELETE /keys/$chief", "")
		l.play("smith", "DELETE /keys/$ada", "")
		l.play("smith", "PATCH /keys/$robot", `{"name":"x"}`)
		l.Clock.Advance(10 * time.Minute)
		l.list("smith", "/keys?status=live")
	})
}
