package storetest

import (
	"time"

	"github.com/authmount/auth"
)

// exports checks ExportStore.
func exports(has *bench) checks {
	held := func(b *bench, userID string, at time.Time, want auth.Held) {
		b.Helper()
		got, err := b.exports.Held(b.ctx(), userID, at)
		b.ok(err)
		equal(b, "export", got, want)
	}
	all := checks{
		"what is held of a user is listed, and of nobody else": func(b *bench) {
			u, eve := b.whole(), b.user("eve@example.com")
			held(b, u.ID, now, auth.Held{})
			held(b, b.id(), now, auth.Held{})
			for _, id := range []string{eve.ID, u.ID} {
				b.signInOn(id, "two", now.Add(minute))
				b.signInOn(id, "one", now)
				b.signInOn(id, "one", now.Add(2*minute))
				for _, purpose := range []auth.Purpose{auth.PurposeReset, auth.PurposeMagicLink} {
					t := newToken(b.id(), id+" "+string(purpose))
					t.Data = []byte("data")
					t.Purpose, t.UserID = purpose, id
					t.CreatedAt, t.ExpiresAt = now, now.Add(time.Hour)
					b.ok(b.put(t))
				}
			}
			devices := []auth.HeldDevice{{Device: "one", FirstSeenAt: now, LastSeenAt: now.Add(2 * minute)}, {Device: "two", FirstSeenAt: now.Add(minute), LastSeenAt: now.Add(minute)}}
			of := func(id string) auth.Held {
				h := auth.Held{Devices: devices}
				for _, p := range []auth.Purpose{auth.PurposeMagicLink, auth.PurposeReset} {
					h.Pending = append(h.Pending, auth.HeldToken{Purpose: p, Subject: id + " " + string(p), Data: []byte("data"), CreatedAt: now, ExpiresAt: now.Add(time.Hour)})
				}
				return h
			}
			want := of(u.ID)
			held(b, u.ID, now, want)
			held(b, u.ID, now.Add(time.Hour), auth.Held{Devices: devices})
			_, err := b.update(u.ID, auth.UserPatch{DropTokens: []auth.Purpose{auth.PurposeReset}, DropDevices: true})
			b.ok(err)
			held(b, u.ID, now, auth.Held{Pending: want.Pending[:1]})
			held(b, eve.ID, now, of(eve.ID))
		},
	}
	if has.outbox == nil {
		return all
	}
	all["messages that wait are listed"] = func(b *bench) {
		u, eve := b.user("ada@example.com"), b.user("eve@example.com")
		m := auth.SealedMessage{ID: b.id(), UserID: u.ID, Body: []byte("x"), CreatedAt: now, NextAt: now, ExpiresAt: now.Add(minute)}
		c := auth.UpdateUser{Change: by(now), UserID: u.ID}
		c.Messages = []auth.SealedMessage{m}
		_, err := b.UpdateUser(b.ctx(), c)
		b.ok(err)
		held(b, u.ID, now, auth.Held{Messages: []auth.HeldMessage{{CreatedAt: now, ExpiresAt: now.Add(minute)}}})
		held(b, eve.ID, now, auth.Held{})
		held(b, u.ID, now.Add(minute), auth.Held{})
	}
	return all
}
