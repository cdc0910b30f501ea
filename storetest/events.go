package storetest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/difference"
)

// say records events with a change of a user.
func (b *bench) say(userID string, events ...auth.Event) {
	b.Helper()
	c := auth.UpdateUser{Change: by(now), UserID: userID, Patch: auth.UserPatch{FullName: ptr("x")}}
	for _, e := range events {
		c.Events = append(c.Events, auth.OutcomeEvent{Event: e})
	}
	_, err := b.UpdateUser(b.ctx(), c)
	b.ok(err)
}

// event describes an event.
func (b *bench) event(at time.Time) auth.Event {
	b.Helper()
	return auth.Event{ID: b.id(), Type: auth.EventUserUpdated, At: at}
}

// lists wants these events, in this order.
func (b *bench) lists(q auth.EventQuery, want ...string) {
	b.Helper()
	list, err := b.events.Events(b.ctx(), q)
	b.ok(err)
	got := []string{}
	for _, e := range list {
		got = append(got, e.ID)
	}
	equal(b, "list is nil", list == nil, false)
	listed(b.of("%s", difference.Show(q)), "ids of events", got, want)
}

// events are that what has happened is kept, and only that.
func events() checks {
	return checks{
		"an event comes back as it went in": func(b *bench) {
			u := b.user("ada@example.com")
			e := b.event(now.Add(-us))
			e.Actor = auth.Actor{Kind: auth.ActorUser, ID: b.id(), SessionID: b.id()}
			e.UserID, e.SessionID, e.SessionIDs = b.id(), b.id(), []string{b.id(), b.id()}
			e.Method, e.Provider, e.Message, e.Left, e.Reason = "oauth", "p", auth.KindMagicLink, 7, "because"
			e.Client = auth.Client{IP: netip.MustParseAddr("2001:db8::1"), UserAgent: "storetest"}
			e.Other = &auth.Client{IP: netip.MustParseAddr("2001:db8::2"), UserAgent: "other"}
			bare := b.event(now)
			b.say(u.ID, e, bare)
			got, err := b.events.Events(b.ctx(), auth.EventQuery{})
			b.ok(err)
			bare.UserID = u.ID // filled in; that of the other is not touched
			equal(b, "events", got, []auth.Event{bare, e})
		},
		"events are listed, newest first, by page": func(b *bench) {
			u, other := b.user("ada@example.com"), b.user("eve@example.com")
			b.lists(auth.EventQuery{})
			var all []auth.Event
			for i := range 5 {
				all = append(all, b.event(now.Add(time.Duration(i/2)*us))) // some at once
			}
			slices.Reverse(all)
			b.say(u.ID, all[1], all[4], all[0])
			b.say(other.ID, all[3], all[2])
			ids := []string{}
			for _, e := range all {
				ids = append(ids, e.ID)
			}
			b.lists(auth.EventQuery{}, ids...)
			b.lists(auth.EventQuery{Limit: 2}, ids[:2]...)
			for i := range all {
				b.lists(auth.EventQuery{Before: &all[i], Limit: 2}, ids[i+1:min(i+3, 5)]...)
			}
			b.lists(auth.EventQuery{UserID: u.ID}, ids[0], ids[1], ids[4])
			b.lists(auth.EventQuery{UserID: u.ID, Before: &all[0], Limit: 1}, ids[1])
			b.lists(auth.EventQuery{UserID: b.id()})
		},
		"fifty events are a page": func(b *bench) {
			u := b.user("ada@example.com")
			var all []auth.Event
			var ids []string
			for i := range 60 {
				all = append(all, b.event(now.Add(time.Duration(-i)*us)))
				ids = append(ids, all[i].ID)
			}
			b.say(u.ID, all...)
			b.lists(auth.EventQuery{}, ids[:50]...)
			b.lists(auth.EventQuery{Limit: 55}, ids[:55]...)
			b.lists(auth.EventQuery{Before: &all[49]}, ids[50:]...)
		},
		"events are copies": func(b *bench) {
			u := b.user("ada@example.com")
			e := b.event(now)
			e.SessionIDs = []string{"a"}
			b.say(u.ID, e)
			e.SessionIDs[0] = "spoilt"
			for range 2 {
				got, err := b.events.Events(b.ctx(), auth.EventQuery{})
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
			try := auth.TryCode{Change: proof(now), Purpose: t.Purpose, Subject: t.Subject, Hash: hashOf("000000")}
			try.Patch, try.IfUsers = sweeping(), []auth.UserAt{{ID: b.id()}}
			ids := w.witness(&try.Change)
			_, _, err := w.TryCode(w.ctx(), try)
			b.is(err, auth.ErrWrongCode)
			w.noticed(ids, u.ID, nil, auth.OutcomeWrongCode)
			try.Hash, try.IfUsers, try.Events, try.Messages = t.Hash, nil, nil, nil
			ids = w.witness(&try.Change)
			_, _, err = w.TryCode(w.ctx(), try)
			b.is(err, auth.ErrTooManyTries)
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
			a := auth.Advance{Change: by(now), SessionID: s.ID, IdleUntil: now.Add(time.Hour)}
			a.Events = []auth.OutcomeEvent{{On: auth.OutcomeReused, Event: b.event(now)}, {On: auth.OutcomeDone, Event: b.event(now)}}
			_, _, err := b.AdvanceSession(b.ctx(), a)
			b.is(err, auth.ErrReused)
			b.lists(auth.EventQuery{UserID: u.ID}, a.Events[0].Event.ID)
			_, _, err = b.AdvanceSession(b.ctx(), a)
			b.is(err, auth.ErrSessionEnded)
			b.lists(auth.EventQuery{UserID: u.ID}, a.Events[0].Event.ID)
		},
		"a change that its target refuses records nothing": func(b *bench) {
			w := newWorld(b)
			u := w.person()
			ended := w.device(u.ID)
			_, err := b.revoke(u.ID, auth.SessionFilter{})
			b.ok(err)
			taken, refused := b.newUser(u.Email), b.newUser("")
			refused.Creating = func(context.Context, auth.User) error { return auth.ErrUsed }
			for name, call := range map[string]func(c auth.Change) error{
				"taken": func(c auth.Change) error {
					_, err := b.CreateUser(b.ctx(), auth.CreateUser{Change: c, NewUser: taken})
					return err
				},
				"refused": func(c auth.Change) error {
					_, err := b.CreateUser(b.ctx(), auth.CreateUser{Change: c, NewUser: refused})
					return err
				},
				"no user": func(c auth.Change) error { return b.DeleteUser(b.ctx(), auth.DeleteUser{Change: c, UserID: b.id()}) },
				"no such user's session": func(c auth.Change) error {
					_, err := b.CreateSession(b.ctx(), auth.CreateSession{Change: c, Session: b.newSession(b.id())})
					return err
				},
				"ended session": func(c auth.Change) error {
					_, _, err := b.AdvanceSession(b.ctx(), auth.Advance{Change: c, SessionID: ended.ID, IdleUntil: now.Add(minute)})
					return err
				},
				"no token": func(c auth.Change) error {
					_, _, err := b.RedeemToken(b.ctx(), auth.Redemption{Change: c, Purpose: auth.PurposeReset, Hash: hashOf("none")})
					return err
				},
				"no code": func(c auth.Change) error {
					_, _, err := b.TryCode(b.ctx(), auth.TryCode{Change: c, Purpose: auth.PurposePhoneCode, Subject: "none", Hash: hashOf("none")})
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
			_, err := b.revoke(u.ID, auth.SessionFilter{ID: ended.ID})
			b.ok(err)
			for _, sessions := range [][]string{{live.ID}, nil} {
				c := auth.UpdateUser{Change: by(now), UserID: u.ID, Patch: *sweeping()}
				ids := w.witness(&c.Change)
				_, err := b.UpdateUser(b.ctx(), c)
				b.ok(err)
				if sessions != nil {
					w.noticed(ids, u.ID, sessions, auth.OutcomeDone, auth.OutcomeSessionsEnded)
				} else {
					w.noticed(ids, u.ID, nil, auth.OutcomeDone)
				}
			}
		},
		"all sessions that were dropped are named": func(b *bench) {
			w := newWorld(b)
			u, ends := w.settled()
			c := auth.UpdateUser{Change: by(now), UserID: u.ID, Patch: auth.UserPatch{DropCredentials: true}}
			ids := w.witness(&c.Change)
			_, err := b.UpdateUser(b.ctx(), c)
			b.ok(err)
			w.noticed(ids, u.ID, ends, auth.OutcomeDone, auth.OutcomeSessionsEnded)
		},
		"a recovery code's event tells how many are left": func(b *bench) {
			if b.factors == nil {
				return
			}
			u, _, _ := b.enrolled()
			for _, left := range []int{1, 0} {
				c := auth.UseRecoveryCode{Change: by(now), UserID: u.ID, Hashes: [][]byte{hashOf(fmt.Sprint("r", left+1))}}
				e := b.event(now.Add(minute))
				c.Events = []auth.OutcomeEvent{{Event: e}}
				_, err := b.factors.UseRecoveryCode(b.ctx(), c)
				b.ok(err)
				got, err := b.events.Events(b.ctx(), auth.EventQuery{Limit: 1})
				b.ok(err)
				e.Left, e.UserID = left, u.ID
				need(b, "number of events", len(got), 1)
				equal(b, "Event.ID", got[0].ID, e.ID)
				equal(b, "Event.Left", got[0].Left, left)
				_, err = b.update(u.ID, auth.UserPatch{})
				b.ok(err)
			}
		},
		"events outlive their user": func(b *bench) {
			u := b.user("ada@example.com")
			one, two := b.event(now), b.event(now.Add(us))
			b.say(u.ID, one)
			c := auth.DeleteUser{Change: by(now), UserID: u.ID}
			c.Events = []auth.OutcomeEvent{{Event: two}}
			b.ok(b.DeleteUser(b.ctx(), c))
			b.lists(auth.EventQuery{UserID: u.ID}, two.ID, one.ID)
		},
		"a caller who has gone gets no list": func(b *bench) {
			_, err := b.events.Events(cancelled(), auth.EventQuery{})
			b.gone(err)
		},
	}
}
