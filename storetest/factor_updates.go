package storetest

import (
	"github.com/authmount/auth/store"
)

// requiring describes an update that makes a factor required, or no longer so.
func requiring(f store.Factor, required bool) store.UpdateFactor {
	return store.UpdateFactor{Change: by(now), UserID: f.UserID, FactorID: f.ID, Required: &required}
}

// require makes a factor required, with recovery codes.
func (b *bench) require(f store.Factor, keepSession string, codes ...string) {
	b.Helper()
	c := requiring(f, true)
	c.KeepSession = keepSession
	for _, code := range codes {
		c.Recovery = append(c.Recovery, hashOf(code))
	}
	_, err := b.factors.UpdateFactor(b.ctx(), c)
	b.ok(err)
}

// keyed adds a user with a passkey that no sign-in needs, and the session that it was
// enabled in. It returns the stored factor.
func (b *bench) keyed() (store.User, store.Session, store.Factor) {
	b.Helper()
	u := b.whole()
	s, f := b.session(u.ID), b.passkey(u.ID, "key")
	u = b.enables(f, s)
	f.Enabled, f.State = true, []byte("100")
	return u, s, f
}

// required adds a user with two factors that sign-ins need, two recovery codes, and a
// session.
func (b *bench) required() (u store.User, one, two store.Factor) {
	b.Helper()
	_, s, one := b.keyed()
	two = b.passkey(one.UserID, "two")
	b.enables(two, s)
	b.require(one, s.ID, "r1", "r2")
	b.require(two, s.ID)
	u, err := b.User(b.ctx(), store.ByID(one.UserID))
	b.ok(err)
	return u, one, two
}

// lives checks which sessions are live.
func (b *bench) lives(want bool, list ...store.Session) {
	b.Helper()
	for _, s := range list {
		_, _, err := b.Session(b.ctx(), s.ID, now)
		equal(b, "the session is live", err == nil, want)
	}
}

// counts checks MFAEnabled and the number of recovery codes of a user.
func (b *bench) counts(userID string, required bool, codes int) {
	b.Helper()
	u, err := b.User(b.ctx(), store.ByID(userID))
	b.ok(err)
	equal(b, "User.MFAEnabled", u.MFAEnabled, required)
	fs, err := b.factors.Factors(b.ctx(), userID)
	b.ok(err)
	equal(b, "Factors.RecoveryLeft", fs.RecoveryLeft, codes)
	if codes == 0 {
		equal(b, "Factors.Recovery", fs.Recovery, store.Origin{})
	}
}

// factorUpdates checks updates of factors, and which factors count as second factors.
func factorUpdates() checks {
	return checks{
		"a factor that no sign-in needs ends no session and sets no recovery codes": func(b *bench) {
			u := b.user("ada@example.com")
			s, other := b.session(u.ID), b.session(u.ID)
			for i, label := range []string{"one", "two"} {
				f := b.passkey(u.ID, label)
				b.ok(b.putFactor(f))
				e := enabling(f, s)
				e.Recovery = [][]byte{hashOf("n1")}
				_, err := b.factors.EnableFactor(b.ctx(), e)
				b.ok(err)
				b.lives(true, s, other)
				b.counts(u.ID, i == 1, 2*i)
				if i == 1 {
					b.recovers(u.ID, "r1", "r2")
					return
				}
				_, err = b.enable(b.pending(u.ID), s)
				b.ok(err)
				b.lives(false, other)
				other = b.newSession(u.ID)
				other.AAL = store.LevelAAL2
				_, err = b.signIn(other)
				b.ok(err)
			}
		},
		"a new label changes nothing else": func(b *bench) {
			u, s, f := b.enrolled()
			c := store.UpdateFactor{Change: by(now.Add(us)), UserID: u.ID, FactorID: f.ID, Label: ptr("tablet"), Required: ptr(true), Recovery: [][]byte{hashOf("n1")}}
			got, err := b.factors.UpdateFactor(b.ctx(), c)
			b.ok(err)
			f.Label = "tablet"
			b.has(f, 2)
			f.Origin, f.LastUsedAt = got.Origin, got.LastUsedAt
			equal(b, "Factor", got, f)
			got.State[0], got.Secret[0] = 'x', 'x'
			b.stands(store.Credentials{User: u, PasswordHash: "hash"})
			b.lives(true, s)
			b.ok(b.useFactor(f, "200")) // in the same state
			b.recovers(u.ID, "r1", "r2")
			_, err = b.factors.UpdateFactor(b.ctx(), store.UpdateFactor{Change: by(now), UserID: u.ID, FactorID: f.ID, Label: ptr("")})
			b.ok(err)
			listed(b, "labels", b.labels(u.ID), []string{""})
		},
		"a factor that becomes required ends the other sessions": func(b *bench) {
			u, kept, f := b.keyed()
			other, foreign := b.session(u.ID), b.session(b.user("eve@example.com").ID)
			u.LastSignInAt = now
			c := requiring(f, true)
			c.Now, c.Recovery, c.KeepSession = now.Add(us), [][]byte{hashOf("r1"), hashOf("r2")}, kept.ID
			got, err := b.factors.UpdateFactor(b.ctx(), c)
			b.ok(err)
			c.Recovery[0][0] ^= 1
			f.Required = true
			b.has(f, 2)
			equal(b, "Factor.Required", got.Required, true)
			b.lives(true, kept, foreign)
			b.lives(false, other)
			after, err := b.User(b.ctx(), store.ByID(u.ID))
			b.ok(err)
			b.rises("User.Revision", u.Revision, after.Revision)
			b.rises("User.CredentialRevision", u.CredentialRevision, after.CredentialRevision)
			u.MFAEnabled, u.UpdatedAt, u.Revision, u.CredentialRevision = true, c.Now, after.Revision, after.CredentialRevision
			b.sameUser(after, u)
			_, err = b.signIn(b.newSession(u.ID))
			b.is(err, store.ErrMFARequired)
			b.recovers(u.ID, "r1", "r2")
			second := b.passkey(u.ID, "second")
			b.enables(second, kept)
			b.ok(b.renew(u.ID, "n1"))
			b.require(second, "") // keeps the codes, and no session
			b.counts(u.ID, true, 1)
			b.lives(false, kept)
		},
		"recovery codes go with the last factor that is no longer required": func(b *bench) {
			u, one, two := b.required()
			s := b.newSession(u.ID)
			s.AAL = store.LevelAAL2
			_, err := b.signIn(s)
			b.ok(err)
			for i, f := range []store.Factor{one, two} {
				before, err := b.User(b.ctx(), store.ByID(u.ID))
				b.ok(err)
				got, err := b.factors.UpdateFactor(b.ctx(), requiring(f, false))
				b.ok(err)
				equal(b, "Factor.Required", got.Required, false)
				b.counts(u.ID, i == 0, 2-2*i)
				after, err := b.User(b.ctx(), store.ByID(u.ID))
				b.ok(err)
				b.rises("User.Revision", before.Revision, after.Revision)
				b.rises("User.CredentialRevision", before.CredentialRevision, after.CredentialRevision)
			}
			b.lives(true, s)
			b.is(b.renew(u.ID, "n1"), store.ErrNotFound)
			_, err = b.recover(u.ID, "r1")
			b.is(err, store.ErrNotFound)
			b.session(u.ID) // with one factor
		},
		"recovery codes go with the last required factor": func(b *bench) {
			u, one, two := b.required()
			b.of("codes of required factors").ok(b.renew(u.ID, "n1", "n2"))
			s := b.newSession(u.ID)
			s.AAL = store.LevelAAL2
			_, err := b.signIn(s)
			b.ok(err)
			b.enables(b.passkey(u.ID, "three"), s)
			for i, f := range []store.Factor{one, two} {
				_, err := b.removeFactor(u.ID, f.ID)
				b.ok(err)
				b.counts(u.ID, i == 0, 2-2*i)
			}
			listed(b, "labels", b.labels(u.ID), []string{"three"})
			b.is(b.renew(u.ID, "n1"), store.ErrNotFound)
		},
		"an update names an enabled factor of the user": func(b *bench) {
			u, _, f := b.enrolled()
			pending := b.passkey(u.ID, "pending")
			b.ok(b.putFactor(pending))
			eve, _, other := b.enrol(b.user("eve@example.com"))
			for _, id := range []string{"", b.id(), other.ID, pending.ID} {
				c := requiring(f, false)
				c.FactorID, c.Label = id, ptr("x")
				_, err := b.factors.UpdateFactor(b.ctx(), c)
				b.of("the factor %q", id).is(err, store.ErrNotFound)
			}
			c := requiring(f, false)
			c.UserID = b.id()
			_, err := b.factors.UpdateFactor(b.ctx(), c)
			b.is(err, store.ErrNotFound)
			b.stands(store.Credentials{User: u, PasswordHash: "hash"})
			b.stands(store.Credentials{User: eve})
			listed(b, "labels", b.labels(u.ID), []string{"phone", "pending pending"})
			b.has(other, 2)
		},
		"of an update and a removal of the last two required factors one wins": func(b *bench) {
			for range 5 {
				u, one, two := b.required()
				won, lost := b.race(func(i int) error {
					still := []store.UserAt{{ID: u.ID, CredentialRevision: &u.CredentialRevision}}
					var err error
					if i%2 == 0 {
						c := requiring(one, false)
						c.Change = clocks[0]
						c.IfUsers = still
						_, err = b.factors.UpdateFactor(b.ctx(), c)
					} else {
						c := store.RemoveFactor{Change: clocks[1], UserID: u.ID, FactorID: two.ID}
						c.IfUsers = still
						_, err = b.factors.RemoveFactor(b.ctx(), c)
					}
					return err
				}, store.ErrStale, store.ErrNotFound)
				equal(b, "successful parallel calls", won, 1)
				equal(b, "calls that were refused", lost[store.ErrStale]+lost[store.ErrNotFound], parallel-1)
				b.counts(u.ID, true, 2)
				b.ok(b.delete(u.ID))
			}
		},
		"parallel updates and removals of required factors leave user and factors at one": func(b *bench) {
			for range 10 {
				u, one, two := b.required()
				b.race(func(i int) error {
					var err error
					switch i % 4 {
					case 0, 1:
						c := requiring([]store.Factor{one, two}[i%2], false)
						c.Change = clocks[i%2]
						_, err = b.factors.UpdateFactor(b.ctx(), c)
					case 2:
						_, err = b.factors.RemoveFactor(b.ctx(), store.RemoveFactor{Change: clocks[i/4%2], UserID: u.ID, FactorID: two.ID})
					case 3:
						err = b.renew(u.ID, "n1")
					}
					return err
				}, store.ErrNotFound)
				b.counts(u.ID, false, 0)
				listed(b, "labels", b.labels(u.ID), []string{"key"})
				b.ok(b.delete(u.ID))
			}
		},
		"a factor that is removed meanwhile is not required": func(b *bench) {
			for range 10 {
				u, s, f := b.keyed()
				b.race(func(i int) error {
					if i%2 == 0 {
						_, err := b.factors.RemoveFactor(b.ctx(), store.RemoveFactor{Change: clocks[0], UserID: u.ID, FactorID: f.ID})
						return err
					}
					c := requiring(f, true)
					c.Change, c.Recovery, c.KeepSession = clocks[1], [][]byte{hashOf("r1")}, s.ID
					_, err := b.factors.UpdateFactor(b.ctx(), c)
					return err
				}, store.ErrNotFound)
				b.counts(u.ID, false, 0)
				b.hasNone(u.ID)
				b.lives(true, s)
				b.ok(b.delete(u.ID))
			}
		},
		"an update raises the sequence only with recovery codes": func(b *bench) {
			a := b.account(b.user("ada@example.com"))
			b.ok(a.signInAs("one", "", by(now)))
			s, f := a.sessions["one"], b.passkey(a.id, "key")
			one := a.from("one")
			b.enables(f, s)
			update := func(c store.Change, required bool, codes ...string) func() error {
				u := requiring(f, required)
				u.Change, u.KeepSession = c, s.ID
				for _, code := range codes {
					u.Recovery = append(u.Recovery, hashOf(code))
				}
				return func() error { _, err := b.factors.UpdateFactor(b.ctx(), u); return err }
			}
			a.step("required", 0, update(clocks[0], true))
			a.step("not required", 0, update(clocks[1], false))
			a.step("required, with codes", 0, update(clocks[0], true, "r1"), "recovery")
			a.step("required once more", 0, update(clocks[1], true, "r2"))
			a.remove("not required any more", 0, update(clocks[1], false), []string{"recovery"})
			a.step("required within a session", one, update(bySession(s), true, "r1"), "recovery")
		},
		"a factor that becomes required ends sessions at any time of a caller": func(b *bench) {
			for i := range clocks {
				u, s, f := b.keyed()
				a := b.account(u)
				b.ok(a.signInAs("fast", "", clocks[0]))
				b.ok(a.signInAs("slow", "", clocks[1]))
				c := requiring(f, true)
				c.Change, c.KeepSession = clocks[i], s.ID
				_, err := b.factors.UpdateFactor(b.ctx(), c)
				b.ok(err)
				b.lives(false, a.sessions["fast"], a.sessions["slow"])
				b.lives(true, s)
				b.ok(b.delete(u.ID))
			}
		},
	}
}
