package authtest

import (
	"testing"
	"time"

	"github.com/authmount/auth/store"
)

// FollowRevocations makes the Env pass revocations on over HTTP until the test ends, so that
// a test of another service can use authclient.WithRevocations with a store in memory, which
// has no WatchRevocations. Changes of roles are passed on by themselves.
// The test reports ended sessions and banned users:
//
//	env.Revoke(store.Revocation{SessionID: ada.SessionID, At: time.Now()})
//
// The handler of package admin has to be served, too, and the Env needs the real clock.
func (e *Env) FollowRevocations(tb testing.TB) {
	tb.Helper()
	end, over := make(chan struct{}), make(chan struct{})
	tb.Cleanup(func() { close(end); <-over })
	report := func() { e.Revoke(store.Revocation{CaughtUp: true, At: time.Now()}) }
	report()
	go func() {
		defer close(over)
		beat := time.NewTicker(time.Second)
		defer beat.Stop()
		for {
			select {
			case <-end:
				return
			case <-beat.C:
				report()
			}
		}
	}()
}
