package auth_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
)

// sent closes the service and returns what it sent to an address.
func (w *world) sent(to string) (list []auth.Kind) {
	w.t.Helper()
	if err := w.Close(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	for _, m := range w.Inbox.Messages() {
		if m.To == to {
			list = append(list, m.Kind)
		}
	}
	return list
}

// from is a client of its own, so that limits by address do not come first.
func from(i int) header { return header{"RemoteAddr", fmt.Sprintf("198.51.100.%d:1", i)} }

// Toll fraud: each text draws from the budget, whichever door asks for it, and
// none goes out beyond it.
func TestEveryTextDrawsTheBudget(t *testing.T) {
	for _, confirm := range []auth.Switch{auth.Off, auth.On} {
		w := newWorld(t, auth.WithRateLimits(auth.RateLimits{SMSBudget: auth.Rate{Burst: 3, Per: time.Hour}}),
			auth.WithSettings(auth.Settings{RequireConfirmation: confirm}))
		phone := func(i int) string { return fmt.Sprintf("+493012345%d", i) }
		member := w.LoginAs(t, "ada@example.com")
		doors := []func(i int) *answer{
			func(i int) *answer {
				return w.do("POST", "/signup", map[string]any{"phone": phone(i), "password": goodPassword}, from(i))
			},
			func(i int) *answer {
				return w.do("POST", "/otp/send", map[string]any{"phone": phone(i)}, from(i))
			},
			func(i int) *answer {
				return w.do("PATCH", "/me", map[string]any{"phone": phone(i)}, from(i), bearer(member.AccessToken))
			},
		}
		for i, door := range doors {
			door(i).want(200)
		}
		w.fired()
		for i, door := range doors {
			door(i+4).want(429, auth.CodeRateLimited)
			w.wantEvents(auth.EventSMSBudgetExceeded)
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

// A text that goes nowhere spends nothing of the budget, but counts in every
// other way, and finds it empty like any other.
func TestDecoysSpendNoTexts(t *testing.T) {
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{SMSBudget: auth.Rate{Burst: 2, Per: time.Hour}}),
		auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	silent := func(phone string, i int) *answer {
		return w.do("POST", "/otp/send", map[string]any{"phone": phone, "create_user": false}, from(i))
	}
	signUp := func(i int) *answer {
		return w.do("POST", "/signup", map[string]any{"phone": number, "password": goodPassword}, from(i))
	}
	signUp(0).want(200)
	for i := range 3 {
		silent(fmt.Sprintf("+493012345%d", i), i).want(200)
		signUp(i).want(200) // taken: no text
	}
	silent("+4930123450", 5).want(429, auth.CodeRateLimited) // by its number
	silent(number, 5).want(200)                              // a text
	w.fired()
	for i, phone := range []string{"+4930123458", number} {
		w.Clock.Advance(time.Minute)
		silent(phone, i).want(429, auth.CodeRateLimited) // whether or not there is an account
		w.wantEvents(auth.EventSMSBudgetExceeded)
	}
}

// Whoever has not proved an address sends little to it, whatever they do.
func TestUnprovedAddressesAreNotFlooded(t *testing.T) {
	t.Run("notices", func(t *testing.T) {
		w := newWorld(t)
		s := w.signUp("ada@example.com")
		now := goodPassword
		for i := range 25 {
			a := w.do("POST", "/me/password", map[string]any{"current_password": now, "new_password": passwordNo(i)}, bearer(s.AccessToken))
			if a.status == http.StatusOK {
				now = passwordNo(i)
			} else {
				a.want(429, auth.CodeRateLimited)
			}
			s = w.enrol(s.AccessToken).session // a minute
			w.do("POST", "/2fa/disable", nil, bearer(s.AccessToken)).want(200)
		}
		if !slices.Contains(w.fired(), auth.EventMessageFailed) {
			t.Error("nobody was told of what was held back")
		}
		if list := w.sent("ada@example.com"); len(list) > 1+5+25/12 {
			t.Errorf("%d mails: %v", len(list), list)
		}
	})
	t.Run("sign-up and deletion", func(t *testing.T) {
		w := newWorld(t, auth.WithSettings(auth.Settings{AccountDeletion: auth.On}))
		made := 0
		for i := range 12 {
			a := w.do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": goodPassword}, from(i))
			if a.status != http.StatusOK {
				a.want(429, auth.CodeRateLimited)
				continue
			}
			made++
			w.do("DELETE", "/me", nil, bearer(a.session().AccessToken)).want(204)
		}
		if list := w.sent("ada@example.com"); made != 5 || len(list) != 5 {
			t.Errorf("%d accounts, mails %v", made, list)
		}
	})
	t.Run("sign-ups at providers", func(t *testing.T) {
		w, idp := providerWorld(t)
		made := 0
		for i := range 40 {
			who := authtest.Person{Subject: fmt.Sprintf("s%d", i), Email: fmt.Sprintf("a%d@example.com", i), Name: "Ada"}
			a := w.visitor(idp).signIn("oidc", who, "")
			if a.status == http.StatusOK {
				made++
			} else {
				a.want(429, auth.CodeRateLimited)
			}
		}
		if made != 20 {
			t.Errorf("%d accounts", made)
		}
	})
}

func passwordNo(i int) string { return fmt.Sprintf("%s number %d", goodPassword, i) }

// The owner is told, whatever a thief does before to use the limits up.
func TestNoticesReachTheOwner(t *testing.T) {
	w := newWorld(t)
	s := w.member("ada@example.com")
	now := goodPassword
	for i := range 10 { // as many as a day has
		w.do("POST", "/me/password", map[string]any{"current_password": now, "new_password": passwordNo(i)}, bearer(s.AccessToken)).want(200)
		now = passwordNo(i)
	}
	notices := slices.DeleteFunc(w.sent("ada@example.com"), func(k auth.Kind) bool { return k != auth.KindPasswordChanged })
	if len(notices) != 10 {
		t.Errorf("%d notices", len(notices))
	}
}

// Beyond the limit of a kind, a flood is held back, and no other kind with it.
func TestNoticesOfAKindAreLimited(t *testing.T) {
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{NoticesPerAddress: auth.Rate{Burst: 2, Per: time.Hour}}))
	s := w.member("ada@example.com")
	now := goodPassword
	for i := range 4 {
		w.do("POST", "/me/password", map[string]any{"current_password": now, "new_password": passwordNo(i)}, bearer(s.AccessToken)).want(200)
		now = passwordNo(i)
	}
	if held := slices.DeleteFunc(w.fired(), func(e auth.EventType) bool { return e != auth.EventMessageFailed }); len(held) != 2 {
		t.Errorf("%d messages held back", len(held))
	}
	w.do("PATCH", "/me", map[string]any{"email": "new@example.com"}, bearer(s.AccessToken)).want(200)
	list := w.sent("ada@example.com")
	n := len(slices.DeleteFunc(slices.Clone(list), func(k auth.Kind) bool { return k != auth.KindPasswordChanged }))
	if n != 2 || !slices.Contains(list, auth.KindEmailChangeRequested) {
		t.Errorf("sent %v", list)
	}
}

// Each door to a new account draws the same limit. Where a link or code makes the
// account, a refusal leaves it good.
func TestEveryNewAccountDraws(t *testing.T) {
	w, idp := providerWorld(t, auth.WithRateLimits(auth.RateLimits{SignupPerIP: auth.Rate{Burst: 1, Per: time.Minute}}))
	links := map[string]string{"a": w.magicLink("magic@example.com", map[string]any{"redirect_to": "https://app.test/"}), "b": w.magicLink("json@example.com", nil)}
	code := w.phoneCode(number)
	who := func(s string) authtest.Person {
		return authtest.Person{Subject: s, Email: s + "@example.com", EmailVerified: true}
	}
	doors := map[string]func() *answer{
		"sign-up": func() *answer {
			return w.do("POST", "/signup", map[string]any{"email": "new@example.com", "password": goodPassword})
		},
		"sign-up by phone": func() *answer {
			return w.do("POST", "/signup", map[string]any{"phone": "+4930777777", "password": goodPassword})
		},
		"link": func() *answer {
			return w.do("POST", "/magic-link/verify", "token="+links["a"], form, browser)
		},
		"link of a program": func() *answer {
			return w.do("GET", "/magic-link/verify?token="+links["b"], nil)
		},
		"code":     func() *answer { return w.otp(number, code) },
		"provider": func() *answer { return w.visitor(idp).signIn("oidc", who("p1"), "") },
		"provider, unverified": func() *answer {
			return w.visitor(idp).signIn("oidc", authtest.Person{Subject: "p2", Email: "p2@example.com"}, "")
		},
		"ID token": func() *answer {
			return w.do("POST", "/oauth/oidc/id-token", map[string]any{"id_token": idp.IDToken("oidc", who("p3"), "")})
		},
	}
	w.signUp("first@example.com")
	for name, door := range doors {
		if a := door(); a.status != http.StatusTooManyRequests {
			t.Errorf("%s: %d: %s", name, a.status, a.body)
		}
	}
	for _, name := range []string{"link", "link of a program", "code"} {
		w.Clock.Advance(time.Minute)
		if a := doors[name](); a.status != map[string]int{"link": http.StatusSeeOther, "link of a program": http.StatusOK, "code": http.StatusOK}[name] {
			t.Errorf("%s did not stay good: %d: %s", name, a.status, a.body)
		}
	}
}

// tapWorld is a service whose store calls a test can list.
func tapWorld(t *testing.T, opts ...auth.Option) (*world, *storetap.Tap) {
	t.Helper()
	tap := storetap.New(newStore(t))
	w := &world{t: t, log: &syncBuffer{}}
	w.Env = authtest.NewOn(t, tap, append([]auth.Option{auth.WithHooks(auth.Hooks{OnEvent: w.record})}, opts...)...)
	return w, tap
}

// Whoever knows the password cannot change it all day; a reset is no such change.
func TestPasswordChangesAreLimited(t *testing.T) {
	w := newWorld(t)
	s := w.member("ada@example.com")
	now := goodPassword
	change := func(i int) *answer {
		return w.do("POST", "/me/password", map[string]any{"current_password": now, "new_password": passwordNo(i)}, bearer(s.AccessToken))
	}
	for i := range 10 {
		change(i).want(200)
		now = passwordNo(i)
	}
	change(10).want(429, auth.CodeRateLimited)
	w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
	w.do("POST", "/reset-password", map[string]any{"token": w.linkToken("ada@example.com", auth.KindResetPassword), "new_password": goodPassword}).want(200)
	s, now = w.again("ada@example.com"), goodPassword
	change(11).want(429, auth.CodeRateLimited)
	w.Clock.Advance(24 * time.Hour / 10)
	s = w.again("ada@example.com")
	change(12).want(200)
}

// An account of an address that a provider vouches for is sent nothing to prove it,
// and draws for the account alone, once.
func TestProvedAddressesDrawNoMail(t *testing.T) {
	w, idp := providerWorld(t, auth.WithRateLimits(auth.RateLimits{SendPerIP: auth.Rate{Burst: 1, Per: time.Hour}, SignupPerIP: auth.Rate{Burst: 3, Per: time.Hour}}))
	for _, name := range []string{"ada", "bob", "cyd"} {
		w.visitor(idp).signIn("google", authtest.Person{Subject: name, Email: name + "@example.com", EmailVerified: true}, "").session()
	}
	w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
	w.visitor(idp).signIn("google", authtest.Person{Subject: "dan", Email: "dan@example.com", EmailVerified: true}, "").want(429, auth.CodeRateLimited)
}
