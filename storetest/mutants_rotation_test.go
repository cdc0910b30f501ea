package storetest_test

import (
	"context"
	"time"

	"github.com/authmount/auth"
)

// recounts is a store that tells something else of what is kept.
type recounts struct {
	base
	auth.RotationStore
	edit func(ctx context.Context, s recounts, u *auth.KeyUses)
}

func (s recounts) KeyUses(ctx context.Context, now time.Time) (auth.KeyUses, error) {
	u, err := s.RotationStore.KeyUses(ctx, now)
	if err == nil {
		s.edit(ctx, s, &u)
	}
	return u, err
}

func rotationMutants() map[string]mutant {
	of := func(check string, edit func(ctx context.Context, s recounts, u *auth.KeyUses)) mutant {
		return caught("rotation/"+check, func(b base) auth.Store {
			r, _ := auth.Capability[auth.RotationStore](b.Store)
			return recounts{b, r, edit}
		})
	}
	const counted, oldest = "what is kept under each key is counted", "the oldest refresh token of a live session is told"
	return map[string]mutant{
		"pending factors do not count":  of(counted, func(_ context.Context, _ recounts, u *auth.KeyUses) { delete(u.Factors, "00000001") }),
		"recovery codes do not count":   of(counted, func(_ context.Context, _ recounts, u *auth.KeyUses) { clear(u.RecoveryCodes) }),
		"messages that are over count":  of(counted, func(_ context.Context, _ recounts, u *auth.KeyUses) { u.Messages["00000005"]++ }),
		"short secrets do not count":    of(counted, func(_ context.Context, _ recounts, u *auth.KeyUses) { delete(u.Factors, "short") }),
		"sessions that are over count":  of(oldest, func(_ context.Context, _ recounts, u *auth.KeyUses) { u.OldestRefresh = time.Unix(0, 0).UTC() }),
		"nobody's refresh token is old": of(oldest, func(_ context.Context, _ recounts, u *auth.KeyUses) { u.OldestRefresh = time.Time{} }),
		"sealing anew is not kept": caught("rotation/a secret that is sealed anew counts anew", func(b base) auth.Store {
			f, _ := auth.Capability[auth.FactorStore](b.Store)
			return keepsSeal{factorBase{b, f}}
		}),
	}
}

// keepsSeal drops the secret that was sealed anew.
type keepsSeal struct{ factorBase }

func (s keepsSeal) UseTOTPStep(ctx context.Context, c auth.UseTOTPStep) error {
	c.Secret = nil
	return s.FactorStore.UseTOTPStep(ctx, c)
}
