package authclient

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
)

// If the store fails to keep the user that the server returned, that is logged: the call
// itself has succeeded.
func TestUsersThatAreNotStoredAreLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := newService(t)
	c := signedIn(t, s, "ada@example.com", WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if log.Len() > 0 {
		t.Fatal(log.String())
	}
	c.store = full{}
	if u, err := c.User(t.Context()); err != nil || u.Email == nil || *u.Email != "ada@example.com" {
		t.Errorf("%+v, %v", u, err)
	}
	if text := log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "the session cannot be stored") || !strings.Contains(text, io.ErrShortWrite.Error()) {
		t.Errorf("logged %q", text)
	}
}

// For every sign-in method, an answer without a session or one that breaks off is an error
// and no session.
func TestAnswersWithoutASessionAreErrors(t *testing.T) {
	t.Parallel()
	for name, signIn := range map[string]func(context.Context, *Client) (*Session, error){
		"password": func(ctx context.Context, c *Client) (*Session, error) {
			return c.SignInWithPassword(ctx, PasswordParams{Email: "ada@example.com", Password: password})
		},
		"invitation": func(ctx context.Context, c *Client) (*Session, error) {
			return c.AcceptInvitation(ctx, AcceptInvitationParams{Token: "t", Password: password})
		},
		"flow": func(ctx context.Context, c *Client) (*Session, error) { return newFlow(c).Complete(ctx, "code=x") },
	} {
		s := newService(t)
		c := newClient(t, s)
		for code, door := range map[auth.Code]func(http.ResponseWriter, *http.Request, http.Handler){
			CodeBadResponse: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { _, _ = io.WriteString(w, "{}") },
			CodeNetwork: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				w.Header().Set("Content-Length", "1000")
				_, _ = io.WriteString(w, `{"access_token":`)
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			},
		} {
			s.set(door)
			if got, err := signIn(t.Context(), c); !errors.Is(err, code) || got != nil || c.State().Status == StatusSignedIn {
				t.Errorf("%s, %s: %+v, %v", name, code, got, err)
			}
		}
	}
}

// A link to an identity is created for the account only: without a session it is not
// requested.
func TestLinksWithoutASessionAreNotMade(t *testing.T) {
	t.Parallel()
	s := newService(t)
	f := newFlow(newClient(t, s))
	f.linking = true
	if got, err := f.Complete(t.Context(), "code=x"); !errors.Is(err, CodeNoSession) || got != nil || s.count("POST /exchange") != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A caller who replaces a token that others have renewed meanwhile gets theirs, and blocks
// no later refresh.
func TestTokensThatOthersRenewed(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	mine := accessToken(t, c)
	for range 2 {
		got := make(chan string, 1)
		go func() {
			tok, err := c.renewed(context.Background(), "an older one")
			if err != nil {
				t.Error(err)
			}
			got <- tok
		}()
		select {
		case tok := <-got:
			if tok != mine || s.count("POST /refresh") != 0 {
				t.Errorf("%d refreshes", s.count("POST /refresh"))
			}
		case <-time.After(20 * time.Second):
			t.Fatal("it waits still")
		}
	}
}

// A session that the server ended while another process signed out is reported as missing.
func TestSignOutElsewhereDuringARefresh(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	s.set(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		if err := c.store.Clear(r.Context()); err != nil {
			t.Error(err)
		}
		answer(w, 400, auth.CodeInvalidRefreshToken)
	})
	if err := c.refresh(t.Context()); !errors.Is(err, CodeNoSession) || c.State().Status != StatusSignedOut {
		t.Errorf("%v, %+v", err, c.State())
	}
}

// The error of a request that cannot be created says so, and does not quote it.
func TestRequestsThatCannotBeMade(t *testing.T) {
	t.Parallel()
	c := newClient(t, newService(t))
	err := c.wire.do(t.Context(), call{method: "s3cr3t method", path: "/me"}, nil)
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeNetwork || e.Message != "The request cannot be created." || e.Unwrap() == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("%v", err)
	}
}

// If a session cannot be written, the file is not changed.
func TestFileStoreKeepsWhatItCannotReplace(t *testing.T) {
	t.Parallel()
	f := FileStore{Path: t.TempDir() + "/session"}
	if err := f.Save(t.Context(), &Session{RefreshToken: "r"}); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Save(t.Context(), &Session{RefreshToken: "s", ExpiresAt: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil {
		t.Error("saved what JSON has no words for")
	}
	if after, err := os.ReadFile(f.Path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("%s, %v", after, err)
	}
}

// While newer keys are unavailable, a token that names one of them is refused.
func TestTokensOfKeysThatCannotBeHad(t *testing.T) {
	t.Parallel()
	s := newService(t)
	good := accessToken(t, signedIn(t, s, "ada@example.com"))
	v := newVerifier(t, s, WithRemember(-1))
	s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { answer(w, 503, auth.CodeUnavailable) })
	bad := forged(t, newKey(t), good, map[string]any{"kid": "another"}, nil)
	if claims, err := v.Verify(t.Context(), bad); !errors.Is(err, auth.CodeBadToken) || claims != nil {
		t.Errorf("%+v, %v", claims, err)
	}
	v.againAt.Store(0)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+bad)
	w := httptest.NewRecorder()
	v.Require(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("let through") })).ServeHTTP(w, r)
	if w.Code != http.StatusUnauthorized {
		t.Error(w.Code)
	}
}
