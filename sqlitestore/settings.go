package sqlitestore

import (
	"context"

	"github.com/authmount/auth/store"
)

// Settings reads the document of settings.
func (s *Store) Settings(ctx context.Context) (found store.StoredSettings, err error) {
	err = s.read(ctx, func(t *tx) error {
		found = t.settings()
		return nil
	})
	if err != nil {
		return store.StoredSettings{}, err
	}
	return found, nil
}

func (t *tx) settings() store.StoredSettings {
	d := first(t, func(scan row) (d store.StoredSettings) {
		scan(&d.Revision, &d.Document, at{&d.UpdatedAt})
		return d
	}, `select revision, document, updated_at from auth_settings`)
	if d == nil {
		return store.StoredSettings{}
	}
	return *d
}

// PutSettings replaces the document of settings.
func (s *Store) PutSettings(ctx context.Context, c store.PutSettings) (kept store.StoredSettings, err error) {
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		if c.Document != nil && c.Revision != t.settings().Revision {
			return nil, store.ErrStale
		}
		return &effect{apply: func() error {
			if c.Document != nil {
				t.exec(`insert or replace into auth_settings (one, revision, document, updated_at) values (1, ?, ?, ?)`, c.Revision+1, c.Document, micros(c.Now))
			}
			kept = t.settings()
			return nil
		}}, nil
	})
	if err != nil {
		return store.StoredSettings{}, err
	}
	return kept, nil
}
