package authclient

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
)

// mail returns the next message of a kind to a recipient.
func mail(t *testing.T, s *service, to string, kind auth.Kind) auth.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	m, err := s.Inbox().Wait(ctx, func(m auth.Message) bool { return m.To == to && m.Kind == kind })
	if err != nil {
		t.Fatal(kind, err)
	}
	return m
}

func linkToken(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil || u.Query().Get("token") == "" {
		t.Fatal(link, err)
	}
	return u.Query().Get("token")
}

// browse follows redirects until a URL prefix that this server does not serve, and returns
// the URL.
func browse(t *testing.T, from, until string) string {
	t.Helper()
	last := errors.New("there")
	at := ""
	h := &http.Client{CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if at = r.URL.String(); strings.HasPrefix(at, until) {
			return last
		}
		return nil
	}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, from, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("User-Agent", "Mozilla/5.0")
	res, err := h.Do(r)
	if res != nil {
		_ = res.Body.Close()
	}
	if !errors.Is(err, last) {
		t.Fatal("ended at", at, err)
	}
	return at
}

const home = "http://127.0.0.1/home"

// A provider's sign-in is bound to its flow, and completes once; several can be in
// progress.
func TestOAuthIsBoundToItsFlow(t *testing.T) {
	t.Parallel()
	idp := authtest.StartProvider(t)
	s := newService(t, auth.WithProvider(idp.Google()))
	idp.Now = s.clock.Now
	c := newClient(t, s)
	ctx := t.Context()
	idp.SignsIn(authtest.Person{Subject: "1", Email: "ada@example.com", EmailVerified: true})
	one, err := c.SignInWithOAuth(ctx, OAuthParams{Provider: "google", RedirectTo: home})
	if err != nil {
		t.Fatal(err)
	}
	two, err := c.SignInWithOAuth(ctx, OAuthParams{Provider: "google", RedirectTo: home})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(one.URL, one.verifier) {
		t.Error("the verifier is in the URL")
	}
	back := browse(t, one.URL, home)
	if _, err := two.Complete(ctx, back); !errors.Is(err, auth.CodeBadCodeVerifier) {
		t.Error("another flow completed it:", err)
	}
	if _, err := one.Complete(ctx, home+"?state=x"); !errors.Is(err, CodeForeignURL) {
		t.Error(err)
	}
	if _, err := one.Complete(ctx, home+"?error=access_denied&error_code=oauth_denied"); !errors.Is(err, auth.CodeOAuthDenied) {
		t.Error(err)
	}
	if one, err = c.SignInWithOAuth(ctx, OAuthParams{Provider: "google", RedirectTo: home}); err != nil {
		t.Fatal(err)
	}
	back = browse(t, one.URL, home)
	if sess, err := one.Complete(ctx, back); err != nil || *sess.User.Email != "ada@example.com" {
		t.Fatal(sess, err)
	}
	if _, err := one.Complete(ctx, back); !errors.Is(err, CodeUsed) {
		t.Error("twice:", err)
	}

	bob := signedIn(t, s, "bob@example.com")
	if _, err := bob.ConfirmEmail(ctx, ConfirmEmailParams{Token: linkToken(t, mail(t, s, "bob@example.com", auth.KindVerifyEmail).Link)}); err != nil {
		t.Fatal(err)
	}
	idp.SignsIn(authtest.Person{Subject: "2", Email: "bob@elsewhere.example", EmailVerified: true})
	link, err := bob.LinkIdentity(ctx, OAuthParams{Provider: "google", RedirectTo: home})
	if err != nil {
		t.Fatal(err)
	}
	if sess, err := link.Complete(ctx, browse(t, link.URL, home)); err != nil || len(sess.User.Identities) != 1 || *sess.User.Email != "bob@example.com" {
		t.Fatal(sess, err)
	}
	if err := bob.UnlinkIdentity(ctx, "google"); err != nil {
		t.Error(err)
	}
}

// Codes and links in mails and texts sign in, with the flow that requested them.
func TestCodesAndLinks(t *testing.T) {
	t.Parallel()
	s := newService(t)
	ctx := t.Context()
	c := newClient(t, s)
	flow, err := c.SendOTP(ctx, OTPParams{Email: "ada@example.com"})
	if err != nil || flow.RequestID == "" {
		t.Fatal(err)
	}
	if _, err := flow.Verify(ctx, "000000"); !errors.Is(err, auth.CodeInvalidCode) {
		t.Error(err)
	}
	if sess, err := flow.Verify(ctx, mail(t, s, "ada@example.com", auth.KindMagicLink).Code); err != nil || *sess.User.Email != "ada@example.com" {
		t.Fatal(sess, err)
	}
	phone := newClient(t, s)
	if flow, err = phone.SendOTP(ctx, OTPParams{Phone: "+4915112345678"}); err != nil {
		t.Fatal(err)
	}
	text, err := s.Inbox().Wait(ctx, func(m auth.Message) bool { return m.To == "+4915112345678" })
	if err != nil {
		t.Fatal(err)
	}
	if sess, err := flow.Verify(ctx, text.Code); err != nil || !sess.User.PhoneVerified {
		t.Fatal(sess, err)
	}
	if err := c.SignOut(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if err := c.ResetPasswordForEmail(ctx, "ada@example.com", ""); err != nil {
		t.Fatal(err)
	}
	token := linkToken(t, mail(t, s, "ada@example.com", auth.KindResetPassword).Link)
	if err := c.ResetPassword(ctx, token, "short"); !errors.Is(err, auth.CodeWeakPassword) {
		t.Error(err)
	}
	var weak *Error
	if err := c.ResetPassword(ctx, token, "short"); !errors.As(err, &weak) || len(weak.Reasons) == 0 {
		t.Errorf("%+v", weak)
	}
	if err := c.ResetPassword(ctx, token, password); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SignInWithPassword(ctx, PasswordParams{Email: "ada@example.com", Password: password}); err != nil {
		t.Fatal(err)
	}
	other := newClient(t, s)
	if _, err := other.SignInWithPassword(ctx, PasswordParams{Email: "ada@example.com", Password: password}); err != nil {
		t.Fatal(err)
	}
	list, err := c.Sessions(ctx)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if err := c.EndOtherSessions(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := other.User(ctx); !errors.Is(err, auth.CodeSessionEnded) || other.State().Status != StatusSignedOut {
		t.Error("a session that was ended elsewhere:", err, other.State())
	}
	if err := c.ChangePassword(ctx, password, password+"!"); err != nil {
		t.Error(err)
	}
	if doc, err := c.Export(ctx); err != nil || !strings.Contains(string(doc), "ada@example.com") {
		t.Error(err)
	}
	if err := c.DeleteAccount(ctx); err != nil || c.State().Status != StatusSignedOut {
		t.Error(err, c.State())
	}
}

// If an address has to be confirmed first, the state shows that.
func TestConfirmationBeforeTheFirstSignIn(t *testing.T) {
	t.Parallel()
	s := newService(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	c := newClient(t, s)
	r, err := c.SignUp(t.Context(), SignUpParams{Email: "ada@example.com", Password: password})
	if err != nil || r.Session != nil || c.State().Status != StatusConfirm {
		t.Fatal(r, err, c.State())
	}
	if _, err := c.ConfirmEmail(t.Context(), ConfirmEmailParams{Email: "ada@example.com", Code: mail(t, s, "ada@example.com", auth.KindVerifyEmail).Code, RequestID: r.RequestID}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SignInWithPassword(t.Context(), PasswordParams{Email: "ada@example.com", Password: password}); err != nil || c.State().Status != StatusSignedIn {
		t.Fatal(err, c.State())
	}
}
