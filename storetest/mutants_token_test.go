package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

func tokenMutants() map[string]mutant {
	return map[string]mutant{
		"redeem is get, then update":        caught("tokens/of parallel redemptions one wins", func(b base) store.Store { return getThenRedeem{b} }),
		"redeem burns on failure":           caught("tokens/an effect that fails leaves the token good", func(b base) store.Store { return burning{b} }),
		"token expiry is forgotten":         caught("tokens/token expiry is exact", func(b base) store.Store { return undying{b} }),
		"tokens serve any purpose":          caught("tokens/a token serves its purpose only", func(b base) store.Store { return anyPurpose{b} }),
		"older tokens stay good":            caught("tokens/a newer token supersedes", func(b base) store.Store { return noSupersede{b} }),
		"tokens that yield supersede":       caught("tokens/a token that yields leaves a live one", func(b base) store.Store { return neverYields{b} }),
		"tokens that yield are dropped":     caught("tokens/a token that yields leaves a live one", func(b base) store.Store { return alwaysYields{b} }),
		"tokens supersede what nobody saw":  caught("tokens/a token supersedes the one that was seen, and no other", func(b base) store.Store { return supersedesAny{b} }),
		"what is superseded is read before": caught("tokens/of parallel tokens that supersede one thing one is put", func(b base) store.Store { return seesThenPuts{b} }),
		"tokens are shared":                 caught("tokens/tokens are copies", func(b base) store.Store { return &sharesTokens{base: b, kept: map[string][]byte{}} }),
		"wrong codes are not counted":       caught("codes/a code dies with its tries", func(b base) store.Store { return &codes{base: b, uncounted: true} }),
		"the right code wins at last":       caught("codes/a code dies with its tries", func(b base) store.Store { return &codes{base: b, late: true} }),
		"conditions before the count":       caught("codes/a wrong code is counted whatever the conditions", func(b base) store.Store { return conditionsFirst{b} }),
		"a refused code is used up":         caught("codes/an effect that fails leaves the code good and untried", func(b base) store.Store { return burnsCodes{b} }),
		"codes have no effect":              caught("codes/a code's effect is applied with it", func(b base) store.Store { return idleCodes{b} }),
		"a code is judged, then used":       caught("codes/of parallel uses of a code one wins", func(b base) store.Store { return judgesThenUses{b} }),
	}
}

type getThenRedeem struct{ base }

func (s getThenRedeem) RedeemToken(ctx context.Context, r store.Redemption) (store.Token, store.User, error) {
	t, err := s.PeekToken(ctx, r.Purpose, r.Hash, r.Now)
	if err != nil || r.Patch == nil {
		return s.Store.RedeemToken(ctx, r)
	}
	pause()
	u, err := s.UpdateUser(ctx, store.UpdateUser{Change: r.Change, UserID: t.UserID, Patch: *r.Patch})
	if err == nil {
		s.burn(ctx, r.Purpose, r.Hash, r.Now)
	}
	return t, u, err
}

// burn uses a token up, without an effect.
func (b base) burn(ctx context.Context, p store.Purpose, hash []byte, now time.Time) {
	_, _, _ = b.RedeemToken(ctx, store.Redemption{Change: change(now), Purpose: p, Hash: hash})
}

type burning struct{ base }

func (s burning) RedeemToken(ctx context.Context, r store.Redemption) (store.Token, store.User, error) {
	t, u, err := s.Store.RedeemToken(ctx, r)
	if errors.Is(err, store.ErrStale) {
		s.burn(ctx, r.Purpose, r.Hash, r.Now)
	}
	return t, u, err
}

type undying struct{ base }

func (s undying) RedeemToken(ctx context.Context, r store.Redemption) (store.Token, store.User, error) {
	r.Now = r.Now.Add(-time.Hour)
	return s.Store.RedeemToken(ctx, r)
}

type anyPurpose struct{ base }

func (s anyPurpose) PeekToken(ctx context.Context, p store.Purpose, hash []byte, now time.Time) (store.Token, error) {
	for _, other := range []store.Purpose{p, store.PurposeMagicLink, store.PurposeReset} {
		if t, err := s.Store.PeekToken(ctx, other, hash, now); err == nil {
			return t, nil
		}
	}
	return s.Store.PeekToken(ctx, p, hash, now)
}

type noSupersede struct{ base }

func (s noSupersede) PutToken(ctx context.Context, c store.PutToken) error {
	if c.Token.MaxAttempts == 0 {
		c.Token.Subject = ""
	}
	return s.Store.PutToken(ctx, c)
}

type neverYields struct{ base }

func (s neverYields) PutToken(ctx context.Context, c store.PutToken) error {
	c.Yields = false
	return s.Store.PutToken(ctx, c)
}

type alwaysYields struct{ base }

func (s alwaysYields) PutToken(ctx context.Context, c store.PutToken) error {
	if c.Yields {
		return nil
	}
	return s.Store.PutToken(ctx, c)
}

type supersedesAny struct{ base }

func (s supersedesAny) PutToken(ctx context.Context, c store.PutToken) error {
	c.Supersedes = nil
	return s.Store.PutToken(ctx, c)
}

type seesThenPuts struct{ base }

func (s seesThenPuts) PutToken(ctx context.Context, c store.PutToken) error {
	if c.Supersedes != nil && len(*c.Supersedes) > 0 {
		if _, err := s.PeekToken(ctx, c.Token.Purpose, *c.Supersedes, c.Now); err != nil {
			return store.ErrStale
		}
		pause()
		c.Supersedes = nil
	}
	return s.Store.PutToken(ctx, c)
}

// codes remembers the codes it was given, which a store should not need to.
type codes struct {
	base
	uncounted, late bool
	mu              sync.Mutex
	last            store.Token
}

func (s *codes) PutToken(ctx context.Context, c store.PutToken) error {
	s.mu.Lock()
	s.last = c.Token
	s.mu.Unlock()
	return s.Store.PutToken(ctx, c)
}

func (s *codes) RedeemCode(ctx context.Context, c store.CodeAttempt) (store.Token, store.User, error) {
	s.mu.Lock()
	right := bytes.Equal(c.Hash, s.last.Hash)
	last := s.last
	s.mu.Unlock()
	if s.uncounted && !right {
		return store.Token{}, store.User{}, store.ErrWrongCode
	}
	t, u, err := s.Store.RedeemCode(ctx, c)
	if s.late && right && errors.Is(err, store.ErrTooManyAttempts) {
		return last, u, nil
	}
	return t, u, err
}

type sharesTokens struct {
	base
	mu   sync.Mutex
	kept map[string][]byte
}

func (s *sharesTokens) PutToken(ctx context.Context, c store.PutToken) error {
	s.mu.Lock()
	s.kept[string(c.Token.Hash)] = c.Token.Data
	s.mu.Unlock()
	return s.Store.PutToken(ctx, c)
}

func (s *sharesTokens) PeekToken(ctx context.Context, p store.Purpose, hash []byte, now time.Time) (store.Token, error) {
	t, err := s.Store.PeekToken(ctx, p, hash, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Data = s.kept[string(hash)]
	return t, err
}

// conditionsFirst does not count an attempt if its conditions do not hold.
type conditionsFirst struct{ base }

func (s conditionsFirst) RedeemCode(ctx context.Context, c store.CodeAttempt) (store.Token, store.User, error) {
	for _, at := range c.IfUsers {
		if u, err := s.User(ctx, store.ByID(at.ID)); at.ID != "" && (err != nil || at.Revision != nil && *at.Revision != u.Revision) {
			return store.Token{}, store.User{}, store.ErrStale
		}
	}
	return s.Store.RedeemCode(ctx, c)
}

type burnsCodes struct{ base }

func (s burnsCodes) RedeemCode(ctx context.Context, c store.CodeAttempt) (store.Token, store.User, error) {
	t, u, err := s.Store.RedeemCode(ctx, c)
	if errors.Is(err, store.ErrConflict) {
		s.burn(ctx, c.Purpose, c.Hash, c.Now)
	}
	return t, u, err
}

type idleCodes struct{ base }

func (s idleCodes) RedeemCode(ctx context.Context, c store.CodeAttempt) (store.Token, store.User, error) {
	c.Patch, c.Create = nil, nil
	return s.Store.RedeemCode(ctx, c)
}

// judgesThenUses keeps the token that it checks.
type judgesThenUses struct{ base }

func (s judgesThenUses) RedeemCode(ctx context.Context, c store.CodeAttempt) (store.Token, store.User, error) {
	t, err := s.PeekToken(ctx, c.Purpose, c.Hash, c.Now)
	if err != nil {
		return s.Store.RedeemCode(ctx, c)
	}
	pause()
	s.burn(ctx, c.Purpose, c.Hash, c.Now)
	return t, store.User{}, nil
}
