package memstore

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// Key reads an API key.
func (s *Store) Key(ctx context.Context, id string) (store.APIKey, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return store.APIKey{}, err
	}
	defer unlock()
	k := s.keys[id]
	if k == nil {
		return store.APIKey{}, store.ErrNotFound
	}
	return copyKey(*k), nil
}

// Keys lists API keys.
func (s *Store) Keys(ctx context.Context, q store.KeyQuery) ([]store.APIKey, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	list := []store.APIKey{}
	for _, k := range s.keys {
		if is(q.Public, k.Public) && (q.LiveAt.IsZero() || k.Live(q.LiveAt)) && (q.After == nil || q.After.Compare(k.Cursor()) < 0) {
			list = append(list, *k)
		}
	}
	slices.SortFunc(list, func(a, b store.APIKey) int { return a.Cursor().Compare(b.Cursor()) })
	list = slices.Clip(list[:min(len(list), q.Limit)])
	for i := range list {
		list[i] = copyKey(list[i])
	}
	return list, nil
}

// UseKey records the use of an API key.
func (s *Store) UseKey(ctx context.Context, id string, at time.Time) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if k := s.keys[id]; k != nil && !at.Before(k.LastUsedAt.Add(time.Minute)) {
		k.LastUsedAt = utc(at)
	}
	return nil
}

// PutKey adds or replaces an API key.
func (s *Store) PutKey(ctx context.Context, c store.PutKey) (kept store.APIKey, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		if older := s.keys[c.Key.ID]; c.IfRevision != nil && (older == nil || older.Revision != *c.IfRevision) {
			return nil, store.ErrStale
		}
		if id, ok := s.byHash[string(c.Key.Hash)]; ok && id != c.Key.ID {
			return nil, &store.ConflictError{Field: "key"}
		}
		return &effect{apply: func() error {
			k := copyKey(c.Key)
			k.CreatedAt, k.Revision, k.LastUsedAt, k.TextUser, k.TextSequence = c.Now, 0, time.Time{}, "", 0
			if by := c.By.Session; by != nil {
				k.TextUser, k.TextSequence = by.UserID, s.sessions[by.ID].Sequence
			}
			if older := s.keys[k.ID]; older != nil {
				k.CreatedAt, k.Revision, k.LastUsedAt = older.CreatedAt, older.Revision+1, older.LastUsedAt
				if bytes.Equal(k.Hash, older.Hash) {
					k.TextUser, k.TextSequence = older.TextUser, older.TextSequence
				}
				delete(s.byHash, string(older.Hash))
			}
			s.addKey(k)
			kept = copyKey(k)
			return nil
		}}, nil
	})
	return kept, err
}

// revokeKeysOf revokes the keys of a user that a patch names.
func (s *Store) revokeKeysOf(userID string, p *store.UserPatch, now time.Time) {
	for _, k := range s.keys {
		own := p.Accept && k.CreatedBy == userID && !k.Adopted
		from := p.RevokeKeys > 0 && k.TextUser == userID && k.TextSequence >= p.RevokeKeys
		if (own || from) && k.RevokedAt.IsZero() {
			k.RevokedAt = utc(now)
			k.Revision++
		}
	}
}

func (s *Store) addKey(k store.APIKey) {
	s.keys[k.ID], s.byHash[string(k.Hash)] = &k, k.ID
}

func copyKey(k store.APIKey) store.APIKey {
	k.Hash, k.PreviousHash = slices.Clone(k.Hash), slices.Clone(k.PreviousHash)
	k.Scopes, k.Networks = slices.Clone(k.Scopes), slices.Clone(k.Networks)
	allUTC(&k.CreatedAt, &k.ExpiresAt, &k.RevokedAt, &k.LastUsedAt, &k.PreviousUntil, &k.RotatedAt)
	return k
}
