package journal

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

const (
	countDelay   = 10 * time.Second // time after which counts are added
	countTimeout = 15 * time.Second // timeout of a statement
	activeBatch  = 1000             // most accounts per statement
	maxActive    = 100_000          // most accounts that are cached as counted today or wait
)

// Counter counts events in this process and adds the counts to the store every few
// seconds, so that a sign-in changes no counter row. A crash loses counts that were not
// added yet. Counts whose statement succeeded without an answer are added twice.
type Counter struct {
	write func(ctx context.Context, c store.AddCounts) error // nil: the store has no statistics
	after func(d time.Duration, f func())                    // time.AfterFunc
	now   func() time.Time
	log   *slog.Logger

	codeOf func(error) string // returns the code of an error

	mu        sync.Mutex
	counts    map[countKey]int64
	active    map[string]time.Time // active accounts that wait to be added
	day       time.Time            // the day of seen
	seen      map[string]bool      // accounts already counted on that day
	scheduled bool
	closed    bool
	failing   bool

	flushing sync.Mutex
}

type countKey struct {
	metric store.Metric
	label  string
	hour   time.Time
}

// NewCounter returns a counter that adds counts with write. If write is nil it counts
// nothing. codeOf returns the label of a failure.
func NewCounter(write func(context.Context, store.AddCounts) error, now func() time.Time, log *slog.Logger, codeOf func(error) string) *Counter {
	return &Counter{
		write: write, after: func(d time.Duration, f func()) { time.AfterFunc(d, f) }, now: now, log: log, codeOf: codeOf,
		counts: map[countKey]int64{}, active: map[string]time.Time{}, seen: map[string]bool{},
	}
}

// Observe counts an event.
func (c *Counter) Observe(e store.Event) {
	if c.write == nil {
		return
	}
	switch e.Type {
	case store.EventSignedUp:
		c.Count(store.MetricSignUps, cmp.Or(e.Provider, e.Method))
	case store.EventSignedIn:
		c.Count(store.MetricSignIns, cmp.Or(e.Provider, e.Method))
		c.markActive(e)
	case store.EventRefreshed:
		c.markActive(e)
	case store.EventSignInFailed:
		c.Count(store.MetricSignInFailures, c.codeOf(e.Err))
	case store.EventMFAEnabled:
		c.Count(store.MetricFactors, "enabled")
	case store.EventMFADisabled:
		c.Count(store.MetricFactors, "disabled")
	case store.EventMessageFailed:
		c.Count(store.MetricMessageFailed, string(e.Message))
	case store.EventReused:
		c.Count(store.MetricTokensReused, "")
	case store.EventAdminDenied:
		c.Count(store.MetricDenied, "")
	}
}

// Count counts one occurrence now. Labels must not come from clients, because each label
// is a row.
func (c *Counter) Count(m store.Metric, label string) {
	if c.write == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[countKey{m, label, c.now().Truncate(time.Hour)}]++
	c.schedule()
}

// markActive records that an account was active.
func (c *Counter) markActive(e store.Event) {
	if c.write == nil || e.UserID == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if day := store.Periods(e.At)[store.PeriodDay]; !day.Equal(c.day) || len(c.seen) >= maxActive {
		c.day, c.seen = day, map[string]bool{} // the store counts every account once per day in any case
	}
	if c.seen[e.UserID] || len(c.active) >= maxActive {
		return
	}
	c.seen[e.UserID], c.active[e.UserID] = true, e.At
	c.schedule()
}

func (c *Counter) schedule() {
	if !c.scheduled && !c.closed {
		c.scheduled = true
		c.after(countDelay, c.flushDue)
	}
}

func (c *Counter) flushDue() {
	c.mu.Lock()
	c.scheduled = false
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	err := c.Flush(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && !c.failing {
		c.log.Warn("auth: cannot add to the statistics, retrying", "error", err)
	}
	if c.failing = err != nil; c.failing {
		c.schedule()
	}
}

// takeBatch takes all counts and one batch of active accounts from those that wait.
func (c *Counter) takeBatch() store.AddCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	var p store.AddCounts
	for k, n := range c.counts {
		p.Counts = append(p.Counts, store.Count{Metric: k.metric, Label: k.label, At: k.hour, N: n})
	}
	clear(c.counts)
	for id, at := range c.active {
		if len(p.Active) == activeBatch {
			break
		}
		p.Active = append(p.Active, store.Activity{UserID: id, At: at})
		delete(c.active, id)
	}
	return p
}

// restore returns counts that could not be added.
func (c *Counter) restore(p store.AddCounts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range p.Counts {
		c.counts[countKey{n.Metric, n.Label, n.At}] += n.N
	}
	for _, a := range p.Active {
		c.active[a.UserID] = a.At
	}
}

// Flush adds all waiting counts.
func (c *Counter) Flush(ctx context.Context) error {
	c.flushing.Lock()
	defer c.flushing.Unlock()
	for {
		p := c.takeBatch()
		if len(p.Counts)+len(p.Active) == 0 {
			return nil
		}
		if err := c.write(ctx, p); err != nil {
			c.restore(p)
			return err
		}
	}
}

// Close adds the waiting counts, until ctx is done.
func (c *Counter) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	return c.Flush(ctx)
}
