package storetest_test

import (
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
		"a TOTP step is get, then put":     of("factors/of parallel uses of a step one wins", func(b factorBase) store.Store { return stepRace{b} }),
		"recovery codes are get, then put": of("factors/of parallel uses of a recovery code one wins", func(b factorBase) store.Store { return recoveryRace{b} }),
		"older steps pass":                 of("factors/a step is used once, and never an older one", func(b factorBase) store.Store { return anyStep{b} }),
		"recovery codes outlive a factor":  of("factors/removing forgets everything", func(b factorBase) store.Store { return &heirloom{factorBase: b} }),
		"sign-ins move the step":           of("factors/a session's life leaves the factor alone", func(b factorBase) store.Store { return movesStep{b} }),
		"new codes raise the revision":     of("factors/using a factor leaves the rest of it and its user alone", func(b factorBase) store.Store { return codesRaise{b} }),
		"raising moves the counter":        of("factors/raising lifts a live session", func(b factorBase) store.Store { return raisesCounter{b} }),
		"raising piles proofs up":          of("factors/raising lifts a live session", func(b factorBase) store.Store { return piles{b} }),
		"enabling brings sessions back":    of("factors/an enabling that fails changes nothing", func(b factorBase) store.Store { return revivesSession{b} }),
		"enabling leaves its token good":   of("factors/enabling uses up its token", func(b factorBase) store.Store { return keepsToken{b} }),
		"enabling is get, then put":        of("factors/of parallel enablings one wins", func(b factorBase) store.Store { return enableRace{b} }),
		"secrets are shared":               of("factors/factors are copies", func(b factorBase) store.Store { return &sharesSecret{factorBase: b, kept: map[string][]byte{}} }),
		"removals take any recovery code":  of("factors/a removal that is shown no good code changes nothing", func(b factorBase) store.Store { return anyCode{b} }),
		"removals use the code up first":   of("factors/a removal that is refused uses no code up", func(b factorBase) store.Store { return codeFirst{b} }),
		"removals leave the code good":     of("factors/a removal of one factor uses its code up and no other", func(b factorBase) store.Store { return leavesCode{b} }),
		"removals check, then use a code":  of("factors/of a removal and a use by one recovery code one wins", func(b factorBase) store.Store { return removalRace{b} }),
		"updates drop the factor":          caught("factors/a patch that does not name the factor leaves it alone", patched(func(p *store.UserPatch) { p.DropFactors = true })),
		"updates drop recovery codes":      of("factors/a patch that does not name the factor leaves it alone", func(b factorBase) store.Store { return dropsCodes{b} }),
		"refused updates drop the factor":  of("factors/a patch that is refused leaves the factor alone", func(b factorBase) store.Store { return refusedDrops{b} }),
		"patches only hide the factor":     of("factors/a patch removes the factor", func(b factorBase) store.Store { return hidesFactor{b} }),
	}
}

// one is a user's only factor.
func (b factorBase) one(ctx context.Context, userID string) (f store.Factor, left int, ok bool) {
	fs, err := b.Factors(ctx, userID)
	if err != nil || len(fs.List) != 1 {
		return f, 0, false
	}
	return fs.List[0], fs.RecoveryLeft, true
}

type stepRace struct{ factorBase }

func (s stepRace) UseTOTPStep(ctx context.Context, c store.UseTOTPStep) error {
	f, _, ok := s.one(ctx, c.UserID)
	if !ok || c.Step <= f.LastStep {
		return s.FactorStore.UseTOTPStep(ctx, c)
	}
	pause()
	_ = s.FactorStore.UseTOTPStep(ctx, c)
	return nil
}

type recoveryRace struct{ factorBase }

func (s recoveryRace) UseRecoveryCode(ctx context.Context, c store.UseRecoveryCode) (int, error) {
	_, left, _ := s.one(ctx, c.UserID)
	if left < 2 {
		return s.FactorStore.UseRecoveryCode(ctx, c)
	}
	pause()
	_, _ = s.FactorStore.UseRecoveryCode(ctx, c)
	return left - 1, nil
}

type anyStep struct{ factorBase }

func (s anyStep) UseTOTPStep(ctx context.Context, c store.UseTOTPStep) error {
	err := s.FactorStore.UseTOTPStep(ctx, c)
	if f, _, ok := s.one(ctx, c.UserID); ok && errors.Is(err, store.ErrUsed) && c.Step < f.LastStep {
		return nil
	}
	return err
}

// anyCode does not know the member.
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

// leavesCode judges the code, and puts it back.
type leavesCode struct{ factorBase }

func (s leavesCode) RemoveFactor(ctx context.Context, c store.RemoveFactor) (store.User, error) {
	u, err := s.FactorStore.RemoveFactor(ctx, c)
	if err == nil && u.MFAEnabled && c.Recovery != nil {
		_ = s.PutRecoveryCodes(ctx, store.PutRecoveryCodes{Change: change(c.Now), UserID: c.UserID, Hashes: c.Recovery})
	}
	return u, err
}

// removalRace sees a code that is good, and removes without it.
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

func (s *heirloom) EnableFactor(ctx context.Context, c store.EnableFactor) (store.User, error) {
	s.mu.Lock()
	c.Recovery = append(s.codes, c.Recovery...)
	s.codes = c.Recovery
	s.mu.Unlock()
	return s.FactorStore.EnableFactor(ctx, c)
}

type movesStep struct{ factorBase }

func (s movesStep) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	u, err := s.Store.CreateSession(ctx, c)
	if f, _, ok := s.one(ctx, c.Session.UserID); err == nil && ok {
		_ = s.UseTOTPStep(ctx, store.UseTOTPStep{Change: change(c.Now), UserID: f.UserID, FactorID: f.ID, Step: f.LastStep + 1})
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

func (s raisesCounter) RaiseSession(ctx context.Context, c store.RaiseSession) (store.Session, store.User, error) {
	sess, u, err := s.FactorStore.RaiseSession(ctx, c)
	if err != nil {
		return sess, u, err
	}
	return s.AdvanceSession(ctx, store.Advance{Change: change(c.Now), SessionID: c.SessionID, Counter: sess.Counter, IdleUntil: sess.IdleUntil})
}

// piles keeps the proof of a method that was given before.
type piles struct{ factorBase }

func (s piles) RaiseSession(ctx context.Context, c store.RaiseSession) (store.Session, store.User, error) {
	before, _, _ := s.Session(ctx, c.SessionID, c.Now)
	sess, u, err := s.FactorStore.RaiseSession(ctx, c)
	if err == nil {
		sess.AMR = append(before.AMR, c.Proof)
	}
	return sess, u, err
}

type revivesSession struct{ factorBase }

func (s revivesSession) EnableFactor(ctx context.Context, c store.EnableFactor) (store.User, error) {
	u, err := s.FactorStore.EnableFactor(ctx, c)
	if errors.Is(err, store.ErrSessionEnded) {
		c.Session.ID = c.FactorID // another
		return s.FactorStore.EnableFactor(ctx, c)
	}
	return u, err
}

type keepsToken struct{ factorBase }

func (s keepsToken) EnableFactor(ctx context.Context, c store.EnableFactor) (store.User, error) {
	c.Redeem = nil
	return s.FactorStore.EnableFactor(ctx, c)
}

type enableRace struct{ factorBase }

func (s enableRace) EnableFactor(ctx context.Context, c store.EnableFactor) (store.User, error) {
	f, _, ok := s.one(ctx, c.UserID)
	if !ok || f.Enabled {
		return s.FactorStore.EnableFactor(ctx, c)
	}
	pause()
	u, err := s.FactorStore.EnableFactor(ctx, c)
	if errors.Is(err, store.ErrConflict) {
		err = nil
	}
	return u, err
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
