package journal

import (
	"context"
	"sync"
)

// Background runs functions outside requests until it is closed.
type Background struct {
	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // not a request's context
	stop    context.CancelFunc
	closed  bool
	idle    bool // Run does nothing (WithoutBackground)
	running sync.WaitGroup
}

// NewBackground returns a Background. If it is idle, it runs nothing.
func NewBackground(idle bool) *Background {
	ctx, stop := context.WithCancel(context.Background()) //nolint:gosec,nolintlint // Close calls stop; the linter does not always see that
	return &Background{idle: idle, ctx: ctx, stop: stop}
}

// Run runs f in a goroutine. The context of f is canceled by Close.
func (b *Background) Run(f func(context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed && !b.idle {
		b.running.Go(func() { f(b.ctx) })
	}
}

// Close cancels all functions and waits for them.
func (b *Background) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.stop()
	b.running.Wait()
}
