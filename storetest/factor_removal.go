package storetest

import (
	"github.com/authmount/auth/store"
)

// removal describes the removal of one factor, or all, with a recovery code.
func removal(userID, factorID string, code ...string) store.RemoveFactor {
	c := store.RemoveFactor{Change: by(now), UserID: userID, FactorID: factorID, Recovery: [][]byte{}}
	for _, s := range code {
		c.Recovery = append(c.Recovery, hashOf(s))
	}
	return c
}

// factorRemoval checks removals with a recovery code.
func factorRemoval() checks {
	return checks{
		"a removal that is shown no good code changes nothing": func(b *bench) {
			u, _, f := b.enrolled()
			eve := b.user("eve@example.com")
			_, _, other := b.enrol(eve)
			b.ok(b.renew(eve.ID, "e1"))
			b.recovers(u.ID, "r2")
			for name, code := range map[string][]string{"none": nil, "unknown": {"r3"}, "used": {"r2"}, "another user's": {"e1"}} {
				for _, id := range []string{"", f.ID} {
					_, err := b.factors.RemoveFactor(b.ctx(), removal(u.ID, id, code...))
					b.of("a code that is %s", name).is(err, store.ErrNotFound)
				}
			}
			b.stands(store.Credentials{User: u, PasswordHash: "hash"})
			b.has(f, 1)
			b.has(other, 1)
		},
		"a removal that is refused uses no code up": func(b *bench) {
			u, _, f := b.enrolled()
			stale := removal(u.ID, "", "r1")
			stale.IfUsers = []store.UserAt{{ID: u.ID, CredentialRevision: ptr(u.CredentialRevision - 1)}}
			_, err := b.factors.RemoveFactor(b.ctx(), stale)
			b.is(err, store.ErrStale)
			_, err = b.factors.RemoveFactor(b.ctx(), removal(u.ID, b.id(), "r1"))
			b.is(err, store.ErrNotFound)
			b.stands(store.Credentials{User: u, PasswordHash: "hash"})
			b.has(f, 2)
			b.recovers(u.ID, "r1", "r2")
		},
		"a removal by a recovery code forgets everything": func(b *bench) {
			u, _, f := b.enrolled()
			got, err := b.factors.RemoveFactor(b.ctx(), removal(u.ID, "", "unknown", "r1")) // also under the previous key
			b.ok(err)
			u.MFAEnabled, u.Revision, u.CredentialRevision = false, max(got.Revision, u.Revision+1), max(got.CredentialRevision, u.CredentialRevision+1)
			b.sameUser(got, u)
			b.stands(store.Credentials{User: u, PasswordHash: "hash"})
			b.forgotten(f)
		},
		"a removal of one factor uses its code up and no other": func(b *bench) {
			u, s, f := b.enrolled()
			second := b.newFactor(u.ID)
			second.Kind = "another"
			b.ok(b.putFactor(second))
			e := enabling(second, s)
			_, err := b.factors.EnableFactor(b.ctx(), e)
			b.ok(err)
			c := removal(u.ID, second.ID, "r1")
			told := b.event(now)
			if b.journal != nil {
				c.Events = []store.OutcomeEvent{{Event: told}}
			}
			got, err := b.factors.RemoveFactor(b.ctx(), c)
			b.ok(err)
			equal(b, "User.MFAEnabled, with another factor,", got.MFAEnabled, true)
			b.has(f, 1)
			if b.journal != nil {
				list, err := b.journal.Events(b.ctx(), store.EventQuery{Limit: 1})
				b.ok(err)
				need(b, "number of events", len(list), 1)
				equal(b, "Event.ID", list[0].ID, told.ID)
				equal(b, "Event.Left", list[0].Left, 1)
			}
			_, err = b.recover(u.ID, "r1")
			b.is(err, store.ErrNotFound)
			b.recovers(u.ID, "r2")
		},
		"a removal of all factors removes pending ones, too": func(b *bench) {
			u, _, _ := b.enrolled()
			pending := b.newFactor(u.ID)
			pending.Kind = "another"
			b.ok(b.putFactor(pending))
			_, err := b.removeFactor(u.ID, "")
			b.ok(err)
			b.hasNone(u.ID)
		},
		"a removal of all second factors keeps the factors that no sign-in needs": func(b *bench) {
			u, s, f := b.keyed()
			_, err := b.removeFactor(u.ID, "")
			b.is(err, store.ErrNotFound)
			b.has(f, 0)
			for _, label := range []string{"two", "three"} {
				second := b.passkey(u.ID, label)
				b.enables(second, s)
				b.require(second, s.ID, "r1", "r2")
			}
			b.pending(u.ID)
			_, err = b.removeFactor(u.ID, "")
			b.ok(err)
			b.counts(u.ID, false, 0)
			b.has(f, 0)
		},
		"a patch keeps the factors that it names, and the recovery codes of a second factor": func(b *bench) {
			u, one, _ := b.required()
			one.Required, one.Enabled, one.State = true, true, []byte("100")
			before, err := b.factors.Factors(b.ctx(), u.ID)
			b.ok(err)
			b.pending(u.ID)
			got, err := b.update(u.ID, store.UserPatch{DropFactors: true, KeepFactors: []string{one.ID, b.id(), "x"}})
			b.ok(err)
			equal(b, "User.MFAEnabled", got.MFAEnabled, true)
			equal(b, "raised CredentialRevision", got.CredentialRevision > u.CredentialRevision, true)
			b.has(one, 2)
			after, err := b.factors.Factors(b.ctx(), u.ID)
			b.ok(err)
			equal(b, "Factors.Recovery", after.Recovery, before.Recovery)

			b.ok(b.delete(u.ID))
			u, s, f := b.keyed()
			second := b.passkey(u.ID, "second")
			b.enables(second, s)
			b.require(second, s.ID, "r1")
			_, err = b.update(u.ID, store.UserPatch{DropFactors: true, KeepFactors: []string{f.ID}})
			b.ok(err)
			b.counts(u.ID, false, 0)
			b.has(f, 0)
		},
		"of a removal and a use by one recovery code one wins": func(b *bench) {
			for range 5 {
				u, _, _ := b.enrolled()
				won, _ := b.race(func(i int) error {
					var err error
					if i%2 == 0 {
						_, err = b.recover(u.ID, "r1")
					} else {
						_, err = b.factors.RemoveFactor(b.ctx(), removal(u.ID, "", "r1"))
					}
					return err
				}, store.ErrNotFound)
				equal(b, "successful parallel calls", won, 1)
				b.ok(b.delete(u.ID))
			}
		},
	}
}
