package mail_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// Toll fraud: each text message draws from the budget, at every endpoint, and none is sent
// beyond it.
func TestEveryTextDrawsTheBudget(t *testing.T) {
	for _, confirm := range []auth.Switch{auth.Off, auth.On} {
		w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{SMSBudget: auth.Rate{Burst: 3, Per: time.Hour}}),
			auth.WithSettings(auth.Settings{RequireConfirmation: confirm}))
		phone := func(i int) string { return fmt.Sprintf("+493012345%d", i) }
		member := w.LoginAs(t, "ada@example.com")
		doors := []func(i int) *harness.Answer{
			func(i int) *harness.Answer {
				return w.Do("POST", "/signup", map[string]any{"phone": phone(i), "password": harness.GoodPassword}, harness.FromAddress(i))
			},
			func(i int) *harness.Answer {
				return w.Do("POST", "/otp/send", map[string]any{"phone": phone(i)}, harness.FromAddress(i))
			},
			func(i int) *harness.Answer {
				return w.Do("PATCH", "/me", map[string]any{"phone": phone(i)}, harness.FromAddress(i), harness.Bearer(member.AccessToken))
			},
		}
		for i, door := range doors {
			door(i).Want(200)
		}
		w.Fired()
		for i, door := range doors {
			door(i+4).Want(429, auth.CodeRateLimited)
			w.WantEvents(auth.EventSMSBudgetExceeded)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		texts := slices.DeleteFunc(w.Inbox.Messages(), func(m auth.Message) bool { return m.Channel != auth.ChannelSMS })
		if len(texts) != 3 {
			t.Errorf("%d texts within a budget of 3", len(texts))
		}
	}
}

// A decoy text message spends nothing of the budget. It counts in every other way and is
// refused like any other when the budget is empty.
func TestDecoysSpendNoTexts(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{SMSBudget: auth.Rate{Burst: 2, Per: time.Hour}}),
		auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	silent := func(phone string, i int) *harness.Answer {
		return w.Do("POST", "/otp/send", map[string]any{"phone": phone, "create_user": false}, harness.FromAddress(i))
	}
	signUp := func(i int) *harness.Answer {
		return w.Do("POST", "/signup", map[string]any{"phone": harness.PhoneNumber, "password": harness.GoodPassword}, harness.FromAddress(i))
	}
	signUp(0).Want(200)
	for i := range 3 {
		silent(fmt.Sprintf("+493012345%d", i), i).Want(200)
		signUp(i).Want(200) // taken: no text
	}
	silent("+4930123450", 5).Want(429, auth.CodeRateLimited) // by its number
	silent(harness.PhoneNumber, 5).Want(200)                 // a text
	w.Fired()
	for i, phone := range []string{"+4930123458", harness.PhoneNumber} {
		w.Clock.Advance(time.Minute)
		silent(phone, i).Want(429, auth.CodeRateLimited) // whether or not there is an account
		w.WantEvents(auth.EventSMSBudgetExceeded)
	}
}

// An account with an unverified address causes few messages to it, by any kind of request.
func TestUnprovedAddressesAreNotFlooded(t *testing.T) {
	t.Run("notices", func(t *testing.T) {
		w := harness.NewWorld(t)
		s := w.PostSignUp("ada@example.com")
		now := harness.GoodPassword
		for i := range 25 {
			a := w.Do("POST", "/me/password", map[string]any{"current_password": now, "new_password": passwordNo(i)}, harness.Bearer(s.AccessToken))
			if a.Status == http.StatusOK {
				now = passwordNo(i)
			} else {
				a.Want(429, auth.CodeRateLimited)
			}
			s = w.Enrol(s.AccessToken).Session // a minute
			w.Do("POST", "/2fa/disable", nil, harness.Bearer(s.AccessToken)).Want(200)
		}
		if !slices.Contains(w.Fired(), auth.EventMessageFailed) {
			t.Error("nobody was told of what was held back")
		}
		if list := w.Sent("ada@example.com"); len(list) > 1+5+25/12 {
			t.Errorf("%d mails: %v", len(list), list)
		}
	})
	t.Run("sign-up and deletion", func(t *testing.T) {
		w := harness.NewWorld(t, auth.WithSettings(auth.Settings{AccountDeletion: auth.On}))
		made := 0
		for i := range 12 {
			a := w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}, harness.FromAddress(i))
			if a.Status != http.StatusOK {
				a.Want(429, auth.CodeRateLimited)
				continue
			}
			made++
			w.Do("DELETE", "/me", nil, harness.Bearer(a.Session().AccessToken)).Want(204)
		}
		if list := w.Sent("ada@example.com"); made != 5 || len(list) != 5 {
			t.Errorf("%d accounts, mails %v", made, list)
		}
	})
	t.Run("sign-ups at providers", func(t *testing.T) {
		w, idp := harness.NewProviderWorld(t)
		made := 0
		for i := range 40 {
			who := authtest.Person{Subject: fmt.Sprintf("s%d", i), Email: fmt.Sprintf("a%d@example.com", i), Name: "Ada"}
			a := w.NewVisitor(idp).SignIn("oidc", who, "")
			if a.Status == http.StatusOK {
				made++
			} else {
				a.Want(429, auth.CodeRateLimited)
			}
		}
		if made != 20 {
			t.Errorf("%d accounts", made)
		}
	})
}

func passwordNo(i int) string { return fmt.Sprintf("%s number %d", harness.GoodPassword, i) }

// The owner is notified, even if a thief uses up the limits first.
func TestNoticesReachTheOwner(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.Member("ada@example.com")
	now := harness.GoodPassword
	for i := range 10 { // as many as a day has
		w.Do("POST", "/me/password", map[string]any{"current_password": now, "new_password": passwordNo(i)}, harness.Bearer(s.AccessToken)).Want(200)
		now = passwordNo(i)
	}
	notices := slices.DeleteFunc(w.Sent("ada@example.com"), func(k auth.Kind) bool { return k != auth.KindPasswordChanged })
	if len(notices) != 10 {
		t.Errorf("%d notices", len(notices))
	}
}

// Beyond the limit of a kind, a flood is held back, and no other kind with it.
func TestNoticesOfAKindAreLimited(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{NoticesPerAddress: auth.Rate{Burst: 2, Per: time.Hour}}))
	s := w.Member("ada@example.com")
	now := harness.GoodPassword
	for i := range 4 {
		w.Do("POST", "/me/password", map[string]any{"current_password": now, "new_password": passwordNo(i)}, harness.Bearer(s.AccessToken)).Want(200)
		now = passwordNo(i)
	}
	if held := slices.DeleteFunc(w.Fired(), func(e auth.EventType) bool { return e != auth.EventMessageFailed }); len(held) != 2 {
		t.Errorf("%d messages held back", len(held))
	}
	w.Do("PATCH", "/me", map[string]any{"email": "new@example.com"}, harness.Bearer(s.AccessToken)).Want(200)
	list := w.Sent("ada@example.com")
	n := len(slices.DeleteFunc(slices.Clone(list), func(k auth.Kind) bool { return k != auth.KindPasswordChanged }))
	if n != 2 || !slices.Contains(list, auth.KindEmailChangeRequested) {
		t.Errorf("sent %v", list)
	}
}

// Each endpoint that creates an account draws from the same limit. A link or code that
// creates the account stays valid after a refusal.
func TestEveryNewAccountDraws(t *testing.T) {
	w, idp := harness.NewProviderWorld(t, auth.WithRateLimits(auth.RateLimits{SignupPerIP: auth.Rate{Burst: 1, Per: time.Minute}}))
	links := map[string]string{"a": w.MagicLink("magic@example.com", map[string]any{"redirect_to": "https://app.test/"}), "b": w.MagicLink("json@example.com", nil)}
	code := w.PhoneCode(harness.PhoneNumber)
	who := func(s string) authtest.Person {
		return authtest.Person{Subject: s, Email: s + "@example.com", EmailVerified: true}
	}
	doors := map[string]func() *harness.Answer{
		"sign-up": func() *harness.Answer {
			return w.Do("POST", "/signup", map[string]any{"email": "new@example.com", "password": harness.GoodPassword})
		},
		"sign-up by phone": func() *harness.Answer {
			return w.Do("POST", "/signup", map[string]any{"phone": "+4930777777", "password": harness.GoodPassword})
		},
		"link": func() *harness.Answer {
			return w.Do("POST", "/magic-link/verify", "token="+links["a"], harness.Form, harness.Browser)
		},
		"link of a program": func() *harness.Answer {
			return w.Do("POST", "/magic-link/verify", map[string]any{"token": links["b"]})
		},
		"code":     func() *harness.Answer { return w.PostOTP(harness.PhoneNumber, code) },
		"provider": func() *harness.Answer { return w.NewVisitor(idp).SignIn("oidc", who("p1"), "") },
		"provider, unverified": func() *harness.Answer {
			return w.NewVisitor(idp).SignIn("oidc", authtest.Person{Subject: "p2", Email: "p2@example.com"}, "")
		},
		"ID token": func() *harness.Answer {
			return w.Do("POST", "/oauth/oidc/id-token", map[string]any{"id_token": idp.IDToken("oidc", who("p3"), "")})
		},
	}
	w.PostSignUp("first@example.com")
	for name, door := range doors {
		if a := door(); a.Status != http.StatusTooManyRequests {
			t.Errorf("%s: %d: %s", name, a.Status, a.Body)
		}
	}
	for _, name := range []string{"link", "link of a program", "code"} {
		w.Clock.Advance(time.Minute)
		if a := doors[name](); a.Status != map[string]int{"link": http.StatusSeeOther, "link of a program": http.StatusOK, "code": http.StatusOK}[name] {
			t.Errorf("%s did not stay good: %d: %s", name, a.Status, a.Body)
		}
	}
}

// tapWorld is a service on a store that records its calls for a test.
func tapWorld(t *testing.T, opts ...auth.Option) (*harness.World, *storetap.Tap) {
	t.Helper()
	tap := storetap.New(harness.NewStore(t))
	w := &harness.World{T: t, Log: &harness.SyncBuffer{}}
	w.Env = authtest.NewOn(t, tap, append([]auth.Option{auth.WithHooks(auth.Hooks{OnEvent: w.Record})}, opts...)...)
	return w, tap
}

// A limit bounds password changes by a caller who knows the password. A reset does not count
// against it.
func TestPasswordChangesAreLimited(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.Member("ada@example.com")
	now := harness.GoodPassword
	change := func(i int) *harness.Answer {
		return w.Do("POST", "/me/password", map[string]any{"current_password": now, "new_password": passwordNo(i)}, harness.Bearer(s.AccessToken))
	}
	for i := range 10 {
		change(i).Want(200)
		now = passwordNo(i)
	}
	change(10).Want(429, auth.CodeRateLimited)
	w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
	w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken("ada@example.com", auth.KindResetPassword), "new_password": harness.GoodPassword}).Want(200)
	s, now = w.SignInAgain("ada@example.com"), harness.GoodPassword
	change(11).Want(429, auth.CodeRateLimited)
	w.Clock.Advance(24 * time.Hour / 10)
	s = w.SignInAgain("ada@example.com")
	change(12).Want(200)
}

// An account with an address that a provider has verified gets no verification mail and
// draws once, for the account alone.
func TestProvedAddressesDrawNoMail(t *testing.T) {
	w, idp := harness.NewProviderWorld(t, auth.WithRateLimits(auth.RateLimits{SendPerIP: auth.Rate{Burst: 1, Per: time.Hour}, SignupPerIP: auth.Rate{Burst: 3, Per: time.Hour}}))
	for _, name := range []string{"ada", "bob", "cyd"} {
		w.NewVisitor(idp).SignIn("google", authtest.Person{Subject: name, Email: name + "@example.com", EmailVerified: true}, "").Session()
	}
	w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
	w.NewVisitor(idp).SignIn("google", authtest.Person{Subject: "dan", Email: "dan@example.com", EmailVerified: true}, "").Want(429, auth.CodeRateLimited)
}

// A stranger who requests sign-in links, resets and phone codes for another person all day
// does not keep the owner out: on a known device, the requests are counted and the links and
// codes replaced separately. Other devices have no limits of their own.
func TestStrangersRequestsKeepNobodyOut(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.Member(harness.AdaMail)
	w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Laptop)).Want(200)
	phone, at := harness.PhoneNumber, w.Clock.Now()
	w.Patch(s.User.ID, store.UserPatch{Phone: &phone, PhoneVerifiedAt: &at})
	w.Clock.Advance(2 * time.Hour)
	to := map[string]map[string]any{
		"/magic-link/send": {"email": harness.AdaMail, "redirect_to": harness.AppURL, "code_challenge": harness.ChallengeOf(harness.Verifier)},
		"/forgot-password": {"email": harness.AdaMail}, "/otp/send": {"phone": harness.PhoneNumber},
	}
	for path, body := range to {
		for i := range 6 {
			a := w.Do("POST", path, body, harness.FromAddress(i), harness.OnDevice(harness.Mobile))
			if w.Clock.Advance(61 * time.Second); i == 5 {
				a.Want(429, auth.CodeRateLimited)
			}
		}
	}
	send := func(path string, body map[string]any, kind auth.Kind) (m auth.Message, request string) {
		w.T.Helper()
		seen := w.MailsSeen()
		answer := harness.DecodeAs[map[string]string](w.Do("POST", path, body, harness.OnDevice(harness.Laptop)).Want(200))
		recipient := harness.AdaMail
		if kind == auth.KindPhoneCode {
			recipient = harness.PhoneNumber
		}
		return w.NewMail(recipient, kind, seen), answer["request_id"]
	}
	text, id := send("/otp/send", to["/otp/send"], auth.KindPhoneCode)
	w.OTPOf(harness.PhoneNumber, text.Code, id).Want(200)
	link, id := send("/magic-link/send", map[string]any{"email": harness.AdaMail}, auth.KindMagicLink)
	reset, _ := send("/forgot-password", to["/forgot-password"], auth.KindResetPassword)
	w.Clock.Advance(8 * time.Minute) // the stranger has another request of each kind
	for path, body := range to {
		w.Do("POST", path, body, harness.FromAddress(7)).Want(200)
	}
	code := map[string]any{"email": harness.AdaMail, "code": harness.OtherNumber(link.Code), "request_id": id}
	w.Do("POST", "/magic-link/verify", code).Want(400, auth.CodeInvalidCode)
	code["code"] = link.Code
	w.Do("POST", "/magic-link/verify", code).Want(200)
	w.Do("POST", "/reset-password", map[string]any{"token": harness.TokenIn(t, reset.Link), "new_password": "another horse battery"}).Want(200)
}

// All known devices of an account together have as many requests as all other clients.
func TestKnownDevicesShareTheirRequests(t *testing.T) {
	w := harness.NewWorld(t)
	w.Member(harness.AdaMail)
	devices := []harness.Header{harness.OnDevice(harness.Laptop), harness.OnDevice(harness.Mobile)}
	for _, d := range devices {
		w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), d).Want(200)
	}
	for i := range 6 {
		a := w.Do("POST", "/magic-link/send", map[string]any{"email": harness.AdaMail}, devices[i%2])
		if w.Clock.Advance(61 * time.Second); i == 5 {
			a.Want(429, auth.CodeRateLimited)
		} else {
			a.Want(200)
		}
	}
	w.Do("POST", "/magic-link/send", map[string]any{"email": harness.AdaMail}).Want(200)
}

// The devices of an unverified account may be those of a stranger, and have no limits of
// their own.
func TestUnverifiedAccountsDevicesHaveNoRequestsOfTheirOwn(t *testing.T) {
	w := harness.NewWorld(t)
	w.Do("POST", "/signup", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Laptop)).Want(200)
	for i := range 6 {
		a := w.Do("POST", "/magic-link/send", map[string]any{"email": harness.AdaMail}, harness.FromAddress(i))
		if w.Clock.Advance(61 * time.Second); i == 5 {
			a.Want(429, auth.CodeRateLimited)
		}
	}
	w.Do("POST", "/magic-link/send", map[string]any{"email": harness.AdaMail}, harness.OnDevice(harness.Laptop)).Want(429, auth.CodeRateLimited)
}
