package sqlitestore

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// Account returns a user's credentials and the data that UserRecords lists.
func (s *Store) Account(ctx context.Context, k store.UserKey, now time.Time) (c store.Credentials, h store.UserRecords, err error) {
	err = s.snapshot(ctx, func(t *tx) error {
		u := t.find(k)
		if u == nil {
			return store.ErrNotFound
		}
		c, h = t.credentials(u, k.Device), t.records(u.ID, now)
		return nil
	})
	if err != nil {
		return store.Credentials{}, store.UserRecords{}, err
	}
	return c, h, nil
}

// UserRecords lists the stored data about a user.
func (s *Store) UserRecords(ctx context.Context, userID string, now time.Time) (h store.UserRecords, err error) {
	err = s.snapshot(ctx, func(t *tx) error {
		h = t.records(userID, now)
		return nil
	})
	if err != nil {
		return store.UserRecords{}, err
	}
	return h, nil
}

func (t *tx) records(userID string, now time.Time) (h store.UserRecords) {
	h.Devices = orNil(list(t, func(scan row) (d store.DeviceRecord) {
		scan(&d.Device, at{&d.FirstSeenAt}, at{&d.LastSeenAt}, &d.Sequence, &d.AddedBy)
		return d
	}, `select device, first_seen_at, last_seen_at, sequence, added_by from auth_devices where user_id = ? and device <> ? and last_seen_at > ?
		order by first_seen_at, last_seen_at, device`, userID, forgotten, micros(now.Add(-store.DeviceLife))))
	h.Pending = orNil(list(t, func(scan row) (k store.TokenRecord) {
		scan(&k.Purpose, &k.Subject, &k.Data, at{&k.CreatedAt}, at{&k.ExpiresAt})
		return k
	}, `select purpose, subject, data, created_at, expires_at from auth_tokens where user_id = ? and expires_at > ?
		order by created_at, expires_at, purpose, subject`, userID, micros(now)))
	h.Messages = orNil(list(t, func(scan row) (m store.PendingMessage) {
		scan(at{&m.CreatedAt}, at{&m.ExpiresAt})
		return m
	}, `select created_at, expires_at from auth_messages where user_id = ? and expires_at > ? order by created_at, expires_at`, userID, micros(now)))
	return h
}

func orNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}
