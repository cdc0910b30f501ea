package storetest_test

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
)

// choosy is a store that fails for ids that are none.
type choosy struct{ base }

func (s choosy) Sessions(ctx context.Context, userID string, now time.Time) ([]auth.Session, error) {
	if _, err := uuid.Parse(userID); err != nil {
		return nil, errors.New("invalid input syntax for type uuid")
	}
	return s.Store.Sessions(ctx, userID, now)
}

// careless is a store for which an id that is none is as good as no id.
type careless struct{ base }

func (s careless) RevokeSessions(ctx context.Context, c auth.RevokeSessions) ([]string, error) {
	if _, err := uuid.Parse(c.Filter.ID); err != nil {
		c.Filter.ID = ""
	}
	return s.Store.RevokeSessions(ctx, c)
}

// lenient is a store that takes a first session for one that showed a second factor.
type lenient struct {
	base
	auth.FactorStore
}

func (s lenient) EnableFactor(ctx context.Context, c auth.EnableFactor) (auth.User, error) {
	c.Session.AAL = auth.LevelAAL2
	return s.FactorStore.EnableFactor(ctx, c)
}

// guessable is a store whose codes about nothing anybody may guess at.
type guessable struct{ base }

func (s guessable) TryCode(ctx context.Context, c auth.TryCode) (auth.Token, auth.User, error) {
	if c.Subject == "" {
		return s.RedeemToken(ctx, auth.Redemption{Change: c.Change, Purpose: c.Purpose, Hash: c.Hash, Effect: c.Effect})
	}
	return s.Store.TryCode(ctx, c)
}

func nobodyMutants() map[string]mutant {
	return map[string]mutant{
		"ids that are none are an error":    caught("nobody/Sessions", func(b base) auth.Store { return choosy{b} }),
		"ids that are none pick everything": caught("nobody/ids in parameters", func(b base) auth.Store { return careless{b} }),
		"codes about nothing are guessed":   caught("nobody/a code about nothing is nobody's to guess", func(b base) auth.Store { return guessable{b} }),
		"first sessions need no factor":     caught("factors/a first session that showed no second factor enables none", func(b base) auth.Store { return lenient{b, capability[auth.FactorStore](b)} }),
	}
}
