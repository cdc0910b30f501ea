package mail_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

const free = "free@example.com"

// outcomesOf lists the store calls of requests with their outcomes.
func outcomesOf(tap *storetap.Tap, requests func()) (list []string) {
	var mu sync.Mutex
	tap.Reset(storetap.Hooks{After: func(_ context.Context, method string, _ int, err error) {
		mu.Lock()
		defer mu.Unlock()
		if method == "User" || method == "Credentials" {
			err = nil // the read of an unknown account takes as long as that of a known one
		}
		list = append(list, fmt.Sprint(method, " ", err))
	}})
	defer tap.Reset(storetap.Hooks{})
	requests()
	return list
}

// signUpToConfirm signs up, waits for the tokens that are stored in the background, and
// returns the id.
func signUpToConfirm(w *harness.World, tap *storetap.Tap, email string, tokens int) string {
	w.T.Helper()
	stored := make(chan struct{}, tokens)
	tap.Reset(storetap.Hooks{After: func(_ context.Context, method string, _ int, _ error) {
		if method == "PutToken" {
			stored <- struct{}{}
		}
	}})
	defer tap.Reset(storetap.Hooks{})
	id := harness.DecodeAs[map[string]any](w.Do("POST", "/signup", harness.Credentials(email, "another good one")).Want(200))["request_id"].(string)
	for range tokens {
		<-stored
	}
	return id
}

// After a sign-up that awaits a confirmation, and without one, wrong codes cause the same
// store calls with the same outcomes, and so take equally long, whether or not the address
// has an account.
func TestWrongConfirmationsTellNobodyWhatIsTaken(t *testing.T) {
	calls := func(email string, signUp bool) (list []string) {
		w, tap := tapWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
		w.Account(harness.AdaMail, harness.GoodPassword)
		id := ""
		if signUp {
			tokens := 0
			if email == harness.AdaMail {
				tokens = 2 // the link in the mail to the owner, and the decoy
			}
			id = signUpToConfirm(w, tap, email, tokens)
		}
		return outcomesOf(tap, func() {
			for i := range 2 {
				body := map[string]any{"email": email, "code": "0000000", "request_id": id}
				w.Do("POST", "/verify-email", body, harness.FromAddress(i), harness.OnDevice(harness.Mobile)).Want(400, auth.CodeInvalidCode)
				w.VerifyBy(email, "0000000", harness.FromAddress(i)).Want(400, auth.CodeInvalidCode)
				w.Clock.Advance(time.Second)
			}
		})
	}
	missing := fmt.Sprint("RedeemCode ", store.ErrNotFound)
	for _, signUp := range []bool{true, false} {
		taken, other := calls(harness.AdaMail, signUp), calls(free, signUp)
		if !slices.Equal(taken, other) || slices.Contains(taken, missing) == signUp {
			t.Errorf("after a sign-up: %v\n%v\n%v", signUp, taken, other)
		}
	}
}
