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

// Invitations: created for an address with roles, sent again, revoked.
func TestLedgerOfInvitations(t *testing.T) {
	scenes(t, "invitations", admin.Options{}, func(l *ledger) {
		l.crew()
		l.signIn("host", authtest.Permissions(admin.PermUsersRead, admin.PermUsersWrite, admin.PermRolesAssign, notes), authtest.AAL2())
		l.made("zoe", "host", "POST /invitations", `{"email":"Zoe@Example.com","roles":["writer"],"metadata":{"team":"z"},"redirect_to":"https://app.test/welcome","expires_in":600}`)
		l.made("yan", "clerk", "POST /invitations", `{"email":"yan@example.com"}`)
		l.made("xia", "owner", "POST /invitations", `{"email":"xia@example.com","roles":["sender","owner"]}`)
		l.made("ada.too", "host", "POST /invitations", `{"email":"ada@example.com","roles":["writer"]}`)
		for _, body := range []string{
			`{}`, `{"email":"no address"}`, `{"email":"x@example.com","roles":["none"]}`, `{"email":"x@example.com","roles":["sender"]}`, `{"email":"x@example.com","redirect_to":"https://evil.test/"}`, `{"email":"x@example.com","expires_in":299}`, `{"email":"x@example.com","expires_in":2592001}`,
			`{"email":"HOST@example.com"}`, `{"email":"x@example.com","metadata":[]}`, `{"email":"x@example.com","expires_in":-1}`, `{"email":1}`, `{"email":"xia@example.com"}`,
		} {
			l.once("host", "POST /invitations", body)
		}
		l.once("clerk", "POST /invitations", `{"email":"x@example.com","roles":["writer"]}`)
		l.play("host", "GET /invitations", "")
		for _, query := range []string{"limit=2", "limit=0", "cursor=x", "cursor=e30", "colour=red"} {
			l.list("host", "/invitations?"+query)
		}
		l.pages("host", "/invitations?limit=2")
		l.Clock.Advance(time.Minute)
		l.play("host", "POST /invitations/$zoe/resend", "")
		l.Clock.Advance(time.Minute)
		l.once("owner", "POST /invitations/$zoe/resend", "")
		l.Clock.Advance(time.Minute)
		l.once("clerk", "POST /invitations/$zoe/resend", "")
		l.once("host", "POST /invitations/$xia/resend", "")
		l.once("host", "POST /invitations/$ada/resend", "")
		l.once("host", "POST /invitations/$yan/resend", "")
		l.once("host", "POST /invitations", `{"email":"zoe@example.com","roles":[]}`)
		l.play("host", "GET /invitations", "")
		l.play("clerk", "DELETE /invitations/$ada.too", "")
		l.play("host", "DELETE /invitations/$xia", "")
		l.play("host", "DELETE /invitations/$yan", "")
		l.play("host", "DELETE /invitations/$yan", "")
		l.play("host", "DELETE /invitations/$ada", "")
		late := l.later(l.who["host"])
		l.who["late"] = late
		l.play("late", "DELETE /invitations/$ada.too", "")
		l.once("late", "POST /invitations", `{"email":"w@example.com","roles":["writer"]}`)
	}, auth.WithRedirectURLs("https://app.test/*"))
}

// Links that operators create, messages that they send, and the states of both.
func TestLedgerOfMessages(t *testing.T) {
	scenes(t, "messages", admin.Options{NotifyImpersonated: true}, func(l *ledger) {
		l.crew()
		l.signIn("desk", authtest.Permissions(admin.PermUsersRead, admin.PermCredentials, admin.PermMessagesRead, admin.PermMessagesSend, admin.PermImpersonate), authtest.AAL2())
		l.signIn("raw", authtest.Unverified())
		l.signIn("gone")
		l.play("owner", "POST /users/$gone/ban", `{"reason":"x"}`)
		for _, body := range []string{
			`{"type":"magic_link","user_id":"$ada","redirect_to":"https://app.test/in"}`, `{"type":"reset","email":"ADA@example.com"}`, `{"type":"verify","user_id":"$raw"}`, `{"type":"verify","user_id":"$ada"}`, `{"type":"invite","user_id":"$ada"}`, `{"type":"code","user_id":"$ada"}`,
			`{"type":"none","user_id":"$ada"}`, `{"type":"reset"}`, `{"type":"reset","user_id":"$ada","email":"ada@example.com"}`, `{"type":"reset","email":"nobody@example.com"}`, `{"type":"reset","user_id":"$desk"}`, `{"type":"reset","user_id":"$owner"}`, `{"type":"reset","user_id":"$gone"}`,
			`{"type":"magic_link","user_id":"$ada","redirect_to":"https://evil.test/"}`, `{"type":1}`,
		} {
			l.once("desk", "POST /links", body)
		}
		l.once("clerk", "POST /links", `{"type":"reset","email":"ada@example.com"}`)
		for _, body := range []string{
			`{"type":"magic_link","redirect_to":"https://app.test/in"}`, `{"type":"magic_link"}`, `{"type":"reset"}`, `{"type":"code"}`, `{"type":"verify"}`, `{"type":"invite"}`, `{"type":"none"}`, `{"type":"reset","redirect_to":"https://evil.test/"}`, `{}`,
		} {
			l.Clock.Advance(time.Minute)
			l.once("desk", "POST /users/$ada/send", body)
		}
		l.once("desk", "POST /users/$raw/send", `{"type":"verify"}`)
		l.once("desk", "POST /users/$gone/send", `{"type":"reset"}`)
		l.once("clerk", "POST /users/$owner/send", `{"type":"reset"}`)
		l.once("desk", "POST /users/$desk/send", `{"type":"reset"}`)
		l.once("desk", "POST /users/$ada.session/send", `{"type":"reset"}`)

		l.Clock.Advance(time.Hour)
		for _, name := range []string{"owner", "desk", "clerk"} {
			l.who[name] = l.renewed(l.who[name])
		}
		l.call("failed", l.failedMessage(l.read(l.ids["raw"])))
		l.play("desk", "GET /messages", "")
		for _, query := range []string{
			"state=sent", "state=failed", "state=none", "kind=reset", "kind=magic_link", "kind=none", "user=$ada", "user=x", "from=2026-01-02T03:20:00Z", "to=2026-01-02T03:20:00Z", "from=x", "to=x", "limit=2", "limit=0", "cursor=x", "cursor=e30", "colour=red",
		} {
			l.list("desk", "/messages?"+query)
		}
		l.pages("desk", "/messages?limit=4")
		l.play("clerk", "POST /messages/x/retry", "")
		l.play("desk", "POST /messages/$ada/retry", "")
		sent := l.list("desk", "/messages?state=sent&user=$ada&limit=1")
		if ids, _ := sent.body["messages"].([]any); len(ids) > 0 {
			l.call("sent", ids[0].(string)) //nolint:forcetypeassert // it is one
		}
		l.play("desk", "POST /messages/$sent/retry", "")
		l.play("owner", "POST /users/$raw/ban", `{"reason":"x"}`)
		l.play("desk", "POST /messages/$failed/retry", "")
		l.play("owner", "POST /users/$raw/unban", "")
		a := l.do(l.who["desk"], l.filled("POST /messages/$failed/retry"), "")
		l.becomes(admin.MessagesParams{UserID: l.ids["raw"], Kind: auth.KindMagicLink}, store.MessageSent)
		l.write("  retried:", fmt.Sprint(a.status, " ", a.text))
		l.after(l.write)
		l.play("desk", "POST /messages/$failed/retry", "")
		l.list("desk", "/messages?user=$raw")
	}, auth.WithRedirectURLs("https://app.test/*"))
}

// Impersonations.
func TestLedgerOfImpersonations(t *testing.T) {
	scenes(t, "impersonations", admin.Options{NotifyImpersonated: true}, func(l *ledger) {
		l.crew()
		l.signIn("desk", authtest.Permissions(admin.PermImpersonate), authtest.AAL2())
		l.signIn("peer", authtest.Permissions(admin.PermImpersonate), authtest.AAL2())
		l.signIn("raw", authtest.Unverified())
		l.signIn("gone")
		l.play("owner", "POST /users/$gone/ban", `{"reason":"x"}`)
		l.made("first", "desk", "POST /users/$ada/impersonate", `{"reason":"ticket 7"}`)
		l.made("second", "owner", "POST /users/$raw/impersonate", `{"reason":"ticket 8","redirect_to":"https://app.test/in","code_challenge":"qOvah1pr6ukJG77KO3U91MgKQTiTZ2PNg4TcM8sUGUQ"}`, "User-Agent: curl/8")
		for _, body := range []string{`{}`, `{"reason":"` + strings.Repeat("x", 501) + `"}`, `{"reason":"x","redirect_to":"https://evil.test/","code_challenge":"qOvah1pr6ukJG77KO3U91MgKQTiTZ2PNg4TcM8sUGUQ"}`, `{"reason":"x","redirect_to":"https://app.test/in"}`, `{"reason":"x\u0000"}`, `{"reason":1}`} {
			l.play("desk", "POST /users/$ada/impersonate", body)
		}
		for _, id := range []string{"$peer", "$desk", "$owner", "$gone", "$ada.session"} {
			l.play("desk", "POST /users/"+id+"/impersonate", `{"reason":"x"}`)
		}
		l.play("desk", "POST /users/$ada/impersonate", `{"reason":"x"}`, `If-Match: "9"`)
		l.play("clerk", "POST /users/$ada/impersonate", `{"reason":"x"}`)
		l.play("desk", "GET /impersonations", "")
		l.play("clerk", "GET /impersonations", "")
		l.play("desk", "DELETE /impersonations/$first", `{"reason":"done"}`)
		l.play("desk", "DELETE /impersonations/$first", "")
		l.play("desk", "DELETE /impersonations/$ada", "")
		l.play("clerk", "DELETE /impersonations/$second", "")
		l.play("peer", "DELETE /impersonations/$second", "")
		l.play("desk", "GET /impersonations", "")
	}, auth.WithRedirectURLs("https://app.test/*"))
}
