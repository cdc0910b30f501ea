package admin

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

var (
	opSetPassword = operation{spends: true, pattern: "POST /users/{id}/password", permission: PermCredentials, against: stronger, adds: true, stepUp: true, fails: []auth.Code{
		auth.CodeWeakPassword, auth.CodeOverloaded, auth.CodePreconditionFailed,
	}}
	opFactors       = operation{pattern: "GET /users/{id}/factors", permission: PermUsersRead, fails: []auth.Code{auth.CodeUserNotFound}}
	opRemoveFactors = operation{spends: true, bodyless: true, pattern: "DELETE /users/{id}/factors", permission: PermCredentials, against: stronger, stepUp: true, fails: removing}
	opRemoveFactor  = operation{spends: true, bodyless: true, pattern: "DELETE /users/{id}/factors/{factor}", permission: PermCredentials, against: stronger, stepUp: true, fails: removing}
	opUnlink        = operation{spends: true, bodyless: true, pattern: "DELETE /users/{id}/identities/{identity}", permission: PermCredentials, against: stronger, stepUp: true, fails: []auth.Code{
		auth.CodeNotFound, auth.CodeLastSignInMethod, auth.CodePreconditionFailed,
	}}
	opUnlock = operation{spends: true, byName: true, bodyless: true, pattern: "POST /users/{id}/unlock", permission: PermUsersBan, against: managing, stepUp: true, fails: []auth.Code{auth.CodePreconditionFailed, auth.CodeRateLimited}}

	removing = []auth.Code{auth.CodeNotFound, auth.CodeMFANotEnabled, auth.CodePreconditionFailed}
)

// SetPasswordParams set or remove a password.
type SetPasswordParams struct {
	UserID   string
	Password *string // nil removes it
	Reason   string
	Revision *int64
}

// setPasswordBody distinguishes null, which removes the password, from an absent member.
type setPasswordBody struct {
	UserID   string          `path:"id"`
	Password json.RawMessage `json:"password" required:"is required; null removes it"`
	Reason   string          `json:"reason"`
	Revision *int64          `header:"If-Match"`
}

func (m *Admin) setPassword(ctx context.Context, who Actor, p setPasswordBody) (auth.User, error) {
	set := SetPasswordParams{UserID: p.UserID, Reason: p.Reason, Revision: p.Revision}
	if err := json.Unmarshal(p.Password, &set.Password); err != nil {
		return auth.User{}, m.kit.Invalid("password", "must be a string, or null")
	}
	return m.SetPassword(ctx, who, set)
}

// SetPassword sets or removes a user's password. All sessions of the user are revoked,
// and the user is notified by mail. Errors: CodeValidationFailed, CodeWeakPassword,
// CodeUserNotFound, CodeTargetStronger, CodePreconditionFailed, CodeOverloaded, those of
// Hooks.BeforePasswordChange.
func (m *Admin) SetPassword(ctx context.Context, who Actor, p SetPasswordParams) (auth.User, error) {
	u, err := carryOut(ctx, m, who, opSetPassword, p.UserID, auth.EventPasswordChanged, func(t *attempt) (auth.User, error) {
		if err := m.at(t, p.Revision); err != nil {
			return auth.User{}, err
		}
		had, err := m.store.Credentials(ctx, store.ByID(t.target.ID))
		if err != nil {
			return auth.User{}, err
		}
		patch, err := m.kit.PasswordPatch(ctx, t.target, p.Password)
		if err != nil {
			return auth.User{}, err
		}
		if err := m.setReason(t, p.Reason); err != nil {
			return auth.User{}, err
		}
		t.changed("password", had.PasswordHash != "", p.Password != nil)
		return m.updateTarget(ctx, t, patch)
	})
	if err == nil && p.Password != nil {
		m.kit.ResetFailures(ctx, u) // of the former password
	}
	return u, err
}

// Factors lists a user's enabled second factors, without their secrets. Errors:
// CodeUserNotFound.
func (m *Admin) Factors(ctx context.Context, who Actor, userID string) ([]auth.Factor, error) {
	if _, err := m.reader(ctx, who, opFactors); err != nil {
		return nil, err
	}
	a, err := m.account(ctx, store.ByID(userID))
	return a.Factors, err
}

func (m *Admin) factors(ctx context.Context, who Actor, p idOnly) (map[string][]factorView, error) {
	list, err := m.Factors(ctx, who, p.ID)
	return map[string][]factorView{"factors": viewFactors(list)}, err
}

// RemoveFactorParams remove second factors.
type RemoveFactorParams struct {
	UserID   string `path:"id"`
	FactorID string `path:"factor"` // empty: all
	Reason   string `json:"reason"`
	Revision *int64 `header:"If-Match"`
}

// RemoveFactor removes one of a user's second factors or passkeys, or all second factors, and
// with the last second factor the recovery codes. Passkeys that are no second factor stay,
// unless FactorID names them. The user is notified by mail. Errors: CodeUserNotFound,
// CodeNotFound (no such factor), CodeMFANotEnabled (there is none), CodeTargetStronger,
// CodePreconditionFailed.
func (m *Admin) RemoveFactor(ctx context.Context, who Actor, p RemoveFactorParams) (auth.User, error) {
	op := opRemoveFactor
	if p.FactorID == "" {
		op = opRemoveFactors
	}
	return carryOut(ctx, m, who, op, p.UserID, auth.EventMFADisabled, func(t *attempt) (auth.User, error) {
		if err := m.at(t, p.Revision); err != nil {
			return auth.User{}, err
		}
		a, err := m.account(ctx, store.ByID(t.target.ID))
		if err != nil {
			return auth.User{}, err
		}
		var removed []auth.Factor
		had, left := false, false // a second factor
		for _, f := range a.Factors {
			if f.ID == p.FactorID || p.FactorID == "" && f.Required {
				removed, had = append(removed, f), had || f.Required
			} else {
				left = left || f.Required
			}
		}
		switch {
		case len(removed) == 0 && p.FactorID != "":
			return auth.User{}, m.fail(auth.CodeNotFound, nil)
		case len(removed) == 0:
			return auth.User{}, m.fail(auth.CodeMFANotEnabled, nil)
		}
		for _, f := range removed {
			if err := m.kit.RememberRemoved(ctx, f); err != nil {
				return auth.User{}, err
			}
		}
		if left || !had {
			m.editEvent(ctx, t, func(e *auth.Event) {
				if e.Type = auth.EventTOTPRemoved; removed[0].Kind == store.FactorPasskey {
					e.Type = auth.EventPasskeyRemoved
				}
			})
		}
		if err := m.setReason(t, p.Reason); err != nil {
			return auth.User{}, err
		}
		t.changed("factors", kindsOf(removed), nil)
		return m.kit.Factors().RemoveFactor(ctx, store.RemoveFactor{Change: t.change, UserID: t.target.ID, FactorID: p.FactorID})
	})
}

func kindsOf(list []auth.Factor) (kinds []string) {
	for _, f := range list {
		kinds = append(kinds, f.Kind)
	}
	return kinds
}

// UnlinkParams remove an identity from an account.
type UnlinkParams struct {
	UserID     string `path:"id"`
	IdentityID string `path:"identity"`
	Force      bool   `json:"force"` // even if the account has no sign-in method left
	Reason     string `json:"reason"`
	Revision   *int64 `header:"If-Match"`
}

// Unlink removes an identity from an account. Its owner is notified by mail. Errors:
// CodeUserNotFound, CodeNotFound (no such identity), CodeLastSignInMethod,
// CodeTargetStronger, CodePreconditionFailed.
func (m *Admin) Unlink(ctx context.Context, who Actor, p UnlinkParams) (auth.User, error) {
	return carryOut(ctx, m, who, opUnlink, p.UserID, auth.EventIdentityUnlinked, func(t *attempt) (auth.User, error) {
		if err := m.at(t, p.Revision); err != nil {
			return auth.User{}, err
		}
		i := slices.IndexFunc(t.target.Identities, func(i auth.Identity) bool { return i.ID == p.IdentityID })
		if i < 0 {
			return auth.User{}, m.fail(auth.CodeNotFound, nil)
		}
		removed := t.target.Identities[i]
		c, err := m.store.Credentials(ctx, store.ByID(t.target.ID))
		if err != nil {
			return auth.User{}, err
		}
		if can, err := m.kit.CanSignInWithout(ctx, c, removed.Provider); err != nil {
			return auth.User{}, err
		} else if !p.Force && !can {
			return auth.User{}, m.fail(auth.CodeLastSignInMethod, nil)
		}
		m.editEvent(ctx, t, func(e *auth.Event) { e.Provider = removed.Provider })
		if err := m.setReason(t, p.Reason); err != nil {
			return auth.User{}, err
		}
		t.changed("identities", removed.Provider+" "+removed.Subject, nil)
		return m.updateTarget(ctx, t, m.kit.UnlinkPatch(removed))
	})
}

// editEvent edits the event of an attempt and writes its notice again, because the notice
// repeats the event.
func (m *Admin) editEvent(ctx context.Context, t *attempt, edit func(*auth.Event)) {
	o := t.change.Events[0]
	edit(&o.Event)
	updated := m.kit.ChangeOf(ctx, t.by, t.target, o)
	t.change.Events, t.change.Messages = updated.Events, updated.Messages
}

// UnlockParams let further attempts at an account through.
type UnlockParams struct {
	UserID   string `path:"id"`
	Reason   string `json:"reason"`
	Revision *int64 `header:"If-Match"`
}

// Unlock lets ten more attempts through at the password, codes and second factors of an
// account that failures have locked, for each of its names and devices. It ends no run of
// failures, so the owner is notified of a run as before. An account can be unlocked three
// times, one of which returns every eight hours, by all operators together; the owner is
// notified by mail. Keys need the permission among their scopes by name. An actor cannot
// unlock the actor's own account, because the limits also stop further attempts with a
// stolen session. Errors: CodeUserNotFound, CodeTargetStronger, CodePreconditionFailed,
// CodeRateLimited.
func (m *Admin) Unlock(ctx context.Context, who Actor, p UnlockParams) (auth.User, error) {
	return carryOut(ctx, m, who, opUnlock, p.UserID, auth.EventUserUnlocked, func(t *attempt) (auth.User, error) {
		if err := m.at(t, p.Revision); err != nil {
			return auth.User{}, err
		}
		if err := m.setReason(t, p.Reason); err != nil {
			return auth.User{}, err
		}
		fill, undo, err := m.kit.Unlock(ctx, t.target)
		if err != nil {
			return auth.User{}, err
		}
		if err := m.admin.FillLimits(ctx, store.FillLimits{Change: t.change, UserID: t.target.ID, Fill: fill}); err != nil {
			undo()
			return auth.User{}, err
		}
		return t.target, nil
	})
}
