package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/authmount/auth/store"
	"github.com/google/uuid"
)

var (
	errQueueFull   = errors.New("auth: the send queue is full")
	errQueueClosed = errors.New("auth: the send queue is closed")
	errExpired     = errors.New("auth: the message has expired")
	errNotOpened   = errors.New("auth: the message was sealed with another secret")
)

// outbox sends messages behind the requests' backs: a bounded queue, a few
// workers, retries with growing pauses. Requests never wait for a mailer, so
// its speed tells nobody whether a message went out. Where the store keeps
// messages (see mail_outbox.go), the queue is only the quickest way from there.
type outbox struct {
	o       MailOptions
	mailer  Mailer
	sms     SMSSender
	mails   *mailTemplates
	log     *slog.Logger
	now     func() time.Time
	failed  func(ctx context.Context, m Message, err error)
	sent    func(Kind)
	backoff func(attempt int) time.Duration
	open    func(store.SealedMessage) (outgoing, error)

	keeper // of messages; its store is nil if they are in memory only

	ready   chan *queuedMessage
	stuck   chan struct{} // one for each attempt that may outlive its timeout
	workers sync.WaitGroup
	quit    context.CancelFunc
	done    context.Context // ends the workers, not a request

	mu     sync.Mutex
	left   int                   // messages waiting, being sent or pausing
	closed bool                  // no more are taken
	first  map[string]chan error // by message: who waits for the first attempt
	idle   chan struct{}         // closed when closed and none are left
}

// queuedMessage is a message on its way through this process.
type queuedMessage struct {
	outgoing
	id      string
	attempt int                  // this one, or the last
	sealed  *store.SealedMessage // what it comes from; opened at an attempt
	kept    bool                 // the store has it, and is told what becomes of it

	// prepare works the message out in the background, where its duration tells
	// nobody anything; nil if there is nothing to send.
	prepare func(context.Context) (*store.SealedMessage, error)
}

func newOutbox(o MailOptions, mailer Mailer, sms SMSSender, log *slog.Logger, now func() time.Time, failed func(context.Context, Message, error)) (*outbox, error) {
	o.defaults()
	mails, err := parseMails(o)
	if err != nil {
		return nil, err
	}
	b := &outbox{
		o: o, mailer: mailer, sms: sms, mails: mails, log: log, now: now, failed: failed, sent: func(Kind) {}, backoff: pause, keeper: newKeeper(),
		ready: make(chan *queuedMessage, o.Queue), stuck: make(chan struct{}, 2*o.Workers), idle: make(chan struct{}), first: map[string]chan error{},
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

// post takes on the messages of a change that has come about. It never fails the
// caller: what cannot be sent is reported through failed, or left to the store.
func (b *outbox) post(ctx context.Context, messages []store.SealedMessage) {
	for i := range messages {
		m := &messages[i]
		if b.store != nil && m.Attempts == 0 {
			continue // not claimed: it comes from the store, once it is there
		}
		b.take(ctx, b.from(m))
	}
}

// from is a message that was claimed for this process, if only by recording it.
func (b *outbox) from(m *store.SealedMessage) *queuedMessage {
	return &queuedMessage{id: m.ID, sealed: m, kept: b.store != nil, attempt: max(m.Attempts-1, 0)}
}

// prepare queues a message that has still to be worked out.
func (b *outbox) prepare(ctx context.Context, k Kind, f func(context.Context) (*store.SealedMessage, error)) {
	id := uuid.Must(uuid.NewV7()).String() // crypto/rand never fails
	b.take(ctx, &queuedMessage{outgoing: outgoing{Kind: k}, id: id, prepare: f})
}

// take queues a message, or with Sync makes one attempt.
func (b *outbox) take(ctx context.Context, q *queuedMessage) {
	if b.o.Sync {
		if !q.kept {
			q.attempt = b.o.Attempts - 1 // the last: nobody waits for retries
		}
		b.try(context.WithoutCancel(ctx), q)
		return
	}
	if err := b.enter(); err != nil {
		b.turnedAway(q, err)
		return
	}
	b.ready <- q // has room for all that may enter
}

// turnedAway gives up on a message that found no place, unless the store has it.
func (b *outbox) turnedAway(q *queuedMessage, err error) {
	if q.kept {
		b.log.Debug("auth: message left to the store", "message_id", q.id, "error", err)
		return
	}
	b.report(q, err)
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

// underWay is how many messages wait, are being sent, or pause.
func (b *outbox) underWay() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left
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
			if b.try(b.done, q) {
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

// try makes one attempt at a message and tells whether to try again from here.
func (b *outbox) try(ctx context.Context, q *queuedMessage) (again bool) {
	q.attempt++
	if q.prepare != nil {
		m, err := q.prepare(ctx)
		if err != nil {
			b.log.WarnContext(ctx, "auth: message not prepared", "kind", string(q.Kind), "message_id", q.id, "attempt", q.attempt, "error", err)
			return q.attempt < b.o.Attempts
		}
		if m == nil {
			return false
		}
		n := q.attempt
		*q = *b.from(m) // once: a retry sends the same link
		if q.attempt++; !q.kept {
			q.attempt = n
		}
	}
	if q.kept && !b.holds(q.sealed) {
		return false
	}
	if !b.now().Before(q.sealed.ExpiresAt) {
		b.giveUp(q, errExpired)
		return false
	}
	if err := b.unseal(q); err != nil {
		b.log.ErrorContext(ctx, "auth: message not opened", "message_id", q.id, "attempt", q.attempt, "error", err)
		b.putOff(q, errNotOpened) // another instance may have its secret
		return false
	}
	if q.decoy() {
		b.finish(q, store.FinishMessage{})
		return false
	}
	err := b.deliver(ctx, q)
	b.tellFirst(q.id, q.hide(err))
	switch {
	case err == nil:
		b.log.DebugContext(ctx, "auth: message sent", "kind", string(q.Kind), "message_id", q.id, "to", maskAddress(q.To), "attempt", q.attempt)
		b.sent(q.Kind)
		b.finish(q, store.FinishMessage{State: store.MessageSent})
		return false
	case q.attempt >= b.o.Attempts || IsPermanent(err):
	case !q.kept || b.putOff(q, err):
		b.log.WarnContext(ctx, "auth: message not sent yet", "kind", string(q.Kind), "message_id", q.id, "to", maskAddress(q.To), "attempt", q.attempt, "error", q.hide(err))
		return !q.kept
	}
	b.giveUp(q, err)
	return false
}

// unseal opens a sealed message, once.
func (b *outbox) unseal(q *queuedMessage) (err error) {
	if q.sealed != nil && q.Kind == "" {
		q.outgoing, err = b.open(*q.sealed)
	}
	return err
}

// deliver renders a message and calls the mailer in a goroutine of its own, so
// that one that ignores its context blocks a worker no longer than Timeout. A few
// such attempts may linger; beyond that attempts fail at once.
func (b *outbox) deliver(ctx context.Context, q *queuedMessage) error {
	m, err := b.mails.render(q.outgoing)
	if err != nil {
		return Permanent(err)
	}
	m.ID, m.At = q.id, b.now()
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

// giveUp ends a message that was not sent.
func (b *outbox) giveUp(q *queuedMessage, err error) {
	b.report(q, err)
	b.abandon(q, err)
}

// report tells of a message that was given up: the log, and the application. A
// decoy is nobody's loss.
func (b *outbox) report(q *queuedMessage, err error) {
	if b.unseal(q) != nil || q.To == "" {
		return
	}
	err = q.hide(err)
	b.log.Error("auth: message failed", "kind", string(q.Kind), "message_id", q.id, "to", maskAddress(q.To), "attempt", q.attempt, "error", err)
	b.failed(context.Background(), Message{ID: q.id, Kind: q.Kind, Channel: q.channel(), To: q.To}, err)
}

// close takes no more messages, claims none, and waits for those that are in this
// process, until ctx ends.
func (b *outbox) close(ctx context.Context) error {
	b.stopClaiming()
	b.mu.Lock()
	if !b.closed && b.left == 0 {
		close(b.idle)
	}
	b.closed = true
	b.mu.Unlock()
	if b.done.Err() != nil {
		return nil // closed before, and what was left was told then
	}
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
	if b.store != nil {
		return fmt.Errorf("auth: %d messages were not sent, and stay in the store: %w", b.left, ctx.Err())
	}
	return fmt.Errorf("auth: %d messages were not sent: %w", b.left, ctx.Err())
}
