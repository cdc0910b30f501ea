package auth

import (
	"context"
	"slices"
	"time"

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
func (a *Auth) lockDraws(u User, devices []store.DeviceRecord) (list []lockDraw) {
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
	for _, d := range append([]store.DeviceRecord{{}}, devices...) {
		account := u.ID
		if d.Device != "" {
			account += " " + d.Device
		}
		add("password", a.attemptLimit(limits.SignInsPerAccount, "sign-ins", account))
		for _, to := range namesOf(u) {
			add("code", a.recipientLimit(to, d.Device))
		}
		for _, name := range names {
			add("password", a.passwordLimit(name, true, d.Device)...)
		}
		add("factor", a.consecutiveFailures("factor", u.ID, d.Device), a.consecutiveFailures("recovery", u.ID, d.Device))
	}
	return list
}

// locks returns the limits that are used up.
func (a *Auth) locks(ctx context.Context, u User, h UserRecords) ([]host.Lock, error) {
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

const unlockAttempts = 10 // an operator's unlock lets this many attempts through

// unlocksPerDay limits all operators together: guesses that they let through stay few.
var unlocksPerDay = Rate{Burst: 3, Per: 24 * time.Hour}

func (k kit) Unlock(ctx context.Context, u User) (fill []store.Draw, undo func(), err error) {
	held, err := k.a.store.UserRecords(ctx, u.ID, k.a.now())
	if err != nil {
		return nil, nil, err
	}
	for _, d := range k.a.lockDraws(u, held.Devices) {
		if !slices.ContainsFunc(fill, func(f store.Draw) bool { return f.Key == d.Key }) {
			d.Cost = unlockAttempts
			fill = append(fill, d.Draw)
		}
	}
	count := k.a.draw(unlocksPerDay, "unlock", u.ID, 1)
	if err := k.a.take(ctx, count); err != nil {
		return nil, nil, err
	}
	return fill, func() {
		count.Cost = -1
		if err := k.a.take(context.WithoutCancel(ctx), count); err != nil {
			k.a.cfg.log.WarnContext(ctx, "auth: an unlock that failed was counted", "user_id", u.ID, "error", err)
		}
	}, nil
}
