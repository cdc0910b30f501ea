package admin

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// Hourly budgets of accounts that an operator may ban, delete, anonymise, sign out or
// mail, through all operations together. They bound what a stolen session or key, or a
// mistake, can do. Each is a token bucket, full again after an hour.
const (
	budgetWithoutRecent = 50  // of a person who has not authenticated recently
	budgetOfKey         = 50  // of a key whose creator set none
	budgetOfPerson      = 200 // of a person without "*" and the person's keys; or budgetShare, if that is more
	budgetShare         = 20  // one in so many of all accounts
)

// spend counts an operation on another person's account against the budgets of its actor.
// undo uncounts it, for an operation that did not take place. Errors: CodeRateLimited.
func (m *Admin) spend(ctx context.Context, t *attempt, op operation) (undo func(), err error) {
	var draws []store.Draw
	add := func(n int, limit, value string) {
		draws = append(draws, m.kit.Draw(auth.Rate{Burst: n, Per: time.Hour}, limit, value, 1))
	}
	undo = func() {
		for i := range draws {
			draws[i].Cost = -1
		}
		if err := m.kit.CheckLimits(context.WithoutCancel(ctx), draws...); err != nil {
			m.kit.Log().WarnContext(ctx, "auth: the budget of an operator was not refunded", "error", err)
		}
	}
	if !op.spends || t.system() || t.is(t.target.ID) {
		return func() {}, nil
	}
	person, all := t.name(), t.may(permAll)
	switch {
	case t.key != nil:
		n := t.key.HourlyLimit
		if n == 0 {
			n = budgetOfKey
		}
		add(n, "admin-key", t.name())
		if t.creator == nil { // the service owns it
			all = true
			break
		}
		person = string(store.ActorUser) + ":" + t.creator.ID
		all = slices.Contains(permissionsIn(t.roles, t.creator.Roles), permAll)
	case !t.begun && !m.recentlyAuthenticated(t.acting):
		add(budgetWithoutRecent, "admin-not-recent", person)
	}
	if all {
		return undo, m.kit.CheckLimits(ctx, draws...)
	}
	add(budgetOfPerson, "admin-person", person)
	limited := m.kit.CheckLimits(ctx, draws...)
	if !errors.Is(limited, auth.CodeRateLimited) {
		return undo, limited
	}
	n, err := m.admin.CountUsers(ctx, store.UserQuery{Now: m.kit.Now()})
	if err != nil {
		return undo, m.storeError(err)
	}
	more := int(n.N)/budgetShare - budgetOfPerson
	if more <= 0 {
		return undo, limited
	}
	draws = draws[:len(draws)-1]
	add(more, "admin-person-share", person)
	return undo, m.kit.CheckLimits(ctx, draws...)
}
