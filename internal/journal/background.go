package journal

import (
	"context"
	"sync"
)

// Background is what goes on behind the requests' backs, until it is closed.
type Background struct {
	mu     sync.Mutex
	ctx    context.Context //nolint:containedctx // of no request
	stop   context.CancelFunc
	closed bool
	idle   bool // nothing is run: WithoutBackground
	all    sync.WaitGroup
}

// NewBackground returns a background. If it is idle, it runs nothing.
func NewBackground(idle bool) *Background {
	ctx, stop := context.WithCancel(context.Background()) //nolint:gosec,nolintlint // Close calls it, which the linter sees only sometimes
	return &Background{idle: idle, ctx: ctx, stop: stop}
}

// Run has f run until the end, which its context tells of.
func (b *Background) Run(f func(context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed && !b.idle {
		b.all.Go(func() { f(b.ctx) })
	}
}

// Close ends everything, and waits for it.
func (b *Background) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.stop()
	b.all.Wait()
}
