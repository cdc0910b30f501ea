package sqlitestore

import (
	"bytes"
	"context"
	"time"

	"github.com/authmount/auth/store"
)

const selectKeys = `select k.id, k.name, k.public, k.environment, k.hash, k.scopes, k.networks, k.created_by, k.adopted, k.hourly_limit, k.revision, k.created_at, k.expires_at, k.revoked_at, k.last_used_at, k.rotated_at,
	k.text_user, k.text_sequence, k.previous_hash, k.previous_until from auth_api_keys k`

func scanKey(scan row) (k store.APIKey) {
	scan(&k.ID, &k.Name, &k.Public, &k.Environment, &k.Hash, parsed{&k.Scopes}, parsed{&k.Networks}, &k.CreatedBy, &k.Adopted, &k.HourlyLimit, &k.Revision, at{&k.CreatedAt}, at{&k.ExpiresAt}, at{&k.RevokedAt}, at{&k.LastUsedAt}, at{&k.RotatedAt},
		&k.TextUser, &k.TextSequence, &k.PreviousHash, at{&k.PreviousUntil})
	return k
}

func (t *tx) key(id string) *store.APIKey {
	return first(t, scanKey, selectKeys+` where k.id = ?`, id)
}

// Key reads an API key.
func (s *Store) Key(ctx context.Context, id string) (found store.APIKey, err error) {
	err = s.read(ctx, func(t *tx) error {
		k := t.key(id)
		if k == nil {
			return store.ErrNotFound
		}
		found = *k
		return nil
	})
	return found, err
}

// Keys lists API keys.
func (s *Store) Keys(ctx context.Context, q store.KeyQuery) ([]store.APIKey, error) {
	query := &query{sql: selectKeys + ` where true`}
	if q.Public != nil {
		query.where(`k.public = ?`, *q.Public)
	}
	if !q.LiveAt.IsZero() {
		query.where(`k.revoked_at is null and (k.expires_at is null or k.expires_at > ?)`, micros(q.LiveAt))
	}
	if q.After != nil {
		query.where(`(k.created_at, k.id) < (?, ?)`, micros(q.After.CreatedAt), q.After.ID)
	}
	query.end(` order by k.created_at desc, k.id desc limit ?`, q.Limit)
	return listed(ctx, s, query, scanKey)
}

// UseKey records the use of an API key. It reads before it takes the write lock, because
// most uses change nothing.
func (s *Store) UseKey(ctx context.Context, id string, used time.Time) error {
	const due = `where id = ? and (last_used_at is null or last_used_at <= ?)`
	some := false
	err := s.read(ctx, func(t *tx) error {
		some = t.exists(`select 1 from auth_api_keys `+due, id, micros(used.Add(-time.Minute)))
		return nil
	})
	if err != nil || !some {
		return err
	}
	return s.write(ctx, func(t *tx) error {
		t.exec(`update auth_api_keys set last_used_at = ? `+due, micros(used), id, micros(used.Add(-time.Minute)))
		return nil
	})
}

// PutKey adds or replaces an API key.
func (s *Store) PutKey(ctx context.Context, c store.PutKey) (kept store.APIKey, err error) {
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		k, older := c.Key, t.key(c.Key.ID)
		if c.IfRevision != nil && (older == nil || older.Revision != *c.IfRevision) {
			return nil, store.ErrStale
		}
		if t.exists(`select 1 from auth_api_keys where hash = ? and id <> ?`, blob(k.Hash), k.ID) {
			return nil, &store.ConflictError{Field: "key"}
		}
		k.CreatedAt, k.Revision, k.LastUsedAt, k.TextUser, k.TextSequence = c.Now, 0, time.Time{}, "", 0
		if by := c.By.Session; by != nil {
			k.TextUser, k.TextSequence = by.UserID, t.addedBy(c.By, by.UserID, nil)
		}
		if older != nil {
			k.CreatedAt, k.Revision, k.LastUsedAt = older.CreatedAt, older.Revision+1, older.LastUsedAt
			if bytes.Equal(k.Hash, older.Hash) {
				k.TextUser, k.TextSequence = older.TextUser, older.TextSequence
			}
		}
		return &effect{apply: func() error {
			t.putKey(&k)
			if stored := t.key(k.ID); stored != nil {
				kept = *stored
			}
			return nil
		}}, nil
	})
	if err != nil {
		return store.APIKey{}, err
	}
	return kept, nil
}

func (t *tx) putKey(k *store.APIKey) {
	t.exec(`insert or replace into auth_api_keys (id, name, public, environment, hash, scopes, networks, created_by, adopted, hourly_limit, revision, created_at, expires_at, revoked_at, last_used_at, rotated_at,
		text_user, text_sequence, previous_hash, previous_until) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		k.ID, k.Name, k.Public, k.Environment, blob(k.Hash), t.text(k.Scopes), t.text(k.Networks), k.CreatedBy, k.Adopted, k.HourlyLimit, k.Revision, micros(k.CreatedAt), maybe(k.ExpiresAt), maybe(k.RevokedAt), maybe(k.LastUsedAt), maybe(k.RotatedAt),
		k.TextUser, k.TextSequence, bytesOrNull(k.PreviousHash), maybe(k.PreviousUntil))
}
