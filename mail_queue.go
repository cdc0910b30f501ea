package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
)

var (
	errQueueFull   = errors.New("auth: the send queue is full")
	errQueueClosed = errors.New("auth: the send queue is closed")
)

// outbox sends messages behind the requests' backs: a bounded queue, a few
// workers, retries with growing pauses. Requests never wait for a mailer, so
// its speed tells nobody whether a message went out.
type outbox struct {
	o       MailOptions
	mailer  Mailer
	mails   *mailTemplates
	log     *slog.Logger
	now     func() time.Time
	failed  func(ctx context.Context, m Message, err error)
	backoff func(attempt int) time.Duration

	ready   chan *letter
	places  chan struct{} // one for each message waiting, being sent or pausing
	stuck   chan struct{} // one for each attempt that outlived its timeout
	pending sync.WaitGroup
	workers sync.WaitGroup
	quit    context.CancelFunc
	done    context.Context //nolint:containedctx // ends the workers, not a request

	mu     sync.RWMutex
	closed bool
}

// letter is a message on its way.
type letter struct {
	outgoing
	id      string
	attempt int
}

func newOutbox(o MailOptions, mailer Mailer, log *slog.Logger, now func() time.Time, failed func(context.Context, Message, error)) (*outbox, error) {
	o.defaults()
	mails, err := parseMails(o)
	if err != nil {
		return nil, err
	}
	b := &outbox{
		o: o, mailer: mailer, mails: mails, log: log, now: now, failed: failed, backoff: pause,
		ready: make(chan *letter, o.Queue), places: make(chan struct{}, o.Queue), stuck: make(chan struct{}, o.Workers),
	}
	b.done, b.quit = context.WithCancel(context.Background())
	for range o.Workers {
		b.workers.Add(1)
		go b.work()
	}
	return b, nil
}

// pause grows fourfold from about a second, with jitter so that many messages
// refused together do not come back together.
func pause(attempt int) time.Duration {
	d := time.Second << (2 * min(attempt-1, 5))
	return d/2 + rand.N(d) //nolint:gosec // jitter, not a secret
}

// send queues a message, or with Sync makes one attempt. It never fails the
// caller: what cannot be sent is reported through failed.
func (b *outbox) send(ctx context.Context, o outgoing) {
	id, err := uuid.NewV7()
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	l := &letter{outgoing: o, id: id.String()}
	b.mu.RLock()
	defer b.mu.RUnlock()
	switch {
	case b.closed:
		b.report(l, errQueueClosed)
	case b.o.Sync:
		l.attempt = b.o.Attempts // the only one: nobody waits for retries
		b.attempt(ctx, l)
	default:
		select {
		case b.places <- struct{}{}:
			b.pending.Add(1)
			b.ready <- l // has room: a place was free
		default:
			b.report(l, errQueueFull)
		}
	}
}

func (b *outbox) work() {
	defer b.workers.Done()
	for {
		select {
		case <-b.done.Done():
			return
		case l := <-b.ready:
			if b.attempt(b.done, l) {
				b.retry(l)
				continue
			}
			<-b.places
			b.pending.Done()
		}
	}
}

// retry puts a message back after a pause, during which it holds its place in
// the queue but no worker.
func (b *outbox) retry(l *letter) {
	time.AfterFunc(b.backoff(l.attempt), func() { b.ready <- l })
}

// attempt tries a message once and tells whether to try again.
func (b *outbox) attempt(ctx context.Context, l *letter) (again bool) {
	if l.To == "" {
		return false // a decoy
	}
	if !b.o.Sync {
		l.attempt++
	}
	m, err := b.mails.render(l.outgoing)
	if err == nil {
		m.ID, m.At = l.id, b.now()
		err = b.deliver(ctx, m)
	} else {
		err = Permanent(err)
	}
	if err == nil {
		b.log.DebugContext(ctx, "auth: message sent", "kind", string(l.Kind), "message_id", l.id, "to", maskEmail(l.To), "attempt", l.attempt)
		return false
	}
	if l.attempt < b.o.Attempts && !isPermanent(err) {
		b.log.WarnContext(ctx, "auth: message not sent yet", "kind", string(l.Kind), "message_id", l.id, "to", maskEmail(l.To), "attempt", l.attempt, "error", err)
		return true
	}
	b.report(l, err)
	return false
}

// deliver calls the mailer in a goroutine of its own, so that one that ignores
// its context blocks a worker no longer than Timeout. As many such attempts as
// there are workers may linger; beyond that attempts fail at once.
func (b *outbox) deliver(ctx context.Context, m Message) error {
	select {
	case b.stuck <- struct{}{}:
	default:
		return errors.New("auth: the mailer hangs")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.o.Timeout)
	defer cancel()
	result := make(chan error, 1)
	go func() {
		defer func() {
			<-b.stuck
			if v := recover(); v != nil {
				result <- fmt.Errorf("auth: the mailer panicked: %v", v)
			}
		}()
		result <- b.mailer.Send(ctx, m)
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// report gives up on a message: in the log, and to the application.
func (b *outbox) report(l *letter, err error) {
	if l.To == "" {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			b.log.Error("auth: hook panicked", "panic", v)
		}
	}()
	b.log.Error("auth: message failed", "kind", string(l.Kind), "message_id", l.id, "to", maskEmail(l.To), "attempt", l.attempt, "error", err)
	b.failed(context.Background(), Message{ID: l.id, Kind: l.Kind, Channel: ChannelEmail, To: l.To}, err)
}

// close takes no more messages and waits for those there are, retries included,
// until ctx ends.
func (b *outbox) close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	defer b.quit()
	drained := make(chan struct{})
	go func() {
		b.pending.Wait()
		close(drained)
	}()
	select {
	case <-drained:
		b.quit()
		b.workers.Wait()
		return nil
	case <-ctx.Done():
		return fmt.Errorf("auth: %d messages were not sent: %w", len(b.places), ctx.Err())
	}
}
