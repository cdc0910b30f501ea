package memstore

import (
	"context"

	"github.com/authmount/auth/store"
)

// Diagnose counts the messages that wait to be sent.
func (s *Store) Diagnose(ctx context.Context) (store.StoreDiagnosis, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return store.StoreDiagnosis{}, err
	}
	defer unlock()
	d := store.StoreDiagnosis{}
	for _, m := range s.messages {
		if m.Failed {
			continue
		}
		d.Waiting++
		if d.Oldest.IsZero() || m.CreatedAt.Before(d.Oldest) {
			d.Oldest = m.CreatedAt
		}
	}
	return d, nil
}
