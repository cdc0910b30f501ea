package mail_test

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
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

func TestMagicLinkCreatesUser(t *testing.T) {
	w := harness.NewWorld(t)
	token := w.MagicLink("new@example.com", nil)
	if _, err := w.Store.User(t.Context(), store.ByEmail("new@example.com")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the account exists before the link was used: %v", err)
	}
	s := w.Do("POST", "/magic-link/verify", map[string]any{"token": token}).Session()
	if !s.User.EmailVerified || s.User.Email != "new@example.com" {
		t.Errorf("user %+v", s.User)
	}
	w.WantEvents(auth.EventSignedUp, auth.EventSignedIn)
	w.Do("POST", "/magic-link/verify", map[string]any{"token": token}).Want(400, auth.CodeInvalidToken)
}

func TestMagicLinkForStrangers(t *testing.T) {
	for name, w := range map[string]*harness.World{
		"create_user false": harness.NewWorld(t),
		"sign-up off":       harness.NewWorld(t, auth.WithSettings(auth.Settings{SignUp: auth.Off})),
	} {
		t.Run(name, func(t *testing.T) {
			w.T = t
			w.Do("POST", "/magic-link/send", map[string]any{"email": "nobody@example.com", "create_user": name == "sign-up off"}).Want(200)
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
	w := harness.NewWorld(t)
	token := w.MagicLink("ada@example.com", map[string]any{"redirect_to": "https://app.test/in"})
	path := "/auth/v1/magic-link/verify?token=" + token
	for range 3 {
		a := w.Do("GET", path, nil, harness.Browser).Want(200)
		for name, want := range map[string]string{
			"Content-Security-Policy": "frame-ancestors 'none'", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		} {
			if !strings.Contains(a.Header.Get(name), want) {
				t.Errorf("%s: %q", name, a.Header.Get(name))
			}
		}
		page := string(a.Body)
		if !strings.Contains(page, `method="post"`) || !strings.Contains(page, "a•••a@e•••e.com") || strings.Contains(page, "<script") {
			t.Errorf("page %s", page)
		}
		w.Do("HEAD", path, nil).Want(200)
		w.Do("HEAD", path, nil, harness.Browser).Want(200)
	}
	w.WantEvents()
	w.Do("POST", "/auth/v1/magic-link/verify", "token="+token, harness.Form, harness.Browser).Want(303)
	w.Do("POST", "/auth/v1/magic-link/verify", "token="+token, harness.Form, harness.Browser).Want(400)
	w.Do("GET", path, nil, harness.Browser).Want(400)
}

func TestMagicLinkRedirects(t *testing.T) {
	w := harness.NewWorld(t)
	token := w.MagicLink("ada@example.com", map[string]any{"redirect_to": "https://app.test/in?x=1"})
	a := w.Do("POST", "/magic-link/verify", "token="+token, harness.Form, harness.Browser).Want(303)
	to, err := url.Parse(a.Header.Get("Location"))
	if err != nil || to.Host != "app.test" || to.Query().Get("x") != "1" {
		t.Fatalf("location %v, %v", to, err)
	}
	code := to.Query().Get("code")
	s := w.Do("POST", "/exchange", map[string]any{"code": code}).Session()
	if !w.Alive(s.AccessToken) {
		t.Error("not signed in")
	}
	w.Do("POST", "/exchange", map[string]any{"code": code}).Want(400, auth.CodeInvalidCode)
	w.Do("POST", "/exchange", map[string]any{}).Want(422, auth.CodeValidationFailed)
}

func TestExchangeCodeExpires(t *testing.T) {
	w := harness.NewWorld(t)
	token := w.MagicLink("ada@example.com", map[string]any{"redirect_to": "https://app.test/in"})
	a := w.Do("POST", "/magic-link/verify", "token="+token, harness.Form).Want(303)
	to, _ := url.Parse(a.Header.Get("Location"))
	w.Clock.Advance(time.Minute)
	w.Do("POST", "/exchange", map[string]any{"code": to.Query().Get("code")}).Want(400, auth.CodeInvalidCode)
}

// PKCE (RFC 7636): an attacker who intercepts the link or the code cannot sign in.
func TestPKCE(t *testing.T) {
	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{Off: true}))
	code := func(email string) string {
		token := w.MagicLink(email, map[string]any{"redirect_to": "https://app.test/in", "code_challenge": challenge, "code_challenge_method": "S256"})
		// Even a client that asks for JSON gets only the code.
		a := w.Do("POST", "/magic-link/verify", map[string]any{"token": token}, harness.Header{Name: "Accept", Value: "application/json"}).Want(303)
		to, _ := url.Parse(a.Header.Get("Location"))
		return to.Query().Get("code")
	}
	for name, bad := range map[string]string{"none": "", "wrong": strings.Repeat("w", 43), "short": "v", "the challenge": challenge} {
		c := code(strings.ReplaceAll(name, " ", "") + "@example.com")
		w.Do("POST", "/exchange", map[string]any{"code": c, "code_verifier": bad}).Want(400, auth.CodeBadCodeVerifier)
		// The code became invalid with the first attempt.
		if a := w.Do("POST", "/exchange", map[string]any{"code": c, "code_verifier": verifier}); a.Status != 400 {
			t.Errorf("%s: the code survived a wrong verifier", name)
		}
	}
	w.Do("POST", "/exchange", map[string]any{"code": code("ada@example.com"), "code_verifier": verifier}).Want(200)
	for _, body := range []map[string]any{
		{"email": "a@example.com", "code_challenge": "short"},
		{"email": "a@example.com", "code_challenge": challenge, "code_challenge_method": "plain"},
	} {
		w.Do("POST", "/magic-link/send", body).Want(422, auth.CodeValidationFailed)
	}
}

// Pre-hijack: a password that was set before the address was verified is deleted when the
// owner signs in by magic link.
func TestMagicLinkEndsPreHijack(t *testing.T) {
	w := harness.NewWorld(t)
	attacker := w.PostSignUp("victim@example.com")
	owner := w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink("victim@example.com", nil)}).Session()
	if owner.User.ID != attacker.User.ID {
		t.Error("another account")
	}
	if w.Alive(attacker.AccessToken) {
		t.Error("the attacker's session lives on")
	}
	w.PostRefresh(attacker.RefreshToken).Want(400, auth.CodeSessionEnded)
	w.Do("POST", "/login", map[string]any{"email": "victim@example.com", "password": harness.GoodPassword}).Want(401, auth.CodeInvalidCredentials)
	if !w.Alive(owner.AccessToken) {
		t.Error("the owner is not signed in")
	}
}

// A verified account keeps its password when its owner uses a magic link.
func TestMagicLinkKeepsVerifiedCredentials(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	w.PostConfirm("ada@example.com")
	w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink("ada@example.com", nil)}).Want(200)
	if !w.Alive(s.AccessToken) {
		t.Error("the first session ended")
	}
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}).Want(200)
}

// Fifty parallel redemptions of each kind of link: one wins.
func TestParallelRedemptions(t *testing.T) {
	w := harness.NewWorld(t)
	w.PostSignUp("ada@example.com")
	verify := w.LinkToken("ada@example.com", auth.KindVerifyEmail)
	magic := w.MagicLink("new@example.com", nil)
	w.PostSignUp("bob@example.com") // a reset would end Ada's other links
	w.Do("POST", "/forgot-password", map[string]any{"email": "bob@example.com"}).Want(200)
	reset := w.LinkToken("bob@example.com", auth.KindResetPassword)
	for name, use := range map[string]func(context.Context) error{
		"verify": func(ctx context.Context) error {
			_, err := w.VerifyEmail(ctx, auth.VerifyEmailParams{Token: verify, Password: harness.GoodPassword})
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
	w := harness.NewWorld(t)
	w.PostSignUp("ada@example.com")
	old := w.MagicLink("ada@example.com", nil)
	w.Clock.Advance(time.Minute)
	w.Do("POST", "/magic-link/send", map[string]any{"email": "ada@example.com"}).Want(200)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	m, err := w.Inbox.Wait(ctx, func(m auth.Message) bool { return m.Kind == auth.KindMagicLink && !strings.HasSuffix(m.Link, old) })
	if err != nil {
		t.Fatal(err)
	}
	w.Do("POST", "/magic-link/verify", map[string]any{"token": old}).Want(400, auth.CodeInvalidToken)
	u, _ := url.Parse(m.Link)
	// A link of one purpose is none of another.
	token := u.Query().Get("token")
	w.Do("POST", "/verify-email", map[string]any{"token": token}).Want(400, auth.CodeInvalidToken)
	w.Do("POST", "/reset-password", map[string]any{"token": token, "new_password": "another horse battery"}).Want(400, auth.CodeInvalidToken)
	w.Do("POST", "/exchange", map[string]any{"code": token}).Want(400, auth.CodeInvalidCode)
	w.Clock.Advance(15*time.Minute - time.Microsecond)
	w.Do("GET", "/magic-link/verify?token="+token, nil, harness.Browser).Want(400) // the code beside it, the only thing its page shows, is expired
	w.Clock.Advance(time.Microsecond)
	w.Do("POST", "/magic-link/verify", map[string]any{"token": token}).Want(400, auth.CodeInvalidToken)
}

// LinkOptions.SignInByGET completes magic links, and no others.
func TestSignInByGET(t *testing.T) {
	w := harness.NewWorld(t, auth.WithLinks(auth.LinkOptions{SignInByGET: true}))
	w.Do("GET", "/magic-link/verify?token="+w.MagicLink("a@example.com", map[string]any{"redirect_to": "https://app.test/"}), nil, harness.Browser).Want(303)
	w.Do("GET", "/magic-link/verify?token="+w.MagicLink("b@example.com", nil), nil).Session()
	token := w.MagicLink("c@example.com", nil)
	if a := w.Do("GET", "/magic-link/verify?token="+token, nil, harness.Browser).Want(200); strings.Contains(string(a.Body), "<form") || strings.Contains(string(a.Body), "access_token") {
		t.Errorf("a button, or a session: %s", a.Body)
	}
	w.Do("HEAD", "/magic-link/verify?token="+token, nil).Want(200)
	w.Do("POST", "/magic-link/verify", map[string]any{"token": token}).Session()
	w.PostSignUp("d@example.com")
	verify := w.LinkToken("d@example.com", auth.KindVerifyEmail)
	w.Do("GET", "/verify-email?token="+verify, nil).Want(200)
	w.Do("GET", "/verify-email?token="+verify, nil, harness.Browser).Want(200)
	if u, err := w.Store.User(t.Context(), store.ByEmail("d@example.com")); err != nil || u.EmailVerified() {
		t.Errorf("%+v, %v", u, err)
	}
}

// linkOpeners are the headers of clients that open links: people, programs, mail scanners and
// previews of chats.
var linkOpeners = map[string][]harness.Header{
	"nothing":              nil,
	"anything":             {{Name: "Accept", Value: "*/*"}},
	"JSON":                 {{Name: "Accept", Value: "application/json"}, {Name: "User-Agent", Value: preview}},
	"JSON and pages":       {{Name: "Accept", Value: "text/html, application/json"}},
	"anything, as Mozilla": {{Name: "Accept", Value: "*/*"}, {Name: "User-Agent", Value: preview}},
	"nothing, as Mozilla":  {{Name: "User-Agent", Value: preview}},
	"an image's request":   {{Name: "Accept", Value: "*/*"}, {Name: "Sec-Fetch-Dest", Value: "image"}},
	"images":               {{Name: "Accept", Value: "image/avif,image/webp,*/*;q=0.8"}},
	"pages":                {{Name: "Accept", Value: "text/html"}},
	"a chat's preview":     {{Name: "Accept", Value: "*/*"}, {Name: "User-Agent", Value: "WhatsApp/2.23"}},
}

const preview = "Mozilla/5.0 (compatible; preview)"

// No GET completes a link, whoever opens it and at whatever endpoint: nothing changes, and
// the link stays valid.
func TestNoGETCompletesALink(t *testing.T) {
	for name, headers := range linkOpeners {
		t.Run(name, func(t *testing.T) {
			for cookies, opts := range map[string][]auth.Option{"bearer": nil, "cookies": {auth.WithCookies(auth.CookieOptions{})}} {
				w := harness.NewWorld(t, opts...)
				links := mailedLinks(w)
				w.Fired()
				for _, pattern := range harness.Routes(w.Auth) {
					path, isGET := strings.CutPrefix(pattern, "GET ")
					if !isGET || strings.Contains(path, "{") || path == "/openapi.json" { // the document has an example of a session
						continue
					}
					for kind, l := range links {
						if a := w.Do("GET", path+"?token="+l.token, nil, headers...); len(a.Header.Values("Set-Cookie")) > 0 || strings.Contains(string(a.Body), "access_token") {
							t.Errorf("%s, %s: %s with the link %s signs in: %s", cookies, name, pattern, kind, a.Body)
						}
					}
				}
				w.WantEvents()
				for kind, l := range links {
					body := map[string]any{"token": l.token}
					if l.password != "" {
						body[l.password] = "another horse battery"
					}
					if a := w.Do("POST", l.path, body, l.within...); a.Status != 200 {
						t.Errorf("%s: the link %s is used up: %d %s", cookies, kind, a.Status, a.Body)
					}
				}
			}
		})
	}
}

// mailedLink is a valid link, with the endpoint that completes it.
type mailedLink struct {
	token, path string
	password    string // the field of the new password, if the endpoint needs one
	within      []harness.Header
}

// mailedLinks returns a link of each kind.
func mailedLinks(w *harness.World) map[auth.Kind]mailedLink {
	fresh := w.PostSignUp("new@example.com")
	w.Member("reset@example.com")
	w.Do("POST", "/forgot-password", map[string]any{"email": "reset@example.com"}).Want(200)
	mover := w.Member("old@example.com")
	w.Do("PATCH", "/me", map[string]any{"email": "moved@example.com"}, harness.Bearer(mover.AccessToken)).Want(200)
	return map[auth.Kind]mailedLink{
		auth.KindMagicLink:     {token: w.MagicLink("magic@example.com", nil), path: "/magic-link/verify"},
		auth.KindVerifyEmail:   {token: w.LinkToken("new@example.com", auth.KindVerifyEmail), path: "/verify-email", within: []harness.Header{harness.Bearer(fresh.AccessToken)}},
		auth.KindChangeEmail:   {token: w.LinkToken("moved@example.com", auth.KindChangeEmail), path: "/verify-email", within: []harness.Header{harness.Bearer(mover.AccessToken)}},
		auth.KindResetPassword: {token: w.LinkToken("reset@example.com", auth.KindResetPassword), path: "/reset-password", password: "new_password"},
	}
}

func TestVerifyEmail(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	eve := w.PostSignUp("eve@example.com")
	token := w.LinkToken("ada@example.com", auth.KindVerifyEmail)
	w.Fired()
	w.Do("POST", "/verify-email", map[string]any{"token": token}, harness.Bearer(eve.AccessToken)).Want(401, auth.CodeMissingToken) // another account's session is no evidence
	w.Do("POST", "/verify-email", nil).Want(401, auth.CodeMissingToken)
	w.Do("POST", "/verify-email", map[string]any{"token": token}, harness.Bearer("x.y.z")).Want(401, auth.CodeBadToken)
	w.Do("POST", "/verify-email", map[string]any{"token": token}, harness.Bearer(s.AccessToken)).Want(200)
	w.WantEvents(auth.EventEmailVerified)
	w.PostConfirm("eve@example.com") // outside of a session, too
	if !w.Alive(eve.AccessToken) {
		t.Error("a link that a program opened dropped a session")
	}
	before := len(w.Inbox.Messages())
	w.Do("POST", "/verify-email", nil, harness.Bearer(s.AccessToken)).Want(200) // verified already: nothing sent
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.Inbox.Messages()); n != before {
		t.Errorf("%d messages, want %d", n, before)
	}
}

func TestVerifyEmailPage(t *testing.T) {
	w := harness.NewWorld(t)
	w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword, "redirect_to": "https://app.test/hi"}).Want(200)
	token := w.LinkToken("ada@example.com", auth.KindVerifyEmail)
	w.Do("GET", "/verify-email?token="+token, nil, harness.Browser).Want(200)
	a := w.Do("POST", "/verify-email", "token="+token+"&password=correct+horse+battery", harness.Form, harness.Browser).Want(303)
	if a.Header.Get("Location") != "https://app.test/hi" {
		t.Errorf("location %q", a.Header.Get("Location"))
	}
}

func TestResetPassword(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
	token := w.LinkToken("ada@example.com", auth.KindResetPassword)
	w.Do("GET", "/reset-password?token="+token, nil).Want(200)
	w.Do("GET", "/reset-password?token="+token, nil, harness.Browser).Want(200)
	w.Fired()
	w.Do("POST", "/reset-password", map[string]any{"token": token, "new_password": "short"}).Want(422, auth.CodeWeakPassword)
	w.Do("POST", "/reset-password", map[string]any{"token": token}).Want(422, auth.CodeValidationFailed)
	w.WantEvents()
	if !w.Alive(s.AccessToken) {
		t.Error("a refused password ended the session")
	}
	w.Do("POST", "/reset-password", map[string]any{"token": token, "new_password": "another horse battery"}).Want(200)
	w.WantEvents(auth.EventTakenOver, auth.EventEmailVerified, auth.EventPasswordReset) // the address was unverified
	if w.Alive(s.AccessToken) {
		t.Error("the old session lives on")
	}
	w.PostRefresh(s.RefreshToken).Want(400, auth.CodeSessionEnded)
	w.Do("POST", "/reset-password", map[string]any{"token": token, "new_password": "a third horse battery"}).Want(400, auth.CodeInvalidToken)
	in := w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": "another horse battery"}).Session()
	if !in.User.EmailVerified {
		t.Error("the address does not count as verified")
	}
	w.Mail(t, "ada@example.com", auth.KindPasswordChanged)
}

func TestResetPasswordPage(t *testing.T) {
	w := harness.NewWorld(t)
	w.PostSignUp("ada@example.com")
	w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com", "redirect_to": "https://app.test/login"}).Want(200)
	token := w.LinkToken("ada@example.com", auth.KindResetPassword)
	post := func(password string) *harness.Answer {
		return w.Do("POST", "/reset-password", url.Values{"token": {token}, "new_password": {password}}.Encode(), harness.Form, harness.Browser)
	}
	if a := post("password").Want(422); !strings.Contains(string(a.Body), "most common passwords") || !strings.Contains(string(a.Body), token) {
		t.Errorf("page %s", a.Body)
	}
	if a := post("another horse battery").Want(303); a.Header.Get("Location") != "https://app.test/login" {
		t.Errorf("location %q", a.Header.Get("Location"))
	}
	post("another horse battery").Want(400)
}

// Enumeration: asking for a reset or a link is answered alike, stores alike and
// queues alike, and only the account's stored address gets the message.
func TestSendsAreNoOracle(t *testing.T) {
	w := harness.NewWorld(t)
	w.PostSignUp("ada@example.com")
	for _, path := range []string{"/forgot-password", "/magic-link/send"} {
		known := w.Do("POST", path, map[string]any{"email": "ADA@example.com", "create_user": false}, harness.Header{Name: "X-Request-Id", Value: "r"}).Want(200)
		unknown := w.Do("POST", path, map[string]any{"email": "nobody@example.com", "create_user": false}, harness.Header{Name: "X-Request-Id", Value: "r"}).Want(200)
		a, b := harness.DecodeAs[map[string]string](known), harness.DecodeAs[map[string]string](unknown)
		if len(a) != len(b) || len(a["request_id"]) != len(b["request_id"]) || len(known.Body) != len(unknown.Body) {
			t.Errorf("%s: %s, %s", path, known.Body, unknown.Body)
		}
		// The limits count the same, too.
		w.Do("POST", path, map[string]any{"email": "ada@example.com"}).Want(429, auth.CodeRateLimited)
		w.Do("POST", path, map[string]any{"email": "nobody@example.com"}).Want(429, auth.CodeRateLimited)
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

// A mailer that fails or hangs changes no answer and reveals nothing.
func TestBrokenMailer(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	for name, send := range map[string]func(context.Context) error{
		"fails":  func(context.Context) error { return auth.Permanent(errors.New("no such host")) },
		"hangs":  func(context.Context) error { <-release; return nil },
		"panics": func(context.Context) error { panic("bug") },
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, auth.WithMailer(mailerFunc(send)), auth.WithMail(auth.MailOptions{Attempts: 1, Timeout: 20 * time.Millisecond}))
			w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}).Want(200)
			w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
			if err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			failed := 0
			for _, e := range w.Fired() {
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
	w := harness.NewWorld(t)
	w.Do("POST", "https://evil.test/auth/v1/forgot-password", map[string]any{"email": "ada@example.com"}, harness.Header{Name: "X-Forwarded-Host", Value: "evil.test"}).Want(200)
	w.Do("POST", "https://evil.test/auth/v1/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}, harness.Header{Name: "X-Forwarded-Host", Value: "evil.test"}).Want(200)
	w.Mail(t, "ada@example.com", auth.KindVerifyEmail)
	for _, m := range w.Inbox.Messages() {
		if strings.Contains(m.Link+m.Text+m.HTML, "evil") {
			t.Errorf("link %q", m.Link)
		}
	}
}

func TestLocales(t *testing.T) {
	w := harness.NewWorld(t)
	w.Do("POST", "/magic-link/send", map[string]any{"email": "hans@example.com"}, harness.Header{Name: "Accept-Language", Value: "de-AT,de;q=0.9,en;q=0.5"}).Want(200)
	if m := w.Mail(t, "hans@example.com", auth.KindMagicLink); m.Locale != "de" || !strings.Contains(m.Subject, "Anmeldelink") {
		t.Errorf("%q in %q", m.Subject, m.Locale)
	}
	w.Do("POST", "/signup", map[string]any{"email": "en@example.com", "password": harness.GoodPassword, "user_metadata": map[string]any{"locale": "en"}}, harness.Header{Name: "Accept-Language", Value: "de"}).Want(200)
	if m := w.Mail(t, "en@example.com", auth.KindVerifyEmail); m.Locale != "en" {
		t.Errorf("locale %q against the user's choice", m.Locale)
	}
}

// Pages are the embedder's to replace, and keep a policy that allows their style.
func TestOwnPages(t *testing.T) {
	w := harness.NewWorld(t, auth.WithMail(auth.MailOptions{AppName: "Mine", Templates: fstest.MapFS{
		"page/style.css":            {Data: []byte("body { color: rebeccapurple }")},
		"page/confirm_sign_in.html": {Data: []byte(`{{define "title"}}T{{end}}{{define "body"}}Own page of {{.App}} <form method="post"><input name="token" value="{{.Token}}"></form>{{end}}`)},
	}}))
	a := w.Do("GET", "/magic-link/verify?token="+w.MagicLink("a@example.com", map[string]any{"redirect_to": "https://app.test/in"}), nil, harness.Browser).Want(200)
	sum := sha256.Sum256([]byte("body { color: rebeccapurple }"))
	if !strings.Contains(string(a.Body), "Own page of Mine") || !strings.Contains(a.Header.Get("Content-Security-Policy"), base64.StdEncoding.EncodeToString(sum[:])) {
		t.Errorf("%s\n%s", a.Header.Get("Content-Security-Policy"), a.Body)
	}
	if _, err := auth.New(t.Context(), memstore.New(), auth.WithDevMode(), auth.WithMail(auth.MailOptions{Templates: fstest.MapFS{
		"page/done.html": {Data: []byte(`{{define "body"}}{{.Nonsense`)},
	}})); err == nil {
		t.Error("a broken page was accepted")
	}
}
