package hostile_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
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

// flood keeps so many connections of unknown accounts busy that the queue for hashes is
// full. from returns the IP address of a connection. A refused request is repeated when a
// place is free again.
func flood(t *testing.T, w *harness.World, connections, places int, from func(i int) string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	refused, again := make(chan struct{}, connections), make(chan struct{}, connections)
	var all sync.WaitGroup
	for i := range connections {
		body := harness.Credentials(fmt.Sprintf("unknown-%d@example.com", i), harness.WrongPassword)
		all.Go(func() {
			for ctx.Err() == nil {
				a := w.DoOn(w.Handler(), "POST", "/login", body, harness.Header{Name: "RemoteAddr", Value: from(i)})
				if a.Status != 503 {
					select {
					case again <- struct{}{}:
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
	for range connections - places {
		<-refused
	}
	return func() { cancel(); all.Wait() }
}

// One IPv6 /48 has 65,536 client networks. A flood with one request from each of them
// blocks no sign-in from other networks, also not from another /56 of that /48.
func TestAFloodFromOnePrefixHarmsNobodyElse(t *testing.T) {
	w := harness.NewWorld(t, auth.WithPasswords(auth.PasswordOptions{Workers: 1, Queue: 16, Argon2id: harness.UsualCost}), auth.WithRateLimits(auth.RateLimits{Off: true}))
	w.LoginAs(t, "ada@example.com")
	stop := flood(t, w, 96, 16+2, func(i int) string { return fmt.Sprintf("[2001:db8:1:%x::1]:4711", i) })
	defer stop()
	for range 5 {
		for _, from := range []string{"198.51.100.7:4711", "[2001:db8:2:1::1]:4711", "[2001:db8:1:100::1]:4711"} {
			w.DoOn(w.Handler(), "POST", "/login", harness.Credentials("ada@example.com", authtest.Password), harness.Header{Name: "RemoteAddr", Value: from}).Want(200)
		}
	}
}

// A flood from more networks than the queue has places blocks no known device. A known
// device is known before its password is checked: a wrong one gets the same place.
func TestAFloodFromManyNetworksHarmsNoKnownDevice(t *testing.T) {
	w := harness.NewWorld(t, auth.WithPasswords(auth.PasswordOptions{Workers: 1, Queue: 16, Argon2id: harness.UsualCost}), auth.WithRateLimits(auth.RateLimits{Off: true}))
	w.LoginAs(t, "ada@example.com")
	login := func(password string) *harness.Answer {
		return w.Do("POST", "/login", harness.Credentials("ada@example.com", password), harness.OnDevice(harness.Laptop))
	}
	login(authtest.Password).Want(200)
	stop := flood(t, w, 96, 16+2, func(i int) string { return fmt.Sprintf("[2001:db8:%x::1]:4711", i) })
	defer stop()
	for range 5 {
		login(authtest.Password).Want(200)
		login(harness.WrongPassword).Want(401, auth.CodeInvalidCredentials)
	}
}

// A campus with one /48 signs in on a Monday morning: 5,000 people, 300 of them at a time,
// and 200 of them mistype their password first. Nobody is asked to come back later.
func TestACampusSignsIn(t *testing.T) {
	people, atOnce, wrong := 5000, 300, 200
	if harness.OnAnotherStore() && !harness.All() {
		people, wrong = people/5, wrong/5 // as many at a time, for a shorter time
	}
	w := harness.NewWorld(t)
	w.PostSignUp("ada@example.com")
	ada, err := w.Store.Credentials(t.Context(), store.ByEmail("ada@example.com"))
	if err != nil {
		t.Fatal(err)
	}
	numbers := make(chan int)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for i := range numbers {
				email := fmt.Sprintf("person-%d@example.com", i)
				if _, err := w.ImportUser(t.Context(), auth.ImportUserParams{Email: email, PasswordHash: ada.PasswordHash, EmailVerified: true}); err != nil {
					t.Error(err)
					continue
				}
				from := harness.Header{Name: "RemoteAddr", Value: fmt.Sprintf("[2001:db8:1:%x::%x]:4711", i%16, i)}
				login := func(password string) int {
					return w.DoOn(w.Handler(), "POST", "/login", harness.Credentials(email, password), from).Status
				}
				if i%(people/wrong) == 0 {
					if status := login(harness.WrongPassword); status != 401 {
						t.Errorf("a wrong password of person %d: %d", i, status)
					}
				}
				if status := login(harness.GoodPassword); status != 200 {
					t.Errorf("person %d: %d", i, status)
				}
			}
		})
	}
	for i := range people {
		numbers <- i
	}
	close(numbers)
	all.Wait()
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
