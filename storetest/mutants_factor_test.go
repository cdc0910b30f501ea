package storetest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/authmount/auth"
)

type stepRace struct {
	auth.Store
	auth.FactorStore
}

func (s stepRace) UseTOTPStep(ctx context.Context, userID string, step int64) error {
	f, err := s.Factor(ctx, userID)
	if err != nil || !f.Enabled || step <= f.LastStep {
		return auth.ErrStale
	}
	yield()
	_ = s.FactorStore.UseTOTPStep(ctx, userID, step)
	return nil
}

type recoveryRace struct {
	auth.Store
	auth.FactorStore
}

func (s recoveryRace) UseRecoveryCode(ctx context.Context, userID string, hash []byte) (int, error) {
	f, err := s.Factor(ctx, userID)
	if err != nil || f.RecoveryLeft < 2 {
		return s.FactorStore.UseRecoveryCode(ctx, userID, hash)
	}
	yield()
	_, _ = s.FactorStore.UseRecoveryCode(ctx, userID, hash)
	return f.RecoveryLeft - 1, nil
}

type anyStep struct {
	auth.Store
	auth.FactorStore
}

func (s anyStep) UseTOTPStep(ctx context.Context, userID string, step int64) error {
	if err := s.FactorStore.UseTOTPStep(ctx, userID, step); err == nil {
		return nil
	}
	f, err := s.Factor(ctx, userID)
	if err == nil && f.Enabled && step < f.LastStep {
		return nil
	}
	return auth.ErrStale
}

type dropsFactor struct {
	auth.Store
	auth.FactorStore
}

func (s dropsFactor) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	p.RemoveFactor = true
	return s.Store.UpdateUser(ctx, id, p, now)
}

type dropsCodes struct {
	auth.Store
	auth.FactorStore
}

func (s dropsCodes) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	u, err := s.Store.UpdateUser(ctx, id, p, now)
	if u.MFAEnabled {
		_ = s.PutRecoveryCodes(ctx, id, nil)
	}
	return u, err
}

type refusedDrops struct {
	auth.Store
	auth.FactorStore
}

func (s refusedDrops) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	u, err := s.Store.UpdateUser(ctx, id, p, now)
	if err != nil && p.RemoveFactor {
		_, _ = s.RemoveFactor(ctx, id, now)
	}
	return u, err
}

type hidesFactor struct {
	auth.Store
	auth.FactorStore
}

func (s hidesFactor) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	hide := p.RemoveFactor
	p.RemoveFactor = false
	u, err := s.Store.UpdateUser(ctx, id, p, now)
	u.MFAEnabled = u.MFAEnabled && !hide
	return u, err
}

type heirloom struct {
	auth.Store
	auth.FactorStore
	mu    sync.Mutex
	codes [][]byte
}

func (s *heirloom) EnableFactor(ctx context.Context, e auth.EnableFactor) (auth.User, error) {
	s.mu.Lock()
	e.Recovery = append(s.codes, e.Recovery...)
	s.codes = e.Recovery
	s.mu.Unlock()
	return s.FactorStore.EnableFactor(ctx, e)
}

type movesStep struct {
	auth.Store
	auth.FactorStore
}

func (s movesStep) CreateSession(ctx context.Context, n auth.NewSession) (auth.User, error) {
	u, err := s.Store.CreateSession(ctx, n)
	if f, none := s.Factor(ctx, n.Session.UserID); err == nil && none == nil && f.Enabled {
		_ = s.UseTOTPStep(ctx, f.UserID, f.LastStep+1)
	}
	return u, err
}

type codesRaise struct {
	auth.Store
	auth.FactorStore
}

func (s codesRaise) PutRecoveryCodes(ctx context.Context, userID string, hashes [][]byte) error {
	if err := s.FactorStore.PutRecoveryCodes(ctx, userID, hashes); err != nil {
		return err
	}
	_, err := s.UpdateUser(ctx, userID, auth.UserPatch{}, time.Time{})
	return err
}

type raisesCounter struct {
	auth.Store
	auth.FactorStore
}

func (s raisesCounter) RaiseSession(ctx context.Context, id string, proof auth.AMR, now time.Time) (auth.Session, auth.User, error) {
	sess, u, err := s.FactorStore.RaiseSession(ctx, id, proof, now)
	if err != nil {
		return sess, u, err
	}
	return s.AdvanceSession(ctx, auth.Advance{SessionID: id, Counter: sess.Counter, Now: now, IdleUntil: sess.IdleUntil})
}

type revivesSession struct {
	auth.Store
	auth.FactorStore
}

func (s revivesSession) EnableFactor(ctx context.Context, e auth.EnableFactor) (auth.User, error) {
	u, err := s.FactorStore.EnableFactor(ctx, e)
	if _, _, ended := s.Session(ctx, e.Session.ID, e.Now); errors.Is(err, auth.ErrStale) && errors.Is(ended, auth.ErrSessionEnded) {
		e.Session.ID += "again"
		return s.FactorStore.EnableFactor(ctx, e)
	}
	return u, err
}
