package memstore

import (
	"bytes"
	"context"

	"github.com/authmount/auth"
)

// Settings reads the document of settings.
func (s *Store) Settings(ctx context.Context) (auth.StoredSettings, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return auth.StoredSettings{}, err
	}
	defer unlock()
	return copySettings(s.settings), nil
}

// PutSettings replaces the document of settings.
func (s *Store) PutSettings(ctx context.Context, c auth.PutSettings) (kept auth.StoredSettings, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		if c.Document != nil && c.Revision != s.settings.Revision {
			return nil, auth.ErrStale
		}
		return &effect{apply: func() error {
			if c.Document != nil {
				s.settings = auth.StoredSettings{Revision: c.Revision + 1, Document: bytes.Clone(c.Document), UpdatedAt: c.Now}
			}
			kept = copySettings(s.settings)
			return nil
		}}, nil
	})
	return kept, err
}

func copySettings(d auth.StoredSettings) auth.StoredSettings {
	d.Document = bytes.Clone(d.Document)
	return d
}
