package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// Account returns a user's credentials and the data that UserRecords lists.
func (s *Store) Account(ctx context.Context, k store.UserKey, now time.Time) (c store.Credentials, h store.UserRecords, err error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return c, h, err
	}
	defer unlock()
	u := s.find(k)
	if u == nil {
		return c, h, store.ErrNotFound
	}
	return u.credentials(k.Device), s.held(u, utc(now)), nil
}

// UserRecords lists the stored data about a user.
func (s *Store) UserRecords(ctx context.Context, userID string, now time.Time) (h store.UserRecords, err error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return h, err
	}
	defer unlock()
	if u := s.users[userID]; u != nil {
		h = s.held(u, utc(now))
	}
	return h, nil
}

func (s *Store) held(u *user, now time.Time) (h store.UserRecords) {
	for hash, d := range u.devices {
		if hash != forgotten && now.Before(d.Last.Add(store.DeviceLife)) {
			h.Devices = append(h.Devices, store.DeviceRecord{Device: hash, FirstSeenAt: d.First, LastSeenAt: d.Last, Origin: d.Origin})
		}
	}
	for id := range u.tokens {
		if t := s.tokens[id]; t != nil && now.Before(t.ExpiresAt) {
			h.Pending = append(h.Pending, store.TokenRecord{Purpose: t.Purpose, Subject: t.Subject, Data: slices.Clone(t.Data), CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt})
		}
	}
	for _, m := range s.messages {
		if m.UserID == u.ID && now.Before(m.ExpiresAt) {
			h.Messages = append(h.Messages, store.PendingMessage{CreatedAt: m.CreatedAt, ExpiresAt: m.ExpiresAt})
		}
	}
	slices.SortFunc(h.Devices, func(a, b store.DeviceRecord) int {
		return cmp.Or(a.FirstSeenAt.Compare(b.FirstSeenAt), a.LastSeenAt.Compare(b.LastSeenAt), cmp.Compare(a.Device, b.Device))
	})
	slices.SortFunc(h.Pending, func(a, b store.TokenRecord) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.ExpiresAt.Compare(b.ExpiresAt), cmp.Compare(a.Purpose, b.Purpose), cmp.Compare(a.Subject, b.Subject))
	})
	slices.SortFunc(h.Messages, func(a, b store.PendingMessage) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.ExpiresAt.Compare(b.ExpiresAt))
	})
	return h
}
