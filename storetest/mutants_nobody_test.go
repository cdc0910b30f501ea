package storetest_test

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

// choosy is a store that fails for invalid ids.
type choosy struct{ base }

func (s choosy) Sessions(ctx context.Context, userID string, now time.Time) ([]store.Session, error) {
	if _, err := uuid.Parse(userID); err != nil {
		return nil, errors.New("invalid input syntax for type uuid")
	}
	return s.Store.Sessions(ctx, userID, now)
}

// careless is a store that takes an invalid id for an empty one.
type careless struct{ base }

func (s careless) RevokeSessions(ctx context.Context, c store.RevokeSessions) ([]string, error) {
	if _, err := uuid.Parse(c.Filter.ID); err != nil {
		c.Filter.ID = ""
	}
	return s.Store.RevokeSessions(ctx, c)
}

// lenient is a store that takes a first session for one with a second factor.
type lenient struct {
	base
	store.FactorStore
}

func (s lenient) EnableFactor(ctx context.Context, c store.EnableFactor) (store.FactorResult, error) {
	if c.Create != nil {
		created := *c.Create
		created.Session.AAL, c.Create = store.LevelAAL2, &created
	}
	return s.FactorStore.EnableFactor(ctx, c)
}

// guessable is a store that allows any number of attempts at codes without a subject.
type guessable struct{ base }

func (s guessable) RedeemCode(ctx context.Context, c store.CodeAttempt) (store.Token, store.User, error) {
	if c.Subject == "" {
		return s.RedeemToken(ctx, store.Redemption{Change: c.Change, Purpose: c.Purpose, Hash: c.Hash, Effect: c.Effect})
	}
	return s.Store.RedeemCode(ctx, c)
}

func nobodyMutants() map[string]mutant {
	return map[string]mutant{
		"ids that are none are an error":    caught("nobody/Sessions", func(b base) store.Store { return choosy{b} }),
		"ids that are none pick everything": caught("nobody/ids in parameters", func(b base) store.Store { return careless{b} }),
		"codes about nothing are guessed":   caught("nobody/a code about nothing is nobody's to guess", func(b base) store.Store { return guessable{b} }),
		"first sessions need no factor":     caught("factors/a first session that showed no second factor enables none", func(b base) store.Store { return lenient{b, capability[store.FactorStore](b)} }),
	}
}
