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

// logbook is an audit log that a test can close.
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

// alarms are calls for later, which a test makes when it wants.
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

// ring makes the call that was set last.
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

// What comes without a change is written in batches, a second later; one call at a
// time is under way.
func TestEventsComeInBatches(t *testing.T) {
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

// What cannot be written is tried again, with growing pauses, and no more waits than
// there is room for; what is lost is counted, and said once. Failed sign-ins leave
// room for what operators were denied.
func TestEventsThatWaitAreBounded(t *testing.T) {
	r, book, alarm, out := newTestRecorder()
	book.fault = errors.New("no audit log")
	r.Add(failed(recordFailed + 5))
	r.Add([]store.Event{{ID: "denied", Type: store.EventAdminDenied}})
	if n := len(r.waiting); n != recordFailed+1 || r.Losses() != 5 {
		t.Errorf("%d wait, %d are lost", n, r.Losses())
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
	if n := len(book.list); n != recordFailed+1 || book.list[n-1].ID != "denied" || r.waiting != nil {
		t.Errorf("%d written, %d wait", n, len(r.waiting))
	}
	if !strings.Contains(out.String(), "since_start=5") {
		t.Errorf("the number is not said:\n%s", out)
	}
}

// Nobody fills the audit log by being denied.
func TestDeniedAttemptsAreBounded(t *testing.T) {
	r, _, _, _ := newTestRecorder()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 3 * deniedAMinute {
		r.Add([]store.Event{{Type: store.EventAdminDenied, At: now, Actor: store.Actor{ID: "eve"}}})
		if i < 3 {
			r.Add([]store.Event{{Type: store.EventAdminDenied, At: now, Actor: store.Actor{ID: "bob"}}})
		}
	}
	if n := len(r.waiting); n != deniedAMinute+3 {
		t.Errorf("%d wait", n)
	}
	r.Add([]store.Event{{Type: store.EventAdminDenied, At: now.Add(time.Minute), Actor: store.Actor{ID: "eve"}}})
	if n := len(r.waiting); n != deniedAMinute+4 {
		t.Errorf("%d wait a minute later", n)
	}
}

// Close writes what waits, and says what it could not.
func TestCloseRecordsWhatWaits(t *testing.T) {
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
	if r.Add(failed(1)); r.Losses() != 1 {
		t.Errorf("%d are lost", r.Losses())
	}
}

// Race: many add while others write. Everything is written once.
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

// till keeps figures.
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

// Figures are added every ten seconds, all of them once, whoever counts meanwhile; who
// was counted today is not sent again.
func TestRaceOfCounters(t *testing.T) {
	book, alarm := &till{sums: map[store.Metric]int64{}}, &alarms{}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := &Counter{write: book.write, after: alarm.set, now: func() time.Time { return now }, log: slog.New(slog.DiscardHandler),
		counts: map[counted]int64{}, active: map[string]time.Time{}, seen: map[string]bool{}, codeOf: error.Error}
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

// Every event that has a figure adds to it.
func TestWhatEventsCount(t *testing.T) {
	for _, c := range []struct {
		e    store.Event
		want counted
	}{
		{store.Event{Type: store.EventSignedUp, Method: "oauth", Provider: "google"}, counted{metric: store.MetricSignUps, label: "google"}},
		{store.Event{Type: store.EventSignedIn, Method: "password"}, counted{metric: store.MetricSignIns, label: "password"}},
		{store.Event{Type: store.EventSignInFailed, Err: errors.New("invalid_credentials")}, counted{metric: store.MetricSignInFailures, label: "invalid_credentials"}},
		{store.Event{Type: store.EventMFAEnabled}, counted{metric: store.MetricFactors, label: "enabled"}},
		{store.Event{Type: store.EventMFADisabled}, counted{metric: store.MetricFactors, label: "disabled"}},
		{store.Event{Type: store.EventMessageFailed, Message: store.KindMagicLink}, counted{metric: store.MetricMessageFailed, label: string(store.KindMagicLink)}},
		{store.Event{Type: store.EventReused}, counted{metric: store.MetricTokensReused}},
		{store.Event{Type: store.EventAdminDenied}, counted{metric: store.MetricDenied}},
	} {
		n := &Counter{write: func(context.Context, store.AddCounts) error { return nil }, after: func(time.Duration, func()) {}, now: func() time.Time { return time.Time{} },
			counts: map[counted]int64{}, active: map[string]time.Time{}, seen: map[string]bool{}, codeOf: error.Error}
		n.Observe(c.e)
		if len(n.counts) != 1 || n.counts[c.want] != 1 {
			t.Errorf("%s: %v", c.e.Type, n.counts)
		}
	}
}

// An event that the log refuses for what it says is lost by itself: those with it and
// behind it are written. A log that refuses all keeps all waiting.
func TestRefusedEventsHoldUpNoOthers(t *testing.T) {
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
	if len(book.list) != 297 || r.Losses() != 3 || len(r.waiting) != 0 || strings.Count(out.String(), "is lost") != 3 {
		t.Errorf("%d written, %d lost, %d wait: %s", len(book.list), r.Losses(), len(r.waiting), out)
	}
	tries := 0
	r.write = func(context.Context, []store.Event) error { tries++; return errors.New("down") }
	r.Add(failed(200))
	alarm.ring()
	if len(r.waiting) != 200 || r.Losses() != 3 || tries > recordTries {
		t.Errorf("after %d tries %d wait, %d are lost", tries, len(r.waiting), r.Losses())
	}
}

// An event that met a moment's fault, while others were written, is not lost.
func TestPassingFaultsLoseNoEvent(t *testing.T) {
	r, book, alarm, _ := newTestRecorder()
	write, faults := r.write, 2 // the batch, and the event by itself
	r.write = func(ctx context.Context, list []store.Event) error {
		if list[0].ID == "0" && faults > 0 {
			faults--
			return errors.New("away")
		}
		return write(ctx, list)
	}
	r.Add(failed(2))
	alarm.ring()
	if len(book.list) != 2 || r.Losses() != 0 {
		t.Errorf("%d written, %d lost", len(book.list), r.Losses())
	}
}

// What a refused request names may be of any length; what is recorded of it is not.
func TestLabelsAreBounded(t *testing.T) {
	r, _, _, _ := newTestRecorder()
	long := strings.Repeat("ä", 3000)
	given := &store.Record{Actor: long, Target: long, RequestID: long}
	r.Add([]store.Event{{Type: store.EventAdminDenied, Record: given}})
	if got := r.waiting[0].Record; len(got.Actor) > maxLabel || len(got.Target) > maxLabel || len(got.RequestID) > maxLabel || !utf8.ValidString(got.Target) || given.Target != long {
		t.Errorf("%d, %d and %d bytes", len(got.Actor), len(got.Target), len(got.RequestID))
	}
}
