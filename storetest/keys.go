package storetest

import (
	"fmt"

	"github.com/authmount/auth"
)

func (b *bench) putKey(k auth.APIKey) (auth.APIKey, error) {
	return b.keys.PutKey(b.ctx(), auth.PutKey{Change: by(now), Key: k})
}

// newKey describes an API key of whom everything is known.
func (b *bench) newKey(secret string) auth.APIKey {
	b.Helper()
	return auth.APIKey{ID: b.id(), Name: "deploy", Hash: hashOf(secret), Scopes: []string{"b", "a"}, CreatedBy: b.id(), ExpiresAt: now.Add(minute)}
}

// keeps wants an API key as the store keeps it.
func (b *bench) keeps(want auth.APIKey) {
	b.Helper()
	got, err := b.keys.Key(b.ctx(), want.ID)
	b.ok(err)
	b.sameKey(got, want)
}

// sameKey compares keys; the store may spell empty lists either way.
func (b *bench) sameKey(got, want auth.APIKey) {
	b.Helper()
	for _, k := range []*auth.APIKey{&got, &want} {
		if len(k.Scopes) == 0 {
			k.Scopes = nil
		}
	}
	equal(b, "APIKey", got, want)
}

// keys are that API keys are kept.
func keys() checks {
	return checks{
		"a key comes back as it went in": func(b *bench) {
			k := b.newKey("k")
			k.CreatedAt, k.Revision = now.Add(minute), 7 // the store's to set
			got, err := b.putKey(k)
			b.ok(err)
			k.CreatedAt, k.Revision = now, 0
			b.sameKey(got, k)
			b.keeps(k)
			bare := auth.APIKey{ID: b.id(), Name: "bare", Hash: hashOf("bare")}
			_, err = b.putKey(bare)
			b.ok(err)
			bare.CreatedAt = now
			b.keeps(bare)
		},
		"an unknown key is not found": func(b *bench) {
			for _, id := range []string{b.id(), "x", ""} {
				_, err := b.keys.Key(b.ctx(), id)
				b.is(err, auth.ErrNotFound)
			}
		},
		"a key is replaced at a new revision": func(b *bench) {
			k := b.newKey("k")
			_, err := b.putKey(k)
			b.ok(err)
			k.Name, k.Scopes, k.RevokedAt, k.ExpiresAt, k.Hash = "other", nil, now.Add(us), now, hashOf("other")
			got, err := b.keys.PutKey(b.ctx(), auth.PutKey{Change: by(now.Add(us)), Key: k})
			b.ok(err)
			k.CreatedAt, k.Revision = now, max(got.Revision, 1)
			b.sameKey(got, k)
			b.keeps(k) // revoked and expired, but there
		},
		"a key's hash is its own": func(b *bench) {
			k, other := b.newKey("k"), b.newKey("other")
			_, err := b.putKey(k)
			b.ok(err)
			other.Hash = hashOf("k")
			_, err = b.putKey(other)
			b.conflict(err, "key")
			_, err = b.keys.Key(b.ctx(), other.ID)
			b.is(err, auth.ErrNotFound)
			k.CreatedAt = now
			b.keeps(k)
		},
		"keys are copies": func(b *bench) {
			k := b.newKey("k")
			got, err := b.putKey(k)
			b.ok(err)
			k.Hash[0], k.Scopes[0], got.Hash[0], got.Scopes[0] = k.Hash[0]^1, "spoilt", got.Hash[0]^1, "spoilt"
			for range 2 {
				got, err := b.keys.Key(b.ctx(), k.ID)
				b.ok(err)
				need(b, "APIKey.Scopes[0], after callers wrote into theirs,", got.Scopes[0], "b")
				need(b, "APIKey.Hash[0], after callers wrote into theirs,", got.Hash[0], hashOf("k")[0])
				got.Hash[0], got.Scopes[0] = got.Hash[0]^1, "spoilt"
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
					c := auth.UpdateUser{Change: by(now), UserID: u.ID, Patch: auth.UserPatch{FullName: ptr(k.ID)}}
					c.By = auth.Authority{Key: &auth.KeyRef{ID: k.ID}}
					_, err := b.UpdateUser(b.ctx(), c)
					return err
				}, func() []string {
					got, err := b.User(b.ctx(), auth.ByID(u.ID))
					return []string{fmt.Sprintf("%+v %v", plain(got), err)}
				}, auth.ErrKeyEnded)
			}
		},
		"a caller who has gone reads no key": func(b *bench) {
			k := b.newKey("k")
			_, err := b.putKey(k)
			b.ok(err)
			_, err = b.keys.Key(cancelled(), k.ID)
			b.gone(err)
		},
	}
}
