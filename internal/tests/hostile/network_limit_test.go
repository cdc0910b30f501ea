package hostile_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
)

// in48 is a client in a /48: the /56 and the /64 in it, and the host.
func in48(net56, net64, host int) harness.Header {
	return harness.Header{Name: "RemoteAddr", Value: fmt.Sprintf("[2001:db8:1:%x::%x]:1", net56<<8|net64, host)}
}

// Limits of clients count a /56 with four times and a /48 with sixteen times the budget of
// a /64, at every endpoint. Other networks are not affected.
func TestNetworksCountWithTheirSubnetworks(t *testing.T) {
	one := auth.Rate{Burst: 1, Per: time.Hour}
	for name, way := range map[string]struct {
		ok   int
		post func(w *harness.World, n int, from harness.Header) *harness.Answer
	}{
		"sign-ups": {200, func(w *harness.World, n int, from harness.Header) *harness.Answer {
			return w.Do("POST", "/signup", map[string]any{"email": fmt.Sprintf("user%d@example.com", n), "password": harness.GoodPassword}, from)
		}},
		"links": {200, func(w *harness.World, n int, from harness.Header) *harness.Answer {
			return w.Do("POST", "/magic-link/send", map[string]any{"email": fmt.Sprintf("user%d@example.com", n)}, from)
		}},
		"texts": {200, func(w *harness.World, n int, from harness.Header) *harness.Answer {
			return w.Do("POST", "/otp/send", map[string]any{"phone": fmt.Sprintf("+49301234%03d", n)}, from)
		}},
		"passwords": {401, func(w *harness.World, n int, from harness.Header) *harness.Answer {
			return w.Do("POST", "/login", harness.Credentials(fmt.Sprintf("user%d@example.com", n), harness.GoodPassword), from)
		}},
		"codes": {400, func(w *harness.World, n int, from harness.Header) *harness.Answer {
			return w.PostOTP(fmt.Sprintf("+49301234%03d", n), "000000", from)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{SignupPerIP: one, SendPerIP: one, LoginPerIP: one, CodesPerIP: one}))
			n := 0
			want := func(status int, from harness.Header) {
				t.Helper()
				n++
				if a := way.post(w, n, from); a.Status != status {
					t.Errorf("attempt %d from %s: %d, want %d", n, from.Value, a.Status, status)
				}
			}
			for net56 := range 4 {
				for net64 := range 4 {
					want(way.ok, in48(net56, net64, 1))
				}
				want(429, in48(net56, 0, 2)) // the /64
				want(429, in48(net56, 9, 1)) // the /56
			}
			want(429, in48(9, 9, 1)) // the /48
			want(way.ok, harness.Header{Name: "RemoteAddr", Value: "[2001:db8:2::1]:1"})
			want(way.ok, harness.FromAddress(1))
		})
	}
}

// While strangers use up the limits of a network, its users sign in on devices that they
// have signed in on before.
func TestKnownDevicesInABusyNetwork(t *testing.T) {
	w, _, _ := harness.NewDeviceWorld(t, auth.WithRateLimits(auth.RateLimits{LoginPerIP: auth.Rate{Burst: 1, Per: time.Hour}}))
	for n := range 16 {
		w.Do("POST", "/login", harness.Credentials(fmt.Sprintf("user%d@example.com", n), harness.GoodPassword), in48(n/4, n%4, 1)).Want(401, auth.CodeInvalidCredentials)
	}
	right := harness.Credentials(harness.AdaMail, harness.GoodPassword)
	w.Do("POST", "/login", right, in48(9, 9, 1)).Want(429, auth.CodeRateLimited)
	w.Do("POST", "/login", right, in48(9, 9, 1), harness.OnDevice(harness.Laptop)).Session()
}

// All sub-addresses of a mailbox share its limits, so that a stranger cannot fill it. A
// person may use two of them at once, and they stay two accounts.
func TestSubAddressesShareAMailbox(t *testing.T) {
	w := harness.NewWorld(t)
	send := func(email string, i int) *harness.Answer {
		return w.Do("POST", "/magic-link/send", map[string]any{"email": email}, harness.FromAddress(i))
	}
	ids := map[string]bool{}
	for i, email := range []string{"ada+shop@example.com", "ada+work@example.com"} {
		send(email, i).Want(200)
		s := w.Do("POST", "/magic-link/verify", map[string]any{"token": w.LinkToken(email, auth.KindMagicLink)}, harness.FromAddress(i)).Session()
		ids[s.User.ID] = true
		if s.User.Email != email {
			t.Errorf("%s signs %s in", email, s.User.Email)
		}
	}
	if len(ids) != 2 {
		t.Error("two sub-addresses are one account")
	}
	for i := range 3 {
		send(fmt.Sprintf("ada+%d@example.com", i), 10+i).Want(200)
	}
	send("ada+9@example.com", 20).Want(429, auth.CodeRateLimited)
	send("ada@example.com", 21).Want(429, auth.CodeRateLimited)
	send("ada@example.org", 22).Want(200)
	send("+ada@example.com", 23).Want(200)
	w.Clock.Advance(time.Hour)
	send("ada+9@example.com", 24).Want(200)
	if _, err := w.SendPhoneCode(t.Context(), auth.SendPhoneCodeParams{Phone: harness.PhoneNumber}); errors.Is(err, auth.CodeRateLimited) {
		t.Error("a phone number is no sub-address")
	}
}
