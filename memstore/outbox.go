package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/authmount/auth"
)

// addMessage keeps a message. One for a user who is gone, as after the change
// that removed it, goes with the user.
func (s *Store) addMessage(m auth.SealedMessage) {
	if m.UserID != "" && s.users[m.UserID] == nil {
		return
	}
	kept := copyMessage(m)
	s.messages[m.ID] = &kept
}

// sendable tells whether a message has neither expired nor lost its token.
func (s *Store) sendable(m *auth.SealedMessage, now time.Time) bool {
	return now.Before(m.ExpiresAt) && (m.Token.Purpose == "" || s.liveToken(refID(m.Token), now) != nil)
}

// ClaimMessages hands out messages that are due.
func (s *Store) ClaimMessages(ctx context.Context, c auth.ClaimMessages) ([]auth.SealedMessage, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	due := []*auth.SealedMessage{}
	for _, m := range s.messages {
		if !c.Now.Before(m.NextAt) && s.sendable(m, c.Now) {
			due = append(due, m)
		}
	}
	slices.SortFunc(due, func(a, b *auth.SealedMessage) int { return byAge(a.CreatedAt, a.ID, b.CreatedAt, b.ID) })
	list := []auth.SealedMessage{}
	for _, m := range due[:min(len(due), max(c.Limit, 0))] {
		m.Attempts++
		m.NextAt = utc(c.Until)
		list = append(list, copyMessage(*m))
	}
	return list, nil
}

// FinishMessage erases a message or puts it off.
func (s *Store) FinishMessage(ctx context.Context, f auth.FinishMessage) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if f.RetryAt.IsZero() {
		delete(s.messages, f.ID)
	} else if m := s.messages[f.ID]; m != nil {
		m.NextAt = utc(f.RetryAt)
	}
	return nil
}

func copyMessage(m auth.SealedMessage) auth.SealedMessage {
	m.Token.Hash, m.Body = slices.Clone(m.Token.Hash), slices.Clone(m.Body)
	allUTC(&m.CreatedAt, &m.NextAt, &m.ExpiresAt)
	return m
}
