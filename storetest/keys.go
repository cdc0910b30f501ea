package storetest

import (
	"fmt"
	"time"

	"github.com/authmount/auth/store"
)

func (b *bench) putKey(k store.APIKey) (store.APIKey, error) {
	return b.project.PutKey(b.ctx(), store.PutKey{Change: by(now), Key: k})
}

// newKey describes an API key with every field set.
func (b *bench) newKey(secret string) store.APIKey {
	b.Helper()
	return store.APIKey{
		ID: b.id(), Name: "deploy", Public: true, Environment: "live", Hash: hashOf(secret), Scopes: []string{"b", "a"}, Networks: []string{"192.0.2.0/24", "::1/128"},
		CreatedBy: b.id(), Adopted: true, HourlyLimit: 7, ExpiresAt: now.Add(minute), PreviousHash: hashOf("before " + secret), PreviousUntil: now.Add(us), RotatedAt: now.Add(2 * us),
	}
}

// keeps checks a stored API key.
func (b *bench) keeps(want store.APIKey) {
	b.Helper()
	got, err := b.project.Key(b.ctx(), want.ID)
	b.ok(err)
	b.sameKey(got, want)
}

// sameKey compares keys. A store may return empty lists or nil.
func (b *bench) sameKey(got, want store.APIKey) {
	b.Helper()
	for _, k := range []*store.APIKey{&got, &want} {
		for _, list := range []*[]string{&k.Scopes, &k.Networks} {
			if len(*list) == 0 {
				*list = nil
			}
		}
		if len(k.PreviousHash) == 0 {
			k.PreviousHash = nil
		}
	}
	equal(b, "APIKey", got, want)
}

// keys checks that API keys are stored.
func keys() checks {
	return merge(keyLists(), checks{
		"a key comes back as it went in": func(b *bench) {
			k := b.newKey("k")
			k.CreatedAt, k.Revision, k.LastUsedAt = now.Add(minute), 7, now // set by the store
			got, err := b.putKey(k)
			b.ok(err)
			k.CreatedAt, k.Revision, k.LastUsedAt = now, 0, time.Time{}
			b.sameKey(got, k)
			b.keeps(k)
			bare := store.APIKey{ID: b.id(), Name: "bare", Hash: hashOf("bare")}
			_, err = b.putKey(bare)
			b.ok(err)
			bare.CreatedAt = now
			b.keeps(bare)
		},
		"an unknown key is not found": func(b *bench) {
			for _, id := range []string{b.id(), "x", ""} {
				_, err := b.project.Key(b.ctx(), id)
				b.is(err, store.ErrNotFound)
			}
		},
		"a key is replaced at a new revision": func(b *bench) {
			k := b.newKey("k")
			_, err := b.putKey(k)
			b.ok(err)
			k.Name, k.Scopes, k.RevokedAt, k.ExpiresAt, k.Hash = "other", nil, now.Add(us), now, hashOf("other")
			k.Public, k.Environment, k.Networks, k.Adopted, k.HourlyLimit, k.CreatedBy, k.PreviousHash, k.PreviousUntil = false, "test", nil, false, 0, "", nil, time.Time{}
			got, err := b.project.PutKey(b.ctx(), store.PutKey{Change: by(now.Add(us)), Key: k})
			b.ok(err)
			k.CreatedAt, k.Revision = now, max(got.Revision, 1)
			b.sameKey(got, k)
			b.keeps(k) // revoked and expired, but stored
		},
		"a key's hash is its own": func(b *bench) {
			k, other := b.newKey("k"), b.newKey("other")
			_, err := b.putKey(k)
			b.ok(err)
			other.Hash = hashOf("k")
			_, err = b.putKey(other)
			b.conflict(err, "key")
			_, err = b.project.Key(b.ctx(), other.ID)
			b.is(err, store.ErrNotFound)
			k.CreatedAt = now
			b.keeps(k)
		},
		"keys are copies": func(b *bench) {
			k := b.newKey("k")
			got, err := b.putKey(k)
			b.ok(err)
			for _, of := range []store.APIKey{k, got} {
				of.Hash[0], of.PreviousHash[0], of.Scopes[0], of.Networks[0] = of.Hash[0]^1, of.PreviousHash[0]^1, "spoilt", "spoilt"
			}
			for range 2 {
				got, err := b.project.Key(b.ctx(), k.ID)
				b.ok(err)
				need(b, "APIKey.Scopes[0], after callers wrote into theirs,", got.Scopes[0], "b")
				need(b, "APIKey.Hash[0], after callers wrote into theirs,", got.Hash[0], hashOf("k")[0])
				list, err := b.project.Keys(b.ctx(), store.KeyQuery{Limit: 1})
				b.ok(err)
				need(b, "the list, after callers wrote into theirs,", list, []store.APIKey{got})
				for _, of := range []store.APIKey{list[0], got} {
					of.Hash[0], of.PreviousHash[0], of.Scopes[0], of.Networks[0] = of.Hash[0]^1, of.PreviousHash[0]^1, "spoilt", "spoilt"
				}
			}
		},
		"a key names the session that created its text": func(b *bench) {
			u := b.user("")
			older, newer := b.session(u.ID), b.session(u.ID)
			k := b.newKey("k")
			k.TextUser, k.TextSequence = b.id(), 99 // set by the store
			put := func(what string, c store.Change, user string, sequence int64) {
				b.Helper()
				got, err := b.project.PutKey(b.ctx(), store.PutKey{Change: c, Key: k})
				b.ok(err)
				equal(b.of("%s", what), "APIKey.TextUser", got.TextUser, user)
				equal(b.of("%s", what), "APIKey.TextSequence", got.TextSequence, sequence)
				b.keeps(got)
			}
			put("a new key", bySession(older), u.ID, 2)
			put("the same text, by another session", bySession(newer), u.ID, 2)
			put("the same text, by code", by(now), u.ID, 2)
			k.Hash = hashOf("next")
			put("another text", bySession(newer), u.ID, 3)
			k.Hash = hashOf("last")
			put("another text, by code", by(now), "", 0)
		},
		"keys with a text of a session, or of a later one, are revoked": func(b *bench) {
			u, eve := b.user(""), b.user("")
			sessions := map[string]store.Session{"older": b.session(u.ID), "reported": b.session(u.ID), "later": b.session(u.ID), "another user's": b.session(eve.ID)}
			reported, _, err := b.Session(b.ctx(), sessions["reported"].ID, now)
			b.ok(err)
			put := func(secret string, c store.Change) string {
				b.Helper()
				k := b.newKey(secret)
				k.CreatedBy = u.ID // adopted, too
				_, err := b.project.PutKey(b.ctx(), store.PutKey{Change: c, Key: k})
				b.ok(err)
				return k.ID
			}
			ids := map[string]string{"code": put("code", by(now))}
			for name, s := range sessions {
				ids[name] = put(name, bySession(s))
			}
			_, err = b.updateAt(now.Add(us), u.ID, store.UserPatch{RevokeKeys: reported.Sequence})
			b.ok(err)
			for name, id := range ids {
				want := time.Time{}
				if name == "reported" || name == "later" {
					want = now.Add(us)
				}
				got, err := b.project.Key(b.ctx(), id)
				b.ok(err)
				equal(b.of("the session that created the text: %s", name), "APIKey.RevokedAt", got.RevokedAt, want)
				equal(b.of("%s", name), "APIKey.Revision", got.Revision, map[bool]int64{true: 0, false: 1}[want.IsZero()])
			}
		},
		"no change lands after its key was revoked": func(b *bench) {
			u := b.user("")
			for round := range 30 {
				k := b.newKey(fmt.Sprint(round))
				_, err := b.putKey(k)
				b.ok(err)
				b.meanwhile(func() error {
					revoked := k
					revoked.RevokedAt = now
					_, err := b.putKey(revoked)
					return err
				}, func() error {
					c := store.UpdateUser{Change: by(now), UserID: u.ID, Patch: store.UserPatch{FullName: ptr(k.ID)}}
					c.By = store.Authority{Key: &store.KeyRef{ID: k.ID}}
					_, err := b.UpdateUser(b.ctx(), c)
					return err
				}, func() []string {
					got, err := b.User(b.ctx(), store.ByID(u.ID))
					return []string{fmt.Sprintf("%+v %v", plain(got), err)}
				}, store.ErrKeyEnded)
			}
		},
		"a caller who has gone reads no key": func(b *bench) {
			k := b.newKey("k")
			_, err := b.putKey(k)
			b.ok(err)
			_, err = b.project.Key(cancelled(), k.ID)
			b.gone(err)
			_, err = b.project.Keys(cancelled(), store.KeyQuery{Limit: 1})
			b.gone(err)
			b.gone(b.project.UseKey(cancelled(), k.ID, now))
		},
	})
}
