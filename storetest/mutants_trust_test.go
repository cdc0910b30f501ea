package storetest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

func trustMutants() map[string]mutant {
	const (
		said     = "devices/a device is trusted by the account that said so"
		ways     = "devices/whatever changes ways in ends trust"
		standsIn = "factors/a trusted device stands in for the second factor"
	)
	creating := func(check string, edit func(*store.CreateSession)) mutant {
		return caught(check, func(b base) store.Store { return editsSession{b, edit} })
	}
	passing := func(check string, edit func(*store.CreateSession)) mutant {
		return creating(check, func(c *store.CreateSession) {
			if c.OnTrustedDevice {
				edit(c)
			}
		})
	}
	return map[string]mutant{
		"trust is lost":              creating(said, func(c *store.CreateSession) { c.TrustUntil = time.Time{} }),
		"no device stands in":        creating(standsIn, func(c *store.CreateSession) { c.OnTrustedDevice = false }),
		"devices stand in unasked":   creating(standsIn, func(c *store.CreateSession) { c.OnTrustedDevice = true }),
		"trust outlives its instant": passing(standsIn, func(c *store.CreateSession) { c.Now = c.Now.Add(-time.Microsecond) }),
		"any device stands in":       passing(standsIn, func(c *store.CreateSession) { c.Session.AAL = store.LevelAAL2 }),
		"a device raises its session": passing("factors/a session on a trusted device is as it was asked for", func(c *store.CreateSession) {
			c.Session.AAL = store.LevelAAL2
		}),
		"a device renews its trust": {func(s store.Store) store.Store { return &truster{base: base{s}, renews: true} }, []string{
			"factors/a session on a trusted device is as it was asked for",
		}},
		"one factor has a device trusted": caught("devices/a session of one factor has no device trusted", func(b base) store.Store { return trustsFirst{b} }),
		"a refused sign-in is trusted":    caught("devices/a refused sign-in has no device trusted", func(b base) store.Store { return trustsRefused{b} }),
		"trust never ends": {func(s store.Store) store.Store { return &truster{base: base{s}} }, []string{
			ways, "devices/trust that ended does not come back", "devices/trust ends with an end of sessions that says so", "factors/whatever changes second factors ends trust",
		}},
		"trust ends with one device": caught("devices/one device that is forgotten leaves trust in the others", func(b base) store.Store { return &trustsNoneAfter{base: b} }),
		"trust ends with everything": {func(s store.Store) store.Store { return trustsNobody{base{s}} }, []string{said, ways}},
		"trust makes up for a condition": passing("factors/a trusted device makes up for nothing else", func(c *store.CreateSession) {
			c.IfUsers = nil
		}),
		"trust is asked, then used": caught("factors/no session begins on a device once its trust has ended", func(b base) store.Store { return trustRace{b} }),
		"codes end trust": caught("factors/using second factors leaves trust alone", func(b base) store.Store {
			f, _ := store.Capability[store.FactorStore](b.Store)
			return stepsEndTrust{factorBase{b, f}}
		}),
	}
}

// trustsNoneAfter trusts no device once one was forgotten.
type trustsNoneAfter struct {
	base
	forgot bool
}

func (s *trustsNoneAfter) RevokeSessions(ctx context.Context, c store.RevokeSessions) ([]string, error) {
	s.forgot = s.forgot || c.DropDevices
	return s.Store.RevokeSessions(ctx, c)
}

func (s *trustsNoneAfter) Credentials(ctx context.Context, key store.UserKey) (store.Credentials, error) {
	c, err := s.Store.Credentials(ctx, key)
	if s.forgot {
		c.TrustedUntil = time.Time{}
	}
	return c, err
}

// truster keeps the devices' trust itself, and forgets nothing.
type truster struct {
	base
	renews bool // a session on such a device extends the trust; otherwise the session gets AAL2

	mu    sync.Mutex
	until map[[2]string]time.Time
}

func (s *truster) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	s.mu.Lock()
	d := [2]string{c.Session.UserID, c.Session.Device}
	if s.until == nil {
		s.until = map[[2]string]time.Time{}
	}
	switch until, known := s.until[d]; {
	case !c.TrustUntil.IsZero():
		s.until[d] = c.TrustUntil
	case known && s.renews && c.OnTrustedDevice:
		s.until[d] = until.Add(time.Second)
	case known && !s.renews && c.OnTrustedDevice:
		c.Session.AAL = store.LevelAAL2
	}
	s.mu.Unlock()
	return s.Store.CreateSession(ctx, c)
}

func (s *truster) Credentials(ctx context.Context, key store.UserKey) (store.Credentials, error) {
	c, err := s.Store.Credentials(ctx, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	c.TrustedUntil = s.until[[2]string{c.User.ID, key.Device}]
	return c, err
}

// trustsNobody reports no device as trusted.
type trustsNobody struct{ base }

func (s trustsNobody) Credentials(ctx context.Context, key store.UserKey) (store.Credentials, error) {
	c, err := s.Store.Credentials(ctx, key)
	c.TrustedUntil = time.Time{}
	return c, err
}

// trustsFirst does not check the level of a session.
type trustsFirst struct{ base }

func (s trustsFirst) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	if !c.TrustUntil.IsZero() {
		c.Session.AAL = store.LevelAAL2
	}
	return s.Store.CreateSession(ctx, c)
}

// trustsRefused stores trust in a step of its own, even if the session is refused.
type trustsRefused struct{ base }

func (s trustsRefused) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	u, err := s.Store.CreateSession(ctx, c)
	if err != nil && !c.TrustUntil.IsZero() {
		other := c.Session
		other.ID = uuid.NewString()
		_, _ = s.Store.CreateSession(context.WithoutCancel(ctx), store.CreateSession{Change: change(c.Now), NewSession: store.NewSession{Session: other, TrustUntil: c.TrustUntil}})
	}
	return u, err
}

// trustRace reads whether the device is trusted, and then signs in.
type trustRace struct{ base }

func (s trustRace) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	if !c.OnTrustedDevice {
		return s.Store.CreateSession(ctx, c)
	}
	key := store.ByID(c.Session.UserID)
	key.Device = c.Session.Device
	before, err := s.Credentials(ctx, key)
	if err != nil || !c.Now.Before(before.TrustedUntil) {
		return store.User{}, errors.Join(err, store.ErrMFARequired)
	}
	pause()
	c.Session.AAL = store.LevelAAL2
	return s.Store.CreateSession(ctx, c)
}

// stepsEndTrust forgets devices with every code.
type stepsEndTrust struct{ factorBase }

func (s stepsEndTrust) UseFactor(ctx context.Context, c store.UseFactor) (store.FactorResult, error) {
	done, err := s.FactorStore.UseFactor(ctx, c)
	_, _ = s.UpdateUser(ctx, store.UpdateUser{Change: change(c.Now), UserID: c.UserID, Patch: store.UserPatch{DropDevices: true}})
	return done, err
}
