package auth

import "context"

// What the audit log and figures build on.

func (k kit) Written(ctx context.Context) error {
	if err := k.a.recorder.Flush(ctx); err != nil {
		return storeFailed(err)
	}
	if err := k.a.counter.Flush(ctx); err != nil {
		return storeFailed(err)
	}
	return nil
}

func (k kit) EventsLost() int { return k.a.recorder.Losses() }
