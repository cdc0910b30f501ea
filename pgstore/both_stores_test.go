package pgstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// whole is a store with the methods that these tests call.
type whole interface {
	store.Store
	store.AdminStore
}

func onBoth(t *testing.T, test func(t *testing.T, s whole)) {
	t.Run("memory", func(t *testing.T) { test(t, memstore.New()) })
	t.Run("postgres", func(t *testing.T) {
		s, _ := openSchema(t)
		test(t, s)
	})
}

func done(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// somebody is a user with a session.
func somebody(t *testing.T, s whole, rotated time.Time) store.Session {
	t.Helper()
	c := store.Change{Now: now, By: store.Authority{System: "test"}}
	u, err := s.CreateUser(t.Context(), store.CreateUser{Change: c, NewUser: store.NewUser{User: store.User{ID: uuid.NewString(), CreatedAt: now, UpdatedAt: now}}})
	done(t, err)
	sess := store.Session{ID: uuid.NewString(), UserID: u.ID, AAL: store.LevelAAL1, CreatedAt: now, LastActiveAt: now, RotatedAt: rotated, IdleUntil: now.Add(time.Hour)}
	_, err = s.CreateSession(t.Context(), store.CreateSession{Change: c, NewSession: store.NewSession{Session: sess}})
	done(t, err)
	return sess
}

// Revoking the sessions of filtered users ends the impersonations that the filter matches,
// and no others.
func TestFiltersPickImpersonations(t *testing.T) {
	onBoth(t, func(t *testing.T, s whole) {
		for name, row := range map[string]struct {
			filter store.SessionFilter
			left   []string
		}{
			"all":    {store.SessionFilter{}, nil},
			"since":  {store.SessionFilter{FromSequence: 3}, []string{"early"}},
			"before": {store.SessionFilter{Before: now}, []string{"late"}},
			"at":     {store.SessionFilter{IP: "192.0.2.1"}, []string{"late"}},
			"one":    {store.SessionFilter{ID: "early"}, []string{"late"}},
			"others": {store.SessionFilter{Except: "early"}, []string{"early"}},
		} {
			actor, target := somebody(t, s, now), somebody(t, s, now)
			ids := map[string]string{"early": uuid.NewString(), "late": uuid.NewString()}
			for _, which := range []string{"early", "late"} {
				i := store.Impersonation{ID: ids[which], UserID: target.UserID, ActorID: actor.UserID, ActorSessionID: actor.ID, CreatedAt: now, ExpiresAt: now.Add(time.Hour), IP: "192.0.2.2"}
				if which == "early" {
					i.IP, i.CreatedAt = "192.0.2.1", now.Add(-time.Microsecond)
				} else { // the user's sequence is 3 from then on
					again := target
					again.ID = uuid.NewString()
					_, err := s.CreateSession(t.Context(), store.CreateSession{Change: store.Change{Now: now, By: store.Authority{System: "test"}}, NewSession: store.NewSession{Session: again}})
					done(t, err)
				}
				done(t, s.BeginImpersonation(t.Context(), store.BeginImpersonation{Change: store.Change{Now: now, By: store.Authority{System: "test"}}, Impersonation: i}))
			}
			f := row.filter
			f.ID, f.Except = ids[f.ID], ids[f.Except]
			_, err := s.RevokeSessions(t.Context(), store.RevokeSessions{Change: store.Change{Now: now, By: store.Authority{System: "test"}}, UserID: target.UserID, Filter: f})
			done(t, err)
			live, err := s.Impersonations(t.Context(), target.UserID, now)
			done(t, err)
			var left []string
			for which, id := range ids {
				if slices.ContainsFunc(live, func(i store.Impersonation) bool { return i.ID == id }) {
					left = append(left, which)
				}
			}
			if !slices.Equal(left, row.left) {
				t.Errorf("%s: %v are left", name, left)
			}
		}
	})
}

// Jobs take turns: the next one is the one that has waited longest.
func TestJobsTakeTurns(t *testing.T) {
	onBoth(t, func(t *testing.T, s whole) {
		var ids []string
		for range 6 {
			j := store.Job{ID: uuid.NewString(), Kind: "x", State: store.JobReceiving, Actor: []byte("{}"), Params: []byte("{}"), CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
			done(t, s.PutJob(t.Context(), j))
			done(t, s.AddJobChunk(t.Context(), store.JobChunk{JobID: j.ID, Rows: 1, Input: []byte("x")}))
			_, err := s.StartJob(t.Context(), store.StartJob{Change: store.Change{Now: now, By: store.Authority{System: "test"}}, ID: j.ID, ExpiresAt: now.Add(time.Hour)})
			done(t, err)
			ids = append(ids, j.ID)
		}
		var first []string
		for i := range ids { // each is released earlier than the one before
			j, err := s.ClaimJob(t.Context(), store.ClaimJob{Now: now, Until: now.Add(time.Hour - time.Duration(i)*time.Minute)})
			done(t, err)
			first = append(first, j.ID)
		}
		var second []string
		for range ids {
			at := now.Add(time.Hour)
			j, err := s.ClaimJob(t.Context(), store.ClaimJob{Now: at, Until: at.Add(time.Minute)})
			done(t, err)
			second = append(second, j.ID)
		}
		slices.Reverse(second)
		if !slices.Equal(first, second) {
			t.Errorf("first %v, then, from the last, %v", first, second)
		}
	})
}

// A key of refresh tokens is needed while the oldest of them is valid.
func TestOldestRefreshIsTheOldest(t *testing.T) {
	onBoth(t, func(t *testing.T, s whole) {
		for _, before := range []time.Duration{2, 5, 1, 4, 3, 0} {
			somebody(t, s, now.Add(-before*time.Minute))
		}
		uses, err := s.KeyUses(t.Context(), now)
		done(t, err)
		if !uses.OldestRefresh.Equal(now.Add(-5 * time.Minute)) {
			t.Error(uses.OldestRefresh)
		}
	})
}

// Statistics are kept for 400 days, and active users for 40 days from the start of a
// period; a sweep stops at its limit.
func TestFiguresAreKeptForTheirTime(t *testing.T) {
	onBoth(t, func(t *testing.T, s whole) {
		sweep := func(what string, at time.Time, limit, want int) {
			t.Helper()
			if n, err := s.Sweep(t.Context(), at, limit); n != want || err != nil {
				t.Errorf("%s: %d, %v", what, n, err)
			}
		}
		stats := s.(store.ProjectStore)
		hour, day := now.Truncate(time.Hour), now.Truncate(24*time.Hour)
		var counts []store.Count
		for _, label := range []string{"a", "b", "c"} {
			counts = append(counts, store.Count{Metric: store.MetricSignIns, Label: label, At: now, N: 1})
		}
		done(t, stats.AddCounts(t.Context(), store.AddCounts{Counts: counts}))
		over := hour.Add(400 * 24 * time.Hour)
		sweep("counts, in time", over, 9, 0)
		sweep("two counts", over.Add(time.Microsecond), 2, 2)
		sweep("the third", over.Add(time.Microsecond), 9, 1)
		done(t, stats.AddCounts(t.Context(), store.AddCounts{Active: []store.Activity{{UserID: uuid.NewString(), At: now}, {UserID: uuid.NewString(), At: now}}}))
		over = day.Add(40 * 24 * time.Hour)
		sweep("the days, in time", over, 9, 4) // the weeks and the months, which started earlier
		sweep("one day", over.Add(24*time.Hour), 1, 1)
		sweep("the other", over.Add(24*time.Hour), 9, 1)
	})
}
