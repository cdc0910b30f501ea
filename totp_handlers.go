package auth

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// enrolment lets somebody in who has to set a second factor up before the first
// session: the token of CodeMFAEnrollmentRequired serves as bearer, here only.
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
	if !me.user.MFAEnabled && !a.fresh(me.session) {
		return fail(CodeReauthNeeded, nil)
	}
	setup, err := a.SetupTOTP(r.Context(), SetupTOTPParams{me.caller(), me.mfaToken})
	if err != nil {
		return err
	}
	if acceptsByName(r, "image/png") {
		w.Header().Set("Content-Type", "image/png")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(setup.png) // a client that has gone needs no answer
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
	if !me.user.MFAEnabled && !a.fresh(me.session) {
		return fail(CodeReauthNeeded, nil)
	}
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
	}{orEmpty(e.codes), e.tokens.View()})
}

func (a *Auth) handleDisableTOTP(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		TOTPCode     string `json:"totp_code"`
		RecoveryCode string `json:"recovery_code"`
	}
	if err := decodeOptional(r, &p); err != nil {
		return err
	}
	me, ctx := currentFrom(r.Context()), r.Context()
	switch {
	case !me.user.MFAEnabled:
		return fail(CodeMFANotEnabled, nil)
	case a.mfaRequired(ctx, me.user):
		return fail(CodeMFAEnforced, nil)
	}
	var err error
	switch {
	case p.RecoveryCode != "":
	case p.TOTPCode != "":
		_, err = a.judgeFactor(ctx, me.caller().authority(), me.user, factorCode{totp: p.TOTPCode})
	case !a.freshAAL2(me.session):
		err = fail(CodeReauthNeeded, nil)
	}
	if err != nil {
		return err
	}
	if err := a.DisableTOTP(ctx, DisableTOTPParams{me.caller(), p.RecoveryCode}); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// freshAAL2 tells whether the second factor was shown on this session lately.
func (a *Auth) freshAAL2(s Session) bool {
	for _, m := range s.AMR {
		if (m.Method == methodTOTP || m.Method == methodRecovery) && a.now().Sub(time.Unix(m.Timestamp, 0)) < freshFor {
			return s.AAL == LevelAAL2
		}
	}
	return false
}

func (a *Auth) handleVerifyMFA(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		MFAToken     string `json:"mfa_token"`
		TOTPCode     string `json:"totp_code"`
		RecoveryCode string `json:"recovery_code"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if (p.TOTPCode == "") == (p.RecoveryCode == "") {
		return invalid("totp_code", "or recovery_code is required, one of them")
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
		tokens, err = a.StepUp(r.Context(), StepUpParams{me.caller(), p.TOTPCode, p.RecoveryCode})
	}
	if err != nil {
		return err
	}
	return a.writeTokens(w, r, tokens)
}

func (a *Auth) handleRecoveryCodes(w http.ResponseWriter, r *http.Request) error {
	me := currentFrom(r.Context())
	switch {
	case !me.user.MFAEnabled:
		return fail(CodeMFANotEnabled, nil)
	case me.session.AAL != LevelAAL2:
		return fail(CodeInsufficientAAL, nil)
	case !a.freshAAL2(me.session):
		return fail(CodeReauthNeeded, nil)
	}
	codes, err := a.NewRecoveryCodes(r.Context(), NewRecoveryCodesParams{me.caller()})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"recovery_codes": codes})
}
