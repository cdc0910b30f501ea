package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/webpage"
	"github.com/authmount/auth/store"
)

// scripted is a mailer with a prepared result for each attempt.
type scripted struct {
	mu      sync.Mutex
	answers []error
	sent    []Message
	at      []time.Time
}

func (s *scripted) Send(_ context.Context, m Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent, s.at = append(s.sent, m), append(s.at, time.Now())
	if n := len(s.sent); n <= len(s.answers) {
		return s.answers[n-1]
	}
	return nil
}

// failures collects the messages reported as failed.
type failures struct {
	mu   sync.Mutex
	list []error
}

func (f *failures) errors() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]error{}, f.list...)
}

// mailer is the method of the application's senders.
type mailer interface {
	Send(ctx context.Context, m Message) error
}

// templates are the built-in ones.
var templates = sync.OnceValues(func() (*Templates, error) { return parse("App", "en", nil) })

func testService(app string) Service {
	return Service{App: func() string { return app }, CodeLife: 10 * time.Minute}
}

// parse parses the built-in templates with overrides.
func parse(app, locale string, own fs.FS) (*Templates, error) {
	l := webpage.Layers{Own: own, Builtin: os.DirFS("../../templates")}
	langs, err := webpage.LoadLanguages(l, "mails", locale, nil)
	if err != nil {
		return nil, err
	}
	return ParseTemplates(l, langs, testService(app))
}

// testOutbox returns an outbox with the defaults of the root's MailOptions.
func testOutbox(t *testing.T, o Options, m mailer) (*Outbox, *failures) {
	t.Helper()
	failed := &failures{}
	var err error
	if o.Templates, err = templates(); err != nil {
		t.Fatal(err)
	}
	o.Queue, o.Workers, o.Attempts, o.Timeout = cmp.Or(o.Queue, 1024), cmp.Or(o.Workers, 4), cmp.Or(o.Attempts, 5), cmp.Or(o.Timeout, 30*time.Second)
	o.Mail, o.Service, o.Log, o.Now = m.Send, testService("App"), slog.New(slog.DiscardHandler), time.Now
	o.Sent = func(store.Kind) {}
	o.Failed = func(_ context.Context, _ Message, err error) {
		failed.mu.Lock()
		defer failed.mu.Unlock()
		failed.list = append(failed.list, err)
	}
	o.Open = func(m store.SealedMessage) (o Outgoing, err error) { return o, json.Unmarshal(m.Body, &o) }
	return New(o), failed
}

// post queues a message as a change does.
func post(t *testing.T, b *Outbox, o Outgoing) {
	t.Helper()
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	now := b.o.Now()
	b.Enqueue(t.Context(), []store.SealedMessage{{ID: uuid.NewString(), Body: body, CreatedAt: now, NextAt: now.Add(b.Lease()), ExpiresAt: now.Add(3 * 24 * time.Hour), Attempts: 1}})
}

var magic = Outgoing{Kind: store.KindMagicLink, To: "ada@example.com", Link: "https://auth.test/x?token=t", ExpiresIn: 15 * time.Minute}

func TestQueueRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &scripted{answers: []error{errors.New("busy"), errors.New("busy"), nil}}
		b, failures := testOutbox(t, Options{}, m)
		post(t, b, magic)
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(m.sent) != 3 || len(failures.errors()) != 0 {
			t.Fatalf("%d attempts, failures %v", len(m.sent), failures.errors())
		}
		if m.sent[0].ID != m.sent[2].ID {
			t.Error("a retry is another message")
		}
		first, second := m.at[1].Sub(m.at[0]), m.at[2].Sub(m.at[1])
		if first < 500*time.Millisecond || first > 1500*time.Millisecond || second < 2*time.Second || second > 6*time.Second {
			t.Errorf("pauses %v, %v", first, second)
		}
	})
}

func TestQueueGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		answer   error
		attempts int
	}{
		"after its attempts": {errors.New("busy"), 5},
		"for good":           {Permanent(errors.New("no such user")), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &scripted{answers: []error{c.answer, c.answer, c.answer, c.answer, c.answer, c.answer}}
				b, failures := testOutbox(t, Options{}, m)
				post(t, b, magic)
				if err := b.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(m.sent) != c.attempts || len(failures.errors()) != 1 || !errors.Is((failures.errors())[0], c.answer) {
					t.Errorf("%d attempts, failures %v", len(m.sent), failures.errors())
				}
			})
		})
	}
}

// A hanging mailer blocks no request, and other messages no longer than its timeout. A
// full queue is reported.
func TestQueueOutlivesHangingMailer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b, failures := testOutbox(t, Options{Queue: 3, Workers: 2, Attempts: 1, Timeout: time.Second}, hanging(release))
		start := time.Now()
		for range 5 {
			post(t, b, magic)
		}
		if time.Since(start) != 0 {
			t.Error("a request waited")
		}
		if len(failures.errors()) != 2 || !errors.Is((failures.errors())[0], errQueueFull) {
			t.Errorf("failures %v", failures.errors())
		}
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(failures.errors()) != 5 || time.Since(start) > 2*time.Second {
			t.Errorf("%d failures after %v", len(failures.errors()), time.Since(start))
		}
		close(release)
	})
}

type hanging chan struct{}

func (h hanging) Send(context.Context, Message) error { <-h; return nil } // ignores its context

func TestQueueCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &scripted{answers: []error{errors.New("busy"), errors.New("busy"), errors.New("busy"), errors.New("busy")}}
		b, failures := testOutbox(t, Options{}, m)
		post(t, b, magic)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		post(t, b, magic)
		if len(failures.errors()) != 1 || !errors.Is((failures.errors())[0], errQueueClosed) {
			t.Errorf("failures %v", failures.errors())
		}
		<-time.After(time.Hour) // fake time: the pending retry passes
	})
}

func TestSyncSend(t *testing.T) {
	m := &scripted{answers: []error{nil, errors.New("busy")}}
	b, failures := testOutbox(t, Options{Sync: true}, m)
	post(t, b, magic)
	if len(m.sent) != 1 || len(failures.errors()) != 0 {
		t.Errorf("%d sent, %v", len(m.sent), failures.errors())
	}
	post(t, b, magic)
	if len(m.sent) != 2 || len(failures.errors()) != 1 {
		t.Errorf("%d sent, %v", len(m.sent), failures.errors())
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestDecoysAreNotSent(t *testing.T) {
	m := &scripted{}
	b, failures := testOutbox(t, Options{}, m)
	post(t, b, Outgoing{Kind: store.KindMagicLink})
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(m.sent) != 0 || len(failures.errors()) != 0 {
		t.Errorf("%d sent, %v", len(m.sent), failures.errors())
	}
}
