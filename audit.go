package auth

import (
	"context"
	"errors"
	"time"

	"github.com/authmount/auth/store"
)

// AuditOptions are about the audit log, which stores keep that can (EventStore).
type AuditOptions struct {
	// Retention is how long events are kept; default 90 days, at least a day. Events
	// hold addresses of clients and of people, and outlive the accounts that they are
	// about: keep them as long as you may and need to. Below zero: for ever.
	Retention time.Duration
}

// WithAuditLog says how long the audit log goes back. A second call replaces the
// first.
func WithAuditLog(o AuditOptions) Option { return func(c *config) { c.audit = o } }

const defaultRetention = 90 * 24 * time.Hour

func (o *AuditOptions) check() error {
	if o.Retention == 0 {
		o.Retention = defaultRetention
	}
	if o.Retention > 0 && o.Retention < 24*time.Hour {
		return errors.New("a Retention of less than a day: name at least 24 hours, or less than zero to keep events for ever")
	}
	return nil
}

// eventWriter is the store's AddEvents, nil if it keeps no events.
func (a *Auth) eventWriter() func(context.Context, []Event) error {
	if s, ok := store.Capability[store.EventStore](a.store); ok {
		return s.AddEvents
	}
	return nil
}

// countWriter is the store's AddCounts, nil if it keeps no figures.
func (a *Auth) countWriter() func(context.Context, store.AddCounts) error {
	if s, ok := store.Capability[store.StatsStore](a.store); ok {
		return s.AddCounts
	}
	return nil
}

// sweepEvents deletes what the audit log has kept long enough, up to n events.
func (a *Auth) sweepEvents(ctx context.Context, n int) (int, error) {
	s, ok := store.Capability[store.EventStore](a.store)
	if !ok || a.cfg.audit.Retention < 0 {
		return 0, nil
	}
	now := a.now()
	return s.SweepEvents(ctx, now.Add(-a.cfg.audit.Retention), now, n)
}
