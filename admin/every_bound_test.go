package admin_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// fitting is the result of something with a bound for a value of size n: nil if it fits.
type fitting func(o *office, n int) error

// bounds are by the bounded thing: the last size that fits and the first that does not.
var bounds = map[string]struct {
	last, first int
	fits        fitting
}{
	"an identity's id": {255, 256, func(o *office, n int) error {
		return o.external(admin.Identity{ID: strings.Repeat("x", n), Label: "x"}, 0)
	}},
	"an identity's label": {255, 256, func(o *office, n int) error {
		return o.external(admin.Identity{ID: "x", Label: strings.Repeat("x", n)}, 0)
	}},
	"an identity without an id": {1, 0, func(o *office, n int) error {
		return o.external(admin.Identity{ID: strings.Repeat("x", n), Label: "x"}, 0)
	}},
	"seconds since an identity's proof": {15*60 - 1, 15 * 60, func(o *office, n int) error { return o.external(admin.Identity{ID: "x"}, time.Duration(n)*time.Second) }},
	"seconds until an identity's proof": {59, 60, func(o *office, n int) error {
		return o.external(admin.Identity{ID: "x"}, -time.Duration(n)*time.Second)
	}},

	"a role's description": {500, 501, func(o *office, n int) error {
		_, err := o.adm.CreateRole(o.t.Context(), admin.System("test").Accepting(), admin.CreateRoleParams{Name: fmt.Sprint("r", n), Description: strings.Repeat("x", n)})
		return err
	}},
	"a role's name": {63, 64, func(o *office, n int) error {
		_, err := o.adm.CreateRole(o.t.Context(), admin.System("test").Accepting(), admin.CreateRoleParams{Name: strings.Repeat("x", n)})
		return err
	}},
	"roles": {499, 500, func(o *office, n int) error { // so many exist, and one is added
		roles, _ := store.Capability[store.ProjectStore](o.behind())
		for i := 0; ; i++ {
			table, err := roles.Roles(o.t.Context())
			if err != nil {
				return err
			}
			if len(table.Roles) >= n {
				break
			}
			if _, err := roles.PutRole(o.t.Context(), store.PutRole{Change: o.change(), Role: store.RolePermissions{Name: fmt.Sprintf("n%d-%d", n, i)}}); err != nil {
				return err
			}
		}
		_, err := o.adm.CreateRole(o.t.Context(), admin.System("test").Accepting(), admin.CreateRoleParams{Name: fmt.Sprint("last", n)})
		return err
	}},
	"a role's permissions": {500, 501, func(o *office, n int) error {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("no.such%d", i)
		}
		_, err := o.adm.CreateRole(o.t.Context(), admin.System("test").Accepting(), admin.CreateRoleParams{Name: "many", Permissions: slices.Concat(names, names)})
		if strings.Contains(fmt.Sprintf("%+v", err), "is not declared") { // checked after the number of scopes
			return nil
		}
		return err
	}},
	"a reason to revoke many sessions": {500, 501, func(o *office, n int) error {
		_, err := o.adm.RevokeSessions(o.t.Context(), admin.System("test").Accepting(), admin.RevokeSessionsParams{UserIDs: []string{uuid.NewString()}, Reason: strings.Repeat("x", n)})
		return err
	}},
	"a reason of many": {500, 501, func(o *office, n int) error {
		return o.bulk(admin.BulkParams{UserIDs: []string{uuid.NewString()}, BulkDetails: admin.BulkDetails{Reason: strings.Repeat("x", n)}})
	}},
	"accounts that are named": {1000, 1001, func(o *office, n int) error {
		ids := make([]string, n)
		return o.bulk(admin.BulkParams{UserIDs: ids})
	}},
	"seconds of overlap": {30 * 24 * 3600, 30*24*3600 + 1, func(o *office, n int) error {
		_, err := o.adm.RotateKey(o.t.Context(), admin.System("test").Accepting(), admin.RotateKeyParams{ID: o.deploy, Overlap: time.Duration(n) * time.Second})
		return err
	}},
	"no seconds of overlap": {0, -1, func(o *office, n int) error {
		_, err := o.adm.RotateKey(o.t.Context(), admin.System("test").Accepting(), admin.RotateKeyParams{ID: o.deploy, Overlap: time.Duration(n) * time.Second})
		return err
	}},
	"nanoseconds until a key ends": {1, 0, func(o *office, n int) error {
		at := o.Clock.Now().Add(time.Duration(n))
		_, err := o.adm.UpdateKey(o.t.Context(), admin.System("test").Accepting(), admin.UpdateKeyParams{ID: o.deploy, ExpiresAt: &at})
		return err
	}},
	"nanoseconds until a ban ends": {1, 0, func(o *office, n int) error {
		u := o.LoginAs(o.t, fmt.Sprintf("banned%d@example.com", n)).User
		_, err := o.adm.BanUser(o.t.Context(), admin.System("test").Accepting(), admin.BanUserParams{UserID: u.ID, Reason: "x", Until: o.Clock.Now().Add(time.Duration(n))})
		return err
	}},
	"tries at a change that is contested": {19, 20, func(o *office, n int) error {
		tap, _ := o.Store.(*storetap.Tap)
		left := n
		tap.Reset(storetap.Hooks{Edit: func(method string, c *store.Change) {
			if method == "UpdateUser" && left > 0 {
				left--
				c.IfUsers = append(slices.Clone(c.IfUsers), auth.UserAt{ID: uuid.NewString()})
			}
		}})
		defer tap.Reset(storetap.Hooks{})
		u := o.LoginAs(o.t, fmt.Sprintf("contested%d@example.com", n)).User
		_, err := o.adm.BanUser(o.t.Context(), admin.System("test").Accepting(), admin.BanUserParams{UserID: u.ID, Reason: "x"})
		return err
	}},
}

// external returns the result for an external admin who exports a while after their recent
// authentication.
func (o *office) external(i admin.Identity, after time.Duration) error {
	i.Permissions, i.AAL, i.AuthTime = []string{"*"}, store.LevelAAL2, o.Clock.Now().Add(-after)
	return o.adm.ExportUsers(o.t.Context(), admin.External(i), admin.ExportUsersParams{}, writerFunc(func(b []byte) (int, error) { return len(b), nil }))
}

// bulk tries to ban several accounts.
func (o *office) bulk(p admin.BulkParams) error {
	p.Action, p.DryRun = admin.BulkBan, true
	if p.Reason == "" {
		p.Reason = "x"
	}
	_, err := o.adm.Bulk(o.t.Context(), admin.System("test").Accepting(), p)
	return err
}

// Each bound accepts the last size that fits and refuses the first that does not.
func TestBothEdgesOfEachBound(t *testing.T) {
	t.Parallel()
	for name, b := range bounds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, storetap.New(memstore.New()))
			o.newDeploy()
			if err := b.fits(o, b.last); err != nil {
				t.Errorf("%d will not do: %v", b.last, err)
			}
			if err := b.fits(o, b.first); err == nil {
				t.Errorf("%d will do", b.first)
			}
		})
	}
}

// A list shows one page and no more, and the next page begins with the next entry, so that
// all pages together have everything once.
func TestPagesOfEverything(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	ctx, system := t.Context(), admin.System("test").Accepting()
	const n = 203
	keys, _ := store.Capability[store.ProjectStore](o.Store)
	for i := range n {
		u, err := o.ImportUser(ctx, auth.ImportUserParams{Email: fmt.Sprintf("user%d@example.com", i), Roles: []string{"support"}})
		if err != nil {
			t.Fatal(err)
		}
		s := auth.Session{ID: uuid.NewString(), UserID: u.ID, CreatedAt: o.Clock.Now(), RotatedAt: o.Clock.Now(), LastActiveAt: o.Clock.Now(), IdleUntil: o.Clock.Now().Add(time.Hour)}
		if _, err := o.Store.CreateSession(ctx, store.CreateSession{Change: o.change(), NewSession: store.NewSession{Session: s}}); err != nil {
			t.Fatal(err)
		}
		if _, err := keys.PutKey(ctx, store.PutKey{Change: o.change(), Key: store.APIKey{ID: uuid.NewString(), Name: fmt.Sprint("key", i), Environment: "live", Scopes: []string{"*"}, Hash: []byte(u.ID), CreatedAt: o.Clock.Now()}}); err != nil {
			t.Fatal(err)
		}
		o.Clock.Advance(time.Second)
	}
	seen := map[string]int{}
	pages := func(name string, next func(limit int) (ids []string, more bool)) {
		t.Helper()
		clear(seen)
		for page, more := 0, true; more; page++ {
			var ids []string
			ids, more = next(map[int]int{0: 0, 1: 150}[page])
			if page == 0 && len(ids) != 50 || page == 1 && len(ids) != 150 || page > 2 {
				t.Fatalf("%s: page %d has %d", name, page, len(ids))
			}
			for _, id := range ids {
				seen[id]++
			}
		}
		for id, times := range seen {
			if times != 1 {
				t.Fatalf("%s: %s is shown %d times", name, id, times)
			}
		}
		if len(seen) < n {
			t.Errorf("%s: %d are shown", name, len(seen))
		}
	}
	at := func(cursor *string) string {
		if cursor == nil {
			return ""
		}
		return *cursor
	}
	var users admin.ListUsersParams
	pages("accounts", func(limit int) (ids []string, more bool) {
		users.Limit = limit
		p, err := o.adm.ListUsers(ctx, system, users)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range p.Users {
			ids = append(ids, u.ID)
		}
		users.Cursor = at(p.NextCursor)
		return ids, p.NextCursor != nil
	})
	role := admin.RoleUsersParams{Name: "support"}
	pages("who has a role", func(limit int) (ids []string, more bool) {
		role.Limit = limit
		p, err := o.adm.RoleUsers(ctx, system, role)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range p.Users {
			ids = append(ids, u.ID)
		}
		role.Cursor = at(p.NextCursor)
		return ids, p.NextCursor != nil
	})
	var sessions admin.ListSessionsParams
	pages("sessions", func(limit int) (ids []string, more bool) {
		sessions.Limit = limit
		p, err := o.adm.ListSessions(ctx, system, sessions)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Sessions {
			ids = append(ids, fmt.Sprint(s))
		}
		sessions.Cursor = at(p.NextCursor)
		return ids, p.NextCursor != nil
	})
	var q admin.ListKeysParams
	pages("keys", func(limit int) (ids []string, more bool) {
		q.Limit = limit
		p, err := o.adm.ListKeys(ctx, system, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range p.Keys {
			ids = append(ids, k.ID)
		}
		q.Cursor = at(p.NextCursor)
		return ids, p.NextCursor != nil
	})
	o.eventPages(pages)

	// The 50 oldest of the keys, in order of age, each once.
	o.Clock.Advance(admin.KeyAgeing - time.Duration(n)*time.Second)
	d, err := o.adm.Diagnostics(ctx, system)
	if err != nil || len(d.APIKeys) != admin.MaxKeyAges {
		t.Fatalf("%d keys, %v", len(d.APIKeys), err)
	}
	for i, k := range d.APIKeys {
		if k.Name != fmt.Sprint("key", i) || k.Ageing {
			t.Errorf("the key %d is %+v", i, k)
		}
	}
	o.Clock.Advance(time.Second)
	if d, err = o.adm.Diagnostics(ctx, system); err != nil || !d.APIKeys[0].Ageing || d.APIKeys[1].Ageing {
		t.Errorf("%+v, %v", d.APIKeys[:2], err)
	}
}

// eventPages checks the pages of the audit log.
func (o *office) eventPages(pages func(name string, next func(limit int) (ids []string, more bool))) {
	events, _ := store.Capability[store.Journal](o.Store)
	var list []auth.Event
	for range 203 {
		list = append(list, auth.Event{ID: uuid.NewString(), Type: auth.EventSignInFailed, UserID: "01a1fb4c-2b13-7a71-806e-d67843451400", At: o.Clock.Now()})
	}
	if err := events.AddEvents(context.WithoutCancel(o.t.Context()), list); err != nil {
		o.t.Fatal(err)
	}
	q := admin.AuditLogParams{EventFilter: admin.EventFilter{Action: string(auth.EventSignInFailed)}}
	next := func(p admin.EventPage, err error) (ids []string, more bool) {
		if err != nil {
			o.t.Fatal(err)
		}
		for _, e := range p.Events {
			ids = append(ids, e.ID)
		}
		if q.Cursor = ""; p.NextCursor != nil {
			q.Cursor = *p.NextCursor
		}
		return ids, p.NextCursor != nil
	}
	pages("the audit log", func(limit int) ([]string, bool) {
		q.Limit = limit
		return next(o.adm.AuditLog(o.t.Context(), admin.System("test").Accepting(), q))
	})
	q.Cursor = ""
	pages("a timeline", func(limit int) ([]string, bool) {
		return next(o.adm.Timeline(o.t.Context(), admin.System("test").Accepting(), admin.TimelineParams{UserID: "01a1fb4c-2b13-7a71-806e-d67843451400", Cursor: q.Cursor, Limit: limit}))
	})
}

// The process's copy of the roles follows each change of them at once.
func TestRolesCountAtOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	ctx, system := t.Context(), admin.System("test").Accepting()
	clerk := o.LoginAs(t, "clerk@example.com", authtest.AAL2())
	if _, err := o.adm.CreateRole(ctx, system, admin.CreateRoleParams{Name: "clerk", Permissions: []string{admin.PermUsersRead}}); err != nil {
		t.Fatal(err)
	}
	o.patch(clerk.User.ID, store.UserPatch{Roles: &[]string{"clerk"}})
	sees := func(want bool) {
		t.Helper()
		if _, err := o.adm.ListUsers(ctx, actor(clerk), admin.ListUsersParams{}); (err == nil) != want {
			t.Errorf("%v, want %t", err, want)
		}
	}
	sees(true)
	for _, permissions := range [][]string{{admin.PermStatsRead}, {admin.PermUsersRead}} {
		if _, err := o.adm.UpdateRole(ctx, system, admin.UpdateRoleParams{Name: "clerk", Permissions: &permissions}); err != nil {
			t.Fatal(err)
		}
		sees(permissions[0] == admin.PermUsersRead)
	}
	o.patch(clerk.User.ID, store.UserPatch{Roles: &[]string{}})
	if _, err := o.adm.DeleteRole(ctx, system, admin.DeleteRoleParams{Name: "clerk"}); err != nil {
		t.Fatal(err)
	}
	o.patch(clerk.User.ID, store.UserPatch{Roles: &[]string{"clerk"}})
	sees(false)
}
