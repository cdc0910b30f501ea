package storetest

import (
	"time"

	"github.com/authmount/auth/store"
)

// exports checks Store.Held.
func exports(has *bench) checks {
	held := func(b *bench, userID string, at time.Time, want store.UserRecords) {
		b.Helper()
		got, err := b.UserRecords(b.ctx(), userID, at)
		b.ok(err)
		equal(b, "export", got, want)
	}
	all := checks{
		"what is held of a user is listed, and of nobody else": func(b *bench) {
			u, eve := b.whole(), b.user("eve@example.com")
			held(b, u.ID, now, store.UserRecords{})
			held(b, b.id(), now, store.UserRecords{})
			for _, id := range []string{eve.ID, u.ID} {
				b.signInOn(id, "two", now.Add(minute))
				b.signInOn(id, "one", now)
				b.signInOn(id, "one", now.Add(2*minute))
				for _, purpose := range []store.Purpose{store.PurposeReset, store.PurposeMagicLink} {
					t := newToken(b.id(), id+" "+string(purpose))
					t.Data = []byte("data")
					t.Purpose, t.UserID = purpose, id
					t.CreatedAt, t.ExpiresAt = now, now.Add(time.Hour)
					b.ok(b.put(t))
				}
			}
			devices := []store.DeviceRecord{{Device: "one", FirstSeenAt: now, LastSeenAt: now.Add(2 * minute), Origin: store.Origin{Sequence: 3}}, {Device: "two", FirstSeenAt: now.Add(minute), LastSeenAt: now.Add(minute), Origin: store.Origin{Sequence: 2}}}
			of := func(id string) store.UserRecords {
				h := store.UserRecords{Devices: devices}
				for _, p := range []store.Purpose{store.PurposeMagicLink, store.PurposeReset} {
					h.Pending = append(h.Pending, store.TokenRecord{Purpose: p, Subject: id + " " + string(p), Data: []byte("data"), CreatedAt: now, ExpiresAt: now.Add(time.Hour)})
				}
				return h
			}
			want := of(u.ID)
			held(b, u.ID, now, want)
			held(b, u.ID, now.Add(time.Hour), store.UserRecords{Devices: devices})
			_, err := b.update(u.ID, store.UserPatch{DropTokens: []store.Purpose{store.PurposeReset}, DropDevices: true})
			b.ok(err)
			held(b, u.ID, now, store.UserRecords{Pending: want.Pending[:1]})
			held(b, eve.ID, now, of(eve.ID))
		},
	}
	if has.journal == nil {
		return all
	}
	all["messages that wait are listed"] = func(b *bench) {
		u, eve := b.user("ada@example.com"), b.user("eve@example.com")
		m := store.SealedMessage{ID: b.id(), UserID: u.ID, Body: []byte("x"), CreatedAt: now, NextAt: now, ExpiresAt: now.Add(minute)}
		c := store.UpdateUser{Change: by(now), UserID: u.ID}
		c.Messages = []store.SealedMessage{m}
		_, err := b.UpdateUser(b.ctx(), c)
		b.ok(err)
		held(b, u.ID, now, store.UserRecords{Messages: []store.PendingMessage{{CreatedAt: now, ExpiresAt: now.Add(minute)}}})
		held(b, eve.ID, now, store.UserRecords{})
		held(b, u.ID, now.Add(minute), store.UserRecords{})
	}
	return all
}
