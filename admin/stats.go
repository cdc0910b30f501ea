package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

var (
	opStats    = operation{pattern: "GET /stats", permission: PermStatsRead}
	opOverview = operation{pattern: "GET /overview", permission: PermStatsRead}
)

// The longest periods of figures, by the hour and by the day.
const (
	maxHours = 31 * 24 * time.Hour
	maxDays  = 400 * 24 * time.Hour
)

// StatsParams pick figures.
type StatsParams struct {
	From     time.Time      `query:"from"`     // rounded down to the interval; default 24 hours before To (hourly) or 30 days (daily)
	To       time.Time      `query:"to"`       // by default now
	Interval store.Interval `query:"interval"` // store.Hourly or store.Daily; by default the former for up to two days
	Metrics  []store.Metric `query:"metrics"`  // none: all
}

// Stats are figures over time.
type Stats struct {
	From, To time.Time
	Interval store.Interval
	Counts   []store.Count // in the order of metric, label and time; zeros are left out
}

// Stats returns counts of events, by the hour or day in UTC. Each instance adds its
// counts every ten seconds, so figures are up to ten seconds old, and a crash loses up to
// ten seconds of them. Errors: CodeValidationFailed, and those of every operation.
func (m *Admin) Stats(ctx context.Context, who Actor, p StatsParams) (Stats, error) {
	if _, err := m.reader(ctx, who, opStats); err != nil {
		return Stats{}, err
	}
	if err := m.settle(&p); err != nil {
		return Stats{}, err
	}
	list, err := m.project.Counts(ctx, store.CountQuery{Metrics: p.Metrics, From: p.From, To: p.To, By: p.Interval})
	if err != nil {
		return Stats{}, m.kit.StoreError(err)
	}
	return Stats{From: p.From, To: p.To, Interval: p.Interval, Counts: list}, nil
}

// settle checks the parameters of figures, and fills in defaults.
func (m *Admin) settle(p *StatsParams) error {
	for _, metric := range p.Metrics {
		if !slices.Contains(store.Metrics(), metric) {
			return m.kit.Invalid("metrics", fmt.Sprintf("%.40q is not a metric; the metrics are %v", metric, store.Metrics()))
		}
	}
	if len(p.Metrics) == 0 {
		p.Metrics = store.Metrics()
	}
	if p.To.IsZero() {
		p.To = m.kit.Now()
	}
	if p.Interval == "" {
		p.Interval = store.Daily
		if p.From.IsZero() || p.To.Sub(p.From) <= 48*time.Hour {
			p.Interval = store.Hourly
		}
	}
	step, most, usual := time.Hour, maxHours, 24*time.Hour
	switch p.Interval {
	case store.Hourly:
	case store.Daily:
		step, most, usual = 24*time.Hour, maxDays, 30*24*time.Hour
	default:
		return m.kit.Invalid("interval", "has to be hour or day")
	}
	if end := p.To.UTC().Truncate(step); !end.Equal(p.To) {
		p.To = end.Add(step) // include the interval that To is in
	}
	if p.From.IsZero() {
		p.From = p.To.Add(-usual)
	}
	p.From = p.From.UTC().Truncate(step)
	switch {
	case p.To.Year() > 9999 || p.From.Year() < 1:
		return m.kit.Invalid("to", "is too far from now")
	case !p.From.Before(p.To):
		return m.kit.Invalid("from", "has to be before to")
	case p.To.Sub(p.From) > most:
		return m.kit.Invalid("from", fmt.Sprintf("is too long before to: at most %d days by the hour, %d by the day", maxHours/(24*time.Hour), maxDays/(24*time.Hour)))
	}
	return nil
}

// OverviewParams pick the period of an overview.
type OverviewParams struct {
	Period string `query:"period"` // "24h", "7d", "30d" or "90d"; empty: "24h"
}

// Overview is the state of the service.
type Overview struct {
	From, To time.Time // the period, which ends with the current hour
	Totals   store.Totals
	Active   map[string]int64 // accounts that were active today, this week and this month (UTC), by store.PeriodDay and so on
	Figures  []Figure         // of the period
	Warnings []Warning
}

// Figure is a sum over a period, and over the period of the same length before it.
type Figure struct {
	Metric store.Metric `json:"metric"`
	Label  string       `json:"label"`
	Count  int64        `json:"count"`
	Before int64        `json:"before"`
}

// Warning is something that an operator should look at.
type Warning struct {
	Code  string `json:"code"`  // see Warnings
	Count int64  `json:"count"` // occurrences in the period; see the constants for exceptions

	Clocks []host.ClockDifference `json:"clocks,omitempty"` // of WarnClocksDiffer
}

// The warnings of an Overview.
const (
	WarnMessagesFailing = "messages_failing"
	WarnLimitsHit       = "limits_hit"
	WarnTokensReused    = "tokens_reused"    //nolint:gosec // no credentials
	WarnEventsLost      = "events_lost"      // from the audit log, by the answering instance, since it started
	WarnKeysAgeing      = "keys_ageing"      // number of secret keys that are older than KeyAgeing, see Diagnostics
	WarnAccountsWaiting = "accounts_waiting" // number of accounts whose holders have not accepted their operator permissions
	WarnClocksDiffer    = "clocks_differ"    // number of clocks that differ from the answering instance's now, see Diagnostics
)

// Periods returns the periods that Overview accepts, by their names on the wire.
func Periods() map[string]time.Duration {
	const day = 24 * time.Hour
	return map[string]time.Duration{"24h": day, "7d": 7 * day, "30d": 30 * day, "90d": 90 * day}
}

// Overview returns totals, the figures of a period and of the period before it, and
// warnings. Errors: CodeValidationFailed, and those of every operation.
func (m *Admin) Overview(ctx context.Context, who Actor, p OverviewParams) (Overview, error) {
	period, known := Periods()[cmp.Or(p.Period, "24h")]
	if !known {
		return Overview{}, m.kit.Invalid("period", "has to be 24h, 7d, 30d or 90d")
	}
	if _, err := m.reader(ctx, who, opOverview); err != nil {
		return Overview{}, err
	}
	now := m.kit.Now()
	o := Overview{To: now.Truncate(time.Hour).Add(time.Hour), Active: map[string]int64{}, Figures: []Figure{}, Warnings: []Warning{}}
	o.From = o.To.Add(-period)
	if err := m.fill(ctx, &o, now, period); err != nil {
		return Overview{}, m.kit.StoreError(err)
	}
	failing := map[store.Metric]string{store.MetricMessageFailed: WarnMessagesFailing, store.MetricLimits: WarnLimitsHit, store.MetricTokensReused: WarnTokensReused}
	sums := map[string]int64{WarnEventsLost: int64(m.kit.EventsLost())}
	for _, f := range o.Figures {
		sums[failing[f.Metric]] += f.Count
	}
	ages, err := m.keyAges(ctx)
	if err != nil {
		return Overview{}, err
	}
	for _, k := range ages {
		if k.Ageing {
			sums[WarnKeysAgeing]++
		}
	}
	waiting, err := m.countWaiting(ctx)
	if err != nil {
		return Overview{}, m.kit.StoreError(err)
	}
	sums[WarnAccountsWaiting] = waiting.N
	for _, code := range []string{WarnMessagesFailing, WarnLimitsHit, WarnTokensReused, WarnEventsLost, WarnKeysAgeing, WarnAccountsWaiting} {
		if sums[code] > 0 {
			o.Warnings = append(o.Warnings, Warning{Code: code, Count: sums[code]})
		}
	}
	health, err := m.kit.Diagnose(ctx)
	if err != nil {
		return Overview{}, err
	}
	if n := len(health.Clocks); n > 0 {
		o.Warnings = append(o.Warnings, Warning{Code: WarnClocksDiffer, Count: int64(n), Clocks: health.Clocks})
	}
	return o, nil
}

// fill reads the totals and figures of an overview.
func (m *Admin) fill(ctx context.Context, o *Overview, now time.Time, period time.Duration) (err error) {
	if o.Totals, err = m.project.Totals(ctx, now); err != nil {
		return err
	}
	metrics := slices.DeleteFunc(store.Metrics(), func(c store.Metric) bool { return c == store.MetricActiveUsers })
	type of struct {
		metric store.Metric
		label  string
	}
	figures := map[of]int{}
	for i, from := range []time.Time{o.From, o.From.Add(-period)} {
		list, err := m.project.Counts(ctx, store.CountQuery{Metrics: metrics, From: from, To: from.Add(period), By: store.Whole})
		if err != nil {
			return err
		}
		for _, c := range list {
			at, ok := figures[of{c.Metric, c.Label}]
			if !ok {
				at = len(o.Figures)
				figures[of{c.Metric, c.Label}] = at
				o.Figures = append(o.Figures, Figure{Metric: c.Metric, Label: c.Label})
			}
			if i == 0 {
				o.Figures[at].Count = c.N
			} else {
				o.Figures[at].Before = c.N
			}
		}
	}
	begins := store.Periods(now)
	oldest := begins[store.PeriodMonth]
	if week := begins[store.PeriodWeek]; week.Before(oldest) {
		oldest = week
	}
	active, err := m.project.Counts(ctx, store.CountQuery{Metrics: []store.Metric{store.MetricActiveUsers}, From: oldest, To: now.Add(time.Hour), By: store.Hourly})
	for label, since := range begins {
		o.Active[label] = 0
		for _, c := range active {
			if c.Label == label && c.At.Equal(since) {
				o.Active[label] = c.N
			}
		}
	}
	return err
}

var statsEndpoints = []endpoint{
	op(opStats, (*Admin).Stats),
	op(opOverview, (*Admin).Overview),
}

type seriesView struct {
	Metric store.Metric `json:"metric"`
	Label  string       `json:"label"`
	Points []pointView  `json:"points"`
}

type pointView struct {
	At    time.Time `json:"at"`
	Count int64     `json:"count"`
}

func (s Stats) reply(*Admin) reply {
	series := []seriesView{}
	for _, c := range s.Counts {
		if n := len(series); n == 0 || series[n-1].Metric != c.Metric || series[n-1].Label != c.Label {
			series = append(series, seriesView{Metric: c.Metric, Label: c.Label})
		}
		last := &series[len(series)-1]
		last.Points = append(last.Points, pointView{c.At, c.N})
	}
	return reply{body: struct {
		From     time.Time      `json:"from"`
		To       time.Time      `json:"to"`
		Interval store.Interval `json:"interval"`
		Series   []seriesView   `json:"series"`
	}{s.From, s.To, s.Interval, series}}
}

type totalView struct {
	N     int64 `json:"count"`
	Exact bool  `json:"exact"`
}

type overviewView struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Totals struct {
		Users      totalView `json:"users"`
		WithFactor totalView `json:"with_factor"`
		Banned     totalView `json:"banned"`
	} `json:"totals"`
	Active   map[string]int64 `json:"active_users"`
	Figures  []Figure         `json:"figures"`
	Warnings []Warning        `json:"warnings"`
}

func (o Overview) reply(*Admin) reply {
	out := overviewView{From: o.From, To: o.To, Active: o.Active, Figures: o.Figures, Warnings: o.Warnings}
	out.Totals.Users, out.Totals.WithFactor, out.Totals.Banned = totalView(o.Totals.Users), totalView(o.Totals.WithFactor), totalView(o.Totals.Banned)
	return reply{body: out}
}
