package storetest

import (
	"time"

	"github.com/authmount/auth/store"
)

// counted checks the counts by key.
func (b *bench) counted(at time.Time, want store.KeyUses) {
	b.Helper()
	got, err := b.admin.KeyUses(b.ctx(), at)
	b.ok(err)
	for _, m := range []*map[string]int{&got.Factors, &got.RecoveryCodes, &got.Messages, &want.Factors, &want.RecoveryCodes, &want.Messages} {
		if *m == nil {
			*m = map[string]int{}
		}
	}
	equal(b, "what is kept", got, want)
}

func rotation() checks {
	return checks{
		"what is kept under each key is counted": func(b *bench) {
			b.counted(now, store.KeyUses{})
			want := store.KeyUses{}
			if b.factors != nil {
				for i, key := range []string{"00000001", "00000002", "00000002"} {
					u := b.user(b.id() + "@example.com")
					f := b.newFactor(u.ID)
					f.Secret = []byte(key + string(rune('a'+i)))
					b.ok(b.putFactor(f))
					if i == 0 {
						continue // pending
					}
					s := b.newSession(u.ID)
					s.AAL = store.LevelAAL2
					e := store.EnableFactor{Change: by(now), UserID: u.ID, FactorID: f.ID, State: []byte("1"), Completion: store.Completion{Create: &store.NewSession{Session: s}}}
					e.Recovery = [][]byte{[]byte("00000003" + b.id()), []byte("00000004" + b.id())}
					_, err := b.factors.EnableFactor(b.ctx(), e)
					b.ok(err)
				}
				short := b.newFactor(b.user("").ID)
				short.Secret = []byte("short")
				b.ok(b.putFactor(short))
				want.Factors = map[string]int{"00000001": 1, "00000002": 2, "short": 1}
				want.RecoveryCodes = map[string]int{"00000003": 2, "00000004": 2}
				want.OldestRefresh = now
			}
			if b.journal != nil {
				c := by(now)
				for i, key := range []string{"00000005", "00000005", "00000006"} {
					until := now.Add(minute * time.Duration(i))
					c.Messages = append(c.Messages, store.SealedMessage{ID: b.id(), Body: []byte(key + "body"), CreatedAt: now, NextAt: now, ExpiresAt: until})
				}
				_, err := b.CreateUser(b.ctx(), store.CreateUser{Change: c, NewUser: b.newUser("")})
				b.ok(err)
				want.Messages = map[string]int{"00000005": 1, "00000006": 1} // the first has expired
			}
			b.counted(now, want)
			b.counted(now, want) // counting changes nothing
		},
		"a secret that is sealed anew counts anew": func(b *bench) {
			if b.factors == nil {
				return
			}
			u, s, f := b.enrolled()
			anew := using(f, "101")
			anew.Secret = []byte("00000009anew")
			_, err := b.factors.UseFactor(b.ctx(), anew)
			b.ok(err)
			codes := store.PutRecoveryCodes{Change: by(now), UserID: u.ID, Hashes: [][]byte{[]byte("00000009" + b.id())}}
			b.ok(b.factors.PutRecoveryCodes(b.ctx(), codes))
			b.counted(now, store.KeyUses{Factors: map[string]int{"00000009": 1}, RecoveryCodes: map[string]int{"00000009": 1}, OldestRefresh: s.RotatedAt})
		},
		"the oldest refresh token of a live session is told": func(b *bench) {
			u := b.user("ada@example.com")
			old, ended, expired := b.newSession(u.ID), b.newSession(u.ID), b.newSession(u.ID)
			old.RotatedAt, ended.RotatedAt, expired.RotatedAt = now.Add(-2*minute), now.Add(-3*minute), now.Add(-4*minute)
			expired.ExpiresAt = now.Add(minute)
			for _, s := range []store.Session{old, ended, expired, b.newSession(u.ID)} {
				_, err := b.signIn(s)
				b.ok(err)
			}
			b.counted(now, store.KeyUses{OldestRefresh: expired.RotatedAt})
			_, err := b.revoke(u.ID, store.SessionFilter{ID: ended.ID})
			b.ok(err)
			b.counted(now.Add(minute), store.KeyUses{OldestRefresh: old.RotatedAt})
			_, err = b.advance(old.ID, 0, now)
			b.ok(err)
			b.counted(now.Add(minute), store.KeyUses{OldestRefresh: now})
			b.counted(now.Add(2*time.Hour), store.KeyUses{}) // everything has expired
		},
		"a caller who has gone learns nothing": func(b *bench) {
			_, err := b.admin.KeyUses(cancelled(), now)
			b.gone(err)
		},
	}
}
