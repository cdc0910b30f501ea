package auth

import (
	"encoding/base32"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// What is promised to be taken is taken, and what is just beyond it is not.
func TestBoundsAreAsPromised(t *testing.T) {
	a := &Auth{keys: testKeys(t), cfg: config{now: time.Now}, factors: struct{ store.FactorStore }{}}
	xs := func(n int) string { return strings.Repeat("x", max(n, 0)) }
	private := func(n int) string { return ("en-x" + strings.Repeat("-aaaaaaaa", 10))[:n] } // a language, of a length
	for what, c := range map[string]struct {
		takes       func(n int) bool
		least, most int
	}{
		"a subject at a provider (OpenID Connect Core 1.0, section 2)": {func(n int) bool { return isSubject(xs(n)) }, 1, 255},
		"an error code of a provider":                                  {func(n int) bool { return errorToken(xs(n)) == xs(n) }, 0, 64},
		"a user's own language": {func(n int) bool {
			return preferredLocale(t.Context(), User{UserMetadata: map[string]any{"locale": private(n)}}) == private(n)
		}, 0, 63},
		"languages of a browser": {func(n int) bool { return shortLocale(xs(n)) == xs(n) }, 0, 128},
		"notes about an account": {func(n int) bool { return checkNotes(xs(n)) == nil }, 0, 16 << 10},
		"seconds that an invitation is good for": {func(n int) bool {
			_, err := kit{a}.CleanInvitation(host.Invitation{Email: "ada@example.com"}, time.Duration(n)*time.Second)
			return err == nil
		}, 300, 30 * 24 * 3600},
		"a TOTP secret from elsewhere": {func(n int) bool {
			_, err := a.importTOTP("u", base32.StdEncoding.EncodeToString([]byte(xs(n))), a.now())
			return err == nil
		}, 10, 64},
		"a name of a role":           {func(n int) bool { return checkRoleName(xs(n)) == nil }, 1, 64},
		"a name of a sender":         {func(n int) bool { return checkSenderName(xs(n)) == nil }, 1, 60},
		"an id of a request":         {func(n int) bool { return validRequestID(xs(n)) }, 1, 128},
		"an id of a device":          {func(n int) bool { return validDeviceID(xs(n)) }, minDeviceID, maxDeviceID},
		"a verifier (RFC 7636, 4.1)": {func(n int) bool { return checkVerifier(challengeOf(xs(n)), xs(n)) == nil }, 43, 128},
		"a full name":                {func(n int) bool { _, err := cleanName(strings.Repeat("ü", n)); return err == nil }, 0, maxName},
		"metadata":                   {func(n int) bool { return checkMetadata(map[string]any{"": xs(n - len(`{"":""}`))}) == nil }, 0, maxMetadata},
		"a text of a list":           {func(n int) bool { return kit{a}.Short(xs(n)) == xs(n) }, 0, 300},
		"a code from a provider": {func(n int) bool {
			return (&oauthClient{}).judgeCallback(endpoints{}, OAuthCallback{Code: xs(n)}) == nil
		}, 1, 4096},
	} {
		if c.least > 0 && (c.takes(c.least-1) || !c.takes(c.least)) {
			t.Errorf("%s: %d is not the least", what, c.least)
		}
		if !c.takes(c.most) || c.takes(c.most+1) {
			t.Errorf("%s: %d is not the most", what, c.most)
		}
	}
}

// A key that was revoked stops within a second everywhere, of which half is left to
// whoever reads it.
func TestKeysAreRememberedHalfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := func(ago time.Duration) *knownKeys { return &knownKeys{at: time.Now().Add(-ago)} }
		if !read(time.Second/2 - 1).fresh() {
			t.Error("forgotten too early")
		}
		if read(time.Second/2).fresh() || (*knownKeys)(nil).fresh() {
			t.Error("remembered too long")
		}
	})
}
