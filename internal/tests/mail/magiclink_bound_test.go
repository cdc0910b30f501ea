package mail_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// openers are the requests that open a link and are answered with a redirect and a code.
func openers() map[string]func(w *harness.World, token string) *harness.Answer {
	return map[string]func(w *harness.World, token string) *harness.Answer{
		"the page's button": func(w *harness.World, token string) *harness.Answer {
			return w.Do("POST", "/magic-link/verify", "token="+token, harness.Form, harness.Browser)
		},
		"a program's POST": func(w *harness.World, token string) *harness.Answer {
			return w.Do("POST", "/magic-link/verify", map[string]any{"token": token})
		},
	}
}

// A link that was requested with a code challenge stays unused when it is opened without the
// verifier, however often and by any client. The resulting code refers to the link and
// becomes invalid with the first attempt.
func TestBoundLinkIsNotSpentByOpening(t *testing.T) {
	for name, open := range openers() {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t)
			token := w.MagicLink(harness.AdaMail, harness.BoundToBrowser())
			w.Fired()
			for _, bad := range []string{"", strings.Repeat("w", 43), harness.ChallengeOf(harness.Verifier)} {
				code := w.CodeOf(open(w, token))
				w.PostExchange(code, bad).Want(400, auth.CodeBadCodeVerifier)
				w.PostExchange(code, harness.Verifier).Want(400, auth.CodeInvalidCode) // invalid by now
			}
			w.WantEvents()
			if _, err := w.Store.User(t.Context(), store.ByEmail(harness.AdaMail)); err == nil {
				t.Error("opening the link made an account")
			}
			first, second := w.CodeOf(open(w, token)), w.CodeOf(open(w, token))
			if s := w.PostExchange(first, harness.Verifier).Session(); s.User.Email != harness.AdaMail || !s.User.EmailVerified {
				t.Errorf("user %+v", s.User)
			}
			w.WantEvents(auth.EventSignedUp, auth.EventSignedIn)
			w.PostExchange(second, harness.Verifier).Want(400, auth.CodeInvalidCode) // the link is spent
			w.PostExchange(first, harness.Verifier).Want(400, auth.CodeInvalidCode)
			open(w, token).Want(400)
		})
	}
}

// The code beside a bound link has the lifetime of the link, and both become invalid together.
func TestBoundLinkAndItsMailCode(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{SendGap: harness.NoLimit}))
	m := w.AskByMail(harness.AdaMail, harness.BoundToBrowser())
	code := w.Opened(m.Token)
	w.ByCode(harness.AdaMail, m.Code, m.Request, map[string]any{"code_verifier": harness.Verifier}).Session()
	w.PostExchange(code, harness.Verifier).Want(400, auth.CodeInvalidCode)

	m = w.AskByMail(harness.AdaMail, harness.BoundToBrowser())
	w.PostExchange(w.Opened(m.Token), harness.Verifier).Session()
	w.ByCode(harness.AdaMail, m.Code, m.Request, map[string]any{"code_verifier": harness.Verifier}).Want(400, auth.CodeInvalidCode)
	w.Do("POST", "/magic-link/verify", map[string]any{"token": m.Token, "code_verifier": harness.Verifier}).Want(400, auth.CodeInvalidToken)
}

// The end of a link also ends the codes that refer to it.
func TestBoundCodeDiesWithItsLink(t *testing.T) {
	for name, end := range map[string]func(w *harness.World, token string){
		"a newer link": func(w *harness.World, _ string) {
			w.Do("POST", "/magic-link/send", map[string]any{"email": harness.AdaMail}).Want(200)
		},
		"the link used": func(w *harness.World, token string) {
			w.Do("POST", "/magic-link/verify", map[string]any{"token": token, "code_verifier": harness.Verifier}).Session()
		},
		"its own time": func(w *harness.World, _ string) { w.Clock.Advance(time.Minute) },
		"the account deleted": func(w *harness.World, _ string) {
			u, err := w.Store.User(w.T.Context(), store.ByEmail(harness.AdaMail))
			if err == nil {
				err = w.DeleteUser(w.T.Context(), auth.DeleteUserParams{Caller: auth.ByApplication(u.ID)})
			}
			if err != nil {
				w.T.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{SendGap: harness.NoLimit}))
			w.Member(harness.AdaMail)
			token := w.MagicLink(harness.AdaMail, harness.BoundToBrowser())
			code := w.Opened(token)
			end(w, token)
			w.PostExchange(code, harness.Verifier).Want(400, auth.CodeInvalidCode)
		})
	}
}

// All effects of a link's redemption happen at the exchange: the takeover, unless the button
// was pressed within a session of the account, the second factor and the ban.
func TestBoundLinkDoesWhatLinksDo(t *testing.T) {
	t.Run("takeover", func(t *testing.T) {
		w := harness.NewWorld(t)
		attacker := w.PostSignUp(harness.AdaMail)
		code := w.Opened(w.MagicLink(harness.AdaMail, harness.BoundToBrowser()))
		if !w.Alive(attacker.AccessToken) {
			t.Error("opening the link took the account over")
		}
		owner := w.PostExchange(code, harness.Verifier).Session()
		if w.Alive(attacker.AccessToken) || owner.User.ID != attacker.User.ID {
			t.Error("the attacker is signed in still")
		}
		w.Do("POST", "/login", map[string]any{"email": harness.AdaMail, "password": harness.GoodPassword}).Want(401, auth.CodeInvalidCredentials)
		w.Mail(t, harness.AdaMail, auth.KindTakenOver)
	})
	t.Run("within a session", func(t *testing.T) {
		w := harness.NewWorld(t)
		s := w.PostSignUp(harness.AdaMail)
		open := func() string {
			return w.CodeOf(w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink(harness.AdaMail, harness.BoundToBrowser())}, harness.Bearer(s.AccessToken)))
		}
		w.PostExchange(open(), harness.Verifier).Session()
		if !w.Alive(s.AccessToken) {
			t.Error("a first proof within a session dropped it")
		}
	})
	t.Run("within a session that has ended since", func(t *testing.T) {
		w := harness.NewWorld(t)
		s := w.PostSignUp(harness.AdaMail)
		code := w.CodeOf(w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink(harness.AdaMail, harness.BoundToBrowser())}, harness.Bearer(s.AccessToken)))
		w.Do("POST", "/logout", nil, harness.Bearer(s.AccessToken)).Want(204)
		w.PostExchange(code, harness.Verifier).Session()
		w.Do("POST", "/login", map[string]any{"email": harness.AdaMail, "password": harness.GoodPassword}).Want(401, auth.CodeInvalidCredentials)
	})
	t.Run("second factor", func(t *testing.T) {
		w := harness.NewWorld(t)
		s := w.Member(harness.AdaMail)
		w.Enrol(s.AccessToken)
		w.PostExchange(w.Opened(w.MagicLink(harness.AdaMail, harness.BoundToBrowser())), harness.Verifier).Want(403, auth.CodeMFARequired)
	})
	t.Run("ban", func(t *testing.T) {
		w := harness.NewWorld(t)
		s := w.Member(harness.AdaMail)
		token := w.MagicLink(harness.AdaMail, harness.BoundToBrowser())
		code, until, over := w.Opened(token), w.Clock.Now().Add(time.Hour), w.Clock.Now()
		w.Patch(s.User.ID, store.UserPatch{BannedUntil: &until})
		w.PostExchange(code, harness.Verifier).Want(403, auth.CodeUserBanned)
		w.Do("POST", "/magic-link/verify", map[string]any{"token": token}).Want(403, auth.CodeUserBanned)
		w.Patch(s.User.ID, store.UserPatch{BannedUntil: &over})
		w.PostExchange(w.Opened(token), harness.Verifier).Session() // nothing was spent
	})
}

// Many codes of one bound link, redeemed at once, with the link and the code beside
// it among them: one wins.
func TestBoundLinkParallel(t *testing.T) {
	w := harness.NewWorld(t)
	m := w.AskByMail(harness.AdaMail, harness.BoundToBrowser())
	tries := []func() *harness.Answer{
		func() *harness.Answer {
			return w.Do("POST", "/magic-link/verify", map[string]any{"token": m.Token, "code_verifier": harness.Verifier})
		},
		func() *harness.Answer {
			return w.ByCode(harness.AdaMail, m.Code, m.Request, map[string]any{"code_verifier": harness.Verifier})
		},
	}
	for range 10 {
		code := w.Opened(m.Token)
		for range 2 {
			tries = append(tries, func() *harness.Answer { return w.PostExchange(code, harness.Verifier) })
		}
	}
	var wg sync.WaitGroup
	var won atomic.Int32
	for _, try := range tries {
		wg.Go(func() {
			switch a := try(); a.Status {
			case 200:
				won.Add(1)
			case 400, 429:
			default:
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d sessions of one link", won.Load())
	}
}

// An account that a bound link creates counts against the limit of the client that opened
// the link, not of the server that exchanges the code.
func TestBoundLinkDrawsForWhoOpenedIt(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{SignupPerIP: auth.Rate{Burst: 1, Per: time.Hour}}))
	server := harness.Header{Name: "RemoteAddr", Value: "198.51.100.1:1"}
	for i, want := range []int{200, 200, 429} {
		from := harness.Header{Name: "RemoteAddr", Value: fmt.Sprintf("203.0.113.%d:1", min(i, 1))}
		token := w.MagicLink(fmt.Sprintf("ada%d@example.com", i), harness.BoundToBrowser())
		code := w.CodeOf(w.Do("POST", "/magic-link/verify", "token="+token, harness.Form, harness.Browser, from))
		w.Do("POST", "/exchange", map[string]any{"code": code, "code_verifier": harness.Verifier}, server).Want(want)
	}
}
