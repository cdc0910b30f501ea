package mail_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// ofRequest marks the store calls of a request, as opposed to background calls.
type ofRequest struct{}

// callsOf lists the store calls of a request, with their draws and stored data.
func callsOf(w *harness.World, tap *storetap.Tap, request func(ctx context.Context) error) (list []string) {
	w.T.Helper()
	var mu sync.Mutex
	tap.Reset(storetap.Hooks{
		Skip: func(ctx context.Context, _ string) bool { return ctx.Value(ofRequest{}) == nil },
		Before: func(_ context.Context, method string, _ int) {
			mu.Lock()
			defer mu.Unlock()
			list = append(list, method)
		},
	})
	defer tap.Reset(storetap.Hooks{})
	if err := request(context.WithValue(w.T.Context(), ofRequest{}, true)); err != nil {
		w.T.Fatal(err)
	}
	return list
}

// A request for an email address or phone number does not reveal whether it is taken,
// neither by the store calls nor by the effect on the link or code of an earlier request.
func TestChangesTellNobodyWhatIsTaken(t *testing.T) {
	w, tap := tapWorld(t)
	w.Member("taken@example.com")
	w.PostOTP("+4930111111", w.PhoneCode("+4930111111")).Want(200)
	ways := map[string]struct {
		free, taken, before string
		redeem              func(s harness.Session) int
		params              func(c auth.Caller, value string) auth.UpdateMeParams
	}{
		"address": {
			"free@example.com", "taken@example.com", "before@example.com",
			func(s harness.Session) int {
				return w.Do("POST", "/verify-email", map[string]any{"token": w.LinkToken("before@example.com", auth.KindChangeEmail)}, harness.Bearer(s.AccessToken)).Status
			},
			func(c auth.Caller, value string) auth.UpdateMeParams {
				return auth.UpdateMeParams{Caller: c, Email: &value}
			},
		},
		"number": {
			"+4930222222", "+4930111111", "+4930333333",
			func(s harness.Session) int {
				return w.PostOTP("+4930333333", w.Mail(t, "+4930333333", auth.KindPhoneCode).Code, harness.Bearer(s.AccessToken)).Status
			},
			func(c auth.Caller, value string) auth.UpdateMeParams {
				return auth.UpdateMeParams{Caller: c, Phone: &value}
			},
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			var calls [2][]string
			var status [2]int
			for i, value := range []string{way.free, way.taken} {
				s := w.Member(fmt.Sprintf("%s%d@example.com", name, i))
				c := auth.Caller{UserID: s.User.ID, SessionID: w.ClaimsOf(s).SessionID}
				ask := func(value string) func(context.Context) error {
					return func(ctx context.Context) error {
						_, err := w.UpdateMe(ctx, way.params(c, value))
						return err
					}
				}
				w.Inbox.Clear()
				if err := ask(way.before)(t.Context()); err != nil {
					t.Fatal(err)
				}
				calls[i] = callsOf(w, tap, ask(value))
				status[i] = way.redeem(s)
				w.Clock.Advance(time.Minute)
				if i == 0 && status[0] == http.StatusOK { // makes room for the other
					none := ""
					w.Patch(s.User.ID, store.UserPatch{Phone: &none})
				}
			}
			if !slices.Equal(calls[0], calls[1]) {
				t.Errorf("free: %v\ntaken: %v", calls[0], calls[1])
			}
			if status[0] != status[1] {
				t.Errorf("what was asked for before: %d if free, %d if taken", status[0], status[1])
			}
		})
	}
}

// A sign-up that must be confirmed makes the same store calls and has the same limits,
// whether or not the account exists.
func TestSignUpsTellNobodyWhatIsTaken(t *testing.T) {
	for name, p := range map[string]auth.SignUpParams{
		"address": {Email: "ada@example.com", Password: harness.GoodPassword},
		"number":  {Phone: harness.PhoneNumber, Password: harness.GoodPassword},
	} {
		t.Run(name, func(t *testing.T) {
			w, tap := tapWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}),
				auth.WithRateLimits(auth.RateLimits{SignupPerIP: auth.Rate{Burst: -1}, SendPerAddress: auth.Rate{Burst: 2, Per: time.Hour}}))
			signUp := func(ctx context.Context) error {
				_, err := w.SignUp(ctx, p)
				return err
			}
			free := callsOf(w, tap, signUp)
			if taken := callsOf(w, tap, signUp); !slices.Equal(free, taken) {
				t.Errorf("free: %v\ntaken: %v", free, taken)
			}
			body := map[string]any{"email": p.Email, "phone": p.Phone, "password": p.Password}
			w.Do("POST", "/signup", body).Want(429, auth.CodeRateLimited)
			again := map[string]any{"email": "b" + p.Email, "password": p.Password} // never signed up: the third is refused, too
			if p.Phone != "" {
				again = map[string]any{"phone": "+4930444444", "password": p.Password}
			}
			for _, want := range []int{200, 200, 429} {
				w.Do("POST", "/signup", again).Want(want)
			}
		})
	}
}

// The owner of an address gets few messages that the account exists already, however often
// and from any IP address others sign up with it.
func TestAccountExistsIsLimited(t *testing.T) {
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}),
		auth.WithRateLimits(auth.RateLimits{SendGap: auth.Rate{Burst: -1}, SendPerAddress: auth.Rate{Burst: 3, Per: time.Hour}}))
	w.LoginAs(t, "ada@example.com")
	for i := range 20 {
		s := w.LoginAs(t, fmt.Sprintf("u%d@example.com", i))
		w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}, harness.FromAddress(i))
		w.Do("PATCH", "/me", map[string]any{"email": "ada@example.com"}, harness.FromAddress(i), harness.Bearer(s.AccessToken))
	}
	if list := w.Sent("ada@example.com"); len(list) != 3 {
		t.Errorf("sent %v", list)
	}
}
