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

// A store that keeps messages (Journal) has each of them from the moment of
// the change that it tells of. Whoever records one holds it as if claimed: it is
// sent from this process's queue at once, without another statement, and erased
// afterwards. What that process did not finish in time, because it crashed, was
// closed or did not learn that the change came about, is claimed by whichever
// instance looks next. So each message is sent at least once, under the same id.

// redacted is in the log and in the store where a secret was.
const redacted = "[redacted]"

const (
	claimEvery = 5 * time.Second // about
	claimBatch = 100
	leastLease = time.Minute
	storeCall  = 10 * time.Second
)

const (
	// keptFailed is for how long a failed message can be sent again, if it does not
	// expire before.
	keptFailed = 24 * time.Hour
	// maxMessageError bounds MessageRecord.Error, in bytes.
	maxMessageError = 500
)

// keeper is the store's part in the outbox.
type keeper struct {
	store store.Journal
	every time.Duration
	inTx  func(context.Context) bool // nil: never

	woken chan struct{} // look now
	stop  context.CancelFunc
	ended chan struct{} // nobody claims any more
}

func newKeeper() keeper {
	k := keeper{every: claimEvery, woken: make(chan struct{}, 1), stop: func() {}, ended: make(chan struct{})}
	close(k.ended) // nobody has begun
	return k
}

// keepIn makes a store the keeper of messages and begins to look for those that
// are overdue, unless others do (idle).
func (b *Outbox) keepIn(s store.Journal, inTx func(context.Context) bool, idle bool) {
	b.store, b.inTx = s, inTx
	if idle {
		b.inTx = func(context.Context) bool { return true }
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	b.stop, b.ended = stop, make(chan struct{})
	go b.watch(ctx)
}

// Lease is for how long a message is one process's: long enough for an attempt
// that begins late.
func (b *Outbox) Lease() time.Duration { return max(3*b.o.Timeout, leastLease) }

// Durable tells whether a store has the messages.
func (b *Outbox) Durable() bool { return b.store != nil }

// holds tells whether enough of the lease is left for an attempt. Otherwise the
// message is left to whoever claims it next.
func (b *Outbox) holds(m *store.SealedMessage) bool {
	if b.o.Now().Add(b.o.Timeout).Before(m.NextAt) || !b.o.Now().Before(m.ExpiresAt) {
		return true
	}
	b.Wake()
	return false
}

// Joins tells whether what is recorded with this context is a part of the
// application's own transaction, and comes about with that, or is for others to send
// anyway.
func (b *Outbox) Joins(ctx context.Context) bool { return b.inTx != nil && b.inTx(ctx) }

// watch looks for messages that are overdue, until ctx ends. Instances that were
// started together do not look together for long.
func (b *Outbox) watch(ctx context.Context) {
	defer close(b.ended)
	for {
		look := time.NewTimer(b.every/2 + rand.N(b.every)) //nolint:gosec // jitter, not a secret
		select {
		case <-ctx.Done():
			look.Stop()
			return
		case <-look.C:
		case <-b.woken:
			look.Stop()
		}
		b.Claim(ctx)
	}
}

// Wake has the watch look now.
func (b *Outbox) Wake() {
	select {
	case b.woken <- struct{}{}:
	default:
	}
}

func (b *Outbox) stopClaiming() {
	b.stop()
	<-b.ended
}

// Claim takes on what is due, as far as there is room.
func (b *Outbox) Claim(ctx context.Context) {
	for {
		limit := min(b.room(), claimBatch)
		if limit == 0 {
			return
		}
		list, err := b.claimSome(ctx, limit)
		if err != nil && ctx.Err() == nil {
			b.o.Log.WarnContext(ctx, "auth: messages not claimed", "error", err)
		}
		for i := range list {
			q := b.from(&list[i])
			if err := b.enter(); err != nil {
				b.turnedAway(q, err)
				continue
			}
			b.ready <- q
		}
		if len(list) < limit {
			return
		}
	}
}

func (b *Outbox) claimSome(ctx context.Context, limit int) ([]store.SealedMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, storeCall)
	defer cancel()
	now := b.o.Now()
	return b.store.ClaimMessages(ctx, store.ClaimMessages{Now: now, Until: now.Add(b.Lease()), Limit: limit})
}

// room is how many places of the queue are free.
func (b *Outbox) room() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.o.Queue - b.left
}

// putOff has a message claimed again after a pause, by whichever instance is
// there then. It tells whether that is before the message expires.
func (b *Outbox) putOff(q *queuedMessage, why error) bool {
	d := b.Backoff(q.attempt)
	at := b.o.Now().Add(d)
	if !at.Before(q.sealed.ExpiresAt) {
		return false
	}
	b.finish(q, store.FinishMessage{State: store.MessageQueued, RetryAt: at, Error: q.told(why)})
	time.AfterFunc(d, b.Wake)
	return true
}

// abandon ends a message that was not sent. What failed is kept for a while, so that an
// operator may have it sent again.
func (b *Outbox) abandon(q *queuedMessage, why error) {
	switch {
	case q.decoy():
		b.finish(q, store.FinishMessage{})
	case errors.Is(why, errExpired):
		b.finish(q, store.FinishMessage{State: store.MessageDropped, Error: q.told(why)})
	default:
		b.finish(q, store.FinishMessage{State: store.MessageFailed, Error: q.told(why), KeepUntil: b.o.Now().Add(keptFailed)})
	}
}

// finish erases a message that is over, or keeps what f says, and notes what became of
// it. If that fails, it is claimed again after the lease: rather twice than never.
func (b *Outbox) finish(q *queuedMessage, f store.FinishMessage) {
	if !q.kept {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeCall)
	defer cancel()
	f.ID, f.At, f.Attempts = q.id, b.o.Now(), q.attempt
	if err := b.store.FinishMessage(ctx, f); err != nil {
		b.o.Log.Warn("auth: the store was not told about a message, which may be sent again", "message_id", q.id, "error", err)
	}
}

// decoy tells whether a message, once it was opened, is one that goes nowhere.
func (q *queuedMessage) decoy() bool { return q.Kind != "" && q.To == "" }

// hide makes an error about a message one that shows neither to whom it goes nor what
// lets one in: a server may repeat what it was given. What the error matches stays.
func (q *queuedMessage) hide(err error) error {
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
	return &silenced{text, err}
}

// silenced is an error whose text is another one's without what it must not say.
type silenced struct {
	text string
	err  error
}

func (s *silenced) Error() string { return s.text }

// Is lets errors.Is look behind the text.
func (s *silenced) Is(target error) bool { return errors.Is(s.err, target) }

// told is what the list of messages says of an error: the first line of what the log
// has, behind which a server may repeat a message.
func (q *queuedMessage) told(err error) string {
	if err == nil {
		return ""
	}
	text, _, _ := strings.Cut(q.hide(err).Error(), "\n")
	text = visible.Line(text)
	if len(text) > maxMessageError {
		text = strings.ToValidUTF8(text[:maxMessageError], "")
	}
	return text
}
