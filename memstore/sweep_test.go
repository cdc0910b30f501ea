package memstore_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// A sweep deletes entries from the moment they expire, and not a moment before; it stops
// at its limit.
func TestSweepTakesNothingEarly(t *testing.T) {
	const moment = time.Microsecond
	for name, row := range map[string]struct {
		add  func(s *memstore.Store)
		over time.Time
		n    int
	}{
		"jobs": {func(s *memstore.Store) {
			for range 2 {
				ok(t, s.PutJob(t.Context(), store.Job{ID: uuid.NewString(), State: store.JobReceiving, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}))
			}
		}, now.Add(time.Hour), 2},
		"impersonations": {func(s *memstore.Store) {
			sess := newSession(sessionID)
			sess.IdleUntil = now.Add(100 * time.Hour)
			_, err := s.CreateUser(t.Context(), store.CreateUser{Change: system(now), NewUser: store.NewUser{User: store.User{ID: userID}}})
			ok(t, err)
			_, err = s.CreateSession(t.Context(), store.CreateSession{Change: system(now), NewSession: store.NewSession{Session: sess}})
			ok(t, err)
			for range 2 {
				i := store.Impersonation{ID: uuid.NewString(), UserID: userID, ActorID: userID, ActorSessionID: sessionID, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
				ok(t, s.BeginImpersonation(t.Context(), store.BeginImpersonation{Change: system(now), Impersonation: i}))
			}
		}, now.Add(time.Hour), 2},
		"counts": {func(s *memstore.Store) {
			for _, label := range []string{"a", "b"} {
				ok(t, s.AddCounts(t.Context(), store.AddCounts{Counts: []store.Count{{Metric: store.MetricSignIns, Label: label, At: now, N: 1}}}))
			}
		}, now.Truncate(time.Hour).Add(400*24*time.Hour + moment), 2},
		"who was active": {func(s *memstore.Store) {
			ok(t, s.AddCounts(t.Context(), store.AddCounts{Active: []store.Activity{{UserID: userID, At: now}}}))
		}, now.AddDate(0, 0, 45), 3}, // of the day, the week and the month; their counts expire much later
	} {
		s := memstore.New()
		row.add(s)
		sweep := func(at time.Time, limit, want int) {
			t.Helper()
			if n, err := s.Sweep(t.Context(), at, limit); n != want || err != nil {
				t.Errorf("%s, at most %d at %v: %d, %v", name, limit, at, n, err)
			}
		}
		if name != "who was active" { // these three expire on days of their own
			sweep(row.over.Add(-moment), 100, 0)
		}
		sweep(now, 100, 0)
		sweep(row.over, 1, 1)
		sweep(row.over, 100, row.n-1)
		sweep(row.over, 100, 0)
	}
}
