package auth

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/authmount/auth/store"
)

// silentCaptcha is a service for captchas that does not answer.
type silentCaptcha struct{}

func (silentCaptcha) Verify(ctx context.Context, _ string, _ netip.Addr) error {
	<-ctx.Done()
	return ctx.Err()
}

// A captcha that cannot be verified lets people pass where that was asked for, but not
// those who have left: for them nothing was waited for.
func TestCaptchaLetsNobodyPassWhoLeft(t *testing.T) {
	t.Parallel()
	store := &drawing{take: func([]store.Draw) (store.Decision, error) { return store.Decision{Allowed: true}, nil }}
	for _, open := range []bool{false, true} {
		a := &Auth{keys: testKeys(t), store: store, cfg: config{
			now: time.Now, log: slog.New(slog.DiscardHandler), captcha: &CaptchaOptions{Verifier: silentCaptcha{}, FailOpen: open, Timeout: time.Millisecond},
		}}
		ctx, leave := context.WithCancel(context.WithValue(t.Context(), captchaKey{}, "token"))
		if err := a.solved(ctx); (err == nil) != open {
			t.Errorf("open %v: %v", open, err)
		}
		if leave(); a.solved(ctx) == nil {
			t.Errorf("open %v: who has left is let pass", open)
		}
	}
}

// A device is told only to the browser that the session was made on.
func TestNewDevicesAreOfTheirSession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ made, of, want string }{{"one", "one", "one"}, {"one", "other", ""}, {"", "", ""}, {"one", "", ""}} {
		ctx := context.WithValue(t.Context(), newDeviceKey{}, c.made)
		if got := newDevice(ctx, Session{Device: deviceHash(c.of)}); got != c.want {
			t.Errorf("made %q, session of %q: %q", c.made, c.of, got)
		}
	}
}
