package auth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

func (w *world) magicLink(email string, more map[string]any) string {
	w.t.Helper()
	body := map[string]any{"email": email}
	for k, v := range more {
		body[k] = v
	}
	w.do("POST", "/magic-link/send", body).want(200)
	return w.linkToken(email, auth.KindMagicLink)
}

func TestMagicLinkCreatesUser(t *testing.T) {
	w := newWorld(t)
	token := w.magicLink("new@example.com", nil)
	if _, err := w.Store.User(t.Context(), store.ByEmail("new@example.com")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the account exists before the link was used: %v", err)
	}
	s := w.do("GET", "/magic-link/verify?token="+token, nil).session()
	if !s.User.EmailVerified || s.User.Email != "new@example.com" {
		t.Errorf("user %+v", s.User)
	}
	w.wantEvents(auth.EventSignedUp, auth.EventSignedIn)
	w.do("GET", "/magic-link/verify?token="+token, nil).want(400, auth.CodeInvalidToken)
}

func TestMagicLinkForStrangers(t *testing.T) {
	for name, w := range map[string]*world{
		"create_user false": newWorld(t),
		"sign-up off":       newWorld(t, auth.WithSettings(auth.Settings{SignUp: auth.Off})),
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.do("POST", "/magic-link/send", map[string]any{"email": "nobody@example.com", "create_user": name == "sign-up off"}).want(200)
			if err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := len(w.Inbox.Messages()); n != 0 {
				t.Errorf("%d messages to a stranger", n)
			}
		})
	}
}

// Mail scanners: opening, previewing and HEAD do not use a link up.
func TestScannersDoNotBurnLinks(t *testing.T) {
	w := newWorld(t)
	token := w.magicLink("ada@example.com", map[string]any{"redirect_to": "https://app.test/in"})
	path := "/auth/v1/magic-link/verify?token=" + token
	for range 3 {
		a := w.do("GET", path, nil, browser).want(200)
		for name, want := range map[string]string{
			"Content-Security-Policy": "frame-ancestors 'none'", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		} {
			if !strings.Contains(a.header.Get(name), want) {
				t.Errorf("%s: %q", name, a.header.Get(name))
			}
		}
		page := string(a.body)
		if !strings.Contains(page, `method="post"`) || !strings.Contains(page, "a•••a@e•••e.com") || strings.Contains(page, "<script") {
			t.Errorf("page %s", page)
		}
		w.do("HEAD", path, nil).want(200)
		w.do("HEAD", path, nil, browser).want(200)
	}
	w.wantEvents()
	w.do("POST", "/auth/v1/magic-link/verify", "token="+token, form, browser).want(303)
	w.do("POST", "/auth/v1/magic-link/verify", "token="+token, form, browser).want(400)
	w.do("GET", path, nil, browser).want(400)
}

func TestMagicLinkRedirects(t *testing.T) {
	w := newWorld(t)
	token := w.magicLink("ada@example.com", map[string]any{"redirect_to": "https://app.test/in?x=1"})
	a := w.do("POST", "/magic-link/verify", "token="+token, form, browser).want(303)
	to, err := url.Parse(a.header.Get("Location"))
	if err != nil || to.Host != "app.test" || to.Query().Get("x") != "1" {
		t.Fatalf("location %v, %v", to, err)
	}
	code := to.Query().Get("code")
	s := w.do("POST", "/exchange", map[string]any{"code": code}).session()
	if !w.alive(s.AccessToken) {
		t.Error("not signed in")
	}
	w.do("POST", "/exchange", map[string]any{"code": code}).want(400, auth.CodeInvalidCode)
	w.do("POST", "/exchange", map[string]any{}).want(422, auth.CodeValidationFailed)
}

func TestExchangeCodeExpires(t *testing.T) {
	w := newWorld(t)
	token := w.magicLink("ada@example.com", map[string]any{"redirect_to": "https://app.test/in"})
	a := w.do("POST", "/magic-link/verify", "token="+token, form).want(303)
	to, _ := url.Parse(a.header.Get("Location"))
	w.Clock.Advance(time.Minute)
	w.do("POST", "/exchange", map[string]any{"code": to.Query().Get("code")}).want(400, auth.CodeInvalidCode)
}

// PKCE (RFC 7636): whoever intercepts the link or the code cannot sign in.
func TestPKCE(t *testing.T) {
	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{Off: true}))
	code := func(email string) string {
		token := w.magicLink(email, map[string]any{"redirect_to": "https://app.test/in", "code_challenge": challenge, "code_challenge_method": "S256"})
		// Even a client that asks for JSON gets only the code.
		a := w.do("GET", "/magic-link/verify?token="+token, nil, header{"Accept", "application/json"}).want(303)
		to, _ := url.Parse(a.header.Get("Location"))
		return to.Query().Get("code")
	}
	for name, bad := range map[string]string{"none": "", "wrong": strings.Repeat("w", 43), "short": "v", "the challenge": challenge} {
		c := code(strings.ReplaceAll(name, " ", "") + "@example.com")
		w.do("POST", "/exchange", map[string]any{"code": c, "code_verifier": bad}).want(400, auth.CodeBadCodeVerifier)
		// The code died with the first try.
		if a := w.do("POST", "/exchange", map[string]any{"code": c, "code_verifier": verifier}); a.status != 400 {
			t.Errorf("%s: the code survived a wrong verifier", name)
		}
	}
	w.do("POST", "/exchange", map[string]any{"code": code("ada@example.com"), "code_verifier": verifier}).want(200)
	for _, body := range []map[string]any{
		{"email": "a@example.com", "code_challenge": "short"},
		{"email": "a@example.com", "code_challenge": challenge, "code_challenge_method": "plain"},
	} {
		w.do("POST", "/magic-link/send", body).want(422, auth.CodeValidationFailed)
	}
}

// Pre-hijack: a password set before the address was proved does not survive the
// owner's coming by magic link.
func TestMagicLinkEndsPreHijack(t *testing.T) {
	w := newWorld(t)
	attacker := w.signUp("victim@example.com")
	owner := w.do("GET", "/magic-link/verify?token="+w.magicLink("victim@example.com", nil), nil).session()
	if owner.User.ID != attacker.User.ID {
		t.Error("another account")
	}
	if w.alive(attacker.AccessToken) {
		t.Error("the attacker's session lives on")
	}
	w.refresh(attacker.RefreshToken).want(400, auth.CodeSessionEnded)
	w.do("POST", "/login", map[string]any{"email": "victim@example.com", "password": goodPassword}).want(401, auth.CodeInvalidCredentials)
	if !w.alive(owner.AccessToken) {
		t.Error("the owner is not signed in")
	}
}

// A verified account keeps its password when its owner uses a magic link.
func TestMagicLinkKeepsVerifiedCredentials(t *testing.T) {
	w := newWorld(t)
	s := w.signUp("ada@example.com")
	w.do("GET", "/verify-email?token="+w.linkToken("ada@example.com", auth.KindVerifyEmail), nil).want(200)
	w.do("GET", "/magic-link/verify?token="+w.magicLink("ada@example.com", nil), nil).want(200)
	if !w.alive(s.AccessToken) {
		t.Error("the first session ended")
	}
	w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": goodPassword}).want(200)
}

// Fifty parallel redemptions of each kind of link: one wins.
func TestParallelRedemptions(t *testing.T) {
	w := newWorld(t)
	w.signUp("ada@example.com")
	verify := w.linkToken("ada@example.com", auth.KindVerifyEmail)
	magic := w.magicLink("new@example.com", nil)
	w.signUp("bob@example.com") // a reset would end Ada's other links
	w.do("POST", "/forgot-password", map[string]any{"email": "bob@example.com"}).want(200)
	reset := w.linkToken("bob@example.com", auth.KindResetPassword)
	for name, use := range map[string]func(context.Context) error{
		"verify": func(ctx context.Context) error {
			_, err := w.VerifyEmail(ctx, auth.VerifyEmailParams{Token: verify})
			return err
		},
		"magic": func(ctx context.Context) error {
			_, err := w.VerifyMagicLink(ctx, auth.VerifyMagicLinkParams{Token: magic})
			return err
		},
		"reset": func(ctx context.Context) error {
			return w.ResetPassword(ctx, auth.ResetPasswordParams{Token: reset, NewPassword: "another horse battery"})
		},
	} {
		var wins, losses atomic.Int32
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				switch err := use(t.Context()); {
				case err == nil:
					wins.Add(1)
				case errors.Is(err, auth.CodeInvalidToken):
					losses.Add(1)
				default:
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 || losses.Load() != 49 {
			t.Errorf("%s: %d won, %d lost", name, wins.Load(), losses.Load())
		}
	}
}

func TestLinksExpireAndAreSuperseded(t *testing.T) {
	w := newWorld(t)
	w.signUp("ada@example.com")
	old := w.magicLink("ada@example.com", nil)
	w.Clock.Advance(time.Minute)
	w.do("POST", "/magic-link/send", map[string]any{"email": "ada@example.com"}).want(200)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	m, err := w.Inbox.Wait(ctx, func(m auth.Message) bool { return m.Kind == auth.KindMagicLink && !strings.HasSuffix(m.Link, old) })
	if err != nil {
		t.Fatal(err)
	}
	w.do("GET", "/magic-link/verify?token="+old, nil).want(400, auth.CodeInvalidToken)
	u, _ := url.Parse(m.Link)
	// A link of one purpose is none of another.
	token := u.Query().Get("token")
	w.do("GET", "/verify-email?token="+token, nil).want(400, auth.CodeInvalidToken)
	w.do("POST", "/reset-password", map[string]any{"token": token, "new_password": "another horse battery"}).want(400, auth.CodeInvalidToken)
	w.do("POST", "/exchange", map[string]any{"code": token}).want(400, auth.CodeInvalidCode)
	w.Clock.Advance(15*time.Minute - time.Microsecond)
	w.do("GET", "/magic-link/verify?token="+token, nil, browser).want(400) // the code beside it is over, which is all that its page shows
	w.Clock.Advance(time.Microsecond)
	w.do("GET", "/magic-link/verify?token="+token, nil).want(400, auth.CodeInvalidToken)
}

func TestLinkModes(t *testing.T) {
	direct := newWorld(t, auth.WithLinks(auth.LinkOptions{Mode: auth.DirectLinks}))
	direct.do("GET", "/magic-link/verify?token="+direct.magicLink("a@example.com", map[string]any{"redirect_to": "https://app.test/"}), nil, browser).want(303)
	if a := direct.do("GET", "/magic-link/verify?token="+direct.magicLink("b@example.com", nil), nil, browser).want(200); strings.Contains(string(a.body), "<form") || strings.Contains(string(a.body), "access_token") {
		t.Errorf("a question, or a session: %s", a.body)
	}
	s := direct.signUp("c@example.com")
	token := direct.linkToken("c@example.com", auth.KindVerifyEmail)
	if a := direct.do("GET", "/verify-email?token="+token, nil, browser).want(200); strings.Contains(string(a.body), "<form") {
		t.Errorf("a question: %s", a.body)
	}
	if u, err := direct.Store.User(t.Context(), store.ByEmail("c@example.com")); err != nil || !u.EmailVerified() {
		t.Errorf("%+v, %v", u, err)
	}
	if !direct.alive(s.AccessToken) {
		t.Error("the verification dropped the session")
	}
	if a := direct.do("GET", "/verify-email?token="+token, nil, browser).want(400); !strings.Contains(string(a.body), "<html") {
		t.Errorf("no page: %s", a.body)
	}
	strict := newWorld(t, auth.WithLinks(auth.LinkOptions{Mode: auth.StrictLinks}))
	token = strict.magicLink("a@example.com", map[string]any{"redirect_to": "https://app.test/"})
	if a := strict.do("GET", "/magic-link/verify?token="+token, nil).want(200); !strings.Contains(string(a.body), "<form") {
		t.Error("no page for a client that hides")
	}
	strict.do("GET", "/magic-link/verify?token="+token, nil, header{"Accept", "application/json"}).session()
}

// What opens a link is a program only if it says so and nothing about it is a
// browser's; a program's GET signs no browser in.
func TestWhoOpensALink(t *testing.T) {
	const mozilla = "Mozilla/5.0 (compatible; preview)"
	for name, c := range map[string]struct {
		with    []header
		program bool
	}{
		"nothing":              {nil, true},
		"anything":             {[]header{{"Accept", "*/*"}}, true},
		"JSON":                 {[]header{{"Accept", "application/json"}, {"User-Agent", mozilla}}, true},
		"JSON and pages":       {[]header{{"Accept", "text/html, application/json"}}, true},
		"anything, as Mozilla": {[]header{{"Accept", "*/*"}, {"User-Agent", mozilla}}, false},
		"nothing, as Mozilla":  {[]header{{"User-Agent", mozilla}}, false},
		"an image's request":   {[]header{{"Accept", "*/*"}, {"Sec-Fetch-Dest", "image"}}, false},
		"images":               {[]header{{"Accept", "image/avif,image/webp,*/*;q=0.8"}}, false},
		"pages":                {[]header{{"Accept", "text/html"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, auth.WithCookies(auth.CookieOptions{}))
			w.signUp("ada@example.com")
			link, verify := w.magicLink("bob@example.com", nil), w.linkToken("ada@example.com", auth.KindVerifyEmail)
			for _, path := range []string{"/magic-link/verify?token=" + link, "/verify-email?token=" + verify} {
				a := w.do("GET", path, nil, c.with...).want(200)
				if page := strings.Contains(string(a.body), "<form"); page == c.program {
					t.Errorf("%s: a page %v, a program %v", path, page, c.program)
				}
				if cookies := a.header.Values("Set-Cookie"); len(cookies) > 0 {
					t.Errorf("%s: cookies %q", path, cookies)
				}
			}
			again := 200
			if c.program {
				again = 400
			}
			w.do("POST", "/magic-link/verify", map[string]any{"token": link}).want(again)
		})
	}
}

func TestVerifyEmail(t *testing.T) {
	w := newWorld(t)
	s := w.signUp("ada@example.com")
	eve := w.signUp("eve@example.com")
	token := w.linkToken("ada@example.com", auth.KindVerifyEmail)
	w.fired()
	w.do("POST", "/verify-email", map[string]any{"token": token}, bearer(eve.AccessToken)).want(400, auth.CodeInvalidToken)
	w.do("POST", "/verify-email", nil).want(401, auth.CodeMissingToken)
	w.do("POST", "/verify-email", map[string]any{"token": token}, bearer("x.y.z")).want(401, auth.CodeBadToken)
	w.do("POST", "/verify-email", map[string]any{"token": token}, bearer(s.AccessToken)).want(200)
	w.wantEvents(auth.EventEmailVerified)
	w.do("POST", "/verify-email", map[string]any{"token": w.linkToken("eve@example.com", auth.KindVerifyEmail)}).want(200) // outside of a session, too
	if !w.alive(eve.AccessToken) {
		t.Error("a link that a program opened dropped a session")
	}
	before := len(w.Inbox.Messages())
	w.do("POST", "/verify-email", nil, bearer(s.AccessToken)).want(200) // verified already: nothing sent
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.Inbox.Messages()); n != before {
		t.Errorf("%d messages, want %d", n, before)
	}
}

func TestVerifyEmailPage(t *testing.T) {
	w := newWorld(t)
	w.do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": goodPassword, "redirect_to": "https://app.test/hi"}).want(200)
	token := w.linkToken("ada@example.com", auth.KindVerifyEmail)
	w.do("GET", "/verify-email?token="+token, nil, browser).want(200)
	a := w.do("POST", "/verify-email", "token="+token, form, browser).want(303)
	if a.header.Get("Location") != "https://app.test/hi" {
		t.Errorf("location %q", a.header.Get("Location"))
	}
}

func TestResetPassword(t *testing.T) {
	w := newWorld(t)
	s := w.signUp("ada@example.com")
	w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
	token := w.linkToken("ada@example.com", auth.KindResetPassword)
	w.do("GET", "/reset-password?token="+token, nil).want(200)
	w.do("GET", "/reset-password?token="+token, nil, browser).want(200)
	w.fired()
	w.do("POST", "/reset-password", map[string]any{"token": token, "new_password": "short"}).want(422, auth.CodeWeakPassword)
	w.do("POST", "/reset-password", map[string]any{"token": token}).want(422, auth.CodeValidationFailed)
	w.wantEvents()
	if !w.alive(s.AccessToken) {
		t.Error("a refused password ended the session")
	}
	w.do("POST", "/reset-password", map[string]any{"token": token, "new_password": "another horse battery"}).want(200)
	w.wantEvents(auth.EventTakenOver, auth.EventEmailVerified, auth.EventPasswordReset) // nobody had proved the address
	if w.alive(s.AccessToken) {
		t.Error("the old session lives on")
	}
	w.refresh(s.RefreshToken).want(400, auth.CodeSessionEnded)
	w.do("POST", "/reset-password", map[string]any{"token": token, "new_password": "a third horse battery"}).want(400, auth.CodeInvalidToken)
	in := w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": "another horse battery"}).session()
	if !in.User.EmailVerified {
		t.Error("the address does not count as verified")
	}
	w.Mail(t, "ada@example.com", auth.KindPasswordChanged)
}

func TestResetPasswordPage(t *testing.T) {
	w := newWorld(t)
	w.signUp("ada@example.com")
	w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com", "redirect_to": "https://app.test/login"}).want(200)
	token := w.linkToken("ada@example.com", auth.KindResetPassword)
	post := func(password string) *answer {
		return w.do("POST", "/reset-password", url.Values{"token": {token}, "new_password": {password}}.Encode(), form, browser)
	}
	if a := post("password").want(422); !strings.Contains(string(a.body), "first that would be guessed") || !strings.Contains(string(a.body), token) {
		t.Errorf("page %s", a.body)
	}
	if a := post("another horse battery").want(303); a.header.Get("Location") != "https://app.test/login" {
		t.Errorf("location %q", a.header.Get("Location"))
	}
	post("another horse battery").want(400)
}

// Enumeration: asking for a reset or a link is answered alike, stores alike and
// queues alike, and only the account's stored address gets the message.
func TestSendsAreNoOracle(t *testing.T) {
	w := newWorld(t)
	w.signUp("ada@example.com")
	for _, path := range []string{"/forgot-password", "/magic-link/send"} {
		known := w.do("POST", path, map[string]any{"email": "ADA@example.com", "create_user": false}, header{"X-Request-Id", "r"}).want(200)
		unknown := w.do("POST", path, map[string]any{"email": "nobody@example.com", "create_user": false}, header{"X-Request-Id", "r"}).want(200)
		a, b := decodeAs[map[string]string](known), decodeAs[map[string]string](unknown)
		if len(a) != len(b) || len(a["request_id"]) != len(b["request_id"]) || len(known.body) != len(unknown.body) {
			t.Errorf("%s: %s, %s", path, known.body, unknown.body)
		}
		// The limits count the same, too.
		w.do("POST", path, map[string]any{"email": "ada@example.com"}).want(429, auth.CodeRateLimited)
		w.do("POST", path, map[string]any{"email": "nobody@example.com"}).want(429, auth.CodeRateLimited)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range w.Inbox.Messages() {
		if m.To != "ada@example.com" {
			t.Errorf("message to %q", m.To)
		}
	}
}

// A mailer that fails or hangs harms no answer, and tells nothing.
func TestBrokenMailer(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	for name, send := range map[string]func(context.Context) error{
		"fails":  func(context.Context) error { return auth.Permanent(errors.New("no such host")) },
		"hangs":  func(context.Context) error { <-release; return nil },
		"panics": func(context.Context) error { panic("bug") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, auth.WithMailer(mailerFunc(send)), auth.WithMail(auth.MailOptions{Attempts: 1, Timeout: 20 * time.Millisecond}))
			w.do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": goodPassword}).want(200)
			w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
			if err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			failed := 0
			for _, e := range w.fired() {
				if e == auth.EventMessageFailed {
					failed++
				}
			}
			if failed != 2 {
				t.Errorf("%d failures reported, want 2", failed)
			}
		})
	}
}

type mailerFunc func(context.Context) error

func (f mailerFunc) Send(ctx context.Context, _ auth.Message) error { return f(ctx) }

// The Host header plays no part in links.
func TestLinksIgnoreHost(t *testing.T) {
	w := newWorld(t)
	w.do("POST", "https://evil.test/auth/v1/forgot-password", map[string]any{"email": "ada@example.com"}, header{"X-Forwarded-Host", "evil.test"}).want(200)
	w.do("POST", "https://evil.test/auth/v1/signup", map[string]any{"email": "ada@example.com", "password": goodPassword}, header{"X-Forwarded-Host", "evil.test"}).want(200)
	w.Mail(t, "ada@example.com", auth.KindVerifyEmail)
	for _, m := range w.Inbox.Messages() {
		if strings.Contains(m.Link+m.Text+m.HTML, "evil") {
			t.Errorf("link %q", m.Link)
		}
	}
}

func TestLocales(t *testing.T) {
	w := newWorld(t)
	w.do("POST", "/magic-link/send", map[string]any{"email": "hans@example.com"}, header{"Accept-Language", "de-AT,de;q=0.9,en;q=0.5"}).want(200)
	if m := w.Mail(t, "hans@example.com", auth.KindMagicLink); m.Locale != "de" || !strings.Contains(m.Subject, "Anmeldelink") {
		t.Errorf("%q in %q", m.Subject, m.Locale)
	}
	w.do("POST", "/signup", map[string]any{"email": "en@example.com", "password": goodPassword, "user_metadata": map[string]any{"locale": "en"}}, header{"Accept-Language", "de"}).want(200)
	if m := w.Mail(t, "en@example.com", auth.KindVerifyEmail); m.Locale != "en" {
		t.Errorf("locale %q against the user's choice", m.Locale)
	}
}

// Pages are the embedder's to replace, and keep a policy that allows their style.
func TestOwnPages(t *testing.T) {
	w := newWorld(t, auth.WithMail(auth.MailOptions{AppName: "Mine", Templates: fstest.MapFS{
		"page/style.css":               {Data: []byte("body { color: rebeccapurple }")},
		"page/confirm_sign_in.en.html": {Data: []byte(`{{define "title"}}T{{end}}{{define "body"}}Own page of {{.App}} <form method="post"><input name="token" value="{{.Token}}"></form>{{end}}`)},
	}}))
	a := w.do("GET", "/magic-link/verify?token="+w.magicLink("a@example.com", map[string]any{"redirect_to": "https://app.test/in"}), nil, browser).want(200)
	sum := sha256.Sum256([]byte("body { color: rebeccapurple }"))
	if !strings.Contains(string(a.body), "Own page of Mine") || !strings.Contains(a.header.Get("Content-Security-Policy"), base64.StdEncoding.EncodeToString(sum[:])) {
		t.Errorf("%s\n%s", a.header.Get("Content-Security-Policy"), a.body)
	}
	if _, err := auth.New(t.Context(), memstore.New(), auth.WithDevMode(), auth.WithMail(auth.MailOptions{Templates: fstest.MapFS{
		"page/done.en.html": {Data: []byte(`{{define "body"}}{{.Nonsense`)},
	}})); err == nil {
		t.Error("a broken page was accepted")
	}
}
