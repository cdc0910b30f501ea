package storetest

import (
	"slices"

	"github.com/authmount/auth/store"
)

// arrival is a sign-in with the records for a new device.
type arrival struct {
	store.CreateSession
	events map[store.Outcome]string // event ids
	token  store.Token
	told   int // number of calls of Made
}

// arriving describes a session of a user on a device, with the records for a new device.
func (b *bench) arriving(userID, device string) *arrival {
	b.Helper()
	s := b.newSession(userID)
	s.Device = device
	a := &arrival{CreateSession: store.CreateSession{Change: by(now), NewSession: store.NewSession{Session: s}}, events: map[store.Outcome]string{}}
	for on := range store.OutcomeNewDevice + 1 {
		e := b.event(now)
		a.events[on] = e.ID
		a.Events = append(a.Events, store.OutcomeEvent{On: on, Event: e})
	}
	a.token = newToken("new device "+s.ID, "")
	a.token.UserID = userID
	m := store.SealedMessage{ID: b.id(), Body: []byte("sealed"), CreatedAt: now, NextAt: now, ExpiresAt: now.Add(minute)}
	a.OnNewDevice = store.NewDevice{Tokens: []store.Token{a.token}, Messages: []store.SealedMessage{m}, Made: func() { a.told++ }}
	return a
}

// wasNew checks that the records for a new device are all there, or none.
func (b *bench) wasNew(a *arrival, want bool) {
	b.Helper()
	calls, found := 0, store.ErrNotFound
	if want {
		calls, found = 1, nil
	}
	equal(b.of("device %q", a.Session.Device), "NewDevice.Made, calls", a.told, calls)
	_, err := b.PeekToken(b.ctx(), a.token.Purpose, a.token.Hash, now)
	b.is(err, found)
	if b.journal != nil {
		list, err := b.journal.Events(b.ctx(), store.EventQuery{UserID: a.Session.UserID, Limit: 1000})
		b.ok(err)
		i := slices.IndexFunc(list, func(e store.Event) bool { return e.ID == a.events[store.OutcomeNewDevice] })
		equal(b.of("device %q", a.Session.Device), "event of OutcomeNewDevice recorded", i >= 0, want)
		if i >= 0 {
			equal(b.of("device %q", a.Session.Device), "Event.SessionIDs, how many", len(list[i].SessionIDs), 0)
		}
	}
	if b.journal != nil {
		list, err := b.journal.ClaimMessages(b.ctx(), store.ClaimMessages{Now: now, Until: now.Add(us), Limit: 1000})
		b.ok(err)
		for _, m := range list {
			b.ok(b.journal.FinishMessage(b.ctx(), store.FinishMessage{ID: m.ID}))
		}
		got := slices.ContainsFunc(list, func(m store.SealedMessage) bool { return m.ID == a.OnNewDevice.Messages[0].ID })
		equal(b.of("device %q", a.Session.Device), "message of NewDevice recorded", got, want)
		equal(b.of("device %q", a.Session.Device), "messages, how many", len(list), calls)
	}
}

// arrive signs in and checks whether the device was new. Before that, a sign-in that
// refuses new devices changes nothing.
func (b *bench) arrive(userID, device string, isNew bool, more ...store.UserAt) {
	b.Helper()
	before, err := b.Sessions(b.ctx(), userID, now)
	b.ok(err)
	refusing := b.arriving(userID, device)
	refusing.OnNewDevice.Refuse = true
	if isNew {
		_, err = b.CreateSession(b.ctx(), refusing.CreateSession)
		b.is(err, store.ErrNewDevice)
		b.wasNew(refusing, false)
		b.knows(userID, device, false)
		after, err := b.Sessions(b.ctx(), userID, now)
		b.ok(err)
		equal(b.of("user %s", userID), "sessions after a refusal, how many", len(after), len(before))
	}
	a := b.arriving(userID, device)
	a.OnNewDevice.Refuse = !isNew
	a.IfUsers = more
	_, err = b.CreateSession(b.ctx(), a.CreateSession)
	b.ok(err)
	b.wasNew(a, isNew)
	b.knows(userID, device, device != "")
}

// newDevices checks sessions on devices that are new to their users.
func newDevices() checks {
	return checks{
		"a device is new once": func(b *bench) {
			u, eve := b.user("ada@example.com"), b.user("eve@example.com")
			b.signInOn(eve.ID, "two", now)
			b.arrive(u.ID, "one", false) // the first session
			b.arrive(u.ID, "one", false)
			b.arrive(u.ID, "two", true)
			b.arrive(u.ID, "two", false)
			b.arrive(u.ID, "one", false)
			// The same with conditions on other users, which may take another path in a
			// store.
			elsewhere := store.UserAt{ID: eve.ID, Revision: &eve.Revision}
			b.arrive(u.ID, "three", true, elsewhere)
			b.arrive(u.ID, "three", false, elsewhere)
		},
		"no device is new to whoever has any": func(b *bench) {
			u := b.user("ada@example.com")
			b.arrive(u.ID, "", false)
			b.arrive(u.ID, "", false)
			b.arrive(u.ID, "one", true) // not the first session, but the first device
			b.arrive(u.ID, "", true)
			b.arrive(u.ID, "", true)
		},
		"a device that was forgotten is new": func(b *bench) {
			u := b.user("ada@example.com")
			b.arrive(u.ID, "one", false)
			_, err := b.update(u.ID, store.UserPatch{DropDevices: true})
			b.ok(err)
			b.arrive(u.ID, "one", true)
		},
		"no device is new to whoever had any that were forgotten": func(b *bench) {
			for name, forget := range map[string]func(userID string) error{
				"a patch": func(id string) error {
					_, err := b.update(id, store.UserPatch{DropDevices: true})
					return err
				},
				"an end of sessions": func(id string) error {
					_, err := b.RevokeSessions(b.ctx(), store.RevokeSessions{Change: by(now), UserID: id, DropDevices: true})
					return err
				},
			} {
				u, eve := b.user(name+"@example.com"), b.user("eve "+name+"@example.com")
				b.arrive(u.ID, "", false)
				b.ok(forget(u.ID)) // nothing to forget
				b.arrive(u.ID, "", false)
				b.arrive(u.ID, "one", true)
				for range 2 {
					b.ok(forget(u.ID))
					b.arrive(u.ID, "", true)
					b.knows(u.ID, "", false)
					b.knows(u.ID, "-", false)
				}
				b.arrive(eve.ID, "", false)
				b.arrive(eve.ID, "", false)
			}
		},
		"an account that was made with a session has had its first": func(b *bench) {
			nu := b.newUser("ada@example.com")
			s := b.newSession(nu.User.ID)
			s.Device, nu.Session = "one", &s
			_, err := b.create(nu)
			b.ok(err)
			b.arrive(nu.User.ID, "one", false)
			b.arrive(nu.User.ID, "two", true)
		},
		"a sign-in that is refused tells of no device": func(b *bench) {
			u := b.user("ada@example.com")
			b.arrive(u.ID, "one", false)
			a := b.arriving(u.ID, "two")
			a.IfUsers = []store.UserAt{{ID: u.ID, PasswordHash: ptr("other")}}
			_, err := b.CreateSession(b.ctx(), a.CreateSession)
			b.is(err, store.ErrStale)
			b.wasNew(a, false)
			_, err = b.update(u.ID, store.UserPatch{BannedUntil: ptr(now.Add(us))})
			b.ok(err)
			for _, refuse := range []bool{false, true} {
				a.IfUsers, a.OnNewDevice.Refuse = nil, refuse
				_, err = b.CreateSession(b.ctx(), a.CreateSession)
				b.is(err, store.ErrBanned)
				b.wasNew(a, false)
			}
		},
		"of parallel sign-ins on a new device one tells": func(b *bench) {
			u := b.user("ada@example.com")
			b.arrive(u.ID, "one", false)
			told := make(chan bool, parallel)
			b.race(func(int) error {
				a := b.arriving(u.ID, "two")
				a.OnNewDevice.Made = func() { told <- true }
				_, err := b.CreateSession(b.ctx(), a.CreateSession)
				return err
			})
			equal(b.of("user %s", u.ID), "NewDevice.Made, calls", len(told), 1)
		},
	}
}

// newDeviceFactors checks new devices of sessions that an enrolment creates.
func newDeviceFactors() checks {
	enrol := func(b *bench, u store.User, device string) (*arrival, error) {
		b.Helper()
		a := b.arriving(u.ID, device)
		c := enablingAnew(b.pending(u.ID), a.Session)
		c.Events, c.Create.OnNewDevice = a.Events, a.OnNewDevice
		_, err := b.factors.EnableFactor(b.ctx(), c)
		if err != nil {
			return a, err
		}
		_, err = b.factors.RemoveFactor(b.ctx(), store.RemoveFactor{Change: by(now), UserID: u.ID})
		return a, err
	}
	return checks{
		"an enrolment's session tells of a new device": func(b *bench) {
			u := b.user("ada@example.com")
			for _, step := range []struct {
				device string
				isNew  bool
			}{{"one", false}, {"two", true}, {"two", false}, {"", true}} {
				a, err := enrol(b, u, step.device)
				b.ok(err)
				b.wasNew(a, step.isNew)
			}
		},
		"an enrolment's session on a new device is refused": func(b *bench) {
			u := b.user("ada@example.com")
			b.arrive(u.ID, "one", false)
			a := b.arriving(u.ID, "two")
			f := b.pending(u.ID)
			c := enablingAnew(f, a.Session)
			c.Events, c.Create.OnNewDevice = a.Events, a.OnNewDevice
			c.Create.OnNewDevice.Refuse = true
			_, err := b.factors.EnableFactor(b.ctx(), c)
			b.is(err, store.ErrNewDevice)
			b.wasNew(a, false)
			b.knows(u.ID, "two", false)
			c.Create.OnNewDevice.Refuse = false
			_, err = b.factors.EnableFactor(b.ctx(), c)
			b.ok(err)
			b.wasNew(a, true)
		},
		"an enrolment within a session tells of no device": func(b *bench) {
			u := b.user("ada@example.com")
			b.arrive(u.ID, "one", false)
			s := b.signInOn(u.ID, "", now)
			a := b.arriving(u.ID, "two")
			c := enabling(b.pending(u.ID), s)
			c.Events = a.Events
			_, err := b.factors.EnableFactor(b.ctx(), c)
			b.ok(err)
			b.wasNew(a, false)
		},
	}
}
