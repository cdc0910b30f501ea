package auth

import (
	"cmp"
	"context"
	"errors"
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

// counter counts what happens in this process, and adds it to the store every few
// seconds: no row is changed inside a sign-in. What was not added yet is lost in a
// crash; what was added while its answer got lost is counted twice.
type counter struct {
	write func(ctx context.Context, c store.AddCounts) error // nil: the store keeps no figures
	after func(d time.Duration, f func())                    // time.AfterFunc
	now   func() time.Time
	log   *slog.Logger

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

func (a *Auth) newCounter() *counter {
	c := &counter{after: func(d time.Duration, f func()) { time.AfterFunc(d, f) }, now: a.now, log: a.cfg.log,
		counts: map[counted]int64{}, active: map[string]time.Time{}, seen: map[string]bool{}}
	if s, ok := store.Capability[store.StatsStore](a.store); ok {
		c.write = s.AddCounts
	}
	return c
}

// event counts what an event tells of.
func (c *counter) event(e Event) {
	switch e.Type {
	case EventSignedUp:
		c.count(store.MetricSignUps, cmp.Or(e.Provider, e.Method))
	case EventSignedIn:
		c.count(store.MetricSignIns, cmp.Or(e.Provider, e.Method))
		c.seenNow(e)
	case EventRefreshed:
		c.seenNow(e)
	case EventSignInFailed:
		c.count(store.MetricSignInFailures, codeOf(e.Err))
	case EventMFAEnabled:
		c.count(store.MetricFactors, "enabled")
	case EventMFADisabled:
		c.count(store.MetricFactors, "disabled")
	case EventMessageFailed:
		c.count(store.MetricMessageFailed, string(e.Message))
	case EventReused:
		c.count(store.MetricTokensReused, "")
	case EventAdminDenied:
		c.count(store.MetricDenied, "")
	}
}

// codeOf is the code of an error.
func codeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return string(e.Code)
	}
	return string(CodeInternal)
}

// count counts that something happened now. Labels are few: none comes from a client.
func (c *counter) count(m store.Metric, label string) {
	if c.write == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[counted{m, label, c.now().Truncate(time.Hour)}]++
	c.arm()
}

// seenNow notes that an account was active.
func (c *counter) seenNow(e Event) {
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

func (c *counter) arm() {
	if !c.armed && !c.closed {
		c.armed = true
		c.after(countAfter, c.overdue)
	}
}

func (c *counter) overdue() {
	c.mu.Lock()
	c.armed = false
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	err := c.flush(ctx)
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
func (c *counter) pick() store.AddCounts {
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
func (c *counter) giveBack(p store.AddCounts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range p.Counts {
		c.counts[counted{n.Metric, n.Label, n.At}] += n.N
	}
	for _, a := range p.Active {
		c.active[a.UserID] = a.At
	}
}

// flush adds all that waits.
func (c *counter) flush(ctx context.Context) error {
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

// close adds what waits, until ctx ends.
func (c *counter) close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	return c.flush(ctx)
}
