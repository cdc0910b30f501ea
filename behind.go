package auth

import (
	"context"
	"sync"
)

// behind is what goes on behind the requests' backs, until it is closed.
type behind struct {
	mu     sync.Mutex
	ctx    context.Context //nolint:containedctx // of no request
	stop   context.CancelFunc
	closed bool
	idle   bool // nothing is run: WithoutBackground
	all    sync.WaitGroup
}

func (b *behind) open(idle bool) {
	b.idle = idle
	b.ctx, b.stop = context.WithCancel(context.Background()) //nolint:gosec,nolintlint // close calls it, which the linter sees only sometimes
}

// run has f run until the end, which its context tells of.
func (b *behind) run(f func(context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed && !b.idle {
		b.all.Go(func() { f(b.ctx) })
	}
}

// close ends everything, and waits for it.
func (b *behind) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.stop()
	b.all.Wait()
}
