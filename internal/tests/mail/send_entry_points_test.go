package mail_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
)

// Strangers' requests at one endpoint do not use up the owner's limits at another. Neither
// sign-ups, accepted or refused, nor changes keep the owner of a phone number or email
// address from their codes and links.
func TestStrangersUseUpNothingOfTheOwners(t *testing.T) {
	const victim = "+4930111111"
	for _, confirm := range []auth.Switch{auth.Off, auth.On} {
		for name, password := range map[string]string{"sign-up": "the attacker's horse", "refused sign-up": "password"} {
			t.Run(name, func(t *testing.T) {
				w := harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: confirm}))
				w.PostOTP(victim, w.PhoneCode(victim)).Want(200)
				w.Clock.Advance(time.Hour)
				for range 6 {
					w.Do("POST", "/signup", map[string]any{"phone": victim, "password": password}, harness.FromAddress(1))
				}
				w.Do("POST", "/otp/send", map[string]any{"phone": victim}).Want(200)
			})
		}
	}
	t.Run("change", func(t *testing.T) {
		w := harness.NewWorld(t)
		w.PostOTP(victim, w.PhoneCode(victim)).Want(200)
		w.Clock.Advance(time.Hour)
		s := w.Member("thief@example.com")
		for range 5 {
			w.Do("PATCH", "/me", map[string]any{"phone": victim}, harness.Bearer(s.AccessToken), harness.FromAddress(1))
			w.Do("POST", "/otp/send", map[string]any{"phone": victim}).Want(200)
			w.Clock.Advance(time.Minute)
		}
	})
	t.Run("address", func(t *testing.T) {
		w := harness.NewWorld(t)
		s := w.PostSignUp("ada@example.com")
		for range 6 {
			w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}, harness.FromAddress(1))
		}
		w.Do("POST", "/verify-email", nil, harness.Bearer(s.AccessToken)).Want(200)
	})
}

// A sign-up that its own particulars refuse draws nothing by the name that it gave.
func TestRefusedSignUpsDrawNothingByName(t *testing.T) {
	for kind, name := range map[string]string{"email": "ada@example.com", "phone": harness.PhoneNumber} {
		for what, bad := range map[string]map[string]any{
			"password": {"password": "password"},
			"name":     {"password": harness.GoodPassword, "full_name": "a\x00b"},
			"metadata": {"password": harness.GoodPassword, "user_metadata": map[string]any{"a": string(make([]byte, 1<<16))}},
			"redirect": {"password": harness.GoodPassword, "redirect_to": "https://elsewhere.example"},
		} {
			t.Run(kind+" "+what, func(t *testing.T) {
				w := harness.NewWorld(t)
				bad[kind] = name
				for range 6 {
					if a := w.Do("POST", "/signup", bad, harness.FromAddress(1)); a.Status < 400 || a.Status == http.StatusTooManyRequests {
						t.Fatalf("status %d: %s", a.Status, a.Body)
					}
				}
				w.Do("POST", "/signup", map[string]any{kind: name, "password": harness.GoodPassword}).Want(200)
			})
		}
	}
}

// Where addresses must be confirmed, a login with the right password sends the confirmation
// again. This does not change how many sign-ups the limit still allows, so it reveals
// nothing.
func TestResentConfirmationsTellNobodyWhatIsTaken(t *testing.T) {
	const mallorys = "the attacker's horse"
	room := func(t *testing.T, taken bool) (n int) {
		w := harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
		if taken {
			w.LoginAs(t, "ada@example.com")
		}
		signUp := func() int {
			return w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": mallorys}, harness.FromAddress(1)).Status
		}
		if status := signUp(); status != http.StatusOK {
			t.Fatal(status)
		}
		for range 3 {
			w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": mallorys}, harness.FromAddress(1)).Want(401)
			w.Clock.Advance(61 * time.Second)
		}
		if err := w.Close(t.Context()); err != nil { // background work is over
			t.Fatal(err)
		}
		for signUp() == http.StatusOK {
			n++
		}
		return n
	}
	if free, taken := room(t, false), room(t, true); free != taken {
		t.Errorf("room for %d sign-ups if free, for %d if taken", free, taken)
	}
}

// Notices to an unverified address stay few even if the changes that they report happen in
// parallel.
func TestUnprovedAddressesAreNotFloodedAtOnce(t *testing.T) {
	const crowd = 50
	w, tap := tapWorld(t)
	s := w.PostSignUp("ada@example.com")
	e := w.Enrol(s.AccessToken)
	var all sync.WaitGroup
	var here atomic.Int32
	everybody := make(chan struct{}) // closed once all requests have drawn and none has changed anything
	tap.Reset(storetap.Hooks{Before: func(_ context.Context, method string, _ int) {
		if method == "PutRecoveryCodes" {
			if here.Add(1) == crowd {
				close(everybody)
			}
			<-everybody
		}
	}})
	for range crowd {
		all.Go(func() { w.Do("POST", "/2fa/recovery-codes", nil, harness.Bearer(e.AccessToken)) })
	}
	all.Wait()
	tap.Reset(storetap.Hooks{})
	notices := 0
	for _, k := range w.Sent("ada@example.com") {
		if k != auth.KindVerifyEmail {
			notices++
		}
	}
	if notices == 0 || notices > 5 { // fewer, where a change was repeated
		t.Errorf("%d notices", notices)
	}
}
