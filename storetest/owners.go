package storetest

import (
	"time"

	"github.com/authmount/auth/store"
)

// owner adds an owner.
func (b *bench) owner() store.User {
	b.Helper()
	nu := b.newUser("")
	nu.User.Roles, nu.User.AcceptedSequence = []string{"r", store.RoleOwner}, 1
	u, err := b.create(nu)
	b.ok(err)
	return u
}

// keepsOwner patches or deletes a user with Change.KeepOwner.
func (b *bench) keepsOwner(at time.Time, id string, p *store.UserPatch) error {
	c := by(at)
	c.KeepOwner = true
	if p == nil {
		return b.DeleteUser(b.ctx(), store.DeleteUser{Change: c, UserID: id})
	}
	_, err := b.UpdateUser(b.ctx(), store.UpdateUser{Change: c, UserID: id, Patch: *p})
	return err
}

// leaving returns patches that end a user's ownership; nil is a deletion.
func leaving() map[string]*store.UserPatch {
	return map[string]*store.UserPatch{
		"demotion": {Roles: &[]string{"r"}},
		"ban":      {BannedUntil: ptr(now.Add(time.Hour))},
		"deletion": nil,
	}
}

// owners checks that the last owner is kept.
func owners() checks {
	return checks{
		"the last owner stays": func(b *bench) {
			only := b.owner()
			for name, p := range leaving() {
				b.of("%s", name).is(b.keepsOwner(now, only.ID, p), store.ErrLastOwner)
				b.stands(store.Credentials{User: only})
			}
			b.token(newToken("t", "subject"))
			c := store.Redemption{Change: proof(now), Purpose: store.PurposeMagicLink, Hash: hashOf("t")}
			c.KeepOwner, c.UserID, c.Patch = true, only.ID, leaving()["demotion"]
			_, _, err := b.RedeemToken(b.ctx(), c)
			b.is(err, store.ErrLastOwner)
			b.stands(store.Credentials{User: only})
			b.ok(b.redeem("t"))
		},
		"one of two owners may go": func(b *bench) {
			for name, p := range leaving() {
				one, two := b.owner(), b.owner()
				err := b.keepsOwner(now, one.ID, p)
				b.of("%s", name).fails(err, nil)
				b.is(b.keepsOwner(now, two.ID, p), store.ErrLastOwner)
				b.ok(b.delete(two.ID)) // without the condition
			}
		},
		"a banned owner is none, until the ban is over": func(b *bench) {
			one, two := b.owner(), b.owner()
			_, err := b.update(one.ID, store.UserPatch{BannedUntil: ptr(now.Add(minute))})
			b.ok(err)
			b.is(b.keepsOwner(now.Add(minute-us), two.ID, leaving()["demotion"]), store.ErrLastOwner)
			b.ok(b.keepsOwner(now.Add(minute), two.ID, leaving()["demotion"]))
		},
		"a ban that is over by then bans nobody": func(b *bench) {
			only := b.owner()
			b.ok(b.keepsOwner(now, only.ID, &store.UserPatch{BannedUntil: ptr(now)}))
		},
		"an owner stays who keeps the role": func(b *bench) {
			only := b.owner()
			b.ok(b.keepsOwner(now, only.ID, &store.UserPatch{Roles: &[]string{store.RoleOwner}, FullName: ptr("x")}))
		},
		"the first owner may come with the condition": func(b *bench) {
			c := store.CreateUser{Change: by(now), NewUser: b.newUser("")}
			c.KeepOwner = true
			_, err := b.CreateUser(b.ctx(), c)
			b.is(err, store.ErrLastOwner)
			_, err = b.User(b.ctx(), store.ByID(c.User.ID))
			b.is(err, store.ErrNotFound)
			c.User.Roles, c.User.AcceptedSequence = []string{store.RoleOwner}, 1
			_, err = b.CreateUser(b.ctx(), c)
			b.ok(err)
		},
		"owners among many who were made at once are there, unless they are banned": func(b *bench) {
			if b.admin == nil {
				return
			}
			row := b.row("")
			row.User.Roles, row.User.AcceptedSequence = []string{store.RoleOwner}, 1
			c := store.CreateUsers{Change: by(now), Users: []store.ImportedRow{row}}
			c.KeepOwner = true
			c.Users[0].User.BannedUntil = now.Add(us)
			_, err := b.admin.CreateUsers(b.ctx(), c)
			b.is(err, store.ErrLastOwner)
			c.Users[0].User.BannedUntil = now
			_, err = b.admin.CreateUsers(b.ctx(), c)
			b.ok(err)
		},
		"two owners who remove each other leave one": func(b *bench) {
			ways := []*store.UserPatch{leaving()["demotion"], leaving()["ban"], leaving()["deletion"]}
			for round := range 45 {
				both := []store.User{b.owner(), b.owner()}
				won, lost := b.raceOf(2, func(i int) error {
					way := ways[round%3]
					if i == 1 {
						way = ways[round/3%3]
					}
					return b.keepsOwner(now, both[1-i].ID, way)
				}, store.ErrLastOwner)
				b.of("round %d", round).won(won, lost, 1, map[error]int{store.ErrLastOwner: 1})
				for _, u := range both {
					if err := b.delete(u.ID); err != nil {
						b.is(err, store.ErrNotFound)
					}
				}
			}
		},
		"of many owners who leave at once one stays": func(b *bench) {
			all := make([]store.User, parallel)
			for i := range all {
				all[i] = b.owner()
			}
			won, lost := b.race(func(i int) error { return b.keepsOwner(now, all[i].ID, leaving()["demotion"]) }, store.ErrLastOwner)
			b.won(won, lost, parallel-1, map[error]int{store.ErrLastOwner: 1})
		},
	}
}
