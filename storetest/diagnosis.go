package storetest

import (
	"time"

	"github.com/authmount/auth/store"
)

// diagnosis checks AdminStore.Diagnose.
func diagnosis() checks {
	return checks{
		"messages that wait are counted": func(b *bench) {
			count := func(want store.StoreDiagnosis) {
				b.Helper()
				got, err := b.admin.Diagnose(b.ctx())
				b.ok(err)
				need(b, "StoreDiagnosis.Waiting", got.Waiting, want.Waiting)
				need(b, "StoreDiagnosis.Oldest", got.Oldest, want.Oldest)
			}
			count(store.StoreDiagnosis{})
			if b.journal == nil {
				return
			}
			ids := []string{b.id(), b.id(), b.id()}
			for i, id := range ids {
				at := now.Add([]time.Duration{0, -minute, minute}[i])
				c := store.UpdateUser{Change: by(now), UserID: b.user("").ID, Patch: store.UserPatch{FullName: ptr("Ada")}}
				c.Messages = []store.SealedMessage{{ID: id, Body: []byte("x"), CreatedAt: at, NextAt: at, ExpiresAt: now.Add(2 * minute)}}
				_, err := b.UpdateUser(b.ctx(), c)
				b.ok(err)
			}
			count(store.StoreDiagnosis{Waiting: 3, Oldest: now.Add(-minute)})
			b.ok(b.journal.FinishMessage(b.ctx(), store.FinishMessage{ID: ids[1]}))
			count(store.StoreDiagnosis{Waiting: 2, Oldest: now})
			b.ok(b.journal.FinishMessage(b.ctx(), store.FinishMessage{ID: ids[0], State: store.MessageFailed, At: now, Attempts: 1, KeepUntil: now.Add(minute)}))
			count(store.StoreDiagnosis{Waiting: 1, Oldest: now.Add(minute)})
		},
		"a caller who has gone learns nothing": func(b *bench) {
			_, err := b.admin.Diagnose(cancelled())
			b.gone(err)
		},
	}
}
