package memstore

import (
	"bytes"
	"context"

	"github.com/authmount/auth/store"
)

// Settings reads the document of settings.
func (s *Store) Settings(ctx context.Context) (store.StoredSettings, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return store.StoredSettings{}, err
	}
	defer unlock()
	return copySettings(s.settings), nil
}

// PutSettings replaces the document of settings.
func (s *Store) PutSettings(ctx context.Context, c store.PutSettings) (kept store.StoredSettings, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		if c.Document != nil && c.Revision != s.settings.Revision {
			return nil, store.ErrStale
		}
		return &effect{apply: func() error {
			if c.Document != nil {
				s.settings = store.StoredSettings{Revision: c.Revision + 1, Document: bytes.Clone(c.Document), UpdatedAt: c.Now}
			}
			kept = copySettings(s.settings)
			return nil
		}}, nil
	})
	return kept, err
}

func copySettings(d store.StoredSettings) store.StoredSettings {
	d.Document = bytes.Clone(d.Document)
	return d
}
