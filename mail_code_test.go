package auth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// mailed is what somebody who asked for a link has in their hands.
type mailed struct {
	code, token, request string
}

// askByMail asks for a link to sign in with, and reads the newest mail.
func (w *world) askByMail(email string, more map[string]any) mailed {
	w.t.Helper()
	seen := map[string]bool{}
	for _, m := range w.Inbox.Messages() {
		seen[m.ID] = true
	}
	body := map[string]any{"email": email}
	for k, v := range more {
		body[k] = v
	}
	a := w.do("POST", "/magic-link/send", body).want(200)
	m := w.newMail(email, auth.KindMagicLink, seen)
	return mailed{m.Code, tokenIn(w.t, m.Link), decodeAs[struct {
		ID string `json:"request_id"`
	}](a).ID}
}

// newMail waits for a message that was not seen before.
func (w *world) newMail(to string, k auth.Kind, seen map[string]bool) auth.Message {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	m, err := w.Inbox.Wait(ctx, func(m auth.Message) bool { return m.Kind == k && m.To == to && !seen[m.ID] })
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// byCode signs in with a mailed code.
func (w *world) byCode(email, code, request string, more map[string]any, h ...header) *answer {
	w.t.Helper()
	body := map[string]any{"email": email, "code": code, "request_id": request}
	for k, v := range more {
		body[k] = v
	}
	return w.do("POST", "/magic-link/verify", body, h...)
}

const adaMail = "ada@example.com"

var noLimit = auth.Rate{Burst: -1}

// tokenIn is the token of a link.
func tokenIn(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("token")
}

func TestMailCodeSignsIn(t *testing.T) {
	w := newWorld(t)
	m := w.askByMail(adaMail, nil)
	if !regexp.MustCompile(`^\d{6}$`).MatchString(m.code) || m.request == "" {
		t.Fatalf("mail %+v", m)
	}
	if text := w.Mail(t, adaMail, auth.KindMagicLink); !strings.Contains(text.Text, m.code) || !strings.Contains(text.HTML, m.code) || strings.Contains(text.Subject, m.code) {
		t.Errorf("message %+v", text)
	}
	s := w.byCode(adaMail, m.code[:3]+" "+m.code[3:], m.request, nil).session() // as people type it
	w.wantEvents(auth.EventSignedUp, auth.EventSignedIn)
	if !s.User.EmailVerified || s.User.Email == "" || !w.alive(s.AccessToken) {
		t.Errorf("user %+v", s.User)
	}
	w.byCode(adaMail, m.code, m.request, nil).want(400, auth.CodeInvalidCode) // once
	w.do("POST", "/magic-link/verify", map[string]any{"token": m.token}).want(400, auth.CodeInvalidToken)
	w.Clock.Advance(time.Minute)
	m = w.askByMail(adaMail, nil)
	w.do("POST", "/magic-link/verify", map[string]any{"token": m.token}).want(200)
	w.byCode(adaMail, m.code, m.request, nil).want(400, auth.CodeInvalidCode) // died with the link
	w.Clock.Advance(time.Minute)
	m = w.askByMail(adaMail, nil)
	if again := w.byCode("ADA@example.com", m.code, m.request, nil).session(); again.User.ID != s.User.ID {
		t.Error("another account")
	}
}

func TestMailCodeRefuses(t *testing.T) {
	w := newWorld(t)
	m := w.askByMail(adaMail, nil)
	elsewhere := w.askByMail("bob@example.com", nil)
	for name, body := range map[string]map[string]any{
		"no code":    {"email": adaMail, "request_id": m.request},
		"no address": {"code": m.code, "request_id": m.request},
		"no request": {"email": adaMail, "code": m.code},
		"nothing":    {},
	} {
		if a := w.do("POST", "/magic-link/verify", body); a.status != 422 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	for name, a := range map[string]*answer{
		"request of another address": w.byCode(adaMail, m.code, elsewhere.request, nil),
		"code of another address":    w.byCode(adaMail, elsewhere.code, m.request, nil),
		"forged request":             w.byCode(adaMail, m.code, strings.Repeat("A", 54), nil),
		"a verifier of nothing":      w.byCode(adaMail, m.code, m.request, map[string]any{"code_verifier": strings.Repeat("v", 43)}),
		"nobody's":                   w.byCode("nobody@example.com", m.code, m.request, nil),
		"as a phone's":               w.do("POST", "/magic-link/verify", map[string]any{"email": adaMail, "code": other(m.code), "request_id": m.request}),
	} {
		t.Run(name, func(t *testing.T) { a.t = t; a.want(400, auth.CodeInvalidCode) })
	}
	w.Clock.Advance(10*time.Minute - time.Second)
	if a := w.byCode(adaMail, other(m.code), m.request, nil); a.status != 400 {
		t.Errorf("%s", a.body)
	}
	w.Clock.Advance(time.Second) // the code is over, the link is not
	w.byCode(adaMail, m.code, m.request, nil).want(400, auth.CodeInvalidCode)
	w.do("POST", "/magic-link/verify", map[string]any{"token": m.token}).want(200)
}

// Whoever asked with a challenge has to show the verifier; nothing is spent
// without, neither the code, the link nor a try.
func TestMailCodeIsBoundToItsChallenge(t *testing.T) {
	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	bound := map[string]any{"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256"}
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{SendGap: noLimit}))
	stranger := w.askByMail(adaMail, nil) // asks first, and so has an id of a request without a challenge
	m := w.askByMail(adaMail, bound)
	for range 7 { // more often than there are tries
		w.byCode(adaMail, m.code, m.request, nil).want(400, auth.CodeInvalidCode)
		w.byCode(adaMail, m.code, m.request, map[string]any{"code_verifier": strings.Repeat("w", 43)}).want(400, auth.CodeInvalidCode)
		w.do("POST", "/magic-link/verify", map[string]any{"token": m.token}).want(400, auth.CodeBadCodeVerifier)
		w.do("POST", "/magic-link/verify", map[string]any{"token": m.token, "code_verifier": strings.Repeat("w", 43)}).want(400, auth.CodeBadCodeVerifier)
	}
	w.byCode(adaMail, m.code, stranger.request, nil).want(400, auth.CodeInvalidCode) // in another's flow
	if a := w.do("POST", "/magic-link/verify", "token="+m.token, form).want(200); !strings.Contains(string(a.body), m.code) {
		t.Errorf("the page does not show the code: %s", a.body)
	}
	w.byCode(adaMail, m.code, m.request, map[string]any{"code_verifier": verifier}).session()
}

// A magic link that leads nowhere signs nobody in where there are no cookies: its
// page shows the code, and spends nothing, however it is opened.
func TestLinkToNowhereShowsItsCode(t *testing.T) {
	for name, opts := range map[string][]auth.Option{
		"pages": nil, "direct": {auth.WithLinks(auth.LinkOptions{Mode: auth.DirectLinks})}, "strict": {auth.WithLinks(auth.LinkOptions{Mode: auth.StrictLinks})},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, opts...)
			m := w.askByMail(adaMail, nil)
			for _, a := range []*answer{
				w.do("GET", "/magic-link/verify?token="+m.token, nil, browser),
				w.do("POST", "/magic-link/verify", "token="+m.token, form),
				w.do("GET", "/magic-link/verify?token="+m.token, nil, browser, header{"Accept-Language", "de"}),
			} {
				if a.want(200); !strings.Contains(string(a.body), ">"+m.code+"<") || len(a.header.Values("Set-Cookie")) > 0 || strings.Contains(string(a.body), "<form") {
					t.Errorf("page %s", a.body)
				}
			}
			if _, err := w.Store.User(t.Context(), store.ByEmail(adaMail)); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("the page made an account: %v", err)
			}
			w.byCode(adaMail, m.code, m.request, nil).session()
			w.do("GET", "/magic-link/verify?token="+m.token, nil, browser).want(400)
		})
	}
	w := newWorld(t)
	m := w.askByMail(adaMail, nil)
	w.Clock.Advance(10 * time.Minute)
	if a := w.do("GET", "/magic-link/verify?token="+m.token, nil, browser).want(400); strings.Contains(string(a.body), m.code) {
		t.Error("it shows a code that is over")
	}
}

// guessers are clients of many addresses who guess at one address at once, each
// many times, with an id of a request.
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
			_, err := envs[i%len(envs)].VerifyMagicLink(ctx, auth.VerifyMagicLinkParams{Email: adaMail, Code: code, RequestID: request})
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

// Two hundred parallel guesses of as many clients over two instances on one store:
// no more than the cap are judged, and the right code among those beyond it does
// not win. Sending again gives a new code; nobody but who asks for it has its
// tries, and the owner's are left.
func TestMailCodesCannotBeGuessed(t *testing.T) {
	store, secret := newStore(t), []byte(strings.Repeat("s", 32))
	limits := auth.WithRateLimits(auth.RateLimits{SendGap: noLimit, SendPerIP: noLimit})
	one := &world{Env: authtest.NewOn(t, store, auth.WithSecret(secret), limits), t: t}
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
	thief := one.askByMail(adaMail, nil) // the mail is not theirs: they know the id
	counts, in := guessers(t, envs, thief.request, wrong(thief.code, 200))
	if in != 0 || counts[auth.CodeInvalidCode] != 5 || counts[auth.CodeRateLimited] != 195 {
		t.Errorf("%d signed in, %v", in, counts)
	}
	if counts, in = guessers(t, envs, thief.request, []string{thief.code}); in != 0 || counts[auth.CodeRateLimited] != 1 {
		t.Errorf("the right code beyond the cap: %d, %v", in, counts)
	}
	judged := 5
	for range 3 { // resends
		thief = one.askByMail(adaMail, nil)
		counts, in = guessers(t, envs, thief.request, wrong(thief.code, 100))
		judged += counts[auth.CodeInvalidCode]
		if in != 0 || counts[auth.CodeInvalidCode] > 5 {
			t.Errorf("%d signed in, %v", in, counts)
		}
	}
	if judged > 20 {
		t.Errorf("%d guesses were judged", judged)
	}
	owner := one.askByMail(adaMail, nil) // the fifth in the hour
	one.do("POST", "/magic-link/send", map[string]any{"email": adaMail}).want(429)
	if counts, in = guessers(t, envs, owner.request, []string{other(owner.code), owner.code}); in > 1 || counts[auth.CodeRateLimited] != 0 {
		t.Errorf("the owner: %d, %v", in, counts)
	} else if in == 0 {
		t.Error("the owner is locked out")
	}
}

// One client has ten wrong tries an hour at an address, and thirty a day, however
// often it asks.
func TestMailCodesAnHourAndADay(t *testing.T) {
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{SendGap: noLimit, SendPerAddress: noLimit, SendPerIP: noLimit}))
	hour := func() (judged int) {
		for range 4 {
			m := w.askByMail(adaMail, nil)
			for range 5 {
				if w.byCode(adaMail, other(m.code), m.request, nil).status == 400 {
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
	if total > 60 { // thirty at once, and what comes back over a day
		t.Errorf("%d in a day", total)
	}
	m := w.askByMail(adaMail, nil)
	if a := w.byCode(adaMail, m.code, m.request, nil, header{"RemoteAddr", "203.0.113.5:1"}); a.status != 200 {
		t.Errorf("the owner elsewhere: %s", a.body)
	}
}

// Of parallel uses of a link and its code one wins.
func TestParallelLinkAndCode(t *testing.T) {
	w := newWorld(t)
	m := w.askByMail(adaMail, nil)
	var wg sync.WaitGroup
	won := make(chan string, 20)
	for i := range 20 {
		p := auth.VerifyMagicLinkParams{Token: m.token}
		if i%2 == 0 {
			p = auth.VerifyMagicLinkParams{Email: adaMail, Code: m.code, RequestID: m.request}
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

// A code that is asked for in somebody's name is answered like the code of nobody.
func TestMailStrangers(t *testing.T) {
	w := newWorld(t)
	w.member(adaMail)
	for _, email := range []string{adaMail, "nobody@example.com"} {
		a := w.do("POST", "/magic-link/send", map[string]any{"email": email, "create_user": false}).want(200)
		id := decodeAs[map[string]string](a)["request_id"]
		if len(decodeAs[map[string]any](a)) != 1 || len(id) != 54 {
			t.Errorf("%s: %s", email, a.body)
		}
		for range 5 {
			w.byCode(email, "000000", id, nil).want(400, auth.CodeInvalidCode)
		}
		w.byCode(email, "000000", id, nil).want(429, auth.CodeRateLimited)
	}
}

// A code that takes an unproved account over: what was set up goes, and the mail
// says so.
func TestMailCodeEndsPreHijack(t *testing.T) {
	w := newWorld(t)
	attacker := w.signUp(adaMail)
	m := w.askByMail(adaMail, nil)
	owner := w.byCode(adaMail, m.code, m.request, nil).session()
	if owner.User.ID != attacker.User.ID || w.alive(attacker.AccessToken) || !w.alive(owner.AccessToken) {
		t.Error("it is not the owner's alone")
	}
	w.do("POST", "/login", map[string]any{"email": adaMail, "password": goodPassword}).want(401, auth.CodeInvalidCredentials)
	w.Mail(t, adaMail, auth.KindTakenOver)

	// Within a session of the account it drops nothing.
	bob := w.signUp("bob@example.com")
	m = w.askByMail("bob@example.com", nil)
	w.byCode("bob@example.com", m.code, m.request, nil, bearer(bob.AccessToken)).session()
	if !w.alive(bob.AccessToken) {
		t.Error("the first proof within a session dropped it")
	}
}

func TestMailCodeAsksForTheSecondFactor(t *testing.T) {
	w := newWorld(t)
	s := w.member(adaMail)
	w.enrol(s.AccessToken)
	m := w.askByMail(adaMail, nil)
	w.byCode(adaMail, m.code, m.request, nil).want(403, auth.CodeMFARequired)
	off := newWorld(t, auth.WithSettings(auth.Settings{MagicLink: auth.Off}))
	off.byCode(adaMail, "123456", "x", nil).want(403, auth.CodeMethodDisabled)
}
