package storetest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

// replayMutants are wrong about refresh tokens that come late, and about tokens that are
// both links and codes.
func replayMutants() map[string]mutant {
	return map[string]mutant{
		"late refreshes always pass": caught("refresh/the counter before comes late once", func(b base) store.Store {
			return replaying{b, func(a *store.Advance, _ store.Session) { a.Grace *= 1 << 20 }}
		}),
		"late refreshes never pass": caught("refresh/the counter before comes late once", func(b base) store.Store {
			return replaying{b, func(a *store.Advance, s store.Session) {
				if !a.Now.Before(s.RotatedAt.Add(a.Grace)) {
					a.Grace = 0
				}
			}}
		}),
		"late refreshes pass at every counter": caught("refresh/two who share a session are found at the next round", func(b base) store.Store {
			return replaying{b, func(a *store.Advance, s store.Session) {
				if a.Now.Sub(s.RotatedAt) >= store.ReplayGap {
					a.Grace = 1 << 62
				}
			}}
		}),
		"late refreshes pass once only": caught("refresh/within grace of a late counter it may come again", func(b base) store.Store {
			return &afterLate{base: b, edit: func(a *store.Advance) { a.Grace = 0 }}
		}),
		"a late refresh may come again for long": caught("refresh/within grace of a late counter it may come again", func(b base) store.Store {
			return &afterLate{base: b, edit: func(a *store.Advance) { a.Grace *= 2 }}
		}),
		"a late refresh is told of each time": caught("refresh/within grace of a late counter it may come again", func(b base) store.Store {
			return &afterLate{base: b, edit: func(a *store.Advance) {
				if a.Replayed != nil {
					a.Replayed(store.Client{})
				}
			}}
		}),
		"late refreshes are told to nobody": caught("refresh/who comes late is told of the other, and recorded", func(b base) store.Store {
			return replaying{b, func(a *store.Advance, _ store.Session) { a.Replayed = nil }}
		}),
		"refreshes draw nothing": caught("refresh/what a refresh draws is drawn once, whatever becomes of it", func(b base) store.Store {
			return replaying{b, func(a *store.Advance, _ store.Session) { a.Draw = store.Draw{} }}
		}),
		"refreshes draw twice": caught("refresh/what a refresh draws is drawn once, whatever becomes of it", func(b base) store.Store {
			return replaying{b, func(a *store.Advance, _ store.Session) { a.Draw.Cost *= 2 }}
		}),
		"refreshes that fail draw nothing": caught("refresh/what a refresh draws is drawn once, whatever becomes of it", func(b base) store.Store {
			return replaying{b, func(a *store.Advance, s store.Session) {
				if a.Counter > s.Counter {
					a.Draw = store.Draw{}
				}
			}}
		}),
		"grandparents pass late": caught("refresh/an older counter never comes late", func(b base) store.Store {
			return replaying{b, func(a *store.Advance, s store.Session) {
				if a.Counter+2 == s.Counter {
					a.Counter++
				}
			}}
		}),
		"early refreshes pass from every device": caught("refresh/an early repetition counts as late from another device", func(b base) store.Store {
			return replaying{b, func(a *store.Advance, s store.Session) {
				if a.Counter < s.Counter {
					a.IP, a.UserAgent, a.Device = "", "", ""
				}
			}}
		}),
		"early refreshes pass from every network": caught("refresh/early repetitions from another network count as late after a while", func(b base) store.Store {
			return replaying{b, func(a *store.Advance, s store.Session) {
				if a.Counter < s.Counter {
					a.IP = ""
				}
			}}
		}),
		"early refreshes never pass from another network": caught("refresh/early repetitions from another network count as late after a while", func(b base) store.Store {
			return replaying{b, func(a *store.Advance, s store.Session) {
				if a.Counter < s.Counter && a.IP != s.IP {
					a.Device = "another"
				}
			}}
		}),
		"a link's code lives like the link": caught("codes/a link outlives its code", func(b base) store.Store {
			return putting{b, func(t *store.Token) { t.CodeExpiresAt = time.Time{} }}
		}),
		"a link's code is forgotten": caught("codes/a link's code uses the link up", func(b base) store.Store {
			return putting{b, func(t *store.Token) { t.Code = nil }}
		}),
		"a link's hash is a code": caught("codes/a code that has an effect is the link's own", func(b base) store.Store { return hashIsCode{b} }),
		"a code leaves its link":  caught("codes/a link's code uses the link up", func(b base) store.Store { return &leavesLink{base: b} }),
	}
}

// replaying edits refreshes by the session's state.
type replaying struct {
	base
	edit func(*store.Advance, store.Session)
}

func (s replaying) AdvanceSession(ctx context.Context, a store.Advance) (store.Session, store.User, error) {
	if sess, _, err := s.Session(ctx, a.SessionID, a.Now); err == nil {
		s.edit(&a, sess)
	}
	return s.Store.AdvanceSession(ctx, a)
}

// afterLate edits a session's refreshes after an accepted replay.
type afterLate struct {
	base
	mu   sync.Mutex
	late map[string]bool // by session
	edit func(*store.Advance)
}

func (s *afterLate) AdvanceSession(ctx context.Context, a store.Advance) (store.Session, store.User, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late[a.SessionID] {
		s.edit(&a)
	}
	told := a.Replayed
	a.Replayed = func(other store.Client) {
		if s.late == nil {
			s.late = map[string]bool{}
		}
		s.late[a.SessionID] = true
		if told != nil {
			told(other)
		}
	}
	return s.Store.AdvanceSession(ctx, a)
}

// putting edits tokens.
type putting struct {
	base
	edit func(*store.Token)
}

func (s putting) PutToken(ctx context.Context, c store.PutToken) error {
	s.edit(&c.Token)
	return s.Store.PutToken(ctx, c)
}

// hashIsCode accepts the stored hash of a link as its code, too.
type hashIsCode struct{ base }

func (s hashIsCode) RedeemCode(ctx context.Context, c store.CodeAttempt) (store.Token, store.User, error) {
	if t, err := s.PeekToken(ctx, c.Purpose, c.Hash, c.Now); err == nil && len(t.Code) > 0 {
		c.Hash = t.Code
	}
	return s.Store.RedeemCode(ctx, c)
}

// leavesLink keeps the link of a code that was used.
type leavesLink struct {
	base
	mu sync.Mutex
}

func (s *leavesLink) RedeemCode(ctx context.Context, c store.CodeAttempt) (store.Token, store.User, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, u, err := s.Store.RedeemCode(ctx, c)
	if err == nil && len(t.Code) > 0 {
		err = errors.Join(s.PutToken(ctx, store.PutToken{Change: change(c.Now), Token: t}))
	}
	return t, u, err
}
