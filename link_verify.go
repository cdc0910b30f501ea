package auth

import (
	"context"
	"errors"
	"net/http"
	"slices"
)

// StartEmailVerification mails the link that confirms a user's address. An
// address that is confirmed already, or absent, sends nothing.
func (a *Auth) StartEmailVerification(ctx context.Context, u User) error {
	if u.Email == "" || u.EmailVerified {
		return nil
	}
	if err := a.takeSend(ctx, KindVerifyEmail, u.Email); err != nil {
		return err
	}
	return a.sendVerification(ctx, KindVerifyEmail, u, u.Email)
}

// resendVerification is for somebody who proved the password but not yet the
// address. Asking too often is no error here: the answer is about the address.
func (a *Auth) resendVerification(ctx context.Context, u User) error {
	if u.Email == "" {
		return a.resendFirstCode(ctx, u)
	}
	if err := a.StartEmailVerification(ctx, u); err != nil && !errors.Is(err, CodeRateLimited) {
		return err
	}
	return nil
}

// resendFirstCode is resendVerification for accounts with a number.
func (a *Auth) resendFirstCode(ctx context.Context, u User) error {
	if a.phoneOff() || u.Phone == "" {
		return nil
	}
	if err := a.takeSMS(ctx, u.Phone); errors.Is(err, CodeRateLimited) {
		return nil
	} else if err != nil {
		return err
	}
	t, message := a.firstProof(u, "")
	if err := a.store.PutToken(ctx, t); err != nil {
		return linkFailed(err)
	}
	a.sendMail(ctx, message, u)
	return nil
}

// sendVerification mails a link that makes address the user's confirmed one.
func (a *Auth) sendVerification(ctx context.Context, k Kind, u User, address string) error {
	secret, link := a.newLink(PurposeVerifyEmail, verifyLife, linkData{Email: address})
	link.UserID, link.Subject = u.ID, u.ID
	if err := a.store.PutToken(ctx, link); err != nil {
		return linkFailed(err)
	}
	a.sendMail(ctx, outgoing{Kind: k, To: address, Name: u.FullName, Link: a.linkURL(k, secret), ExpiresIn: verifyLife, NewAddress: address}, u)
	return nil
}

// VerifyEmail confirms the address that a link was sent to, the user's present
// one or the new one they asked for; userID, if not empty, has to be the link's
// user. It signs nobody in. Links sent to the old address die with it, and the
// old address gets a notice. Errors: CodeInvalidToken, CodeUserAlreadyExists if
// the new address was taken meanwhile.
func (a *Auth) VerifyEmail(ctx context.Context, token, userID string) (User, error) {
	_, u, err := a.verifyEmail(ctx, token, userID)
	return u, err
}

func (a *Auth) verifyEmail(ctx context.Context, token, userID string) (linkData, User, error) {
	var before User
	d, u, err := a.redeem(ctx, PurposeVerifyEmail, token, func(t Token, d linkData) (Redemption, error) {
		if userID != "" && t.UserID != userID {
			return Redemption{}, fail(CodeInvalidToken, errors.New("link of another user"))
		}
		var err error
		if before, err = a.store.User(ctx, ByID(t.UserID)); err != nil {
			return Redemption{}, linkFailed(err)
		}
		yes := true
		patch := UserPatch{IfRevision: &before.Revision, EmailVerified: &yes}
		if EmailKey(before.Email) != EmailKey(d.Email) {
			patch.Email = &d.Email
			patch.DropTokens = pendingSignIns
		}
		return Redemption{UserID: t.UserID, Patch: &patch}, nil
	})
	if err != nil {
		return d, u, err
	}
	if EmailKey(before.Email) != EmailKey(u.Email) {
		if before.Email != "" {
			a.sendMail(ctx, outgoing{Kind: KindEmailChanged, To: before.Email, Name: u.FullName, NewAddress: u.Email}, u)
		}
		a.emit(ctx, Event{Type: EventEmailChanged, UserID: u.ID})
	} else if !before.EmailVerified {
		a.emit(ctx, Event{Type: EventEmailVerified, UserID: u.ID})
	}
	return d, u, nil
}

// handleStartVerifyEmail is POST /verify-email with a bearer token: it starts,
// or completes with a token.
func (a *Auth) handleStartVerifyEmail(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Token string `json:"token"`
	}
	if err := decodeOptional(r, &p); err != nil {
		return err
	}
	me := currentFrom(r.Context())
	var err error
	if p.Token != "" {
		_, err = a.VerifyEmail(r.Context(), p.Token, me.user.ID)
	} else {
		err = a.StartEmailVerification(r.Context(), me.user)
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// ResetPassword sets a new password with the token of a reset link. Every
// session of the user ends, other links die, and the address counts as
// verified. It signs nobody in. Errors: CodeInvalidToken, CodeWeakPassword (the
// link stays good).
func (a *Auth) ResetPassword(ctx context.Context, token, newPassword string) error {
	_, err := a.resetPassword(ctx, token, newPassword)
	return err
}

func (a *Auth) resetPassword(ctx context.Context, token, newPassword string) (linkData, error) {
	if a.cfg.settings.PasswordDisabled {
		return linkData{}, fail(CodeMethodDisabled, nil)
	}
	if newPassword == "" {
		return linkData{}, invalid("new_password", "is required")
	}
	t, d, err := a.peek(ctx, PurposeReset, token)
	if err != nil {
		return d, err
	}
	if t.UserID == "" || d.Email == "" {
		return d, fail(CodeInvalidToken, errors.New("no such account"))
	}
	u, err := a.store.User(ctx, ByID(t.UserID))
	if err != nil {
		return d, linkFailed(err)
	}
	if err := a.checkPassword(ctx, newPassword, u.Email, u.FullName); err != nil {
		return d, err
	}
	hash, err := a.passwords.hash(ctx, newPassword)
	if err != nil {
		return d, hashFailed(err)
	}
	d, u, err = a.redeem(ctx, PurposeReset, token, func(t Token, d linkData) (Redemption, error) {
		u, err := a.store.User(ctx, ByID(t.UserID))
		if err != nil {
			return Redemption{}, linkFailed(err)
		}
		if EmailKey(u.Email) != EmailKey(d.Email) {
			return Redemption{}, fail(CodeInvalidToken, errors.New("sent to an address the account no longer has"))
		}
		yes := true
		patch := &UserPatch{
			IfRevision: &u.Revision, PasswordHash: &hash, EmailVerified: &yes, Revoke: &SessionFilter{},
			DropTokens: slices.Concat(pendingSignIns, pendingChanges),
		}
		if !u.EmailVerified {
			patch.RemoveFactor = !u.MFAEnabled
			dropSideDoors(patch)
		}
		return Redemption{UserID: t.UserID, Patch: patch}, nil
	})
	if err != nil {
		return d, err
	}
	a.forgiveLogins(ctx, u.ID)
	a.sendMail(ctx, outgoing{Kind: KindPasswordChanged, To: u.Email, Name: u.FullName}, u)
	a.emit(ctx, Event{Type: EventPasswordReset, UserID: u.ID})
	return d, nil
}

// forgiveLogins empties the count of failed logins: whoever reset the password
// is the owner, and must not stay locked out by somebody else's guesses. If it
// cannot be done they wait a little, which is no reason to fail the reset.
func (a *Auth) forgiveLogins(ctx context.Context, account string) {
	limit := a.cfg.limits.LoginPerAccount
	if _, err := a.take(ctx, a.draw(limit, "login", account, -limit.Burst)); err != nil {
		a.cfg.log.WarnContext(ctx, "auth: failed logins not forgiven", "user_id", account, "error", err)
	}
}

func (a *Auth) handleResetPassword(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Token       string `json:"token"`
		NewPassword string `json:"new_password"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if p.Token == "" {
		return invalid("token", "is required")
	}
	if err := a.ResetPassword(r.Context(), p.Token, p.NewPassword); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}
