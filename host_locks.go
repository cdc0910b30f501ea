package auth

import (
	"context"
	"slices"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

func (k kit) ResetFailures(ctx context.Context, u User) { k.a.unlockPassword(ctx, u, true) }

// lockDraw is a limit on attempts at an account.
type lockDraw struct {
	limit string
	store.Draw
}

// lockDraws returns the limits on failures at an account, for each of its names and
// each device that it was signed in on. It leaves out the attempts at a single code: a
// code with too many wrong attempts stays invalid.
func (a *Auth) lockDraws(u User, devices []store.HeldDevice) (list []lockDraw) {
	add := func(limit string, draws ...attemptLimit) {
		for _, d := range draws {
			if d.Rate.Burst > 0 {
				list = append(list, lockDraw{limit, d.Draw})
			}
		}
	}
	limits, names := a.cfg.limits, namesOf(u)
	for _, name := range append(slices.Clone(names), ofUser(u.ID)) {
		add("code", a.attemptLimit(limits.CodesPerAddress, "code", name), a.attemptLimit(limits.CodesPerAddressDaily, "code-day", name))
		add("code", a.consecutiveFailuresOf("code", name, true, "")...)
	}
	add("factor", a.attemptLimit(limits.FactorPerUser, "factor", u.ID))
	if len(names) == 0 {
		names = []string{u.ID}
	}
	for _, d := range append([]store.HeldDevice{{}}, devices...) {
		account := u.ID
		if d.Device != "" {
			account += " " + d.Device
		}
		add("password", a.attemptLimit(limits.SignInsPerAccount, "sign-ins", account))
		for _, name := range names {
			add("password", a.passwordLimit(name, true, d.Device)...)
		}
		add("factor", a.consecutiveFailures("factor", u.ID, d.Device), a.consecutiveFailures("recovery", u.ID, d.Device))
	}
	return list
}

// locks returns the limits that are used up.
func (a *Auth) locks(ctx context.Context, u User, h Held) ([]host.Lock, error) {
	draws := a.lockDraws(u, h.Devices)
	all := make([]store.Draw, len(draws))
	for i, d := range draws {
		all[i] = d.Draw
		all[i].Cost = 0
	}
	list := []host.Lock{}
	if len(all) == 0 {
		return list, nil
	}
	now := a.now()
	d, err := a.store.Take(ctx, all, now)
	if err != nil || d.Allowed {
		return list, err
	}
	for i, remaining := range d.Remaining {
		if remaining > 0 {
			continue
		}
		one, err := a.store.Take(ctx, all[i:i+1], now)
		if err != nil {
			return list, err
		}
		list = append(list, host.Lock{Limit: draws[i].limit, Until: now.Add(one.RetryAfter)})
	}
	return list, nil
}

func (k kit) LockKeys(ctx context.Context, u User) ([]string, error) {
	held, err := k.a.store.Held(ctx, u.ID, k.a.now())
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, d := range k.a.lockDraws(u, held.Devices) {
		keys = append(keys, d.Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}
