package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/authmount/auth"
)

type (
	countKey struct {
		metric auth.Metric
		label  string
		at     time.Time
	}
	activeKey struct {
		period string
		since  time.Time
		userID string
	}
)

// For how long figures are kept, and who was active: longer than a month.
const (
	countsFor = 400 * 24 * time.Hour
	activeFor = 40 * 24 * time.Hour
)

// AddCounts adds to counts.
func (s *Store) AddCounts(ctx context.Context, c auth.AddCounts) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, n := range c.Counts {
		s.counts[countKey{n.Metric, n.Label, n.At.UTC().Truncate(time.Hour)}] += n.N
	}
	for _, a := range c.Active {
		for period, since := range auth.Periods(a.At) {
			if k := (activeKey{period, since, a.UserID}); !s.active[k] {
				s.active[k] = true
				s.counts[countKey{auth.MetricActiveUsers, period, since}]++
			}
		}
	}
	return nil
}

// Counts lists sums by interval.
func (s *Store) Counts(ctx context.Context, q auth.CountQuery) ([]auth.Count, error) {
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
		case auth.Daily:
			k.at = k.at.Truncate(24 * time.Hour)
		case auth.Whole:
			k.at = utc(q.From)
		}
		sums[k] += n
	}
	list := []auth.Count{}
	for k, n := range sums {
		list = append(list, auth.Count{Metric: k.metric, Label: k.label, At: k.at, N: n})
	}
	slices.SortFunc(list, func(a, b auth.Count) int {
		return cmp.Or(cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Label, b.Label), a.At.Compare(b.At))
	})
	return list, nil
}

// Totals counts what there is now.
func (s *Store) Totals(ctx context.Context, now time.Time) (t auth.Totals, err error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return t, err
	}
	defer unlock()
	t = auth.Totals{Users: auth.Total{Exact: true}, WithFactor: auth.Total{Exact: true}, Banned: auth.Total{Exact: true}}
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

// sweepStats deletes up to limit figures that are too old, and counts them.
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
