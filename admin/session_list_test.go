package admin_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// Sessions of everybody are listed page by page, and by what is asked.
func TestSessionsOfEverybody(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		op := o.operator("op@example.com", admin.PermSessionsRead)
		want := map[string]bool{}
		for i := range 5 {
			s := o.LoginAs(t, fmt.Sprintf("user%d@example.com", i))
			want[s.SessionID] = true
		}
		seen, cursor := map[string]bool{}, ""
		for range 20 {
			a := o.do(op, "GET /sessions?limit=2"+cursor, "").want(200)
			for _, row := range a.body["sessions"].([]any) {
				s := row.(map[string]any)["session"].(map[string]any)
				if id := s["id"].(string); seen[id] {
					t.Errorf("%s is listed twice", id)
				} else {
					seen[id] = true
				}
			}
			next, _ := a.body["next_cursor"].(string)
			if next == "" {
				break
			}
			cursor = "&cursor=" + next
		}
		for id := range want {
			if !seen[id] {
				t.Errorf("%s is not listed", id)
			}
		}
		a := o.do(op, "GET /sessions?aal=aal2&user="+op.User.ID, "").want(200)
		if n := len(a.body["sessions"].([]any)); n != 1 {
			t.Errorf("%d of the operator's", n)
		}
		for _, q := range []string{"client=firefox", "aal=aal3", "user=x", "cursor=x", "more=1", "since=yesterday", "limit=0"} {
			o.do(op, "GET /sessions?"+q, "").want(422, auth.CodeValidationFailed)
		}
	})
}

// Sets skip whom the actor may not touch, count them, and spare the actor's session.
func TestRevokeSessionsOfSeveral(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		op := o.operator("op@example.com", admin.PermSessionsRevoke)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner))
		ada, bob := o.LoginAs(t, "ada@example.com"), o.LoginAs(t, "bob@example.com")
		live := func(s *authtest.SignedIn) bool {
			_, _, err := o.Store.Session(t.Context(), s.SessionID, o.Clock.Now())
			return err == nil
		}
		count := func(body map[string]any, ended, users, skipped int) {
			t.Helper()
			if got := fmt.Sprint(body["ended"], body["users"], body["skipped"], body["more"]); got != fmt.Sprint(ended, users, skipped, false) {
				t.Errorf("%v, want %d %d %d", body, ended, users, skipped)
			}
		}
		body := fmt.Sprintf(`{"user_ids":[%q,%q,%q,%q]}`, ada.User.ID, owner.User.ID, op.User.ID, "00000000-0000-4000-8000-000000000000")
		count(o.do(op, "POST /sessions/revoke", body).want(200).body, 1, 2, 2)
		if live(ada) || !live(bob) || !live(owner) || !live(op) {
			t.Errorf("ada %t, bob %t, owner %t, operator %t", live(ada), live(bob), live(owner), live(op))
		}
		ids := strings.Repeat(`"00000000-0000-4000-8000-000000000000",`, 999)
		o.do(op, "POST /sessions/revoke", `{"user_ids":[`+ids+`"`+ada.User.ID+`"]}`).want(200)
		o.do(op, "POST /sessions/revoke", `{"user_ids":[`+ids+ids[:len(ids)/999]+`"`+ada.User.ID+`"]}`).want(422, auth.CodeValidationFailed)
		o.do(op, "POST /sessions/revoke", `{"before":"`+o.Clock.Now().Add(-time.Hour).Format(time.RFC3339)+`"}`).want(200)
		if !live(bob) {
			t.Error("bob's is younger")
		}
		o.Clock.Advance(time.Second)
		count(o.do(op, "POST /sessions/revoke", `{"before":"`+o.Clock.Now().Format(time.RFC3339Nano)+`"}`).want(200).body, 1, 2, 1)
		if live(bob) || !live(owner) || !live(op) {
			t.Errorf("bob %t, owner %t, operator %t", live(bob), live(owner), live(op))
		}
		o.do(op, "POST /sessions/revoke", `{"ip":`).want(400, auth.CodeBadJSON)
		for _, body := range []string{`{}`, `{"all":true,"ip":"192.0.2.1"}`, `{"reason":"x"}`} {
			o.do(op, "POST /sessions/revoke", body).want(422, auth.CodeValidationFailed)
		}
	})
}

// The end of some sessions ends no sign-in that has begun; the end of all does, so that
// whoever was at it does not come in afterwards.
func TestSignInsEndWithAllSessionsOnly(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		op := o.operator("op@example.com", admin.PermSessionsRevoke)
		ada := o.LoginAs(t, "ada@example.com", authtest.AAL2())
		_, err := o.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
		var begun *auth.Error
		if !errors.As(err, &begun) || begun.MFAToken == "" {
			t.Fatal(err)
		}
		for _, c := range []struct {
			filter string
			want   auth.Code
		}{{`,"before":"2100-01-01T00:00:00Z"`, auth.CodeInvalidTOTPCode}, {`,"ip":"192.0.2.7"`, auth.CodeInvalidTOTPCode}, {"", auth.CodeInvalidToken}} {
			o.do(op, "POST /sessions/revoke", fmt.Sprintf(`{"user_ids":[%q]%s}`, ada.User.ID, c.filter)).want(200)
			_, err := o.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: begun.MFAToken, RecoveryCode: "aaaaa-bbbbb"})
			wantCode(t, err, c.want)
		}
	})
}

// What is repeated with one key answers what it did, and only that: of the sessions that
// were at the address, whatever else the account has.
func TestRevokeSessionsAgain(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		op := o.operator("op@example.com", admin.PermSessionsRevoke)
		ada := o.LoginAs(t, "ada@example.com")
		for _, ip := range []string{"192.0.2.7", "192.0.2.7", "192.0.2.8"} {
			from := auth.ContextWithClient(t.Context(), auth.Client{IP: netip.MustParseAddr(ip)})
			if _, err := o.Login(from, auth.LoginParams{Email: "ada@example.com", Password: authtest.Password}); err != nil {
				t.Fatal(err)
			}
		}
		body := fmt.Sprintf(`{"user_ids":[%q],"ip":"192.0.2.7"}`, ada.User.ID)
		first := o.do(op, "POST /sessions/revoke", body, "Idempotency-Key: one").want(200)
		again := o.do(op, "POST /sessions/revoke", body, "Idempotency-Key: one").want(200)
		if got := fmt.Sprint(first.body["ended"], again.body["ended"]); got != "2 2" {
			t.Errorf("ended %s, want 2 2", got)
		}
		if list, err := o.adm.UserSessions(t.Context(), admin.System("test"), ada.User.ID); err != nil || len(list) != 2 {
			t.Errorf("%d sessions are left, %v", len(list), err)
		}
	})
}

// All need the permission "*" and a fresh proof; then nobody's session and no access
// token is left but the actor's, and who signs in afterwards is in.
func TestRevokeAllSessions(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		weak := o.operator("op@example.com", allBut(t, o)...)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		ada := o.LoginAs(t, "ada@example.com")
		o.do(weak, "POST /sessions/revoke", `{"all":true}`).want(403, auth.CodeMissingPermission)
		owner, ada = o.later(owner), o.renewed(ada)
		o.do(owner, "POST /sessions/revoke", `{"all":true}`).want(403, auth.CodeReauthNeeded)
		owner = o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.Clock.Advance(time.Second)
		a := o.do(owner, "POST /sessions/revoke", `{"all":true,"reason":"leak"}`).want(200)
		if n := a.body["ended"].(float64); n < 3 {
			t.Errorf("%v ended", n)
		}
		_, err := o.Verify(ada.AccessToken)
		wantCode(t, err, auth.CodeSessionEnded)
		if _, err := o.Refresh(t.Context(), auth.RefreshParams{RefreshToken: ada.RefreshToken}); err == nil {
			t.Error("it is refreshed")
		}
		o.Clock.Advance(time.Second)
		ada = o.LoginAs(t, "ada@example.com")
		for name, s := range map[string]*authtest.SignedIn{"the actor's own": owner, "one that began later": ada} {
			if _, err := o.Verify(s.AccessToken); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
