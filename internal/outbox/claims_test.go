package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/store"
)

// claiming is a store that returns messages, and records the requested numbers and the
// outcomes.
type claiming struct {
	finishing
	left  int
	asked []int
	fault error
}

func (s *claiming) ClaimMessages(_ context.Context, c store.ClaimMessages) (list []store.SealedMessage, err error) {
	s.asked = append(s.asked, c.Limit)
	body, err := json.Marshal(magic)
	for range min(c.Limit, s.left) {
		s.left--
		list = append(list, store.SealedMessage{ID: fmt.Sprint(s.left), Body: body, NextAt: c.Until, ExpiresAt: c.Now.Add(time.Hour), Attempts: 1})
	}
	return list, errors.Join(err, s.fault)
}

// Due messages are claimed a hundred at a time, as far as the queue has space, until none
// is left. Failures to claim a message or to record its outcome are logged.
func TestClaimsFillTheQueue(t *testing.T) {
	for name, c := range map[string]struct {
		queue, left int
		closed      bool
		fault, told error
		asked       []int
		sent        int
		log         string
	}{
		"none":                   {queue: 500, asked: []int{100}},
		"a few":                  {queue: 500, left: 99, asked: []int{100}, sent: 99},
		"a batch":                {queue: 500, left: 100, asked: []int{100, 100}, sent: 100},
		"more than a batch":      {queue: 500, left: 250, asked: []int{100, 100, 100}, sent: 250},
		"more than there is for": {queue: 150, left: 200, asked: []int{100, 50}, sent: 150},
		"as many as there is":    {queue: 100, left: 100, asked: []int{100}, sent: 100},
		"of a store that fails":  {queue: 500, fault: errors.New("away"), asked: []int{100}, log: "cannot claim messages"},
		"after the end":          {queue: 500, left: 3, closed: true, asked: []int{100}},
		"that cannot be told of": {queue: 500, left: 1, told: errors.New("away"), asked: []int{100}, sent: 1, log: "may be sent again"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			s, m := &claiming{left: c.left, fault: c.fault, finishing: finishing{err: c.told}}, &scripted{}
			b, failures := testOutbox(t, Options{Queue: c.queue, Workers: 1}, m)
			b.store, b.o.Log = s, slog.New(slog.NewTextHandler(&log, nil))
			if c.closed {
				if err := b.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
			hold := make(chan struct{}) // no message leaves the queue while others are claimed
			b.o.Open = func(m store.SealedMessage) (o Outgoing, err error) {
				<-hold
				return o, json.Unmarshal(m.Body, &o)
			}
			b.Claim(t.Context())
			close(hold)
			synctest.Wait()
			if err := b.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if !slices.Equal(s.asked, c.asked) || len(m.sent) != c.sent || len(s.told) != c.sent || len(failures.errors()) > 0 {
				t.Errorf("%s: asked for %v, sent %d, told of %d, %v", name, s.asked, len(m.sent), len(s.told), failures.errors())
			}
			if (c.log == "") != (log.Len() == 0) || !strings.Contains(log.String(), c.log) {
				t.Errorf("%s: the log says %q", name, log.String())
			}
		})
	}
	if got := (&queuedMessage{}).storedError(nil); got != "" {
		t.Errorf("of no error it is told %q", got)
	}
}

// slowClaim is a store that returns messages after a while, even if the context is done.
type slowClaim struct {
	claiming
	calls atomic.Int32
}

func (s *slowClaim) ClaimMessages(ctx context.Context, c store.ClaimMessages) ([]store.SealedMessage, error) {
	s.calls.Add(1)
	<-time.After(time.Second) // the bubble's clock
	return s.claiming.ClaimMessages(ctx, c)
}

// Close waits for a running claim, so that its messages are sent. After that nothing is
// claimed.
func TestCloseWaitsForAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := &slowClaim{claiming: claiming{left: 1}}, &scripted{}
		b, _ := testOutbox(t, Options{Workers: 1}, m)
		b.useStore(s, nil, false)
		b.Wake()
		synctest.Wait()
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		<-time.After(time.Minute)
		if len(m.sent) != 1 || s.calls.Load() != 1 {
			t.Errorf("%d sent, %d claims", len(m.sent), s.calls.Load())
		}
	})
}

// A failure to prepare a message is reported with the message's kind, the only known
// field.
func TestFailedPreparationIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		b, _ := testOutbox(t, Options{Attempts: 1}, &scripted{})
		b.o.Log = slog.New(slog.NewTextHandler(&log, nil))
		b.Prepare(t.Context(), store.KindMagicLink, func(context.Context) (*store.SealedMessage, error) { return nil, errors.New("away") })
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if !strings.Contains(log.String(), "kind=magic_link") || !strings.Contains(log.String(), "message_id=0") {
			t.Errorf("the log says %q", log.String())
		}
	})
}

// lockedBuffer is a log that can be read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
