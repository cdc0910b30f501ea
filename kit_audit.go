package auth

import "context"

// What the audit log and figures build on.

// Written writes what this process has still to record and to count.
func (k kit) Written(ctx context.Context) error {
	if err := k.a.recorder.flush(ctx); err != nil {
		return storeFailed(err)
	}
	if err := k.a.counter.flush(ctx); err != nil {
		return storeFailed(err)
	}
	return nil
}

// EventsLost is how many events this process could not record.
func (k kit) EventsLost() int { return k.a.recorder.losses() }
