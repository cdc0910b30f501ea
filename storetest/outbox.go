package storetest

import (
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

// message describes a message that is due now and expires in an hour.
func (b *bench) message() store.SealedMessage {
	b.Helper()
	return store.SealedMessage{ID: b.id(), Body: []byte("sealed"), CreatedAt: now, NextAt: now, ExpiresAt: now.Add(time.Hour)}
}

// post adds messages in a change of a user.
func (b *bench) post(userID string, messages ...store.SealedMessage) {
	b.Helper()
	c := store.UpdateUser{Change: by(now), UserID: userID, Patch: store.UserPatch{FullName: ptr("x")}}
	c.Messages = messages
	_, err := b.UpdateUser(b.ctx(), c)
	b.ok(err)
}

// claims claims up to ten messages for a minute and compares them with want.
func (b *bench) claims(at time.Time, want ...string) {
	b.Helper()
	b.claimsOf(10, at, want...)
}

func (b *bench) claimsOf(limit int, at time.Time, want ...string) {
	b.Helper()
	list, err := b.journal.ClaimMessages(b.ctx(), store.ClaimMessages{Now: at, Until: at.Add(minute), Limit: limit})
	b.ok(err)
	var got []string
	for _, m := range list {
		got = append(got, m.ID)
	}
	equal(b, "claimed", got, want)
}

func (b *bench) finish(id string, retry time.Time) {
	b.Helper()
	b.ok(b.journal.FinishMessage(b.ctx(), store.FinishMessage{ID: id, RetryAt: retry}))
}

// outbox checks that messages are kept until they are sent.
func outbox() checks {
	return checks{
		"a message comes back as it went in, once": func(b *bench) {
			u := b.user("ada@example.com")
			b.token(newToken("t", "subject"))
			m := b.message()
			m.UserID, m.Token = u.ID, store.TokenRef{Purpose: store.PurposeMagicLink, Hash: hashOf("t")}
			want := m
			want.Body, want.Token.Hash = []byte("sealed"), hashOf("t")
			b.post(u.ID, m)
			m.Body[0], m.Token.Hash[0] = 'x', m.Token.Hash[0]^1
			for i := range 2 {
				at := now.Add(time.Duration(i) * minute / 2)
				got, err := b.journal.ClaimMessages(b.ctx(), store.ClaimMessages{Now: at, Until: at.Add(minute / 2), Limit: 1})
				b.ok(err)
				want.Attempts, want.NextAt = 1, at.Add(minute/2) // no claim has an outcome
				if len(got) == 1 {
					want.NextAt = got[0].NextAt // the value before or after the claim
				}
				need(b, "messages", got, []store.SealedMessage{want})
				got[0].Body[0] = 'x'
				b.claims(at.Add(minute/2 - us))
			}
		},
		"messages come when they are due, oldest first": func(b *bench) {
			u := b.user("ada@example.com")
			first, second, later, over := b.message(), b.message(), b.message(), b.message()
			first.CreatedAt, first.NextAt = now.Add(-us), now.Add(-us)
			later.CreatedAt, later.NextAt = now.Add(us), now.Add(minute)
			over.ExpiresAt = now
			b.post(u.ID, later, second, over, first)
			b.claims(now.Add(-2 * us))
			b.claimsOf(1, now, first.ID)
			b.claims(now, second.ID)
			b.claims(now.Add(minute - us))
			b.claims(now.Add(minute), first.ID, second.ID, later.ID)
			b.claims(now.Add(time.Hour))
		},
		"a message is finished or tried again": func(b *bench) {
			u := b.user("ada@example.com")
			sent, failed := b.message(), b.message()
			b.post(u.ID, sent, failed)
			b.claims(now, sent.ID, failed.ID)
			b.finish(sent.ID, time.Time{})
			b.finish(sent.ID, time.Time{}) // a missing message is no error
			b.finish(b.id(), now)
			b.finish(failed.ID, now.Add(2*us))
			b.claims(now.Add(us))
			b.claims(now.Add(2*us), failed.ID)
			b.claims(now.Add(30*minute), failed.ID)
		},
		"a message goes with its token": func(b *bench) {
			u := b.user("ada@example.com")
			var ids []string
			for _, secret := range []string{"used", "superseded", "live", "dropped"} {
				t, m := newToken(secret, secret), b.message()
				t.UserID, t.ExpiresAt = u.ID, now.Add(30*minute)
				if secret == "dropped" {
					t.Purpose = store.PurposeReset
				}
				m.Token = store.TokenRef{Purpose: t.Purpose, Hash: t.Hash}
				b.token(t)
				b.post(u.ID, m)
				ids = append(ids, m.ID)
			}
			never := b.message()
			never.Token = store.TokenRef{Purpose: store.PurposeExchange, Hash: hashOf("never")}
			b.post(u.ID, never)
			b.claims(now, ids...)
			b.ok(b.redeem("used"))
			b.token(newToken("newer", "superseded"))
			_, err := b.update(u.ID, store.UserPatch{DropTokens: []store.Purpose{store.PurposeReset}})
			b.ok(err)
			b.claims(now.Add(minute), ids[2])
			b.claims(now.Add(30 * minute)) // the token has expired
		},
		"a message comes with the token of the same step": func(b *bench) {
			u := b.user("ada@example.com")
			m := b.message()
			m.Token = store.TokenRef{Purpose: store.PurposeMagicLink, Hash: hashOf("t")}
			c := store.PutToken{Change: by(now), Token: newToken("t", "subject")}
			c.Token.UserID, c.Messages = u.ID, []store.SealedMessage{m}
			b.ok(b.PutToken(b.ctx(), c))
			b.claims(now, m.ID)
		},
		"a message goes with its user": func(b *bench) {
			u, other := b.user("ada@example.com"), b.user("eve@example.com")
			mine, notice := b.message(), b.message()
			mine.UserID = u.ID
			b.post(other.ID, mine, notice)
			b.ok(b.delete(u.ID))
			b.claims(now, notice.ID)
		},
		"of parallel claims one gets a message": func(b *bench) {
			u := b.user("ada@example.com")
			var all []store.SealedMessage
			for range 20 {
				all = append(all, b.message())
			}
			b.post(u.ID, all...)
			var mu sync.Mutex
			times := map[string]int{}
			b.race(func(int) error {
				list, err := b.journal.ClaimMessages(b.ctx(), store.ClaimMessages{Now: now, Until: now.Add(minute), Limit: 3})
				mu.Lock()
				defer mu.Unlock()
				for _, m := range list {
					times[m.ID]++
				}
				return err
			})
			for range parallel { // the messages that were skipped while others held them
				list, err := b.journal.ClaimMessages(b.ctx(), store.ClaimMessages{Now: now, Until: now.Add(minute), Limit: 3})
				b.ok(err)
				if len(list) == 0 {
					break
				}
				for _, m := range list {
					times[m.ID]++
				}
			}
			for _, m := range all {
				equal(b, "times that a message was claimed", times[m.ID], 1)
			}
		},
		"a sweep deletes what will not be sent": func(b *bench) {
			u := b.user("ada@example.com")
			over, dead, kept := b.message(), b.message(), b.message()
			over.ExpiresAt = now
			dead.Token = store.TokenRef{Purpose: store.PurposeMagicLink, Hash: hashOf("never")}
			b.post(u.ID, over, dead, kept)
			n, err := b.Sweep(b.ctx(), now, 100)
			b.ok(err)
			equal(b, "deleted", n, 2)
			b.claims(now, kept.ID)
		},
		"a caller who has gone claims nothing": func(b *bench) {
			u := b.user("ada@example.com")
			m := b.message()
			b.post(u.ID, m)
			_, err := b.journal.ClaimMessages(cancelled(), store.ClaimMessages{Now: now, Until: now.Add(minute), Limit: 1})
			b.gone(err)
			b.gone(b.journal.FinishMessage(cancelled(), store.FinishMessage{ID: m.ID}))
			b.claims(now, m.ID)
		},
	}
}
