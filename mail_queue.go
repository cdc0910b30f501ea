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
	sms     SMSSender
	mails   *mailTemplates
	log     *slog.Logger
	now     func() time.Time
	failed  func(ctx context.Context, m Message, err error)
	backoff func(attempt int) time.Duration

	ready   chan *queuedMessage
	stuck   chan struct{} // one for each attempt that may outlive its timeout
	workers sync.WaitGroup
	quit    context.CancelFunc
	done    context.Context // ends the workers, not a request

	mu     sync.Mutex
	left   int           // messages waiting, being sent or pausing
	closed bool          // no more are taken
	idle   chan struct{} // closed when closed and none are left
}

// queuedMessage is a message on its way.
type queuedMessage struct {
	outgoing
	id      string
	attempt int
}

func newOutbox(o MailOptions, mailer Mailer, sms SMSSender, log *slog.Logger, now func() time.Time, failed func(context.Context, Message, error)) (*outbox, error) {
	o.defaults()
	mails, err := parseMails(o)
	if err != nil {
		return nil, err
	}
	b := &outbox{
		o: o, mailer: mailer, sms: sms, mails: mails, log: log, now: now, failed: failed, backoff: pause,
		ready: make(chan *queuedMessage, o.Queue), stuck: make(chan struct{}, 2*o.Workers), idle: make(chan struct{}),
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
	q := &queuedMessage{outgoing: o, id: id.String()}
	if b.o.Sync {
		q.attempt = b.o.Attempts // the only one: nobody waits for retries
		b.attempt(ctx, q)
		return
	}
	if err := b.enter(); err != nil {
		b.report(q, err)
		return
	}
	b.ready <- q // has room for all that may enter
}

// enter takes a place in the queue, if there is one.
func (b *outbox) enter() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return errQueueClosed
	case b.left >= b.o.Queue:
		return errQueueFull
	}
	b.left++
	return nil
}

func (b *outbox) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left--
	if b.closed && b.left == 0 {
		close(b.idle)
	}
}

func (b *outbox) work() {
	defer b.workers.Done()
	for {
		select {
		case <-b.done.Done():
			return
		case q := <-b.ready:
			if b.attempt(b.done, q) {
				b.retry(q)
				continue
			}
			b.leave()
		}
	}
}

// retry puts a message back after a pause, during which it holds its place in
// the queue but no worker.
func (b *outbox) retry(q *queuedMessage) {
	time.AfterFunc(b.backoff(q.attempt), func() { b.ready <- q })
}

// attempt tries a message once and tells whether to try again.
func (b *outbox) attempt(ctx context.Context, q *queuedMessage) (again bool) {
	if !b.o.Sync {
		q.attempt++
	}
	if q.prepare != nil {
		o, err := q.prepare(ctx)
		if err != nil {
			b.log.WarnContext(ctx, "auth: message not prepared", "kind", string(q.Kind), "message_id", q.id, "attempt", q.attempt, "error", err)
			return q.attempt < b.o.Attempts
		}
		q.outgoing = o // once: a retry sends the same link
	}
	if q.To == "" {
		return false // a decoy
	}
	m, err := b.mails.render(q.outgoing)
	if err == nil {
		m.ID, m.At = q.id, b.now()
		err = b.deliver(ctx, m)
	} else {
		err = Permanent(err)
	}
	if err == nil {
		b.log.DebugContext(ctx, "auth: message sent", "kind", string(q.Kind), "message_id", q.id, "to", maskAddress(q.To), "attempt", q.attempt)
		return false
	}
	if q.attempt < b.o.Attempts && !IsPermanent(err) {
		b.log.WarnContext(ctx, "auth: message not sent yet", "kind", string(q.Kind), "message_id", q.id, "to", maskAddress(q.To), "attempt", q.attempt, "error", err)
		return true
	}
	b.report(q, err)
	return false
}

// deliver calls the mailer in a goroutine of its own, so that one that ignores
// its context blocks a worker no longer than Timeout. A few such attempts may
// linger; beyond that attempts fail at once.
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
		result <- b.sender(m).Send(ctx, m)
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *outbox) sender(m Message) SMSSender {
	if m.Channel == ChannelSMS {
		return b.sms
	}
	return b.mailer
}

// report gives up on a message: in the log, and to the application.
func (b *outbox) report(q *queuedMessage, err error) {
	if q.To == "" {
		return
	}
	b.log.Error("auth: message failed", "kind", string(q.Kind), "message_id", q.id, "to", maskAddress(q.To), "attempt", q.attempt, "error", err)
	b.failed(context.Background(), Message{ID: q.id, Kind: q.Kind, Channel: q.channel(), To: q.To}, err)
}

// close takes no more messages and waits for those there are, retries included,
// until ctx ends.
func (b *outbox) close(ctx context.Context) error {
	b.mu.Lock()
	if !b.closed && b.left == 0 {
		close(b.idle)
	}
	b.closed = true
	b.mu.Unlock()
	defer b.quit()
	select {
	case <-b.idle:
		b.quit()
		b.workers.Wait()
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Errorf("auth: %d messages were not sent: %w", b.left, ctx.Err())
}
