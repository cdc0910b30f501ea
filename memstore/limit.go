package memstore

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// FillLimits fills buckets up to a number of tokens.
func (s *Store) FillLimits(ctx context.Context, c store.FillLimits) error {
	return s.change(ctx, &c.Change, func() (*effect, error) {
		if s.users[c.UserID] == nil {
			return nil, store.ErrNotFound
		}
		return &effect{about: c.UserID, apply: func() error {
			for _, d := range c.Fill {
				if b, ok := s.buckets[d.Key]; ok {
					s.buckets[d.Key] = d.Rate.Filled(b, c.Now, d.Cost)
				}
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
	next := map[string]store.Bucket{}
	for _, draw := range draws {
		b, ok := next[draw.Key]
		if !ok {
			b = s.buckets[draw.Key]
		}
		b, allowed, wait, remaining := draw.Rate.Apply(b, now, draw.Cost)
		if !allowed {
			d.Allowed, d.RetryAfter = false, max(d.RetryAfter, wait)
		}
		next[draw.Key] = b
		d.Remaining = append(d.Remaining, remaining)
	}
	if !d.Allowed {
		// The draws above are discarded, so the counts are the previous ones.
		for i, draw := range draws {
			_, _, _, d.Remaining[i] = draw.Rate.Apply(s.buckets[draw.Key], now, 0)
		}
		return d, nil
	}
	for key, b := range next {
		if b != s.buckets[key] {
			s.buckets[key] = b
		}
	}
	return d, nil
}
