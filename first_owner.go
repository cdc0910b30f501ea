package auth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// A service that never had an owner gets its first one by a link that is shown to its
// operator: the signed-in user who opens it. The store checks that there was never an
// owner (Change.FirstOwner).

const (
	firstOwnerLife    = 30 * time.Minute
	firstOwnerSubject = "first owner" // the subject of all such links: a new one supersedes the old one
	firstOwnerPath    = "/first-owner"
)

func (k kit) PutFirstOwnerLink(ctx context.Context, c store.Change) (string, error) {
	c.FirstOwner = true
	secret, t := k.a.newLink(store.PurposeFirstOwner, firstOwnerLife, linkData{})
	t.Subject = firstOwnerSubject
	if err := k.a.store.PutToken(ctx, store.PutToken{Change: c, Token: t}); err != nil {
		return "", err
	}
	return withQuery(k.a.publicURL().String()+"/admin"+firstOwnerPath, url.Values{"token": {secret}}), nil
}

func (k kit) FirstOwnerRoutes() []host.Route {
	refusals := host.Codes(CodeInvalidToken, CodeEmailNotVerified, CodeInsufficientAAL, CodeRoleInUse, CodeValidationFailed)
	return []host.Route{
		{Pattern: "GET " + firstOwnerPath, Access: host.Open, Errors: refusals[:1], Handle: k.a.handleFirstOwnerPage},
		{Pattern: "POST " + firstOwnerPath, Access: host.SignedIn, Errors: refusals, Handle: k.a.handleFirstOwner, Form: k.a.handleFirstOwnerForm},
	}
}

func (k kit) BecomeFirstOwner(ctx context.Context, by SessionRef, secret string) (User, error) {
	return k.a.becomeFirstOwner(ctx, Caller{UserID: by.UserID, SessionID: by.ID}, secret)
}

// becomeFirstOwner gives the owner role to the signed-in user, and uses the link up.
// Errors: CodeInvalidToken, CodeSessionEnded, CodeUserBanned, CodeEmailNotVerified,
// CodeInsufficientAAL, CodeRoleInUse (there has been an owner).
func (a *Auth) becomeFirstOwner(ctx context.Context, by Caller, secret string) (User, error) {
	return change(func() (User, error) {
		s, u, err := a.liveSession(ctx, by, CodeSessionEnded)
		switch {
		case err != nil:
			return u, err
		case !u.EmailVerified():
			return u, fail(CodeEmailNotVerified, nil)
		}
		known, err := a.currentRoles(ctx)
		if err != nil {
			return u, err
		}
		roles := rolesWith(u.Roles, []string{RoleOwner})
		patch, err := a.acceptingIn(ctx, s, u)
		if err != nil {
			return u, err
		}
		a.setRoles(&patch, known, u, roles)
		id, server := requestIDs(ctx)
		c := a.newChangeOf(ctx, Authority{Session: &SessionRef{ID: s.ID, UserID: u.ID}}, account{User: u}, done(Event{Type: EventRolesChanged, UserID: u.ID, SessionID: s.ID, Record: &store.Record{
			Actor: u.Email, Target: u.Email, RequestID: id, ServerID: server, Operation: "POST " + firstOwnerPath,
			Changes: map[string]store.FieldChange{"roles": {Before: nonNil(u.Roles), After: roles}},
		}}))
		c.FirstOwner, c.IfUsers = true, []UserAt{{ID: u.ID, Revision: &u.Revision}}
		_, owner, err := a.store.RedeemToken(ctx, store.Redemption{Change: c, Purpose: store.PurposeFirstOwner, Hash: hashLinkToken(secret), Effect: store.Effect{UserID: u.ID, Patch: &patch}})
		switch {
		case err == nil:
			a.committed(ctx, c, store.OutcomeDone, about(u.ID))
			kit{a}.MarkStale(owner)
			return owner, nil
		case errors.Is(err, store.ErrStale):
			return owner, err
		case errors.Is(err, store.ErrNotFound):
			return owner, a.ownerLinkError(ctx, err)
		}
		return owner, storeFailed(err)
	})
}

// acceptingIn returns the acceptance by a live session. It keeps the session, the email
// address, and the methods that signed the session in. Somebody else may have set up all
// others. Errors: CodeInsufficientAAL (the session has not shown the second factor).
func (a *Auth) acceptingIn(ctx context.Context, s Session, u User) (store.UserPatch, error) {
	p := store.UserPatch{Accept: true, DropCredentials: true, KeepSession: s.ID, Email: &u.Email}
	used := func(method string) bool {
		return slices.ContainsFunc(s.AMR, func(m AMR) bool { return m.Method == method })
	}
	before := func(sequence, addedBy int64) bool { return sequence <= s.Sequence || addedBy == s.Sequence }
	c, err := a.store.Credentials(ctx, store.ByID(u.ID))
	switch {
	case err != nil:
		return p, goneOr(CodeSessionEnded, err)
	case c.User.Revision != u.Revision:
		return p, store.ErrStale
	case u.MFAEnabled && !used(methodTOTP) && !used(methodRecovery) && (!used(methodPasskey) || s.AAL != store.LevelAAL2):
		return p, fail(CodeInsufficientAAL, nil)
	}
	if used(methodPassword) && before(u.PasswordSequence, u.PasswordAddedBy) && c.PasswordHash != "" {
		p.PasswordHash = &c.PasswordHash
	}
	if used(methodPhoneCode) && before(u.PhoneSequence, u.PhoneAddedBy) && u.Phone != "" {
		p.Phone = &u.Phone
	}
	if used(methodOAuth) { // a session does not name the identity, so several are none
		older := slices.DeleteFunc(slices.Clone(u.Identities), func(i Identity) bool { return !before(i.Sequence, i.AddedBy) })
		if len(older) == 1 {
			p.Link = &older[0]
		}
	}
	if used(methodTOTP) || used(methodPasskey) {
		list, err := a.factors.Factors(ctx, u.ID)
		if err != nil {
			return p, storeFailed(err)
		}
		var passkeys []string
		for _, f := range list.List {
			switch {
			case f.Enabled && f.Kind == store.FactorTOTP && used(methodTOTP):
				p.KeepFactors = append(p.KeepFactors, f.ID)
			case f.Enabled && f.Kind == store.FactorPasskey && used(methodPasskey) && before(f.Sequence, f.AddedBy):
				passkeys = append(passkeys, f.ID)
			}
		}
		if len(passkeys) == 1 { // a session does not name the passkey either
			p.KeepFactors = append(p.KeepFactors, passkeys...)
		}
	}
	return p, nil
}

func (k kit) CheckNoOwner(ctx context.Context) error {
	owned, err := k.a.store.EverOwned(ctx)
	if err == nil && owned {
		err = store.ErrOwned
	}
	if err != nil {
		return storeFailed(err)
	}
	return nil
}

// ownerLinkError returns the error for a link that is not valid: CodeRoleInUse if there has
// been an owner, for example because the link was used.
func (a *Auth) ownerLinkError(ctx context.Context, gone error) error {
	if err := (kit{a}).CheckNoOwner(ctx); err != nil {
		return err
	}
	return linkFailed(gone)
}

// handleFirstOwner is POST /admin/first-owner.
func (a *Auth) handleFirstOwner(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Token string `json:"token"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if p.Token == "" {
		return invalid("token", "is required")
	}
	if _, err := a.becomeFirstOwner(r.Context(), currentFrom(r.Context()).caller(), p.Token); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// handleFirstOwnerPage is GET /admin/first-owner. It changes nothing.
func (a *Auth) handleFirstOwnerPage(w http.ResponseWriter, r *http.Request) error {
	secret := r.URL.Query().Get("token")
	if _, _, err := a.peek(r.Context(), store.PurposeFirstOwner, secret); err != nil {
		return a.showProblemOn(w, r, err, page{OfLink: true, FromSender: true})
	}
	pg := page{Name: "first_owner", Token: secret}
	if within, err := a.within(r); err == nil && within.SessionID != "" {
		_, u, err := a.liveSession(r.Context(), within, CodeSessionEnded)
		pg.SignedIn = err == nil
		pg.Address = maskEmail(u.Email)
	}
	if !pg.SignedIn {
		pg.BackTo = a.linkItself("/admin"+firstOwnerPath, secret)
	}
	a.showPage(w, r, http.StatusOK, pg, "")
	return nil
}

// handleFirstOwnerForm handles the page's form for a user signed in by cookie.
func (a *Auth) handleFirstOwnerForm(w http.ResponseWriter, r *http.Request) error {
	form, err := a.readForm(r)
	if err != nil {
		return a.showProblemOn(w, r, err, page{OfLink: true, FromSender: true})
	}
	within, err := a.within(r)
	if err == nil && within.SessionID == "" {
		err = fail(CodeMissingToken, nil)
	}
	if err == nil {
		_, err = a.becomeFirstOwner(r.Context(), within, form.Get("token"))
	}
	if errors.Is(err, CodeInsufficientAAL) { // the link is still valid
		s, u, live := a.liveSession(r.Context(), within, CodeSessionEnded)
		if err = live; err == nil {
			err = a.interruptSession(r.Context(), u, s)
		}
	}
	if errors.Is(err, CodeInvalidToken) {
		return a.showProblemOn(w, r, err, page{OfLink: true, FromSender: true})
	}
	if err != nil {
		return a.showInterrupted(w, r, err, waitingSignIn{To: a.linkItself("/admin"+firstOwnerPath, form.Get("token"))})
	}
	return a.showDone(w, r, page{Done: "owner"}, "")
}
