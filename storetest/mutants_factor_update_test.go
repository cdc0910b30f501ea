package storetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

// factorUpdateMutants are wrong about updates of factors, and about the factors that count
// as second factors.
func factorUpdateMutants() map[string]mutant {
	of := func(check string, broken func(factorBase) store.Store) mutant {
		return caught("second factors/"+check, func(b base) store.Store {
			f, _ := store.Capability[store.FactorStore](b.Store)
			return broken(factorBase{b, f})
		})
	}
	edits := func(check string, edit func(*store.UpdateFactor)) mutant {
		return of(check, func(b factorBase) store.Store { return editsUpdate{b, edit} })
	}
	stays := func(check string, which func(s store.Session, c *store.UpdateFactor) bool) mutant {
		return of(check, func(b factorBase) store.Store {
			return &sessionsStay{factorBase: b, which: which, left: map[string]store.Session{}}
		})
	}
	const (
		optional = "a factor that no sign-in needs ends no session and sets no recovery codes"
		label    = "a new label changes nothing else"
		becomes  = "a factor that becomes required ends the other sessions"
		released = "recovery codes go with the last factor that is no longer required"
		sequence = "an update raises the sequence only with recovery codes"
	)
	return map[string]mutant{
		"every enabling ends sessions":       of(optional, func(b factorBase) store.Store { return alwaysEnds{b} }),
		"every enabling sets recovery codes": of(optional, func(b factorBase) store.Store { return alwaysCodes{b} }),
		"updates lose the label":             edits(label, func(c *store.UpdateFactor) { c.Label = nil }),
		"empty labels are no change": edits(label, func(c *store.UpdateFactor) {
			if c.Label != nil && *c.Label == "" {
				c.Label = nil
			}
		}),
		"updates reset the state":        of(label, func(b factorBase) store.Store { return resetsState{b} }),
		"labels raise the revision":      of(label, func(b factorBase) store.Store { return labelRaises{b} }),
		"the same value is a change":     of(label, func(b factorBase) store.Store { return requiresAgain{b} }),
		"updates share the factor":       of(label, func(b factorBase) store.Store { return &sharesUpdate{factorBase: b} }),
		"updates require nothing":        edits(becomes, func(c *store.UpdateFactor) { c.Required = nil }),
		"updates lose recovery codes":    edits(becomes, func(c *store.UpdateFactor) { c.Recovery = nil }),
		"updates end every session":      edits(becomes, func(c *store.UpdateFactor) { c.KeepSession = "" }),
		"updates end no session":         stays(becomes, func(store.Session, *store.UpdateFactor) bool { return true }),
		"updates without codes end some": edits(becomes, func(c *store.UpdateFactor) { c.Recovery = append([][]byte{}, c.Recovery...) }),
		"factors stay required": edits(released, func(c *store.UpdateFactor) {
			if c.Required != nil && !*c.Required {
				c.Required = nil
			}
		}),
		"codes go with any released factor":          of(released, func(b factorBase) store.Store { return releaseDropsCodes{b} }),
		"codes need no required factor":              of("recovery codes go with the last required factor", func(b factorBase) store.Store { return anyCodes{b} }),
		"codes go with any required factor":          of("recovery codes go with the last required factor", func(b factorBase) store.Store { return dropsRecovery{b} }),
		"updates take any factor":                    of("an update names an enabled factor of the user", func(b factorBase) store.Store { return anyFactor{b} }),
		"updates are asked, then made":               of("of an update and a removal of the last two required factors one wins", func(b factorBase) store.Store { return updateRace{b} }),
		"required factors are counted, then changed": of("parallel updates and removals of required factors leave user and factors at one", func(b factorBase) store.Store { return &countsFirst{factorBase: b, required: map[string]bool{}} }),
		"updates put removed factors back":           of("a factor that is removed meanwhile is not required", func(b factorBase) store.Store { return putsBack{b} }),
		"updates raise the sequence":                 of(sequence, func(b factorBase) store.Store { return updateRaises{b} }),
		"updates know no session":                    edits(sequence, func(c *store.UpdateFactor) { c.By = system }),
		"updates end sessions up to a time": stays("a factor that becomes required ends sessions at any time of a caller", func(s store.Session, c *store.UpdateFactor) bool {
			return !s.CreatedAt.Before(c.Now)
		}),
		"old handles find the account":  caught("order/an account gets another handle", func(b base) store.Store { return &oldHandles{base: b, by: map[string]string{}} }),
		"handles are taken from others": caught("order/an account gets another handle", func(b base) store.Store { return losesHandle{b} }),
	}
}

// editsUpdate updates something else.
type editsUpdate struct {
	factorBase
	edit func(*store.UpdateFactor)
}

func (s editsUpdate) UpdateFactor(ctx context.Context, c store.UpdateFactor) (store.Factor, error) {
	s.edit(&c)
	return s.FactorStore.UpdateFactor(ctx, c)
}

type alwaysEnds struct{ factorBase }

func (s alwaysEnds) EnableFactor(ctx context.Context, c store.EnableFactor) (store.FactorResult, error) {
	done, err := s.FactorStore.EnableFactor(ctx, c)
	if err == nil && c.Raise != nil {
		_, err = s.RevokeSessions(ctx, store.RevokeSessions{Change: change(c.Now), UserID: c.UserID, Filter: store.SessionFilter{Except: c.Raise.SessionID}})
	}
	return done, err
}

type alwaysCodes struct{ factorBase }

func (s alwaysCodes) EnableFactor(ctx context.Context, c store.EnableFactor) (store.FactorResult, error) {
	done, err := s.FactorStore.EnableFactor(ctx, c)
	if err == nil && done.User.MFAEnabled && c.Recovery != nil {
		err = s.PutRecoveryCodes(ctx, store.PutRecoveryCodes{Change: change(c.Now), UserID: c.UserID, Hashes: c.Recovery})
	}
	return done, err
}

type resetsState struct{ factorBase }

func (s resetsState) UpdateFactor(ctx context.Context, c store.UpdateFactor) (store.Factor, error) {
	f, err := s.FactorStore.UpdateFactor(ctx, c)
	if err == nil {
		_, err = s.UseFactor(ctx, store.UseFactor{Change: change(c.Now), UserID: c.UserID, FactorID: c.FactorID, State: f.State})
	}
	return f, err
}

type labelRaises struct{ factorBase }

func (s labelRaises) UpdateFactor(ctx context.Context, c store.UpdateFactor) (store.Factor, error) {
	f, err := s.FactorStore.UpdateFactor(ctx, c)
	if err == nil && c.Label != nil {
		err = s.raise(ctx, c.UserID, c.Now)
	}
	return f, err
}

// requiresAgain carries out an update to the present value.
type requiresAgain struct{ factorBase }

func (s requiresAgain) UpdateFactor(ctx context.Context, c store.UpdateFactor) (store.Factor, error) {
	if c.Required != nil && *c.Required {
		no := false
		_, _ = s.FactorStore.UpdateFactor(ctx, store.UpdateFactor{Change: change(c.Now), UserID: c.UserID, FactorID: c.FactorID, Required: &no})
	}
	return s.FactorStore.UpdateFactor(ctx, c)
}

// sharesUpdate keeps a reference to the state that it returned.
type sharesUpdate struct {
	factorBase
	mu    sync.Mutex
	state []byte
}

func (s *sharesUpdate) UpdateFactor(ctx context.Context, c store.UpdateFactor) (store.Factor, error) {
	f, err := s.FactorStore.UpdateFactor(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = f.State
	return f, err
}

func (s *sharesUpdate) UseFactor(ctx context.Context, c store.UseFactor) (store.FactorResult, error) {
	s.mu.Lock()
	shared := slices.Clone(s.state)
	s.mu.Unlock()
	if shared != nil && !slices.Equal(shared, c.State) {
		return store.FactorResult{}, store.ErrUsed
	}
	return s.FactorStore.UseFactor(ctx, c)
}

// sessionsStay shows sessions that an update ended as live.
type sessionsStay struct {
	factorBase
	which func(store.Session, *store.UpdateFactor) bool
	mu    sync.Mutex
	left  map[string]store.Session
}

func (s *sessionsStay) UpdateFactor(ctx context.Context, c store.UpdateFactor) (store.Factor, error) {
	list, _ := s.Sessions(ctx, c.UserID, c.Now)
	f, err := s.FactorStore.UpdateFactor(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, own := range list {
		if err == nil && s.which(own, &c) {
			s.left[own.ID] = own
		}
	}
	return f, err
}

func (s *sessionsStay) Session(ctx context.Context, id string, now time.Time) (store.Session, store.User, error) {
	found, u, err := s.Store.Session(ctx, id, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if own, ok := s.left[id]; ok && errors.Is(err, store.ErrSessionEnded) {
		return own, u, nil
	}
	return found, u, err
}

// releaseDropsCodes deletes the recovery codes with every factor that is no longer required.
type releaseDropsCodes struct{ factorBase }

func (s releaseDropsCodes) UpdateFactor(ctx context.Context, c store.UpdateFactor) (store.Factor, error) {
	f, err := s.FactorStore.UpdateFactor(ctx, c)
	if err == nil && !f.Required {
		_ = s.PutRecoveryCodes(ctx, store.PutRecoveryCodes{Change: change(c.Now), UserID: c.UserID})
	}
	return f, err
}

// anyCodes accepts recovery codes for every enabled factor.
type anyCodes struct{ factorBase }

func (s anyCodes) PutRecoveryCodes(ctx context.Context, c store.PutRecoveryCodes) error {
	err := s.FactorStore.PutRecoveryCodes(ctx, c)
	if _, _, ok := s.one(ctx, c.UserID); ok && errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// anyFactor updates the user's first factor if the named one is missing.
type anyFactor struct{ factorBase }

func (s anyFactor) UpdateFactor(ctx context.Context, c store.UpdateFactor) (store.Factor, error) {
	if fs, err := s.Factors(ctx, c.UserID); err == nil && c.FactorID == "" && len(fs.List) > 0 {
		c.FactorID = fs.List[0].ID
	}
	return s.FactorStore.UpdateFactor(ctx, c)
}

// updateRace checks the condition, and updates the factor without it.
type updateRace struct{ factorBase }

func (s updateRace) UpdateFactor(ctx context.Context, c store.UpdateFactor) (store.Factor, error) {
	changed := func() bool {
		return slices.ContainsFunc(c.IfUsers, func(at store.UserAt) bool {
			u, err := s.User(ctx, store.ByID(at.ID))
			return err != nil || u.CredentialRevision != *at.CredentialRevision
		})
	}
	if changed() {
		return store.Factor{}, store.ErrStale
	}
	for i := 0; c.IfUsers != nil && i < 20 && !changed(); i++ { // for another change, also on a busy machine
		pause()
	}
	c.IfUsers = nil
	return s.FactorStore.UpdateFactor(ctx, c)
}

// RemoveFactor begins late, so that updates ask before it.
func (s updateRace) RemoveFactor(ctx context.Context, c store.RemoveFactor) (store.User, error) {
	if c.IfUsers != nil {
		pause()
	}
	return s.FactorStore.RemoveFactor(ctx, c)
}

// countsFirst counts the required factors before it changes one.
type countsFirst struct {
	factorBase
	mu       sync.Mutex
	required map[string]bool
}

func (s *countsFirst) UpdateFactor(ctx context.Context, c store.UpdateFactor) (store.Factor, error) {
	fs, _ := s.Factors(ctx, c.UserID)
	both := len(fs.List) == 2 && fs.List[0].Required && fs.List[1].Required
	pause()
	f, err := s.FactorStore.UpdateFactor(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.required[c.UserID] = s.required[c.UserID] || both
	return f, err
}

func (s *countsFirst) User(ctx context.Context, key store.UserKey) (store.User, error) {
	u, err := s.Store.User(ctx, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	u.MFAEnabled = u.MFAEnabled || s.required[u.ID]
	return u, err
}

// putsBack adds a factor again that was removed since it was read.
type putsBack struct{ factorBase }

func (s putsBack) UpdateFactor(ctx context.Context, c store.UpdateFactor) (store.Factor, error) {
	f, _, ok := s.one(ctx, c.UserID)
	if !ok {
		return s.FactorStore.UpdateFactor(ctx, c)
	}
	pause()
	_ = s.PutFactor(ctx, store.PutFactor{Change: change(c.Now), Factor: f})
	_, _ = s.EnableFactor(ctx, store.EnableFactor{Change: change(c.Now), UserID: f.UserID, FactorID: f.ID})
	return s.FactorStore.UpdateFactor(ctx, c)
}

type updateRaises struct{ factorBase }

func (s updateRaises) UpdateFactor(ctx context.Context, c store.UpdateFactor) (store.Factor, error) {
	f, err := s.FactorStore.UpdateFactor(ctx, c)
	if hash := "x"; err == nil {
		_, err = s.UpdateUser(ctx, store.UpdateUser{Change: change(c.Now), UserID: c.UserID, Patch: store.UserPatch{PasswordHash: &hash}})
	}
	return f, err
}

// oldHandles finds accounts by earlier handles.
type oldHandles struct {
	base
	mu sync.Mutex
	by map[string]string
}

func (s *oldHandles) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	before, _ := s.Store.User(ctx, store.ByID(c.UserID))
	u, err := s.Store.UpdateUser(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && before.Handle != u.Handle {
		s.by[before.Handle] = u.ID
	}
	return u, err
}

func (s *oldHandles) User(ctx context.Context, key store.UserKey) (store.User, error) {
	s.mu.Lock()
	if id := s.by[key.Handle]; key.Handle != "" && id != "" {
		key = store.ByID(id)
	}
	s.mu.Unlock()
	return s.Store.User(ctx, key)
}

// losesHandle accepts another user's handle, and does not store it.
type losesHandle struct{ base }

func (s losesHandle) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	u, err := s.Store.UpdateUser(ctx, c)
	if errors.Is(err, store.ErrConflict) && c.Patch.Handle != nil {
		c.Patch.Handle = nil
		return s.Store.UpdateUser(ctx, c)
	}
	return u, err
}
