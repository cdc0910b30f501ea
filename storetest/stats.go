package storetest

import (
	"time"

	"github.com/authmount/auth/store"
)

// stats checks ProjectStore.
func stats() checks {
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC) // a Friday
	at := func(hours int) time.Time { return day.Add(time.Duration(hours) * time.Hour) }
	all := store.CountQuery{Metrics: store.Metrics(), From: day.AddDate(0, -2, 0), To: day.AddDate(0, 2, 0)}
	return checks{
		"nothing is counted, or told, for a caller who has gone": func(b *bench) {
			one := store.AddCounts{Counts: []store.Count{{Metric: store.MetricSignIns, Label: "password", At: at(1), N: 1}}}
			b.gone(b.project.AddCounts(cancelled(), one))
			_, err := b.project.Counts(cancelled(), all)
			b.gone(err)
			_, err = b.project.Totals(cancelled(), day)
			b.gone(err)
			list, err := b.project.Counts(b.ctx(), all)
			b.ok(err)
			equal(b, "number of counts", len(list), 0)
		},
		"counts are added up, by the hour and by the day": func(b *bench) {
			for range 2 {
				b.ok(b.project.AddCounts(b.ctx(), store.AddCounts{Counts: []store.Count{
					{Metric: store.MetricSignIns, Label: "password", At: at(1).Add(59 * minute), N: 2},
					{Metric: store.MetricSignIns, Label: "password", At: at(23), N: 1},
					{Metric: store.MetricSignIns, Label: "google", At: at(1), N: 7},
					{Metric: store.MetricSignUps, Label: "password", At: at(-1), N: 1},
				}}))
			}
			b.ok(b.project.AddCounts(b.ctx(), store.AddCounts{}))
			count := func(m store.Metric, label string, hours int, n int64) store.Count {
				return store.Count{Metric: m, Label: label, At: at(hours), N: n}
			}
			for name, c := range map[string]struct {
				q    store.CountQuery
				want []store.Count
			}{
				"hours": {store.CountQuery{Metrics: store.Metrics(), From: at(-24), To: at(24)}, []store.Count{
					count(store.MetricSignIns, "google", 1, 14), count(store.MetricSignIns, "password", 1, 4), count(store.MetricSignIns, "password", 23, 2),
					count(store.MetricSignUps, "password", -1, 2)}},
				"days": {store.CountQuery{Metrics: store.Metrics(), From: at(-24), To: at(24), By: store.Daily}, []store.Count{
					count(store.MetricSignIns, "google", 0, 14), count(store.MetricSignIns, "password", 0, 6), count(store.MetricSignUps, "password", -24, 2)}},
				"in one": {store.CountQuery{Metrics: store.Metrics(), From: at(-24), To: at(24), By: store.Whole}, []store.Count{
					count(store.MetricSignIns, "google", -24, 14), count(store.MetricSignIns, "password", -24, 6), count(store.MetricSignUps, "password", -24, 2)}},
				"one metric":        {store.CountQuery{Metrics: []store.Metric{store.MetricSignUps}, From: at(-24), To: at(24)}, []store.Count{count(store.MetricSignUps, "password", -1, 2)}},
				"the end exclusive": {store.CountQuery{Metrics: store.Metrics(), From: at(1), To: at(23)}, []store.Count{count(store.MetricSignIns, "google", 1, 14), count(store.MetricSignIns, "password", 1, 4)}},
				"nothing":           {store.CountQuery{From: at(-24), To: at(24)}, []store.Count{}},
			} {
				got, err := b.project.Counts(b.ctx(), c.q)
				b.ok(err)
				equal(b.of("%s", name), "counts", got, c.want)
			}
		},
		"an account is active once a day, week and month": func(b *bench) {
			ada, bob := b.id(), b.id()
			add := func(at time.Time, ids ...string) {
				c := store.AddCounts{}
				for _, id := range ids {
					c.Active = append(c.Active, store.Activity{UserID: id, At: at})
				}
				b.ok(b.project.AddCounts(b.ctx(), c))
			}
			add(at(1), ada, bob, ada)
			add(at(23), ada)
			add(at(3*24), ada)  // the Monday after
			add(at(-3*24), bob) // the Tuesday before, in another year
			add(at(25*24), bob) // the month's end
			got, err := b.project.Counts(b.ctx(), all)
			b.ok(err)
			sums := map[string]int64{}
			for _, c := range got {
				equal(b, "the metric", c.Metric, store.MetricActiveUsers)
				if c.At.Month() == time.January || c.Label == store.PeriodWeek {
					sums[c.Label+" "+c.At.Format(time.DateOnly)] = c.N
				}
			}
			equal(b, "sums", sums, map[string]int64{
				"day 2026-01-02": 2, "day 2026-01-05": 1, "day 2026-01-27": 1,
				"week 2025-12-29": 2, "week 2026-01-05": 1, "week 2026-01-26": 1, "month 2026-01-01": 2,
			})
		},
		"of calls at once none counts an account twice": func(b *bench) {
			who := []store.Activity{{UserID: b.id(), At: now}, {UserID: b.id(), At: now}, {UserID: b.id(), At: now}}
			won, _ := b.race(func(i int) error {
				return b.project.AddCounts(b.ctx(), store.AddCounts{Active: who[i%2:], Counts: []store.Count{{Metric: store.MetricSignIns, At: now, N: 1}}})
			})
			equal(b, "calls that worked", won, parallel)
			got, err := b.project.Counts(b.ctx(), store.CountQuery{Metrics: store.Metrics(), From: day, To: at(24)})
			b.ok(err)
			want := map[string]int64{"day": 3, "": parallel}
			for _, c := range got {
				equal(b, "count of "+c.Label, c.N, want[c.Label])
			}
			equal(b, "number of counts", len(got), len(want))
		},
		"totals count accounts": func(b *bench) {
			b.user("eve@example.com")
			bob := b.user("bob@example.com")
			for at, until := range []time.Time{now, now.Add(us)} {
				_, err := b.update(bob.ID, store.UserPatch{BannedUntil: &until})
				b.ok(err)
				got, err := b.project.Totals(b.ctx(), now)
				b.ok(err)
				equal(b, "totals", got, store.Totals{Users: store.Total{N: 2, Exact: true}, WithFactor: store.Total{Exact: true}, Banned: store.Total{N: int64(at), Exact: true}})
			}
			if b.factors != nil {
				b.enrolled()
				got, err := b.project.Totals(b.ctx(), now)
				b.ok(err)
				equal(b, "with a factor", got.WithFactor.N, int64(1))
			}
		},
		"a sweep leaves the figures of a year": func(b *bench) {
			b.ok(b.project.AddCounts(b.ctx(), store.AddCounts{Counts: []store.Count{{Metric: store.MetricSignIns, At: now, N: 1}}, Active: []store.Activity{{UserID: b.id(), At: now}}}))
			_, err := b.Sweep(b.ctx(), now.AddDate(0, 0, 380), 1000)
			b.ok(err)
			got, err := b.project.Counts(b.ctx(), all)
			b.ok(err)
			equal(b, "number of counts", len(got), 4)
		},
		"a caller who has gone gets no figures": func(b *bench) {
			_, err := b.project.Counts(cancelled(), all)
			b.gone(err)
			_, err = b.project.Totals(cancelled(), now)
			b.gone(err)
		},
	}
}
