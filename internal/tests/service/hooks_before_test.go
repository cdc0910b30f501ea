package service_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
)

// Every endpoint that sets a password calls the hook. A refusal keeps the old password, the
// sessions and the link.
func TestBeforePasswordChange(t *testing.T) {
	const next = "another horse battery"
	reset := func(w *harness.World) string {
		w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
		return w.LinkToken("ada@example.com", auth.KindResetPassword)
	}
	for name, c := range map[string]struct {
		method string
		door   func(w *harness.World, s harness.Session) func() *harness.Answer
	}{
		"change": {"change", func(w *harness.World, s harness.Session) func() *harness.Answer {
			return func() *harness.Answer {
				return w.Do("POST", "/me/password", map[string]any{"current_password": authtest.Password, "new_password": next}, harness.Bearer(s.AccessToken))
			}
		}},
		"reset": {"reset", func(w *harness.World, _ harness.Session) func() *harness.Answer {
			token := reset(w)
			return func() *harness.Answer {
				return w.Do("POST", "/reset-password", map[string]any{"token": token, "new_password": next})
			}
		}},
		"reset on the page": {"reset", func(w *harness.World, _ harness.Session) func() *harness.Answer {
			token := reset(w)
			return func() *harness.Answer {
				return w.Do("POST", "/reset-password", url.Values{"token": {token}, "new_password": {next}}.Encode(), harness.Form)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var refusal error = auth.Reject(auth.CodeMethodDisabled, "Not on a Sunday.")
			asked := []string{}
			w := harness.NewWorld(t, auth.WithHooks(auth.Hooks{BeforePasswordChange: func(_ context.Context, p auth.PasswordChange) error {
				asked = append(asked, p.Method+" of "+p.User.Email)
				return refusal
			}}))
			s := proven(w, "ada@example.com")
			try := c.door(w, s)
			w.Fired()
			if a := try().Want(403); !strings.Contains(string(a.Body), "Sunday") {
				t.Errorf("body %s", a.Body)
			}
			w.WantEvents()
			if !w.Alive(s.AccessToken) {
				t.Error("the session ended")
			}
			w.PostLogin("ada@example.com", next).Want(401)
			w.PostLogin("ada@example.com", authtest.Password).Want(200)
			refusal = nil
			if a := try(); a.Status >= 400 {
				t.Errorf("without a refusal: %d %s", a.Status, a.Body)
			}
			w.PostLogin("ada@example.com", next).Want(200)
			if want := c.method + " of ada@example.com"; !slices.Equal(asked, []string{want, want}) {
				t.Errorf("asked %q", asked)
			}
		})
	}
}

// proven is signed in to an account with authtest.Password.
func proven(w *harness.World, email string) harness.Session {
	return harness.Session{AccessToken: w.LoginAs(w.T, email).AccessToken}
}

// Every deletion calls the hook. A refusal keeps everything.
func TestBeforeDelete(t *testing.T) {
	var refusal error
	asked := 0
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{AccountDeletion: auth.On}), auth.WithHooks(auth.Hooks{BeforeDelete: func(_ context.Context, u auth.User) error {
		asked++
		if u.Email != "ada@example.com" {
			t.Errorf("asked about %+v", u)
		}
		return refusal
	}}))
	s := w.PostSignUp("ada@example.com")
	w.Fired()
	refusal = auth.Reject(auth.CodeReauthNeeded, "Pay first.")
	w.Do("DELETE", "/me", nil, harness.Bearer(s.AccessToken)).Want(403, auth.CodeReauthNeeded)
	refusal = errors.New("the database said no")
	w.Do("DELETE", "/me", nil, harness.Bearer(s.AccessToken)).Want(500, auth.CodeInternal)
	if err := w.DeleteUser(t.Context(), auth.DeleteUserParams{Caller: auth.ByApplication(s.User.ID)}); !errors.Is(err, auth.CodeInternal) {
		t.Errorf("the application: %v", err)
	}
	w.WantEvents()
	if !w.Alive(s.AccessToken) {
		t.Error("deleted")
	}
	refusal = nil
	w.Do("DELETE", "/me", nil, harness.Bearer(s.AccessToken)).Want(204)
	if asked != 4 {
		t.Errorf("asked %d times", asked)
	}
}
