package mail_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/store"
)

func TestMailCodeSignsIn(t *testing.T) {
	w := harness.NewWorld(t)
	m := w.AskByMail(harness.AdaMail, nil)
	if !regexp.MustCompile(`^\d{6}$`).MatchString(m.Code) || m.Request == "" {
		t.Fatalf("mail %+v", m)
	}
	if text := w.Mail(t, harness.AdaMail, auth.KindMagicLink); !strings.Contains(text.Text, m.Code) || !strings.Contains(text.HTML, m.Code) || strings.Contains(text.Subject, m.Code) {
		t.Errorf("message %+v", text)
	}
	s := w.ByCode(harness.AdaMail, m.Code[:3]+" "+m.Code[3:], m.Request, nil).Session() // as people type it
	w.WantEvents(auth.EventSignedUp, auth.EventSignedIn)
	if !s.User.EmailVerified || s.User.Email == "" || !w.Alive(s.AccessToken) {
		t.Errorf("user %+v", s.User)
	}
	w.ByCode(harness.AdaMail, m.Code, m.Request, nil).Want(400, auth.CodeInvalidCode) // once
	w.Do("POST", "/magic-link/verify", map[string]any{"token": m.Token}).Want(400, auth.CodeInvalidToken)
	w.Clock.Advance(time.Minute)
	m = w.AskByMail(harness.AdaMail, nil)
	w.Do("POST", "/magic-link/verify", map[string]any{"token": m.Token}).Want(200)
	w.ByCode(harness.AdaMail, m.Code, m.Request, nil).Want(400, auth.CodeInvalidCode) // died with the link
	w.Clock.Advance(time.Minute)
	m = w.AskByMail(harness.AdaMail, nil)
	if again := w.ByCode("ADA@example.com", m.Code, m.Request, nil).Session(); again.User.ID != s.User.ID {
		t.Error("another account")
	}
}

func TestMailCodeRefuses(t *testing.T) {
	w := harness.NewWorld(t)
	m := w.AskByMail(harness.AdaMail, nil)
	elsewhere := w.AskByMail("bob@example.com", nil)
	for name, body := range map[string]map[string]any{
		"no code":    {"email": harness.AdaMail, "request_id": m.Request},
		"no address": {"code": m.Code, "request_id": m.Request},
		"no request": {"email": harness.AdaMail, "code": m.Code},
		"nothing":    {},
	} {
		if a := w.Do("POST", "/magic-link/verify", body); a.Status != 422 {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	for name, a := range map[string]*harness.Answer{
		"request of another address": w.ByCode(harness.AdaMail, m.Code, elsewhere.Request, nil),
		"code of another address":    w.ByCode(harness.AdaMail, elsewhere.Code, m.Request, nil),
		"forged request":             w.ByCode(harness.AdaMail, m.Code, strings.Repeat("A", 54), nil),
		"a verifier of nothing":      w.ByCode(harness.AdaMail, m.Code, m.Request, map[string]any{"code_verifier": strings.Repeat("v", 43)}),
		"nobody's":                   w.ByCode("nobody@example.com", m.Code, m.Request, nil),
		"as a phone's":               w.Do("POST", "/magic-link/verify", map[string]any{"email": harness.AdaMail, "code": harness.OtherNumber(m.Code), "request_id": m.Request}),
	} {
		t.Run(name, func(t *testing.T) { a.T = t; a.Want(400, auth.CodeInvalidCode) })
	}
	w.Clock.Advance(10*time.Minute - time.Second)
	if a := w.ByCode(harness.AdaMail, harness.OtherNumber(m.Code), m.Request, nil); a.Status != 400 {
		t.Errorf("%s", a.Body)
	}
	w.Clock.Advance(time.Second) // the code is expired, the link is not
	w.ByCode(harness.AdaMail, m.Code, m.Request, nil).Want(400, auth.CodeInvalidCode)
	w.Do("POST", "/magic-link/verify", map[string]any{"token": m.Token}).Want(200)
}

// A code that was requested with a challenge needs the verifier. A request without it uses
// up neither the code, the link nor an attempt.
func TestMailCodeIsBoundToItsChallenge(t *testing.T) {
	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	bound := map[string]any{"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256"}
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{SendGap: harness.NoLimit}))
	stranger := w.AskByMail(harness.AdaMail, nil) // asks first, and so has an id of a request without a challenge
	m := w.AskByMail(harness.AdaMail, bound)
	for range 7 { // more often than the limit of attempts
		w.ByCode(harness.AdaMail, m.Code, m.Request, nil).Want(400, auth.CodeInvalidCode)
		w.ByCode(harness.AdaMail, m.Code, m.Request, map[string]any{"code_verifier": strings.Repeat("w", 43)}).Want(400, auth.CodeInvalidCode)
		w.Do("POST", "/magic-link/verify", map[string]any{"token": m.Token}).Want(400, auth.CodeBadCodeVerifier)
		w.Do("POST", "/magic-link/verify", map[string]any{"token": m.Token, "code_verifier": strings.Repeat("w", 43)}).Want(400, auth.CodeBadCodeVerifier)
	}
	w.ByCode(harness.AdaMail, m.Code, stranger.Request, nil).Want(400, auth.CodeInvalidCode) // in another's flow
	if a := w.Do("POST", "/magic-link/verify", "token="+m.Token, harness.Form).Want(200); !strings.Contains(string(a.Body), m.Code) {
		t.Errorf("the page does not show the code: %s", a.Body)
	}
	w.ByCode(harness.AdaMail, m.Code, m.Request, map[string]any{"code_verifier": verifier}).Session()
}

// A magic link without a redirect signs no one in where there are no cookies: its page shows
// the code and uses up nothing, however it is opened.
func TestLinkToNowhereShowsItsCode(t *testing.T) {
	for name, opts := range map[string][]auth.Option{
		"pages": nil, "by GET": {auth.WithLinks(auth.LinkOptions{SignInByGET: true})},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, opts...)
			m := w.AskByMail(harness.AdaMail, nil)
			for _, a := range []*harness.Answer{
				w.Do("GET", "/magic-link/verify?token="+m.Token, nil, harness.Browser),
				w.Do("POST", "/magic-link/verify", "token="+m.Token, harness.Form),
				w.Do("GET", "/magic-link/verify?token="+m.Token, nil, harness.Browser, harness.Header{Name: "Accept-Language", Value: "de"}),
			} {
				if a.Want(200); !strings.Contains(string(a.Body), ">"+m.Code+"<") || len(a.Header.Values("Set-Cookie")) > 0 || strings.Contains(string(a.Body), "<form") {
					t.Errorf("page %s", a.Body)
				}
			}
			if _, err := w.Store.User(t.Context(), store.ByEmail(harness.AdaMail)); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("the page made an account: %v", err)
			}
			w.ByCode(harness.AdaMail, m.Code, m.Request, nil).Session()
			w.Do("GET", "/magic-link/verify?token="+m.Token, nil, harness.Browser).Want(400)
		})
	}
	w := harness.NewWorld(t)
	m := w.AskByMail(harness.AdaMail, nil)
	w.Clock.Advance(10 * time.Minute)
	if a := w.Do("GET", "/magic-link/verify?token="+m.Token, nil, harness.Browser).Want(400); strings.Contains(string(a.Body), m.Code) {
		t.Error("it shows a code that is over")
	}
}

// guessers are clients with many IP addresses that attempt codes for one email address in
// parallel, each many times, with the id of a request.
func guessers(t *testing.T, envs []*authtest.Env, request string, codes []string) (counts map[auth.Code]int, in int) {
	t.Helper()
	var (
		wg sync.WaitGroup
		mu sync.Mutex
	)
	counts = map[auth.Code]int{}
	for i, code := range codes {
		ctx := auth.ContextWithClient(t.Context(), auth.Client{IP: netip.MustParseAddr(fmt.Sprintf("198.51.%d.%d", i/200, i%200+1))})
		wg.Go(func() {
			_, err := envs[i%len(envs)].VerifyMagicLink(ctx, auth.VerifyMagicLinkParams{Email: harness.AdaMail, Code: code, RequestID: request})
			var e *auth.Error
			if err != nil && !errors.As(err, &e) {
				t.Errorf("error %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				in++
			} else {
				counts[e.Code]++
			}
		})
	}
	wg.Wait()
	return counts, in
}

// Two hundred parallel attempts by as many clients over two instances on one store: no more
// than the limit are checked, and the right code beyond it is refused. Sending again gives a
// new code. Only the client that requested it has its attempts, and the owner's attempts
// remain.
func TestMailCodesCannotBeGuessed(t *testing.T) {
	store, secret := harness.NewStore(t), testsecret.Of("s")
	limits := auth.WithRateLimits(auth.RateLimits{SendGap: harness.NoLimit, SendPerIP: harness.NoLimit})
	one := &harness.World{Env: authtest.NewOn(t, store, auth.WithSecret(secret), limits), T: t}
	envs := []*authtest.Env{one.Env, authtest.NewOn(t, store, auth.WithSecret(secret), limits)}
	wrong := func(code string, n int) []string {
		list := make([]string, 0, n)
		for i := 0; len(list) < n; i++ {
			if c := fmt.Sprintf("%06d", i); c != code {
				list = append(list, c)
			}
		}
		return list
	}
	thief := one.AskByMail(harness.AdaMail, nil) // the mail is not theirs: they know the id
	counts, in := guessers(t, envs, thief.Request, wrong(thief.Code, 200))
	if in != 0 || counts[auth.CodeInvalidCode] != 5 || counts[auth.CodeRateLimited] != 195 {
		t.Errorf("%d signed in, %v", in, counts)
	}
	if counts, in = guessers(t, envs, thief.Request, []string{thief.Code}); in != 0 || counts[auth.CodeRateLimited] != 1 {
		t.Errorf("the right code beyond the cap: %d, %v", in, counts)
	}
	judged := 5
	for range 3 { // resends
		thief = one.AskByMail(harness.AdaMail, nil)
		counts, in = guessers(t, envs, thief.Request, wrong(thief.Code, 100))
		judged += counts[auth.CodeInvalidCode]
		if in != 0 || counts[auth.CodeInvalidCode] > 5 {
			t.Errorf("%d signed in, %v", in, counts)
		}
	}
	if judged > 20 {
		t.Errorf("%d guesses were judged", judged)
	}
	owner := one.AskByMail(harness.AdaMail, nil) // the fifth in the hour
	one.Do("POST", "/magic-link/send", map[string]any{"email": harness.AdaMail}).Want(429)
	if counts, in = guessers(t, envs, owner.Request, []string{harness.OtherNumber(owner.Code), owner.Code}); in > 1 || counts[auth.CodeRateLimited] != 0 {
		t.Errorf("the owner: %d, %v", in, counts)
	} else if in == 0 {
		t.Error("the owner is locked out")
	}
}

// One client has ten wrong attempts an hour at an email address, and thirty a day, however
// often it requests a code.
func TestMailCodesAnHourAndADay(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{SendGap: harness.NoLimit, SendPerAddress: harness.NoLimit, SendPerIP: harness.NoLimit}))
	hour := func() (judged int) {
		for range 4 {
			m := w.AskByMail(harness.AdaMail, nil)
			for range 5 {
				if w.ByCode(harness.AdaMail, harness.OtherNumber(m.Code), m.Request, nil).Status == 400 {
					judged++
				}
			}
		}
		return judged
	}
	if n := hour(); n != 10 {
		t.Errorf("%d in the first hour", n)
	}
	total := 10
	for range 23 {
		w.Clock.Advance(time.Hour)
		total += hour()
	}
	if total > 60 { // thirty at once, and the refill of a day
		t.Errorf("%d in a day", total)
	}
	m := w.AskByMail(harness.AdaMail, nil)
	if a := w.ByCode(harness.AdaMail, m.Code, m.Request, nil, harness.Header{Name: "RemoteAddr", Value: "203.0.113.5:1"}); a.Status != 200 {
		t.Errorf("the owner elsewhere: %s", a.Body)
	}
}

// Of parallel uses of a link and its code one wins.
func TestParallelLinkAndCode(t *testing.T) {
	w := harness.NewWorld(t)
	m := w.AskByMail(harness.AdaMail, nil)
	var wg sync.WaitGroup
	won := make(chan string, 20)
	for i := range 20 {
		p := auth.VerifyMagicLinkParams{Token: m.Token}
		if i%2 == 0 {
			p = auth.VerifyMagicLinkParams{Email: harness.AdaMail, Code: m.Code, RequestID: m.Request}
		}
		wg.Go(func() {
			tokens, err := w.VerifyMagicLink(t.Context(), p)
			if err == nil {
				won <- tokens.SessionID
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Errorf("%d won", len(won))
	}
}

// A stranger's request for a code is answered alike for a known and an unknown account.
func TestMailStrangers(t *testing.T) {
	w := harness.NewWorld(t)
	w.Member(harness.AdaMail)
	for _, email := range []string{harness.AdaMail, "nobody@example.com"} {
		a := w.Do("POST", "/magic-link/send", map[string]any{"email": email, "create_user": false}).Want(200)
		id := harness.DecodeAs[map[string]string](a)["request_id"]
		if len(harness.DecodeAs[map[string]any](a)) != 1 || len(id) != 54 {
			t.Errorf("%s: %s", email, a.Body)
		}
		for range 5 {
			w.ByCode(email, "000000", id, nil).Want(400, auth.CodeInvalidCode)
		}
		w.ByCode(email, "000000", id, nil).Want(429, auth.CodeRateLimited)
	}
}

// A code takes an unverified account over: everything that was set up is deleted, and the
// mail says so.
func TestMailCodeEndsPreHijack(t *testing.T) {
	w := harness.NewWorld(t)
	attacker := w.PostSignUp(harness.AdaMail)
	m := w.AskByMail(harness.AdaMail, nil)
	owner := w.ByCode(harness.AdaMail, m.Code, m.Request, nil).Session()
	if owner.User.ID != attacker.User.ID || w.Alive(attacker.AccessToken) || !w.Alive(owner.AccessToken) {
		t.Error("it is not the owner's alone")
	}
	w.Do("POST", "/login", map[string]any{"email": harness.AdaMail, "password": harness.GoodPassword}).Want(401, auth.CodeInvalidCredentials)
	w.Mail(t, harness.AdaMail, auth.KindTakenOver)

	// Within a session of the account it drops nothing.
	bob := w.PostSignUp("bob@example.com")
	m = w.AskByMail("bob@example.com", nil)
	w.ByCode("bob@example.com", m.Code, m.Request, nil, harness.Bearer(bob.AccessToken)).Session()
	if !w.Alive(bob.AccessToken) {
		t.Error("the first proof within a session dropped it")
	}
}

func TestMailCodeAsksForTheSecondFactor(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.Member(harness.AdaMail)
	w.Enrol(s.AccessToken)
	m := w.AskByMail(harness.AdaMail, nil)
	w.ByCode(harness.AdaMail, m.Code, m.Request, nil).Want(403, auth.CodeMFARequired)
	off := harness.NewWorld(t, auth.WithSettings(auth.Settings{MagicLink: auth.Off, Passkey: auth.Off}))
	off.ByCode(harness.AdaMail, "123456", "x", nil).Want(403, auth.CodeMethodDisabled)
}
