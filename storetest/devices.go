package storetest

import (
	"fmt"
	"time"

	"github.com/authmount/auth/store"
)

// signInOn adds a session on a device at a time.
func (b *bench) signInOn(userID, device string, at time.Time) store.Session {
	b.Helper()
	s := b.newSession(userID)
	s.Device, s.CreatedAt, s.IdleUntil = device, at, at.Add(time.Hour)
	_, err := b.signIn(s)
	b.ok(err)
	return s
}

// knows checks whether a user's device is known.
func (b *bench) knows(userID, device string, want bool) {
	b.Helper()
	b.recognises(store.ByID(userID), device, want)
}

func (b *bench) recognises(key store.UserKey, device string, want bool) {
	b.Helper()
	key.Device = device
	c, err := b.Credentials(b.ctx(), key)
	b.ok(err)
	equal(b.of("device %q of %+v", device, key), "Credentials.KnownDevice", c.KnownDevice, want)
}

// devices checks how a store remembers devices.
func devices() checks {
	return checks{
		"a device is known to the account that signed in on it": func(b *bench) {
			u, eve := b.whole(), b.user("eve@example.com")
			b.session(eve.ID) // without a device
			b.session(u.ID)
			b.signInOn(eve.ID, "hers", now)
			b.signInOn(u.ID, "other", now)
			b.knows(u.ID, "one", false)
			b.signInOn(u.ID, "one", now)
			for _, key := range []store.UserKey{store.ByID(u.ID), store.ByEmail(u.Email), store.ByPhone(u.Phone), store.ByIdentity("p", "1")} {
				b.recognises(key, "one", true)
				b.recognises(key, "other", true)
				b.recognises(key, "hers", false)
				b.recognises(key, "", false)
				b.recognises(key, "\x00", false)
			}
			b.knows(eve.ID, "one", false)
		},
		"a device is known to the account that was made on it": func(b *bench) {
			nu := b.newUser("ada@example.com")
			s := b.newSession(nu.User.ID)
			s.Device, nu.Session = "one", &s
			_, err := b.create(nu)
			b.ok(err)
			b.knows(nu.User.ID, "one", true)
			b.knows(nu.User.ID, "", false)
			b.token(newToken("t", "t"))
			nu = b.newUser("bob@example.com")
			s = b.newSession(nu.User.ID)
			s.Device, nu.Session = "one", &s
			_, _, err = b.use("t", store.Effect{Create: &nu})
			b.ok(err)
			b.knows(nu.User.ID, "one", true)
		},
		"a refused sign-in makes no device known": func(b *bench) {
			u := b.user("ada@example.com")
			old := b.session(u.ID)
			s := b.newSession(u.ID)
			s.Device = "one"
			_, err := b.signIn(s, store.UserAt{ID: u.ID, PasswordHash: ptr("other")})
			b.is(err, store.ErrStale)
			again := s
			again.ID = old.ID
			_, err = b.signIn(again)
			b.refuses(err, "an id given twice")
			_, err = b.CreateSession(cancelled(), store.CreateSession{Change: by(now), NewSession: store.NewSession{Session: s}})
			b.gone(err)
			_, err = b.update(u.ID, store.UserPatch{BannedUntil: ptr(now.Add(us))})
			b.ok(err)
			_, err = b.signIn(s)
			b.is(err, store.ErrBanned)
			b.knows(u.ID, "one", false)
		},
		"a device outlives its sessions": func(b *bench) {
			u := b.user("ada@example.com")
			b.signInOn(u.ID, "one", now)
			_, err := b.update(u.ID, store.UserPatch{PasswordHash: ptr("x"), Revoke: &store.SessionFilter{}, DropFactors: true, DropTokens: []store.Purpose{store.PurposeReset}})
			b.ok(err)
			_, err = b.Sweep(b.ctx(), now.Add(2*time.Hour), 100)
			b.ok(err)
			b.knows(u.ID, "one", true)
		},
		"devices go with all ways in": func(b *bench) {
			u, eve := b.whole(), b.user("eve@example.com")
			kept := b.signInOn(u.ID, "one", now)
			b.signInOn(eve.ID, "one", now)
			_, err := b.update(u.ID, store.UserPatch{DropCredentials: true, KeepSession: kept.ID})
			b.ok(err)
			b.knows(u.ID, "one", false)
			b.knows(eve.ID, "one", true)
			b.signInOn(u.ID, "one", now)
			b.knows(u.ID, "one", true)
		},
		"devices are forgotten by themselves, too": func(b *bench) {
			u, eve := b.user("ada@example.com"), b.user("eve@example.com")
			b.signInOn(u.ID, "one", now)
			b.signInOn(u.ID, "two", now)
			b.signInOn(eve.ID, "one", now)
			_, err := b.update(u.ID, store.UserPatch{DropDevices: true})
			b.ok(err)
			b.knows(u.ID, "one", false)
			b.knows(u.ID, "two", false)
			b.knows(eve.ID, "one", true)
			b.signInOn(u.ID, "one", now)
			b.knows(u.ID, "one", true)
		},
		"devices go with an end of sessions that says so": func(b *bench) {
			u, eve := b.user("ada@example.com"), b.user("eve@example.com")
			revoke := func(f store.SessionFilter, drop bool) {
				b.Helper()
				_, err := b.RevokeSessions(b.ctx(), store.RevokeSessions{Change: by(now), UserID: u.ID, Filter: f, DropDevices: drop})
				b.ok(err)
			}
			sessions := map[string]store.Session{}
			for _, device := range []string{"one", "two", ""} {
				sessions[device] = b.signInOn(u.ID, device, now)
			}
			other := b.signInOn(eve.ID, "one", now)
			revoke(store.SessionFilter{Except: sessions["one"].ID}, false)
			b.knows(u.ID, "two", true)
			revoke(store.SessionFilter{Except: sessions["one"].ID}, true) // even if no session ends
			b.knows(u.ID, "one", true)
			b.knows(u.ID, "two", false)
			b.signInOn(u.ID, "two", now)
			revoke(store.SessionFilter{}, true)
			b.knows(u.ID, "one", false)
			b.knows(u.ID, "two", false)
			for _, nobodys := range []string{sessions[""].ID, other.ID, b.id(), "x"} {
				b.signInOn(u.ID, "one", now)
				revoke(store.SessionFilter{Except: nobodys}, true)
				b.knows(u.ID, "one", false)
			}
			b.knows(eve.ID, "one", true)
		},
		"one device goes with its session": func(b *bench) {
			u, eve := b.user("ada@example.com"), b.user("eve@example.com")
			one, two, other := b.signInOn(u.ID, "one", now), b.signInOn(u.ID, "two", now), b.signInOn(eve.ID, "one", now)
			nowhere := b.signInOn(u.ID, "", now)
			for _, id := range []string{nowhere.ID, other.ID, b.id(), "x"} {
				_, err := b.RevokeSessions(b.ctx(), store.RevokeSessions{Change: by(now), UserID: u.ID, Filter: store.SessionFilter{ID: id}, DropDevices: true})
				b.ok(err)
				b.knows(u.ID, "one", true)
				b.knows(u.ID, "two", true)
			}
			_, err := b.RevokeSessions(b.ctx(), store.RevokeSessions{Change: by(now), UserID: u.ID, Filter: store.SessionFilter{ID: two.ID}, DropDevices: true})
			b.ok(err)
			b.knows(u.ID, "two", false)
			b.knows(u.ID, "one", true)
			b.signInOn(u.ID, "two", now)
			_, err = b.update(u.ID, store.UserPatch{Revoke: &store.SessionFilter{Except: one.ID}, DropDevices: true})
			b.ok(err)
			b.knows(u.ID, "two", false)
			b.knows(u.ID, "one", true)
			b.knows(eve.ID, "one", true)
		},
		"no device is spared for its session's sequence, address or age": func(b *bench) {
			u := b.user("ada@example.com")
			for name, edit := range map[string]func(f *store.SessionFilter, old, late store.Session){
				"FromSequence": func(f *store.SessionFilter, _, late store.Session) { f.FromSequence = late.Sequence },
				"IP":           func(f *store.SessionFilter, _, _ store.Session) { f.IP = "192.0.2.99" },
				"Before":       func(f *store.SessionFilter, old, _ store.Session) { f.Before = old.CreatedAt },
			} {
				old := b.signInOn(u.ID, "old", now)
				late, _, err := b.Session(b.ctx(), b.signInOn(u.ID, "late", now.Add(us)).ID, now)
				b.ok(err)
				var f store.SessionFilter
				edit(&f, old, late)
				_, err = b.RevokeSessions(b.ctx(), store.RevokeSessions{Change: by(now), UserID: u.ID, Filter: f, DropDevices: true})
				b.ok(err)
				b.of("%s", name).knows(u.ID, "old", false)
				b.of("%s", name).knows(u.ID, "late", false)
			}
		},
		"devices go with the user": func(b *bench) {
			nu := b.newUser("ada@example.com")
			_, err := b.create(nu)
			b.ok(err)
			b.signInOn(nu.User.ID, "one", now)
			b.ok(b.delete(nu.User.ID))
			_, err = b.create(nu)
			b.ok(err)
			b.knows(nu.User.ID, "one", false)
		},
		"of many devices those seen last are known": func(b *bench) {
			u, eve := b.user("ada@example.com"), b.user("eve@example.com")
			b.signInOn(eve.ID, "first", now)
			name := func(i int) string { return fmt.Sprintf("device %d", i) }
			for i := range store.MaxDevices {
				b.signInOn(u.ID, name(i), now.Add(time.Duration(i)*us))
			}
			b.signInOn(u.ID, name(0), now.Add(minute)) // one device too many
			for i := range store.MaxDevices {
				b.knows(u.ID, name(i), true)
			}
			b.signInOn(u.ID, "new", now.Add(minute))
			b.signInOn(u.ID, "newer", now.Add(minute))
			for device, want := range map[string]bool{name(0): true, name(1): false, name(2): false, name(3): true, "new": true, "newer": true} {
				b.knows(u.ID, device, want)
			}
			b.knows(eve.ID, "first", true)
		},
		"a device not seen for long is swept": func(b *bench) {
			u := b.user("ada@example.com")
			b.signInOn(u.ID, "old", now)
			b.signInOn(u.ID, "seen again", now)
			b.signInOn(u.ID, "seen again", now.Add(us))
			b.signInOn(u.ID, "seen again", now) // by a clock that is slow
			_, err := b.Sweep(b.ctx(), now.Add(store.DeviceLife-us), 100)
			b.ok(err) // deletes the sessions
			b.knows(u.ID, "old", true)
			n, err := b.Sweep(b.ctx(), now.Add(store.DeviceLife), 0)
			b.ok(err)
			equal(b, "swept", n, 0)
			n, err = b.Sweep(b.ctx(), now.Add(store.DeviceLife), 100)
			b.ok(err)
			equal(b, "swept", n, 1)
			b.knows(u.ID, "old", false)
			b.knows(u.ID, "seen again", true)
		},
		"a device not seen for long is known until it is swept": func(b *bench) {
			u := b.user("ada@example.com")
			b.signInOn(u.ID, "old", now)
			over := now.Add(store.DeviceLife)
			late := b.newSession(u.ID)
			late.Device, late.CreatedAt, late.IdleUntil = "old", over, over.Add(time.Hour)
			c := store.CreateSession{Change: by(over), NewSession: store.NewSession{Session: late, OnNewDevice: store.NewDevice{Refuse: true}}}
			b.knows(u.ID, "old", true)
			_, err := b.CreateSession(b.ctx(), c)
			b.ok(err)
		},
		"parallel sign-ins on one device all succeed": func(b *bench) {
			u := b.user("ada@example.com")
			b.race(func(int) error {
				s := b.newSession(u.ID)
				s.Device = "one"
				_, err := b.signIn(s)
				return err
			})
			b.knows(u.ID, "one", true)
		},
	}
}

// deviceFactors checks devices of sessions that an enrolment creates.
func deviceFactors() checks {
	return checks{
		"an enrolment's session makes its device known": func(b *bench) {
			u := b.user("ada@example.com")
			f, s := b.pending(u.ID), b.newSession(u.ID)
			s.Device = "one"
			_, err := b.enableAnew(f, s)
			b.ok(err)
			b.knows(u.ID, "one", true)
		},
	}
}
