package memstore

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// KeyUses counts the stored data of each key.
func (s *Store) KeyUses(ctx context.Context, now time.Time) (store.KeyUses, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return store.KeyUses{}, err
	}
	defer unlock()
	uses := store.KeyUses{Factors: map[string]int{}, RecoveryCodes: map[string]int{}, Messages: map[string]int{}}
	count := func(of map[string]int, made []byte) { of[string(made[:min(len(made), store.KeyIDSize)])]++ }
	for _, u := range s.users {
		for _, f := range u.factors {
			count(uses.Factors, f.Secret)
		}
		for _, hash := range u.recovery {
			count(uses.RecoveryCodes, hash)
		}
	}
	for _, m := range s.messages {
		if now.Before(m.ExpiresAt) {
			count(uses.Messages, m.Body)
		}
	}
	for _, sess := range s.sessions {
		if sess.liveAt(now) && (uses.OldestRefresh.IsZero() || sess.RotatedAt.Before(uses.OldestRefresh)) {
			uses.OldestRefresh = sess.RotatedAt.UTC()
		}
	}
	return uses, nil
}
