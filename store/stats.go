package store

import (
	"context"
	"time"
)

// StatsStore keeps figures. They are counted by each instance in memory and added
// every few seconds, so that no sign-in waits for a row that all sign-ins change.
type StatsStore interface {
	// AddCounts adds to counts, and counts accounts as active: once in a day, in a
	// week and in a month, however often they come and to whichever instance. All of
	// it or nothing.
	AddCounts(ctx context.Context, c AddCounts) error
	// Counts lists sums by interval, in the order of metric, label and time; what is
	// zero is left out.
	Counts(ctx context.Context, q CountQuery) ([]Count, error)
	// Totals counts what there is now: exactly up to 10,000, beyond that about.
	Totals(ctx context.Context, now time.Time) (Totals, error)
}

// Metric is what is counted.
type Metric string

// The metrics, with what their labels are.
const (
	MetricSignUps        Metric = "sign_ups"          // the method, or the provider
	MetricSignIns        Metric = "sign_ins"          // likewise
	MetricSignInFailures Metric = "sign_in_failures"  // the error code
	MetricActiveUsers    Metric = "active_users"      // "day", "week", "month": an account counts at the first sign-in or refresh of each
	MetricFactors        Metric = "factors"           // "enabled", "disabled"
	MetricMessages       Metric = "messages_sent"     // the kind
	MetricMessageFailed  Metric = "messages_failed"   // the kind
	MetricLimits         Metric = "limits_hit"        // "guesses": of passwords and codes; "requests": all others
	MetricTokensReused   Metric = "tokens_reused"     //nolint:gosec // no credentials; no labels
	MetricDenied         Metric = "operations_denied" // none: operations of the admin side
)

// Metrics are all of them.
func Metrics() []Metric {
	return []Metric{MetricSignUps, MetricSignIns, MetricSignInFailures, MetricActiveUsers, MetricFactors, MetricMessages,
		MetricMessageFailed, MetricLimits, MetricTokensReused, MetricDenied}
}

// Count is how often something happened.
type Count struct {
	Metric Metric
	Label  string
	At     time.Time // the begin of the hour, or of the interval asked for, in UTC
	N      int64
}

// Activity is that an account was active.
type Activity struct {
	UserID string
	At     time.Time
}

// The labels of MetricActiveUsers.
const (
	PeriodDay   = "day"
	PeriodWeek  = "week" // from Monday
	PeriodMonth = "month"
)

// Periods are the begins of the day, week and month that t is in, in UTC, by label.
func Periods(t time.Time) map[string]time.Time {
	y, m, d := t.UTC().Date()
	day := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	return map[string]time.Time{
		PeriodDay:   day,
		PeriodWeek:  day.AddDate(0, 0, -(int(day.Weekday())+6)%7),
		PeriodMonth: time.Date(y, m, 1, 0, 0, 0, 0, time.UTC),
	}
}

// AddCounts is the parameter of StatsStore.AddCounts.
type AddCounts struct {
	Counts []Count // At is cut to the hour
	Active []Activity
}

// CountQuery is the parameter of StatsStore.Counts.
type CountQuery struct {
	Metrics  []Metric
	From, To time.Time // hours that begin within: from, inclusive; to, exclusive
	By       Interval
}

// Interval is what counts are summed by.
type Interval string

// The intervals.
const (
	Hourly Interval = "hour"
	Daily  Interval = "day" // in UTC
	Whole  Interval = "all" // one sum, whose time is CountQuery.From
)

// Totals is what there is.
type Totals struct {
	Users      Total
	WithFactor Total // with an enabled factor
	Banned     Total
}

// Total is a number of rows.
type Total struct {
	N     int64
	Exact bool // else it is about so many
}

// CountedExactly is up to how many rows a Total is exact.
const CountedExactly = 10_000
