package auth_test

import (
	"testing"
	"time"
)

// A refresh token that was replaced long ago is a copy that somebody kept. It may end
// the session, as its use does, and neither others nor what the user's devices are
// trusted with.
func TestOldRefreshTokenEndsItsSessionOnly(t *testing.T) {
	for _, scope := range []string{"local", "others", "global"} {
		for age := range 4 {
			w := newWorld(t)
			s, other := w.member("ada@example.com"), w.login("ada@example.com", goodPassword).session()
			tokens := []string{s.RefreshToken}
			for range age {
				w.Clock.Advance(time.Minute)
				s = w.do("POST", "/refresh", map[string]any{"refresh_token": s.RefreshToken}).session()
				tokens = append(tokens, s.RefreshToken)
			}
			w.do("POST", "/logout?scope="+scope, map[string]any{"refresh_token": tokens[0]}).want(204)
			mine, others := w.alive(s.AccessToken), w.alive(other.AccessToken)
			switch old := age > 1; { // the last but one is repeated by clients that never had the answer
			case (old || scope == "local") && (mine || !others),
				!old && scope == "others" && (!mine || others),
				!old && scope == "global" && (mine || others):
				t.Errorf("%s, replaced %d times: its session lives: %v, the other: %v", scope, age, mine, others)
			}
		}
	}
}
