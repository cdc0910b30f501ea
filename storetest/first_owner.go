package storetest

import (
	"github.com/authmount/auth/store"
)

// beFirst makes a user the owner if there never was one.
func (b *bench) beFirst(id string) error {
	c := by(now)
	c.FirstOwner = true
	_, err := b.UpdateUser(b.ctx(), store.UpdateUser{Change: c, UserID: id, Patch: store.UserPatch{Roles: &[]string{store.RoleOwner}, Accept: true}})
	return err
}

// firstOwner checks Change.FirstOwner.
func firstOwner() checks {
	owned := func(b *bench, want bool) {
		b.Helper()
		got, err := b.EverOwned(b.ctx())
		b.ok(err)
		equal(b, "EverOwned", got, want)
	}
	gone := func(b *bench, name string, first func() string) {
		b.Helper()
		a := b.user("")
		id := first()
		owned(b, true)
		b.of("%s", name).is(b.beFirst(a.ID), store.ErrOwned)
		_, err := b.update(id, store.UserPatch{Roles: &[]string{}})
		b.ok(err)
		b.is(b.beFirst(id), store.ErrOwned)
		b.ok(b.delete(id))
		b.is(b.beFirst(a.ID), store.ErrOwned)
		owned(b, true)
	}
	all := checks{
		"there is one, ever": func(b *bench) {
			owned(b, false)
			gone(b, "by the condition", func() string {
				u := b.user("")
				b.ok(b.beFirst(u.ID))
				return u.ID
			})
		},
		"an owner who was made counts": func(b *bench) {
			gone(b, "made", func() string { return b.owner().ID })
		},
		"an owner among many who were made at once counts": func(b *bench) {
			if b.admin == nil {
				return
			}
			gone(b, "imported", func() string {
				row := b.row("")
				row.User.Roles, row.User.AcceptedSequence = []string{store.RoleOwner}, 1
				b.ok(b.importAll(b.row(""), row)[1])
				return row.User.ID
			})
		},
		"an owner who was given the role counts, a banned one too": func(b *bench) {
			gone(b, "given", func() string {
				u := b.user("")
				_, err := b.update(u.ID, store.UserPatch{BannedUntil: ptr(now.Add(minute))})
				b.ok(err)
				_, err = b.update(u.ID, store.UserPatch{Roles: &[]string{"r", store.RoleOwner}, Accept: true})
				b.ok(err)
				return u.ID
			})
		},
		"a change that makes none is judged, too": func(b *bench) {
			put := func(secret string) error {
				c := store.PutToken{Change: by(now), Token: newToken(secret, "subject")}
				c.FirstOwner = true
				return b.PutToken(b.ctx(), c)
			}
			b.ok(put("a"))
			owned(b, false)
			b.owner()
			b.is(put("b"), store.ErrOwned)
			b.ok(b.redeem("a"))
		},
		"of several at once one is first": func(b *bench) {
			users := make([]store.User, parallel)
			for i := range users {
				users[i] = b.user("")
			}
			won, lost := b.race(func(i int) error { return b.beFirst(users[i].ID) }, store.ErrOwned)
			b.oneWon(won, lost, store.ErrOwned)
		},
	}
	all["who is made owner meanwhile is first"] = func(b *bench) {
		one, two := b.user(""), b.user("")
		var err error
		b.raceOf(2, func(i int) error {
			if i == 0 {
				err = b.beFirst(one.ID)
				return nil
			}
			_, err := b.update(two.ID, store.UserPatch{Roles: &[]string{store.RoleOwner}, Accept: true})
			return err
		})
		if err != nil {
			b.is(err, store.ErrOwned)
		}
		b.is(b.beFirst(two.ID), store.ErrOwned)
	}
	return all
}
