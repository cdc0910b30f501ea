package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/authmount/auth/store"
)

// logbook is an audit log that a test can make fail.
type logbook struct {
	mu      sync.Mutex
	list    []store.Event
	batches []int
	fault   error
}

func (b *logbook) write(_ context.Context, list []store.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fault == nil {
		b.list, b.batches = append(b.list, list...), append(b.batches, len(list))
	}
	return b.fault
}

// alarms are scheduled calls that a test makes.
type alarms struct {
	mu    sync.Mutex
	after []time.Duration
	calls []func()
}

func (a *alarms) set(d time.Duration, f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.after, a.calls = append(a.after, d), append(a.calls, f)
}

// ring makes the newest call.
func (a *alarms) ring() {
	a.mu.Lock()
	f := a.calls[len(a.calls)-1]
	a.mu.Unlock()
	f()
}

func newTestRecorder() (*Recorder, *logbook, *alarms, *bytes.Buffer) {
	book, alarm, out := &logbook{}, &alarms{}, &bytes.Buffer{}
	return &Recorder{write: book.write, after: alarm.set, log: slog.New(slog.NewTextHandler(out, nil)), denied: map[string]int{}}, book, alarm, out
}

func failed(n int) (list []store.Event) {
	for i := range n {
		list = append(list, store.Event{ID: fmt.Sprint(i), Type: store.EventSignInFailed})
	}
	return list
}

// Events without a change are written in batches, a second later, by one call at a time.
func TestEventsAreWrittenInBatches(t *testing.T) {
	r, book, alarm, _ := newTestRecorder()
	for _, e := range failed(600) {
		r.Add([]store.Event{e})
	}
	if len(alarm.calls) != 1 || alarm.after[0] != time.Second || len(book.list) != 0 {
		t.Fatalf("%d calls, after %v; %d written", len(alarm.calls), alarm.after, len(book.list))
	}
	alarm.ring()
	if got := fmt.Sprint(book.batches); got != "[256 256 88]" {
		t.Errorf("batches of %s", got)
	}
	r.Add(failed(1))
	if len(alarm.calls) != 2 {
		t.Errorf("%d calls", len(alarm.calls))
	}
}

// Failed writes are repeated with growing pauses, and the number of waiting events is
// limited. Losses are counted and logged once. Failed sign-ins leave space for denied
// operators.
func TestWaitingEventsAreLimited(t *testing.T) {
	r, book, alarm, out := newTestRecorder()
	book.fault = errors.New("no audit log")
	r.Add(failed(maxWaitingFailures + 5))
	r.Add([]store.Event{{ID: "denied", Type: store.EventAdminDenied}})
	if n := len(r.waiting); n != maxWaitingFailures+1 || r.Lost() != 5 {
		t.Errorf("%d wait, %d are lost", n, r.Lost())
	}
	for range 8 {
		alarm.ring()
	}
	if got := fmt.Sprint(alarm.after); got != "[1s 1s 2s 4s 8s 16s 30s 30s 30s]" {
		t.Errorf("after %s", got)
	}
	if n := strings.Count(out.String(), "are lost"); n != 1 {
		t.Errorf("said %d times:\n%s", n, out)
	}
	book.fault = nil
	alarm.ring()
	if n := len(book.list); n != maxWaitingFailures+1 || book.list[n-1].ID != "denied" || r.waiting != nil {
		t.Errorf("%d written, %d wait", n, len(r.waiting))
	}
	if !strings.Contains(out.String(), "since_start=5") {
		t.Errorf("the number is not said:\n%s", out)
	}
}

// An actor cannot fill the audit log with denied requests.
func TestDenialsAreLimited(t *testing.T) {
	r, _, _, _ := newTestRecorder()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 3 * maxDeniedPerMinute {
		r.Add([]store.Event{{Type: store.EventAdminDenied, At: now, Actor: store.Actor{ID: "eve"}}})
		if i < 3 {
			r.Add([]store.Event{{Type: store.EventAdminDenied, At: now, Actor: store.Actor{ID: "bob"}}})
		}
	}
	if n := len(r.waiting); n != maxDeniedPerMinute+3 {
		t.Errorf("%d wait", n)
	}
	r.Add([]store.Event{{Type: store.EventAdminDenied, At: now.Add(time.Minute), Actor: store.Actor{ID: "eve"}}})
	if n := len(r.waiting); n != maxDeniedPerMinute+4 {
		t.Errorf("%d wait a minute later", n)
	}
}

// Close writes waiting events and reports the ones it could not write.
func TestCloseWritesWaitingEvents(t *testing.T) {
	r, book, _, _ := newTestRecorder()
	r.Add(failed(3))
	book.fault = errors.New("no audit log")
	if err := r.Close(t.Context()); !errors.Is(err, book.fault) || !strings.Contains(err.Error(), "3 events") {
		t.Errorf("%v", err)
	}
	book.fault = nil
	if err := r.Close(t.Context()); err != nil || len(book.list) != 3 {
		t.Errorf("%v, %d written", err, len(book.list))
	}
	if r.Add(failed(1)); r.Lost() != 1 {
		t.Errorf("%d are lost", r.Lost())
	}
}

// Race: events are added while others are written. Each is written once.
func TestRaceOfRecorders(t *testing.T) {
	r, book, _, _ := newTestRecorder()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for n := range 50 {
				r.Add([]store.Event{{ID: fmt.Sprint(i, n), Type: store.EventSignInFailed}})
			}
		})
		wg.Go(func() { _ = r.Flush(t.Context()) })
	}
	wg.Wait()
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range book.list {
		seen[e.ID] = true
	}
	if len(book.list) != 1000 || len(seen) != 1000 {
		t.Errorf("%d written, %d of them different", len(book.list), len(seen))
	}
}

// till collects counts.
type till struct {
	mu    sync.Mutex
	sums  map[store.Metric]int64
	who   []string
	fault error
}

func (b *till) write(_ context.Context, c store.AddCounts) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fault != nil {
		return b.fault
	}
	for _, n := range c.Counts {
		b.sums[n.Metric] += n.N
	}
	for _, a := range c.Active {
		b.who = append(b.who, a.UserID)
	}
	return nil
}

// Counts are added every ten seconds, each once, while others are counted. Accounts
// counted today are not sent again.
func TestRaceOfCounters(t *testing.T) {
	book, alarm := &till{sums: map[store.Metric]int64{}}, &alarms{}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := &Counter{write: book.write, after: alarm.set, now: func() time.Time { return now }, log: slog.New(slog.DiscardHandler),
		counts: map[countKey]int64{}, active: map[string]time.Time{}, seen: map[string]bool{}, codeOf: error.Error}
	book.fault = errors.New("no store")
	c.Observe(store.Event{Type: store.EventSignedIn, UserID: "u0", At: now})
	alarm.ring()
	if len(alarm.calls) != 2 || alarm.after[1] != 10*time.Second {
		t.Errorf("after a failure: %v", alarm.after)
	}
	book.fault = nil
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for range 50 {
				c.Observe(store.Event{Type: store.EventSignedIn, UserID: fmt.Sprint("u", i), At: now})
				c.Observe(store.Event{Type: store.EventRefreshed, UserID: fmt.Sprint("u", i), At: now})
			}
		})
		wg.Go(func() { _ = c.Flush(t.Context()) })
	}
	wg.Wait()
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if book.sums[store.MetricSignIns] != 1001 || len(book.who) != 20 {
		t.Errorf("%v, %d accounts", book.sums, len(book.who))
	}
}

// Every event with a metric counts.
func TestEventMetrics(t *testing.T) {
	for _, c := range []struct {
		e    store.Event
		want countKey
	}{
		{store.Event{Type: store.EventSignedUp, Method: "oauth", Provider: "google"}, countKey{metric: store.MetricSignUps, label: "google"}},
		{store.Event{Type: store.EventSignedIn, Method: "password"}, countKey{metric: store.MetricSignIns, label: "password"}},
		{store.Event{Type: store.EventSignInFailed, Err: errors.New("invalid_credentials")}, countKey{metric: store.MetricSignInFailures, label: "invalid_credentials"}},
		{store.Event{Type: store.EventMFAEnabled}, countKey{metric: store.MetricFactors, label: "enabled"}},
		{store.Event{Type: store.EventMFADisabled}, countKey{metric: store.MetricFactors, label: "disabled"}},
		{store.Event{Type: store.EventMessageFailed, Message: store.KindMagicLink}, countKey{metric: store.MetricMessageFailed, label: string(store.KindMagicLink)}},
		{store.Event{Type: store.EventReused}, countKey{metric: store.MetricTokensReused}},
		{store.Event{Type: store.EventAdminDenied}, countKey{metric: store.MetricDenied}},
	} {
		n := &Counter{write: func(context.Context, store.AddCounts) error { return nil }, after: func(time.Duration, func()) {}, now: func() time.Time { return time.Time{} },
			counts: map[countKey]int64{}, active: map[string]time.Time{}, seen: map[string]bool{}, codeOf: error.Error}
		n.Observe(c.e)
		if len(n.counts) != 1 || n.counts[c.want] != 1 {
			t.Errorf("%s: %v", c.e.Type, n.counts)
		}
	}
}

// An event that the log rejects is lost alone: events with it and after it are written.
// If the log rejects everything, all events keep waiting.
func TestRejectedEventsBlockNoOthers(t *testing.T) {
	r, book, alarm, out := newTestRecorder()
	bad := map[string]bool{"0": true, "7": true, "299": true}
	write := r.write
	r.write = func(ctx context.Context, list []store.Event) error {
		for _, e := range list {
			if bad[e.ID] {
				return errors.New("refused")
			}
		}
		return write(ctx, list)
	}
	r.Add(failed(300))
	alarm.ring()
	if len(book.list) != 297 || r.Lost() != 3 || len(r.waiting) != 0 || strings.Count(out.String(), "is lost") != 3 {
		t.Errorf("%d written, %d lost, %d wait: %s", len(book.list), r.Lost(), len(r.waiting), out)
	}
	tries := 0
	r.write = func(context.Context, []store.Event) error { tries++; return errors.New("down") }
	r.Add(failed(200))
	alarm.ring()
	if len(r.waiting) != 200 || r.Lost() != 3 || tries > maxSplitAttempts {
		t.Errorf("after %d tries %d wait, %d are lost", tries, len(r.waiting), r.Lost())
	}
}

// An event that failed once while others were written is not lost.
func TestTemporaryFailuresLoseNoEvent(t *testing.T) {
	r, book, alarm, _ := newTestRecorder()
	write, faults := r.write, 2 // the batch, and the single event
	r.write = func(ctx context.Context, list []store.Event) error {
		if list[0].ID == "0" && faults > 0 {
			faults--
			return errors.New("away")
		}
		return write(ctx, list)
	}
	r.Add(failed(2))
	alarm.ring()
	if len(book.list) != 2 || r.Lost() != 0 {
		t.Errorf("%d written, %d lost", len(book.list), r.Lost())
	}
}

// Labels from a rejected request may have any length; recorded labels are limited.
func TestLabelsAreBounded(t *testing.T) {
	r, _, _, _ := newTestRecorder()
	long := strings.Repeat("ä", 3000)
	given := &store.Record{Actor: long, Target: long, RequestID: long, ServerID: long}
	r.Add([]store.Event{{Type: store.EventAdminDenied, Record: given}})
	if got := r.waiting[0].Record; len(got.Actor) > maxLabel || len(got.Target) > maxLabel || len(got.RequestID) > maxLabel || len(got.ServerID) > maxLabel || !utf8.ValidString(got.Target) || given.Target != long {
		t.Errorf("%d, %d and %d bytes", len(got.Actor), len(got.Target), len(got.RequestID))
	}
}
