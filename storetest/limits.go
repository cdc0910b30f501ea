package storetest

import (
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// five is a bucket of five tokens that refills one every twelve seconds.
var five = store.Rate{Burst: 5, Per: minute}

func (b *bench) take(at time.Time, draws ...store.Draw) store.Decision {
	b.Helper()
	d, err := b.Take(b.ctx(), draws, at)
	b.ok(err)
	return d
}

// left checks the number of tokens in a bucket.
func (b *bench) left(key string, at time.Time, want int) {
	b.Helper()
	d := b.take(at, store.Draw{Key: key, Rate: five})
	equal(b.of("%s", key), "Decision.Remaining[0]", d.Remaining[0], want)
	equal(b.of("%s", key), "Decision.Allowed", d.Allowed, want > 0)
}

func limits() checks {
	return checks{
		"a bucket gives its burst, then refuses": func(b *bench) {
			draw := store.Draw{Key: "k", Rate: five, Cost: 1}
			for i := range 5 {
				d := b.take(now, draw)
				need(b.of("draw %d", i), "Decision.Allowed", d.Allowed, true)
				need(b.of("draw %d", i), "Decision.Remaining[0]", d.Remaining[0], 4-i)
			}
			d := b.take(now, draw)
			equal(b, "Decision.Allowed", d.Allowed, false)
			equal(b, "Decision.RetryAfter", d.RetryAfter, 12*time.Second)
			equal(b, "Decision.Remaining[0]", d.Remaining[0], 0)
			d = b.take(now.Add(12*time.Second-us), draw)
			equal(b, "Decision.Allowed", d.Allowed, false)
			equal(b, "Decision.RetryAfter", d.RetryAfter, us)
			d = b.take(now.Add(12*time.Second), draw)
			equal(b, "Decision.Allowed", d.Allowed, true)
			b.left("other", now, 5)
			b.left("k", now.Add(time.Hour), 5)
		},
		"asking draws nothing": func(b *bench) {
			for range 10 {
				b.left("k", now, 5)
			}
			b.take(now, store.Draw{Key: "k", Rate: five, Cost: 1})
			for range 2 {
				b.left("k", now.Add(12*time.Second-us), 4)
			}
		},
		"giving back never overfills": func(b *bench) {
			b.take(now, store.Draw{Key: "k", Rate: five, Cost: 3})
			b.take(now, store.Draw{Key: "k", Rate: five, Cost: -1})
			b.left("k", now, 3)
			b.take(now, store.Draw{Key: "k", Rate: five, Cost: -5})
			b.take(now, store.Draw{Key: "k", Rate: five, Cost: -5})
			b.left("k", now, 5)
			d := b.take(now, store.Draw{Key: "k", Rate: five, Cost: 6})
			equal(b, "Decision.Allowed", d.Allowed, false)
		},
		"one refusal leaves all buckets alone": func(b *bench) {
			b.take(now, store.Draw{Key: "empty", Rate: five, Cost: 5})
			d := b.take(now, store.Draw{Key: "full", Rate: five, Cost: 2}, store.Draw{Key: "empty", Rate: five, Cost: 1}, store.Draw{Key: "last", Rate: five, Cost: 2})
			equal(b, "Decision.Allowed", d.Allowed, false)
			equal(b, "Decision.RetryAfter", d.RetryAfter, 12*time.Second)
			listed(b, "Decision.Remaining", d.Remaining, []int{5, 0, 5})
			b.left("full", now, 5)
			b.left("last", now, 5)
		},
		"the longest wait is told": func(b *bench) {
			b.take(now, store.Draw{Key: "a", Rate: five, Cost: 5}, store.Draw{Key: "b", Rate: five, Cost: 5})
			d := b.take(now, store.Draw{Key: "a", Rate: five, Cost: 2}, store.Draw{Key: "b", Rate: five, Cost: 1})
			equal(b, "Decision.Allowed", d.Allowed, false)
			equal(b, "Decision.RetryAfter", d.RetryAfter, 24*time.Second)
		},
		"a key that comes twice is drawn twice": func(b *bench) {
			d := b.take(now, store.Draw{Key: "k", Rate: five, Cost: 2}, store.Draw{Key: "k", Rate: five, Cost: 2})
			equal(b, "Decision.Allowed", d.Allowed, true)
			equal(b, "Decision.Remaining[1]", d.Remaining[1], 1)
			b.left("k", now, 1)
		},
		"parallel draws never exceed the burst": func(b *bench) {
			allowed := make(chan bool, parallel)
			b.race(func(i int) error {
				// Opposite orders must not deadlock.
				draws := []store.Draw{{Key: "a", Rate: five, Cost: 1}, {Key: "b", Rate: five, Cost: 1}}
				if i%2 == 0 {
					slices.Reverse(draws)
				}
				d, err := b.Take(b.ctx(), draws, now)
				allowed <- d.Allowed
				return err
			})
			close(allowed)
			n := 0
			for ok := range allowed {
				if ok {
					n++
				}
			}
			equal(b, "allowed of many at once", n, 5)
		},
		"callers whose clocks differ share a bucket": func(b *bench) {
			ahead, behind := clocks[0].Now, clocks[1].Now
			for name, draws := range map[string][]store.Draw{
				"one":  {{Key: "one", Rate: five, Cost: 1}},
				"more": {{Key: "more", Rate: five, Cost: 1}, {Key: "another", Rate: store.Rate{Burst: 100, Per: minute}, Cost: 1}},
			} {
				b.take(ahead, draws...)
				for i := range 4 {
					d := b.take(behind, draws...)
					need(b.of("%s: draw %d", name, i), "Decision.Allowed", d.Allowed, true)
					need(b.of("%s: draw %d", name, i), "Decision.Remaining[0]", d.Remaining[0], 3-i)
				}
				for at, wait := range map[time.Time]time.Duration{ahead: 12 * time.Second, behind: ahead.Sub(behind) + 12*time.Second} {
					d := b.take(at, draws...)
					equal(b.of("%s: %v", name, at), "Decision.Allowed", d.Allowed, false)
					equal(b.of("%s: %v", name, at), "Decision.RetryAfter", d.RetryAfter, wait)
				}
				back := draws[0]
				back.Cost = -2
				b.take(behind, back)
				b.left(name, behind, 2)
				b.left(name, ahead, 2)
				equal(b.of("%s: later", name), "Decision.Allowed", b.take(ahead.Add(time.Hour), draws...).Allowed, true)
			}
		},
		"a caller who has gone draws nothing": func(b *bench) {
			_, err := b.Take(cancelled(), []store.Draw{{Key: "k", Rate: five, Cost: 1}}, now)
			b.gone(err)
			b.left("k", now, 5)
		},
	}
}

func upkeep() checks {
	return checks{
		"a sweep deletes what is over and nothing else": func(b *bench) {
			u := b.user("ada@example.com")
			over, live, revoked := b.newSession(u.ID), b.session(u.ID), b.session(u.ID)
			over.IdleUntil = now.Add(minute)
			_, err := b.signIn(over)
			b.ok(err)
			spent := b.newSession(u.ID) // in use, but past its end
			spent.ExpiresAt = now.Add(minute)
			_, err = b.signIn(spent)
			b.ok(err)
			_, err = b.revoke(u.ID, store.SessionFilter{ID: revoked.ID})
			b.ok(err)
			b.token(newToken("over", "a"))
			kept := newToken("kept", "b")
			kept.ExpiresAt = now.Add(minute + us)
			b.token(kept)
			b.take(now, store.Draw{Key: "full again", Rate: five, Cost: 5})
			b.take(now.Add(minute), store.Draw{Key: "drawn from", Rate: five, Cost: 2})
			at := now.Add(minute)
			n, err := b.Sweep(b.ctx(), at, 100)
			b.ok(err)
			equal(b, "deleted (two sessions, the token and the bucket)", n, 4)
			list, err := b.Sessions(b.ctx(), u.ID, at)
			b.ok(err)
			equal(b, "number of sessions", len(list), 1)
			_, _, err = b.Session(b.ctx(), live.ID, at)
			b.ok(err)
			_, _, err = b.Session(b.ctx(), revoked.ID, at)
			b.is(err, store.ErrSessionEnded)
			_, err = b.PeekToken(b.ctx(), kept.Purpose, kept.Hash, at)
			b.ok(err)
			b.left("drawn from", at, 3)
			_, err = b.User(b.ctx(), store.ByID(u.ID))
			b.ok(err)
			n, err = b.Sweep(b.ctx(), at, 100)
			b.ok(err)
			equal(b, "deleted", n, 0)
		},
		"a sweep stops at its limit": func(b *bench) {
			for _, s := range []string{"a", "b", "c", "d", "e"} {
				b.token(newToken(s, s))
			}
			total := 0
			for _, want := range []int{2, 2, 1, 0} {
				n, err := b.Sweep(b.ctx(), now.Add(minute), 2)
				b.ok(err)
				equal(b, "deleted", n, want)
				total += n
			}
			equal(b, "deleted in all", total, 5)
		},
		"a sweep's limit is for all kinds together": func(b *bench) {
			u := b.user("ada@example.com")
			for _, s := range []string{"a", "b"} {
				b.token(newToken(s, s))
				b.session(u.ID)
				b.take(now, store.Draw{Key: s, Rate: five, Cost: 1})
			}
			for _, want := range []int{1, 1, 1, 1, 1, 1, 0} {
				n, err := b.Sweep(b.ctx(), now.Add(time.Hour), 1)
				b.ok(err)
				equal(b, "deleted", n, want)
			}
		},
		"the store answers": func(b *bench) {
			b.ok(b.Ping(b.ctx()))
			b.refuses(b.Ping(cancelled()), "the caller has gone")
			_, err := b.Sweep(cancelled(), now, 1)
			b.gone(err)
		},
	}
}
