package storetest

import (
	"github.com/authmount/auth/store"
)

// filling checks AdminStore.FillLimits.
func filling() checks {
	drawn := func(b *bench, keys ...string) {
		b.Helper()
		for _, key := range keys {
			b.take(now, store.Draw{Key: key, Rate: five, Cost: 5})
		}
	}
	fill := func(c store.Change, id string, n int, keys ...string) store.FillLimits {
		f := store.FillLimits{Change: c, UserID: id}
		for _, key := range keys {
			f.Fill = append(f.Fill, store.Draw{Key: key, Rate: five, Cost: n})
		}
		return f
	}
	return checks{
		"the buckets named are filled, and no others": func(b *bench) {
			u := b.user("ada@example.com")
			drawn(b, "a", "b", "c")
			b.ok(b.admin.FillLimits(b.ctx(), fill(by(now), u.ID, 5, "c", "a", "not there")))
			b.left("a", now, 5)
			b.left("b", now, 0)
			b.left("c", now, 5)
			b.left("not there", now, 5)
			b.ok(b.admin.FillLimits(b.ctx(), fill(by(now), u.ID, 5)))
			b.left("b", now, 0)
		},
		"a bucket is filled to a number, and no fuller one is emptied": func(b *bench) {
			u := b.user("ada@example.com")
			drawn(b, "a")
			b.ok(b.admin.FillLimits(b.ctx(), fill(by(now), u.ID, 2, "a")))
			b.left("a", now, 2)
			b.ok(b.admin.FillLimits(b.ctx(), fill(by(now), u.ID, 1, "a")))
			b.left("a", now, 2)
			b.ok(b.admin.FillLimits(b.ctx(), fill(by(now), u.ID, 9, "a"))) // more than it can hold
			b.left("a", now, 5)
			drawn(b, "later")
			at := now.Add(five.Per)
			b.ok(b.admin.FillLimits(b.ctx(), fill(by(at), u.ID, 2, "later"))) // full again by then
			b.left("later", at, 5)
		},
		"a caller whose clock is behind fills": func(b *bench) {
			u := b.user("ada@example.com")
			b.take(clocks[0].Now, store.Draw{Key: "a", Rate: five, Cost: 5})
			b.ok(b.admin.FillLimits(b.ctx(), fill(clocks[1], u.ID, 2, "a")))
			b.left("a", clocks[1].Now, 2)
			b.left("a", clocks[0].Now, 2)
		},
		"nobody's buckets stay, and so do those of a change that is refused": func(b *bench) {
			u := b.user("ada@example.com")
			drawn(b, "a")
			b.is(b.admin.FillLimits(b.ctx(), fill(by(now), b.id(), 5, "a")), store.ErrNotFound)
			b.left("a", now, 0)
			stale := by(now)
			stale.IfUsers = []store.UserAt{{ID: u.ID, Revision: ptr(u.Revision + 1)}}
			b.is(b.admin.FillLimits(b.ctx(), fill(stale, u.ID, 5, "a")), store.ErrStale)
			b.left("a", now, 0)
			b.gone(b.admin.FillLimits(cancelled(), fill(by(now), u.ID, 5, "a")))
			b.left("a", now, 0)
		},
	}
}
