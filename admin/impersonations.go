package admin

import (
	"context"
	"errors"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

var (
	opImpersonate      = operation{pattern: "POST /users/{id}/impersonate", permission: PermImpersonate, against: stronger, stepUp: true, secret: true, fails: []auth.Code{auth.CodeImpersonationForbidden, auth.CodeUserBanned, auth.CodeRedirectNotAllowed, auth.CodePreconditionFailed, auth.CodeRateLimited}}
	opImpersonations   = operation{strict: true, pattern: "GET /impersonations", permission: PermImpersonate}
	opEndImpersonation = operation{bodyless: true, pattern: "DELETE /impersonations/{id}", permission: PermImpersonate, self: true, fails: []auth.Code{auth.CodeSessionNotFound, auth.CodeUserNotFound}}

	impersonationEndpoints = []endpoint{
		op(opImpersonate, (*Admin).Impersonate),
		op(opImpersonations, listed("impersonations", bare((*Admin).Impersonations), func(_ *Admin, i store.Impersonation) impersonationView { return viewImpersonation(i) })),
		op(opEndImpersonation, silent(func(m *Admin, ctx context.Context, who Actor, p idAndReason) error {
			return m.EndImpersonation(ctx, who, p.ID, p.Reason)
		})),
	}
)

type impersonationView struct {
	ID             string    `json:"id"`
	UserID         string    `json:"user_id"`
	ActorID        string    `json:"actor_id"`
	ActorSessionID string    `json:"actor_session_id"`
	Reason         string    `json:"reason"`
	CreatedAt      time.Time `json:"created_at"`
	ExpiresAt      time.Time `json:"expires_at"`
	IP             *string   `json:"ip"`
	UserAgent      *string   `json:"user_agent"`
}

func viewImpersonation(i store.Impersonation) impersonationView {
	return impersonationView{i.ID, i.UserID, i.ActorID, i.ActorSessionID, i.Reason, i.CreatedAt, i.ExpiresAt, optional(i.IP), optional(i.UserAgent)}
}

// ImpersonateParams name a user to act as, and a reason.
type ImpersonateParams struct {
	UserID     string `path:"id"`
	Reason     string `json:"reason"`      // for the audit log; required
	RedirectTo string `json:"redirect_to"` // where a browser continues, on the allow-list; empty: the token is returned
	// CodeChallenge is the S256 challenge (RFC 7636) of that browser, which exchanges the
	// code with the verifier; required with RedirectTo.
	CodeChallenge string `json:"code_challenge"`
	Revision      *int64 `header:"If-Match"` // of the account that the caller saw; nil: any
}

// ImpersonateResult is the token to act with, or the URL for a browser to get it.
type ImpersonateResult struct {
	SessionID   string `json:"session_id"`
	AccessToken string `json:"access_token,omitempty"` // if RedirectTo is empty; otherwise URL is set
	ExpiresIn   int    `json:"expires_in,omitempty"`   // seconds
	URL         string `json:"url,omitempty"`          // RedirectTo with a code for POST /exchange, valid for a minute
}

// Impersonate lets the actor act as another user, for at most auth.ImpersonationLife and
// only while the actor's own session is live. The user sees the impersonation among the
// sessions; the account stores nothing about it. It has access to the application's
// routes, except those with auth.NotImpersonated, and to Authmount's GET /me, GET
// /sessions and /logout. It ends early with any change to the permissions or credentials
// of either account.
//
// The actor has to be signed in (neither a key nor the application's code may
// impersonate) and to have all of the account's permissions and one more; owners need no
// more. Errors: CodeValidationFailed, CodeUserNotFound, CodeTargetStronger,
// CodeUserBanned, CodeImpersonationForbidden, CodeRedirectNotAllowed,
// CodePreconditionFailed, CodeRateLimited (the message of Options.NotifyImpersonated counts
// against the actor's budget).
func (m *Admin) Impersonate(ctx context.Context, who Actor, p ImpersonateParams) (ImpersonateResult, error) {
	if err := m.reason(p.Reason); err != nil {
		return ImpersonateResult{}, err
	}
	if err := m.kit.CheckActing(p.RedirectTo, p.CodeChallenge); err != nil {
		return ImpersonateResult{}, err
	}
	id, err := carryOut(ctx, m, who, opImpersonate, p.UserID, auth.EventImpersonationBegun, func(t *attempt) (string, error) {
		if t.by.Session == nil {
			return "", auth.Reject(auth.CodeImpersonationForbidden, "Only a signed-in operator may act as another user.")
		}
		if err := m.at(t, p.Revision); err != nil {
			return "", err
		}
		t.keepReason(p.Reason)
		e := &t.change.Events[0].Event
		i := store.Impersonation{
			ID: m.kit.NewSessionID(), UserID: t.target.ID, ActorID: t.user.ID, ActorSessionID: t.session.ID, Reason: p.Reason,
			CreatedAt: t.change.Now, ExpiresAt: t.change.Now.Add(auth.ImpersonationLife), UserAgent: e.Client.UserAgent,
		}
		if e.Client.IP.IsValid() {
			i.IP = e.Client.IP.String()
		}
		e.SessionID = i.ID
		if m.notifyImpersonated && t.target.EmailVerified() {
			if err := m.spend(ctx, t); err != nil {
				return "", err
			}
			m.kit.AddMessage(ctx, &t.change, host.Mail{Kind: auth.KindImpersonated, To: t.target})
		}
		return i.ID, m.admin.BeginImpersonation(ctx, store.BeginImpersonation{Change: t.change, Impersonation: i})
	})
	if err != nil {
		return ImpersonateResult{}, err
	}
	if p.RedirectTo != "" {
		url, err := m.kit.ImpersonationURL(ctx, who.authority(), id, p.RedirectTo, p.CodeChallenge)
		return ImpersonateResult{SessionID: id, URL: url}, err
	}
	tokens, err := m.kit.ImpersonationTokens(ctx, id)
	switch {
	case errors.Is(err, store.ErrSessionEnded), errors.Is(err, store.ErrNotFound): // the session ended meanwhile
		return ImpersonateResult{}, m.fail(auth.CodeSessionEnded, err)
	case err != nil:
		return ImpersonateResult{}, m.kit.StoreError(err)
	}
	t, _ := tokens.(*auth.Tokens)
	return ImpersonateResult{SessionID: id, AccessToken: t.AccessToken, ExpiresIn: t.ExpiresIn}, nil
}

// Impersonations lists the live impersonations, newest first, at most 1000.
func (m *Admin) Impersonations(ctx context.Context, who Actor) ([]store.Impersonation, error) {
	if _, err := m.reader(ctx, who, opImpersonations); err != nil {
		return nil, err
	}
	list, err := m.admin.Impersonations(ctx, "", m.kit.Now())
	if err != nil {
		return nil, m.kit.StoreError(err)
	}
	return list, nil
}

// EndImpersonation ends an impersonation by any actor. One that has ended already is no
// error. Errors: CodeSessionNotFound.
func (m *Admin) EndImpersonation(ctx context.Context, who Actor, id, reason string) error {
	if _, err := m.reader(ctx, who, opEndImpersonation); err != nil {
		return err
	}
	i, _, err := m.admin.Impersonation(ctx, id, m.kit.Now())
	switch {
	case errors.Is(err, store.ErrSessionEnded):
		return nil
	case errors.Is(err, store.ErrNotFound):
		return m.fail(auth.CodeSessionNotFound, err)
	case err != nil:
		return m.kit.StoreError(err)
	}
	_, err = carryOut(ctx, m, who, opEndImpersonation, i.UserID, auth.EventImpersonationEnded, func(t *attempt) (struct{}, error) {
		if err := m.setReason(t, reason); err != nil {
			return struct{}{}, err
		}
		t.change.Events[0].Event.SessionID = i.ID
		err := m.admin.EndImpersonation(ctx, store.EndImpersonation{Change: t.change, ID: i.ID})
		if errors.Is(err, store.ErrNotFound) {
			err = m.fail(auth.CodeSessionNotFound, err)
		}
		return struct{}{}, err
	})
	return err
}
