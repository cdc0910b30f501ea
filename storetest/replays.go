package storetest

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/authmount/auth/store"
)

// replays checks outdated refresh tokens after Grace.
func replays() checks {
	const late = 10 * time.Second // after the grace of b.advance
	return checks{
		"the counter before comes late once": func(b *bench) {
			s := b.newSession(b.user("ada@example.com").ID)
			s.IdleUntil = now.Add(1000 * time.Hour)
			_, err := b.signIn(s)
			b.ok(err)
			moved, err := b.advanceLong(s.ID, 0, now)
			b.ok(err)
			again, err := b.advanceLong(s.ID, 0, now.Add(late))
			b.ok(err)
			b.sameSession(again, moved)
			_, err = b.advanceLong(s.ID, 1, now.Add(late))
			b.ok(err)
			_, err = b.advanceLong(s.ID, 2, now.Add(late))
			b.ok(err)
			_, err = b.advanceLong(s.ID, 2, now.Add(late+store.ReplayGap-us)) // within the gap
			b.is(err, store.ErrReused)
		},
		"once a day the counter before may come late": func(b *bench) {
			s := b.newSession(b.user("ada@example.com").ID)
			s.IdleUntil = now.Add(1000 * time.Hour)
			_, err := b.signIn(s)
			b.ok(err)
			at := now
			for day := range uint32(3) {
				for _, counter := range []uint32{2 * day, 2*day + 1} {
					_, err := b.advanceLong(s.ID, counter, at)
					b.ok(err)
				}
				at = at.Add(store.ReplayGap)
				got, err := b.advanceLong(s.ID, 2*day+1, at)
				b.ok(err)
				equal(b, "Session.Counter", got.Counter, 2*day+2)
			}
		},
		"two who share a session are found at the next round": func(b *bench) {
			s := b.newSession(b.user("ada@example.com").ID)
			s.IdleUntil = now.Add(1000 * time.Hour)
			_, err := b.signIn(s)
			b.ok(err)
			_, err = b.advanceLong(s.ID, 0, now) // the first client
			b.ok(err)
			at := now.Add(2 * store.ReplayGap)
			_, err = b.advanceLong(s.ID, 0, at) // the second client, which gets the same token
			b.ok(err)
			at = at.Add(2 * store.ReplayGap)
			_, err = b.advanceLong(s.ID, 1, at) // the first client
			b.ok(err)
			at = at.Add(2 * store.ReplayGap)
			_, err = b.advanceLong(s.ID, 1, at) // the second client
			b.is(err, store.ErrReused)
			_, err = b.advanceLong(s.ID, 2, at)
			b.is(err, store.ErrSessionEnded)
		},
		"an older counter never comes late": func(b *bench) {
			s := b.session(b.user("ada@example.com").ID)
			for i := range uint32(2) {
				_, err := b.advance(s.ID, i, now)
				b.ok(err)
			}
			_, err := b.advance(s.ID, 0, now.Add(late))
			b.is(err, store.ErrReused)
		},
		"who comes late is told of the other, and recorded": func(b *bench) {
			s := b.newSession(b.user("ada@example.com").ID)
			s.IP, s.UserAgent = "192.0.2.7", "theirs"
			_, err := b.signIn(s)
			b.ok(err)
			_, err = b.advance(s.ID, 0, now)
			b.ok(err)
			told := []store.Client{}
			a := store.Advance{Change: by(now.Add(late)), SessionID: s.ID, Grace: late, IdleUntil: now.Add(time.Hour), IP: "192.0.2.9", UserAgent: "mine",
				Replayed: func(other store.Client) { told = append(told, other) }}
			for on := range store.OutcomeNewDevice + 1 {
				a.Events = append(a.Events, store.OutcomeEvent{On: on, Event: b.event(now)})
			}
			got, _, err := b.AdvanceSession(b.ctx(), a)
			b.ok(err)
			equal(b, "Session.IP, as it was,", got.IP, s.IP)
			equal(b, "Session.UserAgent, as it was,", got.UserAgent, s.UserAgent)
			equal(b, "Session.Counter", got.Counter, 1)
			want := store.Client{IP: netip.MustParseAddr("192.0.2.7"), UserAgent: "theirs"}
			equal(b, "clients that Replayed was told of", told, []store.Client{want})
			if b.journal == nil {
				return
			}
			list, err := b.journal.Events(b.ctx(), store.EventQuery{UserID: s.UserID})
			b.ok(err)
			need(b, "number of events", len(list), 1)
			equal(b, "Event.ID", list[0].ID, a.Events[store.OutcomeReplayed].Event.ID)
			equal(b, "Event.Other", list[0].Other, &want)
		},
		"within grace and in time nobody is told of another": func(b *bench) {
			s := b.session(b.user("ada@example.com").ID)
			for _, counter := range []uint32{0, 0, 1} {
				_, _, err := b.AdvanceSession(b.ctx(), store.Advance{Change: by(now), SessionID: s.ID, Counter: counter, Grace: late, IdleUntil: now.Add(time.Hour),
					Replayed: func(other store.Client) { b.wrong("Replayed was told of", other, "nobody") }})
				b.ok(err)
			}
		},
		"late counters at once have one answer, which is told of once": func(b *bench) {
			s := b.session(b.user("ada@example.com").ID)
			_, err := b.advance(s.ID, 0, now)
			b.ok(err)
			var told atomic.Int32
			won, _ := b.race(func(int) error {
				got, _, err := b.AdvanceSession(b.ctx(), store.Advance{Change: by(now.Add(late)), SessionID: s.ID, Grace: late, IdleUntil: now.Add(time.Hour),
					Replayed: func(store.Client) { told.Add(1) }})
				equal(b, "Session.Counter", got.Counter, 1)
				return err
			})
			equal(b, "successful parallel calls", won, parallel)
			equal(b, "number of times that Replayed was called", told.Load(), 1)
		},
		"within grace of a late counter it may come again": func(b *bench) {
			s := b.session(b.user("ada@example.com").ID)
			moved, err := b.advance(s.ID, 0, now)
			b.ok(err)
			equal(b, "Replayed was called", b.late(s.ID, now.Add(late)), true)
			for _, at := range []time.Duration{late, 2*late - us} {
				equal(b, "Replayed was called again", b.late(s.ID, now.Add(at)), false)
			}
			got, _, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			b.sameSession(got, moved)
			_, err = b.advance(s.ID, 0, now.Add(2*late)) // Grace counts from the first replay
			b.is(err, store.ErrReused)
		},
		"within grace of a late counter the next one is none": func(b *bench) {
			s := b.session(b.user("ada@example.com").ID)
			for _, c := range []struct {
				counter uint32
				at      time.Duration
			}{{0, 0}, {0, 3 * late}, {1, 3 * late}} {
				_, err := b.advance(s.ID, c.counter, now.Add(c.at))
				b.ok(err)
			}
			_, err := b.advance(s.ID, 0, now.Add(3*late))
			b.is(err, store.ErrReused)
		},
		"an early repetition counts as late from another device": func(b *bench) {
			owner := store.Client{IP: netip.MustParseAddr("2001:db8::1"), UserAgent: "owner", Device: "d1"}
			with := func(edit func(*store.Client)) store.Client {
				c := owner
				edit(&c)
				return c
			}
			nameless := with(func(c *store.Client) { c.Device = "" })
			for name, c := range map[string]struct {
				moves, repeats store.Client
				late           bool
			}{
				"one client":                     {owner, owner, false},
				"another address of its network": {owner, with(func(c *store.Client) { c.IP = netip.MustParseAddr("2001:db8::2") }), false},
				"another user agent":             {owner, with(func(c *store.Client) { c.UserAgent = "updated" }), false},
				"no client":                      {owner, store.Client{}, false},
				"another device":                 {owner, with(func(c *store.Client) { c.Device = "d2" }), true},
				"no device":                      {owner, nameless, true},
				"the device of the sign-in, after another moved it": {with(func(c *store.Client) { c.Device = "d2" }), owner, true},
				"a device, after one without moved it":              {nameless, owner, true},
				"no devices":                                        {nameless, nameless, false},
				"no devices, and another user agent":                {nameless, store.Client{IP: owner.IP, UserAgent: "other"}, true},
				"no devices, and a client without it":               {nameless, store.Client{IP: owner.IP}, false},
			} {
				s := b.newSession(b.user("").ID)
				s.IP, s.UserAgent, s.Device = owner.IP.String(), owner.UserAgent, owner.Device
				_, err := b.signIn(s)
				b.ok(err)
				equal(b.of("%s", name), "late with the current counter", b.by(c.moves, s.ID, 0, now), "in time")
				for range 2 {
					want := "in time"
					if c.late {
						want = "late"
					}
					equal(b.of("%s", name), "the repetition", b.by(c.repeats, s.ID, 0, now.Add(us)), want)
					c.late = false // again within Grace
				}
			}
			s := b.newSession(b.user("").ID)
			s.Device = "d1"
			_, err := b.signIn(s)
			b.ok(err)
			for counter, want := range []string{"late", "reused"} {
				equal(b, "the current counter", b.by(owner, s.ID, uint32(counter), now), "in time")
				equal(b, "another device, in round "+want, b.by(store.Client{Device: "d2"}, s.ID, uint32(counter), now), want)
			}
		},
		"early repetitions from another network count as late after a while": func(b *bench) {
			home := store.Client{IP: netip.MustParseAddr("192.0.2.1"), UserAgent: "phone", Device: "d1"}
			away := home
			away.IP = netip.MustParseAddr("192.0.2.2")
			s := b.newSession(b.user("").ID)
			s.Device = "d1"
			_, err := b.signIn(s)
			b.ok(err)
			for counter, want := range []string{"in time", "in time", "none", "in time", "in time", "late", "reused"} {
				equal(b, "the current counter", b.by(home, s.ID, uint32(counter), now), "in time")
				if want != "none" {
					equal(b.of("round %d", counter), "a repetition from another network", b.by(away, s.ID, uint32(counter), now), want)
				}
				if want != "none" && want != "reused" {
					equal(b.of("round %d", counter), "the same repetition again", b.by(away, s.ID, uint32(counter), now), "in time")
				}
			}
		},
		"what is let pass rests on the conditions": func(b *bench) {
			s := b.session(b.user("ada@example.com").ID)
			_, err := b.advance(s.ID, 0, now)
			b.ok(err)
			a := store.Advance{Change: by(now.Add(late)), SessionID: s.ID, Grace: late, IdleUntil: now.Add(time.Hour), Replayed: func(c store.Client) { b.wrong("Replayed was told of", c, "nobody") }}
			a.IfUsers = []store.UserAt{{ID: b.id()}}
			_, _, err = b.AdvanceSession(b.ctx(), a)
			b.is(err, store.ErrStale)
			_, err = b.advance(s.ID, 0, now.Add(late)) // the refused call did not count as a replay
			b.ok(err)
		},
	}
}

// advanceLong is advance for a session that does not end soon.
func (b *bench) advanceLong(id string, counter uint32, at time.Time) (store.Session, error) {
	s, _, err := b.AdvanceSession(b.ctx(), store.Advance{
		Change: by(at), SessionID: id, Counter: counter, Grace: 10 * time.Second, IdleUntil: at.Add(1000 * time.Hour),
	})
	return s, err
}

// by refreshes as a client and reports the outcome: "in time", "late" or "reused".
func (b *bench) by(c store.Client, id string, counter uint32, at time.Time) string {
	b.Helper()
	outcome := "in time"
	a := store.Advance{
		Change: by(at), SessionID: id, Counter: counter, Grace: 10 * time.Second, IdleUntil: at.Add(time.Hour), UserAgent: c.UserAgent, Device: c.Device,
		Replayed: func(store.Client) { outcome = "late" },
	}
	if c.IP.IsValid() {
		a.IP = c.IP.String()
	}
	_, _, err := b.AdvanceSession(b.ctx(), a)
	if errors.Is(err, store.ErrReused) {
		return "reused"
	}
	b.ok(err)
	return outcome
}

// late refreshes with the first counter and reports whether it was accepted late.
func (b *bench) late(id string, at time.Time) (late bool) {
	b.Helper()
	_, _, err := b.AdvanceSession(b.ctx(), store.Advance{
		Change: by(at), SessionID: id, Counter: 0, Grace: 10 * time.Second, IdleUntil: at.Add(time.Hour), Replayed: func(store.Client) { late = true },
	})
	b.ok(err)
	return late
}
