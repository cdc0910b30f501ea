package pages

import (
	"encoding/base64"
	"html/template"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/address"
)

func showSecond(v *visit) error {
	if v.flow.MFAToken == "" && v.claims == nil {
		return goTo(v.p.path("/sign-in"))
	}
	if v.flow.MFAToken == "" && v.isActing() {
		return auth.Reject(auth.CodeImpersonationForbidden, "")
	}
	if err := v.secondKinds(); err != nil {
		return err
	}
	v.Recovery = v.NoApp || v.r.URL.Query().Get("with") == "recovery" || v.form.Get("with") == "recovery"
	if life := v.p.kit.TrustDevices(); life > 0 && v.flow.MFAToken != "" && !v.Recovery {
		v.TrustDays, v.Trust = max(1, int(life/(24*time.Hour))), v.form.Get("trust_device") != ""
	}
	return nil
}

func postSecond(v *visit) (string, error) {
	totp, recovery := address.FactorCode(v.form.Get("code"))
	var tokens *auth.Tokens
	var err error
	switch {
	case v.byPasskey() && v.flow.MFAToken != "":
		tokens, err = v.verifyByPasskey()
	case v.byPasskey() && v.claims != nil:
		tokens, err = v.stepUpByPasskey()
	case totp == "" && recovery == "" && !v.byPasskey():
		return "", v.p.kit.Invalid("code", "is required")
	case v.flow.MFAToken != "":
		tokens, err = v.p.a.VerifyMFA(v.ctx, auth.VerifyMFAParams{MFAToken: v.flow.MFAToken, TOTPCode: totp, RecoveryCode: recovery, TrustDevice: v.form.Get("trust_device") != ""})
	case v.claims != nil:
		tokens, err = v.p.a.StepUp(v.ctx, auth.StepUpParams{Caller: v.claims.Caller(), TOTPCode: totp, RecoveryCode: recovery})
	default:
		return v.p.path("/sign-in"), nil
	}
	if err != nil {
		return "", v.overOr(err)
	}
	v.continues = v.flow.Continues
	to, err := v.signedIn(tokens)
	if err == nil && len(tokens.RecoveryCodes) > 0 {
		v.showCodes(tokens.RecoveryCodes, to)
		to = ""
	}
	return to, err
}

// overOr restarts the sign-in if the pending one has expired.
func (v *visit) overOr(err error) error {
	if is(err, auth.CodeInvalidToken, auth.CodeBadToken) && v.flow.MFAToken != "" {
		v.flow.MFAToken, v.flow.Error = "", auth.CodeInvalidToken
		return goTo(v.p.path("/sign-in"))
	}
	return err
}

func showForcedEnrol(v *visit) error {
	if v.flow.MFAToken == "" || !v.flow.Enrol {
		return goTo(v.p.path("/sign-in"))
	}
	v.Forced = true
	return v.keepSetup()
}

func postForcedEnrol(v *visit) (string, error) {
	if v.flow.MFAToken == "" || !v.flow.Enrol {
		return v.p.path("/sign-in"), nil
	}
	v.Forced = true
	to := v.returnTo()
	if v.byPasskey() {
		to, err := v.addPasskey(auth.AddPasskeyParams{MFAToken: v.flow.MFAToken}, to)
		if err != nil {
			return "", v.overOr(err)
		}
		return to, nil
	}
	if err := v.enrol(auth.Caller{}, v.flow.MFAToken, to); err != nil {
		return "", v.overOr(err)
	}
	return "", nil
}

// enrol starts or completes the setup of a second factor; the page shows the result.
func (v *visit) enrol(by auth.Caller, mfaToken, to string) error {
	if v.form.Get("do") != "enable" {
		setup, err := v.p.a.SetupTOTP(v.ctx, auth.SetupTOTPParams{Caller: by, MFAToken: mfaToken})
		if err != nil {
			return err
		}
		v.setup(setup.Secret, setup.QRCode)
		v.focus = "code"
		return nil
	}
	v.flow.Offer = ""
	done, err := v.p.a.EnableTOTP(v.ctx, auth.EnableTOTPParams{Caller: by, MFAToken: mfaToken, TOTPCode: address.Code(v.form.Get("code"))})
	if err != nil {
		return err
	}
	v.continues = v.flow.Continues
	if _, err := v.signedIn(done.Tokens); err != nil {
		return err
	}
	v.showCodes(done.RecoveryCodes, to)
	return nil
}

func (v *visit) showCodes(codes []string, to string) {
	v.Page, v.RecoveryCodes, v.ContinueTo = "recovery_codes", codes, to
}

func (v *visit) setup(secret, qr string) {
	var groups []string
	for rest := secret; rest != ""; {
		n := min(4, len(rest))
		groups, rest = append(groups, rest[:n]), rest[n:]
	}
	v.Setup = &Setup{Secret: secret, Spaced: strings.Join(groups, " "), QRCode: template.URL(qr)} //nolint:gosec // a PNG, see keepSetup
}

// keepSetup shows the QR code again after a wrong code: the form contains it, because the
// store has the secret encrypted.
func (v *visit) keepSetup() error {
	secret, qr := v.form.Get("secret"), v.form.Get("qr")
	image, ok := strings.CutPrefix(qr, "data:image/png;base64,")
	if _, err := base64.StdEncoding.DecodeString(image); !ok || err != nil || secret == "" {
		return nil
	}
	v.setup(secret, qr)
	return nil
}

func showFactor(v *visit) error {
	setsUp, err := v.setsUpApp()
	if err != nil {
		return err
	}
	if v.user.MFAEnabled && !setsUp {
		v.Page = "factor"
		return v.countCodes()
	}
	if !v.Settings.Methods.TOTP && !v.Settings.Methods.Passkey {
		return auth.Reject(auth.CodeMethodDisabled, "")
	}
	v.ForPage = v.flow.ReturnTo != ""
	return v.keepSetup()
}

// allCodes is the number of recovery codes that are created, and fewCodes the number from
// which on the account warns.
const (
	allCodes = 10
	fewCodes = 3
)

// countCodes counts the recovery codes of an account with a second factor.
func (v *visit) countCodes() error {
	if !v.user.MFAEnabled {
		return nil
	}
	f, err := v.factors(v.user.ID)
	if err != nil {
		return err
	}
	v.CodesLeft = v.texts.Of("factor.codes_left", "n", f.RecoveryLeft, "all", allCodes)
	v.FewCodes = f.RecoveryLeft <= fewCodes
	return nil
}

func postFactor(v *visit) (string, error) {
	setsUp, err := v.setsUpApp()
	switch {
	case err != nil:
		return "", err
	case !v.user.MFAEnabled && v.byPasskey():
		return v.addPasskey(auth.AddPasskeyParams{Caller: v.claims.Caller(), SecondFactor: true}, v.continueTo())
	case !v.user.MFAEnabled || setsUp:
		return "", v.enrol(v.claims.Caller(), "", v.continueTo())
	}
	var tokens *auth.Tokens
	totp, recovery := address.FactorCode(v.form.Get("code"))
	switch {
	case v.byPasskey():
		tokens, err = v.stepUpByPasskey()
	case totp == "" && recovery == "":
		return "", v.p.kit.Invalid("code", "is required")
	default:
		tokens, err = v.p.a.StepUp(v.ctx, auth.StepUpParams{Caller: v.claims.Caller(), TOTPCode: totp, RecoveryCode: recovery})
	}
	if err != nil {
		return "", err
	}
	if err := v.p.a.SetCookies(v.w, v.r, tokens); err != nil {
		return "", err
	}
	if v.form.Get("do") == "disable" {
		if err := v.p.a.DisableTOTP(v.ctx, auth.DisableTOTPParams{Caller: v.claims.Caller()}); err != nil {
			return "", err
		}
		v.flow.Notice = "factor_off"
		return v.p.path("/"), nil
	}
	codes, err := v.p.a.NewRecoveryCodes(v.ctx, auth.NewRecoveryCodesParams{Caller: v.claims.Caller()})
	if err != nil {
		return "", err
	}
	v.showCodes(codes, v.p.path("/"))
	return "", nil
}

// continueTo returns the original target of a visitor who had to set up a second factor,
// or the account.
func (v *visit) continueTo() string {
	if v.flow.ReturnTo != "" {
		return v.returnTo()
	}
	return v.p.path("/")
}
