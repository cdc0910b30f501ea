package auth

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// A notice to an account's proved address about something that a session did
// carries a link by which its reader stops that session, and what it has begun.

// stopLife is for how long the reader of such a notice may act on it.
const stopLife = 7 * 24 * time.Hour

// stopLink makes the link for a notice to u's address about what a session did,
// to be put into the notice; none if nobody has proved the address. It is stored in
// the name and on the conditions of what the notice tells of. It supersedes no
// other one, so that further requests cannot take the first one's link away.
func (a *Auth) stopLink(ctx context.Context, by Authority, u User, sessionID string, still ...UserAt) (string, error) {
	if u.Email == "" || !u.EmailVerified() {
		return "", nil
	}
	secret, t := a.newLink(PurposeStop, stopLife, linkData{Email: u.Email, SessionID: sessionID, ProvedAt: u.EmailVerifiedAt})
	t.UserID = u.ID
	if err := a.putToken(ctx, by, t, still...); err != nil {
		return "", err
	}
	return secret, nil
}

// notice is a notice to u's address with a link that stops a session, if there is
// room for it: a link that nobody is told need not be stored. Beyond the limit it
// is a decoy.
func (a *Auth) notice(ctx context.Context, by Authority, k Kind, u User, sessionID, newAddress string, still ...UserAt) (outgoing, error) {
	o := outgoing{Kind: k, To: u.Email, NewAddress: newAddress, ExpiresIn: stopLife, Proved: u.EmailVerified()}
	if !o.Proved {
		return o, nil // there is no such link, and the notice draws when it is enclosed
	}
	if u.Email == "" || !a.roomFor(ctx, o, u) {
		return outgoing{Kind: k}, nil
	}
	secret, err := a.stopLink(ctx, by, u, sessionID, still...)
	if err == nil && secret != "" {
		o.Link = a.linkURL(k, secret)
	}
	return o, err
}

// SecureAccountParams stop a session with the token of a notice.
type SecureAccountParams struct {
	Token string
}

// SecureAccount stops the session that a notice told of, with the token of the
// link in it: the session ends, every change of address or number and every
// sign-in that is under way is dropped, and a link to choose a new password goes
// to the address that the notice went to.
//
// If the account has moved to another address since, it moves back, and all
// sessions end. Of two addresses that left the account the one that was proved
// first outranks: whoever took the account cannot use the notice to an address of
// their own. Errors: CodeInvalidToken, CodeUserAlreadyExists if the address was
// taken at this very moment.
func (a *Auth) SecureAccount(ctx context.Context, p SecureAccountParams) error {
	_, err := a.secureAccount(ctx, p.Token)
	return err
}

// secureAccount is SecureAccount, and tells whether the reset was sent.
func (a *Auth) secureAccount(ctx context.Context, token string) (reset bool, err error) {
	d, u, err := a.redeem(ctx, PurposeStop, token, func(t Token, d linkData) (Redemption, error) {
		u, err := a.store.User(ctx, ByID(t.UserID))
		if err != nil {
			return Redemption{}, linkFailed(err)
		}
		moves, err := a.movesBack(ctx, u, d)
		if err != nil {
			return Redemption{}, err
		}
		patch := UserPatch{DropTokens: append(dyingWithPassword(), PurposeVerifyEmail)}
		if d.SessionID != "" { // none: the application asked
			patch.Revoke = &SessionFilter{ID: d.SessionID}
		}
		events := []OutcomeEvent{done(Event{Type: EventAccountSecured, UserID: u.ID})}
		if moves {
			patch.Email, patch.EmailVerifiedAt = &d.Email, &d.ProvedAt
			patch.Revoke, patch.DropTokens = &SessionFilter{}, dyingWithAddress()
			events = append(events, done(Event{Type: EventEmailChanged, UserID: u.ID}))
		}
		c := a.newChangeOf(ctx, byProof(), account{User: u, to: d.Email}, events...)
		c.IfUsers = []UserAt{credentialsStill(u)}
		return Redemption{Change: c, Effect: Effect{UserID: u.ID, Patch: &patch}}, nil
	})
	if err != nil {
		return false, err
	}
	if EmailKey(u.Email) != EmailKey(d.Email) || !a.Settings(ctx).Password.On() {
		return false, nil
	}
	allowed, err := a.takeAnswer(ctx, KindResetPassword, u.Email)
	if errors.Is(err, CodeRateLimited) {
		return false, nil // they know the way
	}
	if err == nil {
		err = a.sendAllowedLink(ctx, allowed, KindResetPassword, PurposeReset, resetLife, u.Email, linkData{}, false)
	}
	return err == nil, err
}

// movesBack tells whether the address that a notice went to becomes the account's
// again: it has another one by now, which was proved later, and nobody else has
// this one.
func (a *Auth) movesBack(ctx context.Context, u User, d linkData) (bool, error) {
	if EmailKey(u.Email) == EmailKey(d.Email) || u.EmailVerifiedAt.Before(d.ProvedAt) {
		return false, nil
	}
	_, err := a.store.User(ctx, ByEmail(d.Email))
	switch {
	case errors.Is(err, ErrNotFound):
		return true, nil
	case err != nil:
		return false, storeFailed(err)
	}
	return false, nil
}

// handleSecurePage is GET /secure-account; opening it never uses the link up.
func (a *Auth) handleSecurePage(w http.ResponseWriter, r *http.Request) error {
	if !fromProgram(r) {
		return a.askToSecure(w, r, r.URL.Query().Get("token"))
	}
	if _, _, err := a.peekMailed(r.Context(), PurposeStop, r.URL.Query().Get("token")); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// askToSecure shows what the button will do.
func (a *Auth) askToSecure(w http.ResponseWriter, r *http.Request, secret string) error {
	t, d, err := a.peekMailed(r.Context(), PurposeStop, secret)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	u, err := a.store.User(r.Context(), ByID(t.UserID))
	if err != nil {
		return a.showProblem(w, r, linkFailed(err))
	}
	moves, err := a.movesBack(r.Context(), u, d)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	a.showPage(w, r, http.StatusOK, page{Name: "secure_account", Token: secret, Address: maskEmail(d.Email), MovesBack: moves}, "")
	return nil
}

// handleSecureAccount is POST /secure-account.
func (a *Auth) handleSecureAccount(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Token string `json:"token"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if p.Token == "" {
		return invalid("token", "is required")
	}
	if err := a.SecureAccount(r.Context(), SecureAccountParams(p)); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// handleSecurePost is the page's button.
func (a *Auth) handleSecurePost(w http.ResponseWriter, r *http.Request) error {
	form, err := a.readForm(r)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	reset, err := a.secureAccount(r.Context(), form.Get("token"))
	if err != nil {
		return a.showProblem(w, r, err)
	}
	return a.showDone(w, r, page{Done: "secured", ResetSent: reset}, "")
}
