package admin_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// leaked reports every password as leaked.
type leaked struct{}

func (leaked) Breached(context.Context, string) (bool, error) { return true, nil }

// send sends a request to an endpoint outside of the admin side.
func (o *office) send(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	o.t.Helper()
	r := httptest.NewRequestWithContext(o.t.Context(), method, "/auth/v1"+path, strings.NewReader(body))
	if body == "" {
		r.Body = http.NoBody
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	o.Handler().ServeHTTP(w, r)
	return w
}

// Every field of the settings reaches its flows: none of them still reads the option.
func TestSettingsReachFlows(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(),
		auth.Default(auth.WithPasswords(auth.PasswordOptions{MinLength: 9, Breach: leaked{}})),
		auth.Default(auth.WithSessions(auth.SessionOptions{IdleTimeout: 24 * time.Hour})),
		auth.Default(auth.WithMail(auth.MailOptions{AppName: "Before"})),
		auth.Default(auth.WithRedirectURLs("https://one.test/*")),
		auth.Default(auth.WithCORS("https://one.test")),
		auth.WithCookies(auth.CookieOptions{}), auth.WithRateLimits(auth.RateLimits{Off: true}))
	ctx := t.Context()
	set := func(name string, value any) {
		t.Helper()
		if _, err := o.adm.SetSettings(ctx, admin.System("test").Accepting(), admin.SetSettingsParams{Set: map[string]any{name: value}}); err != nil {
			t.Fatal(err)
		}
	}
	ada := o.LoginAs(t, "ada@example.com", authtest.Roles("editor"))
	signUp := func(email, password string) error {
		_, err := o.SignUp(ctx, auth.SignUpParams{Email: email, Password: password})
		return err
	}
	const long = "long enough for anybody"
	wantCode(t, signUp("a@example.com", long), auth.CodeWeakPassword)
	set("password_breach_check", false)
	if err := signUp("a@example.com", long); err != nil {
		t.Error(err)
	}
	set("password_min_length", len(long)+1)
	wantCode(t, signUp("b@example.com", long), auth.CodeWeakPassword)
	if n := o.PublicSettings(ctx).Password.MinLength; n != len(long)+1 {
		t.Errorf("forms ask for %d characters", n)
	}

	sessionOf := func(s *authtest.SignedIn) auth.Session {
		t.Helper()
		sess, _, err := o.Store.Session(ctx, s.SessionID, o.Clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return sess
	}
	set("session_idle_timeout", 600)
	set("session_lifetime", 3600)
	again := o.LoginAs(t, "ada@example.com")
	if s := sessionOf(again); s.IdleUntil.Sub(o.Clock.Now()) != 10*time.Minute || s.ExpiresAt.Sub(o.Clock.Now()) != time.Hour {
		t.Errorf("a session idles until %s and ends at %s, now is %s", s.IdleUntil, s.ExpiresAt, o.Clock.Now())
	}
	ada = o.renewed(ada)
	if s := sessionOf(ada); s.IdleUntil.Sub(o.Clock.Now()) != 10*time.Minute {
		t.Errorf("a session that goes on idles until %s", s.IdleUntil)
	}
	w := o.send("POST", "/login", `{"email":"ada@example.com","password":"`+authtest.Password+`"}`, "X-Session-Transport: cookie", "Sec-Fetch-Site: same-origin")
	if cookies := strings.Join(w.Header()["Set-Cookie"], "\n"); w.Code != 200 || !strings.Contains(cookies, "Max-Age=600") {
		t.Errorf("%d, cookies %s", w.Code, cookies)
	}

	link := func(to string) error {
		_, err := o.SendMagicLink(ctx, auth.SendMagicLinkParams{Email: "ada@example.com", RedirectTo: to})
		return err
	}
	wantCode(t, link("https://two.test/in"), auth.CodeRedirectNotAllowed)
	set("redirect_urls", []string{"https://two.test/*"})
	for _, to := range []string{"https://one.test/in", "https://two.test/in"} {
		if err := link(to); err != nil {
			t.Errorf("%s: %v", to, err)
		}
	}
	wantCode(t, link("https://three.test/in"), auth.CodeRedirectNotAllowed)

	crosses := func() (allowed string, posted int) {
		w := o.send("OPTIONS", "/login", "", "Origin: https://two.test", "Access-Control-Request-Method: POST")
		return w.Header().Get("Access-Control-Allow-Origin"), o.send("POST", "/login", `{"email":"ada@example.com","password":"`+authtest.Password+`"}`, "X-Session-Transport: cookie", "Origin: https://two.test", "Sec-Fetch-Site: cross-site").Code
	}
	if allowed, posted := crosses(); allowed != "" || posted != 403 {
		t.Errorf("another origin: %q, %d", allowed, posted)
	}
	set("cors_origins", []string{"https://two.test"})
	if allowed, posted := crosses(); allowed != "https://two.test" || posted != 200 {
		t.Errorf("an origin that was added: %q, %d", allowed, posted)
	}
	set("cors_origins", nil)
	if allowed, posted := crosses(); allowed != "" || posted != 403 {
		t.Errorf("an origin that was taken back: %q, %d", allowed, posted)
	}

	set("sender_name", "After")
	o.settled() // sends the messages that are already pending
	o.Inbox.Clear()
	if err := link(""); err != nil {
		t.Fatal(err)
	}
	if m := o.Mail(t, "ada@example.com", auth.KindMagicLink); !strings.Contains(m.Text, "After") || strings.Contains(m.Text, "Before") {
		t.Errorf("a mail says %s", m.Text)
	}
	set("texts", map[string]string{"magic_link.subject": "Come <in>", "magic_link.intro": "We have moved.\nAll <b>stays</b>.", "footer": "Notes Ltd", "footer.de": "Notizen GmbH", "welcome.intro": "Another mail's"})
	for locale, footer := range map[string]string{"en": "Notes Ltd", "de": "Notizen GmbH"} {
		if _, err := o.UpdateMe(ctx, auth.UpdateMeParams{Caller: auth.Caller{UserID: again.User.ID, SessionID: again.SessionID}, UserMetadata: map[string]any{"locale": locale}}); err != nil {
			t.Fatal(err)
		}
		o.Clock.Advance(2 * time.Minute)
		o.settled() // sends the messages that are already pending
		o.Inbox.Clear()
		if err := link(""); err != nil {
			t.Fatal(err)
		}
		m := o.Mail(t, "ada@example.com", auth.KindMagicLink)
		if m.Subject != "Come <in>" || !strings.HasPrefix(m.Text, "We have moved.\nAll <b>stays</b>.\n\n") || !strings.HasSuffix(m.Text, "\n"+footer+"\n") || strings.Contains(m.Text, "Another") {
			t.Errorf("%s: %q\n%s", locale, m.Subject, m.Text)
		}
		if !strings.Contains(m.HTML, "All &lt;b&gt;stays&lt;/b&gt;.") || !strings.Contains(m.HTML, ">"+footer+"</p>") || !strings.Contains(m.HTML, "<title>Come &lt;in&gt;") {
			t.Errorf("%s: %s", locale, m.HTML)
		}
	}
	set("texts", nil)
	setup, err := o.SetupTOTP(ctx, auth.SetupTOTPParams{Caller: auth.Caller{UserID: again.User.ID, SessionID: again.SessionID}})
	if err != nil || !strings.Contains(setup.URI, "issuer=After") {
		t.Errorf("%+v, %v", setup, err)
	}

	login := func() error {
		_, err := o.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
		return err
	}
	set("mfa_required_for", []string{"other", "editor"})
	wantCode(t, login(), auth.CodeMFAEnrollmentRequired)
	set("mfa_required_for", nil)
	if err := login(); err != nil {
		t.Error(err)
	}
	set("mfa_required", true)
	wantCode(t, login(), auth.CodeMFAEnrollmentRequired)
	set("mfa_required", false)
	set("password_enabled", false)
	wantCode(t, login(), auth.CodeMethodDisabled)
}

// A link or code that was sent while sign-up was open creates no account once it is
// closed.
func TestLinksMakeNoAccountsWithoutSignUp(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		if _, err := o.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "new@example.com"}); err != nil {
			t.Fatal(err)
		}
		token := o.token("new@example.com", auth.KindMagicLink)
		const number = "+4930123457"
		if _, err := o.SendPhoneCode(t.Context(), auth.SendPhoneCodeParams{Phone: number}); err != nil {
			t.Fatal(err)
		}
		if _, err := o.adm.SetSettings(t.Context(), admin.System("test").Accepting(), admin.SetSettingsParams{Set: map[string]any{"signup_enabled": false}}); err != nil {
			t.Fatal(err)
		}
		_, err := o.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: token})
		wantCode(t, err, auth.CodeInvalidToken)
		_, err = o.VerifyPhoneCode(t.Context(), auth.VerifyPhoneCodeParams{Phone: number, Code: o.Mail(t, number, auth.KindPhoneCode).Code})
		wantCode(t, err, auth.CodeInvalidCode)
		for _, key := range []store.UserKey{store.ByEmail("new@example.com"), store.ByPhone(number)} {
			if _, err := o.behind().User(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("there is an account: %v", err)
			}
		}
	})
}
