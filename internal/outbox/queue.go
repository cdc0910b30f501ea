package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/address"
	"github.com/authmount/auth/store"
)

var (
	errQueueFull   = errors.New("auth: the send queue is full")
	errQueueClosed = errors.New("auth: the send queue is closed")
	errExpired     = errors.New("auth: the message has expired")
	errNotOpened   = errors.New("auth: the message was sealed with another secret")
)

// Options are the parts of an Outbox.
type Options struct {
	Queue    int           // messages in this process, waiting or being retried
	Workers  int           // messages sent at once
	Attempts int           // tries of a message
	Timeout  time.Duration // of one attempt
	Sync     bool          // a request waits for the first attempt

	Mail, SMS Sender
	Templates *Templates
	Service   Service
	Open      func(store.SealedMessage) (Outgoing, error)
	Sent      func(store.Kind)                                // a message was sent
	Failed    func(ctx context.Context, m Message, err error) // one was given up
	Log       *slog.Logger
	Now       func() time.Time

	Store store.Journal              // nil: messages are in memory only
	InTx  func(context.Context) bool // whether a context joins a transaction of the application's; nil: never
	Idle  bool                       // others send what is in the store
}

// Outbox sends messages behind the requests' backs: a bounded queue, a few
// workers, retries with growing pauses. Requests never wait for a mailer, so
// its speed tells nobody whether a message went out. Where the store keeps
// messages (see claims.go), the queue is only the quickest way from there.
type Outbox struct {
	Backoff func(attempt int) time.Duration // between attempts; tests set another one

	o Options

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
	Outgoing
	id      string
	attempt int                  // this one, or the last
	sealed  *store.SealedMessage // what it comes from; opened at an attempt
	kept    bool                 // the store has it, and is told what becomes of it

	// prepare works the message out in the background, where its duration tells
	// nobody anything; nil if there is nothing to send.
	prepare func(context.Context) (*store.SealedMessage, error)
}

// New returns an outbox and starts its workers. With a store it also begins to look for
// messages there.
func New(o Options) *Outbox {
	b := &Outbox{
		o: o, Backoff: pause, keeper: newKeeper(),
		ready: make(chan *queuedMessage, o.Queue), stuck: make(chan struct{}, 2*o.Workers), idle: make(chan struct{}), first: map[string]chan error{},
	}
	b.inTx = o.InTx
	b.done, b.quit = context.WithCancel(context.Background())
	for range o.Workers {
		b.workers.Add(1)
		go b.work()
	}
	if o.Store != nil {
		b.keepIn(o.Store, o.InTx, o.Idle)
	}
	return b
}

// pause grows fourfold from about a second, with jitter so that many messages
// refused together do not come back together.
func pause(attempt int) time.Duration {
	d := time.Second << (2 * min(attempt-1, 5))
	return d/2 + rand.N(d) //nolint:gosec // jitter, not a secret
}

// Post takes on the messages of a change that has come about. It never fails the
// caller: what cannot be sent is reported through Failed, or left to the store.
func (b *Outbox) Post(ctx context.Context, messages []store.SealedMessage) {
	for i := range messages {
		m := &messages[i]
		if b.store != nil && m.Attempts == 0 {
			continue // not claimed: it comes from the store, once it is there
		}
		b.take(ctx, b.from(m))
	}
}

// from is a message that was claimed for this process, if only by recording it.
func (b *Outbox) from(m *store.SealedMessage) *queuedMessage {
	return &queuedMessage{id: m.ID, sealed: m, kept: b.store != nil, attempt: max(m.Attempts-1, 0)}
}

// Prepare queues a message that has still to be worked out.
func (b *Outbox) Prepare(ctx context.Context, k store.Kind, f func(context.Context) (*store.SealedMessage, error)) {
	id := uuid.Must(uuid.NewV7()).String() // crypto/rand never fails
	b.take(ctx, &queuedMessage{Outgoing: Outgoing{Kind: k}, id: id, prepare: f})
}

// take queues a message, or with Sync makes one attempt.
func (b *Outbox) take(ctx context.Context, q *queuedMessage) {
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
func (b *Outbox) turnedAway(q *queuedMessage, err error) {
	if q.kept {
		b.o.Log.Debug("auth: message left to the store", "message_id", q.id, "error", err)
		return
	}
	b.report(q, err)
}

// enter takes a place in the queue, if there is one.
func (b *Outbox) enter() error {
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

// UnderWay is how many messages wait, are being sent, or pause.
func (b *Outbox) UnderWay() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left
}

func (b *Outbox) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left--
	if b.closed && b.left == 0 {
		close(b.idle)
	}
}

func (b *Outbox) work() {
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
func (b *Outbox) retry(q *queuedMessage) {
	time.AfterFunc(b.Backoff(q.attempt), func() { b.ready <- q })
}

// try makes one attempt at a message and tells whether to try again from here.
func (b *Outbox) try(ctx context.Context, q *queuedMessage) (again bool) {
	q.attempt++
	if q.prepare != nil {
		m, err := q.prepare(ctx)
		if err != nil {
			b.o.Log.WarnContext(ctx, "auth: message not prepared", "kind", string(q.Kind), "message_id", q.id, "attempt", q.attempt, "error", err)
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
	if !b.o.Now().Before(q.sealed.ExpiresAt) {
		b.giveUp(q, errExpired)
		return false
	}
	if err := b.unseal(q); err != nil {
		b.o.Log.ErrorContext(ctx, "auth: message not opened", "message_id", q.id, "attempt", q.attempt, "error", err)
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
		b.o.Log.DebugContext(ctx, "auth: message sent", "kind", string(q.Kind), "message_id", q.id, "to", address.Mask(q.To), "attempt", q.attempt)
		b.o.Sent(q.Kind)
		b.finish(q, store.FinishMessage{State: store.MessageSent})
		return false
	case q.attempt >= b.o.Attempts || IsPermanent(err):
	case !q.kept || b.putOff(q, err):
		b.o.Log.WarnContext(ctx, "auth: message not sent yet", "kind", string(q.Kind), "message_id", q.id, "to", address.Mask(q.To), "attempt", q.attempt, "error", q.hide(err))
		return !q.kept
	}
	b.giveUp(q, err)
	return false
}

// unseal opens a sealed message, once.
func (b *Outbox) unseal(q *queuedMessage) (err error) {
	if q.sealed != nil && q.Kind == "" {
		q.Outgoing, err = b.o.Open(*q.sealed)
	}
	return err
}

// deliver renders a message and calls the mailer in a goroutine of its own, so
// that one that ignores its context blocks a worker no longer than Timeout. A few
// such attempts may linger; beyond that attempts fail at once.
func (b *Outbox) deliver(ctx context.Context, q *queuedMessage) error {
	m, err := b.o.Templates.render(q.Outgoing, b.o.Service)
	if err != nil {
		return Permanent(err)
	}
	m.ID, m.At = q.id, b.o.Now()
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
		result <- b.sender(m)(ctx, m)
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Outbox) sender(m Message) Sender {
	if m.Channel == store.ChannelSMS {
		return b.o.SMS
	}
	return b.o.Mail
}

// giveUp ends a message that was not sent.
func (b *Outbox) giveUp(q *queuedMessage, err error) {
	b.report(q, err)
	b.abandon(q, err)
}

// report tells of a message that was given up: the log, and the application. A
// decoy is nobody's loss.
func (b *Outbox) report(q *queuedMessage, err error) {
	if b.unseal(q) != nil || q.To == "" {
		return
	}
	err = q.hide(err)
	b.o.Log.Error("auth: message failed", "kind", string(q.Kind), "message_id", q.id, "to", address.Mask(q.To), "attempt", q.attempt, "error", err)
	b.o.Failed(context.Background(), Message{ID: q.id, Kind: q.Kind, Channel: q.Via(), To: q.To}, err)
}

// Close takes no more messages, claims none, and waits for those that are in this
// process, until ctx ends.
func (b *Outbox) Close(ctx context.Context) error {
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

// WatchFirst has the outcome of the first attempt at a message told.
func (b *Outbox) WatchFirst(id string) <-chan error {
	told := make(chan error, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.first[id] = told
	return told
}

// ForgetFirst ends the interest in a message of WatchFirst.
func (b *Outbox) ForgetFirst(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.first, id)
}

// tellFirst tells whoever waits for the first attempt at a message.
func (b *Outbox) tellFirst(id string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if told := b.first[id]; told != nil {
		told <- err
		delete(b.first, id)
	}
}

// Awaited is how many messages somebody waits for the first attempt at.
func (b *Outbox) Awaited() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.first)
}
