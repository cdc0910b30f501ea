package storetest

import (
	"time"

	"github.com/authmount/auth/store"
)

// aeon is longer than a store keeps anything.
const aeon = 2 * 9600 * time.Hour

// lasting describes a session that outlives every sweep of these checks.
func (b *bench) lasting(userID string) store.Session {
	b.Helper()
	s := b.newSession(userID)
	s.IdleUntil = now.Add(aeon)
	return s
}

// perishables returns the kinds of rows that expire. Each function adds one row that has
// expired an hour from now, and no other row that ever expires, and returns its expiry.
func (b *bench) perishables() map[string]func() (over time.Time) {
	end := now.Add(time.Hour)
	until := func(add func()) func() time.Time {
		return func() time.Time {
			add()
			return end
		}
	}
	all := map[string]func() time.Time{
		"sessions left alone": until(func() {
			s := b.newSession(b.user("").ID)
			_, err := b.signIn(s)
			b.ok(err)
		}),
		"sessions at their end": until(func() {
			s := b.lasting(b.user("").ID)
			s.ExpiresAt = end
			_, err := b.signIn(s)
			b.ok(err)
		}),
		"tokens": until(func() {
			t := newToken(b.id(), "")
			t.ExpiresAt = end
			b.token(t)
		}),
		"buckets": until(func() {
			b.take(now, store.Draw{Key: b.id(), Rate: store.Rate{Burst: 1, Per: time.Hour}, Cost: 1})
		}),
		"idempotency keys": until(func() {
			c := by(now)
			c.Idempotency = &store.Idempotency{Actor: "a", Route: "r", Key: b.id(), RequestHash: hashOf("x"), ExpiresAt: end}
			_, err := b.CreateUser(b.ctx(), store.CreateUser{Change: c, NewUser: b.newUser("")})
			b.ok(err)
		}),
		"devices": func() time.Time {
			s := b.lasting(b.user("").ID)
			s.Device = "device"
			_, err := b.signIn(s)
			b.ok(err)
			return now.Add(store.DeviceLife)
		},
	}
	if b.admin != nil {
		all["jobs"] = until(func() { b.aJob(1) })
	}
	if b.admin != nil {
		all["impersonations"] = until(func() {
			operator := b.lasting(b.user("").ID)
			_, err := b.signIn(operator)
			b.ok(err)
			i := b.acts(operator, b.user("").ID)
			i.ExpiresAt = end
			b.ok(b.beginActing(i))
		})
	}
	if b.journal != nil {
		all["messages"] = until(func() {
			m := b.message()
			m.ExpiresAt, m.Log = end, store.MessageLog{}
			b.post(b.user("").ID, m)
		})
	}
	if b.journal != nil {
		all["records of messages"] = func() time.Time {
			m := b.message()
			m.CreatedAt, m.ExpiresAt = now, now.Add(aeon)
			m.Log = store.MessageLog{Kind: store.KindMagicLink, Channel: store.ChannelEmail, To: "a•"}
			b.post(b.user("").ID, m)
			b.ok(b.journal.FinishMessage(b.ctx(), store.FinishMessage{ID: m.ID, State: store.MessageSent, At: now, Attempts: 1}))
			return now.Add(store.MessageLogLife)
		}
	}
	return all
}

// sweeps checks Sweep for each kind.
func sweeps(has *bench) checks {
	all := checks{}
	for kind := range has.perishables() {
		all["a sweep of "+kind+" takes nothing early, and no more than its limit"] = func(b *bench) {
			add := b.perishables()[kind]
			sweep := func(what string, at time.Time, limit, want int) {
				b.Helper()
				n, err := b.Sweep(b.ctx(), at, limit)
				b.ok(err)
				equal(b.of("%s", what), "deleted", n, want)
			}
			var over time.Time
			for range 3 {
				over = add()
			}
			sweep("at once", now, 100, 0)
			sweep("a moment before", over.Add(-us), 100, 0)
			sweep("at most two", over, 2, 2)
			sweep("at most two, again", over, 2, 1)
			sweep("at most two, of nothing", over, 2, 0)
		}
	}
	return all
}
