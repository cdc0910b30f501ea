package memstore

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// ClearLimits fills buckets again.
func (s *Store) ClearLimits(ctx context.Context, c store.ClearLimits) error {
	return s.change(ctx, &c.Change, func() (*effect, error) {
		if s.users[c.UserID] == nil {
			return nil, store.ErrNotFound
		}
		return &effect{about: c.UserID, apply: func() error {
			for _, key := range c.Keys {
				delete(s.buckets, key)
			}
			return nil
		}}, nil
	})
}

// Take draws from every bucket or from none.
func (s *Store) Take(ctx context.Context, draws []store.Draw, now time.Time) (store.Decision, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return store.Decision{}, err
	}
	defer unlock()
	d := store.Decision{Allowed: true}
	next := map[string]bucket{}
	for _, draw := range draws {
		b, ok := next[draw.Key]
		if !ok {
			b = s.buckets[draw.Key]
		}
		full, allowed, wait, remaining := draw.Rate.Apply(b.full, now, draw.Cost)
		if !allowed {
			d.Allowed, d.RetryAfter = false, max(d.RetryAfter, wait)
		}
		next[draw.Key] = bucket{full}
		d.Remaining = append(d.Remaining, remaining)
	}
	if !d.Allowed {
		// The draws above are discarded, so the counts are the previous ones.
		for i, draw := range draws {
			_, _, _, d.Remaining[i] = draw.Rate.Apply(s.buckets[draw.Key].full, now, 0)
		}
		return d, nil
	}
	for key, b := range next {
		if b.full.After(now) {
			s.buckets[key] = b
		} else {
			delete(s.buckets, key) // full: the same as none
		}
	}
	return d, nil
}
