package storetest_test

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// recounts is a store that misreports the stored values.
type recounts struct {
	base
	store.AdminStore
	edit func(ctx context.Context, s recounts, u *store.KeyUses)
}

func (s recounts) KeyUses(ctx context.Context, now time.Time) (store.KeyUses, error) {
	u, err := s.AdminStore.KeyUses(ctx, now)
	if err == nil {
		s.edit(ctx, s, &u)
	}
	return u, err
}

func rotationMutants() map[string]mutant {
	of := func(check string, edit func(ctx context.Context, s recounts, u *store.KeyUses)) mutant {
		return caught("rotation/"+check, func(b base) store.Store {
			r, _ := store.Capability[store.AdminStore](b.Store)
			return recounts{b, r, edit}
		})
	}
	const counted, oldest = "what is kept under each key is counted", "the oldest refresh token of a live session is told"
	return map[string]mutant{
		"pending factors do not count":  of(counted, func(_ context.Context, _ recounts, u *store.KeyUses) { delete(u.Factors, "00000001") }),
		"recovery codes do not count":   of(counted, func(_ context.Context, _ recounts, u *store.KeyUses) { clear(u.RecoveryCodes) }),
		"messages that are over count":  of(counted, func(_ context.Context, _ recounts, u *store.KeyUses) { u.Messages["00000005"]++ }),
		"short secrets do not count":    of(counted, func(_ context.Context, _ recounts, u *store.KeyUses) { delete(u.Factors, "short") }),
		"sessions that are over count":  of(oldest, func(_ context.Context, _ recounts, u *store.KeyUses) { u.OldestRefresh = time.Unix(0, 0).UTC() }),
		"nobody's refresh token is old": of(oldest, func(_ context.Context, _ recounts, u *store.KeyUses) { u.OldestRefresh = time.Time{} }),
		"sealing anew is not kept": caught("rotation/a secret that is sealed anew counts anew", func(b base) store.Store {
			f, _ := store.Capability[store.FactorStore](b.Store)
			return keepsSeal{factorBase{b, f}}
		}),
	}
}

// keepsSeal drops the secret that was sealed again.
type keepsSeal struct{ factorBase }

func (s keepsSeal) UseFactor(ctx context.Context, c store.UseFactor) (store.FactorResult, error) {
	c.Secret = nil
	return s.FactorStore.UseFactor(ctx, c)
}
