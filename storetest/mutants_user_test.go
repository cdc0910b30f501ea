package storetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

// caught is a mutant that one check has to notice.
func caught(check string, broken func(base) store.Store) mutant {
	return mutant{func(s store.Store) store.Store { return broken(base{s}) }, []string{check}}
}

// change returns a mutant's own change, at an instant.
func change(now time.Time) store.Change { return store.Change{Now: now, By: system} }

func userMutants() map[string]mutant {
	return map[string]mutant{
		"an older contract":                 caught("conditions/a version of the contract is named", func(b base) store.Store { return older{b} }),
		"deletion leaves sessions":          caught("users/deleting takes everything along", func(b base) store.Store { return &noCascade{base: b} }),
		"a failed sign-up leaves a session": caught("users/a conflict keeps nothing", func(b base) store.Store { return halfSignUp{b} }),
		"addresses are case-sensitive":      caught("users/addresses are one whatever their case", func(b base) store.Store { return caseSensitive{b} }),
		"metadata is shared":                caught("users/values are copies", func(b base) store.Store { return &aliasing{base: b} }),
		"links replace one another":         caught("patches/a patch keeps what it does not name", func(b base) store.Store { return oneIdentity{b} }),
		"stale patches are applied": {
			edits(func(_ store.Store, c *store.Change) { c.IfUsers = nil }), []string{"patches/a patch holds its conditions", "patches/of parallel patches of one revision one wins"},
		},
		"updates drop the password": caught("patches/a patch keeps what it does not name", patched(func(p *store.UserPatch) {
			if p.PasswordHash == nil && p.Rehash == nil {
				p.PasswordHash = new(string)
			}
		})),
		"updates end sessions": caught("patches/a patch keeps what it does not name", patched(func(p *store.UserPatch) {
			if p.Revoke == nil {
				p.Revoke = &store.SessionFilter{}
			}
		})),
		"updates forget roles":     caught("patches/a patch changes what it names", patched(func(p *store.UserPatch) { p.Roles = nil })),
		"updates add roles":        caught("patches/a patch keeps what it does not name", func(b base) store.Store { return addsRoles{b} }),
		"refused updates revoke":   caught("patches/a patch that is refused changes nothing", func(b base) store.Store { return refusedRevokes{b} }),
		"ids are of version 7":     caught("kept/an id is a UUID of any version", func(b base) store.Store { return onlyV7{b} }),
		"sessions in any order":    caught("kept/lists are in the order of time and id", func(b base) store.Store { return anyOrder{b} }),
		"draws are separate":       caught("limits/one refusal leaves all buckets alone", func(b base) store.Store { return separate{b} }),
		"draws are ask, then take": caught("limits/parallel draws never exceed the burst", func(b base) store.Store { return askThenTake{b} }),
		"giving back overfills":    caught("limits/giving back never overfills", func(b base) store.Store { return &overfilling{base: b} }),
		"one clock refuses others": caught("limits/callers whose clocks differ share a bucket", func(b base) store.Store { return &oneClock{base: b} }),
		"each clock has a bucket":  caught("limits/callers whose clocks differ share a bucket", func(b base) store.Store { return clockBuckets{b} }),
		"the last wait counts":     caught("limits/the longest wait is told", func(b base) store.Store { return lastWait{b} }),
		"sweeps take the living":   caught("upkeep/a sweep deletes what is over and nothing else", func(b base) store.Store { return greedy{b} }),
	}
}

// patcher alters the patches to apply.
type patcher struct {
	base
	edit func(*store.UserPatch)
}

func (s patcher) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	s.edit(&c.Patch)
	return s.Store.UpdateUser(ctx, c)
}

func patched(edit func(*store.UserPatch)) func(base) store.Store {
	return func(b base) store.Store { return patcher{b, edit} }
}

type older struct{ base }

func (older) Contract() int { return store.ContractVersion - 1 }

type noCascade struct {
	base
	mu   sync.Mutex
	left map[string]store.Session
}

func (s *noCascade) DeleteUser(ctx context.Context, c store.DeleteUser) error {
	list, err := s.Sessions(ctx, c.UserID, time.Time{})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.left = map[string]store.Session{}
	for _, sess := range list {
		s.left[sess.ID] = sess
	}
	s.mu.Unlock()
	return s.Store.DeleteUser(ctx, c)
}

func (s *noCascade) Session(ctx context.Context, id string, now time.Time) (store.Session, store.User, error) {
	s.mu.Lock()
	sess, ok := s.left[id]
	s.mu.Unlock()
	if ok {
		return sess, store.User{ID: sess.UserID}, nil
	}
	return s.Store.Session(ctx, id, now)
}

type halfSignUp struct{ base }

func (s halfSignUp) CreateUser(ctx context.Context, c store.CreateUser) (store.User, error) {
	u, err := s.Store.CreateUser(ctx, c)
	if errors.Is(err, store.ErrConflict) && c.Session != nil {
		c.User.Email, c.User.Identities = "", nil
		_, _ = s.Store.CreateUser(ctx, c)
	}
	return u, err
}

type caseSensitive struct{ base }

func (s caseSensitive) User(ctx context.Context, k store.UserKey) (store.User, error) {
	u, err := s.Store.User(ctx, k)
	if err == nil && k.Email != "" && k.Email != u.Email {
		return store.User{}, store.ErrNotFound
	}
	return u, err
}

type aliasing struct {
	base
	mu   sync.Mutex
	kept map[string]map[string]any
}

func (s *aliasing) CreateUser(ctx context.Context, c store.CreateUser) (store.User, error) {
	s.mu.Lock()
	s.kept = map[string]map[string]any{c.User.ID: c.User.UserMetadata}
	s.mu.Unlock()
	return s.Store.CreateUser(ctx, c)
}

func (s *aliasing) User(ctx context.Context, k store.UserKey) (store.User, error) {
	u, err := s.Store.User(ctx, k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.kept[u.ID]; m != nil {
		u.UserMetadata = m
	}
	return u, err
}

type oneIdentity struct{ base }

func (s oneIdentity) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	u, err := s.Store.UpdateUser(ctx, c)
	if err != nil || c.Patch.Link == nil {
		return u, err
	}
	for _, i := range u.Identities {
		if i.Provider == c.Patch.Link.Provider && i.Subject != c.Patch.Link.Subject {
			u, err = s.Store.UpdateUser(ctx, store.UpdateUser{Change: change(c.Now), UserID: c.UserID, Patch: store.UserPatch{Unlink: &store.UserKey{Provider: i.Provider, Subject: i.Subject}}})
		}
	}
	return u, err
}

type addsRoles struct{ base }

func (s addsRoles) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	u, err := s.User(ctx, store.ByID(c.UserID))
	if err == nil && c.Patch.Roles != nil {
		both := append(u.Roles, *c.Patch.Roles...)
		c.Patch.Roles = &both
	}
	return s.Store.UpdateUser(ctx, c)
}

type refusedRevokes struct{ base }

func (s refusedRevokes) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	u, err := s.Store.UpdateUser(ctx, c)
	if err != nil && c.Patch.Revoke != nil {
		_, _ = s.RevokeSessions(ctx, store.RevokeSessions{Change: change(c.Now), UserID: c.UserID, Filter: *c.Patch.Revoke})
	}
	return u, err
}

type onlyV7 struct{ base }

func (s onlyV7) CreateUser(ctx context.Context, c store.CreateUser) (store.User, error) {
	if c.User.ID[14] != '7' {
		return store.User{}, errors.New("not an id")
	}
	return s.Store.CreateUser(ctx, c)
}

type anyOrder struct{ base }

func (s anyOrder) Sessions(ctx context.Context, userID string, now time.Time) ([]store.Session, error) {
	list, err := s.Store.Sessions(ctx, userID, now)
	for i := range list { // of those created at once, the first one comes first
		if i > 0 && list[i].CreatedAt.Equal(list[i-1].CreatedAt) {
			list[i], list[i-1] = list[i-1], list[i]
		}
	}
	return list, err
}

type separate struct{ base }

func (s separate) Take(ctx context.Context, draws []store.Draw, now time.Time) (store.Decision, error) {
	all := store.Decision{Allowed: true}
	for _, d := range draws {
		one, err := s.Store.Take(ctx, []store.Draw{d}, now)
		if err != nil {
			return one, err
		}
		all.Allowed, all.RetryAfter = all.Allowed && one.Allowed, max(all.RetryAfter, one.RetryAfter)
		all.Remaining = append(all.Remaining, one.Remaining...)
	}
	return all, nil
}

type askThenTake struct{ base }

func (s askThenTake) Take(ctx context.Context, draws []store.Draw, now time.Time) (store.Decision, error) {
	var ask []store.Draw
	for _, d := range draws {
		d.Cost = 0
		ask = append(ask, d)
	}
	asked, err := s.Store.Take(ctx, ask, now)
	if err != nil || !asked.Allowed {
		return asked, err
	}
	pause()
	d, err := s.Store.Take(ctx, draws, now)
	d.Allowed = true
	return d, err
}

type overfilling struct {
	base
	mu     sync.Mutex
	credit int
}

func (s *overfilling) Take(ctx context.Context, draws []store.Draw, now time.Time) (store.Decision, error) {
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

// oneClock compares the times of different clocks.
type oneClock struct {
	base
	mu   sync.Mutex
	last time.Time
}

func (s *oneClock) Take(ctx context.Context, draws []store.Draw, now time.Time) (store.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := s.Store.Take(ctx, draws, now)
	if now.Add(time.Minute).Before(s.last) {
		d.Allowed = false
	}
	s.last = now
	return d, err
}

type clockBuckets struct{ base }

func (s clockBuckets) Take(ctx context.Context, draws []store.Draw, now time.Time) (store.Decision, error) {
	draws = slices.Clone(draws)
	for i := range draws {
		draws[i].Key += now.Format(time.DateTime)
	}
	return s.Store.Take(ctx, draws, now)
}

type lastWait struct{ base }

func (s lastWait) Take(ctx context.Context, draws []store.Draw, now time.Time) (store.Decision, error) {
	d, err := s.Store.Take(ctx, draws, now)
	if err != nil || d.Allowed {
		return d, err
	}
	for _, draw := range draws {
		if one, err := s.Store.Take(ctx, []store.Draw{draw}, now); err == nil && !one.Allowed {
			d.RetryAfter = one.RetryAfter
		}
	}
	return d, nil
}

type greedy struct{ base }

func (s greedy) Sweep(ctx context.Context, now time.Time, limit int) (int, error) {
	return s.Store.Sweep(ctx, now.Add(24*time.Hour), limit)
}
