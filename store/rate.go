package store

import "time"

// Rate is a token bucket: Burst tokens when full, refilled evenly so that an
// empty bucket is full again after Per. The zero Rate never refuses.
type Rate struct {
	Burst int
	Per   time.Duration
}

// Apply is the bucket's arithmetic (GCRA), for stores. tat is what the store
// keeps for the bucket: the instant at which it will be full again (zero for a
// new one). Cost is as in Draw. It returns the instant to keep, whether the
// draw is allowed (if not, the instant is unchanged), how long to wait until it
// would be, and how many tokens remain.
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

// Draw is a change of one rate-limit bucket. A positive Cost draws; zero only
// asks whether one could be drawn; a negative one gives back, never beyond full
// and never refused.
type Draw struct {
	Key  string
	Rate Rate
	Cost int
}

// Decision is the outcome of Take.
type Decision struct {
	Allowed    bool
	RetryAfter time.Duration // when not allowed: until all of the draws would be
	Remaining  []int         // for each draw, what is left in its bucket afterwards; on a refusal, in which nothing was drawn, what is there
}
