package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// keyLists checks Keys, UseKey and PutKey.IfRevision.
func keyLists() checks {
	return checks{
		"keys are listed, newest first, by page": func(b *bench) {
			var all []store.APIKey
			for i := range 12 {
				k := b.newKey(fmt.Sprint(i))
				k.Public = i%2 == 0
				if i%3 == 0 {
					k.RevokedAt = now
				}
				if i%4 == 0 {
					k.ExpiresAt = now
				}
				k, err := b.project.PutKey(b.ctx(), store.PutKey{Change: by(now.Add(time.Duration(i/3) * us)), Key: k})
				b.ok(err)
				all = append(all, k)
			}
			slices.SortFunc(all, func(x, y store.APIKey) int { return x.Cursor().Compare(y.Cursor()) })
			for name, q := range map[string]store.KeyQuery{
				"all": {}, "public": {Public: ptr(true)}, "secret": {Public: ptr(false)}, "live": {LiveAt: now}, "live and public": {LiveAt: now, Public: ptr(true)},
			} {
				var want []string
				for _, k := range all {
					if (q.Public == nil || *q.Public == k.Public) && (q.LiveAt.IsZero() || k.Live(q.LiveAt)) {
						want = append(want, k.ID)
					}
				}
				for _, q.Limit = range []int{1, 5, 100} {
					b.keyPages(name, q, want)
				}
			}
		},
		"an empty list of keys is no error": func(b *bench) {
			list, err := b.project.Keys(b.ctx(), store.KeyQuery{Limit: 10})
			b.ok(err)
			equal(b, "the list", list, []store.APIKey{})
		},
		"a key's use is noted once a minute": func(b *bench) {
			k, err := b.putKey(b.newKey("k"))
			b.ok(err)
			use := func(at, want int) {
				b.Helper()
				b.ok(b.project.UseKey(b.ctx(), k.ID, now.Add(us*time.Duration(at))))
				k.LastUsedAt = now.Add(us * time.Duration(want))
				b.keeps(k)
			}
			use(5, 5)
			use(4, 5)
			use(5+60e6-1, 5)
			use(5+60e6, 5+60e6)
			k.Name = "renamed"
			k, err = b.project.PutKey(b.ctx(), store.PutKey{Change: by(now), Key: k, IfRevision: ptr(int64(0))})
			b.ok(err)
			equal(b, "LastUsedAt of a key that is replaced", k.LastUsedAt, now.Add(us*time.Duration(5+60e6)))
			for _, id := range []string{b.id(), "x", ""} {
				b.ok(b.project.UseKey(b.ctx(), id, now))
			}
		},
		"a key is replaced only as it was seen": func(b *bench) {
			k := b.newKey("k")
			unseen := store.PutKey{Change: by(now), Key: k, IfRevision: ptr(int64(0))}
			_, err := b.project.PutKey(b.ctx(), unseen)
			b.is(err, store.ErrStale)
			_, err = b.project.Key(b.ctx(), k.ID)
			b.is(err, store.ErrNotFound)
			k, err = b.putKey(k)
			b.ok(err)
			k.Name = "first"
			seen := k.Revision
			first, err := b.project.PutKey(b.ctx(), store.PutKey{Change: by(now), Key: k, IfRevision: &seen})
			b.ok(err)
			k.Name = "second"
			_, err = b.project.PutKey(b.ctx(), store.PutKey{Change: by(now), Key: k, IfRevision: &seen})
			b.is(err, store.ErrStale)
			b.keeps(first)
		},
		"of parallel replacements of a key as it was seen one happens": func(b *bench) {
			k, err := b.putKey(b.newKey("k"))
			b.ok(err)
			won, _ := b.race(func(i int) error {
				next := k
				next.Hash = hashOf(fmt.Sprint("next", i))
				_, err := b.project.PutKey(b.ctx(), store.PutKey{Change: by(now), Key: next, IfRevision: &k.Revision})
				return err
			}, store.ErrStale)
			equal(b, "successful parallel calls", won, 1)
		},
	}
}

// keyPages reads a list page by page and compares it with want.
func (b *bench) keyPages(name string, q store.KeyQuery, want []string) {
	b.Helper()
	got := []string{}
	for range len(want) + 2 {
		list, err := b.project.Keys(b.ctx(), q)
		b.ok(err)
		for _, k := range list {
			got = append(got, k.ID)
		}
		if len(list) < q.Limit {
			break
		}
		q.After = list[len(list)-1].Cursor()
	}
	q.After = nil
	b.page(name, q, got, want)
}
