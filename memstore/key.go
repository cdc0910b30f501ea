package memstore

import (
	"context"
	"slices"

	"github.com/authmount/auth"
)

// Key reads an API key.
func (s *Store) Key(ctx context.Context, id string) (auth.APIKey, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return auth.APIKey{}, err
	}
	defer unlock()
	k := s.keys[id]
	if k == nil {
		return auth.APIKey{}, auth.ErrNotFound
	}
	return copyKey(*k), nil
}

// PutKey adds or replaces an API key.
func (s *Store) PutKey(ctx context.Context, c auth.PutKey) (kept auth.APIKey, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		if id, ok := s.byHash[string(c.Key.Hash)]; ok && id != c.Key.ID {
			return nil, &auth.ConflictError{Field: "key"}
		}
		return &effect{apply: func() error {
			k := copyKey(c.Key)
			k.CreatedAt, k.Revision = c.Now, 0
			if older := s.keys[k.ID]; older != nil {
				k.CreatedAt, k.Revision = older.CreatedAt, older.Revision+1
				delete(s.byHash, string(older.Hash))
			}
			s.addKey(k)
			kept = copyKey(k)
			return nil
		}}, nil
	})
	return kept, err
}

func (s *Store) addKey(k auth.APIKey) {
	s.keys[k.ID], s.byHash[string(k.Hash)] = &k, k.ID
}

func copyKey(k auth.APIKey) auth.APIKey {
	k.Hash, k.Scopes = slices.Clone(k.Hash), slices.Clone(k.Scopes)
	allUTC(&k.CreatedAt, &k.ExpiresAt, &k.RevokedAt)
	return k
}
