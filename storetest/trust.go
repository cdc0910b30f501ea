package storetest

import (
	"fmt"
	"time"

	"github.com/authmount/auth/store"
)

// month is the time for which these checks trust devices.
const month = store.MaxTrust

// trusting describes a session that makes its device trusted until then.
func (b *bench) trusting(userID, device string, until time.Time) store.CreateSession {
	b.Helper()
	s := b.newSession(userID)
	s.Device, s.AAL, s.AMR = device, store.LevelAAL2, append(s.AMR, totp)
	return store.CreateSession{Change: by(now), NewSession: store.NewSession{Session: s, TrustUntil: until}}
}

// trust signs in and makes the device trusted until then.
func (b *bench) trust(userID, device string, until time.Time) store.Session {
	b.Helper()
	c := b.trusting(userID, device, until)
	_, err := b.CreateSession(b.ctx(), c)
	b.ok(err)
	return c.Session
}

// trusts checks until when a user trusts a device; zero: not at all.
func (b *bench) trusts(userID, device string, until time.Time) {
	b.Helper()
	key := store.ByID(userID)
	key.Device = device
	c, err := b.Credentials(b.ctx(), key)
	b.ok(err)
	equal(b.of("device %q", device), "Credentials.TrustedUntil", c.TrustedUntil, until)
}

// passing signs in with the first factor and OnTrustedDevice.
func (b *bench) passing(userID, device string, at time.Time, more ...store.UserAt) error {
	b.Helper()
	s := b.newSession(userID)
	s.Device, s.CreatedAt, s.IdleUntil = device, at, at.Add(time.Hour)
	c := store.CreateSession{Change: by(at), NewSession: store.NewSession{Session: s, OnTrustedDevice: true}}
	c.IfUsers = more
	_, err := b.CreateSession(b.ctx(), c)
	return err
}

// deviceTrust checks how a store remembers trusted devices.
func deviceTrust() checks {
	never := time.Time{}
	return checks{
		"a device is trusted by the account that said so": func(b *bench) {
			u, eve := b.whole(), b.user("eve@example.com")
			b.signInOn(u.ID, "other", now)
			b.signInOn(eve.ID, "one", now)
			b.trusts(u.ID, "one", never)
			b.trust(u.ID, "one", now.Add(month))
			for _, key := range []store.UserKey{store.ByID(u.ID), store.ByEmail(u.Email), store.ByPhone(u.Phone), store.ByIdentity("p", "1")} {
				key.Device = "one"
				c, err := b.Credentials(b.ctx(), key)
				b.ok(err)
				equal(b.of("%+v", key), "Credentials.TrustedUntil", c.TrustedUntil, now.Add(month))
				equal(b.of("%+v", key), "Credentials.KnownDevice", c.KnownDevice, true)
			}
			for _, device := range []string{"other", "", "unknown", "\x00"} {
				b.trusts(u.ID, device, never)
			}
			b.trusts(eve.ID, "one", never)
			b.signInOn(u.ID, "one", now.Add(us))
			b.trusts(u.ID, "one", now.Add(month))
			b.trust(u.ID, "one", now.Add(minute)) // the last call decides
			b.trusts(u.ID, "one", now.Add(minute))
			b.trust(u.ID, "", now.Add(month))
			b.trusts(u.ID, "", never)
			b.signInOn(u.ID, "", now)
			b.trusts(u.ID, "", never)
		},
		"a session of one factor has no device trusted": func(b *bench) {
			u := b.user("ada@example.com")
			c := b.trusting(u.ID, "one", now.Add(month))
			c.Session.AAL = store.LevelAAL1
			_, err := b.CreateSession(b.ctx(), c)
			b.ok(err)
			b.knows(u.ID, "one", true)
			b.trusts(u.ID, "one", never)
		},
		"a refused sign-in has no device trusted": func(b *bench) {
			u := b.user("ada@example.com")
			old := b.signInOn(u.ID, "one", now)
			c := b.trusting(u.ID, "one", now.Add(month))
			c.IfUsers = []store.UserAt{{ID: u.ID, PasswordHash: ptr("other")}}
			_, err := b.CreateSession(b.ctx(), c)
			b.is(err, store.ErrStale)
			c.IfUsers, c.Session.ID = nil, old.ID
			_, err = b.CreateSession(b.ctx(), c)
			b.refuses(err, "an id given twice")
			c = b.trusting(u.ID, "two", now.Add(month))
			c.OnNewDevice.Refuse = true
			_, err = b.CreateSession(b.ctx(), c)
			b.is(err, store.ErrNewDevice)
			_, err = b.CreateSession(cancelled(), b.trusting(u.ID, "one", now.Add(month)))
			b.gone(err)
			b.trusts(u.ID, "one", never)
			b.trusts(u.ID, "two", never)
		},
		"whatever changes ways in ends trust": func(b *bench) {
			for name, c := range b.naming() {
				u := b.whole()
				until := now.Add(month)
				b.trust(u.ID, "one", until)
				_, err := b.update(u.ID, c.patch)
				b.ok(err)
				if c.rises || c.patch.DropDevices {
					until = never
				}
				b.of("%s", name).trusts(u.ID, "one", until)
				b.of("%s", name).knows(u.ID, "one", !c.patch.DropDevices && !c.patch.DropCredentials)
				b.ok(b.delete(u.ID))
			}
		},
		"trust that ended does not come back": func(b *bench) {
			u := b.user("ada@example.com")
			b.trust(u.ID, "one", now.Add(month))
			for _, p := range []store.UserPatch{{PasswordHash: ptr("x")}, {DropDevices: true}} {
				b.trust(u.ID, "one", now.Add(month))
				_, err := b.update(u.ID, p)
				b.ok(err)
				b.trusts(u.ID, "one", never)
				b.signInOn(u.ID, "one", now)
				b.trusts(u.ID, "one", never)
			}
			b.trust(u.ID, "one", now.Add(month))
			for i := range store.MaxDevices { // seen later
				b.signInOn(u.ID, fmt.Sprintf("device %d", i), now.Add(us))
			}
			b.signInOn(u.ID, "one", now.Add(us))
			b.trusts(u.ID, "one", never)
		},
		"trust ends with an end of sessions that says so": func(b *bench) {
			u, eve := b.user("ada@example.com"), b.user("eve@example.com")
			own := b.trust(u.ID, "one", now.Add(month))
			b.trust(u.ID, "two", now.Add(month))
			b.trust(eve.ID, "one", now.Add(month))
			revoke := func(drop bool) {
				b.Helper()
				_, err := b.RevokeSessions(b.ctx(), store.RevokeSessions{Change: by(now), UserID: u.ID, Filter: store.SessionFilter{Except: own.ID}, DropDevices: drop})
				b.ok(err)
			}
			revoke(false)
			b.trusts(u.ID, "one", now.Add(month))
			b.trusts(u.ID, "two", now.Add(month))
			revoke(true)
			b.knows(u.ID, "one", true) // still known, but not trusted
			b.trusts(u.ID, "one", never)
			b.trusts(u.ID, "two", never)
			b.trusts(eve.ID, "one", now.Add(month))
		},
		"one device that is forgotten leaves trust in the others": func(b *bench) {
			u := b.user("ada@example.com")
			b.trust(u.ID, "other", now.Add(month))
			for name, forget := range map[string]func(store.SessionFilter) error{
				"RevokeSessions": func(f store.SessionFilter) error {
					_, err := b.RevokeSessions(b.ctx(), store.RevokeSessions{Change: by(now), UserID: u.ID, Filter: f, DropDevices: true})
					return err
				},
				"UserPatch": func(f store.SessionFilter) error {
					_, err := b.update(u.ID, store.UserPatch{Revoke: &f, DropDevices: true})
					return err
				},
			} {
				one := b.trust(u.ID, "one", now.Add(month))
				b.ok(forget(store.SessionFilter{ID: one.ID}))
				b.of("%s", name).trusts(u.ID, "one", never)
				b.of("%s", name).trusts(u.ID, "other", now.Add(month))
			}
		},
	}
}

// factorTrust checks sign-ins on trusted devices, for a FactorStore.
func factorTrust() checks {
	return checks{
		"a trusted device stands in for the second factor": func(b *bench) {
			u, _, _ := b.enrolled()
			eve, _, _ := b.enrol(b.user("eve@example.com"))
			end := now.Add(month)
			b.is(b.passing(u.ID, "one", now), store.ErrMFARequired)
			b.trust(u.ID, "one", end)
			b.trust(eve.ID, "hers", end)
			// Conditions on other users may take another path in a store.
			for _, more := range [][]store.UserAt{nil, {{ID: u.ID, CredentialRevision: &u.CredentialRevision}}, {{ID: eve.ID, Revision: &eve.Revision}}} {
				b.ok(b.passing(u.ID, "one", now, more...))
				b.ok(b.passing(u.ID, "one", end.Add(-us), more...))
				for _, at := range []time.Time{end, end.Add(us)} {
					b.is(b.passing(u.ID, "one", at, more...), store.ErrMFARequired)
				}
				for _, device := range []string{"", "two", "hers"} {
					b.is(b.passing(u.ID, device, now, more...), store.ErrMFARequired)
				}
				b.is(b.passing(eve.ID, "one", now, more...), store.ErrMFARequired)
				s := b.newSession(u.ID)
				s.Device = "one"
				_, err := b.signIn(s, more...)
				b.is(err, store.ErrMFARequired) // without OnTrustedDevice
			}
		},
		"a session on a trusted device is as it was asked for": func(b *bench) {
			u, _, _ := b.enrolled()
			b.trust(u.ID, "one", now.Add(month))
			s := b.newSession(u.ID)
			s.Device = "one"
			_, err := b.CreateSession(b.ctx(), store.CreateSession{Change: by(now), NewSession: store.NewSession{Session: s, OnTrustedDevice: true}})
			b.ok(err)
			got, _, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			b.sameSession(got, s)
			b.trusts(u.ID, "one", now.Add(month)) // no longer than before
		},
		"a trusted device makes up for nothing else": func(b *bench) {
			u, _, _ := b.enrolled()
			b.trust(u.ID, "one", now.Add(month))
			b.is(b.passing(u.ID, "one", now, store.UserAt{ID: u.ID, PasswordHash: ptr("other")}), store.ErrStale)
			_, err := b.update(u.ID, store.UserPatch{BannedUntil: ptr(now.Add(minute))})
			b.ok(err)
			b.is(b.passing(u.ID, "one", now), store.ErrBanned)
			b.is(b.passing(u.ID, "one", now.Add(minute)), store.ErrMFARequired) // the ban ended the trust
			b.is(b.passing(b.id(), "one", now), store.ErrNotFound)
		},
		"whatever changes second factors ends trust": func(b *bench) {
			other := func(f store.Factor) store.Factor {
				f.ID, f.Kind = b.id(), "other"
				return f
			}
			for name, change := range map[string]func(u store.User, s store.Session, f store.Factor) error{
				"another factor": func(u store.User, s store.Session, f store.Factor) error {
					o := other(f)
					b.ok(b.putFactor(o))
					_, err := b.enable(o, s)
					return err
				},
				"a factor that is replaced": func(u store.User, s store.Session, f store.Factor) error {
					_, err := b.removeFactor(u.ID, f.ID)
					b.ok(err)
					next := b.pending(u.ID)
					_, err = b.enable(next, s)
					return err
				},
				"one of two removed": func(u store.User, s store.Session, f store.Factor) error {
					o := other(f)
					b.ok(b.putFactor(o))
					_, err := b.enable(o, s)
					b.ok(err)
					b.trust(u.ID, "one", now.Add(month))
					_, err = b.removeFactor(u.ID, o.ID)
					return err
				},
				"new recovery codes": func(u store.User, _ store.Session, _ store.Factor) error { return b.renew(u.ID, "n1") },
			} {
				u, s, f := b.enrolled()
				b.trust(u.ID, "one", now.Add(month))
				b.ok(change(u, s, f))
				b.of("%s", name).trusts(u.ID, "one", time.Time{})
				b.of("%s", name).is(b.passing(u.ID, "one", now), store.ErrMFARequired)
				b.ok(b.delete(u.ID))
			}
		},
		"using second factors leaves trust alone": func(b *bench) {
			u, s, f := b.enrolled()
			b.trust(u.ID, "one", now.Add(month))
			b.ok(b.useFactor(f, "200"))
			f.State = []byte("200")
			_, err := b.recover(u.ID, "r1")
			b.ok(err)
			_, err = b.raise(f, "201", s.ID)
			b.ok(err)
			b.ok(b.passing(u.ID, "one", now))
		},
		"no session begins on a device once its trust has ended": func(b *bench) {
			u, _, _ := b.enrolled()
			for range 30 {
				b.trust(u.ID, "one", now.Add(month))
				b.meanwhile(func() error { return b.renew(u.ID, "n1") }, func() error { return b.passing(u.ID, "one", now) }, func() []string {
					list, err := b.Sessions(b.ctx(), u.ID, now)
					return []string{fmt.Sprintf("%d sessions, %v", len(list), err)}
				}, store.ErrMFARequired)
			}
		},
	}
}
