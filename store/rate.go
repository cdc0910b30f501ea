package store

import "time"

// Rate is a token bucket: Burst tokens when full, refilled evenly so that an
// empty bucket is full again after Per. The zero Rate never refuses.
type Rate struct {
	Burst int
	Per   time.Duration
}

// Bucket is the state of a rate limit, for stores. The zero Bucket is new and full.
type Bucket struct {
	Full time.Time // when it is full again
	Seen time.Time // the latest time of a caller who drew or refunded
}

// at returns the time of a call. The clocks of callers may differ, and a bucket has one
// time: that of the clock that is ahead. For a caller who is behind, it refills nothing until
// their clock reaches it.
func (b Bucket) at(now time.Time) time.Time {
	if now.Before(b.Seen) {
		return b.Seen
	}
	return now
}

// Apply computes a draw from a bucket (GCRA), for stores. cost is as in Draw. It returns the
// bucket to keep (unchanged if the draw is refused), whether the draw is allowed, how long
// to wait until it would be, and how many tokens remain.
func (r Rate) Apply(b Bucket, now time.Time, cost int) (next Bucket, ok bool, wait time.Duration, remaining int) {
	if r.Burst <= 0 || r.Per <= 0 {
		return b, true, 0, 1
	}
	step := r.Per / time.Duration(r.Burst)
	full := step * time.Duration(r.Burst) // not Per, which may not divide evenly
	at, tat := b.at(now), b.Full
	if tat.Before(at) {
		tat = at
	}
	need := cost
	if cost == 0 {
		need = 1
	}
	after := tat.Add(step * time.Duration(need))
	if need > 0 && after.Sub(at) > full {
		return b, false, after.Sub(now) - full, int((full - tat.Sub(at)) / step)
	}
	if cost == 0 {
		return b, true, 0, int((full - tat.Sub(at)) / step)
	}
	if after.Before(at) {
		after = at
	}
	return Bucket{after, at}, true, 0, int((full - after.Sub(at)) / step)
}

// Filled returns the bucket to keep so that it holds at least n tokens, for stores.
func (r Rate) Filled(b Bucket, now time.Time, n int) Bucket {
	if r.Burst <= 0 || r.Per <= 0 {
		return b
	}
	step := r.Per / time.Duration(r.Burst)
	if latest := b.at(now).Add(step * time.Duration(max(r.Burst-n, 0))); latest.Before(b.Full) {
		b.Full = latest
	}
	return b
}

// Draw is a change of one rate-limit bucket. A positive Cost draws. Zero only checks
// whether one token could be drawn. A negative Cost refunds, at most until the bucket is
// full, and is never refused.
type Draw struct {
	Key  string
	Rate Rate
	Cost int
}

// Decision is the outcome of Take.
type Decision struct {
	Allowed    bool
	RetryAfter time.Duration // if refused: the wait until all draws would be allowed
	Remaining  []int         // for each draw, in order, the tokens in its bucket after the call; a refused call draws from no bucket
}
