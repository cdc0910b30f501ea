package storetest

import (
	"time"

	"github.com/authmount/auth/store"
)

// acceptance checks User.AcceptedSequence and AcceptedUntil, and their conditions.
func acceptance() checks {
	accepted := func(b *bench, u store.User, want int64, until time.Time) {
		b.Helper()
		read, err := b.User(b.ctx(), store.ByID(u.ID))
		b.ok(err)
		for where, u := range map[string]store.User{"the change": u, "User": read} {
			equal(b.of("%s", where), "User.AcceptedSequence", u.AcceptedSequence, want)
			equal(b.of("%s", where), "User.AcceptedUntil", u.AcceptedUntil, until)
		}
	}
	patch := func(b *bench, u store.User, p store.UserPatch) store.User {
		b.Helper()
		u, err := b.update(u.ID, p)
		b.ok(err)
		return u
	}
	begun := func(b *bench) store.User {
		b.Helper()
		nu := b.newUser("")
		nu.User.AcceptedSequence, nu.User.AcceptedUntil = 7, now
		u, err := b.create(nu)
		b.ok(err)
		return u
	}
	return checks{
		"a new user has accepted if the caller wants it": func(b *bench) {
			accepted(b, begun(b), 1, time.Time{})
			accepted(b, b.user(""), 0, time.Time{})
			if b.admin == nil {
				return
			}
			row, other := b.row(""), b.row("")
			row.User.AcceptedSequence = 3
			for _, err := range b.importAll(row, other) {
				b.ok(err)
			}
			accepted(b, b.reread(row.User.ID), 1, time.Time{})
			accepted(b, b.reread(other.User.ID), 0, time.Time{})
		},
		"an acceptance has the sequence of its patch and no end": func(b *bench) {
			u := patch(b, b.user(""), store.UserPatch{Accept: true, AcceptedUntil: ptr(now)})
			accepted(b, u, u.Sequence, time.Time{})
			u = patch(b, u, store.UserPatch{AcceptedUntil: ptr(now.Add(minute))})
			accepted(b, u, u.Sequence, now.Add(minute))
			u = patch(b, u, store.UserPatch{Accept: true, DropCredentials: true, PasswordHash: ptr("new"), Email: ptr("new@example.com")})
			accepted(b, u, u.Sequence, time.Time{})
			equal(b, "User.PasswordSequence", u.PasswordSequence, u.AcceptedSequence)
		},
		"an acceptance ends with a takeover and with an address of somebody else": func(b *bench) {
			for name, p := range map[string]store.UserPatch{
				"a takeover": {DropCredentials: true}, "an email address": {Email: ptr("new@example.com")}, "a phone number": {Phone: ptr("+491")},
			} {
				b.Logf("patch: %s", name)
				u := begun(b)
				accepted(b, patch(b, u, p), 0, time.Time{})
				b.ok(b.delete(u.ID))
			}
			nu := b.newUser("ada@example.com")
			nu.User.AcceptedSequence = 1
			u, err := b.create(nu)
			b.ok(err)
			accepted(b, patch(b, u, store.UserPatch{Phone: ptr("+492")}), 1, time.Time{}) // beside the email address
			u = begun(b)
			accepted(b, patch(b, u, store.UserPatch{Phone: ptr(""), PasswordHash: ptr("x"), Roles: &[]string{"r"}}), 1, time.Time{})
			s := b.session(u.ID)
			own := store.UpdateUser{Change: by(now), UserID: u.ID, Patch: store.UserPatch{Email: ptr("new@example.com")}}
			own.By = store.Authority{Session: &store.SessionRef{ID: s.ID, UserID: u.ID}}
			u, err = b.UpdateUser(b.ctx(), own)
			b.ok(err)
			accepted(b, u, 1, time.Time{})
		},
		"an acceptance keeps the factors that it names": func(b *bench) {
			if b.factors == nil {
				return
			}
			for _, keep := range []bool{true, false} {
				u, _, f := b.enrolled()
				eve := b.user("")
				_, _, other := b.enrol(eve)
				p := store.UserPatch{Accept: true, DropCredentials: true}
				if keep {
					p.KeepFactors = []string{f.ID, other.ID, "x"}
				}
				u = patch(b, u, p)
				equal(b.of("kept: %v", keep), "User.MFAEnabled", u.MFAEnabled, keep)
				if keep {
					b.has(f, 0)
				} else {
					b.forgotten(f)
				}
				b.has(other, 2)
				b.ok(b.delete(u.ID))
				b.ok(b.delete(eve.ID))
			}
		},
		"an acceptance keeps the session that it names": func(b *bench) {
			u, eve := b.user(""), b.user("")
			kept, other, hers := b.session(u.ID), b.session(u.ID), b.session(eve.ID)
			live := func(s store.Session, want bool) {
				b.Helper()
				_, _, err := b.Session(b.ctx(), s.ID, now)
				equal(b.of("session %s", s.ID), "live", err == nil, want)
			}
			patch(b, u, store.UserPatch{Accept: true, DropCredentials: true, KeepSession: kept.ID})
			live(kept, true)
			live(other, false)
			live(hers, true)
			patch(b, u, store.UserPatch{Accept: true, DropCredentials: true, KeepSession: hers.ID})
			live(kept, false)
			live(hers, true)
		},
		"an acceptance revokes the keys of the user": func(b *bench) {
			if b.project == nil {
				return
			}
			u, eve := b.user(""), b.user("")
			live := func(by string, adopted bool) func(bool) {
				k := b.newKey(b.id())
				k.CreatedBy, k.Adopted, k.ExpiresAt, k.PreviousHash, k.PreviousUntil = by, adopted, time.Time{}, nil, time.Time{}
				_, err := b.putKey(k)
				b.ok(err)
				return func(want bool) {
					b.Helper()
					got, err := b.project.Key(b.ctx(), k.ID)
					b.ok(err)
					equal(b.of("created by the user: %v, adopted: %v", by == u.ID, adopted), "APIKey.Live", got.Live(now.Add(minute)), want)
					equal(b, "APIKey.Revision", got.Revision, map[bool]int64{true: 0, false: 1}[want])
				}
			}
			own, adopted, others := live(u.ID, false), live(u.ID, true), live(eve.ID, false)
			patch(b, u, store.UserPatch{PasswordHash: ptr("x")})
			own(true)
			patch(b, u, store.UserPatch{Accept: true})
			own(false)
			adopted(true)
			others(true)
		},
		"an owner who has not accepted is none": func(b *bench) {
			only, second := b.owner(), b.user("")
			second = patch(b, second, store.UserPatch{Roles: &[]string{store.RoleOwner}})
			b.is(b.keepsOwner(now, only.ID, leaving()["demotion"]), store.ErrLastOwner)
			second = patch(b, second, store.UserPatch{Accept: true})
			patch(b, second, store.UserPatch{AcceptedUntil: ptr(now.Add(minute))})
			b.is(b.keepsOwner(now.Add(minute), only.ID, leaving()["demotion"]), store.ErrLastOwner)
			b.ok(b.keepsOwner(now.Add(minute-us), only.ID, leaving()["demotion"]))
		},
		"an owner who has not accepted is not the first": func(b *bench) {
			u := patch(b, b.user(""), store.UserPatch{Roles: &[]string{store.RoleOwner}})
			owned, err := b.EverOwned(b.ctx())
			b.ok(err)
			equal(b, "EverOwned", owned, false)
			patch(b, u, store.UserPatch{Accept: true})
			owned, err = b.EverOwned(b.ctx())
			b.ok(err)
			equal(b, "EverOwned", owned, true)
		},
		"a list names the accounts that wait": func(b *bench) {
			if b.admin == nil {
				return
			}
			waits, accepts, ended, plain := b.user(""), b.user(""), b.user(""), b.user("")
			roles := &[]string{"a", "b"}
			patch(b, waits, store.UserPatch{Roles: roles})
			patch(b, accepts, store.UserPatch{Roles: roles, Accept: true})
			patch(b, ended, store.UserPatch{Roles: &[]string{"b"}, Accept: true})
			patch(b, ended, store.UserPatch{AcceptedUntil: ptr(now.Add(us))})
			patch(b, plain, store.UserPatch{Roles: &[]string{"c"}})
			list := func(at time.Time, roles ...string) map[string]bool {
				got, err := b.admin.ListUsers(b.ctx(), store.UserQuery{Waiting: roles, Now: at, Limit: 10})
				b.ok(err)
				n, err := b.admin.CountUsers(b.ctx(), store.UserQuery{Waiting: roles, Now: at, Limit: 10})
				b.ok(err)
				equal(b, "CountUsers", n.N, int64(len(got)))
				ids := map[string]bool{}
				for _, u := range got {
					ids[u.ID] = true
				}
				return ids
			}
			equal(b, "before the end", list(now, "a", "x", "b"), map[string]bool{waits.ID: true})
			equal(b, "after the end", list(now.Add(us), "b"), map[string]bool{waits.ID: true, ended.ID: true})
			equal(b, "of another role", list(now.Add(us), "a"), map[string]bool{waits.ID: true})
		},
	}
}

// reread reads a user by id.
func (b *bench) reread(id string) store.User {
	b.Helper()
	u, err := b.User(b.ctx(), store.ByID(id))
	b.ok(err)
	return u
}
