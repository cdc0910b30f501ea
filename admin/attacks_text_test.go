package admin_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// An attempt is recorded however long its target is, and delays no other record.
func TestLongTargetsAreRecorded(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		op := o.operator("op@example.com", admin.PermRolesWrite)
		long := make([]byte, 3000)
		_, _ = rand.Read(long) // random, because repetitive text is compressed
		o.do(op, "PATCH /roles/"+hex.EncodeToString(long), `{"description":"x"}`).want(404, auth.CodeRoleNotFound)
		o.do(op, "GET /users", "").want(403, auth.CodeMissingPermission)
		o.written()
		if n := o.countEvents(auth.EventAdminDenied); n != 2 {
			t.Errorf("%d of two attempts are recorded", n)
		}
	})
}

// The audit log does not name an account by the full name that its user chose.
func TestNamesAreNoLabels(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		u, err := o.ImportUser(t.Context(), auth.ImportUserParams{FullName: "owner@example.com", Identities: []auth.Identity{{Provider: theProvider, Subject: "1"}}})
		if err != nil {
			t.Fatal(err)
		}
		o.do(owner, "POST /users/"+u.ID+"/ban", `{"reason":"x"}`).want(200)
		if got := o.audit()[0].Record.Target; got != u.ID {
			t.Errorf("the target is %s", got)
		}
	})
}

// Text that no database stores is refused anywhere in a path, a query or a cursor.
func TestUnreadableTexts(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		ada := o.LoginAs(t, "ada@example.com")
		cursor := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
		for _, path := range []string{
			"/audit-logs?actor=%ff", "/audit-logs?target=%00", "/audit-logs?request_id=%ff", "/sessions?ip=%ff", "/users/%00",
			"/stats?to=9999-12-31T23:59:59Z", "/stats?to=0000-01-01T00:00:00Z", "/keys?cursor=" + cursor(`{"time":"2026-01-01T00:00:00Z","id":"x"}`),
			"/users?sort=email&cursor=" + cursor(`{"email":"\u0000","id":"`+ada.User.ID+`"}`),
		} {
			if a := o.do(owner, "GET "+path, ""); a.status >= 500 || a.status < 400 {
				t.Errorf("%s: %d %v", path, a.status, a.body)
			}
		}
		o.do(owner, "POST /users/"+ada.User.ID+"/impersonate", `{"reason":"a\u0000b"}`).want(422, auth.CodeValidationFailed)
		o.do(owner, "POST /roles", `{"name":"x","permissions":[],"description":"a\u0000b"}`).want(422, auth.CodeValidationFailed)
		o.do(owner, "DELETE /invitations/%00", "").want(422, auth.CodeValidationFailed)
		o.do(owner, "POST /messages/"+url.PathEscape("urn:uuid:"+ada.User.ID)+"/retry", "").want(404, auth.CodeNotFound)
		o.do(owner, "DELETE /sessions/"+url.PathEscape("urn:uuid:"+ada.SessionID), "").want(204)
	})
}

// The number of roles is limited, so that reading them stays fast.
func TestRolesAreBounded(t *testing.T) {
	t.Parallel()
	st := memstore.New()
	for i := range 500 {
		c := store.Change{Now: time.Now(), By: auth.Authority{System: "test"}}
		if _, err := st.PutRole(t.Context(), store.PutRole{Change: c, Role: store.RolePermissions{Name: fmt.Sprintf("role%d", i), CreatedAt: c.Now, UpdatedAt: c.Now}}); err != nil {
			t.Fatal(err)
		}
	}
	o := newOffice(t, st)
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	o.do(owner, "POST /roles", `{"name":"one-more","permissions":[]}`).want(422, auth.CodeValidationFailed)
}

// An attempt during an impersonation is recorded with the impersonator as its actor.
func TestImpersonatorsAreRecorded(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner, ada := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2()), o.LoginAs(t, "ada@example.com")
		token := o.do(owner, "POST /users/"+ada.User.ID+"/impersonate", `{"reason":"x"}`).want(200).body["access_token"].(string)
		o.do(nil, "POST /users/"+owner.User.ID+"/ban", `{"reason":"x"}`, "Authorization: Bearer "+token).want(403, auth.CodeImpersonationForbidden)
		o.written()
		p, err := o.adm.AuditLog(t.Context(), admin.System("test").Accepting(), admin.AuditLogParams{EventFilter: admin.EventFilter{Action: string(auth.EventAdminDenied)}, Limit: 10})
		if err != nil || len(p.Events) != 1 {
			t.Fatalf("%d events, %v", len(p.Events), err)
		}
		if e := p.Events[0]; e.Actor.ID != owner.User.ID || e.UserID != ada.User.ID || e.Record.Operation != "POST /users/{id}/ban" || !e.Record.Denied {
			t.Errorf("%+v %+v", e, e.Record)
		}
	})
}
