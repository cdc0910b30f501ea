package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

type (
	countKey struct {
		metric store.Metric
		label  string
		at     time.Time
	}
	activeKey struct {
		period string
		since  time.Time
		userID string
	}
)

// The times for which counts and active accounts are kept. activeFor is longer than a
// month.
const (
	countsFor = 400 * 24 * time.Hour
	activeFor = 40 * 24 * time.Hour
)

// AddCounts adds to counts.
func (s *Store) AddCounts(ctx context.Context, c store.AddCounts) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, n := range c.Counts {
		s.counts[countKey{n.Metric, n.Label, n.At.UTC().Truncate(time.Hour)}] += n.N
	}
	for _, a := range c.Active {
		for period, since := range store.Periods(a.At) {
			if k := (activeKey{period, since, a.UserID}); !s.active[k] {
				s.active[k] = true
				s.counts[countKey{store.MetricActiveUsers, period, since}]++
			}
		}
	}
	return nil
}

// Counts lists sums by interval.
func (s *Store) Counts(ctx context.Context, q store.CountQuery) ([]store.Count, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	sums := map[countKey]int64{}
	for k, n := range s.counts {
		if !slices.Contains(q.Metrics, k.metric) || k.at.Before(q.From) || !k.at.Before(q.To) {
			continue
		}
		switch q.By {
		case store.Daily:
			k.at = k.at.Truncate(24 * time.Hour)
		case store.Whole:
			k.at = utc(q.From)
		}
		sums[k] += n
	}
	list := []store.Count{}
	for k, n := range sums {
		list = append(list, store.Count{Metric: k.metric, Label: k.label, At: k.at, N: n})
	}
	slices.SortFunc(list, func(a, b store.Count) int {
		return cmp.Or(cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Label, b.Label), a.At.Compare(b.At))
	})
	return list, nil
}

// Totals counts the current accounts.
func (s *Store) Totals(ctx context.Context, now time.Time) (t store.Totals, err error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return t, err
	}
	defer unlock()
	t = store.Totals{Users: store.Total{Exact: true}, WithFactor: store.Total{Exact: true}, Banned: store.Total{Exact: true}}
	for _, u := range s.users {
		t.Users.N++
		if u.MFAEnabled {
			t.WithFactor.N++
		}
		if u.Banned(now) {
			t.Banned.N++
		}
	}
	return t, nil
}

// sweepStats deletes up to limit counts and active accounts that are too old, and returns
// the number of them.
func (s *Store) sweepStats(now time.Time, limit int) (n int) {
	for k := range s.counts {
		if n < limit && k.at.Before(now.Add(-countsFor)) {
			delete(s.counts, k)
			n++
		}
	}
	for k := range s.active {
		if n < limit && k.since.Before(now.Add(-activeFor)) {
			delete(s.active, k)
			n++
		}
	}
	return n
}
