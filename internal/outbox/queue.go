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
	errNotOpened   = errors.New("auth: the message is encrypted with another secret")
)

// Options configure an Outbox.
type Options struct {
	Queue    int           // most messages in this process, waiting or paused
	Workers  int           // messages sent at once
	Attempts int           // most attempts per message
	Timeout  time.Duration // of one attempt
	Sync     bool          // a request waits for the first attempt

	Mail, SMS Sender
	Templates *Templates
	Service   Service
	Open      func(store.SealedMessage) (Outgoing, error)
	Sent      func(store.Kind)                                // called for each sent message
	Failed    func(ctx context.Context, m Message, err error) // called for each failed message
	Log       *slog.Logger
	Now       func() time.Time

	Store store.Journal              // nil: messages are in memory only
	InTx  func(context.Context) bool // reports whether a context has a transaction of the application; nil: never
	Idle  bool                       // other processes send the stored messages
}

// Outbox sends messages in the background: it has a bounded queue, a few workers, and
// retries with growing pauses. Requests never wait for a mailer, so their duration does
// not reveal whether a message was sent. If the store has the messages (see claims.go),
// the queue is only the fastest path.
type Outbox struct {
	Backoff func(attempt int) time.Duration // pause between attempts; tests replace it

	o Options

	messageClaims // its store is nil if messages are in memory only

	ready   chan *queuedMessage
	calls   chan struct{} // slots of running attempts; an attempt may outlive its timeout
	workers sync.WaitGroup
	quit    context.CancelFunc
	done    context.Context // canceled to stop the workers

	mu            sync.Mutex
	pending       int                   // messages that wait, are being sent or pause
	closed        bool                  // no new messages are accepted
	firstAttempts map[string]chan error // receivers of a first attempt's result, by message id
	idle          chan struct{}         // closed when the outbox is closed and nothing is pending
}

// queuedMessage is a message in this process.
type queuedMessage struct {
	Outgoing
	id      string
	attempt int                  // number of the current or last attempt
	sealed  *store.SealedMessage // opened at the first attempt
	stored  bool                 // the store has the message and records its outcome

	// prepare creates the message in the background, so that the request's duration
	// reveals nothing. It returns nil if there is nothing to send.
	prepare func(context.Context) (*store.SealedMessage, error)
}

// New returns an outbox and starts its workers. With a store it also starts to claim
// messages.
func New(o Options) *Outbox {
	b := &Outbox{
		o: o, Backoff: backoff, messageClaims: newMessageClaims(),
		ready: make(chan *queuedMessage, o.Queue), calls: make(chan struct{}, 2*o.Workers), idle: make(chan struct{}), firstAttempts: map[string]chan error{},
	}
	b.inTx = o.InTx
	b.done, b.quit = context.WithCancel(context.Background())
	for range o.Workers {
		b.workers.Add(1)
		go b.work()
	}
	if o.Store != nil {
		b.useStore(o.Store, o.InTx, o.Idle)
	}
	return b
}

// backoff grows fourfold from about a second. Jitter spreads the retries of messages that
// failed together.
func backoff(attempt int) time.Duration {
	d := time.Second << (2 * min(attempt-1, 5))
	return d/2 + rand.N(d) //nolint:gosec // jitter, not a secret
}

// Enqueue queues the messages of a committed change. It never fails: Failed is called for
// messages that cannot be sent, unless the store has them.
func (b *Outbox) Enqueue(ctx context.Context, messages []store.SealedMessage) {
	for i := range messages {
		m := &messages[i]
		if b.store != nil && m.Attempts == 0 {
			continue // not claimed here: a later claim sends it
		}
		b.add(ctx, b.queued(m))
	}
}

// queued returns a message that this process recorded or claimed.
func (b *Outbox) queued(m *store.SealedMessage) *queuedMessage {
	return &queuedMessage{id: m.ID, sealed: m, stored: b.store != nil, attempt: max(m.Attempts-1, 0)}
}

// Prepare queues a message that f creates in the background.
func (b *Outbox) Prepare(ctx context.Context, k store.Kind, f func(context.Context) (*store.SealedMessage, error)) {
	id := uuid.Must(uuid.NewV7()).String() // crypto/rand never fails
	b.add(ctx, &queuedMessage{Outgoing: Outgoing{Kind: k}, id: id, prepare: f})
}

// add queues a message, or makes one attempt if Sync is set.
func (b *Outbox) add(ctx context.Context, q *queuedMessage) {
	if b.o.Sync {
		if !q.stored {
			q.attempt = b.o.Attempts - 1 // makes this attempt the last one
		}
		b.attempt(context.WithoutCancel(ctx), q)
		return
	}
	if err := b.acquire(); err != nil {
		b.reject(q, err)
		return
	}
	b.ready <- q // never blocks: ready has the capacity of the queue
}

// reject reports a message for which the queue has no space, unless the store has it.
func (b *Outbox) reject(q *queuedMessage, err error) {
	if q.stored {
		b.o.Log.Debug("auth: message stays in the store", "message_id", q.id, "error", err)
		return
	}
	b.report(q, err)
}

// acquire reserves a place in the queue.
func (b *Outbox) acquire() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return errQueueClosed
	case b.pending >= b.o.Queue:
		return errQueueFull
	}
	b.pending++
	return nil
}

// Pending returns how many messages wait, are being sent or pause.
func (b *Outbox) Pending() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pending
}

func (b *Outbox) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending--
	if b.closed && b.pending == 0 {
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
			if b.attempt(b.done, q) {
				b.retry(q)
				continue
			}
			b.release()
		}
	}
}

// retry queues a message again after a pause. During the pause it holds its place in the
// queue but no worker.
func (b *Outbox) retry(q *queuedMessage) {
	time.AfterFunc(b.Backoff(q.attempt), func() { b.ready <- q })
}

// attempt makes one attempt and reports whether this process should retry.
func (b *Outbox) attempt(ctx context.Context, q *queuedMessage) (again bool) {
	q.attempt++
	if q.prepare != nil {
		m, err := q.prepare(ctx)
		if err != nil {
			b.o.Log.WarnContext(ctx, "auth: cannot prepare a message", "kind", string(q.Kind), "message_id", q.id, "attempt", q.attempt, "error", err)
			return q.attempt < b.o.Attempts
		}
		if m == nil {
			return false
		}
		n := q.attempt
		*q = *b.queued(m) // a retry sends the same link
		if q.attempt++; !q.stored {
			q.attempt = n
		}
	}
	if q.stored && !b.leaseSuffices(q.sealed) {
		return false
	}
	if !b.o.Now().Before(q.sealed.ExpiresAt) {
		b.giveUp(q, errExpired)
		return false
	}
	if err := b.unseal(q); err != nil {
		b.o.Log.ErrorContext(ctx, "auth: cannot open a message", "message_id", q.id, "attempt", q.attempt, "error", err)
		b.postpone(q, errNotOpened) // another instance may have the secret
		return false
	}
	if q.decoy() {
		b.finish(q, store.FinishMessage{})
		return false
	}
	err := b.deliver(ctx, q)
	b.notifyFirstAttempt(q.id, q.redact(err))
	switch {
	case err == nil:
		b.o.Log.DebugContext(ctx, "auth: message sent", "kind", string(q.Kind), "message_id", q.id, "to", address.Mask(q.To), "attempt", q.attempt)
		b.o.Sent(q.Kind)
		b.finish(q, store.FinishMessage{State: store.MessageSent})
		return false
	case q.attempt >= b.o.Attempts || IsPermanent(err):
	case !q.stored || b.postpone(q, err):
		b.o.Log.WarnContext(ctx, "auth: message not sent, retrying", "kind", string(q.Kind), "message_id", q.id, "to", address.Mask(q.To), "attempt", q.attempt, "error", q.redact(err))
		return !q.stored
	}
	b.giveUp(q, err)
	return false
}

// unseal opens a sealed message if it is not open yet.
func (b *Outbox) unseal(q *queuedMessage) (err error) {
	if q.sealed != nil && q.Kind == "" {
		q.Outgoing, err = b.o.Open(*q.sealed)
	}
	return err
}

// deliver renders a message and calls the mailer in a separate goroutine, so that a
// mailer that ignores its context blocks a worker no longer than Timeout. If too many
// such calls are running, it fails at once.
func (b *Outbox) deliver(ctx context.Context, q *queuedMessage) error {
	m, err := b.o.Templates.render(q.Outgoing, b.o.Service)
	if err != nil {
		return Permanent(err)
	}
	m.ID, m.At = q.id, b.o.Now()
	select {
	case b.calls <- struct{}{}:
	default:
		return errors.New("auth: the mailer does not return")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.o.Timeout)
	defer cancel()
	result := make(chan error, 1)
	go func() {
		defer func() {
			<-b.calls
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

// giveUp reports and finishes a message that was not sent.
func (b *Outbox) giveUp(q *queuedMessage, err error) {
	b.report(q, err)
	b.finishUnsent(q, err)
}

// report logs a failed message and reports it to the application, unless it is a decoy.
func (b *Outbox) report(q *queuedMessage, err error) {
	if b.unseal(q) != nil || q.To == "" {
		return
	}
	err = q.redact(err)
	b.o.Log.Error("auth: message failed", "kind", string(q.Kind), "message_id", q.id, "to", address.Mask(q.To), "attempt", q.attempt, "error", err)
	b.o.Failed(context.Background(), Message{ID: q.id, Kind: q.Kind, Channel: q.Via(), To: q.To}, err)
}

// Close accepts and claims no more messages, and waits for those in this process until
// ctx is done.
func (b *Outbox) Close(ctx context.Context) error {
	b.stopClaiming()
	b.mu.Lock()
	if !b.closed && b.pending == 0 {
		close(b.idle)
	}
	b.closed = true
	b.mu.Unlock()
	if b.done.Err() != nil {
		return nil // closed before; that call reported the rest
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
		return fmt.Errorf("auth: %d messages were not sent and stay in the store: %w", b.pending, ctx.Err())
	}
	return fmt.Errorf("auth: %d messages were not sent: %w", b.pending, ctx.Err())
}

// WatchFirstAttempt returns a channel that receives the result of the first attempt at a
// message.
func (b *Outbox) WatchFirstAttempt(id string) <-chan error {
	result := make(chan error, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.firstAttempts[id] = result
	return result
}

// ForgetFirstAttempt removes the channel of WatchFirstAttempt.
func (b *Outbox) ForgetFirstAttempt(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.firstAttempts, id)
}

// notifyFirstAttempt sends the result of a first attempt to the channel of WatchFirstAttempt.
func (b *Outbox) notifyFirstAttempt(id string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if result := b.firstAttempts[id]; result != nil {
		result <- err
		delete(b.firstAttempts, id)
	}
}

// Watched returns the number of channels of WatchFirstAttempt.
func (b *Outbox) Watched() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.firstAttempts)
}
