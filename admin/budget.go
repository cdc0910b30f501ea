package admin

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// Hourly budgets of accounts. Through all operations together, an operator may ban, delete,
// anonymise, sign out, unlock or mail at most this many accounts, or change their addresses
// or sign-in methods. Budgets bound the damage of a stolen session or key, or of a mistake.
// Each is a token bucket that refills within an hour, so an attack can reach twice as many
// accounts in its first hour.
const (
	budgetWithoutRecent = 50  // of a person who has not authenticated recently
	budgetOfKey         = 50  // of a key whose creator set none
	budgetOfPerson      = 200 // without "*", together with the person's keys; at least
	budgetShareDivisor  = 20  // 1/20, that is 5 %, of the accounts, see shareAfter

	shareAfter = 24 * time.Hour // accounts count for the share after this time
)

// updateTarget stores a patch of the attempt's target. It counts the patches that the
// budgets are for; any other, such as of a name, is free. A ban makes the account's access
// tokens stale in this process. Errors: CodeRateLimited, those of the store.
func (m *Admin) updateTarget(ctx context.Context, t *attempt, p store.UserPatch) (auth.User, error) {
	bans := p.BannedUntil != nil && !p.BannedUntil.IsZero()
	if bans || p.Revoke != nil || fieldsOfPatch(p).credentials || len(t.change.Messages) > 0 {
		if err := m.spend(ctx, t); err != nil {
			return auth.User{}, err
		}
	}
	u, err := m.store.UpdateUser(ctx, store.UpdateUser{Change: t.change, UserID: t.target.ID, Patch: p})
	if err == nil && bans {
		m.kit.MarkStale(u)
	}
	return u, err
}

// refund uncounts an attempt that did not take place.
func (m *Admin) refund(ctx context.Context, t *attempt) {
	for i := range t.spent {
		t.spent[i].Cost = -1
	}
	if err := m.kit.CheckLimits(context.WithoutCancel(ctx), t.spent...); err != nil {
		m.kit.Log().WarnContext(ctx, "auth: the budget of an operator was not refunded", "error", err)
	}
	t.spent = nil
}

// spend counts an attempt at another person's account, or at a message, once against the
// budgets of its actor. Errors: CodeRateLimited.
func (m *Admin) spend(ctx context.Context, t *attempt) error {
	if t.system() || t.is(t.target.ID) || len(t.spent) > 0 {
		return nil
	}
	draws, err := m.takeBudgets(ctx, t)
	if err == nil {
		t.spent = draws
	}
	return m.namingBudget(t, err)
}

// namingBudget makes an error of a used-up budget say so, and how to get a larger one.
func (m *Admin) namingBudget(t *attempt, err error) error {
	var e *auth.Error
	if !errors.As(err, &e) || e.Code != auth.CodeRateLimited {
		return err
	}
	named := *e
	switch {
	case t.key != nil:
		named.Message = "The hourly budget of accounts of this key or its owner is used up. Wait a little, raise hourly_limit of the key, or use an import."
	case !t.inJob && !m.recentlyAuthenticated(t.acting):
		named.Message = "The hourly budget of accounts is used up. Wait a little, or confirm that it is you: after recent authentication it is larger."
	default:
		named.Message = "The hourly budget of accounts is used up. Wait a little."
	}
	return &named
}

// importLimit is the limit that an import by an operator without "*" uses up for shareAfter:
// imports choose when their accounts were created.
func (m *Admin) importLimit() store.Draw {
	return m.kit.Draw(auth.Rate{Burst: 1, Per: shareAfter}, "admin-imported", "", 1)
}

// noteImport uses up importLimit, unless the actor is answered for by "*".
func (m *Admin) noteImport(ctx context.Context, t *attempt) error {
	if _, all := budgetOwner(t.acting); all || t.system() {
		return nil
	}
	if err := m.kit.CheckLimits(ctx, m.importLimit()); !errors.Is(err, auth.CodeRateLimited) {
		return err
	}
	return nil // by another import
}

// budgetOwner returns the person whose budget an actor's attempts count against, and whether "*"
// lifts it. The creator answers for a key, and the service for a key of the options.
func budgetOwner(a *acting) (person string, all bool) {
	switch {
	case a.key == nil:
		return a.name(), a.may(permAll)
	case a.creator == nil:
		return a.name(), true
	}
	return string(store.ActorUser) + ":" + a.creator.ID, slices.Contains(permissionsIn(a.roles, a.creator.Roles), permAll)
}

func hourlyLimit(k store.APIKey) int { return cmp.Or(k.HourlyLimit, budgetOfKey) }

// ownDraws returns the draws from the budget of an actor's key, or of a session without
// recent authentication.
func (m *Admin) ownDraws(a *acting, recent bool) []store.Draw {
	person, _ := budgetOwner(a)
	switch {
	case a.key != nil:
		return []store.Draw{m.budget(hourlyLimit(*a.key), "admin-key", a.name())}
	case !recent:
		return []store.Draw{m.budget(budgetWithoutRecent, "admin-not-recent", person)}
	}
	return nil
}

func (m *Admin) budget(n int, limit, value string) store.Draw {
	return m.kit.Draw(auth.Rate{Burst: n, Per: time.Hour}, limit, value, 1)
}

// share returns the accounts that a person's budget has beyond budgetOfPerson. An operator
// could make accounts until the share is as large as wanted, so the share counts accounts of
// more than a day, and for a day after an import there is none.
func (m *Admin) share(ctx context.Context) (int, error) {
	recent := m.importLimit()
	recent.Cost = 0
	if err := m.kit.CheckLimits(ctx, recent); errors.Is(err, auth.CodeRateLimited) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	n, err := m.admin.CountUsers(ctx, store.UserQuery{CreatedTo: m.kit.Now().Add(-shareAfter), Now: m.kit.Now()})
	return max(int(n.N)/budgetShareDivisor-budgetOfPerson, 0), m.storeError(err)
}

// takeBudgets counts an attempt against the budgets, and returns the draws for its refund.
func (m *Admin) takeBudgets(ctx context.Context, t *attempt) ([]store.Draw, error) {
	person, all := budgetOwner(t.acting)
	own := m.ownDraws(t.acting, t.inJob || t.key != nil || m.recentlyAuthenticated(t.acting))
	if all {
		return own, m.kit.CheckLimits(ctx, own...)
	}
	draws := append(slices.Clone(own), m.budget(budgetOfPerson, "admin-person", person))
	limited := m.kit.CheckLimits(ctx, draws...)
	if !errors.Is(limited, auth.CodeRateLimited) {
		return draws, limited
	}
	more, err := m.share(ctx)
	switch {
	case err != nil:
		return draws, err
	case more == 0:
		return draws, limited
	}
	draws = append(own, m.budget(more, "admin-person-share", person))
	return draws, m.kit.CheckLimits(ctx, draws...)
}

// Budget is what the hourly budgets of an operator still allow, in accounts; nil if none
// limits the operator.
type Budget struct {
	Left       *int      // with the present session or key; for a job, which needs recent authentication, as LeftRecent
	LeftRecent *int      // after recent authentication; of a key, which cannot authenticate, as Left
	Code       auth.Code // CodeRateLimited if the operation reaches more accounts than Left; "" if it does not
}

// budgetLeft returns what the budgets allow an actor who is about to reach accounts. It counts
// nothing.
func (m *Admin) budgetLeft(ctx context.Context, a *acting, inJob bool, accounts int) (*Budget, error) {
	b := &Budget{}
	if a.system() {
		return b, nil
	}
	person, all := budgetOwner(a)
	if !all {
		more, err := m.share(ctx)
		if err != nil {
			return nil, err
		}
		draws := []store.Draw{m.budget(budgetOfPerson, "admin-person", person)}
		if more > 0 {
			draws = append(draws, m.budget(more, "admin-person-share", person))
		}
		left, err := m.kit.LimitsLeft(ctx, draws...)
		if err != nil {
			return nil, err
		}
		n := 0
		for _, one := range left {
			n += one
		}
		b.LeftRecent = &n
	}
	narrow := func(recent bool) (*int, error) {
		own, err := m.kit.LimitsLeft(ctx, m.ownDraws(a, recent)...)
		if err != nil || len(own) == 0 || b.LeftRecent != nil && *b.LeftRecent <= own[0] {
			return b.LeftRecent, err
		}
		return &own[0], nil
	}
	var err error
	if b.LeftRecent, err = narrow(true); err != nil {
		return nil, err
	}
	b.Left, err = narrow(inJob || a.key != nil || m.recentlyAuthenticated(a))
	if b.Left != nil && accounts > *b.Left {
		b.Code = auth.CodeRateLimited
	}
	return b, err
}
