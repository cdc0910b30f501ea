package auth

import (
	"testing"
	"time"

	"github.com/authmount/auth/store"
)

// Every method of a second factor counts as one, wherever the methods of a session count. A
// recovery code alone makes no device trusted.
func TestEveryFactorCounts(t *testing.T) {
	names := factorNames
	t.Cleanup(func() { factorNames = names })
	factorNames = append([]string{"a later one"}, names...)
	a := newAttemptService(t)
	a.cfg.mfa.TrustDevices = time.Hour
	for _, name := range append([]string{methodPassword}, factorNames...) {
		factor := name != methodPassword
		s := Session{AAL: store.LevelAAL2, AMR: []AMR{{Method: name, Timestamp: a.now().Unix()}}, CreatedAt: a.now(), Device: "device"}
		if got := a.freshAAL2(s); got != factor {
			t.Errorf("freshAAL2 after %q = %v, want %v", name, got, factor)
		}
		if got := !a.trustUntil(signIn{trust: true}, s).IsZero(); got != (factor && name != methodRecovery) {
			t.Errorf("%q makes a device trusted: %v", name, got)
		}
	}
}
