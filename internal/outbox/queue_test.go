package outbox

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/store"
)

// deaf is a mailer that ignores its context.
type deaf struct {
	calls   atomic.Int32
	release chan struct{}
}

func (h *deaf) Send(context.Context, Message) error {
	h.calls.Add(1)
	<-h.release
	return nil
}

// A hanging mailer holds two attempts per worker and is not called for more.
func TestHangingMailer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &deaf{release: make(chan struct{})}
		b, failures := testOutbox(t, Options{Workers: 1, Attempts: 1, Timeout: time.Second}, m)
		for range 4 {
			post(t, b, magic)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(m.release)
		late := 0
		for _, err := range failures.errors() {
			if errors.Is(err, context.DeadlineExceeded) {
				late++
			}
		}
		if n := len(failures.errors()); n != 4 || late != 2 || m.calls.Load() != 2 {
			t.Errorf("%d failures, %d of them late, %d calls", n, late, m.calls.Load())
		}
	})
}

// A message without a template fails at once, because a retry cannot help.
func TestMessageWithoutATemplateIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, began := &scripted{}, time.Now()
		b, failures := testOutbox(t, Options{}, m)
		post(t, b, Outgoing{Kind: "none", To: "ada@example.com"})
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(m.sent) != 0 || len(failures.errors()) != 1 || time.Since(began) != 0 {
			t.Errorf("%d sent, failures %v after %s", len(m.sent), failures.errors(), time.Since(began))
		}
	})
}

// Attempts to prepare a message count as attempts at the message.
func TestAttemptsToPrepareCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := errors.New("busy")
		m := &scripted{answers: []error{busy, busy, busy, busy, busy, busy}}
		b, failures := testOutbox(t, Options{}, m)
		tries := 0
		b.Prepare(t.Context(), magic.Kind, func(context.Context) (*store.SealedMessage, error) {
			if tries++; tries < 3 {
				return nil, busy
			}
			body := []byte(`{"Kind":"magic_link","To":"ada@example.com","Link":"https://auth.test/x?token=t"}`)
			return &store.SealedMessage{ID: "1", Body: body, CreatedAt: b.o.Now(), ExpiresAt: b.o.Now().Add(3 * 24 * time.Hour), Attempts: 1}, nil
		})
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if tries != 3 || len(m.sent) != 3 || len(failures.errors()) != 1 { // attempts three to five
			t.Errorf("%d tries, %d sent, failures %v", tries, len(m.sent), failures.errors())
		}
	})
}

// Pauses grow fourfold from about a second to about a quarter of an hour, each between
// half and one and a half of that.
func TestPausesGrow(t *testing.T) {
	t.Parallel()
	for attempt, about := range map[int]time.Duration{1: time.Second, 2: 4 * time.Second, 3: 16 * time.Second, 5: 256 * time.Second, 6: 1024 * time.Second, 7: 1024 * time.Second, 20: 1024 * time.Second} {
		least, most := time.Hour, time.Duration(0)
		for range 1000 {
			d := backoff(attempt)
			least, most = min(least, d), max(most, d)
		}
		if least < about/2 || least > about*6/10 || most < about*14/10 || most >= about*3/2 {
			t.Errorf("attempt %d: from %s to %s", attempt, least, most)
		}
	}
}

// asking is a store that records when messages are claimed.
type asking struct {
	store.Journal
	mu    sync.Mutex
	at    []time.Time
	until []time.Duration
}

func (s *asking) ClaimMessages(ctx context.Context, c store.ClaimMessages) ([]store.SealedMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.until = append(s.at, time.Now()), append(s.until, c.Until.Sub(c.Now))
	if at, ok := ctx.Deadline(); !ok || time.Until(at) != storeCall {
		return nil, errors.New("it may hang for ever")
	}
	return nil, nil
}

// Every instance claims messages about every five seconds, at a random time, and at once
// after Wake. A claim lasts for three attempts, and for a minute at least.
func TestClaimInterval(t *testing.T) {
	for timeout, lease := range map[time.Duration]time.Duration{time.Second: time.Minute, 20 * time.Second: time.Minute, 21 * time.Second: 63 * time.Second, time.Minute: 3 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			s := &asking{}
			b, _ := testOutbox(t, Options{Timeout: timeout}, &scripted{})
			b.o.Log = slog.New(slog.NewTextHandler(&log, nil))
			b.useStore(s, nil, false)
			began := time.Now()
			b.Wake()
			synctest.Wait()
			s.mu.Lock()
			if len(s.at) != 1 || !s.at[0].Equal(began) {
				t.Errorf("woken, and asked at %v", s.at)
			}
			s.mu.Unlock()
			<-time.After(time.Hour) // fake time
			if err := b.Close(t.Context()); err != nil {
				t.Error(err)
			}
			least, most := time.Hour, time.Duration(0)
			for i := range s.at[1:] {
				d := s.at[i+1].Sub(s.at[i])
				least, most = min(least, d), max(most, d)
			}
			if least < 5*time.Second/2 || least > 3*time.Second || most < 7*time.Second || most >= 15*time.Second/2 {
				t.Errorf("%d times, from %s to %s apart", len(s.at), least, most)
			}
			if s.until[0] != lease || log.Len() > 0 {
				t.Errorf("an attempt may take %s, and a message is kept for %s\n%s", timeout, s.until[0], log.String())
			}
		})
	}
}
