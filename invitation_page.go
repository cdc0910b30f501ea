package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// providerLink is a page's link to a provider.
type providerLink struct{ Name, URL string }

// openedInvitation is an invitation for display.
type openedInvitation struct {
	linkData
	token    string
	expires  time.Time
	account  *User // the account with the address verified, or signed in; nil: none
	signedIn bool  // the request is signed in to that account
	clean    bool  // that account starts clean
	roles    []string
}

// openInvitation reads an invitation. Errors: CodeInvalidToken.
func (a *Auth) openInvitation(r *http.Request, secret string) (openedInvitation, error) {
	t, d, err := a.peekMailed(r.Context(), store.PurposeInvitation, secret)
	o := openedInvitation{linkData: d, token: secret, expires: t.ExpiresAt}
	if err == nil {
		_, err = a.requireInviter(r.Context(), d)
	}
	if err != nil {
		return o, err
	}
	o.roles = d.Invitation.Roles
	u, err := a.invitedAccount(r.Context(), d)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return o, nil
	case err != nil:
		return o, err
	}
	clean := cleanStart{invitation: d, user: u}
	o.clean, err = a.startsClean(r.Context(), &clean)
	if err == nil && o.clean {
		o.roles, err = a.askedRoles(r.Context(), o.roles, u)
	}
	o.signedIn = !o.clean && a.signedInAs(r, u)
	if o.signedIn || o.clean || u.EmailVerified() {
		o.account = &u
	}
	return o, err
}

// askedRoles returns the roles of an invitation and those that the account has and that take
// effect with it.
func (a *Auth) askedRoles(ctx context.Context, given []string, u User) ([]string, error) {
	known, err := a.currentRoles(ctx)
	if err != nil {
		return nil, err
	}
	waiting := slices.DeleteFunc(slices.Clone(u.Roles), func(role string) bool { return len(a.holdsOperator(known, []string{role})) == 0 })
	return rolesWith(given, waiting), nil
}

// handleInvitation is GET /invitations/accept. It never accepts the invitation.
func (a *Auth) handleInvitation(w http.ResponseWriter, r *http.Request) error {
	secret := r.URL.Query().Get("token")
	if !fromProgram(r) {
		return a.showInvitationPage(w, r, http.StatusOK, secret, page{})
	}
	o, err := a.openInvitation(r, secret)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"email": o.Email, "phone": o.Invitation.Phone, "account_exists": o.account != nil, "expires_at": wireTime(o.expires)})
}

// showInvitationPage shows the page of an invitation.
func (a *Auth) showInvitationPage(w http.ResponseWriter, r *http.Request, status int, secret string, pg page) error {
	o, err := a.openInvitation(r, secret)
	if err != nil {
		return a.showProblemOn(w, r, err, page{OfLink: true, FromSender: true})
	}
	pg.Locale = o.Invitation.Locale
	pg.Name, pg.Token, pg.Address, pg.MinLength = "accept_invitation", secret, maskAddress(cmp.Or(o.Email, o.Invitation.Phone)), a.Settings(r.Context()).PasswordMinLength
	pg.Username = cmp.Or(o.Email, o.Invitation.Phone)
	pg.SignedIn, pg.SignInTo = o.signedIn, o.account != nil && !o.signedIn && !o.clean
	pg.StartsClean, pg.AsksFactor = o.clean, o.clean && cleanStart{user: *o.account}.asksFactor()
	pg.OffersFactor = o.clean && o.account.MFAEnabled && !pg.AsksFactor
	if pg.AsksFactor || pg.OffersFactor {
		kinds, err := a.factorsFor(r.Context(), *o.account, credentialRef{})
		if err != nil {
			return a.showProblemOn(w, r, err, page{OfLink: true, FromSender: true})
		}
		pg.NoApp = !slices.Contains(kinds, methodTOTP)
		if slices.Contains(kinds, methodPasskey) {
			pg.Script = a.pageScriptAt()
		}
	}
	pg.Roles = outbox.SafeRoles(o.roles)
	pg.NeedsFactor = a.mfaRequired(r.Context(), User{Email: o.Email, Phone: o.Invitation.Phone, Roles: o.roles})
	if pg.SignInTo {
		pg.BackTo = a.linkItself(linkPaths(KindInvitation), secret)
	}
	pg.NoPassword = !a.Settings(r.Context()).Password.On()
	if !o.signedIn && o.Email != "" {
		pg.Providers = a.invitedProviders(r, o)
	}
	a.showPage(w, r, status, pg, o.RedirectTo)
	return nil
}

// invitedProviders returns the providers with which the invitation can be accepted. It
// returns none without cookies, because the page has no code challenge for a redirect.
func (a *Auth) invitedProviders(r *http.Request, o openedInvitation) []providerLink {
	if !a.Settings(r.Context()).OAuth.On() || a.cfg.cookies == nil {
		return nil
	}
	var list []providerLink
	for name, p := range a.providers {
		q := url.Values{"invitation": {o.token}}
		if o.RedirectTo != "" {
			q.Set("redirect_to", o.RedirectTo)
		}
		list = append(list, providerLink{p.Name, a.publicURL().String() + "/oauth/" + name + "?" + q.Encode()})
	}
	slices.SortFunc(list, func(a, b providerLink) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// handleAcceptInvitation is POST /invitations/accept.
func (a *Auth) handleAcceptInvitation(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Token    string          `json:"token"`
		Password string          `json:"password"`
		FullName string          `json:"full_name"`
		TOTPCode string          `json:"totp_code"`
		Passkey  json.RawMessage `json:"passkey"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if p.Token == "" {
		return invalid("token", "is required")
	}
	within, err := a.within(r)
	if err != nil {
		return err
	}
	tokens, err := a.AcceptInvitation(r.Context(), AcceptInvitationParams{Token: p.Token, Password: p.Password, FullName: p.FullName, TOTPCode: p.TOTPCode, Passkey: p.Passkey, Within: within})
	if err != nil {
		return err
	}
	return a.writeTokens(w, r, tokens)
}

// handleInvitationForm handles the page's form. In cookie mode it signs the browser in.
// If the password is refused, it shows the form again with the reasons.
func (a *Auth) handleInvitationForm(w http.ResponseWriter, r *http.Request) error {
	form, err := a.readForm(r)
	if err != nil {
		return a.showProblemOn(w, r, err, page{OfLink: true, FromSender: true})
	}
	r = a.onPage(r)
	within, err := a.within(r)
	if err != nil {
		return a.showProblemOn(w, r, err, page{OfLink: true, FromSender: true})
	}
	if form.Has("options") {
		begun, err := a.acceptOptions(r.Context(), form)
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, begun)
	}
	in, err := a.acceptOnPage(r.Context(), form, within)
	var e *Error
	if errors.As(err, &e) && slices.Contains([]Code{CodeWeakPassword, CodeValidationFailed, CodeAccountExists, CodeInvalidTOTPCode, CodeInvalidPasskey, CodePasskeyRemoved}, e.Code) {
		return a.showInvitationPage(w, r, e.Status, form.Get("token"), page{Failure: e})
	}
	if errors.Is(err, CodeInvalidToken) {
		return a.showProblemOn(w, r, err, page{OfLink: true, FromSender: true})
	}
	if err != nil { // perhaps of the session in which it is accepted: the invitation is still valid
		return a.showInterrupted(w, r, err, waitingSignIn{To: a.linkItself(linkPaths(KindInvitation), form.Get("token"))})
	}
	done := page{Done: "accepted", TakenOver: in.takenOver, Locale: in.Invitation.Locale}
	if a.cfg.cookies != nil {
		tokens, err := a.signInInvited(r.Context(), in)
		if err == nil && in.within.SessionID != "" {
			err = a.interruptWithheld(r.Context(), in.within)
		}
		if err != nil {
			return a.showInterrupted(w, r, err, waitingSignIn{To: in.RedirectTo, TakenOver: in.takenOver})
		}
		a.setCookies(w, r, tokens, nil)
		done.Done = doneSignedIn
		if in.needsFactor && in.within.SessionID == "" && !in.user.MFAEnabled && a.totpOn(r.Context()) {
			s, u, err := a.liveSession(r.Context(), Caller{UserID: in.user.ID, SessionID: tokens.SessionID}, CodeSessionEnded)
			if err == nil {
				err = a.interruptSession(r.Context(), u, s)
			}
			return a.showInterrupted(w, r, err, waitingSignIn{To: in.RedirectTo, TakenOver: in.takenOver})
		}
	}
	if len(in.codes) > 0 {
		a.showPage(w, r, http.StatusOK, page{Name: "recovery_codes", SignedIn: done.Done == doneSignedIn, RecoveryCodes: in.codes, Next: template.URL(in.RedirectTo)}, "") //nolint:gosec // on the list of redirects
		return nil
	}
	return a.showDone(w, r, done, in.RedirectTo)
}

func (a *Auth) acceptOptions(ctx context.Context, form url.Values) (*PasskeyRequest, error) {
	return a.BeginPasskeyFactor(ctx, BeginPasskeyFactorParams{InvitationToken: form.Get("token")})
}

// acceptOnPage is acceptInvitation with the page's form, which has a code or the answer of
// the script.
func (a *Auth) acceptOnPage(ctx context.Context, form url.Values, within Caller) (acceptedInvitation, error) {
	p := AcceptInvitationParams{Token: form.Get("token"), Password: form.Get("password"), TOTPCode: form.Get("totp_code"), Within: within}
	if form.Get("credential") != "" || form.Get("failure") != "" {
		var err error
		if p.Passkey, err = postedCredential(form, func() error { _, err := a.acceptOptions(ctx, form); return err }); err != nil {
			return acceptedInvitation{}, err
		}
	}
	return a.acceptInvitation(ctx, p)
}
