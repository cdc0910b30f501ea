package signin_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// The frequent requests cost the calls of the store that docs/deployment.md names. One
// more would halve the throughput of a refresh.
func TestFrequentRequestsCostFewCalls(t *testing.T) {
	tap := storetap.New(harness.NewStore(t))
	w := &harness.World{T: t, Log: &harness.SyncBuffer{}, Env: authtest.NewOn(t, tap, auth.WithSettings(auth.Settings{MFARequiredFor: []string{"guard"}}))}
	s := w.Member("ada@example.com")
	guard := w.Member("guard@example.com")
	w.Patch(guard.User.ID, store.UserPatch{Roles: &[]string{"guard"}})
	var mu sync.Mutex
	var calls []string
	tap.Reset(storetap.Hooks{Before: func(_ context.Context, method string, _ int) {
		mu.Lock()
		calls = append(calls, method)
		mu.Unlock()
	}})
	for _, c := range []struct {
		name string
		do   func()
		want string
	}{
		{"login", func() {
			s = w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}).Session()
		}, "Credentials Take CreateSession"},
		{"refresh", func() { s = w.Do("POST", "/refresh", map[string]any{"refresh_token": s.RefreshToken}).Session() }, "AdvanceSession"},
		{"me", func() { w.Do("GET", "/me", nil, harness.Bearer(s.AccessToken)).Want(200) }, "Session"},
		{"refresh of roles that need a factor", func() {
			guard = w.Do("POST", "/refresh", map[string]any{"refresh_token": guard.RefreshToken}).Session()
		}, "AdvanceSession Session AdvanceSession Roles"},
	} {
		w.Clock.Advance(time.Minute)
		mu.Lock()
		calls = nil
		mu.Unlock()
		c.do()
		mu.Lock()
		got := strings.Join(calls, " ")
		mu.Unlock()
		if got != c.want {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
	}
}
