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
	countAfter   = 10 * time.Second // so long counts wait to be added
	countTimeout = 15 * time.Second // of the statement that adds them
	activeBatch  = 1000             // accounts of one statement
	activeAtMost = 100_000          // accounts that are remembered as counted today, or wait
)

// Counter counts what happens in this process, and adds it to the store every few
// seconds: no row is changed inside a sign-in. What was not added yet is lost in a
// crash; what was added while its answer got lost is counted twice.
type Counter struct {
	write func(ctx context.Context, c store.AddCounts) error // nil: the store keeps no figures
	after func(d time.Duration, f func())                    // time.AfterFunc
	now   func() time.Time
	log   *slog.Logger

	codeOf func(error) string // of a failure

	mu      sync.Mutex
	counts  map[counted]int64
	active  map[string]time.Time // who was seen, and waits
	day     time.Time            // of seen
	seen    map[string]bool      // who was counted on that day
	armed   bool
	closed  bool
	failing bool

	flushing sync.Mutex
}

type counted struct {
	metric store.Metric
	label  string
	hour   time.Time
}

// NewCounter returns a counter that adds counts with write. With nil it counts nothing.
// codeOf returns the code by which a failure counts.
func NewCounter(write func(context.Context, store.AddCounts) error, now func() time.Time, log *slog.Logger, codeOf func(error) string) *Counter {
	return &Counter{
		write: write, after: func(d time.Duration, f func()) { time.AfterFunc(d, f) }, now: now, log: log, codeOf: codeOf,
		counts: map[counted]int64{}, active: map[string]time.Time{}, seen: map[string]bool{},
	}
}

// Observe counts what an event tells of.
func (c *Counter) Observe(e store.Event) {
	if c.write == nil {
		return
	}
	switch e.Type {
	case store.EventSignedUp:
		c.Count(store.MetricSignUps, cmp.Or(e.Provider, e.Method))
	case store.EventSignedIn:
		c.Count(store.MetricSignIns, cmp.Or(e.Provider, e.Method))
		c.seenNow(e)
	case store.EventRefreshed:
		c.seenNow(e)
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

// Count counts that something happened now. Labels are few: none comes from a client.
func (c *Counter) Count(m store.Metric, label string) {
	if c.write == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[counted{m, label, c.now().Truncate(time.Hour)}]++
	c.arm()
}

// seenNow notes that an account was active.
func (c *Counter) seenNow(e store.Event) {
	if c.write == nil || e.UserID == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if day := store.Periods(e.At)[store.PeriodDay]; !day.Equal(c.day) || len(c.seen) >= activeAtMost {
		c.day, c.seen = day, map[string]bool{} // the store counts everybody once in any case
	}
	if c.seen[e.UserID] || len(c.active) >= activeAtMost {
		return
	}
	c.seen[e.UserID], c.active[e.UserID] = true, e.At
	c.arm()
}

func (c *Counter) arm() {
	if !c.armed && !c.closed {
		c.armed = true
		c.after(countAfter, c.overdue)
	}
}

func (c *Counter) overdue() {
	c.mu.Lock()
	c.armed = false
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	err := c.Flush(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && !c.failing {
		c.log.Warn("auth: figures not added, trying again", "error", err)
	}
	if c.failing = err != nil; c.failing {
		c.arm()
	}
}

// pick takes what waits, of those who were active a batch.
func (c *Counter) pick() store.AddCounts {
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

// giveBack puts back what could not be added.
func (c *Counter) giveBack(p store.AddCounts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range p.Counts {
		c.counts[counted{n.Metric, n.Label, n.At}] += n.N
	}
	for _, a := range p.Active {
		c.active[a.UserID] = a.At
	}
}

// Flush adds all that waits.
func (c *Counter) Flush(ctx context.Context) error {
	c.flushing.Lock()
	defer c.flushing.Unlock()
	for {
		p := c.pick()
		if len(p.Counts)+len(p.Active) == 0 {
			return nil
		}
		if err := c.write(ctx, p); err != nil {
			c.giveBack(p)
			return err
		}
	}
}

// Close adds what waits, until ctx ends.
func (c *Counter) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	return c.Flush(ctx)
}
