package auth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/authmount/auth/store"
)

// DisableTOTPParams are the parameters of DisableTOTP. A code is required unless the
// session has used a second factor within the last 15 minutes.
type DisableTOTPParams struct {
	Caller
	TOTPCode     string
	RecoveryCode string
}

// DisableTOTP removes the authenticator app, and the recovery codes unless a passkey is a
// second factor, too. Errors:
// CodeMFANotEnabled, CodeMFAEnforced (the user must have a second factor; only the
// application may remove it), CodeReauthNeeded, CodeInvalidTOTPCode, CodeRateLimited,
// CodeSessionEnded, CodeUserBanned.
func (a *Auth) DisableTOTP(ctx context.Context, p DisableTOTPParams) error {
	shown := false
	_, err := change(func() (struct{}, error) { return struct{}{}, a.disableTOTP(ctx, p, &shown) })
	return err
}

// disableTOTP is DisableTOTP. shown: an earlier attempt used the code.
func (a *Auth) disableTOTP(ctx context.Context, p DisableTOTPParams, shown *bool) error {
	if a.factors == nil {
		return fail(CodeMFANotEnabled, lacks[store.FactorStore]())
	}
	me, err := a.acting(ctx, p.Caller)
	if err != nil {
		return err
	}
	u := me.user
	if !u.MFAEnabled {
		return fail(CodeMFANotEnabled, nil)
	}
	list, err := a.factors.Factors(ctx, u.ID)
	if err != nil {
		return storeFailed(err)
	}
	i := slices.IndexFunc(list.List, func(f Factor) bool { return f.Enabled && f.Kind == store.FactorTOTP })
	if i < 0 {
		return fail(CodeMFANotEnabled, nil)
	}
	app, last := list.List[i].ID, !otherRequired(list.List, list.List[i].ID)
	removal := removedEvents(u, "", list.List[i], last)
	switch {
	case !p.application && last && a.mfaRequired(ctx, u):
		return fail(CodeMFAEnforced, nil)
	case p.RecoveryCode != "": // consumed in the same step
		_, err = a.checkFactor(ctx, factorUse{by: p.authority(), user: u, code: factorCode{recovery: p.RecoveryCode, removes: &factorRemoval{app, removal}}})
		return err
	case *shown:
	case p.TOTPCode != "":
		_, err = a.checkFactor(ctx, factorUse{by: p.authority(), user: u, code: factorCode{totp: p.TOTPCode}})
		*shown = err == nil
	case a.requireRecentFactor(p.Caller, me.session) != nil:
		err = fail(CodeReauthNeeded, nil) // a code is enough
	}
	if err != nil {
		return err
	}
	c := a.newChangeOf(ctx, p.authority(), account{User: u}, removal...)
	c.IfUsers = []UserAt{ifCredentialsUnchanged(u)} // another factor may be removed meanwhile
	_, err = a.factors.RemoveFactor(ctx, store.RemoveFactor{Change: c, UserID: p.UserID, FactorID: app})
	switch {
	case errors.Is(err, store.ErrStale):
		return err
	case err != nil:
		return goneOr(CodeMFANotEnabled, err)
	}
	a.committed(ctx, c, store.OutcomeDone, nil)
	return nil
}

// VerifyMFAParams are the parameters of VerifyMFA: the token of CodeMFARequired and one
// of the codes.
type VerifyMFAParams struct {
	MFAToken     string
	TOTPCode     string
	RecoveryCode string
	Passkey      json.RawMessage // instead of a code: an AuthenticationResponseJSON, see BeginPasskeyFactor

	// TrustDevice omits the second factor on this device for MFAOptions.TrustDevices.
	// It is ignored unless that option is set, TOTPCode or Passkey is right, and the client
	// identifies its device (Client.Device), and for the token of a refresh.
	TrustDevice bool
}

// VerifyMFA completes a sign-in that returned CodeMFARequired, or continues the session
// of such a refresh at AAL2. A sign-in at a provider that accepts an invitation
// (StartOAuthParams.Invitation) takes only TOTPCode, and accepts the invitation here.
// Errors: CodeInvalidToken, CodeInvalidTOTPCode, CodeRateLimited (five attempts for each
// token), CodeSessionEnded (of a refresh), CodeUserBanned.
func (a *Auth) VerifyMFA(ctx context.Context, p VerifyMFAParams) (*Tokens, error) {
	t, d, err := a.peek(ctx, store.PurposeMFA, p.MFAToken)
	if err != nil {
		return nil, err
	}
	if d.Accepts != nil {
		return a.acceptWithFactor(ctx, t, d, p)
	}
	waiting := &store.TokenRef{Purpose: store.PurposeMFA, Hash: t.Hash}
	code := factorCode{totp: p.TOTPCode, recovery: p.RecoveryCode, passkey: factorAssertion(p.Passkey, boundTo(Caller{}, waiting))}
	if code.passkey != nil {
		code.passkey.not, code.passkey.fresh = d.By.Passkey, d.By.Passkey == ""
	}
	if d.SessionID != "" {
		return a.continueSession(ctx, Caller{UserID: t.UserID, SessionID: d.SessionID}, code, waiting)
	}
	c, err := a.store.Credentials(ctx, store.ByID(t.UserID))
	if err != nil {
		return nil, linkFailed(err)
	}
	has, err := a.stillHas(ctx, c, d.By)
	switch {
	case err != nil:
		return nil, err
	case !has:
		return nil, fail(CodeInvalidToken, errors.New("the credential of this sign-in was removed"))
	case c.User.Banned(a.now()):
		return nil, fail(CodeUserBanned, nil) // before a code is consumed
	}
	tokens, err := a.completeSignIn(ctx, signIn{
		user: c.User, by: d.By, amr: d.AMR, waiting: waiting, code: code, trust: p.TrustDevice, gone: CodeInvalidToken, remember: d.Remember,
	})
	if err == nil && d.By.Passkey != "" {
		a.confirmPasskey(ctx, c.User.ID, d.By.Passkey)
	}
	return tokens, err
}

// StepUpParams are the parameters of StepUp: a caller and one of the codes.
type StepUpParams struct {
	Caller
	TOTPCode     string
	RecoveryCode string
	Passkey      json.RawMessage // as in VerifyMFAParams
}

// StepUp raises the caller's session to AAL2 with a second factor. Errors:
// CodeMFANotEnabled, CodeInvalidTOTPCode, CodeRateLimited, CodeSessionEnded,
// CodeUserBanned.
func (a *Auth) StepUp(ctx context.Context, p StepUpParams) (*Tokens, error) {
	return a.continueSession(ctx, p.Caller, factorCode{totp: p.TOTPCode, recovery: p.RecoveryCode, passkey: ownAssertion(p.Passkey, p.Caller)}, nil)
}

// continueSession is raiseSession that returns the session's tokens. It consumes the token
// of a refresh that waits for the factor, if there is one.
func (a *Auth) continueSession(ctx context.Context, by Caller, code factorCode, waiting *store.TokenRef, types ...EventType) (*Tokens, error) {
	used, err := a.raiseSession(ctx, by, code, waiting, types...)
	if err != nil {
		return nil, err
	}
	tokens, err := a.mint(ctx, used.User, used.Session)
	if err == nil {
		tokens.RecoveryCodesLeft = used.codesLeft
		a.addNewCodes(ctx, tokens, used, by, waiting)
	}
	return tokens, err
}

// raiseSession consumes a second factor and raises the caller's session to AAL2 in the
// same change, which records an event of each of types.
func (a *Auth) raiseSession(ctx context.Context, by Caller, code factorCode, waiting *store.TokenRef, types ...EventType) (usedFactor, error) {
	s, u, err := a.liveSession(ctx, by, CodeSessionEnded)
	if err == nil && !u.MFAEnabled && code.passkey == nil {
		err = fail(CodeMFANotEnabled, nil)
	}
	if err != nil {
		return usedFactor{}, err
	}
	if code.passkey != nil {
		code.passkey.fresh = slices.ContainsFunc(s.AMR, func(m AMR) bool { return m.Method != methodPasskey && a.now().Sub(m.Time()) < freshFor })
	}
	use := factorUse{by: by.authority(), user: u, code: code}
	if waiting != nil {
		if err := a.checkSignInAllowed(ctx, u); err != nil {
			return usedFactor{}, err
		}
		use.limits = []attemptLimit{a.mfaTokenLimit(waiting.Hash)}
	}
	use.complete = func(own context.Context, f *factorChange) (store.FactorResult, error) {
		c := f.Change
		for _, t := range types {
			raised := a.newChange(own, c.By, done(Event{Type: t, UserID: by.UserID, SessionID: by.SessionID, Method: f.amr.Method}))
			c.Events = append(c.Events, raised.Events...)
		}
		switch {
		case f.alone && (u.MFAEnabled || waiting != nil):
			return store.FactorResult{}, fail(CodeInvalidPasskey, errors.New("the passkey counts as one factor, and the account has two"))
		case f.alone:
			return a.confirmByPasskey(own, by, c, f)
		}
		r, err := f.store(c, store.Completion{Redeem: waiting, Raise: &store.RaisedLevel{SessionID: by.SessionID, Method: f.amr}})
		if errors.Is(err, store.ErrSessionEnded) {
			err = fail(CodeSessionEnded, err)
		}
		if err == nil {
			a.committed(own, c, store.OutcomeDone, f.edit)
		}
		return r, err
	}
	return a.checkFactor(ctx, use)
}

// NewRecoveryCodesParams are the parameters of NewRecoveryCodes.
type NewRecoveryCodesParams struct{ Caller }

// NewRecoveryCodes replaces a user's recovery codes and returns the new ones, which
// cannot be read again. The session needs to have used the second factor within the
// last 15 minutes. Errors: CodeMFANotEnabled, CodeInsufficientAAL, CodeReauthNeeded,
// CodeSessionEnded, CodeUserBanned.
func (a *Auth) NewRecoveryCodes(ctx context.Context, p NewRecoveryCodesParams) ([]string, error) {
	if a.factors == nil {
		return nil, fail(CodeMFANotEnabled, lacks[store.FactorStore]())
	}
	me, err := a.acting(ctx, p.Caller)
	if err == nil && !me.user.MFAEnabled {
		err = fail(CodeMFANotEnabled, nil)
	}
	if err == nil {
		err = a.requireRecentFactor(p.Caller, me.session)
	}
	if err != nil {
		return nil, err
	}
	codes, err := a.putRecoveryCodes(ctx, p.authority(), me.user)
	if err != nil {
		err = goneOr(CodeMFANotEnabled, err)
	}
	return codes, err
}

// enrolment authenticates a request to the enrolment endpoints. Only there, the token
// of CodeMFAEnrollmentRequired is accepted as a bearer token, because its user has no
// session yet.
func (a *Auth) enrolment(r *http.Request) (current, error) {
	token, err := a.bearer(r)
	if err != nil {
		return current{}, err
	}
	e, err := a.waitingToEnrol(r.Context(), token)
	if errors.Is(err, CodeInvalidToken) {
		return a.live(r)
	}
	return current{session: e.session, user: e.user, mfaToken: token}, err
}

func (a *Auth) handleSetupTOTP(w http.ResponseWriter, r *http.Request) error {
	me := currentFrom(r.Context())
	setup, err := a.SetupTOTP(r.Context(), SetupTOTPParams{me.caller(), me.mfaToken})
	if err != nil {
		return err
	}
	if acceptsByName(r, "image/png") {
		w.Header().Set("Content-Type", "image/png")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(setup.png) // the client may have disconnected
		return nil
	}
	return writeJSON(w, http.StatusOK, setup)
}

func (a *Auth) handleEnableTOTP(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		TOTPCode string `json:"totp_code"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if p.TOTPCode == "" {
		return invalid("totp_code", "is required")
	}
	me, ctx := currentFrom(r.Context()), r.Context()
	e, err := a.EnableTOTP(ctx, EnableTOTPParams{me.caller(), me.mfaToken, p.TOTPCode})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, enabledTOTP{e.RecoveryCodes, a.carried(w, r, e.Tokens)})
}

// enabledTOTP is the Session object with recovery codes.
type enabledTOTP struct {
	codes  []string
	tokens Tokens
}

func (e enabledTOTP) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		RecoveryCodes []string `json:"recovery_codes"`
		SessionView
	}{nonNil(e.codes), e.tokens.View()})
}

func (a *Auth) handleDisableTOTP(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		TOTPCode     string `json:"totp_code"`
		RecoveryCode string `json:"recovery_code"`
	}
	if err := decodeOptional(r, &p); err != nil {
		return err
	}
	me := currentFrom(r.Context())
	if err := a.DisableTOTP(r.Context(), DisableTOTPParams{me.caller(), p.TOTPCode, p.RecoveryCode}); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

func (a *Auth) handleVerifyMFA(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		MFAToken     string          `json:"mfa_token"`
		TOTPCode     string          `json:"totp_code"`
		RecoveryCode string          `json:"recovery_code"`
		Passkey      json.RawMessage `json:"passkey"`
		TrustDevice  bool            `json:"trust_device"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if given := boolCount(p.TOTPCode != "", p.RecoveryCode != "", hasValue(p.Passkey)); given != 1 {
		return invalid("totp_code", "or recovery_code or passkey is required, one of them")
	}
	var tokens *Tokens
	var err error
	if p.MFAToken != "" {
		tokens, err = a.VerifyMFA(r.Context(), VerifyMFAParams(p))
	} else {
		var me current
		if me, err = a.live(r); err != nil {
			return err
		}
		tokens, err = a.StepUp(r.Context(), StepUpParams{me.caller(), p.TOTPCode, p.RecoveryCode, p.Passkey})
	}
	if err != nil {
		return err
	}
	return a.writeTokens(w, r, tokens)
}

func (a *Auth) handleRecoveryCodes(w http.ResponseWriter, r *http.Request) error {
	me := currentFrom(r.Context())
	codes, err := a.NewRecoveryCodes(r.Context(), NewRecoveryCodesParams{me.caller()})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"recovery_codes": codes})
}
