package auth

import (
	"context"
	"sync"
	"time"
)

// overloads counts refusals for want of a place in the queue for hashes. A client
// can bring them about at will, so the log has a line for those of a second, not
// one for each.
type overloads struct {
	mu     sync.Mutex
	logged time.Time
	count  int // since then
}

// add counts a refusal, and returns how many there were if a line is due; else 0.
func (o *overloads) add(now time.Time) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count++
	if now.Sub(o.logged) < time.Second {
		return 0
	}
	n := o.count
	o.logged, o.count = now, 0
	return n
}

func (a *Auth) logOverload(ctx context.Context) {
	if n := a.overloads.add(a.now()); n > 0 {
		a.cfg.log.WarnContext(ctx, "auth: overloaded: the queue for password hashes, or a client's share of it, is full", "refused", n)
	}
}
