package auth

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// Rotation counts the uses of each secret of WithSecret.
type Rotation struct {
	Secrets []SecretUses // the present secret first, then the previous ones, in the order of WithSecret
	Lost    SecretUses   // uses of a secret that is no longer in WithSecret: it was removed too early

	// OldestRefresh is the creation time of the oldest current refresh token of a
	// session; zero: there is no session. The store does not have refresh tokens, and
	// so cannot count them by secret. A secret that was replaced before that time has
	// none left.
	OldestRefresh time.Time
}

// SecretUses counts the uses of one secret.
type SecretUses struct {
	TOTPSecrets   int // encrypted under the present secret when their user next enters a code
	RecoveryCodes int // valid until they are used or replaced; only their user can create new ones
	Messages      int // waiting to be sent, for three days at most; links in them keep working
}

// Rotation reports the uses of the present and the previous secrets. A previous secret
// can be removed from WithSecret once it has no uses, or if its uses may be lost: its
// second factors and recovery codes become invalid, its messages are not sent, and its
// sessions cannot be refreshed. Access tokens (15 minutes, see TokenOptions), codes and
// rate limits are not counted. Rotation reads whole tables: call it by hand. Errors:
// CodeUnavailable; CodeInternal with a store that is no [store.AdminStore].
func (a *Auth) Rotation(ctx context.Context) (Rotation, error) {
	if a.admin == nil {
		return Rotation{}, fail(CodeInternal, lacks[store.AdminStore]())
	}
	uses, err := a.admin.KeyUses(ctx, a.now())
	if err != nil {
		return Rotation{}, storeFailed(err)
	}
	ids := a.keys.IDs()
	r := Rotation{Secrets: make([]SecretUses, len(ids)), OldestRefresh: uses.OldestRefresh}
	of := map[string]*SecretUses{}
	for i := len(ids) - 1; i >= 0; i-- { // if a secret occurs twice, the first counts
		of[ids[i]] = &r.Secrets[i]
	}
	for _, kind := range []struct {
		kept map[string]int
		of   func(*SecretUses) *int
	}{
		{uses.Factors, func(u *SecretUses) *int { return &u.TOTPSecrets }},
		{uses.RecoveryCodes, func(u *SecretUses) *int { return &u.RecoveryCodes }},
		{uses.Messages, func(u *SecretUses) *int { return &u.Messages }},
	} {
		for id, n := range kind.kept {
			to := of[id]
			if to == nil {
				to = &r.Lost
			}
			*kind.of(to) += n
		}
	}
	return r, nil
}
