package admin_test

import (
	"context"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
)

// An empty list is an empty array on the wire, so that clients can iterate without a
// check.
func TestListsOfNothingAreLists(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	o.permit(role)
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	raw := o.imported("ada@example.com").User.ID
	lists := map[string]string{
		"/users?email=nobody@example.com": "users", "/users/" + raw + "/factors": "factors", "/users/" + raw + "/sessions": "sessions", "/users/" + nobodysID + "/events": "events", "/sessions?user=" + nobodysID: "sessions",
		"/roles/" + role + "/users": "users", "/keys": "keys", "/impersonations": "impersonations", "/audit-logs?user=" + nobodysID: "events", "/invitations": "invitations", "/messages?user=" + nobodysID: "messages",
		"/stats?metrics=messages_failed": "series",
	}
	for path, member := range lists {
		a := o.do(owner, "GET "+path, "").want(200)
		if list, ok := a.body[member].([]any); !ok || len(list) != 0 {
			t.Errorf("%s: %s is %v of %.200s", path, member, a.body[member], a.text)
		}
	}
	a := o.do(owner, "GET /users/"+raw, "").want(200)
	for _, member := range []string{"factors", "pending_changes", "locks", "roles", "identities"} {
		if list, ok := a.body[member].([]any); !ok || len(list) != 0 {
			t.Errorf("%s of an account is %v", member, a.body[member])
		}
	}
	for _, member := range []string{"user_metadata", "app_metadata"} {
		if _, ok := a.body[member].(map[string]any); !ok {
			t.Errorf("%s of an account is %v", member, a.body[member])
		}
	}
	page, err := o.adm.RoleUsers(t.Context(), admin.System("test").Accepting(), admin.RoleUsersParams{Name: role})
	if err != nil || page.Users == nil || page.NextCursor != nil {
		t.Errorf("%+v, %v", page, err)
	}
}

// An actor who may not act on all accounts is refused before any account is read.
func TestEverybodyIsNotLookedForInVain(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
	o := newOffice(t, tap)
	clerk := o.operator("clerk@example.com", admin.PermUsersBan, admin.PermUsersRead)
	tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, _ int) storetap.Fault {
		if method == "ListUsers" || method == "CountUsers" {
			return storetap.FailsBefore
		}
		return storetap.NoFault
	}})
	o.do(clerk, "POST /users/bulk", `{"action":"ban","reason":"x","filter":{},"dry_run":true}`).want(403, auth.CodeMissingPermission)
	o.do(clerk, "POST /users/bulk", `{"action":"ban","reason":"x","filter":{"q":"x"},"dry_run":true}`).want(503, auth.CodeUnavailable)
	tap.Reset(storetap.Hooks{})
}
