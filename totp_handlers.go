package auth

import (
	"encoding/json"
	"errors"
	"net/http"
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
	me := currentFrom(r.Context())
	if err := a.DisableTOTP(r.Context(), DisableTOTPParams{me.caller(), p.TOTPCode, p.RecoveryCode}); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

func (a *Auth) handleVerifyMFA(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		MFAToken     string `json:"mfa_token"`
		TOTPCode     string `json:"totp_code"`
		RecoveryCode string `json:"recovery_code"`
		TrustDevice  bool   `json:"trust_device"`
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
	codes, err := a.NewRecoveryCodes(r.Context(), NewRecoveryCodesParams{me.caller()})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"recovery_codes": codes})
}
