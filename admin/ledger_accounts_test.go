package admin_test

import (
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// crew signs in the actors of most scenes: an owner, a clerk with some permissions, and a
// target.
func (l *ledger) crew() {
	l.permit("writer", notes)
	l.permit("sender", "money.send")
	l.signIn("owner", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	l.signIn("clerk", authtest.Permissions(admin.PermUsersRead, admin.PermUsersWrite, admin.PermUsersBan, admin.PermUsersDelete, admin.PermSessionsRevoke, admin.PermMessagesSend), authtest.AAL2())
	l.signIn("ada", authtest.AppMetadata(map[string]any{"team": "a"}))
}

// The life of one account: it is created, changed, banned, deleted and anonymized.
func TestLedgerOfAccounts(t *testing.T) {
	scenes(t, "accounts", admin.Options{}, func(l *ledger) {
		l.crew()
		l.signIn("rich", authtest.Roles("sender"))
		l.play("owner", "GET /me", "")
		l.play("clerk", "GET /me", "")
		l.play("clerk", "GET /users/$ada", "")
		l.play("clerk", "GET /users/no-id", "")
		l.play("clerk", "GET /users/$owner.session", "")

		l.made("bob", "owner", "POST /users", `{"email":"Bob@Example.com","email_verified":true,"phone":"+49 30 123456","phone_verified":true,"full_name":"Bob B.","password":"a phrase of four words","roles":["writer","writer"],"user_metadata":{"a":1},"app_metadata":{"b":[2]},"notes":"likes cake"}`)
		l.play("owner", "GET /users/$bob", "")
		l.made("plain", "clerk", "POST /users", `{"email":"plain@example.com"}`)
		l.made("caller", "clerk", "POST /users", `{"phone":"+49 30 999999"}`)
		l.made("chosen", "clerk", "POST /users", `{"id":"0195c0de-0000-7000-8000-000000000001","email":"chosen@example.com"}`)
		l.made("hashed", "owner", "POST /users", `{"email":"hashed@example.com","password_hash":"$2y$10$abcdefghijklmnopqrstuuRVDvmMCGwCgYV8WNh4b4/GTI1eW9v7G"}`)
		l.made("checked", "clerk", "POST /users", `{"email":"checked@example.com","send":"verify"}`)
		l.made("asked", "clerk", "POST /users", `{"email":"asked@example.com","send":"invite"}`)
		l.made("odd", "clerk", "POST /users", `{"email":"odd@example.com","unknown":1}`)
		for _, body := range []string{
			`{"email":"x@example.com","send":"both"}`, `{"send":"verify"}`, `{"email":"x@example.com","email_verified":true,"send":"verify"}`, `{"phone":"+4930777","send":"invite"}`,
			`{"email":"x@example.com","password":"a phrase of four words","send":"invite"}`, `{"email":"x@example.com","password_hash":"x","send":"invite"}`,
			`{}`, `{"email":"no address"}`, `{"email":"bob@example.com"}`, `{"email":"x@example.com","phone":"+4930123456"}`, `{"email":"x@example.com","id":"$bob"}`, `{"email":"x@example.com","id":"x"}`,
			`{"email":"x@example.com","roles":["nothing"]}`, `{"email":"x@example.com","password":"short"}`, `{"email":"x@example.com","password_hash":"x"}`, `{"email":1}`,
		} {
			l.play("owner", "POST /users", body)
		}
		for _, body := range []string{
			`{"email":"x@example.com","email_verified":true}`, `{"phone":"+4930777","phone_verified":true}`, `{"email":"x@example.com","password":"a phrase of four words"}`,
			`{"email":"x@example.com","password_hash":"x"}`, `{"email":"x@example.com","roles":["writer"]}`,
		} {
			l.play("clerk", "POST /users", body)
		}

		for _, body := range []string{
			`{"full_name":"Ada L."}`, `{"full_name":"Ada L."}`, `{"full_name":null}`, `{"user_metadata":{"x":{"y":1},"z":2}}`, `{"user_metadata":{"x":{"y":null}}}`, `{"app_metadata":{"team":"b"}}`, `{"notes":"calls often"}`, `{"notes":null}`,
			`{"full_name":1}`, `{"user_metadata":null}`, `{"user_metadata":1}`, `{"app_metadata":null}`, `{"app_metadata":[]}`, `{"notes":{}}`, `{}`,
		} {
			l.play("clerk", "PATCH /users/$ada", body)
		}
		l.play("clerk", "PATCH /users/$ada", `{"full_name":"x"}`, `If-Match: "1"`)
		l.play("clerk", "PATCH /users/$ada", `{"full_name":"x"}`, `If-Match: 1`)
		l.play("clerk", "PATCH /users/$ada", `{"full_name":"x"}`, `If-Match: "x"`)
		l.play("clerk", "PATCH /users/$ada", `{"full_name":"x"}`, `If-Match: *`)
		l.play("clerk", "PATCH /users/$ada", `{"full_name":"y"}`, `If-Match: "8"`)
		for _, body := range []string{`{"email":"a@b.example"}`, `{"email_verified":true}`, `{"phone":"+4930777"}`, `{"phone_verified":false}`} {
			l.play("clerk", "PATCH /users/$ada", body)
		}
		for _, body := range []string{
			`{"email":"bob@example.com"}`, `{"email":"no address"}`, `{"phone":"+4930123456"}`, `{"phone":"x"}`, `{"phone_verified":true}`, `{"email_verified":null}`, `{"email_verified":1}`, `{"phone_verified":"x"}`,
			`{"email":"ada2@example.com"}`, `{"email_verified":true}`, `{"email":"ada@example.com","email_verified":true}`, `{"phone":"+49 30 555555"}`, `{"phone_verified":true}`, `{"phone_verified":false}`, `{"email":null}`, `{"phone":null}`, `{"email":"ada@example.com","email_verified":true}`,
		} {
			l.play("owner", "PATCH /users/$ada", body)
		}
		l.play("owner", "PATCH /users/$owner", `{"full_name":"The Owner"}`)
		l.play("owner", "PATCH /users/$owner", `{"app_metadata":{"x":1}}`)
		l.play("owner", "PATCH /users/$owner", `{"email":"x@example.com"}`)
		l.play("clerk", "PATCH /users/$rich", `{"full_name":"x"}`)

		l.play("clerk", "POST /users/$bob/ban", `{}`)
		l.play("clerk", "POST /users/$bob/ban", `{"reason":"x","until":"2026-01-02T03:04:05Z"}`)
		l.play("clerk", "POST /users/$bob/ban", `{"reason":"x","until":"soon"}`)
		l.play("clerk", "POST /users/$bob/ban", `{"reason":"spam","until":"2026-02-01T01:00:00+01:00"}`)
		l.play("clerk", "POST /users/$bob/ban", `{"reason":"spam","until":"9999-12-31T23:59:59Z"}`)
		l.play("clerk", "POST /users/$bob/ban", `{"reason":"spam"}`, `If-Match: "2"`)
		l.play("clerk", "GET /users/$bob", "")
		l.play("clerk", "POST /users/$bob/unban", `{"reason":"sorry"}`)
		l.play("clerk", "POST /users/$bob/unban", ``)
		l.play("clerk", "POST /users/$rich/ban", `{"reason":"x"}`)
		l.play("clerk", "POST /users/$owner/ban", `{"reason":"x"}`)
		l.play("clerk", "POST /users/$clerk/ban", `{"reason":"x"}`)
		l.play("owner", "POST /users/$ada/ban", `{"reason":"a while"}`)
		l.play("clerk", "POST /users/$ada/unban", `{}`, `If-Match: "1"`)
		l.play("clerk", "POST /users/$ada/unban", `{"reason":1}`)

		l.play("clerk", "POST /users/$plain/delete", ``)
		l.play("clerk", "POST /users/$plain/delete", `{"reason":"asked for it"}`, `If-Match: "9"`)
		l.play("clerk", "POST /users/$plain/delete", `{"reason":"asked for it"}`)
		l.play("clerk", "POST /users/$plain/delete", `{"reason":"asked for it"}`)
		l.play("clerk", "POST /users/$rich/delete", `{"reason":"x"}`)
		l.play("owner", "POST /users/$owner/delete", `{"reason":"x"}`)
		l.play("owner", "POST /users", `{"id":"$plain","email":"plain@example.com"}`)

		l.play("clerk", "POST /users/$caller/anonymize", `{}`)
		l.play("clerk", "POST /users/$caller/anonymize", `{"reason":"asked for it"}`, `If-Match: "9"`)
		l.play("clerk", "POST /users/$caller/anonymize", `{"reason":"asked for it"}`)
		for _, pattern := range []string{"POST /users/$caller/ban", "POST /users/$caller/anonymize", "POST /users/$caller/unban"} {
			l.play("clerk", pattern, `{"reason":"x"}`)
		}
		l.play("clerk", "POST /users/$caller/delete", `{"reason":"the rest"}`)
		l.play("clerk", "POST /users/$rich/anonymize", `{"reason":"x"}`)

		for _, query := range []string{"", "?email=ADA@example.com", "?email=nobody@example.com", "?email=x", "?phone=%2B49%2030%20123456", "?phone=x", "?provider=github&subject=x", "?provider=github", "?subject=x", "?email=ada@example.com&phone=%2B4930123456", "?id=$ada", "?email=ada@example.com&email=x"} {
			l.play("clerk", "GET /users/lookup"+query, "")
		}
	})
}

// Credentials and access: passwords, factors, identities, limits.
func TestLedgerOfCredentials(t *testing.T) {
	scenes(t, "credentials", admin.Options{}, func(l *ledger) {
		l.crew()
		l.signIn("desk", authtest.Permissions(admin.PermUsersRead, admin.PermUsersBan, admin.PermCredentials, admin.PermUsersExport), authtest.AAL2())
		l.signIn("peer", authtest.Permissions(admin.PermUsersRead, admin.PermUsersBan, admin.PermCredentials, admin.PermUsersExport), authtest.AAL2())
		l.signIn("armed", authtest.AAL2())

		l.play("desk", "POST /users/$ada/password", `{"password":"another phrase of words","reason":"lost it"}`)
		l.play("desk", "POST /users/$ada/password", `{"password":"short"}`)
		l.play("desk", "POST /users/$ada/password", `{"password":""}`)
		l.play("desk", "POST /users/$ada/password", `{"password":null}`)
		l.play("desk", "POST /users/$ada/password", `{"password":null,"reason":"again"}`, `If-Match: "1"`)
		l.play("desk", "POST /users/$ada/password", `{"password":"a third phrase of words"}`)
		l.play("desk", "POST /users/$ada/password", `{}`)
		l.play("desk", "POST /users/$peer/password", `{"password":"another phrase of words"}`)
		l.play("desk", "POST /users/$desk/password", `{"password":"another phrase of words"}`)
		l.play("clerk", "POST /users/$ada/password", `{"password":"another phrase of words"}`)

		l.play("desk", "GET /users/$armed/factors", "")
		l.play("desk", "GET /users/$ada/factors", "")
		l.play("desk", "GET /users/$ada.session/factors", "")
		l.play("desk", "DELETE /users/$ada/factors", "")
		l.who["ada"].SessionID = "" // that session has ended
		l.arm(l.who["ada"])
		l.play("desk", "GET /users/$ada", "")
		l.play("desk", "GET /users/$ada/factors", "")
		l.play("desk", "DELETE /users/$ada/factors/$desk", `{"reason":"x"}`)
		l.play("desk", "DELETE /users/$ada/factors/$ada", `{"reason":"x"}`, `If-Match: "1"`)
		l.play("desk", "DELETE /users/$ada/factors/$ada", `{"reason":"lost the phone"}`)
		l.play("desk", "DELETE /users/$armed/factors", `{"reason":"lost the other phone"}`)
		l.play("desk", "DELETE /users/$peer/factors", "")
		l.play("desk", "DELETE /users/$desk/factors", "")

		l.link(l.who["ada"])
		l.play("desk", "GET /users/$ada", "")
		l.play("desk", "GET /users/lookup?provider=github&subject=$ada", "")
		l.play("desk", "DELETE /users/$ada/identities/$desk", "")
		l.play("desk", "DELETE /users/$ada/identities/$ada", "", `If-Match: "1"`)
		l.play("desk", "DELETE /users/$ada/identities/$ada", `{"reason":"not theirs"}`)
		l.play("desk", "PATCH /users/$ada", `{"full_name":"x"}`)
		l.play("desk", "POST /users/$ada/password", `{"password":null}`)
		verified := time.Time{}
		l.patch(l.ids["ada"], store.UserPatch{EmailVerifiedAt: &verified})
		l.link(l.who["ada"])
		l.play("desk", "DELETE /users/$ada/identities/$ada", `{"reason":"not theirs"}`)
		l.play("desk", "DELETE /users/$ada/identities/$ada", `{"force":1}`)
		l.play("desk", "DELETE /users/$ada/identities/$ada", `{"force":true,"reason":"all the same"}`)

		for range 12 {
			_, _ = l.Login(t.Context(), auth.LoginParams{Email: "rich@example.com", Password: "wrong password"})
			_, _ = l.Login(t.Context(), auth.LoginParams{Email: "clerk@example.com", Password: "wrong password"})
		}
		l.play("desk", "GET /users/$clerk", "")
		l.play("owner", "POST /users/$clerk/unlock", `{"reason":"called"}`, `If-Match: "7"`)
		l.play("owner", "POST /users/$clerk/unlock", `{"reason":"called"}`)
		l.play("desk", "GET /users/$clerk", "")
		l.play("desk", "POST /users/$peer/unlock", "")
		l.play("desk", "POST /users/$desk/unlock", "")
		l.play("desk", "POST /users/$owner/unlock", "")

		l.once("desk", "GET /users/$armed/export", "")
		l.once("desk", "GET /users/$owner/export", "")
		l.once("desk", "GET /users/$desk/export", "")
		l.once("clerk", "GET /users/$ada/export", "")
		l.once("desk", "GET /users/$desk.session/export", "")
	})
}
