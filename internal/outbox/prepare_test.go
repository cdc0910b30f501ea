package outbox

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/store"
)

// A message is prepared until that succeeds or has failed as often as an attempt may.
// Then it is like any other message, claimed for its first attempt if the store has it.
func TestPrepare(t *testing.T) {
	for name, c := range map[string]struct {
		memory  bool
		attempt int // number of the previous attempt
		fails   bool
		nothing bool
		again   bool
		sent    int
		now     int // number of the attempt afterwards
	}{
		"at once":                    {again: false, sent: 1, now: 1},
		"at last":                    {attempt: 2, sent: 1, now: 1},
		"from memory":                {memory: true, sent: 1, now: 1},
		"from memory at last":        {memory: true, attempt: 2, sent: 1, now: 3},
		"there is nothing to send":   {nothing: true, now: 1},
		"not yet":                    {fails: true, again: true, now: 1},
		"not yet, again":             {fails: true, attempt: 1, again: true, now: 2},
		"not any more":               {fails: true, attempt: 2, now: 3},
		"not any more, from memory":  {memory: true, fails: true, attempt: 2, now: 3},
		"nothing, after it had been": {nothing: true, attempt: 2, now: 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			now := time.Now()
			mailer, st := &scripted{}, &finishing{}
			b, failed := testOutbox(t, Options{Attempts: 3, Workers: 1}, mailer)
			defer func() { _ = b.Close(context.WithoutCancel(t.Context())) }()
			b.o.Log = slog.New(slog.NewTextHandler(&log, nil))
			if !c.memory {
				b.store = st
			}
			b.o.Open = func(store.SealedMessage) (Outgoing, error) { return magic, nil }
			asked := 0
			q := &queuedMessage{Outgoing: Outgoing{Kind: store.KindMagicLink}, id: "asked", attempt: c.attempt, prepare: func(context.Context) (*store.SealedMessage, error) {
				asked++
				switch {
				case c.fails:
					return nil, errors.New("away")
				case c.nothing:
					return nil, nil
				}
				return &store.SealedMessage{ID: "made", Attempts: 1, NextAt: now.Add(time.Hour), ExpiresAt: now.Add(time.Hour)}, nil
			}}
			again := b.attempt(t.Context(), q)
			if again != c.again || asked != 1 || len(mailer.sent) != c.sent || q.attempt != c.now || len(failed.errors()) != 0 {
				t.Errorf("%s: again %t, asked %d times, sent %d, attempt %d, failures %v", name, again, asked, len(mailer.sent), q.attempt, failed.errors())
			}
			if told := strings.Contains(log.String(), "cannot prepare"); told != c.fails {
				t.Errorf("%s: the log says %q", name, log.String())
			}
			if c.sent == 1 && (mailer.sent[0].ID != "made" || q.prepare != nil || !c.memory && (len(st.told) != 1 || st.told[0].Attempts != 1)) {
				t.Errorf("%s: sent %+v, told %+v", name, mailer.sent, st.told)
			}
		})
	}
}

// The queue accepts as many messages as it has space for, and none after Close. A message
// without a place is reported, unless the store has it or it is a decoy.
func TestQueueLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := &deaf{release: make(chan struct{})}
		b, failed := testOutbox(t, Options{Queue: 2, Workers: 1, Attempts: 1, Timeout: time.Hour}, hold)
		for n := 0; n < 2; n++ {
			if b.freePlaces() != 2-n || b.Pending() != n {
				t.Errorf("%d under way, room for %d", b.Pending(), b.freePlaces())
			}
			post(t, b, magic)
		}
		post(t, b, magic)
		decoy := magic
		decoy.To = ""
		post(t, b, decoy)
		if got := failed.errors(); len(got) != 1 || !errors.Is(got[0], errQueueFull) || b.freePlaces() != 0 {
			t.Errorf("told of %v, room for %d", got, b.freePlaces())
		}
		b.store = &finishing{}
		post(t, b, magic)
		b.store = nil
		close(hold.release)
		synctest.Wait()
		if err := b.Close(t.Context()); err != nil || b.Pending() != 0 {
			t.Errorf("%v, %d under way", err, b.Pending())
		}
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("closed again: %v", err)
		}
		post(t, b, magic)
		if got := failed.errors(); len(got) != 2 || !errors.Is(got[1], errQueueClosed) || slices.Contains(got, nil) {
			t.Errorf("told of %v", got)
		}
	})
}

// If Close ends early, it reports how many messages were not sent and where they are.
func TestCloseEarly(t *testing.T) {
	for kept, want := range map[bool]string{false: "2 messages were not sent: ", true: "2 messages were not sent and stay in the store: "} {
		synctest.Test(t, func(t *testing.T) {
			hold := &deaf{release: make(chan struct{})}
			b, _ := testOutbox(t, Options{Queue: 4, Workers: 1, Attempts: 1, Timeout: time.Hour}, hold)
			if kept {
				b.store = &finishing{}
			}
			post(t, b, magic)
			post(t, b, magic)
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := b.Close(ctx); err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("kept %t: %v", kept, err)
			}
			if err := b.Close(ctx); err != nil {
				t.Errorf("closed again: %v", err)
			}
			close(hold.release)
			synctest.Wait()
		})
	}
}
