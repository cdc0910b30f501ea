package mail_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
)

// An imported account without a password is invited to choose a first one, in every
// language. The mail does not mention a change, because there is nothing to change.
func TestWelcomeOfTheImported(t *testing.T) {
	w := harness.NewWorld(t)
	u := w.Imported(auth.ImportUserParams{Email: "ada@example.com", EmailVerified: true, FullName: "Ada"})
	if err := w.SendWelcome(t.Context(), auth.SendWelcomeParams{UserID: u.ID}); err != nil {
		t.Fatal(err)
	}
	m := w.Mail(t, "ada@example.com", auth.KindWelcome)
	if !strings.Contains(m.Subject, "Choose your password") || !strings.Contains(m.Text, "no password yet") || !strings.Contains(m.Text, "7 days") ||
		!strings.Contains(m.Text, "Hello Ada") || !strings.Contains(m.HTML, m.Link[:20]) || strings.Contains(m.Text, "asked to choose") || !strings.Contains(m.Link, "/reset-password?token=") {
		t.Errorf("%s\n%s", m.Subject, m.Text)
	}
	w.Clock.Advance(6 * 24 * time.Hour)
	w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken("ada@example.com", auth.KindWelcome), "new_password": harness.GoodPassword}).Want(200)
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}).Want(200)
	err := w.SendWelcome(t.Context(), auth.SendWelcomeParams{UserID: u.ID})
	if !errors.Is(err, auth.CodeValidationFailed) {
		t.Errorf("with a password: %v", err)
	}

	grace := w.Imported(auth.ImportUserParams{Email: "grace@example.com", UserMetadata: map[string]any{"locale": "de"}})
	if err := w.SendWelcome(t.Context(), auth.SendWelcomeParams{UserID: grace.ID}); err != nil {
		t.Fatal(err)
	}
	if m := w.Mail(t, "grace@example.com", auth.KindWelcome); !strings.Contains(m.Text, "noch kein Passwort") || !strings.Contains(m.Text, "7 Tage") {
		t.Error(m.Text)
	}
}

func TestWelcomeRefuses(t *testing.T) {
	w := harness.NewWorld(t)
	bad := func(id string) error {
		return w.SendWelcome(t.Context(), auth.SendWelcomeParams{UserID: id})
	}
	phone := w.Imported(auth.ImportUserParams{Phone: "+4930123456"})
	banned := w.Imported(auth.ImportUserParams{Email: "b@example.com", BannedUntil: w.Clock.Now().Add(time.Hour)})
	ada := w.Imported(auth.ImportUserParams{Email: "ada@example.com"})
	for name, c := range map[string]struct {
		id   string
		want auth.Code
	}{
		"nobody":     {"8e1f0c9a-6b0d-4f6e-9c55-0b1d6c3a2f10", auth.CodeNotFound},
		"no address": {phone.ID, auth.CodeValidationFailed},
		"banned":     {banned.ID, auth.CodeUserBanned},
	} {
		if err := bad(c.id); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := w.SendWelcome(t.Context(), auth.SendWelcomeParams{UserID: ada.ID, RedirectTo: "https://evil.example"}); !errors.Is(err, auth.CodeRedirectNotAllowed) {
		t.Errorf("redirect: %v", err)
	}
	// Strangers' requests do not block the application's welcome message.
	w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
	if err := bad(ada.ID); err != nil {
		t.Error(err)
	}
	if err := bad(ada.ID); !errors.Is(err, auth.CodeRateLimited) {
		t.Errorf("at once again: %v", err)
	}
	off := harness.NewWorld(t, auth.WithSettings(auth.Settings{Password: auth.Off}))
	if err := off.SendWelcome(t.Context(), auth.SendWelcomeParams{UserID: ada.ID}); !errors.Is(err, auth.CodeMethodDisabled) {
		t.Errorf("switched off: %v", err)
	}
}

// A forgotten password sends the right message for each account and reveals nothing to the
// caller: the answer, the store calls, the recorded events and the limits are those of any
// other address.
func TestForgottenPasswordOfTheImported(t *testing.T) {
	tap := storetap.New(harness.NewStore(t))
	w := &harness.World{Env: authtest.NewOn(t, tap, auth.WithRateLimits(auth.RateLimits{SendPerAddress: auth.Rate{Burst: 2, Per: time.Hour}, SendGap: auth.Rate{Burst: 2, Per: time.Minute}})), T: t}
	day := w.Clock.Now().Add(-24 * time.Hour)
	w.Imported(auth.ImportUserParams{Email: "new@example.com"})
	w.Imported(auth.ImportUserParams{Email: "hash@example.com", PasswordHash: harness.BcryptHash})
	w.Imported(auth.ImportUserParams{Email: "here@example.com", LastSignInAt: day})
	type seen struct {
		status int
		body   string
		calls  []string
		limits []int
	}
	ask := func(email string) (s seen) {
		t.Helper()
		for range 3 {
			tap.Reset(storetap.Hooks{
				Skip: func(_ context.Context, method string) bool {
					return method == "ClaimMessages" || method == "FinishMessage"
				},
				Before: func(_ context.Context, method string, _ int) { s.calls = append(s.calls, method) },
			})
			a := w.Do("POST", "/forgot-password", map[string]any{"email": email})
			tap.Reset(storetap.Hooks{})
			s.limits = append(s.limits, a.Status)
			if s.status == 0 {
				s.status, s.body = a.Status, string(a.Body)
			}
		}
		return s
	}
	stranger := ask("nobody@example.com")
	if !slices.Equal(stranger.limits, []int{200, 200, 429}) {
		t.Errorf("limits %v", stranger.limits)
	}
	for email, kind := range map[string]auth.Kind{"new@example.com": auth.KindWelcome, "hash@example.com": auth.KindResetPassword, "here@example.com": auth.KindResetPassword} {
		s := ask(email)
		if s.status != stranger.status || s.body != stranger.body || !slices.Equal(s.calls, stranger.calls) || !slices.Equal(s.limits, stranger.limits) {
			t.Errorf("%s: %+v, and a stranger's %+v", email, s, stranger)
		}
		w.Mail(t, email, kind)
	}
	for _, m := range w.Inbox.Messages() {
		if m.To == "new@example.com" && m.Kind != auth.KindWelcome {
			t.Errorf("%s to somebody without a password", m.Kind)
		}
	}
}

// The application's own page for resets also serves welcome links.
func TestWelcomeLeadsToTheResetPage(t *testing.T) {
	for want, urls := range map[string]map[auth.Kind]string{
		"https://app.example.com/reset?":   {auth.KindResetPassword: "https://app.example.com/reset"},
		"https://app.example.com/welcome?": {auth.KindResetPassword: "https://app.example.com/reset", auth.KindWelcome: "https://app.example.com/welcome"},
	} {
		w := harness.NewWorld(t, auth.WithLinks(auth.LinkOptions{URLs: urls}))
		u := w.Imported(auth.ImportUserParams{Email: "ada@example.com"})
		if err := w.SendWelcome(t.Context(), auth.SendWelcomeParams{UserID: u.ID}); err != nil {
			t.Fatal(err)
		}
		if m := w.Mail(t, "ada@example.com", auth.KindWelcome); !strings.HasPrefix(m.Link, want) {
			t.Errorf("%s, want %s", m.Link, want)
		}
	}
}
