package storetest

import (
	"github.com/authmount/auth/store"
)

// clearing checks AdminStore.
func clearing() checks {
	drawn := func(b *bench, keys ...string) {
		b.Helper()
		for _, key := range keys {
			b.take(now, store.Draw{Key: key, Rate: five, Cost: 5})
		}
	}
	return checks{
		"the buckets named are full again, and no others": func(b *bench) {
			u := b.user("ada@example.com")
			drawn(b, "a", "b", "c")
			b.ok(b.admin.ClearLimits(b.ctx(), store.ClearLimits{Change: by(now), UserID: u.ID, Keys: []string{"c", "a", "not there"}}))
			b.left("a", now, 5)
			b.left("b", now, 0)
			b.left("c", now, 5)
			b.ok(b.admin.ClearLimits(b.ctx(), store.ClearLimits{Change: by(now), UserID: u.ID}))
			b.left("b", now, 0)
		},
		"nobody's buckets stay, and so do those of a change that is refused": func(b *bench) {
			u := b.user("ada@example.com")
			drawn(b, "a")
			b.is(b.admin.ClearLimits(b.ctx(), store.ClearLimits{Change: by(now), UserID: b.id(), Keys: []string{"a"}}), store.ErrNotFound)
			b.left("a", now, 0)
			stale := by(now)
			stale.IfUsers = []store.UserAt{{ID: u.ID, Revision: ptr(u.Revision + 1)}}
			b.is(b.admin.ClearLimits(b.ctx(), store.ClearLimits{Change: stale, UserID: u.ID, Keys: []string{"a"}}), store.ErrStale)
			b.left("a", now, 0)
			b.gone(b.admin.ClearLimits(cancelled(), store.ClearLimits{Change: by(now), UserID: u.ID, Keys: []string{"a"}}))
			b.left("a", now, 0)
		},
	}
}
