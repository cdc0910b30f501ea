// Package journal records the events of a service: Recorder writes them to the audit log,
// and Counter adds them to the statistics for operators. Both write in the background, in
// batches. Background runs functions until the service is closed.
package journal

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

const (
	recordDelay        = time.Second      // time after which a batch is written
	recordPause        = 30 * time.Second // longest pause after failures
	recordBatch        = 256              // most events per statement
	recordTimeout      = 15 * time.Second // timeout of a statement
	maxWaiting         = 10_000           // most events that wait
	maxWaitingFailures = 8_000            // limit for failed sign-ins, which leaves space for other events
	maxDeniedPerMinute = 60               // most denials recorded per actor and minute
	maxDeniedActors    = 10_000           // most actors that are counted separately
)

// Recorder writes events without a change to the audit log, in the background and in
// batches. The number of waiting events is limited. A crash loses them.
type Recorder struct {
	write func(ctx context.Context, list []store.Event) error // nil: the store has no audit log
	after func(d time.Duration, f func())                     // time.AfterFunc
	log   *slog.Logger

	mu         sync.Mutex
	waiting    []store.Event
	scheduled  bool          // a flush is scheduled
	pause      time.Duration // pause before the next attempt after a failure
	lossLogged bool          // a loss was logged and is not over
	lost       int           // events lost since the process started
	closed     bool

	minute time.Time      // the minute of denied
	denied map[string]int // denied attempts in that minute, by actor

	flushing sync.Mutex
}

// NewRecorder returns a recorder that writes events with write. If write is nil it
// records nothing.
func NewRecorder(write func(context.Context, []store.Event) error, log *slog.Logger) *Recorder {
	return &Recorder{write: write, after: func(d time.Duration, f func()) { time.AfterFunc(d, f) }, log: log, denied: map[string]int{}}
}

// Observe queues an event if its type is recorded without a change.
func (r *Recorder) Observe(e store.Event) {
	if recordedAlone(e.Type) {
		r.Add([]store.Event{e})
	}
}

// recordedAlone reports whether events of a type occur without a change and belong in the
// audit log. Refreshes do not, because they are too frequent.
func recordedAlone(t store.EventType) bool {
	switch t {
	case store.EventSignInFailed, store.EventAdminDenied, store.EventMessageFailed, store.EventSMSBudgetExceeded:
		return true
	}
	return false
}

// Add queues events. It never waits and never fails.
func (r *Recorder) Add(list []store.Event) {
	if r.write == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range list {
		e.Record = boundedRecord(e.Record)
		limit := maxWaiting
		if e.Type == store.EventSignInFailed {
			limit = maxWaitingFailures
		}
		switch {
		case r.exceedsDenied(e):
		case r.closed || len(r.waiting) >= limit:
			r.drop()
		default:
			r.waiting = append(r.waiting, e)
		}
	}
	r.schedule(recordDelay)
}

// exceedsDenied reports whether an actor was denied too often in this minute to record it again.
func (r *Recorder) exceedsDenied(e store.Event) bool {
	if e.Type != store.EventAdminDenied {
		return false
	}
	if minute := e.At.Truncate(time.Minute); minute != r.minute {
		r.minute, r.denied = minute, map[string]int{}
	}
	actor := e.Actor.ID
	if _, known := r.denied[actor]; !known && len(r.denied) >= maxDeniedActors {
		actor = "" // all further actors share one limit
	}
	r.denied[actor]++
	return r.denied[actor] > maxDeniedPerMinute
}

// drop counts an event that is dropped, and logs the first one of an overload.
func (r *Recorder) drop() {
	r.lost++
	if !r.lossLogged {
		r.lossLogged = true
		r.log.Error("auth: events are lost because the audit log cannot be written fast enough")
	}
}

// Lost returns how many events this process has lost.
func (r *Recorder) Lost() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

func (r *Recorder) schedule(after time.Duration) {
	if len(r.waiting) > 0 && !r.scheduled && !r.closed {
		r.scheduled = true
		r.after(max(after, r.pause), r.flushDue)
	}
}

func (r *Recorder) flushDue() {
	r.mu.Lock()
	r.scheduled = false
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	err := r.Flush(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if r.pause == 0 {
			r.log.Warn("auth: cannot write the audit log, retrying", "error", err)
		}
		r.pause = min(max(2*r.pause, recordDelay), recordPause)
	} else {
		r.pause = 0
		if r.lossLogged {
			r.log.Error("auth: events were lost", "since_start", r.lost)
			r.lossLogged = false
		}
	}
	r.schedule(recordDelay)
}

// Flush writes all waiting events.
func (r *Recorder) Flush(ctx context.Context) error {
	r.flushing.Lock()
	defer r.flushing.Unlock()
	for {
		r.mu.Lock()
		batch := r.waiting[:min(len(r.waiting), recordBatch):min(len(r.waiting), recordBatch)]
		r.mu.Unlock()
		if len(batch) == 0 {
			return nil
		}
		if err := r.writeAll(ctx, batch); err != nil {
			return err
		}
		r.mu.Lock()
		if r.waiting = r.waiting[len(batch):]; len(r.waiting) == 0 {
			r.waiting = nil
		}
		r.mu.Unlock()
	}
}

// maxSplitAttempts limits how often a rejected batch is split while no part of it can be
// written: then the log has failed, not one event.
const maxSplitAttempts = 32

// writeAll writes a batch. If the log rejects one event, it writes the others and drops
// that one, so that it does not block later events forever.
func (r *Recorder) writeAll(ctx context.Context, batch []store.Event) error {
	written, attempts := false, 0
	var refused []store.Event
	var firstErr error
	queue := [][]store.Event{batch}
	for len(queue) > 0 {
		part := queue[0]
		queue = queue[1:]
		err := r.write(ctx, part)
		attempts++
		switch {
		case err == nil:
			written = true
		case ctx.Err() != nil:
			return err
		case len(part) > 1:
			queue = append(queue, part[:len(part)/2], part[len(part)/2:])
		default:
			refused = append(refused, part[0])
		}
		if firstErr == nil {
			firstErr = err
		}
		if !written && attempts >= maxSplitAttempts {
			return firstErr
		}
	}
	if !written {
		return firstErr
	}
	lost := 0
	for _, e := range refused {
		if err := r.write(ctx, []store.Event{e}); err == nil { // the failure was temporary
			continue
		} else if ctx.Err() != nil {
			return err
		}
		lost++
		r.log.Error("auth: an event cannot be recorded and is lost", "type", string(e.Type), "id", e.ID, "error", firstErr)
	}
	r.mu.Lock()
	r.lost += lost
	r.mu.Unlock()
	return nil
}

// Close writes the waiting events, until ctx is done, and accepts no more.
func (r *Recorder) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	if err := r.Flush(ctx); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		return fmt.Errorf("auth: %d events were not recorded: %w", len(r.waiting), err)
	}
	return nil
}

// maxLabel limits, in bytes, the labels that a Record takes from a rejected request.
// Stores index them.
const maxLabel = 512

// boundedRecord returns a copy with labels of at most maxLabel bytes.
func boundedRecord(r *store.Record) *store.Record {
	if r == nil {
		return nil
	}
	out := *r
	for _, label := range []*string{&out.Actor, &out.Target, &out.RequestID, &out.ServerID} {
		if len(*label) > maxLabel {
			*label = strings.ToValidUTF8((*label)[:maxLabel], "")
		}
	}
	return &out
}
