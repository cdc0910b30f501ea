package auth

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/authmount/auth/store"
)

// ConfirmParams authenticate the caller of a session again: with the password, with a
// code of the second factor, or with a passkey.
type ConfirmParams struct {
	Caller
	Password string
	TOTPCode string
	Passkey  json.RawMessage // an AuthenticationResponseJSON, see BeginPasskeyFactor
}

// Confirm records a new authentication on the caller's session. Operations that need
// a recent sign-in are then allowed for 15 minutes. It returns a new access token that
// contains it, for FreshAuth; the refresh token is the present one. A code or a passkey also
// raises the session to AAL2, as StepUp does, unless the passkey counts as one factor; a
// password does not change the level. Failures of passwords and codes count as at a login.
//
// Errors: CodeValidationFailed (unless exactly one of Password, TOTPCode and Passkey is set),
// CodeInvalidCredentials, CodeInvalidTOTPCode, CodeInvalidPasskey, CodePasskeyRemoved,
// CodeMFANotEnabled, CodeMethodDisabled (passwords or passkeys are switched off),
// CodeRateLimited, CodeOverloaded, CodeSessionEnded,
// CodeUserBanned; CodeMFARequired and CodeMFAEnrollmentRequired for a password in a session
// that lacks a required second factor, as at Refresh.
func (a *Auth) Confirm(ctx context.Context, p ConfirmParams) (*Tokens, error) {
	if boolCount(p.Password != "", p.TOTPCode != "", hasValue(p.Passkey)) != 1 {
		return nil, invalid("password", "or totp_code or passkey is required, one of them")
	}
	if hasValue(p.Passkey) {
		return a.continueSession(ctx, p.Caller, factorCode{passkey: ownAssertion(p.Passkey, p.Caller)}, nil, EventSessionConfirmed)
	}
	if p.TOTPCode != "" {
		return a.continueSession(ctx, p.Caller, factorCode{totp: p.TOTPCode}, nil, EventSessionConfirmed)
	}
	s, u, err := a.confirmByPassword(ctx, p)
	if err != nil {
		return nil, err
	}
	return a.mint(ctx, u, s)
}

// confirmByPassword records the authentication only if the password is still the one
// that was checked.
func (a *Auth) confirmByPassword(ctx context.Context, p ConfirmParams) (s Session, u User, err error) {
	if !a.Settings(ctx).Password.On() {
		return s, u, fail(CodeMethodDisabled, nil)
	}
	session, _, err := a.liveSession(ctx, p.Caller, CodeSessionEnded)
	if err != nil {
		return s, u, err
	}
	of, err := a.store.Credentials(ctx, onThisDevice(ctx, store.ByID(p.UserID)))
	if err != nil {
		return s, u, goneOr(CodeSessionEnded, err)
	}
	if _, err := a.checkPassword(ctx, passwordAttempt{credentials: of, password: p.Password}); err != nil {
		return s, u, err
	}
	if _, err := a.rolesIn(ctx, of.User, session); err != nil { // before the effect: mint would refuse, too
		return s, u, err
	}
	c := a.newChange(ctx, p.authority(), done(Event{Type: EventSessionConfirmed, UserID: p.UserID, SessionID: p.SessionID, Method: methodPassword}))
	c.IfUsers = []UserAt{{ID: p.UserID, PasswordHash: &of.PasswordHash}}
	s, u, err = a.store.AddAuthentication(ctx, store.AddAuthentication{Change: c, SessionID: p.SessionID, Proof: AMR{Method: methodPassword, Timestamp: c.Now.Unix()}})
	if errors.Is(err, store.ErrStale) { // the password was changed meanwhile
		return s, u, fail(CodeInvalidCredentials, err)
	}
	if err != nil {
		return s, u, goneOr(CodeSessionEnded, err)
	}
	a.committed(ctx, c, store.OutcomeDone, nil)
	return s, u, nil
}

func (a *Auth) handleConfirm(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Password string          `json:"password"`
		TOTPCode string          `json:"totp_code"`
		Passkey  json.RawMessage `json:"passkey"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	tokens, err := a.Confirm(r.Context(), ConfirmParams{currentFrom(r.Context()).caller(), p.Password, p.TOTPCode, p.Passkey})
	if err != nil {
		return err
	}
	return a.writeTokens(w, r, tokens)
}

// LogValue keeps the password and the code out of the log.
func (p ConfirmParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user_id", p.UserID), slog.String("proof", redacted))
}

// Changes of credentials need a recent authentication. The operations themselves
// check it, so that the rule is the same for endpoints and Go callers. It does not
// apply to the application (ByApplication), which takes the responsibility.

// acting returns the user and live session of a caller. The session is zero for the
// application.
func (a *Auth) acting(ctx context.Context, by Caller) (current, error) {
	if by.application {
		u, err := a.store.User(ctx, store.ByID(by.UserID))
		if err != nil {
			err = goneOr(CodeSessionEnded, err)
		}
		return current{user: u}, err
	}
	s, u, err := a.liveSession(ctx, by, CodeSessionEnded)
	return current{session: s, user: u}, err
}

// actingLately is acting for a caller with a recent authentication. Errors:
// CodeReauthNeeded and those of acting.
func (a *Auth) actingLately(ctx context.Context, by Caller) (current, error) {
	me, err := a.acting(ctx, by)
	if err == nil && !by.application && !a.recentlyAuthenticated(me.session) {
		err = fail(CodeReauthNeeded, nil)
	}
	return me, err
}

// requireRecentFactor checks that the session used a second factor recently. Errors:
// CodeInsufficientAAL, CodeReauthNeeded.
func (a *Auth) requireRecentFactor(by Caller, s Session) error {
	switch {
	case by.application || a.freshAAL2(s):
		return nil
	case s.AAL != store.LevelAAL2:
		return fail(CodeInsufficientAAL, nil)
	}
	return fail(CodeReauthNeeded, nil)
}

// recentlyAuthenticated reports whether the session has a recent authentication.
func (a *Auth) recentlyAuthenticated(s Session) bool {
	var newest int64
	for _, m := range s.AMR {
		newest = max(newest, m.Timestamp)
	}
	return a.now().Sub(time.Unix(newest, 0)) < freshFor
}

// freshAAL2 reports whether the session used a second factor recently.
func (a *Auth) freshAAL2(s Session) bool {
	for _, m := range s.AMR {
		if isFactor(m) && a.now().Sub(time.Unix(m.Timestamp, 0)) < freshFor {
			return s.AAL == store.LevelAAL2
		}
	}
	return false
}
