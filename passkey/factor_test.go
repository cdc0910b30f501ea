package passkey_test

import (
	"slices"
	"testing"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// removals returns the recorded events about removed factors, sorted.
func (w *world) removals() (types []auth.EventType) {
	w.t.Helper()
	list, err := w.Store.(store.Journal).Events(w.t.Context(), store.EventQuery{Limit: 100})
	w.must(err)
	for _, e := range list {
		if slices.Contains([]auth.EventType{auth.EventMFADisabled, auth.EventTOTPRemoved, auth.EventPasskeyRemoved}, e.Type) {
			types = append(types, e.Type)
		}
	}
	slices.Sort(types)
	return types
}

// app adds an authenticator app to ada's account.
func (w *world) app() *auth.EnabledTOTP {
	w.t.Helper()
	setup, err := w.SetupTOTP(w.t.Context(), auth.SetupTOTPParams{Caller: w.caller()})
	w.must(err)
	code, err := totp.GenerateCode(setup.Secret, w.Clock.Now())
	w.must(err)
	enabled, err := w.EnableTOTP(w.t.Context(), auth.EnableTOTPParams{Caller: w.caller(), TOTPCode: code})
	w.must(err)
	w.ada.Tokens = *enabled.Tokens
	return enabled
}

// The owner hears that the second factor is off only if no other one is left.
func TestNoticesOfRemovedFactors(t *testing.T) {
	byCode := func(w *world, codes []string) auth.DisableTOTPParams {
		return auth.DisableTOTPParams{Caller: w.caller(), RecoveryCode: codes[0]}
	}
	bySession := func(w *world, _ []string) auth.DisableTOTPParams { return auth.DisableTOTPParams{Caller: w.caller()} }
	for name, disable := range map[string]func(*world, []string) auth.DisableTOTPParams{"code": byCode, "session": bySession} {
		for _, passkey := range []string{"none", "optional", "second factor"} {
			t.Run(name+" "+passkey, func(t *testing.T) {
				w := newWorld(t)
				codes := w.app().RecoveryCodes
				want, notice := auth.EventMFADisabled, auth.KindMFADisabled
				if passkey != "none" {
					added, err := w.add(passkey == "second factor")
					w.must(err)
					w.ada.Tokens = *added.Tokens
				}
				if passkey == "second factor" {
					want, notice = auth.EventTOTPRemoved, auth.KindTOTPRemoved
				}
				w.must(w.DisableTOTP(t.Context(), disable(w, codes)))
				if got := w.removals(); !slices.Equal(got, []auth.EventType{want}) {
					t.Errorf("recorded %v, want %s", got, want)
				}
				w.Mail(t, "ada@example.com", notice)
			})
		}
	}
}
