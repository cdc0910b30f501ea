package storetest

import (
	"time"

	"github.com/authmount/auth/store"
)

// nothing checks that empty keys do not find rows without a value.
func nothing() checks {
	return checks{
		"a code about nothing is nobody's to guess": func(b *bench) {
			c := newCode("1", "", 5)
			b.token(c)
			b.is(b.try("", "1"), store.ErrNotFound)
			_, _, err := b.guess("", "1", store.Effect{Create: ptr(b.newUser(""))})
			b.is(err, store.ErrNotFound)
			_, _, err = b.guess("", "2", store.Effect{Create: ptr(b.newUser(""))})
			b.is(err, store.ErrNotFound)
			t, err := b.PeekToken(b.ctx(), c.Purpose, c.Hash, now)
			b.ok(err)
			equal(b, "tries", t.Attempts, 0)
		},
		"whoever is made nobody's takes nothing along that is about nothing": func(b *bench) {
			if b.admin == nil {
				return
			}
			u := b.whole()
			about := newToken("about nothing", "")
			about.Purpose = store.PurposeMagicLink
			b.token(about)
			var m store.SealedMessage
			if b.journal != nil {
				m = b.message()
				m.Recipient, m.Log = "", store.MessageLog{Kind: "magic_link", Channel: "mail"}
				b.post(b.user("eve@example.com").ID, m)
			}
			e := b.event(now)
			e.UserID, e.Record = "", &store.Record{Actor: "root"}
			own := b.event(now)
			own.UserID, own.Actor, own.Record = "", store.Actor{Kind: store.ActorUser, ID: u.ID}, &store.Record{Actor: "ada"}
			if b.journal != nil {
				b.ok(b.journal.AddEvents(b.ctx(), []store.Event{e, own}))
			}
			_, err := b.admin.AnonymizeUser(b.ctx(), store.AnonymizeUser{Change: by(now), UserID: u.ID, Label: "label", Subjects: []string{""}, Recipients: []string{""}, Names: []string{""}})
			b.ok(err)
			if b.journal != nil {
				list, err := b.journal.Events(b.ctx(), store.EventQuery{})
				b.ok(err)
				for _, e := range list {
					equal(b, "Record.Target", e.Record.Target, "")
				}
			}
			_, err = b.PeekToken(b.ctx(), about.Purpose, about.Hash, now)
			b.ok(err)
			if b.journal != nil {
				b.claims(now, m.ID)
			}
			if b.journal != nil {
				equal(b, "messages that are noted", len(b.records(store.MessageQuery{ID: m.ID, Limit: 9})), 1)
			}
		},
		"a token of somebody who is not there comes with nobody": func(b *bench) {
			nu := b.newUser("ada@example.com")
			t := newToken("of nobody", "")
			t.UserID = b.id()
			nu.Tokens = []store.Token{t}
			_, err := b.create(nu)
			b.is(err, store.ErrNotFound)
			_, err = b.User(b.ctx(), store.ByID(nu.User.ID))
			b.is(err, store.ErrNotFound)
		},
	}
}

// factorsOfNobody checks that second factors need their user, and that a session created by
// an enrolment must be at AAL2.
func factorsOfNobody() checks {
	return checks{
		"a first session that showed no second factor enables none": func(b *bench) {
			u := b.whole()
			f, s := b.pending(u.ID), b.newSession(u.ID)
			c := enablingAnew(f, s)
			c.Create.Session.AAL = store.LevelAAL1
			_, err := b.factors.EnableFactor(b.ctx(), c)
			b.is(err, store.ErrMFARequired)
			_, _, err = b.Session(b.ctx(), s.ID, now)
			b.is(err, store.ErrNotFound)
			b.has(f, 0)
			_, err = b.enableAnew(f, s)
			b.ok(err)
			_, _, err = b.Session(b.ctx(), s.ID, now)
			b.ok(err)
		},
		"a use names its factor": func(b *bench) {
			_, _, f := b.enrolled()
			unnamed := f
			unnamed.ID = ""
			b.is(b.useFactor(unnamed, "101"), store.ErrNotFound)
			b.has(f, 2)
		},
		"nobody has factors or recovery codes": func(b *bench) {
			b.enrolled()
			id := b.id()
			f := b.newFactor(id)
			_, recovered := b.recover(id, "r1")
			_, removed := b.removeFactor(id, "")
			_, enabled := b.enableAnew(f, b.newSession(id))
			for _, err := range []error{recovered, removed, enabled, b.renew(id, "n1"), b.useFactor(f, "101"), b.putFactor(f)} {
				b.is(err, store.ErrNotFound)
			}
		},
	}
}

// heldInOrder checks the order of Held.
func heldInOrder() checks {
	return checks{"what is kept of an account is in the order of its times": func(b *bench) {
		if b.journal == nil {
			return
		}
		u := b.whole()
		var want []store.PendingMessage
		for _, d := range []time.Duration{3, 1, 2} {
			for _, life := range []time.Duration{20, 10} {
				m := b.message()
				m.UserID, m.CreatedAt, m.ExpiresAt = u.ID, now.Add(d*minute), now.Add(d*minute+life*minute)
				b.post(u.ID, m)
				want = append(want, store.PendingMessage{CreatedAt: m.CreatedAt, ExpiresAt: m.ExpiresAt})
			}
		}
		h, err := b.UserRecords(b.ctx(), u.ID, now)
		b.ok(err)
		equal(b, "messages", h.Messages, []store.PendingMessage{want[3], want[2], want[5], want[4], want[1], want[0]})
	}}
}
