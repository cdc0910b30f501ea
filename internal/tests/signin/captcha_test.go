package signin_test

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
)

// solver is a Verifier that accepts "good" tokens, fails at "down" and refuses others.
type solver struct {
	asked []string
	wait  time.Duration // that the last had at most
}

func (s *solver) Verify(ctx context.Context, token string, ip netip.Addr) error {
	s.asked = append(s.asked, token)
	until, _ := ctx.Deadline()
	s.wait = time.Until(until)
	switch {
	case !ip.IsValid():
		return errors.New("without an address")
	case token == "good":
		return nil
	case token == "down":
		return errors.New("the service is down")
	}
	return auth.ErrCaptcha
}

func captchaWorld(t *testing.T, o auth.CaptchaOptions) (*harness.World, *solver) {
	t.Helper()
	s := &solver{}
	o.Verifier = s
	return harness.NewWorld(t, auth.WithCaptcha(o), auth.WithMail(auth.MailOptions{Sync: true})), s
}

func captcha(token string) harness.Header {
	return harness.Header{Name: "X-Captcha-Token", Value: token}
}

// wantCaptcha is the answer to a request with an invalid captcha.
func wantCaptcha(a *harness.Answer, problem string) {
	a.T.Helper()
	e := harness.DecodeAs[struct {
		Details struct{ Fields map[string]string }
	}](a.Want(422, auth.CodeValidationFailed))
	if len(e.Details.Fields) != 1 || e.Details.Fields["captcha"] != problem {
		a.T.Errorf("fields %v, want %q", e.Details.Fields, problem)
	}
}

// Every request that sends a message without a session, or creates an account by a password,
// needs a captcha. The limits of the route table identify these requests.
func TestCaptchaAtEverySend(t *testing.T) {
	exempt := map[string]string{
		"POST /verify-email": "only who is signed in has it sent",
		"PATCH /me":          "likewise",
	}
	w, s := captchaWorld(t, auth.CaptchaOptions{})
	before := 0
	bodies := map[string]map[string]any{
		"POST /signup":          {"email": "new@example.com", "password": harness.GoodPassword},
		"POST /magic-link/send": {"email": "ada@example.com"},
		"POST /otp/send":        {"phone": harness.PhoneNumber},
		"POST /forgot-password": {"email": "ben@example.com"},
	}
	for pattern, limits := range harness.RouteLimits(w.Auth) {
		if _, spared := exempt[pattern]; spared || !slices.Contains(limits, "SendPerAddress") || strings.Contains(pattern, "/oauth/") {
			continue
		}
		body := bodies[pattern]
		if body == nil {
			t.Errorf("%s sends messages: it needs a captcha, or a reason not to", pattern)
			continue
		}
		wantCaptcha(w.Call(pattern, body, ""), "is required")
		if len(s.asked) != 0 {
			t.Errorf("%s asks about no token", pattern)
		}
		method, path, _ := strings.Cut(pattern, " ")
		wantCaptcha(w.Do(method, path, body, captcha("bad")), "was not accepted")
		wantCaptcha(w.Do(method, path, body, captcha(strings.Repeat("x", 9000))), "was not accepted")
		w.Do(method, path, body, captcha("down")).Want(503, auth.CodeUnavailable)
		if n := len(w.Inbox.Messages()) - before; n != 0 {
			t.Errorf("%s: %d messages", pattern, n)
		}
		w.Do(method, path, body, captcha("good")).Want(200) // the refused requests drew from no limit of messages
		if want := []string{"bad", "down", "good"}; !slices.Equal(s.asked, want) {
			t.Errorf("%s: asked about %q", pattern, s.asked)
		}
		s.asked = nil
		delete(bodies, pattern)
		before = len(w.Inbox.Messages())
	}
	for pattern := range bodies {
		t.Errorf("%s sends nothing any more", pattern)
	}
}

// A login needs a captcha after wrong passwords at its name, whether or not the account
// exists, and after more of them from its IP address.
func TestCaptchaAfterFailures(t *testing.T) {
	w, s := captchaWorld(t, auth.CaptchaOptions{})
	w.LoginAs(t, "ada@example.com")
	w.LoginAs(t, "ben@example.com")
	try := func(name, password string, more ...harness.Header) *harness.Answer {
		return w.Do("POST", "/login", map[string]any{"email": name + "@example.com", "password": password}, more...)
	}
	for _, name := range []string{"ada", "nobody"} {
		for range 3 {
			try(name, harness.WrongPassword).Want(401)
		}
		wantCaptcha(try(name, harness.WrongPassword), "is required")
		works := harness.HashWorks(w.Auth)
		wantCaptcha(try(name, harness.GoodPassword), "is required")
		wantCaptcha(try(name, harness.GoodPassword, captcha("bad")), "was not accepted")
		if n := harness.HashWorks(w.Auth) - works; n != 0 {
			t.Errorf("%s: %d passwords judged without a captcha", name, n)
		}
		try(name, harness.WrongPassword, captcha("good")).Want(401)
	}
	try("ada", authtest.Password, captcha("good")).Want(200)
	if err := harness.Refund(w.Auth); err != nil {
		t.Fatal(err)
	}
	s.asked = nil
	try("ada", authtest.Password).Want(200) // a right one ends it
	if len(s.asked) != 0 {
		t.Errorf("asked about %q", s.asked)
	}
	try("x1", harness.WrongPassword).Want(401)
	wantCaptcha(try("ben", authtest.Password), "is required") // nine from one address
	try("ben", authtest.Password, harness.FromAddress(7)).Want(200)
}

// Never at logins, or in spite of a service that is down.
func TestCaptchaOptions(t *testing.T) {
	w, _ := captchaWorld(t, auth.CaptchaOptions{AfterFailures: -1, FailOpen: true})
	for range 9 {
		w.PostLogin("ada@example.com", harness.WrongPassword).Want(401)
	}
	body := map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}
	wantCaptcha(w.Do("POST", "/signup", body, captcha("bad")), "was not accepted")
	w.Do("POST", "/signup", body, captcha("down")).Want(200)
	if !strings.Contains(w.Log.String(), "captcha not verified") {
		t.Errorf("log %s", w.Log)
	}
	if _, err := w.SignUp(t.Context(), auth.SignUpParams{Email: "go@example.com", Password: harness.GoodPassword}); err != nil {
		t.Errorf("from Go: %v", err)
	}
}

// The captcha service has the configured time to answer, and five seconds by default.
func TestCaptchaTimeout(t *testing.T) {
	for set, want := range map[time.Duration]time.Duration{0: 5 * time.Second, -1: 5 * time.Second, time.Minute: time.Minute} {
		w, s := captchaWorld(t, auth.CaptchaOptions{Timeout: set})
		w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}, captcha("good")).Want(200)
		if s.wait > want || s.wait < want-5*time.Second {
			t.Errorf("%v: %v, want %v", set, s.wait, want)
		}
	}
}

// The number of verified tokens is limited for each IP address. Other addresses are not affected.
func TestCaptchaFlood(t *testing.T) {
	w, s := captchaWorld(t, auth.CaptchaOptions{})
	for range 60 {
		w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}, harness.FromAddress(1), captcha("bad")).Want(422)
	}
	w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}, harness.FromAddress(1), captcha("good")).Want(429, auth.CodeRateLimited)
	if len(s.asked) != 60 {
		t.Errorf("asked %d times", len(s.asked))
	}
	w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}, harness.FromAddress(2), captcha("good")).Want(200)
}

// Forms have the token in a field, also by the names that widgets give it.
func TestCaptchaInForms(t *testing.T) {
	for _, field := range []string{"captcha_token", "cf-turnstile-response", "h-captcha-response", "g-recaptcha-response"} {
		s := &solver{}
		w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}), auth.WithCaptcha(auth.CaptchaOptions{Verifier: s}))
		values := url.Values{"email": {"ada@example.com"}, "password": {harness.GoodPassword}}
		w.Do("POST", "/signup", values.Encode(), harness.Form).Want(422)
		values.Set(field, "good")
		if a := w.Do("POST", "/signup", values.Encode(), harness.Form); a.Status >= 400 {
			t.Errorf("%s: %d %s", field, a.Status, a.Body)
		}
	}
}
