package auth

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/authmount/auth/store"
)

// ChangePasswordParams are the parameters of ChangePassword.
type ChangePasswordParams struct {
	Caller         // its session and its known device are kept; all others are revoked
	Current string // may be empty if the user has no password
	New     string
}

// ChangePassword sets a new password after a check of the current one. A first password
// needs a recent authentication instead. Errors: CodeInvalidCredentials (the current
// password is wrong; counts as a failed login), CodeWeakPassword, CodeSamePassword,
// CodeRateLimited (also by PasswordChangesPerUser), CodeValidationFailed,
// CodeReauthNeeded, CodeSessionEnded, CodeUserBanned, CodeMethodDisabled,
// CodeOverloaded, those of Hooks.BeforePasswordChange.
func (a *Auth) ChangePassword(ctx context.Context, p ChangePasswordParams) error {
	if !a.Settings(ctx).Password.On() {
		return fail(CodeMethodDisabled, nil)
	}
	if p.New == "" {
		return invalid("new_password", "is required")
	}
	if err := p.notActing(); err != nil {
		return err
	}
	c, err := a.store.Credentials(ctx, onThisDevice(ctx, store.ByID(p.UserID)))
	if err != nil {
		return goneOr(CodeSessionEnded, err)
	}
	if c.PasswordHash == "" || p.Current == "" {
		_, err = a.actingLately(ctx, p.Caller)
	}
	if err == nil && c.PasswordHash != "" {
		err = a.checkCurrentPassword(ctx, c, p)
	}
	if err != nil {
		return err
	}
	chosen, err := a.choosePassword(ctx, PasswordChange{c.User, passwordByChange}, newPassword{text: p.New, device: deviceOf(ctx, c)}, func() error { return a.takePasswordChange(ctx, p.Caller) })
	if err != nil {
		return err
	}
	ch := a.newChangeOf(ctx, p.authority(), account{User: c.User}, done(Event{Type: EventPasswordChanged, UserID: p.UserID}))
	ch.IfUsers = []UserAt{{ID: p.UserID, PasswordHash: &c.PasswordHash}}
	patch := store.UserPatch{Revoke: &store.SessionFilter{Except: p.SessionID}, DropTokens: purposesOfPassword(), DropDevices: true}
	setPassword(&patch, chosen)
	_, err = a.update(ctx, ch, p.UserID, patch)
	if errors.Is(err, store.ErrStale) { // changed meanwhile: the check is out of date
		return fail(CodeInvalidCredentials, err)
	}
	return err
}

// takePasswordChange counts a change that has passed all other checks. Each change
// sends a notice and revokes sessions. Without the limit, a thief with the password
// could repeat that all day. A reset by mail has no such limit.
func (a *Auth) takePasswordChange(ctx context.Context, by Caller) error {
	if by.application {
		return nil // the application is responsible
	}
	return a.take(ctx, a.draw(a.cfg.limits.PasswordChangesPerUser, "password-change", by.UserID, 1))
}

// checkCurrentPassword checks the current password.
func (a *Auth) checkCurrentPassword(ctx context.Context, c store.Credentials, p ChangePasswordParams) error {
	if p.Current == "" {
		return invalid("current_password", "is required")
	}
	if _, err := a.checkPassword(ctx, passwordAttempt{credentials: c, password: p.Current}); err != nil {
		return err
	}
	if p.Current == p.New {
		return fail(CodeSamePassword, nil)
	}
	return nil
}

func (a *Auth) handleChangePassword(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		CurrentPassword string `json:"current_password"`
		NewPassword     string `json:"new_password"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	err := a.ChangePassword(r.Context(), ChangePasswordParams{Caller: currentFrom(r.Context()).caller(), Current: p.CurrentPassword, New: p.NewPassword})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// LogValue keeps the passwords out of the log.
func (p ChangePasswordParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user_id", p.UserID), slog.String("passwords", redacted))
}

// chosenPassword is a valid new password of an account. Only choosePassword creates
// one, and only setPassword adds one to a patch. No endpoint can therefore set a
// password without the policy and the application's hooks.
type chosenPassword struct{ hash string }

// newPassword is a password as the user typed it, or the hash of a password that
// another system has checked.
type newPassword struct {
	text, hash string
	device     string // of deviceOf, if the account's credentials were read
}

// choosePassword checks a new password of an existing account, calls the application's
// hooks, and hashes the password. last, if set, is called after all other checks.
// Errors: CodeWeakPassword, CodeValidationFailed, CodeOverloaded, those of hooks and of
// last.
func (a *Auth) choosePassword(ctx context.Context, p PasswordChange, password newPassword, last func() error) (chosenPassword, error) {
	check := func() error { return a.checkNewPassword(ctx, password.text, p.User.Email, p.User.FullName) }
	if password.hash != "" {
		check = func() error { return checkHash(password.hash) }
	}
	if err := check(); err != nil {
		return chosenPassword{}, err
	}
	if err := a.beforePasswordChange(ctx, p); err != nil {
		return chosenPassword{}, err
	}
	if last != nil {
		if err := last(); err != nil {
			return chosenPassword{}, err
		}
	}
	if password.hash != "" {
		return chosenPassword{password.hash}, nil
	}
	hash, err := a.passwords.hash(ctx, hashOwner{p.User.ID, password.device}, password.text)
	if err != nil {
		return chosenPassword{}, hashFailed(err)
	}
	return chosenPassword{hash}, nil
}

// setPassword adds a password to a patch.
func setPassword(p *store.UserPatch, c chosenPassword) { p.PasswordHash = &c.hash }
