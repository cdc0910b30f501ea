package pgstore

import (
	"context"
	"time"

	"github.com/authmount/auth"
)

// TakeTogether makes calls of Take in one statement, in this order.
func (s *Store) TakeTogether(ctx context.Context, calls [][]auth.Draw, times []time.Time) ([]auth.Decision, error) {
	list := make([]take, len(calls))
	for i := range calls {
		list[i] = take{calls[i], times[i]}
	}
	before, err := s.takeTogether(ctx, list, true)
	if err != nil {
		return nil, err
	}
	decisions := make([]auth.Decision, len(calls))
	for i, t := range list {
		decisions[i] = decide(t.draws, before, t.now)
		before = before[len(t.draws):]
	}
	return decisions, nil
}
