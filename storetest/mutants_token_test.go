package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/authmount/auth"
)

type getThenRedeem struct{ auth.Store }

func (s getThenRedeem) RedeemToken(ctx context.Context, r auth.Redemption) (auth.Token, auth.User, error) {
	t, err := s.PeekToken(ctx, r.Purpose, r.Hash, r.Now)
	if err != nil || r.Patch == nil {
		return s.Store.RedeemToken(ctx, r)
	}
	yield()
	u, err := s.UpdateUser(ctx, t.UserID, *r.Patch, r.Now)
	if err == nil {
		_, _, _ = s.Store.RedeemToken(ctx, auth.Redemption{Purpose: r.Purpose, Hash: r.Hash, Now: r.Now})
	}
	return t, u, err
}

type burning struct{ auth.Store }

func (s burning) RedeemToken(ctx context.Context, r auth.Redemption) (auth.Token, auth.User, error) {
	t, u, err := s.Store.RedeemToken(ctx, r)
	if errors.Is(err, auth.ErrStale) {
		_, _, _ = s.Store.RedeemToken(ctx, auth.Redemption{Purpose: r.Purpose, Hash: r.Hash, Now: r.Now})
	}
	return t, u, err
}

type undying struct{ auth.Store }

func (s undying) RedeemToken(ctx context.Context, r auth.Redemption) (auth.Token, auth.User, error) {
	r.Now = time.Time{}
	return s.Store.RedeemToken(ctx, r)
}

type anyPurpose struct{ auth.Store }

func (s anyPurpose) PeekToken(ctx context.Context, p auth.Purpose, hash []byte, now time.Time) (auth.Token, error) {
	for _, other := range []auth.Purpose{p, auth.PurposeMagicLink, auth.PurposeReset} {
		if t, err := s.Store.PeekToken(ctx, other, hash, now); err == nil {
			return t, nil
		}
	}
	return s.Store.PeekToken(ctx, p, hash, now)
}

type noSupersede struct{ auth.Store }

func (s noSupersede) PutToken(ctx context.Context, t auth.Token) error {
	if t.MaxTries == 0 {
		t.Subject = ""
	}
	return s.Store.PutToken(ctx, t)
}

// codes remembers what it was given, which a store should not need to.
type codes struct {
	auth.Store
	uncounted, late bool
	mu              sync.Mutex
	last            auth.Token
}

func (s *codes) PutToken(ctx context.Context, t auth.Token) error {
	s.mu.Lock()
	s.last = t
	s.mu.Unlock()
	return s.Store.PutToken(ctx, t)
}

func (s *codes) TryCode(ctx context.Context, p auth.Purpose, subject string, hash []byte, now time.Time) (auth.Token, auth.User, error) {
	s.mu.Lock()
	right := bytes.Equal(hash, s.last.Hash)
	last := s.last
	s.mu.Unlock()
	if s.uncounted && !right {
		return auth.Token{}, auth.User{}, auth.ErrWrongCode
	}
	t, u, err := s.Store.TryCode(ctx, p, subject, hash, now)
	if s.late && right && errors.Is(err, auth.ErrTooManyTries) {
		return last, u, nil
	}
	return t, u, err
}

type sharesTokens struct {
	auth.Store
	mu   sync.Mutex
	kept map[string][]byte
}

func (s *sharesTokens) PutToken(ctx context.Context, t auth.Token) error {
	s.mu.Lock()
	s.kept[string(t.Hash)] = t.Data
	s.mu.Unlock()
	return s.Store.PutToken(ctx, t)
}

func (s *sharesTokens) PeekToken(ctx context.Context, p auth.Purpose, hash []byte, now time.Time) (auth.Token, error) {
	t, err := s.Store.PeekToken(ctx, p, hash, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Data = s.kept[string(hash)]
	return t, err
}

type separate struct{ auth.Store }

func (s separate) Take(ctx context.Context, draws []auth.Draw, now time.Time) (auth.Decision, error) {
	all := auth.Decision{Allowed: true}
	for _, d := range draws {
		one, err := s.Store.Take(ctx, []auth.Draw{d}, now)
		if err != nil {
			return one, err
		}
		all.Allowed, all.RetryAfter = all.Allowed && one.Allowed, max(all.RetryAfter, one.RetryAfter)
		all.Remaining = append(all.Remaining, one.Remaining...)
	}
	return all, nil
}

type askThenTake struct{ auth.Store }

func (s askThenTake) Take(ctx context.Context, draws []auth.Draw, now time.Time) (auth.Decision, error) {
	var ask []auth.Draw
	for _, d := range draws {
		d.Cost = 0
		ask = append(ask, d)
	}
	asked, err := s.Store.Take(ctx, ask, now)
	if err != nil || !asked.Allowed {
		return asked, err
	}
	yield()
	d, err := s.Store.Take(ctx, draws, now)
	d.Allowed = true
	return d, err
}

type overfilling struct {
	auth.Store
	mu     sync.Mutex
	credit int
}

func (s *overfilling) Take(ctx context.Context, draws []auth.Draw, now time.Time) (auth.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := s.Store.Take(ctx, draws, now)
	if draws[0].Cost < 0 {
		s.credit -= draws[0].Cost
	} else if !d.Allowed && s.credit > 0 {
		d.Allowed = true
	}
	return d, err
}

type lastWait struct{ auth.Store }

func (s lastWait) Take(ctx context.Context, draws []auth.Draw, now time.Time) (auth.Decision, error) {
	d, err := s.Store.Take(ctx, draws, now)
	if err != nil || d.Allowed {
		return d, err
	}
	for _, draw := range draws {
		if one, err := s.Store.Take(ctx, []auth.Draw{draw}, now); err == nil && !one.Allowed {
			d.RetryAfter = one.RetryAfter
		}
	}
	return d, nil
}

type greedy struct{ auth.Store }

func (s greedy) Sweep(ctx context.Context, now time.Time, limit int) (int, error) {
	return s.Store.Sweep(ctx, now.Add(24*time.Hour), limit)
}
