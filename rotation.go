package auth

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// Rotation is what still depends on each of the secrets that WithSecret was given.
type Rotation struct {
	Secrets []SecretUses // the present secret first, then the previous ones, in the order of WithSecret
	Lost    SecretUses   // what none of them opens: its secret was left out too early

	// OldestRefresh is when the refresh token of that session was made that has
	// not been refreshed for longest; zero: nobody is signed in. Tokens say
	// themselves which secret they were made under, and are kept nowhere: a secret
	// that was replaced before that time has none left.
	OldestRefresh time.Time
}

// SecretUses is how many there are of what depends on one secret.
type SecretUses struct {
	TOTPSecrets   int // sealed anew when their user next shows a code
	RecoveryCodes int // good until they are used or replaced; only their user can make new ones
	Messages      int // waiting to be sent, for three days at most; links in them go on to work
}

// Rotation tells what still depends on a previous secret, so that it can be left
// out of WithSecret once nothing does, or what does may be lost: second factors
// and recovery codes could not be used any more, messages not be sent, and
// sessions not be refreshed. Access tokens (15 minutes, see TokenOptions), codes
// and what counts limits are not told of. It reads whole tables: call it by hand.
// Errors: CodeUnavailable; CodeInternal with a store that is no [store.AdminStore].
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
	for i := len(ids) - 1; i >= 0; i-- { // of a secret that was given twice the first counts
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
