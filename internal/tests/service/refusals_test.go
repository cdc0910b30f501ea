package service_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// A sign-up with a session that the application refuses creates no account and sends no message.
func TestRefusedFirstSessionMakesNoAccount(t *testing.T) {
	refuse := func(context.Context, auth.SignInAttempt) error {
		return auth.Reject(auth.CodeMethodDisabled, "Not yet.")
	}
	w := harness.NewWorld(t, auth.WithHooks(auth.Hooks{BeforeSignIn: refuse}))
	w.Do("POST", "/signup", map[string]any{"email": harness.AdaMail, "password": harness.GoodPassword}).Want(403, auth.CodeMethodDisabled)
	if _, err := w.Store.User(t.Context(), store.ByEmail(harness.AdaMail)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("there is an account: %v", err)
	}
	if err := w.Close(t.Context()); err != nil || len(w.Inbox.Messages()) != 0 {
		t.Errorf("%d messages, %v", len(w.Inbox.Messages()), err)
	}
}

// An enrolment that would end in a session that the application refuses switches no
// second factor on, and can be ended later.
func TestRefusedSessionEndsNoEnrolment(t *testing.T) {
	var refusal error
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{MFARequired: auth.On}), auth.WithHooks(auth.Hooks{BeforeSignIn: func(context.Context, auth.SignInAttempt) error { return refusal }}))
	w.Imported(auth.ImportUserParams{Email: harness.AdaMail, EmailVerified: true, PasswordHash: harness.BcryptHash})
	token, _ := harness.DecodeAs[map[string]any](w.PostLogin(harness.AdaMail, harness.GoodPassword).Want(403, auth.CodeMFAEnrollmentRequired))["mfa_token"].(string)
	secret := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(token)).Want(200)).Secret
	enable := func() *harness.Answer {
		return w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(secret, 0)}, harness.Bearer(token))
	}
	refusal = auth.Reject(auth.CodeMethodDisabled, "Not yet.")
	enable().Want(403, auth.CodeMethodDisabled)
	if u, err := w.Store.User(t.Context(), store.ByEmail(harness.AdaMail)); err != nil || u.MFAEnabled {
		t.Errorf("%+v, %v", u, err)
	}
	refusal = nil
	enable().Want(200)
}

// If the store cannot keep an imported second factor, its user is not imported without one.
func TestImportWithoutAStoreOfFactors(t *testing.T) {
	w := &harness.World{T: t, Env: authtest.NewOn(t, harness.PlainStore{Store: memstore.New()})}
	_, err := w.ImportUser(t.Context(), auth.ImportUserParams{Email: harness.AdaMail, TOTPSecret: "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"})
	var e *auth.Error
	if !errors.As(err, &e) || e.Code != auth.CodeValidationFailed || e.Fields["totp_secret"] == "" {
		t.Errorf("%v", err)
	}
}

// Fields of other types are bad JSON, and nothing is changed.
func TestOwnFieldsOfOtherTypes(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp(harness.AdaMail)
	for field, v := range map[string]any{"full_name": 7, "user_metadata": "x"} {
		w.Do("PATCH", "/me", map[string]any{field: v}, harness.Bearer(s.AccessToken)).Want(400, auth.CodeBadJSON)
	}
	w.Do("PATCH", "/me", map[string]any{"user_metadata": nil}, harness.Bearer(s.AccessToken)).Want(422, auth.CodeValidationFailed)
}

// While passwords are switched off, they cannot be changed either.
func TestSwitchedOffPasswordsStay(t *testing.T) {
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{Password: auth.Off}))
	s := w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink(harness.AdaMail, nil)}).Session()
	w.Do("POST", "/me/password", map[string]any{"new_password": harness.GoodPassword}, harness.Bearer(s.AccessToken)).Want(403, auth.CodeMethodDisabled)
}

// A link of any kind leads only to URLs on the list.
func TestMailedLinksLeadToAllowedPlaces(t *testing.T) {
	w := harness.NewWorld(t)
	for path, body := range map[string]map[string]any{
		"/signup": {"email": harness.AdaMail, "password": harness.GoodPassword}, "/magic-link/send": {"email": harness.AdaMail}, "/forgot-password": {"email": harness.AdaMail},
	} {
		body["redirect_to"] = "https://evil.test/"
		w.Do("POST", path, body).Want(400, auth.CodeRedirectNotAllowed)
	}
}

// leaks is a breach checker that is out of order.
type leaks struct{}

func (leaks) Breached(context.Context, string) (bool, error) { return false, errors.New("no answer") }

// Where passwords are not to be taken unchecked, none is taken while the checker fails.
func TestUncheckedPasswordIsNotTaken(t *testing.T) {
	for closed, want := range map[bool]int{true: 503, false: 200} {
		w := harness.NewWorld(t, auth.WithPasswords(auth.PasswordOptions{Breach: leaks{}, BreachFailClosed: closed}))
		if a := w.Do("POST", "/signup", map[string]any{"email": harness.AdaMail, "password": harness.GoodPassword}); a.Status != want {
			t.Errorf("fail closed %v: %d", closed, a.Status)
		}
	}
}

// A second code for a new address has attempts of its own.
func TestNewCodeToANewAddress(t *testing.T) {
	const newMail = "new@example.com"
	w := harness.NewWorld(t)
	s := w.Member(harness.AdaMail)
	ask := func() string {
		seen := w.MailsSeen()
		w.Do("PATCH", "/me", map[string]any{"email": newMail}, harness.Bearer(s.AccessToken)).Want(200)
		return w.ShownCode(harness.TokenIn(t, w.NewMail(newMail, auth.KindChangeEmail, seen).Link))
	}
	code := ask()
	for range 5 {
		w.VerifyBy(newMail, harness.OtherNumber(code), harness.Bearer(s.AccessToken)).Want(400, auth.CodeInvalidCode)
	}
	w.VerifyBy(newMail, code, harness.Bearer(s.AccessToken)).Want(429, auth.CodeRateLimited)
	w.Clock.Advance(time.Minute)
	w.VerifyBy(newMail, ask(), harness.Bearer(s.AccessToken)).Want(200)
}

// A token above any that is issued is not even parsed.
func TestLongTokensAreRefused(t *testing.T) {
	w := harness.NewWorld(t)
	for n, good := range map[int]bool{8 << 10: true, 16 << 10: false} {
		token := w.MintToken(t, map[string]any{"x": strings.Repeat("x", n)})
		if _, err := w.Verify(token); (err == nil) != good {
			t.Errorf("%d bytes: %v", len(token), err)
		}
	}
}

// Permissions are omitted from a token where roles leave no space for them, and the token
// names them.
func TestPermissionsGiveWayToRoles(t *testing.T) {
	w := harness.NewWorld(t)
	roles := make([]string, 24)
	for i := range roles {
		roles[i] = "role-of-twenty-five-" + string(rune('a'+i)) + "-xyz"
	}
	ada := w.LoginAs(t, harness.AdaMail, authtest.Roles(roles...), authtest.Permissions(harness.PermissionClaims(42)...))
	c, err := w.Verify(ada.AccessToken)
	if err != nil || len(ada.AccessToken) >= 3000 || strings.Join(c.Omitted, " ") != "app_metadata permissions" || len(c.Roles) != 25 {
		t.Errorf("%d bytes, %+v, %v", len(ada.AccessToken), c, err)
	}
}

// The inbox states its methods and content types.
func TestInboxHeaders(t *testing.T) {
	in := auth.NewInbox()
	for _, c := range []struct{ method, path, kind, allow string }{
		{"GET", "/dev/messages", "application/json; charset=utf-8", ""},
		{"GET", "/dev/inbox", "text/html; charset=utf-8", ""},
		{"POST", "/dev/inbox", "text/plain; charset=utf-8", "GET, HEAD"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, http.NoBody)
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
		rec := httptest.NewRecorder()
		in.ServeHTTP(rec, r)
		h := rec.Header()
		if h.Get("Content-Type") != c.kind || h.Get("Allow") != c.allow || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s %s: %v", c.method, c.path, h)
		}
	}
}
