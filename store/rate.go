package store

import "time"

// Rate is a token bucket: Burst tokens when full, refilled evenly so that an
// empty bucket is full again after Per. The zero Rate never refuses.
type Rate struct {
	Burst int
	Per   time.Duration
}

// Apply computes a draw from a bucket (GCRA), for stores. tat is the instant, kept by the
// store, at which the bucket is full again; zero for a new bucket. cost is as in Draw. It
// returns the instant to keep (unchanged if the draw is refused), whether the draw is
// allowed, how long to wait until it would be, and how many tokens remain.
func (r Rate) Apply(tat, now time.Time, cost int) (next time.Time, ok bool, wait time.Duration, remaining int) {
	if r.Burst <= 0 || r.Per <= 0 {
		return tat, true, 0, 1
	}
	step := r.Per / time.Duration(r.Burst)
	full := step * time.Duration(r.Burst) // not Per, which may not divide evenly
	if tat.Before(now) {
		tat = now
	}
	need := cost
	if cost == 0 {
		need = 1
	}
	after := tat.Add(step * time.Duration(need))
	if need > 0 && after.Sub(now) > full {
		return tat, false, after.Sub(now) - full, int((full - tat.Sub(now)) / step)
	}
	if cost != 0 {
		tat = after
	}
	if tat.Before(now) {
		tat = now
	}
	return tat, true, 0, int((full - tat.Sub(now)) / step)
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
	Remaining  []int         // for each draw, the tokens in its bucket afterwards; a refusal draws nothing
}
