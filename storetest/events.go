package storetest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/authmount/auth/internal/difference"
	"github.com/authmount/auth/store"
)

// say records events in a change of a user.
func (b *bench) say(userID string, events ...store.Event) {
	b.Helper()
	c := store.UpdateUser{Change: by(now), UserID: userID, Patch: store.UserPatch{FullName: ptr("x")}}
	for _, e := range events {
		c.Events = append(c.Events, store.OutcomeEvent{Event: e})
	}
	_, err := b.UpdateUser(b.ctx(), c)
	b.ok(err)
}

// event describes an event.
func (b *bench) event(at time.Time) store.Event {
	b.Helper()
	return store.Event{ID: b.id(), Type: store.EventUserUpdated, At: at}
}

// lists checks the events of a query, in order.
func (b *bench) lists(q store.EventQuery, want ...string) {
	b.Helper()
	list, err := b.journal.Events(b.ctx(), q)
	b.ok(err)
	got := []string{}
	for _, e := range list {
		got = append(got, e.ID)
	}
	equal(b, "list is nil", list == nil, false)
	listed(b.of("%s", difference.Show(q)), "ids of events", got, want)
}

// events checks that the events of a change are recorded, and no others.
func events() checks {
	return checks{
		"an event comes back as it went in": func(b *bench) {
			u := b.user("ada@example.com")
			e := b.event(now.Add(-us))
			e.Actor = store.Actor{Kind: store.ActorUser, ID: b.id(), SessionID: b.id()}
			e.UserID, e.SessionID, e.SessionIDs = b.id(), b.id(), []string{b.id(), b.id()}
			e.Method, e.Provider, e.Message, e.Left, e.Reason = "oauth", "p", store.KindMagicLink, 7, "because"
			e.Client = store.Client{IP: netip.MustParseAddr("2001:db8::1"), UserAgent: "storetest"}
			e.Other = &store.Client{IP: netip.MustParseAddr("2001:db8::2"), UserAgent: "other"}
			bare := b.event(now)
			b.say(u.ID, e, bare)
			got, err := b.journal.Events(b.ctx(), store.EventQuery{})
			b.ok(err)
			bare.UserID = u.ID // filled in; the other event's is unchanged
			equal(b, "events", got, []store.Event{bare, e})
		},
		"events are listed, newest first, by page": func(b *bench) {
			u, other := b.user("ada@example.com"), b.user("eve@example.com")
			b.lists(store.EventQuery{})
			var all []store.Event
			for i := range 5 {
				all = append(all, b.event(now.Add(time.Duration(i/2)*us))) // pairs with equal times
			}
			slices.Reverse(all)
			b.say(u.ID, all[1], all[4], all[0])
			b.say(other.ID, all[3], all[2])
			ids := []string{}
			for _, e := range all {
				ids = append(ids, e.ID)
			}
			b.lists(store.EventQuery{}, ids...)
			b.lists(store.EventQuery{Limit: 2}, ids[:2]...)
			for i := range all {
				b.lists(store.EventQuery{Before: &all[i], Limit: 2}, ids[i+1:min(i+3, 5)]...)
			}
			b.lists(store.EventQuery{UserID: u.ID}, ids[0], ids[1], ids[4])
			b.lists(store.EventQuery{UserID: u.ID, Before: &all[0], Limit: 1}, ids[1])
			b.lists(store.EventQuery{UserID: b.id()})
		},
		"fifty events are a page": func(b *bench) {
			u := b.user("ada@example.com")
			var all []store.Event
			var ids []string
			for i := range 60 {
				all = append(all, b.event(now.Add(time.Duration(-i)*us)))
				ids = append(ids, all[i].ID)
			}
			b.say(u.ID, all...)
			b.lists(store.EventQuery{}, ids[:50]...)
			b.lists(store.EventQuery{Limit: 55}, ids[:55]...)
			b.lists(store.EventQuery{Before: &all[49]}, ids[50:]...)
		},
		"events are copies": func(b *bench) {
			u := b.user("ada@example.com")
			e := b.event(now)
			e.SessionIDs = []string{"a"}
			b.say(u.ID, e)
			e.SessionIDs[0] = "spoilt"
			for range 2 {
				got, err := b.journal.Events(b.ctx(), store.EventQuery{})
				b.ok(err)
				need(b, "number of events", len(got), 1)
				need(b, "Event.SessionIDs", got[0].SessionIDs, []string{"a"})
				got[0].SessionIDs[0] = "spoilt"
			}
		},
		"a wrong code is recorded, and nothing else with it": func(b *bench) {
			w := newWorld(b)
			u := w.person()
			t := w.secret(u.ID, 1)
			try := store.CodeAttempt{Change: proof(now), Purpose: t.Purpose, Subject: t.Subject, Hash: hashOf("000000")}
			try.Patch, try.IfUsers = sweeping(), []store.UserAt{{ID: b.id()}}
			ids := w.witness(&try.Change)
			_, _, err := w.RedeemCode(w.ctx(), try)
			b.is(err, store.ErrWrongCode)
			w.noticed(ids, u.ID, nil, store.OutcomeWrongCode)
			try.Hash, try.IfUsers, try.Events, try.Messages = t.Hash, nil, nil, nil
			ids = w.witness(&try.Change)
			_, _, err = w.RedeemCode(w.ctx(), try)
			b.is(err, store.ErrTooManyAttempts)
			w.noticed(ids, "", nil)
		},
		"reuse is recorded": func(b *bench) {
			w := newWorld(b)
			u := w.person()
			s := w.device(u.ID)
			for i := range uint32(3) {
				_, err := b.advance(s.ID, i, now)
				b.ok(err)
			}
			a := store.Advance{Change: by(now), SessionID: s.ID, IdleUntil: now.Add(time.Hour)}
			a.Events = []store.OutcomeEvent{{On: store.OutcomeReused, Event: b.event(now)}, {On: store.OutcomeDone, Event: b.event(now)}}
			_, _, err := b.AdvanceSession(b.ctx(), a)
			b.is(err, store.ErrReused)
			b.lists(store.EventQuery{UserID: u.ID}, a.Events[0].Event.ID)
			_, _, err = b.AdvanceSession(b.ctx(), a)
			b.is(err, store.ErrSessionEnded)
			b.lists(store.EventQuery{UserID: u.ID}, a.Events[0].Event.ID)
		},
		"a change that its target refuses records nothing": func(b *bench) {
			w := newWorld(b)
			u := w.person()
			ended := w.device(u.ID)
			_, err := b.revoke(u.ID, store.SessionFilter{})
			b.ok(err)
			taken, refused := b.newUser(u.Email), b.newUser("")
			refused.Creating = func(context.Context, store.User) error { return store.ErrUsed }
			for name, call := range map[string]func(c store.Change) error{
				"taken": func(c store.Change) error {
					_, err := b.CreateUser(b.ctx(), store.CreateUser{Change: c, NewUser: taken})
					return err
				},
				"refused": func(c store.Change) error {
					_, err := b.CreateUser(b.ctx(), store.CreateUser{Change: c, NewUser: refused})
					return err
				},
				"no user": func(c store.Change) error { return b.DeleteUser(b.ctx(), store.DeleteUser{Change: c, UserID: b.id()}) },
				"no such user's session": func(c store.Change) error {
					_, err := b.CreateSession(b.ctx(), store.CreateSession{Change: c, NewSession: store.NewSession{Session: b.newSession(b.id())}})
					return err
				},
				"ended session": func(c store.Change) error {
					_, _, err := b.AdvanceSession(b.ctx(), store.Advance{Change: c, SessionID: ended.ID, IdleUntil: now.Add(minute)})
					return err
				},
				"no token": func(c store.Change) error {
					_, _, err := b.RedeemToken(b.ctx(), store.Redemption{Change: c, Purpose: store.PurposeReset, Hash: hashOf("none")})
					return err
				},
				"no code": func(c store.Change) error {
					_, _, err := b.RedeemCode(b.ctx(), store.CodeAttempt{Change: c, Purpose: store.PurposePhoneCode, Subject: "none", Hash: hashOf("none")})
					return err
				},
			} {
				c := by(now)
				ids := w.witness(&c)
				err := call(c)
				b.of("%s", name).refuses(err, "it was done all the same")
				w.noticed(ids, "", nil)
			}
		},
		"sessions that had ended before do not end again": func(b *bench) {
			w := newWorld(b)
			u := w.person()
			live, ended := w.device(u.ID), w.device(u.ID)
			_, err := b.revoke(u.ID, store.SessionFilter{ID: ended.ID})
			b.ok(err)
			for _, sessions := range [][]string{{live.ID}, nil} {
				c := store.UpdateUser{Change: by(now), UserID: u.ID, Patch: *sweeping()}
				ids := w.witness(&c.Change)
				_, err := b.UpdateUser(b.ctx(), c)
				b.ok(err)
				if sessions != nil {
					w.noticed(ids, u.ID, sessions, store.OutcomeDone, store.OutcomeSessionsEnded)
				} else {
					w.noticed(ids, u.ID, nil, store.OutcomeDone)
				}
			}
		},
		"all sessions that were dropped are named": func(b *bench) {
			w := newWorld(b)
			u, ends := w.settled()
			c := store.UpdateUser{Change: by(now), UserID: u.ID, Patch: store.UserPatch{DropCredentials: true}}
			ids := w.witness(&c.Change)
			_, err := b.UpdateUser(b.ctx(), c)
			b.ok(err)
			w.noticed(ids, u.ID, ends, store.OutcomeDone, store.OutcomeSessionsEnded)
		},
		"a recovery code's event tells how many are left": func(b *bench) {
			if b.factors == nil {
				return
			}
			u, _, _ := b.enrolled()
			for _, left := range []int{1, 0} {
				c := store.UseRecoveryCode{Change: by(now), UserID: u.ID, Hashes: [][]byte{hashOf(fmt.Sprint("r", left+1))}}
				e := b.event(now.Add(minute))
				c.Events = []store.OutcomeEvent{{Event: e}}
				_, err := b.factors.UseRecoveryCode(b.ctx(), c)
				b.ok(err)
				got, err := b.journal.Events(b.ctx(), store.EventQuery{Limit: 1})
				b.ok(err)
				e.Left, e.UserID = left, u.ID
				need(b, "number of events", len(got), 1)
				equal(b, "Event.ID", got[0].ID, e.ID)
				equal(b, "Event.Left", got[0].Left, left)
				_, err = b.update(u.ID, store.UserPatch{})
				b.ok(err)
			}
		},
		"events outlive their user": func(b *bench) {
			u := b.user("ada@example.com")
			one, two := b.event(now), b.event(now.Add(us))
			b.say(u.ID, one)
			c := store.DeleteUser{Change: by(now), UserID: u.ID}
			c.Events = []store.OutcomeEvent{{Event: two}}
			b.ok(b.DeleteUser(b.ctx(), c))
			b.lists(store.EventQuery{UserID: u.ID}, two.ID, one.ID)
		},
		"a caller who has gone gets no list": func(b *bench) {
			_, err := b.journal.Events(cancelled(), store.EventQuery{})
			b.gone(err)
		},
	}
}
