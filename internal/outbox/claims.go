package outbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/authmount/auth/internal/address"
	"github.com/authmount/auth/internal/visible"
	"github.com/authmount/auth/store"
)

// A store that stores messages (Journal) receives each message in the change that
// causes it. The process that records a message holds a claim to it: it sends the message
// at once from its own queue, without another statement, and deletes it afterwards. If
// that process does not finish in time, because it crashed, was closed or did not learn
// that the change was committed, the next instance that looks claims the message. So each
// message is sent at least once, always under the same id.

// redacted replaces secrets in the log and in the store.
const redacted = "[redacted]"

const (
	claimEvery = 5 * time.Second // on average
	claimBatch = 100
	minLease   = time.Minute
	storeCall  = 10 * time.Second
)

const (
	// failedRetention is the time for which a failed message can be sent again, unless it
	// expires earlier.
	failedRetention = 24 * time.Hour
	// maxMessageError limits MessageRecord.Error, in bytes.
	maxMessageError = 500
)

// messageClaims claims messages from the store.
type messageClaims struct {
	store    store.Journal
	interval time.Duration
	inTx     func(context.Context) bool // nil: never

	wakeup    chan struct{} // asks the watch to claim now
	stopWatch context.CancelFunc
	watchDone chan struct{} // closed when the watch has stopped
}

func newMessageClaims() messageClaims {
	k := messageClaims{interval: claimEvery, wakeup: make(chan struct{}, 1), stopWatch: func() {}, watchDone: make(chan struct{})}
	close(k.watchDone) // no watch is running
	return k
}

// useStore sets the store of messages and starts to claim overdue ones, unless other
// processes do that (idle).
func (b *Outbox) useStore(s store.Journal, inTx func(context.Context) bool, idle bool) {
	b.store, b.inTx = s, inTx
	if idle {
		b.inTx = func(context.Context) bool { return true }
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	b.stopWatch, b.watchDone = stop, make(chan struct{})
	go b.watch(ctx)
}

// Lease returns how long a claim lasts: long enough for an attempt that starts late.
func (b *Outbox) Lease() time.Duration { return max(3*b.o.Timeout, minLease) }

// Durable reports whether a store has the messages.
func (b *Outbox) Durable() bool { return b.store != nil }

// leaseSuffices reports whether the rest of the lease suffices for an attempt. If not, the next
// instance to claim the message sends it.
func (b *Outbox) leaseSuffices(m *store.SealedMessage) bool {
	if b.o.Now().Add(b.o.Timeout).Before(m.NextAt) || !b.o.Now().Before(m.ExpiresAt) {
		return true
	}
	b.Wake()
	return false
}

// JoinsTransaction reports whether messages recorded with this context belong to a transaction of
// the application and are committed with it, or are left to other processes.
func (b *Outbox) JoinsTransaction(ctx context.Context) bool { return b.inTx != nil && b.inTx(ctx) }

// watch claims overdue messages until ctx is done. The interval is random, so that
// instances that started together do not claim together for long.
func (b *Outbox) watch(ctx context.Context) {
	defer close(b.watchDone)
	for {
		timer := time.NewTimer(b.interval/2 + rand.N(b.interval)) //nolint:gosec // jitter, not a secret
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-b.wakeup:
			timer.Stop()
		}
		b.Claim(ctx)
	}
}

// Wake asks the watch to claim now.
func (b *Outbox) Wake() {
	select {
	case b.wakeup <- struct{}{}:
	default:
	}
}

func (b *Outbox) stopClaiming() {
	b.stopWatch()
	<-b.watchDone
}

// Claim claims messages that are due, as many as the queue has space for.
func (b *Outbox) Claim(ctx context.Context) {
	for {
		limit := min(b.freePlaces(), claimBatch)
		if limit == 0 {
			return
		}
		list, err := b.claimMessages(ctx, limit)
		if err != nil && ctx.Err() == nil {
			b.o.Log.WarnContext(ctx, "auth: cannot claim messages", "error", err)
		}
		for i := range list {
			q := b.queued(&list[i])
			if err := b.acquire(); err != nil {
				b.reject(q, err)
				continue
			}
			b.ready <- q
		}
		if len(list) < limit {
			return
		}
	}
}

func (b *Outbox) claimMessages(ctx context.Context, limit int) ([]store.SealedMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, storeCall)
	defer cancel()
	now := b.o.Now()
	return b.store.ClaimMessages(ctx, store.ClaimMessages{Now: now, Until: now.Add(b.Lease()), Limit: limit})
}

// freePlaces returns the number of free places in the queue.
func (b *Outbox) freePlaces() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.o.Queue - b.pending
}

// postpone returns a message to the store, so that any instance claims it again after a
// pause. It returns false if the message expires before.
func (b *Outbox) postpone(q *queuedMessage, reason error) bool {
	d := b.Backoff(q.attempt)
	at := b.o.Now().Add(d)
	if !at.Before(q.sealed.ExpiresAt) {
		return false
	}
	b.finish(q, store.FinishMessage{State: store.MessageQueued, RetryAt: at, Error: q.storedError(reason)})
	time.AfterFunc(d, b.Wake)
	return true
}

// finishUnsent finishes a message that was not sent. A failed message is stored for a while,
// so that an operator can send it again.
func (b *Outbox) finishUnsent(q *queuedMessage, reason error) {
	switch {
	case q.decoy():
		b.finish(q, store.FinishMessage{})
	case errors.Is(reason, errExpired):
		b.finish(q, store.FinishMessage{State: store.MessageDropped, Error: q.storedError(reason)})
	default:
		b.finish(q, store.FinishMessage{State: store.MessageFailed, Error: q.storedError(reason), KeepUntil: b.o.Now().Add(failedRetention)})
	}
}

// finish deletes a finished message, or stores the state in f, and records the outcome.
// If that fails, the message is claimed again after its lease, because a message that
// arrives twice is better than one that is lost.
func (b *Outbox) finish(q *queuedMessage, f store.FinishMessage) {
	if !q.stored {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeCall)
	defer cancel()
	f.ID, f.At, f.Attempts = q.id, b.o.Now(), q.attempt
	if err := b.store.FinishMessage(ctx, f); err != nil {
		b.o.Log.Warn("auth: cannot record the outcome of a message; it may be sent again", "message_id", q.id, "error", err)
	}
}

// decoy reports whether an opened message has no recipient.
func (q *queuedMessage) decoy() bool { return q.Kind != "" && q.To == "" }

// redact removes the recipient, link and code from an error about a message, because a mail
// server may repeat its input. The error still matches the same targets.
func (q *queuedMessage) redact(err error) error {
	err = address.Hide(err, q.To)
	if err == nil {
		return nil
	}
	text := err.Error()
	_, token, _ := strings.Cut(q.Link, "token=")
	token, _, _ = strings.Cut(token, "&")
	for _, secret := range []string{q.Link, token, q.Code} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, redacted)
		}
	}
	if text == err.Error() {
		return err
	}
	return &redactedError{text, err}
}

// redactedError is an error with a redacted text.
type redactedError struct {
	text string
	err  error
}

func (s *redactedError) Error() string { return s.text }

// Is matches the original error.
func (s *redactedError) Is(target error) bool { return errors.Is(s.err, target) }

// storedError returns the text of an error for the list of messages: the first line of the
// redacted text. A server may repeat the message in the lines after it.
func (q *queuedMessage) storedError(err error) string {
	if err == nil {
		return ""
	}
	text, _, _ := strings.Cut(q.redact(err).Error(), "\n")
	text = visible.Line(text)
	if len(text) > maxMessageError {
		text = strings.ToValidUTF8(text[:maxMessageError], "")
	}
	return text
}
