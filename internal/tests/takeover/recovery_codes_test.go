package takeover_test

import (
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// codesOf returns the recovery codes of an answer.
func codesOf(a *harness.Answer) []string {
	return harness.DecodeAs[struct {
		Codes []string `json:"recovery_codes"`
	}](a.Want(200)).Codes
}

// signsInWithApp signs Ada in with a password and a code of her app, and returns the
// answer.
func signsInWithApp(w *harness.World, e harness.Enrolled, password string, edit ...harness.Header) *harness.Answer {
	w.Clock.Advance(time.Minute)
	body := harness.Credentials(harness.AdaMail, password)
	body["totp_code"] = w.Code(e.Secret, 0)
	header := harness.OnDevice(harness.Laptop)
	if len(edit) > 0 {
		header = edit[0]
	}
	return w.Do("POST", "/login", body, header)
}

// secures presses the button of the recovery link about a new device, and returns the page
// with the result.
func secures(w *harness.World) string {
	token := w.StopToken(harness.AdaMail, auth.KindNewDevice)
	return string(w.Do("POST", "/secure-account", "token="+token, harness.Form, harness.Browser).Want(200).Body)
}

const newCodes = "You get new ones at your next sign-in"

// A recovery link removes the recovery codes that the reported session created, and says
// so. The owner's factor stays, because an older session added it, and the next sign-in
// with it returns new codes, once.
func TestRecoveryCodesOfAReportedSession(t *testing.T) {
	for name, sign := range map[string]func(w *harness.World, e harness.Enrolled, password string) *harness.Answer{
		"one request": func(w *harness.World, e harness.Enrolled, password string) *harness.Answer {
			return signsInWithApp(w, e, password)
		},
		"two requests": func(w *harness.World, e harness.Enrolled, password string) *harness.Answer {
			w.Clock.Advance(time.Minute)
			return w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": mfaToken(w, password), "totp_code": w.Code(e.Secret, 0)})
		},
		"a step-up": func(w *harness.World, e harness.Enrolled, _ string) *harness.Answer {
			w.Clock.Advance(time.Minute)
			return w.Do("POST", "/2fa/verify", map[string]any{"totp_code": w.Code(e.Secret, 0)}, harness.Bearer(e.AccessToken))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, s := harness.NewDeviceWorld(t)
			e := w.Enrol(s.AccessToken)
			thief := signsInWithApp(w, e, harness.GoodPassword, harness.OnDevice(harness.Mobile)).Session()
			codes := codesOf(w.Do("POST", "/2fa/recovery-codes", nil, harness.Bearer(thief.AccessToken)))
			if page := secures(w); !strings.Contains(page, newCodes) {
				t.Errorf("the page does not mention the codes: %s", page)
			}
			w.Do("POST", "/2fa/verify", map[string]any{"totp_code": "", "recovery_code": codes[0]}, harness.Bearer(e.AccessToken)).Want(422, auth.CodeInvalidTOTPCode)
			const chosen = "the owner's horse battery"
			if name != "a step-up" { // the reset ends the owner's session
				w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken(harness.AdaMail, auth.KindResetPassword), "new_password": chosen}).Want(200)
			}
			fresh := codesOf(sign(w, e, chosen))
			if len(fresh) != 10 {
				t.Fatalf("%d recovery codes at the next sign-in, want 10", len(fresh))
			}
			if again := codesOf(sign(w, e, chosen)); again != nil {
				t.Errorf("%d more recovery codes at the sign-in after it", len(again))
			}
			if name != "a step-up" {
				w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": mfaToken(w, chosen), "recovery_code": fresh[0]}).Session()
			}
		})
	}
}

// mfaToken starts a sign-in that waits for a second factor.
func mfaToken(w *harness.World, password string) string {
	return harness.DecodeAs[struct {
		MFAToken string `json:"mfa_token"`
	}](w.Do("POST", "/login", harness.Credentials(harness.AdaMail, password), harness.OnDevice(harness.Laptop)).Want(403, auth.CodeMFARequired)).MFAToken
}

// An account keeps its recovery codes if the reported session replaced none. An account
// that used its codes up gets none, either.
func TestRecoveryCodesOfNoReportedSession(t *testing.T) {
	w, _, s := harness.NewDeviceWorld(t)
	e := w.Enrol(s.AccessToken)
	signsInWithApp(w, e, harness.GoodPassword, harness.OnDevice(harness.Mobile)).Session()
	if page := secures(w); strings.Contains(page, newCodes) {
		t.Errorf("the page mentions the codes: %s", page)
	}
	const chosen = "the owner's horse battery"
	w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken(harness.AdaMail, auth.KindResetPassword), "new_password": chosen}).Want(200)
	if codes := codesOf(signsInWithApp(w, e, chosen)); codes != nil {
		t.Errorf("%d recovery codes, want none", len(codes))
	}
	w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": mfaToken(w, chosen), "recovery_code": e.Recovery[0]}).Session()
	factors, _ := store.Capability[store.FactorStore](w.Store)
	none := store.PutRecoveryCodes{Change: store.Change{Now: w.Clock.Now(), By: auth.Authority{System: "test"}}, UserID: s.User.ID}
	if err := factors.PutRecoveryCodes(t.Context(), none); err != nil {
		t.Fatal(err)
	}
	if codes := codesOf(signsInWithApp(w, e, chosen)); codes != nil {
		t.Errorf("%d recovery codes after the last one was used, want none", len(codes))
	}
}
