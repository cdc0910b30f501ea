package storetest

import (
	"fmt"
	"slices"

	"github.com/authmount/auth/store"
)

func (b *bench) putRole(r store.RolePermissions) (store.RoleTable, error) {
	return b.project.PutRole(b.ctx(), store.PutRole{Change: by(now), Role: r})
}

func (b *bench) deleteRole(name string) (store.RoleTable, error) {
	return b.project.DeleteRole(b.ctx(), store.DeleteRole{Change: by(now), Name: name})
}

// table checks the table of roles.
func (b *bench) table(want store.RoleTable) {
	b.Helper()
	got, err := b.project.Roles(b.ctx())
	b.ok(err)
	b.sameTable(got, want)
}

// sameTable compares tables. A store may return empty lists or nil.
func (b *bench) sameTable(got, want store.RoleTable) {
	b.Helper()
	for _, t := range []*store.RoleTable{&got, &want} {
		if len(t.Roles) == 0 {
			t.Roles = nil
		}
		if len(t.Privileged) == 0 {
			t.Privileged = nil
		}
		for i := range t.Roles {
			if len(t.Roles[i].Permissions) == 0 {
				t.Roles[i].Permissions = nil
			}
		}
	}
	equal(b, "RoleTable", got, want)
}

// roles checks that roles are stored as a table with a revision.
func roles() checks {
	return checks{
		"the table of roles begins empty": func(b *bench) { b.table(store.RoleTable{}) },
		"roles are added, replaced and removed": func(b *bench) {
			two := store.RolePermissions{Name: "two", Description: "second", Permissions: []string{"b:w", "a:r"}}
			one := store.RolePermissions{Name: "one", CreatedAt: now.Add(minute), UpdatedAt: now.Add(minute)} // set by the store
			t, err := b.putRole(two)
			b.ok(err)
			two.CreatedAt, two.UpdatedAt = now, now
			want := store.RoleTable{Revision: max(t.Revision, 1), Roles: []store.RolePermissions{two}}
			b.sameTable(t, want)
			t, err = b.putRole(one)
			b.ok(err)
			one.CreatedAt, one.UpdatedAt = now, now
			want = store.RoleTable{Revision: max(t.Revision, want.Revision+1), Roles: []store.RolePermissions{one, two}}
			b.sameTable(t, want)
			b.table(want)
			one.Permissions = []string{"c:d"}
			t, err = b.project.PutRole(b.ctx(), store.PutRole{Change: by(now.Add(us)), Role: one})
			b.ok(err)
			one.UpdatedAt = now.Add(us)
			want = store.RoleTable{Revision: max(t.Revision, want.Revision+1), Roles: []store.RolePermissions{one, two}}
			b.sameTable(t, want)
			t, err = b.deleteRole("one")
			b.ok(err)
			want = store.RoleTable{Revision: max(t.Revision, want.Revision+1), Roles: []store.RolePermissions{two}}
			b.sameTable(t, want)
			b.table(want)
			_, err = b.deleteRole("one")
			b.is(err, store.ErrNotFound)
			b.table(want)
			t, err = b.deleteRole("two")
			b.ok(err)
			b.table(store.RoleTable{Revision: max(t.Revision, want.Revision+1)})
		},
		"a name stays privileged": func(b *bench) {
			put := func(name string, privileged bool, want ...string) {
				b.Helper()
				t, err := b.putRole(store.RolePermissions{Name: name, Privileged: privileged})
				b.ok(err)
				for range 2 {
					equal(b, "RoleTable.Privileged", append([]string{}, t.Privileged...), append([]string{}, want...))
					for _, r := range t.Roles {
						need(b, "Privileged of "+r.Name, r.Privileged, slices.Contains(want, r.Name))
					}
					t, err = b.project.Roles(b.ctx())
					b.ok(err)
				}
			}
			put("two", true, "two")
			put("one", true, "one", "two")
			put("one", true, "one", "two")
			t, err := b.deleteRole("two")
			b.ok(err)
			equal(b, "RoleTable.Privileged, after a role was deleted", t.Privileged, []string{"one", "two"})
			put("three", false, "one", "two")
			put("two", true, "one", "two")
			put("one", false, "two")
			put("two", false)
		},
		"roles are copies": func(b *bench) {
			r := store.RolePermissions{Name: "one", Permissions: []string{"a:b"}}
			t, err := b.putRole(r)
			b.ok(err)
			r.Permissions[0], t.Roles[0].Permissions[0] = "spoilt", "spoilt"
			for range 2 {
				t, err := b.project.Roles(b.ctx())
				b.ok(err)
				need(b, "Roles[0].Permissions[0], after callers wrote into theirs,", t.Roles[0].Permissions[0], "a:b")
				t.Roles[0].Permissions[0] = "spoilt"
			}
		},
		"a role that somebody has is not removed": func(b *bench) {
			want, err := b.putRole(store.RolePermissions{Name: "one"})
			b.ok(err)
			nu := b.newUser("ada@example.com")
			nu.User.Roles = []string{"other", "one"}
			u, err := b.create(nu)
			b.ok(err)
			_, err = b.deleteRole("one")
			b.conflict(err, "role")
			b.table(want)
			_, err = b.update(u.ID, store.UserPatch{Roles: &[]string{"other"}})
			b.ok(err)
			_, err = b.deleteRole("one")
			b.ok(err)
		},
		"of parallel changes of one table one wins": func(b *bench) {
			t, err := b.putRole(store.RolePermissions{Name: "one"})
			b.ok(err)
			won, lost := b.race(func(i int) error {
				c := store.PutRole{Change: by(now), Role: store.RolePermissions{Name: fmt.Sprint(i)}}
				c.IfRoles = &t.Revision
				_, err := b.project.PutRole(b.ctx(), c)
				return err
			}, store.ErrStale)
			b.oneWon(won, lost, store.ErrStale)
		},
		"no change lands after the roles it rests on have changed": func(b *bench) {
			u := b.user("")
			for round := range 30 {
				before := b.rolesRevision()
				b.meanwhile(func() error {
					_, err := b.putRole(store.RolePermissions{Name: "one"})
					return err
				}, func() error {
					c := store.UpdateUser{Change: by(now), UserID: u.ID, Patch: store.UserPatch{FullName: ptr(fmt.Sprint(round))}}
					c.IfRoles = &before
					_, err := b.UpdateUser(b.ctx(), c)
					return err
				}, func() []string {
					got, err := b.User(b.ctx(), store.ByID(u.ID))
					return []string{fmt.Sprintf("%+v %v", plain(got), err)}
				}, store.ErrStale)
			}
		},
		"a caller who has gone reads no table": func(b *bench) {
			_, err := b.project.Roles(cancelled())
			b.gone(err)
		},
	}
}
