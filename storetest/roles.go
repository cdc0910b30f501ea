package storetest

import (
	"fmt"

	"github.com/authmount/auth"
)

func (b *bench) putRole(r auth.RolePermissions) (auth.RoleTable, error) {
	return b.roles.PutRole(b.ctx(), auth.PutRole{Change: by(now), Role: r})
}

func (b *bench) deleteRole(name string) (auth.RoleTable, error) {
	return b.roles.DeleteRole(b.ctx(), auth.DeleteRole{Change: by(now), Name: name})
}

// table wants the table of roles.
func (b *bench) table(want auth.RoleTable) {
	b.Helper()
	got, err := b.roles.Roles(b.ctx())
	b.ok(err)
	b.sameTable(got, want)
}

// sameTable compares tables; the store may spell empty lists either way.
func (b *bench) sameTable(got, want auth.RoleTable) {
	b.Helper()
	for _, t := range []*auth.RoleTable{&got, &want} {
		if len(t.Roles) == 0 {
			t.Roles = nil
		}
		for i := range t.Roles {
			if len(t.Roles[i].Permissions) == 0 {
				t.Roles[i].Permissions = nil
			}
		}
	}
	equal(b, "RoleTable", got, want)
}

// roles are that roles are kept as a table with a revision.
func roles() checks {
	return checks{
		"the table of roles begins empty": func(b *bench) { b.table(auth.RoleTable{}) },
		"roles are added, replaced and removed": func(b *bench) {
			two := auth.RolePermissions{Name: "two", Description: "second", Permissions: []string{"b:w", "a:r"}}
			one := auth.RolePermissions{Name: "one", CreatedAt: now.Add(minute), UpdatedAt: now.Add(minute)} // the store's to set
			t, err := b.putRole(two)
			b.ok(err)
			two.CreatedAt, two.UpdatedAt = now, now
			want := auth.RoleTable{Revision: max(t.Revision, 1), Roles: []auth.RolePermissions{two}}
			b.sameTable(t, want)
			t, err = b.putRole(one)
			b.ok(err)
			one.CreatedAt, one.UpdatedAt = now, now
			want = auth.RoleTable{Revision: max(t.Revision, want.Revision+1), Roles: []auth.RolePermissions{one, two}}
			b.sameTable(t, want)
			b.table(want)
			one.Permissions = []string{"c:d"}
			t, err = b.roles.PutRole(b.ctx(), auth.PutRole{Change: by(now.Add(us)), Role: one})
			b.ok(err)
			one.UpdatedAt = now.Add(us)
			want = auth.RoleTable{Revision: max(t.Revision, want.Revision+1), Roles: []auth.RolePermissions{one, two}}
			b.sameTable(t, want)
			t, err = b.deleteRole("one")
			b.ok(err)
			want = auth.RoleTable{Revision: max(t.Revision, want.Revision+1), Roles: []auth.RolePermissions{two}}
			b.sameTable(t, want)
			b.table(want)
			_, err = b.deleteRole("one")
			b.is(err, auth.ErrNotFound)
			b.table(want)
			t, err = b.deleteRole("two")
			b.ok(err)
			b.table(auth.RoleTable{Revision: max(t.Revision, want.Revision+1)})
		},
		"roles are copies": func(b *bench) {
			r := auth.RolePermissions{Name: "one", Permissions: []string{"a:b"}}
			t, err := b.putRole(r)
			b.ok(err)
			r.Permissions[0], t.Roles[0].Permissions[0] = "spoilt", "spoilt"
			for range 2 {
				t, err := b.roles.Roles(b.ctx())
				b.ok(err)
				need(b, "Roles[0].Permissions[0], after callers wrote into theirs,", t.Roles[0].Permissions[0], "a:b")
				t.Roles[0].Permissions[0] = "spoilt"
			}
		},
		"a role that somebody has is not removed": func(b *bench) {
			want, err := b.putRole(auth.RolePermissions{Name: "one"})
			b.ok(err)
			nu := b.newUser("ada@example.com")
			nu.User.Roles = []string{"other", "one"}
			u, err := b.create(nu)
			b.ok(err)
			_, err = b.deleteRole("one")
			b.conflict(err, "role")
			b.table(want)
			_, err = b.update(u.ID, auth.UserPatch{Roles: &[]string{"other"}})
			b.ok(err)
			_, err = b.deleteRole("one")
			b.ok(err)
		},
		"of parallel changes of one table one wins": func(b *bench) {
			t, err := b.putRole(auth.RolePermissions{Name: "one"})
			b.ok(err)
			won, lost := b.race(func(i int) error {
				c := auth.PutRole{Change: by(now), Role: auth.RolePermissions{Name: fmt.Sprint(i)}}
				c.IfRoles = &t.Revision
				_, err := b.roles.PutRole(b.ctx(), c)
				return err
			}, auth.ErrStale)
			b.oneWon(won, lost, auth.ErrStale)
		},
		"no change lands after the roles it rests on have changed": func(b *bench) {
			u := b.user("")
			for round := range 30 {
				before := b.rolesRevision()
				b.meanwhile(func() error {
					_, err := b.putRole(auth.RolePermissions{Name: "one"})
					return err
				}, func() error {
					c := auth.UpdateUser{Change: by(now), UserID: u.ID, Patch: auth.UserPatch{FullName: ptr(fmt.Sprint(round))}}
					c.IfRoles = &before
					_, err := b.UpdateUser(b.ctx(), c)
					return err
				}, func() []string {
					got, err := b.User(b.ctx(), auth.ByID(u.ID))
					return []string{fmt.Sprintf("%+v %v", plain(got), err)}
				}, auth.ErrStale)
			}
		},
		"a caller who has gone reads no table": func(b *bench) {
			_, err := b.roles.Roles(cancelled())
			b.gone(err)
		},
	}
}
