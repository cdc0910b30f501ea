package authtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
)

// held is a mailer that sends only when the test allows it, and records the time.
type held struct {
	goOn chan struct{}
	now  func() time.Time
	sent chan time.Time
}

func (h *held) Send(ctx context.Context, _ auth.Message) error {
	select {
	case <-h.goOn:
		h.sent <- h.now()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A pending message is sent before the clock moves. Otherwise its lease could expire and
// it would not be sent at all.
func TestMessagesAreSentBeforeTheClockMoves(t *testing.T) {
	h := &held{goOn: make(chan struct{}), sent: make(chan time.Time, 1)}
	env := authtest.New(t, auth.WithMailer(h))
	h.now = env.Clock.Now
	began := env.Clock.Now()
	if _, err := env.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "ada@example.com"}); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, func() { close(h.goOn) })
	env.Clock.Advance(time.Minute)
	select {
	case at := <-h.sent:
		if !at.Equal(began) {
			t.Errorf("sent at %v, after the clock was moved from %v", at, began)
		}
	default:
		t.Error("the clock was moved under a message that was on its way")
	}
}
