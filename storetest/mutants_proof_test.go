package storetest_test

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

func proofMutants() map[string]mutant {
	of := func(check string, broken func(proofBase) store.Store) mutant {
		return caught(check, func(b base) store.Store { return broken(proofBase{b}) })
	}
	return map[string]mutant{
		"a password lifts a session": of("proofs/a proof leaves the level as it is", func(b proofBase) store.Store { return proofLifts{b} }),
		"proofs are not kept":        of("proofs/a proof is added to a live session", func(b proofBase) store.Store { return proofForgets{b} }),
	}
}

// proofBase is a store with proofs of its own.
type proofBase struct {
	base
}

type proofLifts struct{ proofBase }

func (s proofLifts) AddAuthentication(ctx context.Context, c store.AddAuthentication) (store.Session, store.User, error) {
	sess, u, err := s.Store.AddAuthentication(ctx, c)
	sess.AAL = store.LevelAAL2
	return sess, u, err
}

type proofForgets struct{ proofBase }

func (s proofForgets) AddAuthentication(ctx context.Context, c store.AddAuthentication) (store.Session, store.User, error) {
	return s.Session(ctx, c.SessionID, c.Now)
}

func exportMutants() map[string]mutant {
	of := func(check string, broken func(exportBase) store.Store) mutant {
		return caught(check, func(b base) store.Store { return broken(exportBase{b}) })
	}
	const check = "exports/what is held of a user is listed, and of nobody else"
	return map[string]mutant{
		"an export lists nothing":           of(check, func(b exportBase) store.Store { return holdsNothing{b} }),
		"an export lists what is over":      of(check, func(b exportBase) store.Store { return holdsOver{b} }),
		"an account without what is held":   of("accounts/an account is what its two reads are", func(b exportBase) store.Store { return wholeHoldsNothing{b} }),
		"an account of anybody's":           of("accounts/nobody's account is not found", func(b exportBase) store.Store { return wholeOfNobody{b} }),
		"an export leaves messages out":     of("exports/messages that wait are listed", func(b exportBase) store.Store { return holdsNothing{b} }),
		"an export lists messages for ever": of("exports/messages that wait are listed", func(b exportBase) store.Store { return holdsOver{b} }),
	}
}

// exportBase is a store with exports of its own.
type exportBase struct {
	base
}

type holdsNothing struct{ exportBase }

func (s holdsNothing) UserRecords(context.Context, string, time.Time) (store.UserRecords, error) {
	return store.UserRecords{}, nil
}

type holdsOver struct{ exportBase }

func (s holdsOver) UserRecords(ctx context.Context, userID string, now time.Time) (store.UserRecords, error) {
	return s.base.UserRecords(ctx, userID, now.Add(-24*time.Hour))
}

type wholeHoldsNothing struct{ exportBase }

func (s wholeHoldsNothing) Account(ctx context.Context, key store.UserKey, _ time.Time) (store.Credentials, store.UserRecords, error) {
	c, err := s.Credentials(ctx, key)
	return c, store.UserRecords{}, err
}

type wholeOfNobody struct{ exportBase }

func (s wholeOfNobody) Account(ctx context.Context, key store.UserKey, now time.Time) (store.Credentials, store.UserRecords, error) {
	c, err := s.Credentials(ctx, key)
	if err != nil {
		return c, store.UserRecords{}, nil
	}
	h, err := s.UserRecords(ctx, c.User.ID, now)
	return c, h, err
}
