package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/authmount/auth"
)

// Held lists what is kept about a user.
func (s *Store) Held(ctx context.Context, userID string, now time.Time) (h auth.Held, err error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return h, err
	}
	defer unlock()
	now = utc(now)
	u := s.users[userID]
	if u == nil {
		return h, nil
	}
	for hash, d := range u.devices {
		if hash != forgotten && now.Before(d.Last.Add(auth.DeviceLife)) {
			h.Devices = append(h.Devices, auth.HeldDevice{Device: hash, FirstSeenAt: d.First, LastSeenAt: d.Last})
		}
	}
	for id := range u.tokens {
		if t := s.tokens[id]; t != nil && now.Before(t.ExpiresAt) {
			h.Pending = append(h.Pending, auth.HeldToken{Purpose: t.Purpose, Subject: t.Subject, Data: slices.Clone(t.Data), CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt})
		}
	}
	for _, m := range s.messages {
		if m.UserID == userID && now.Before(m.ExpiresAt) {
			h.Messages = append(h.Messages, auth.HeldMessage{CreatedAt: m.CreatedAt, ExpiresAt: m.ExpiresAt})
		}
	}
	slices.SortFunc(h.Devices, func(a, b auth.HeldDevice) int {
		return cmp.Or(a.FirstSeenAt.Compare(b.FirstSeenAt), a.LastSeenAt.Compare(b.LastSeenAt))
	})
	slices.SortFunc(h.Pending, func(a, b auth.HeldToken) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.ExpiresAt.Compare(b.ExpiresAt), cmp.Compare(a.Purpose, b.Purpose))
	})
	slices.SortFunc(h.Messages, func(a, b auth.HeldMessage) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.ExpiresAt.Compare(b.ExpiresAt))
	})
	return h, nil
}
