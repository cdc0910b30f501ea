package authclient

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/authmount/auth"
)

// answered is an entry point that answers one path, after a function ran.
func answered(path string, first func(), status int, body string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path != "/auth/v1"+path {
			next.ServeHTTP(w, r)
			return
		}
		if first != nil {
			first()
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// A sign-up that was overtaken by a sign-in, or by one and its end, does not change the
// later state.
func TestLateSignUpIsNoState(t *testing.T) {
	t.Parallel()
	for name, out := range map[string]bool{"signed in since": false, "signed out since": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			signedIn(t, s, "bob@example.com")
			c := newClient(t, s)
			s.set(answered("/signup", func() {
				if _, err := c.SignInWithPassword(context.Background(), PasswordParams{Email: "bob@example.com", Password: password}); err != nil {
					t.Error(err)
				}
				if out {
					if err := c.SignOut(context.Background(), ""); err != nil {
						t.Error(err)
					}
				}
			}, 200, `{"confirmation_required":true,"user":{"id":"","email":"ada@example.com"},"request_id":"r"}`))
			if r, err := c.SignUp(t.Context(), SignUpParams{Email: "ada@example.com", Password: password}); err != nil || r.RequestID != "r" || r.Session != nil {
				t.Fatal(r, err)
			}
			want := StatusSignedIn
			if out {
				want = StatusSignedOut
			}
			if got := c.State(); got.Status != want || got.Pending != nil {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A failed sign-up leaves no state.
func TestFailedSignUp(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.set(answered("/signup", nil, 200, `{"access_token":""}`))
	if r, err := newClient(t, s).SignUp(t.Context(), SignUpParams{Email: "ada@example.com", Password: password}); err == nil || r != nil {
		t.Error(r, err)
	}
	c := newClient(t, s, WithTokenStore(unread{}))
	if r, err := c.SignUp(t.Context(), SignUpParams{Email: "ada@example.com", Password: password}); err == nil || r != nil {
		t.Error(r, err)
	}
}

// unread is a store that cannot be read.
type unread struct{}

func (unread) Load(context.Context) (*Session, error) { return nil, io.ErrUnexpectedEOF }
func (unread) Save(context.Context, *Session) error   { return nil }
func (unread) Clear(context.Context) error            { return nil }

// When the server no longer knows a wait, that wait is over, and a later one continues.
func TestOnlyTheSameWaitIsGivenUp(t *testing.T) {
	t.Parallel()
	s := newService(t)
	waits := func(token string) func(http.ResponseWriter, *http.Request, http.Handler) {
		return answered("/login", nil, 403, `{"code":"mfa_required","mfa_token":"`+token+`","expires_in":300,"factors":["totp"]}`)
	}
	c := newClient(t, s)
	ask := func(token string) {
		s.set(waits(token))
		if _, err := c.SignInWithPassword(context.Background(), PasswordParams{Email: "ada@example.com", Password: password}); !errors.Is(err, auth.CodeMFARequired) {
			t.Error(err)
		}
	}
	ask("first")
	s.set(answered("/2fa/verify", func() { ask("second") }, 401, `{"code":"invalid_token"}`))
	if _, err := c.VerifyMFA(t.Context(), MFAParams{TOTPCode: "123456"}); !errors.Is(err, auth.CodeInvalidToken) || c.State().Status != StatusMFA {
		t.Error("another sign-in's wait is given up:", err, c.State())
	}
	s.set(answered("/2fa/verify", nil, 401, `{"code":"invalid_token"}`))
	if _, err := c.VerifyMFA(t.Context(), MFAParams{TOTPCode: "123456"}); !errors.Is(err, auth.CodeInvalidToken) || c.State().Status != StatusSignedOut {
		t.Error("it waits on:", err, c.State())
	}
}

// Of two waiting sign-ins in a row, only the second one's timer continues.
func TestTimerOfAWaitEndsWithIt(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := newClient(t, s)
	running := 0
	c.wire.after = func(time.Duration, func()) func() {
		running++
		return func() { running-- }
	}
	s.set(answered("/login", nil, 403, `{"code":"mfa_required","mfa_token":"t","expires_in":300,"factors":["totp"]}`))
	for range 2 {
		_, _ = c.SignInWithPassword(t.Context(), PasswordParams{Email: "ada@example.com", Password: password})
	}
	if running != 1 {
		t.Error(running, "timers")
	}
	if err := c.SignOut(t.Context(), ""); err != nil || running != 0 {
		t.Error(running, "timers,", err)
	}
}

// An answer about an account is not stored for another account that signed in meanwhile,
// nor after a sign-out.
func TestLateAnswerIsNotAnothers(t *testing.T) {
	t.Parallel()
	s := newService(t)
	signedIn(t, s, "bob@example.com")
	c := signedIn(t, s, "ada@example.com")
	ada := c.State().User.ID
	s.set(answered("/me", func() {
		if _, err := c.SignInWithPassword(context.Background(), PasswordParams{Email: "bob@example.com", Password: password}); err != nil {
			t.Error(err)
		}
	}, 200, `{"id":"`+ada+`","email":"ada@example.com"}`))
	if _, err := c.User(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := c.State().User; got.ID == ada || *got.Email != "bob@example.com" {
		t.Errorf("%+v", got)
	}
	s.set(answered("/me", func() {
		if err := c.SignOut(context.Background(), ""); err != nil {
			t.Error(err)
		}
	}, 200, `{"id":"`+ada+`"}`))
	if _, err := c.User(t.Context()); err != nil || c.State().Status != StatusSignedOut {
		t.Error(err, c.State())
	}
}

// The client's state cannot be changed through the values it returns.
func TestReturnedUserIsACopy(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := newClient(t, s)
	if _, err := c.SignUp(t.Context(), SignUpParams{Email: "ada@example.com", Password: password, UserMetadata: map[string]any{"plan": "free"}}); err != nil {
		t.Fatal(err)
	}
	c.State().User.UserMetadata["plan"] = "pro"
	if got := c.State().User.UserMetadata["plan"]; got != "free" {
		t.Error(got)
	}
}

// A sign-in that was overtaken, by a sign-out or another sign-in, fails: its session is
// revoked, and its caller gets an error, even if the revocation fails.
func TestOvertakenSignInIsEnded(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		status int // of the answer to its revocation; 0: the server's own
		lives  bool
	}{"ended": {0, false}, "not ended": {400, true}} {
		s := newService(t)
		signedIn(t, s, "ada@example.com")
		c := newClient(t, s, WithLogger(slog.New(slog.DiscardHandler)))
		var kept *Session
		s.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			switch r.URL.Path {
			case "/auth/v1/login":
				rec := httptest.NewRecorder()
				next.ServeHTTP(rec, r)
				var got sessionWire
				if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
					t.Error(err)
				}
				kept, _ = got.session(s.clock.Now())
				if err := c.SignOut(r.Context(), ScopeLocal); err != nil {
					t.Error(err)
				}
				w.WriteHeader(rec.Code)
				_, _ = w.Write(rec.Body.Bytes())
			case "/auth/v1/logout":
				if row.status != 0 {
					answer(w, row.status, auth.CodeValidationFailed)
					return
				}
				next.ServeHTTP(w, r)
			default:
				next.ServeHTTP(w, r)
			}
		})
		got, err := c.SignInWithPassword(t.Context(), PasswordParams{Email: "ada@example.com", Password: password})
		if !errors.Is(err, CodeNoSession) || got != nil || c.State().Status != StatusSignedOut || s.count("POST /logout") != 1 {
			t.Errorf("%s: %+v, %v, %v after %d ends", what, got, err, c.State().Status, s.count("POST /logout"))
		}
		if _, err := c.UserOf(t.Context(), kept.AccessToken); (err == nil) != row.lives {
			t.Errorf("%s: its session: %v", what, err)
		}
	}
}

// full is a store that has no space, and keeps its content.
type full struct{}

func (full) Load(context.Context) (*Session, error) { return nil, nil }
func (full) Save(context.Context, *Session) error   { return io.ErrShortWrite }
func (full) Clear(context.Context) error            { return io.ErrShortWrite }

// A session that cannot be stored is reported by every method, because the next process
// would have none.
func TestStoreThatKeepsNothing(t *testing.T) {
	t.Parallel()
	s := newService(t)
	signedIn(t, s, "ada@example.com")
	c := newClient(t, s, WithTokenStore(full{}), WithLogger(slog.New(slog.DiscardHandler)))
	sess, err := c.SignInWithPassword(t.Context(), PasswordParams{Email: "ada@example.com", Password: password})
	if !errors.Is(err, io.ErrShortWrite) || sess != nil {
		t.Errorf("a sign-in: %v, %v", sess, err)
	}
	if _, err := c.SignUp(t.Context(), SignUpParams{Email: "bob@example.com", Password: password}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a sign-up: %v", err)
	}
	if err := c.SignOut(t.Context(), ScopeLocal); !errors.Is(err, io.ErrShortWrite) || c.State().Status != StatusSignedOut {
		t.Errorf("a sign-out: %v, %v", err, c.State().Status)
	}
	if err := c.SignOut(t.Context(), ScopeLocal); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a second one: %v", err)
	}
}
