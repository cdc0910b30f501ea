package storetest

import (
	"time"

	"github.com/authmount/auth/store"
)

// accounts checks Store.Account.
func accounts() checks {
	return checks{
		"an account is what its two reads are": func(b *bench) {
			u, eve := b.whole(), b.user("eve@example.com")
			for _, id := range []string{eve.ID, u.ID} {
				b.signInOn(id, "one", now)
				t := newToken(b.id(), id)
				t.Purpose, t.UserID = store.PurposeReset, id
				t.CreatedAt, t.ExpiresAt = now, now.Add(time.Hour)
				b.ok(b.put(t))
			}
			email := store.ByEmail("ADA@example.com")
			email.Device = "one"
			for _, key := range []store.UserKey{store.ByID(u.ID), email, store.ByPhone(u.Phone), store.ByIdentity("q", "1"), store.ByID(eve.ID)} {
				for _, at := range []time.Time{now, now.Add(time.Hour)} {
					got, held, err := b.Account(b.ctx(), key, at)
					b.ok(err)
					want, err := b.Credentials(b.ctx(), key)
					b.ok(err)
					equal(b, "account", got, want)
					kept, err := b.UserRecords(b.ctx(), want.User.ID, at)
					b.ok(err)
					equal(b, "what is held", held, kept)
					equal(b, "how many devices are held", len(held.Devices), 1)
					equal(b, "whether a link is held", len(held.Pending) == 1, at.Equal(now))
				}
			}
		},
		"nobody's account is not found": func(b *bench) {
			b.whole()
			for _, key := range []store.UserKey{store.ByID(b.id()), store.ByEmail("eve@example.com"), store.ByPhone("+4930000000"), store.ByIdentity("q", "2"), store.ByID("\x00"), store.ByEmail("\xff@example.com")} {
				_, held, err := b.Account(b.ctx(), key, now)
				b.is(err, store.ErrNotFound)
				equal(b, "what is held", held, store.UserRecords{})
			}
		},
	}
}
