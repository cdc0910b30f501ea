package auth_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// bound is what a link is asked for with that only the holder of verifier can use.
func bound() map[string]any {
	return map[string]any{"redirect_to": appURL, "code_challenge": challengeOf(verifier), "code_challenge_method": "S256"}
}

// openers are the ways to open a link that answer with a redirect and a code.
func openers() map[string]func(w *world, token string) *answer {
	return map[string]func(w *world, token string) *answer{
		"the page's button": func(w *world, token string) *answer {
			return w.do("POST", "/magic-link/verify", "token="+token, form, browser)
		},
		"a program's GET": func(w *world, token string) *answer { return w.do("GET", "/magic-link/verify?token="+token, nil) },
		"a program's POST": func(w *world, token string) *answer {
			return w.do("POST", "/magic-link/verify", map[string]any{"token": token})
		},
	}
}

// opened is the code that a link leads on with.
func (w *world) opened(token string) string {
	w.t.Helper()
	return w.codeOf(w.do("POST", "/magic-link/verify", "token="+token, form, browser))
}

func (w *world) codeOf(a *answer) string {
	w.t.Helper()
	return a.want(303).location().Query().Get("code")
}

func (w *world) exchange(code, verifier string) *answer {
	w.t.Helper()
	return w.do("POST", "/exchange", map[string]any{"code": code, "code_verifier": verifier})
}

// A link that was asked for with a code challenge is not spent where it is opened
// without the verifier, however often and by whomever: the code that it leads on
// with refers to it, and dies with the first try.
func TestBoundLinkIsNotSpentByOpening(t *testing.T) {
	for name, open := range openers() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			token := w.magicLink(adaMail, bound())
			w.fired()
			for _, bad := range []string{"", strings.Repeat("w", 43), challengeOf(verifier)} {
				code := w.codeOf(open(w, token))
				w.exchange(code, bad).want(400, auth.CodeBadCodeVerifier)
				w.exchange(code, verifier).want(400, auth.CodeInvalidCode) // dead
			}
			w.wantEvents()
			if _, err := w.Store.User(t.Context(), store.ByEmail(adaMail)); err == nil {
				t.Error("opening the link made an account")
			}
			first, second := w.codeOf(open(w, token)), w.codeOf(open(w, token))
			if s := w.exchange(first, verifier).session(); s.User.Email != adaMail || !s.User.EmailVerified {
				t.Errorf("user %+v", s.User)
			}
			w.wantEvents(auth.EventSignedUp, auth.EventSignedIn)
			w.exchange(second, verifier).want(400, auth.CodeInvalidCode) // the link is spent
			w.exchange(first, verifier).want(400, auth.CodeInvalidCode)
			open(w, token).want(400)
		})
	}
}

// The code beside a bound link lives as long as the link does, and both die together.
func TestBoundLinkAndItsMailCode(t *testing.T) {
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{SendGap: noLimit}))
	m := w.askByMail(adaMail, bound())
	code := w.opened(m.token)
	w.byCode(adaMail, m.code, m.request, map[string]any{"code_verifier": verifier}).session()
	w.exchange(code, verifier).want(400, auth.CodeInvalidCode)

	m = w.askByMail(adaMail, bound())
	w.exchange(w.opened(m.token), verifier).session()
	w.byCode(adaMail, m.code, m.request, map[string]any{"code_verifier": verifier}).want(400, auth.CodeInvalidCode)
	w.do("POST", "/magic-link/verify", map[string]any{"token": m.token, "code_verifier": verifier}).want(400, auth.CodeInvalidToken)
}

// What ends a link ends the codes that refer to it.
func TestBoundCodeDiesWithItsLink(t *testing.T) {
	for name, end := range map[string]func(w *world, token string){
		"a newer link": func(w *world, _ string) { w.do("POST", "/magic-link/send", map[string]any{"email": adaMail}).want(200) },
		"the link used": func(w *world, token string) {
			w.do("POST", "/magic-link/verify", map[string]any{"token": token, "code_verifier": verifier}).session()
		},
		"its own time": func(w *world, _ string) { w.Clock.Advance(time.Minute) },
		"the account deleted": func(w *world, _ string) {
			u, err := w.Store.User(w.t.Context(), store.ByEmail(adaMail))
			if err == nil {
				err = w.DeleteUser(w.t.Context(), auth.DeleteUserParams{Caller: auth.ByApplication(u.ID)})
			}
			if err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, auth.WithRateLimits(auth.RateLimits{SendGap: noLimit}))
			w.member(adaMail)
			token := w.magicLink(adaMail, bound())
			code := w.opened(token)
			end(w, token)
			w.exchange(code, verifier).want(400, auth.CodeInvalidCode)
		})
	}
}

// Whatever the redemption of a link does happens at the exchange: a takeover unless
// the button was pressed within a session of the account, the second factor, a ban.
func TestBoundLinkDoesWhatLinksDo(t *testing.T) {
	t.Run("takeover", func(t *testing.T) {
		w := newWorld(t)
		attacker := w.signUp(adaMail)
		code := w.opened(w.magicLink(adaMail, bound()))
		if !w.alive(attacker.AccessToken) {
			t.Error("opening the link took the account over")
		}
		owner := w.exchange(code, verifier).session()
		if w.alive(attacker.AccessToken) || owner.User.ID != attacker.User.ID {
			t.Error("the attacker is signed in still")
		}
		w.do("POST", "/login", map[string]any{"email": adaMail, "password": goodPassword}).want(401, auth.CodeInvalidCredentials)
		w.Mail(t, adaMail, auth.KindTakenOver)
	})
	t.Run("within a session", func(t *testing.T) {
		w := newWorld(t)
		s := w.signUp(adaMail)
		open := func() string {
			return w.codeOf(w.do("POST", "/magic-link/verify", map[string]any{"token": w.magicLink(adaMail, bound())}, bearer(s.AccessToken)))
		}
		w.exchange(open(), verifier).session()
		if !w.alive(s.AccessToken) {
			t.Error("a first proof within a session dropped it")
		}
	})
	t.Run("within a session that has ended since", func(t *testing.T) {
		w := newWorld(t)
		s := w.signUp(adaMail)
		code := w.codeOf(w.do("POST", "/magic-link/verify", map[string]any{"token": w.magicLink(adaMail, bound())}, bearer(s.AccessToken)))
		w.do("POST", "/logout", nil, bearer(s.AccessToken)).want(204)
		w.exchange(code, verifier).session()
		w.do("POST", "/login", map[string]any{"email": adaMail, "password": goodPassword}).want(401, auth.CodeInvalidCredentials)
	})
	t.Run("second factor", func(t *testing.T) {
		w := newWorld(t)
		s := w.member(adaMail)
		w.enrol(s.AccessToken)
		w.exchange(w.opened(w.magicLink(adaMail, bound())), verifier).want(403, auth.CodeMFARequired)
	})
	t.Run("ban", func(t *testing.T) {
		w := newWorld(t)
		s := w.member(adaMail)
		token := w.magicLink(adaMail, bound())
		code, until, over := w.opened(token), w.Clock.Now().Add(time.Hour), w.Clock.Now()
		w.patch(s.User.ID, store.UserPatch{BannedUntil: &until})
		w.exchange(code, verifier).want(403, auth.CodeUserBanned)
		w.do("POST", "/magic-link/verify", map[string]any{"token": token}).want(403, auth.CodeUserBanned)
		w.patch(s.User.ID, store.UserPatch{BannedUntil: &over})
		w.exchange(w.opened(token), verifier).session() // nothing was spent
	})
}

// Many codes of one bound link, redeemed at once, with the link and the code beside
// it among them: one wins.
func TestBoundLinkParallel(t *testing.T) {
	w := newWorld(t)
	m := w.askByMail(adaMail, bound())
	tries := []func() *answer{
		func() *answer {
			return w.do("POST", "/magic-link/verify", map[string]any{"token": m.token, "code_verifier": verifier})
		},
		func() *answer { return w.byCode(adaMail, m.code, m.request, map[string]any{"code_verifier": verifier}) },
	}
	for range 10 {
		code := w.opened(m.token)
		for range 2 {
			tries = append(tries, func() *answer { return w.exchange(code, verifier) })
		}
	}
	var wg sync.WaitGroup
	var won atomic.Int32
	for _, try := range tries {
		wg.Go(func() {
			switch a := try(); a.status {
			case 200:
				won.Add(1)
			case 400, 429:
			default:
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d sessions of one link", won.Load())
	}
}

// An account that a bound link makes draws the limit of whoever opened the link, not
// of the server that exchanges the code.
func TestBoundLinkDrawsForWhoOpenedIt(t *testing.T) {
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{SignupPerIP: auth.Rate{Burst: 1, Per: time.Hour}}))
	server := header{"RemoteAddr", "198.51.100.1:1"}
	for i, want := range []int{200, 200, 429} {
		from := header{"RemoteAddr", fmt.Sprintf("203.0.113.%d:1", min(i, 1))}
		token := w.magicLink(fmt.Sprintf("ada%d@example.com", i), bound())
		code := w.codeOf(w.do("POST", "/magic-link/verify", "token="+token, form, browser, from))
		w.do("POST", "/exchange", map[string]any{"code": code, "code_verifier": verifier}, server).want(want)
	}
}
