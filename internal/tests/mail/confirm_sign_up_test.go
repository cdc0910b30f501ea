package mail_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// signUp is a sign-up with a password, on a desktop.
type signUp struct {
	*harness.World
	id, request, token string
	cookies            []harness.Header // of the browser that signed up
	session            harness.Session  // without confirmation
}

const desktop = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

func signUpWith(t *testing.T, confirm auth.Switch, opts ...auth.Option) *signUp {
	t.Helper()
	w := harness.NewWorld(t, append([]auth.Option{auth.WithSettings(auth.Settings{RequireConfirmation: confirm})}, opts...)...)
	headers := []harness.Header{{Name: "User-Agent", Value: desktop}}
	if len(opts) > 0 { // cookies
		headers = append(headers, harness.Transport)
	}
	a := w.Do("POST", "/signup", harness.Credentials(harness.AdaMail, harness.GoodPassword), headers...).Want(200)
	s := &signUp{World: w, token: w.LinkToken(harness.AdaMail, auth.KindVerifyEmail)}
	if confirm == auth.On {
		s.request = harness.DecodeAs[map[string]any](a)["request_id"].(string)
	} else {
		s.session = a.Session()
	}
	u, err := w.Store.User(t.Context(), store.ByEmail(harness.AdaMail))
	if err != nil {
		t.Fatal(err)
	}
	s.id = u.ID
	var pairs []string
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		pairs = append(pairs, c.Name+"="+c.Value)
	}
	s.cookies = []harness.Header{harness.Cookies(pairs...), harness.SameOrigin, harness.Browser}
	w.Fired()
	return s
}

// wantVerified checks whether the account's address is verified, and that its password
// remains.
func (s *signUp) wantVerified(want bool) {
	s.T.Helper()
	c, err := s.Store.Credentials(s.T.Context(), store.ByID(s.id))
	if err != nil || c.User.EmailVerified() != want || c.PasswordHash == "" {
		s.T.Errorf("verified %v, password %v, %v; want verified %v", c.User.EmailVerified(), c.PasswordHash != "", err, want)
	}
}

func (s *signUp) press(fields string, h ...harness.Header) *harness.Answer {
	s.T.Helper()
	return s.Do("POST", "/verify-email", "token="+s.token+fields, append([]harness.Header{harness.Form, harness.Browser}, h...)...)
}

// login presents the password, with the confirmation code unless that is "".
func (s *signUp) login(code string) *harness.Answer {
	s.T.Helper()
	body := harness.Credentials(harness.AdaMail, harness.GoodPassword)
	if code != "" {
		body["confirmation_code"] = code
	}
	return s.Do("POST", "/login", body)
}

// The link of a sign-up with a password, opened elsewhere, confirms nothing by a press or by
// a program. Otherwise the mailbox's owner could be brought to confirm a stranger's
// password.
func TestSignUpIsNotConfirmedElsewhere(t *testing.T) {
	for _, confirm := range []auth.Switch{auth.Off, auth.On} {
		for name, opts := range map[string][]auth.Option{"bearer": nil, "cookies": {auth.WithCookies(auth.CookieOptions{})}} {
			t.Run(fmt.Sprint(name, confirm == auth.On), func(t *testing.T) {
				s := signUpWith(t, confirm, opts...)
				s.Do("POST", "/verify-email", map[string]any{"token": s.token}).Want(401, auth.CodeMissingToken)
				s.Do("POST", "/verify-email", map[string]any{"token": s.token, "request_id": "x"}).Want(401, auth.CodeMissingToken)
				s.Do("POST", "/verify-email", map[string]any{"token": s.token, "password": "wrong horse battery"}).Want(401, auth.CodeInvalidCredentials)
				for _, a := range []*harness.Answer{
					s.Do("GET", "/verify-email?token="+s.token, nil, harness.Browser).Want(200),
					s.press("", harness.SameOrigin).Want(200),
				} {
					page := string(a.Body)
					i, j := strings.Index(page, "This wasn't me"), strings.Index(page, "That was me")
					if i < 0 || j < i || !strings.Contains(page, "Firefox on Linux") || !strings.Contains(page, "2026-") || !strings.Contains(page, `name="password"`) {
						t.Errorf("page %s", page)
					}
				}
				s.WantEvents(auth.EventSignInFailed)
				s.wantVerified(false)
				if page := string(s.press("&password=wrong+horse+battery", harness.SameOrigin).Want(401).Body); !strings.Contains(page, `name="password"`) {
					t.Errorf("page %s", page)
				}
				s.wantVerified(false)
			})
		}
	}
}

// A person who signed up confirms by one press in the same browser, with the request id, or
// in a session. Elsewhere the password does, typed on the page.
func TestSignUpIsConfirmedByItsOwner(t *testing.T) {
	cookies := auth.WithCookies(auth.CookieOptions{})
	for name, c := range map[string]struct {
		confirm auth.Switch
		opts    []auth.Option
		do      func(s *signUp) *harness.Answer
	}{
		"a press in the browser that signed up": {auth.On, []auth.Option{cookies}, func(s *signUp) *harness.Answer {
			if page := string(s.Do("GET", "/verify-email?token="+s.token, nil, s.cookies...).Want(200).Body); !strings.Contains(page, "Yes, confirm") {
				t.Errorf("page %s", page)
			}
			return s.press("", s.cookies...)
		}},
		"a press in the browser with the session": {auth.Off, []auth.Option{cookies}, func(s *signUp) *harness.Answer { return s.press("", s.cookies...) }},
		"the request id": {auth.On, nil, func(s *signUp) *harness.Answer {
			return s.Do("POST", "/verify-email", map[string]any{"token": s.token, "request_id": s.request})
		}},
		"the cookie, by a script": {auth.On, []auth.Option{cookies}, func(s *signUp) *harness.Answer {
			return s.Do("POST", "/verify-email", map[string]any{"token": s.token}, s.cookies...)
		}},
		"the session": {auth.Off, nil, func(s *signUp) *harness.Answer {
			return s.Do("POST", "/verify-email", map[string]any{"token": s.token}, harness.Bearer(s.session.AccessToken))
		}},
		"the password on the phone": {auth.On, nil, func(s *signUp) *harness.Answer {
			return s.press("&password=correct+horse+battery", harness.SameOrigin)
		}},
		"the password on the phone, without confirmation": {auth.Off, nil, func(s *signUp) *harness.Answer {
			return s.press("&password=correct+horse+battery", harness.SameOrigin)
		}},
		"the password, on the application's page": {auth.On, nil, func(s *signUp) *harness.Answer {
			return s.Do("POST", "/verify-email", map[string]any{"token": s.token, "password": harness.GoodPassword})
		}},
		"a shown code, with the request id": {auth.On, nil, func(s *signUp) *harness.Answer {
			code := s.ShownCode(s.token)
			return s.Do("POST", "/verify-email", map[string]any{"email": harness.AdaMail, "code": code, "request_id": s.request})
		}},
		"a shown code, in the browser that signed up": {auth.On, []auth.Option{cookies}, func(s *signUp) *harness.Answer {
			code := s.ShownCode(s.token)
			return s.Do("POST", "/verify-email", map[string]any{"email": harness.AdaMail, "code": code}, s.cookies...)
		}},
		"a shown code, in the session": {auth.Off, nil, func(s *signUp) *harness.Answer {
			return s.VerifyBy(harness.AdaMail, s.ShownCode(s.token), harness.Bearer(s.session.AccessToken))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := signUpWith(t, c.confirm, c.opts...)
			c.do(s).Want(200)
			s.WantEvents(auth.EventEmailVerified)
			s.wantVerified(true)
			s.login("").Want(200)
		})
	}
}

// The code of the page, together with the password, signs in and confirms, hours after the
// page where the user signed up was closed. The second factor is asked for as ever.
func TestSignInTakesTheShownCode(t *testing.T) {
	s := signUpWith(t, auth.On)
	s.Clock.Advance(3 * time.Hour)
	old := s.ShownCode(s.token)
	code := s.ShownCode(s.token) // each press shows another one
	for old == code {            // by chance
		code = s.ShownCode(s.token)
	}
	s.login(old).Want(401, auth.CodeInvalidCredentials)
	s.login(harness.OtherNumber(code)).Want(401, auth.CodeInvalidCredentials)
	s.Do("POST", "/login", map[string]any{"email": harness.AdaMail, "password": "wrong horse battery", "confirmation_code": code}).Want(401, auth.CodeInvalidCredentials)
	s.wantVerified(false)
	s.Fired()
	s.login(code[:3] + " " + code[3:]).Session()
	s.WantEvents(auth.EventEmailVerified, auth.EventSignedIn)
	s.wantVerified(true)
	s.login(code).Session() // on a verified account a code is not needed, and ignored
	s.Do("POST", "/verify-email", map[string]any{"token": s.token, "password": harness.GoodPassword}).Want(400, auth.CodeInvalidToken)

	s = signUpWith(t, auth.On) // the code in the mail is as good
	s.login(s.Mail(t, harness.AdaMail, auth.KindVerifyEmail).Code).Session()
	s.wantVerified(true)

	s = signUpWith(t, auth.On)
	code = s.ShownCode(s.token)
	s.Clock.Advance(10 * time.Minute)
	s.login(code).Want(401, auth.CodeInvalidCredentials)
	code = s.ShownCode(s.token)
	s.press("&disown=1").Want(200)
	s.login(code).Want(401, auth.CodeInvalidCredentials)
}

// A wrong code makes no difference to a sign-in: the answer is that of a wrong password, and
// no other link replaces the one whose page shows the code.
func TestWrongConfirmationCodeAnswersAsAWrongPassword(t *testing.T) {
	s := signUpWith(t, auth.On)
	code := s.ShownCode(s.token)
	s.Do("POST", "/signup", harness.Credentials("bob@example.com", harness.GoodPassword)).Want(200)
	s.Do("POST", "/verify-email", map[string]any{"token": s.LinkToken("bob@example.com", auth.KindVerifyEmail), "password": harness.GoodPassword}).Want(200)
	sent := len(s.Inbox.Messages())
	var answers []string
	for _, body := range []map[string]any{
		{"email": harness.AdaMail, "password": harness.GoodPassword, "confirmation_code": harness.OtherNumber(code)},
		{"email": harness.AdaMail, "password": "wrong horse battery", "confirmation_code": code},
		{"email": "bob@example.com", "password": "wrong horse battery", "confirmation_code": code},
		{"email": "nobody@example.com", "password": harness.GoodPassword, "confirmation_code": code},
		{"email": "nobody@example.com", "password": harness.GoodPassword},
	} {
		a := s.Do("POST", "/login", body).Want(401, auth.CodeInvalidCredentials)
		answers = append(answers, harness.DecodeAs[map[string]any](a)["message"].(string))
	}
	for _, m := range answers {
		if m != answers[0] {
			t.Errorf("answers %q", answers)
		}
	}
	if n := len(s.Inbox.Messages()); n != sent {
		t.Errorf("%d more messages", n-sent)
	}
	s.login(code).Session()
}

// Five wrong codes end a code, also for parallel requests, and another press gives a new one.
// Strangers without the password use up no attempts.
func TestGuessesOfTheConfirmationCode(t *testing.T) {
	limits := auth.RateLimits{LoginPerAccount: auth.Rate{Burst: 200, Per: time.Hour}, SignInsPerAccount: auth.Rate{Burst: 400, Per: time.Hour}}
	s := signUpWith(t, auth.On)
	s.World = harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}), auth.WithRateLimits(limits))
	s.Do("POST", "/signup", harness.Credentials(harness.AdaMail, harness.GoodPassword)).Want(200)
	s.token = s.LinkToken(harness.AdaMail, auth.KindVerifyEmail)
	code := s.ShownCode(s.token)
	guess := func(password, code string) {
		var wg sync.WaitGroup
		for i := range 20 {
			from := harness.FromAddress(i + 1)
			wg.Go(func() {
				a := s.DoOn(s.Handler(), "POST", "/login", map[string]any{"email": harness.AdaMail, "password": password, "confirmation_code": code}, from)
				if a.Status != http.StatusUnauthorized {
					t.Errorf("status %d %s", a.Status, a.Body)
				}
			})
		}
		wg.Wait()
	}
	guess("wrong horse battery", code)
	s.login(code).Session()

	s.World = harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}), auth.WithRateLimits(limits))
	s.Do("POST", "/signup", harness.Credentials(harness.AdaMail, harness.GoodPassword)).Want(200)
	s.token = s.LinkToken(harness.AdaMail, auth.KindVerifyEmail)
	code = s.ShownCode(s.token)
	guess(harness.GoodPassword, harness.OtherNumber(code))
	s.login(code).Want(401, auth.CodeInvalidCredentials)
	s.login(s.ShownCode(s.token)).Session()
}

// A sign-up that carries nothing else is confirmed by a press anywhere.
func TestBareAccountIsConfirmedAnywhere(t *testing.T) {
	w := harness.NewWorld(t)
	u := w.Imported(auth.ImportUserParams{Email: harness.AdaMail})
	if err := w.StartEmailVerification(t.Context(), auth.StartEmailVerificationParams{Caller: auth.ByApplication(u.ID)}); err != nil {
		t.Fatal(err)
	}
	token := w.LinkToken(harness.AdaMail, auth.KindVerifyEmail)
	w.Do("POST", "/verify-email", "token="+token, harness.Form, harness.Browser).Want(200)
	if u, err := w.Store.User(t.Context(), store.ByID(u.ID)); err != nil || !u.EmailVerified() {
		t.Errorf("user %+v, %v", u, err)
	}
}

// In each language the page of a sign-up elsewhere and its code say that nobody else may be
// given the code.
func TestPagesOfASignUpElsewhere(t *testing.T) {
	for locale, words := range map[string][]string{"en": {"Did you create this account?", "anyone else"}, "de": {"Hast du dieses Konto angelegt?", "niemand"}} {
		s := signUpWith(t, auth.On)
		in := harness.Header{Name: "Accept-Language", Value: locale}
		page := string(s.Do("GET", "/verify-email?token="+s.token, nil, harness.Browser, in).Want(200).Body)
		shown := string(s.press("&show_code=1", in).Want(200).Body)
		if !strings.Contains(page, words[0]) || !strings.Contains(shown, words[1]) || !strings.Contains(shown, `class="code"`) {
			t.Errorf("%s: %s %s", locale, page, shown)
		}
	}
}

// A sign-in with a code makes the same store calls whether its password is right or wrong, and
// whether there is an account, so that its duration reveals neither.
func TestSignInWithACodeMakesTheSameCalls(t *testing.T) {
	w, tap, _ := harness.NewTappedWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}), auth.WithRateLimits(auth.RateLimits{Off: true}))
	w.Do("POST", "/signup", harness.Credentials(harness.AdaMail, harness.GoodPassword)).Want(200)
	code := harness.OtherNumber(w.Mail(t, harness.AdaMail, auth.KindVerifyEmail).Code)
	calls := func(email, password string) (list []string) {
		tap.Reset(storetap.Hooks{Before: func(_ context.Context, name string, _ int) { list = append(list, name) }})
		defer tap.Reset(storetap.Hooks{})
		w.Do("POST", "/login", map[string]any{"email": email, "password": password, "confirmation_code": code}).Want(401, auth.CodeInvalidCredentials)
		return list
	}
	calls("nobody@example.com", harness.GoodPassword) // stores the decoy
	want := calls(harness.AdaMail, harness.GoodPassword)
	if !slices.Contains(want, "RedeemCode") {
		t.Errorf("calls %v", want)
	}
	for _, got := range [][]string{calls(harness.AdaMail, "wrong horse battery"), calls("nobody@example.com", harness.GoodPassword)} {
		if !slices.Equal(got, want) {
			t.Errorf("calls %v, want %v", got, want)
		}
	}
}

// Honest parallel requests with the right code end with a confirmed account and at least one
// session, and the code is used once.
func TestParallelConfirmations(t *testing.T) {
	s := signUpWith(t, auth.On)
	code := s.ShownCode(s.token)
	var in atomic.Int32
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			body := harness.Credentials(harness.AdaMail, harness.GoodPassword)
			body["confirmation_code"] = code
			if s.DoOn(s.Handler(), "POST", "/login", body).Status == 200 {
				in.Add(1)
			}
		})
	}
	wg.Wait()
	s.wantVerified(true)
	if in.Load() == 0 {
		t.Error("nobody is signed in")
	}
	confirmed := 0
	for _, e := range s.Fired() {
		if e == auth.EventEmailVerified {
			confirmed++
		}
	}
	if confirmed != 1 {
		t.Errorf("confirmed %d times", confirmed)
	}
}
