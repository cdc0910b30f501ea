package auth

import (
	"fmt"
	"testing"
	"time"
)

// The vectors of RFC 4226, appendix D, and RFC 6238, appendix B (last six of the
// eight digits).
func TestTOTPVectors(t *testing.T) {
	keys := testKeys(t)
	a := &Auth{keys: keys}
	f := Factor{UserID: "u", Secret: keys.Seal([]byte("12345678901234567890"), []byte("u"))}
	for step, want := range []string{"755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"} {
		at := time.Unix(int64(step)*totpPeriod, 0)
		if m, _ := a.matchTOTP(f, want, at); step > 0 && (!m.ok || m.step != int64(step)) {
			t.Errorf("RFC 4226, count %d: %+v", step, m)
		}
	}
	for at, want := range map[int64]string{
		59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130",
	} {
		if m, _ := a.matchTOTP(f, want, time.Unix(at, 0)); !m.ok || m.step != at/totpPeriod {
			t.Errorf("RFC 6238, time %d: %+v", at, m)
		}
		if m, _ := a.matchTOTP(f, fmt.Sprintf("%06d", 0), time.Unix(at, 0)); m.ok {
			t.Errorf("time %d: zeros match", at)
		}
	}
}
