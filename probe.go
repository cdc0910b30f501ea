package auth

import (
	"context"
	"slices"
	"time"

	"github.com/authmount/auth/internal/probe"
	"github.com/authmount/auth/store"
)

// init registers the functions of package probe, for tests.
func init() {
	probe.Of = func(service any) probe.Service { return service.(*Auth).probed() }
	probe.Notice = noticeOf
	probe.BodyWait = func(d time.Duration) any { return Option(func(c *config) { c.bodyWait = d }) }
	probe.Statuses = func() map[string]int {
		m := map[string]int{}
		for c, row := range errorTable {
			m[string(c)] = row.Status
		}
		return m
	}
}

func (a *Auth) probed() probe.Service {
	return probe.Service{
		Hashes:      a.passwords.works,
		Refund:      func(ctx context.Context) error { return a.refunds.flush(ctx) },
		HoldRefunds: func() { a.refunds.after = func(time.Duration, func()) {} },
		Lease:       func() time.Duration { return a.outbox.lease() },
		OpenMessage: func(m store.SealedMessage) (Kind, string, error) {
			o, err := a.openMessage(m)
			return o.Kind, o.To, err
		},
		Routes: func() []probe.Route {
			var list []probe.Route
			for _, r := range a.routes() {
				list = append(list, r.probed())
			}
			return list
		},
	}
}

func (r route) probed() probe.Route {
	within := slices.Contains(r.errors, CodeMissingToken) && slices.Contains(r.errors, CodeSessionEnded)
	p := probe.Route{
		Pattern: r.pattern,
		Limits:  r.limits,
		Session: r.access == signedIn || r.access == enrolling || within,
		Form:    r.form != nil || r.done != "",
		Open:    r.access == open,
	}
	for _, c := range r.errors {
		p.Errors = append(p.Errors, string(c))
	}
	return p
}
