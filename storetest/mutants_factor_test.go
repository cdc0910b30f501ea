package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/authmount/auth/store"
)

// factorBase is a store with factors of its own.
type factorBase struct {
	base
	store.FactorStore
}

func factorMutants() map[string]mutant {
	of := func(check string, broken func(factorBase) store.Store) mutant {
		return caught(check, func(b base) store.Store {
			f, _ := store.Capability[store.FactorStore](b.Store)
			return broken(factorBase{b, f})
		})
	}
	return map[string]mutant{
		"a state is get, then put":               of("factors/of parallel uses of a state one wins", func(b factorBase) store.Store { return stateRace{b} }),
		"recovery codes are get, then put":       of("factors/of parallel uses of a recovery code one wins", func(b factorBase) store.Store { return recoveryRace{b} }),
		"any state is the present one":           of("factors/a factor is used in the state that was read, and in no other", func(b factorBase) store.Store { return anyState{b} }),
		"states are compared by their beginning": of("factors/a factor is used in the state that was read, and in no other", func(b factorBase) store.Store { return prefixState{b} }),
		"recovery codes outlive a factor":        of("factors/removing forgets everything", func(b factorBase) store.Store { return &heirloom{factorBase: b} }),
		"sign-ins change the state":              of("factors/a session's life leaves the factor alone", func(b factorBase) store.Store { return movesState{b} }),
		"new codes raise the revision":           of("factors/using a factor leaves the rest of it and its user alone", func(b factorBase) store.Store { return codesRaise{b} }),
		"raising moves the counter":              of("factors/using a factor raises a live session", func(b factorBase) store.Store { return raisesCounter{b} }),
		"raising keeps earlier entries":          of("factors/using a factor raises a live session", func(b factorBase) store.Store { return piles{b} }),
		"enabling creates a session instead":     of("factors/an enabling that fails changes nothing", func(b factorBase) store.Store { return createsInstead{b} }),
		"enabling leaves its token good":         of("factors/enabling uses up its token", func(b factorBase) store.Store { return keepsToken{b} }),
		"enabling is get, then put":              of("factors/of parallel enablings one wins", func(b factorBase) store.Store { return enableRace{b} }),
		"secrets are shared":                     of("factors/factors are copies", func(b factorBase) store.Store { return &sharesSecret{factorBase: b, kept: map[string][]byte{}} }),
		"removals leave pending factors":         of("factors/a removal of all factors removes pending ones, too", func(b factorBase) store.Store { return leavesPending{b} }),
		"removals of all take every factor":      of("factors/a removal of all second factors keeps the factors that no sign-in needs", func(b factorBase) store.Store { return takesAll{b} }),
		"patches keep no factor":                 caught("factors/a patch keeps the factors that it names, and the recovery codes of a second factor", patched(func(p *store.UserPatch) { p.KeepFactors = nil })),
		"patches drop codes of a kept factor":    of("factors/a patch keeps the factors that it names, and the recovery codes of a second factor", func(b factorBase) store.Store { return dropsKeptCodes{b} }),
		"removals take any recovery code":        of("factors/a removal that is shown no good code changes nothing", func(b factorBase) store.Store { return anyCode{b} }),
		"removals use the code up first":         of("factors/a removal that is refused uses no code up", func(b factorBase) store.Store { return codeFirst{b} }),
		"removals leave the code good":           of("factors/a removal of one factor uses its code up and no other", func(b factorBase) store.Store { return leavesCode{b} }),
		"removals check, then use a code":        of("factors/of a removal and a use by one recovery code one wins", func(b factorBase) store.Store { return removalRace{b} }),
		"updates drop the factor":                caught("factors/a patch that does not name the factor leaves it alone", patched(func(p *store.UserPatch) { p.DropFactors = true })),
		"updates drop recovery codes":            of("factors/a patch that does not name the factor leaves it alone", func(b factorBase) store.Store { return dropsCodes{b} }),
		"refused updates drop the factor":        of("factors/a patch that is refused leaves the factor alone", func(b factorBase) store.Store { return refusedDrops{b} }),
		"patches only hide the factor":           of("factors/a patch removes the factor", func(b factorBase) store.Store { return hidesFactor{b} }),
	}
}

// one returns a user's only factor.
func (b factorBase) one(ctx context.Context, userID string) (f store.Factor, left int, ok bool) {
	fs, err := b.Factors(ctx, userID)
	if err != nil || len(fs.List) != 1 {
		return f, 0, false
	}
	return fs.List[0], fs.RecoveryLeft, true
}

type leavesPending struct{ factorBase }

func (s leavesPending) RemoveFactor(ctx context.Context, c store.RemoveFactor) (store.User, error) {
	before, _ := s.Factors(ctx, c.UserID)
	u, err := s.FactorStore.RemoveFactor(ctx, c)
	for _, f := range before.List {
		if err == nil && c.FactorID == "" && !f.Enabled {
			_ = s.PutFactor(ctx, store.PutFactor{Change: change(c.Now), Factor: f})
		}
	}
	return u, err
}

type takesAll struct{ factorBase }

func (s takesAll) RemoveFactor(ctx context.Context, c store.RemoveFactor) (store.User, error) {
	u, err := s.FactorStore.RemoveFactor(ctx, c)
	if err == nil && c.FactorID == "" {
		u, err = s.UpdateUser(ctx, store.UpdateUser{Change: change(c.Now), UserID: c.UserID, Patch: store.UserPatch{DropFactors: true}})
	}
	return u, err
}

type dropsKeptCodes struct{ factorBase }

func (s dropsKeptCodes) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	u, err := s.Store.UpdateUser(ctx, c)
	if c.Patch.DropFactors && u.MFAEnabled {
		_ = s.PutRecoveryCodes(ctx, store.PutRecoveryCodes{Change: change(c.Now), UserID: c.UserID})
	}
	return u, err
}

type stateRace struct{ factorBase }

func (s stateRace) UseFactor(ctx context.Context, c store.UseFactor) (store.FactorResult, error) {
	f, _, ok := s.one(ctx, c.UserID)
	if !ok || !bytes.Equal(f.State, c.State) {
		return s.FactorStore.UseFactor(ctx, c)
	}
	pause()
	_, _ = s.FactorStore.UseFactor(ctx, c)
	return store.FactorResult{}, nil
}

type recoveryRace struct{ factorBase }

func (s recoveryRace) UseRecoveryCode(ctx context.Context, c store.UseRecoveryCode) (store.FactorResult, error) {
	_, left, _ := s.one(ctx, c.UserID)
	if left < 2 {
		return s.FactorStore.UseRecoveryCode(ctx, c)
	}
	pause()
	_, _ = s.FactorStore.UseRecoveryCode(ctx, c)
	return store.FactorResult{RecoveryLeft: left - 1}, nil
}

// anyState does not compare the state that was read.
type anyState struct{ factorBase }

func (s anyState) UseFactor(ctx context.Context, c store.UseFactor) (store.FactorResult, error) {
	if f, _, ok := s.one(ctx, c.UserID); ok {
		c.State = f.State
	}
	return s.FactorStore.UseFactor(ctx, c)
}

// prefixState compares the beginning of the state only.
type prefixState struct{ factorBase }

func (s prefixState) UseFactor(ctx context.Context, c store.UseFactor) (store.FactorResult, error) {
	if f, _, ok := s.one(ctx, c.UserID); ok && bytes.HasPrefix(f.State, c.State) {
		c.State = f.State
	}
	return s.FactorStore.UseFactor(ctx, c)
}

// anyCode ignores the member.
type anyCode struct{ factorBase }

func (s anyCode) RemoveFactor(ctx context.Context, c store.RemoveFactor) (store.User, error) {
	c.Recovery = nil
	return s.FactorStore.RemoveFactor(ctx, c)
}

// codeFirst takes two steps.
type codeFirst struct{ factorBase }

func (s codeFirst) RemoveFactor(ctx context.Context, c store.RemoveFactor) (store.User, error) {
	if c.Recovery != nil {
		if _, err := s.UseRecoveryCode(ctx, store.UseRecoveryCode{Change: change(c.Now), UserID: c.UserID, Hashes: c.Recovery}); err != nil {
			return store.User{}, err
		}
		c.Recovery = nil
	}
	return s.FactorStore.RemoveFactor(ctx, c)
}

// leavesCode checks the code, and puts it back.
type leavesCode struct{ factorBase }

func (s leavesCode) RemoveFactor(ctx context.Context, c store.RemoveFactor) (store.User, error) {
	u, err := s.FactorStore.RemoveFactor(ctx, c)
	if err == nil && u.MFAEnabled && c.Recovery != nil {
		_ = s.PutRecoveryCodes(ctx, store.PutRecoveryCodes{Change: change(c.Now), UserID: c.UserID, Hashes: c.Recovery})
	}
	return u, err
}

// removalRace checks that a code is valid, and removes the factor without it.
type removalRace struct{ factorBase }

func (s removalRace) RemoveFactor(ctx context.Context, c store.RemoveFactor) (store.User, error) {
	if _, left, _ := s.one(ctx, c.UserID); left == 2 {
		c.Recovery = nil
		pause()
	}
	return s.FactorStore.RemoveFactor(ctx, c)
}

type dropsCodes struct{ factorBase }

func (s dropsCodes) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	u, err := s.Store.UpdateUser(ctx, c)
	if u.MFAEnabled {
		_ = s.PutRecoveryCodes(ctx, store.PutRecoveryCodes{Change: change(c.Now), UserID: c.UserID})
	}
	return u, err
}

type refusedDrops struct{ factorBase }

func (s refusedDrops) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	u, err := s.Store.UpdateUser(ctx, c)
	if err != nil && c.Patch.DropFactors {
		_, _ = s.RemoveFactor(ctx, store.RemoveFactor{Change: change(c.Now), UserID: c.UserID})
	}
	return u, err
}

type hidesFactor struct{ factorBase }

func (s hidesFactor) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	hide := c.Patch.DropFactors
	c.Patch.DropFactors = false
	u, err := s.Store.UpdateUser(ctx, c)
	u.MFAEnabled = u.MFAEnabled && !hide
	return u, err
}

type heirloom struct {
	factorBase
	mu    sync.Mutex
	codes [][]byte
}

func (s *heirloom) EnableFactor(ctx context.Context, c store.EnableFactor) (store.FactorResult, error) {
	s.mu.Lock()
	c.Recovery = append(s.codes, c.Recovery...)
	s.codes = c.Recovery
	s.mu.Unlock()
	return s.FactorStore.EnableFactor(ctx, c)
}

type movesState struct{ factorBase }

func (s movesState) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	u, err := s.Store.CreateSession(ctx, c)
	if f, _, ok := s.one(ctx, c.Session.UserID); err == nil && ok {
		_, _ = s.UseFactor(ctx, store.UseFactor{Change: change(c.Now), UserID: f.UserID, FactorID: f.ID, State: f.State, NewState: append(f.State, '1')})
	}
	return u, err
}

type codesRaise struct{ factorBase }

func (s codesRaise) PutRecoveryCodes(ctx context.Context, c store.PutRecoveryCodes) error {
	if err := s.FactorStore.PutRecoveryCodes(ctx, c); err != nil {
		return err
	}
	return s.raise(ctx, c.UserID, c.Now)
}

type raisesCounter struct{ factorBase }

func (s raisesCounter) UseFactor(ctx context.Context, c store.UseFactor) (store.FactorResult, error) {
	done, err := s.FactorStore.UseFactor(ctx, c)
	if err != nil || c.Raise == nil {
		return done, err
	}
	done.Session, _, err = s.AdvanceSession(ctx, store.Advance{Change: change(c.Now), SessionID: done.Session.ID, Counter: done.Session.Counter, IdleUntil: done.Session.IdleUntil})
	return done, err
}

// piles keeps the earlier entry of a method.
type piles struct{ factorBase }

func (s piles) UseFactor(ctx context.Context, c store.UseFactor) (store.FactorResult, error) {
	if c.Raise == nil {
		return s.FactorStore.UseFactor(ctx, c)
	}
	before, _, _ := s.Session(ctx, c.Raise.SessionID, c.Now)
	done, err := s.FactorStore.UseFactor(ctx, c)
	if err == nil {
		done.Session.AMR = append(before.AMR, c.Raise.Method)
	}
	return done, err
}

// createsInstead creates a session if it cannot raise one.
type createsInstead struct{ factorBase }

func (s createsInstead) EnableFactor(ctx context.Context, c store.EnableFactor) (store.FactorResult, error) {
	done, err := s.FactorStore.EnableFactor(ctx, c)
	if errors.Is(err, store.ErrSessionEnded) {
		c.Raise, c.Create = nil, &store.NewSession{Session: store.Session{ID: c.FactorID, AAL: store.LevelAAL2, CreatedAt: c.Now, LastActiveAt: c.Now, RotatedAt: c.Now, IdleUntil: c.Now}}
		return s.FactorStore.EnableFactor(ctx, c)
	}
	return done, err
}

type keepsToken struct{ factorBase }

func (s keepsToken) EnableFactor(ctx context.Context, c store.EnableFactor) (store.FactorResult, error) {
	c.Redeem = nil
	return s.FactorStore.EnableFactor(ctx, c)
}

type enableRace struct{ factorBase }

func (s enableRace) EnableFactor(ctx context.Context, c store.EnableFactor) (store.FactorResult, error) {
	f, _, ok := s.one(ctx, c.UserID)
	if !ok || f.Enabled {
		return s.FactorStore.EnableFactor(ctx, c)
	}
	pause()
	done, err := s.FactorStore.EnableFactor(ctx, c)
	if errors.Is(err, store.ErrConflict) {
		err = nil
	}
	return done, err
}

type sharesSecret struct {
	factorBase
	mu   sync.Mutex
	kept map[string][]byte
}

func (s *sharesSecret) PutFactor(ctx context.Context, c store.PutFactor) error {
	s.mu.Lock()
	s.kept[c.Factor.ID] = c.Factor.Secret
	s.mu.Unlock()
	return s.FactorStore.PutFactor(ctx, c)
}

func (s *sharesSecret) Factors(ctx context.Context, userID string) (store.Factors, error) {
	fs, err := s.FactorStore.Factors(ctx, userID)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range fs.List {
		fs.List[i].Secret = s.kept[fs.List[i].ID]
	}
	return fs, err
}
