package auth

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/authmount/auth/store"
)

// ConfirmParams are a fresh proof for the session of the caller: the password, or
// a code of the second factor.
type ConfirmParams struct {
	Caller
	Password string
	TOTPCode string
}

// Confirm records on the caller's session that somebody has just proved who they
// are, so that what asks for a recent sign-in is open for 15 minutes. The access
// token of before does not tell of it: the next refresh does. A code also raises
// the session to AAL2, as StepUp does; a password leaves the level as it is.
// Wrong ones count as at any other door.
//
// Errors: CodeValidationFailed unless it is given one of the two,
// CodeInvalidCredentials, CodeInvalidTOTPCode, CodeMFANotEnabled,
// CodeMethodDisabled (passwords are switched off), CodeRateLimited, CodeOverloaded, CodeSessionEnded,
// CodeUserBanned.
func (a *Auth) Confirm(ctx context.Context, p ConfirmParams) error {
	if (p.Password == "") == (p.TOTPCode == "") {
		return invalid("password", "or totp_code is required, one of them")
	}
	if p.TOTPCode != "" {
		_, err := a.raise(ctx, p.Caller, factorCode{totp: p.TOTPCode}, EventSessionConfirmed)
		return err
	}
	return a.confirmByPassword(ctx, p)
}

// confirmByPassword adds the proof only while the password is the one that was
// judged.
func (a *Auth) confirmByPassword(ctx context.Context, p ConfirmParams) error {
	if !a.Settings(ctx).Password.On() {
		return fail(CodeMethodDisabled, nil)
	}
	if _, _, err := a.liveSession(ctx, p.Caller, CodeSessionEnded); err != nil {
		return err
	}
	of, err := a.store.Credentials(ctx, onThisDevice(ctx, store.ByID(p.UserID)))
	if err != nil {
		return goneOr(CodeSessionEnded, err)
	}
	if _, err := a.judgePassword(ctx, passwordGuess{of: of, password: p.Password}); err != nil {
		return err
	}
	c := a.newChange(ctx, p.authority(), done(Event{Type: EventSessionConfirmed, UserID: p.UserID, SessionID: p.SessionID, Method: methodPassword}))
	c.IfUsers = []UserAt{{ID: p.UserID, PasswordHash: &of.PasswordHash}}
	_, _, err = a.store.AddProof(ctx, store.AddProof{Change: c, SessionID: p.SessionID, Proof: AMR{Method: methodPassword, Timestamp: c.Now.Unix()}})
	if errors.Is(err, store.ErrStale) { // changed meanwhile: the proof is out of date
		return fail(CodeInvalidCredentials, err)
	}
	if err != nil {
		return goneOr(CodeSessionEnded, err)
	}
	a.committed(ctx, c, store.OutcomeDone, nil)
	return nil
}

func (a *Auth) handleConfirm(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Password string `json:"password"`
		TOTPCode string `json:"totp_code"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if err := a.Confirm(r.Context(), ConfirmParams{currentFrom(r.Context()).caller(), p.Password, p.TOTPCode}); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// LogValue keeps the proof out of the log.
func (p ConfirmParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user_id", p.UserID), slog.String("proof", redacted))
}

// What somebody has to have shown lately before they may change how an account is
// signed in to is asked for here, by the operations themselves: endpoints and
// callers from Go are held to the same. The application answers for what it does
// (ByApplication).

// acting reads in whose name a call acts: the user and the live session; the zero
// session for the application.
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

// actingLately is acting by somebody who proved who they are lately:
// CodeReauthNeeded.
func (a *Auth) actingLately(ctx context.Context, by Caller) (current, error) {
	me, err := a.acting(ctx, by)
	if err == nil && !by.application && !a.fresh(me.session) {
		err = fail(CodeReauthNeeded, nil)
	}
	return me, err
}

// showedFactor asks for a second factor that was shown on the session lately.
// Errors: CodeInsufficientAAL, CodeReauthNeeded.
func (a *Auth) showedFactor(by Caller, s Session) error {
	switch {
	case by.application || a.freshAAL2(s):
		return nil
	case s.AAL != store.LevelAAL2:
		return fail(CodeInsufficientAAL, nil)
	}
	return fail(CodeReauthNeeded, nil)
}

// fresh tells whether somebody proved who they are on this session lately.
func (a *Auth) fresh(s Session) bool {
	var newest int64
	for _, m := range s.AMR {
		newest = max(newest, m.Timestamp)
	}
	return a.now().Sub(time.Unix(newest, 0)) < freshFor
}

// freshAAL2 tells whether the second factor was shown on this session lately.
func (a *Auth) freshAAL2(s Session) bool {
	for _, m := range s.AMR {
		if (m.Method == methodTOTP || m.Method == methodRecovery) && a.now().Sub(time.Unix(m.Timestamp, 0)) < freshFor {
			return s.AAL == store.LevelAAL2
		}
	}
	return false
}
