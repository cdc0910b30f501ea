package sqlitestore

import (
	"context"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// bucket reads the state of a rate limit. A missing one is full.
func (t *tx) bucket(key string) store.Bucket {
	b := first(t, func(scan row) store.Bucket {
		var full, seen int64
		scan(&full, &seen)
		return store.Bucket{Full: time.Unix(0, full).UTC(), Seen: time.Unix(0, seen).UTC()}
	}, `select full_at, seen_at from auth_limits where key = ?`, key)
	if b == nil {
		return store.Bucket{}
	}
	return *b
}

func (t *tx) putBucket(key string, b store.Bucket) {
	t.exec(`insert or replace into auth_limits (key, full_at, seen_at) values (?, ?, ?)`, key, b.Full.UnixNano(), b.Seen.UnixNano())
}

// Take draws from every bucket or from none. Draws that only ask do not wait for changes.
func (s *Store) Take(ctx context.Context, draws []store.Draw, now time.Time) (d store.Decision, err error) {
	run := s.write
	if !slices.ContainsFunc(draws, func(d store.Draw) bool { return d.Cost != 0 }) {
		run = s.snapshot
	}
	err = run(ctx, func(t *tx) error {
		d = store.Decision{Allowed: true}
		before, after := map[string]store.Bucket{}, map[string]store.Bucket{}
		for _, draw := range draws {
			if _, ok := before[draw.Key]; !ok {
				before[draw.Key] = t.bucket(draw.Key)
				after[draw.Key] = before[draw.Key]
			}
			b, allowed, wait, remaining := draw.Rate.Apply(after[draw.Key], now, draw.Cost)
			if !allowed {
				d.Allowed, d.RetryAfter = false, max(d.RetryAfter, wait)
			}
			after[draw.Key] = b
			d.Remaining = append(d.Remaining, remaining)
		}
		if !d.Allowed {
			// The draws above are discarded, so the counts are the previous ones.
			for i, draw := range draws {
				_, _, _, d.Remaining[i] = draw.Rate.Apply(before[draw.Key], now, 0)
			}
			return nil
		}
		for key, b := range after {
			if b != before[key] {
				t.putBucket(key, b)
			}
		}
		return nil
	})
	if err != nil {
		return store.Decision{}, err
	}
	return d, nil
}

// FillLimits fills buckets up to a number of tokens.
func (s *Store) FillLimits(ctx context.Context, c store.FillLimits) error {
	return s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		if !t.exists(`select 1 from auth_users where id = ?`, c.UserID) {
			return nil, store.ErrNotFound
		}
		return &effect{about: c.UserID, apply: func() error {
			for _, d := range c.Fill {
				if t.exists(`select 1 from auth_limits where key = ?`, d.Key) {
					t.putBucket(d.Key, d.Rate.Filled(t.bucket(d.Key), c.Now, d.Cost))
				}
			}
			return nil
		}}, nil
	})
}
