package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// addMessage stores a message, unless its user has been deleted, for example by the same
// change.
func (s *Store) addMessage(m store.SealedMessage) {
	if m.UserID != "" && s.users[m.UserID] == nil {
		return
	}
	m = copyMessage(m)
	s.log[m.ID] = &loggedMessage{MessageRecord: store.MessageRecord{ID: m.ID, MessageLog: m.Log, State: store.MessageQueued, CreatedAt: m.CreatedAt, UpdatedAt: m.CreatedAt}, Recipient: m.Recipient}
	m.Log = store.MessageLog{}
	s.messages[m.ID] = &message{SealedMessage: m}
}

// sendable reports whether a message has not expired and its token, if any, is live.
func (s *Store) sendable(m *message, now time.Time) bool {
	return now.Before(m.ExpiresAt) && (m.Token.Purpose == "" || s.liveToken(refID(m.Token), now) != nil)
}

// ClaimMessages returns messages that are due.
func (s *Store) ClaimMessages(ctx context.Context, c store.ClaimMessages) ([]store.SealedMessage, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	due := []*message{}
	for _, m := range s.messages {
		if !m.Failed && !c.Now.Before(m.NextAt) && s.sendable(m, c.Now) {
			due = append(due, m)
		}
	}
	slices.SortFunc(due, func(a, b *message) int { return byAge(a.CreatedAt, a.ID, b.CreatedAt, b.ID) })
	list := []store.SealedMessage{}
	for _, m := range due[:min(len(due), max(c.Limit, 0))] {
		if l := s.log[m.ID]; l != nil {
			m.Attempts = l.Attempts // a claim without an outcome was no attempt
		}
		m.Attempts++
		m.NextAt = utc(c.Until)
		list = append(list, copyMessage(m.SealedMessage))
	}
	return list, nil
}

// FinishMessage deletes a message, postpones it or keeps it as failed, and updates its
// record.
func (s *Store) FinishMessage(ctx context.Context, f store.FinishMessage) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	m := s.messages[f.ID]
	switch {
	case m == nil:
	case !f.RetryAt.IsZero():
		m.NextAt, m.Failed = utc(f.RetryAt), false
	case !f.KeepUntil.IsZero():
		m.Failed = true
		if keep := utc(f.KeepUntil); keep.Before(m.ExpiresAt) {
			m.ExpiresAt = keep
		}
	default:
		delete(s.messages, f.ID)
	}
	s.note(f)
	return nil
}

func copyMessage(m store.SealedMessage) store.SealedMessage {
	m.Token.Hash, m.Body = slices.Clone(m.Token.Hash), slices.Clone(m.Body)
	allUTC(&m.CreatedAt, &m.NextAt, &m.ExpiresAt)
	return m
}
