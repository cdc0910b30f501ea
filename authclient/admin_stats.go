package authclient

import (
	"context"
	"time"
)

// Figures, from the admin side.

// StatsQuery picks what Admin.Stats returns; what is empty picks nothing out.
type StatsQuery struct {
	From     time.Time `query:"from"`     // Cut to the interval.
	Interval string    `query:"interval"` // In UTC. At most 31 days by the hour, 400 by the day. One of "hour", "day".
	Metrics  []string  `query:"metrics"`  // Names with commas between; absent: all. sign_ups, sign_ins, sign_in_failures, active_users, factors, messages_sent, messages_failed, limits_hit, tokens_reused, operations_denied
	To       time.Time `query:"to"`       // Exclusive; absent: now.
}

// Stats is what Admin.Stats returns.
type Stats struct {
	From     time.Time    `json:"from"`
	Interval string       `json:"interval"`
	Series   []StatsSerie `json:"series"`
	To       time.Time    `json:"to"`
}

// StatsSerie is a part of what the admin side answers.
type StatsSerie struct {
	Label  string            `json:"label"`
	Metric string            `json:"metric"`
	Points []StatsSeriePoint `json:"points"`
}

// StatsSeriePoint is a part of what the admin side answers.
type StatsSeriePoint struct {
	At    time.Time `json:"at"`
	Count int       `json:"count"`
}

// Stats is GET /stats: figures over time. Counted by each instance and added every ten
// seconds. Labels are the method or provider (sign_ups, sign_ins), the error code
// (sign_in_failures), the kind (messages_sent, messages_failed), enabled or disabled
// (factors), and day, week or month (active_users: accounts that were active in it, at its
// begin). Permission: auth.stats.read.
func (a *Admin) Stats(ctx context.Context, q StatsQuery, opts ...CallOption) (*Stats, error) {
	k := a.prepared("GET", "/stats", nil, opts)
	k.query = queryOf(q)
	return run[Stats](ctx, a, k)
}

// OverviewQuery picks what Admin.Overview returns; what is empty picks nothing out.
type OverviewQuery struct {
	Period string `query:"period"` // One of "24h", "7d", "30d", "90d".
}

// Overview is what Admin.Overview returns.
type Overview struct {
	ActiveUsers OverviewActiveUsers `json:"active_users"` // Accounts that were active today, this week (from Monday) and this month, in UTC.
	Figures     []OverviewFigure    `json:"figures"`
	From        time.Time           `json:"from"`
	To          time.Time           `json:"to"`
	Totals      OverviewTotals      `json:"totals"`
	Warnings    []OverviewWarning   `json:"warnings"`
}

// OverviewActiveUsers is accounts that were active today, this week (from Monday) and this
// month, in UTC.
type OverviewActiveUsers struct {
	Day   int `json:"day"`
	Month int `json:"month"`
	Week  int `json:"week"`
}

// OverviewFigure is a part of what the admin side answers.
type OverviewFigure struct {
	Before int    `json:"before"`
	Count  int    `json:"count"`
	Label  string `json:"label"`
	Metric string `json:"metric"`
}

// OverviewTotals is a part of what the admin side answers.
type OverviewTotals struct {
	Banned     Total `json:"banned"`
	Users      Total `json:"users"`
	WithFactor Total `json:"with_factor"`
}

// OverviewWarning is a part of what the admin side answers.
type OverviewWarning struct {
	Code  string `json:"code"`
	Count int    `json:"count"`
}

// Overview is GET /overview: how the service is. Permission: auth.stats.read.
func (a *Admin) Overview(ctx context.Context, q OverviewQuery, opts ...CallOption) (*Overview, error) {
	k := a.prepared("GET", "/overview", nil, opts)
	k.query = queryOf(q)
	return run[Overview](ctx, a, k)
}
