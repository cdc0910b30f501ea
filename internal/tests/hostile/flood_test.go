package hostile_test

import (
	"context"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
)

// A flood from one client with one account and hundreds of connections blocks no other
// sign-in: neither of other accounts nor of that account's owner.
func TestAFloodHarmsNobodyElse(t *testing.T) {
	w := harness.NewWorld(t, auth.WithPasswords(auth.PasswordOptions{Workers: 1, Queue: 64, Argon2id: harness.UsualCost}), auth.WithRateLimits(auth.RateLimits{Off: true}))
	for _, email := range []string{"flood@example.com", "ada@example.com"} {
		w.LoginAs(t, email)
	}
	login := func(email, from string) *harness.Answer {
		return w.DoOn(w.Handler(), "POST", "/login", map[string]any{"email": email, "password": authtest.Password}, harness.Header{Name: "RemoteAddr", Value: from})
	}
	ctx, stop := context.WithCancel(t.Context())
	refused, again := make(chan struct{}, 600), make(chan struct{}, 600)
	var flood sync.WaitGroup
	for i := range 600 {
		from := "192.0.2.1:4711"
		if i%2 == 0 {
			from = "[2001:db8:0:1::" + string("0123456789abcdef"[i/2%16]) + "]:4711" // one /64 is one client
		}
		flood.Go(func() {
			for ctx.Err() == nil {
				if login("flood@example.com", from).Status != 503 {
					select {
					case again <- struct{}{}: // a place is free: one of the refused requests is repeated
					default:
					}
					continue
				}
				select {
				case refused <- struct{}{}:
				default:
				}
				select {
				case <-again:
				case <-ctx.Done():
				}
			}
		})
	}
	for range 500 { // the flood is on: all others wait or are at work
		<-refused
	}
	for range 5 {
		login("ada@example.com", "198.51.100.7:4711").Want(200)
		login("ada@example.com", "[2001:db8:0:2::1]:4711").Want(200)
		login("flood@example.com", "198.51.100.8:4711").Want(200)
	}
	stop()
	flood.Wait()
}

// Checks of right passwords are limited, because they cost as much as wrong ones.
func TestRightPasswordsAreLimited(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{SignInsPerAccount: auth.Rate{Burst: 3, Per: 180e9}}))
	w.LoginAs(t, "ada@example.com") // the first
	w.LoginAs(t, "ben@example.com")
	login := func(email, password string) *harness.Answer {
		return w.Do("POST", "/login", map[string]any{"email": email, "password": password})
	}
	for range 3 {
		if a := login("ada@example.com", authtest.Password); a.Status == 429 {
			break
		}
	}
	works := harness.HashWorks(w.Auth)
	login("ada@example.com", authtest.Password).Want(429, auth.CodeRateLimited)
	if harness.HashWorks(w.Auth) != works {
		t.Error("a password was judged all the same")
	}
	login("ben@example.com", authtest.Password).Want(200)
	w.Clock.Advance(60e9) // one attempt is refilled
	login("ada@example.com", authtest.Password).Want(200)
	login("ada@example.com", authtest.Password).Want(429, auth.CodeRateLimited)
}
