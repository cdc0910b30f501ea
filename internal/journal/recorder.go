// Package journal records the events of a service: Recorder writes them to the audit
// log, and Counter adds them to the statistics that operators see. Both write in the background, in batches.
// Background runs functions until the service is closed.
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
	recordAfter   = time.Second      // so long events wait for others to be written with
	recordPause   = 30 * time.Second // the longest between attempts, while they fail
	recordBatch   = 256              // events of one statement
	recordTimeout = 15 * time.Second // of that statement
	recordAtMost  = 10_000           // events that wait
	recordFailed  = 8_000            // failed sign-ins leave the rest of the room to others
	deniedAMinute = 60               // of one actor
	deniedActors  = 10_000           // whose attempts are told apart
)

// Recorder writes events that came without a change to the audit log, behind the
// requests' backs, in batches. What waits is bounded, and lost in a crash.
type Recorder struct {
	write func(ctx context.Context, list []store.Event) error // nil: the store keeps no events
	after func(d time.Duration, f func())                     // time.AfterFunc
	log   *slog.Logger

	mu      sync.Mutex
	waiting []store.Event
	armed   bool          // after was called, and not overdue yet
	pause   time.Duration // after a failure, until the next attempt
	told    bool          // of those that are being lost
	lost    int           // since the process began
	closed  bool

	minute time.Time      // of denied
	denied map[string]int // attempts of that minute, by actor

	flushing sync.Mutex
}

// NewRecorder returns a recorder that writes events with write. With nil it records
// none.
func NewRecorder(write func(context.Context, []store.Event) error, log *slog.Logger) *Recorder {
	return &Recorder{write: write, after: func(d time.Duration, f func()) { time.AfterFunc(d, f) }, log: log, denied: map[string]int{}}
}

// Observe queues an event that has happened, if its type is recorded alone.
func (r *Recorder) Observe(e store.Event) {
	if recordedAlone(e.Type) {
		r.Add([]store.Event{e})
	}
}

// recordedAlone tells whether events of a type come without a change, and belong to
// the audit log. Refreshes do not: there are too many of them.
func recordedAlone(t store.EventType) bool {
	switch t {
	case store.EventSignInFailed, store.EventAdminDenied, store.EventMessageFailed, store.EventSMSBudgetExceeded:
		return true
	}
	return false
}

// Add queues events. It never waits, and never fails its caller.
func (r *Recorder) Add(list []store.Event) {
	if r.write == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range list {
		e.Record = boundedRecord(e.Record)
		room := recordAtMost
		if e.Type == store.EventSignInFailed {
			room = recordFailed
		}
		switch {
		case r.floods(e):
		case r.closed || len(r.waiting) >= room:
			r.lose()
		default:
			r.waiting = append(r.waiting, e)
		}
	}
	r.arm(recordAfter)
}

// floods tells whether an actor has been denied too often in a minute to record that
// once more.
func (r *Recorder) floods(e store.Event) bool {
	if e.Type != store.EventAdminDenied {
		return false
	}
	if minute := e.At.Truncate(time.Minute); minute != r.minute {
		r.minute, r.denied = minute, map[string]int{}
	}
	who := e.Actor.ID
	if _, known := r.denied[who]; !known && len(r.denied) >= deniedActors {
		who = "" // they share what one has
	}
	r.denied[who]++
	return r.denied[who] > deniedAMinute
}

// lose counts an event that finds no place, and says so once until there is room.
func (r *Recorder) lose() {
	r.lost++
	if !r.told {
		r.told = true
		r.log.Error("auth: events are lost: the audit log cannot be written as fast as they come")
	}
}

// Losses is how many events this process has lost.
func (r *Recorder) Losses() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

func (r *Recorder) arm(after time.Duration) {
	if len(r.waiting) > 0 && !r.armed && !r.closed {
		r.armed = true
		r.after(max(after, r.pause), r.overdue)
	}
}

func (r *Recorder) overdue() {
	r.mu.Lock()
	r.armed = false
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	err := r.Flush(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if r.pause == 0 {
			r.log.Warn("auth: audit log not written, trying again", "error", err)
		}
		r.pause = min(max(2*r.pause, recordAfter), recordPause)
	} else {
		r.pause = 0
		if r.told {
			r.log.Error("auth: events were lost", "since_start", r.lost)
			r.told = false
		}
	}
	r.arm(recordAfter)
}

// Flush writes all that waits.
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

// recordTries bounds how often a batch that is refused is divided while nothing of it
// can be written: then it is the log that fails, and not an event.
const recordTries = 32

// writeAll writes a batch. Where the log refuses it for what an event says, the others
// are written, and that one is lost: it must not hold up for ever what comes behind it.
func (r *Recorder) writeAll(ctx context.Context, batch []store.Event) error {
	wrote, tries := false, 0
	var refused []store.Event
	var first error
	queue := [][]store.Event{batch}
	for len(queue) > 0 {
		part := queue[0]
		queue = queue[1:]
		err := r.write(ctx, part)
		tries++
		switch {
		case err == nil:
			wrote = true
		case ctx.Err() != nil:
			return err
		case len(part) > 1:
			queue = append(queue, part[:len(part)/2], part[len(part)/2:])
		default:
			refused = append(refused, part[0])
		}
		if first == nil {
			first = err
		}
		if !wrote && tries >= recordTries {
			return first
		}
	}
	if !wrote {
		return first
	}
	lost := 0
	for _, e := range refused {
		if err := r.write(ctx, []store.Event{e}); err == nil { // it was a moment's fault, and not the event's
			continue
		} else if ctx.Err() != nil {
			return err
		}
		lost++
		r.log.Error("auth: an event cannot be recorded, and is lost", "type", string(e.Type), "id", e.ID, "error", first)
	}
	r.mu.Lock()
	r.lost += lost
	r.mu.Unlock()
	return nil
}

// Close writes what waits, until ctx ends, and takes no more.
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

// maxLabel bounds, in bytes, what a Record of a refused attempt has of its request, which
// may say anything: stores find events by it.
const maxLabel = 512

// boundedRecord is a copy with no label longer than that.
func boundedRecord(r *store.Record) *store.Record {
	if r == nil {
		return nil
	}
	out := *r
	for _, label := range []*string{&out.Actor, &out.Target, &out.RequestID} {
		if len(*label) > maxLabel {
			*label = strings.ToValidUTF8((*label)[:maxLabel], "")
		}
	}
	return &out
}
