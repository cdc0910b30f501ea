package memstore_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// Statistics are in the snapshot, and active users are not counted again after it is read.
func TestSnapshotOfFigures(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "auth.db")
	c := store.AddCounts{Counts: []store.Count{{Metric: store.MetricSignIns, Label: "password", At: now, N: 3}}, Active: []store.Activity{{UserID: userID, At: now}}}
	for range 2 {
		s, err := memstore.Open(path)
		ok(t, err)
		ok(t, s.AddCounts(ctx, c))
		ok(t, s.Save(ctx))
	}
	s, err := memstore.Open(path)
	ok(t, err)
	got, err := s.Counts(ctx, store.CountQuery{Metrics: store.Metrics(), From: now.AddDate(0, -1, 0), To: now.Add(time.Hour), By: store.Whole})
	ok(t, err)
	want := map[string]int64{"password": 6, store.PeriodDay: 1, store.PeriodWeek: 1, store.PeriodMonth: 1}
	for _, n := range got {
		if n.N != want[n.Label] {
			t.Errorf("%+v, want %d", n, want[n.Label])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%+v", got)
	}
}
