package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// message is a message of the outbox.
type message struct {
	store.SealedMessage
	Failed bool `json:"failed,omitempty"` // kept, but not claimed
}

// loggedMessage is the record of a message.
type loggedMessage struct {
	store.MessageRecord
	Recipient string
}

// note updates the record of a message.
func (s *Store) note(f store.FinishMessage) {
	l := s.log[f.ID]
	switch {
	case l == nil || l.State == store.MessageSent:
	case f.State == "":
		delete(s.log, f.ID)
	default:
		l.State, l.UpdatedAt, l.Attempts, l.Error = f.State, utc(f.At), f.Attempts, f.Error
	}
}

// dropMessage deletes a message that will not be sent.
func (s *Store) dropMessage(id string, now time.Time) {
	delete(s.messages, id)
	if l := s.log[id]; l != nil && l.State == store.MessageQueued {
		l.State, l.UpdatedAt = store.MessageDropped, utc(now)
	}
}

// dropLog deletes the records of messages to a user or recipients, and their failed
// messages.
func (s *Store) dropLog(userID string, recipients ...string) {
	for id, l := range s.log {
		if l.UserID == userID || l.Recipient != "" && slices.Contains(recipients, l.Recipient) {
			delete(s.log, id)
			if m := s.messages[id]; m != nil && m.Failed {
				delete(s.messages, id)
			}
		}
	}
}

// ListMessages scans all records, because memory is for tests and small services.
func (s *Store) ListMessages(ctx context.Context, q store.MessageQuery) ([]store.MessageRecord, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	list := []store.MessageRecord{}
	for _, l := range s.log {
		if l.picked(&q) && (q.After == nil || byAge(l.CreatedAt, l.ID, q.After.Time, q.After.ID) < 0) {
			list = append(list, l.MessageRecord)
		}
	}
	slices.SortFunc(list, func(a, b store.MessageRecord) int { return byAge(b.CreatedAt, b.ID, a.CreatedAt, a.ID) })
	return slices.Clip(list[:min(len(list), q.Limit)]), nil
}

// picked reports whether a record matches all of a query except its place in the list.
func (l *loggedMessage) picked(q *store.MessageQuery) bool {
	return l.Kind != "" && (q.ID == "" || q.ID == l.ID) && (q.State == "" || q.State == l.State) && (q.Kind == "" || q.Kind == l.Kind) &&
		(q.UserID == "" || q.UserID == l.UserID) && !l.CreatedAt.Before(q.From) && (q.To.IsZero() || l.CreatedAt.Before(q.To))
}

// failed returns a failed message that can be sent again, or nil.
func (s *Store) failed(id string, now time.Time) *message {
	if m := s.messages[id]; m != nil && m.Failed && s.sendable(m, now) {
		return m
	}
	return nil
}

// FailedMessage returns a message that was kept as failed.
func (s *Store) FailedMessage(ctx context.Context, id string, now time.Time) (store.SealedMessage, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return store.SealedMessage{}, err
	}
	defer unlock()
	m := s.failed(id, now)
	if m == nil {
		return store.SealedMessage{}, store.ErrNotFound
	}
	return copyMessage(m.SealedMessage), nil
}

// RetryMessage lets a failed message be claimed again.
func (s *Store) RetryMessage(ctx context.Context, c store.RetryMessage) error {
	return s.change(ctx, &c.Change, func() (*effect, error) {
		m := s.failed(c.ID, c.Now)
		if m == nil {
			return nil, store.ErrStale
		}
		return &effect{apply: func() error {
			m.Failed, m.Attempts, m.NextAt = false, 0, c.Now
			if l := s.log[c.ID]; l != nil {
				l.State, l.UpdatedAt, l.Attempts = store.MessageQueued, c.Now, 0
			}
			return nil
		}}, nil
	})
}
