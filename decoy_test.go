package auth_test

import (
	"testing"
	"time"
)

// A stranger who asks for a code that makes no account, at an address or number that
// has none, has nothing sent, and puts no end to what its owner was sent.
func TestDecoysSupersedeNothing(t *testing.T) {
	never := map[string]any{"create_user": false}
	ask := func(w *world, path, field, value string) {
		w.Clock.Advance(61 * time.Second)
		never[field] = value
		defer delete(never, field)
		w.do("POST", path, never, from(7)).want(200)
	}

	w := newWorld(t)
	mail := w.askByMail("new@example.com", nil)
	ask(w, "/magic-link/send", "email", "new@example.com")
	w.do("POST", "/magic-link/verify", map[string]any{"token": mail.token}).want(200)

	w = newWorld(t)
	mail = w.askByMail("new@example.com", nil)
	ask(w, "/magic-link/send", "email", "new@example.com")
	w.byCode("new@example.com", mail.code, mail.request, nil).want(200)

	w = newWorld(t)
	code, request := w.askCode(number)
	ask(w, "/otp/send", "phone", number)
	w.otpOf(number, code, request).want(200)
}
