package authclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
)

// Many callers at once, one expiry: one refresh, and nobody signed out.
func TestOneRefresh(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	old := token(t, c)
	s.clock.Advance(15 * time.Minute)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got, err := c.Token(t.Context()); err != nil || got == old {
				t.Error(got == old, err)
			}
		})
	}
	wg.Wait()
	if n := s.count("POST /refresh"); n != 1 {
		t.Errorf("%d refreshes", n)
	}
}

// Clients that share a store, as processes share a file, adopt each other's tokens; one
// that slept for a day is not signed out.
func TestSharedStoreAdoptsNewerTokens(t *testing.T) {
	t.Parallel()
	s := newService(t)
	store := FileStore{filepath.Join(t.TempDir(), "session.json")}
	a := signedIn(t, s, "ada@example.com", WithTokenStore(store))
	b := newClient(t, s, WithTokenStore(store))
	if state, err := b.Restore(t.Context()); err != nil || state.Status != StatusSignedIn {
		t.Fatal(state, err)
	}
	for range 3 {
		s.clock.Advance(24 * time.Hour)
		token(t, a)
		if before := s.count("POST /refresh"); token(t, b) != token(t, a) || s.count("POST /refresh") != before {
			t.Error("the newer token was not adopted")
		}
	}
	if err := a.SignOut(t.Context(), ScopeLocal); err != nil {
		t.Fatal(err)
	}
	s.clock.Advance(time.Hour)
	if _, err := b.Token(t.Context()); !errors.Is(err, CodeNoSession) || b.State().Status != StatusSignedOut {
		t.Error(err, b.State())
	}
}

// Whatever an outage answers, the session stays; only the server's word ends it.
func TestOutageIsNoSignOut(t *testing.T) {
	t.Parallel()
	for name, door := range map[string]func(w http.ResponseWriter){
		"500":       func(w http.ResponseWriter) { answer(w, 500, auth.CodeInternal) },
		"502 page":  func(w http.ResponseWriter) { w.WriteHeader(502); _, _ = io.WriteString(w, "<html>") },
		"503":       func(w http.ResponseWriter) { answer(w, 503, auth.CodeUnavailable, "Retry-After", "1") },
		"429":       func(w http.ResponseWriter) { answer(w, 429, auth.CodeRateLimited, "Retry-After", "600") },
		"408":       func(w http.ResponseWriter) { w.WriteHeader(408) },
		"401":       func(w http.ResponseWriter) { answer(w, 401, auth.CodeInvalidAPIKey) },
		"401 ended": func(w http.ResponseWriter) { answer(w, 401, auth.CodeSessionEnded) }, // of a proxy that guards itself; a refresh's is a 400
		"404":       func(w http.ResponseWriter) { answer(w, 404, auth.CodeNotFound) },
		"403 proxy": func(w http.ResponseWriter) { w.WriteHeader(403) },
		"200 page":  func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>log in to the hotel") },
		"200 empty": func(w http.ResponseWriter) { _, _ = io.WriteString(w, "{}") },
		"redirect":  func(w http.ResponseWriter) { w.Header().Set("Location", "http://127.0.0.1:1/"); w.WriteHeader(302) },
		"cut off":   func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			c := signedIn(t, s, "ada@example.com")
			s.clock.Advance(16 * time.Minute)
			s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { door(w) })
			if _, err := c.Token(t.Context()); err == nil {
				t.Fatal("a token out of nothing")
			}
			if got := c.State(); got.Status != StatusOffline || got.User == nil {
				t.Errorf("%+v", got)
			}
			s.set(nil)
			token(t, c)
			if got := c.State().Status; got != StatusSignedIn {
				t.Error(got)
			}
		})
	}
}

// What ends a session: these answers to a refresh, and no others.
func TestServersWordEndsTheSession(t *testing.T) {
	t.Parallel()
	for code, status := range map[auth.Code]int{auth.CodeInvalidRefreshToken: 400, auth.CodeRefreshTokenReused: 400, auth.CodeSessionEnded: 400, auth.CodeUserBanned: 403} {
		s := newService(t)
		c := signedIn(t, s, "ada@example.com")
		s.clock.Advance(16 * time.Minute)
		s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { answer(w, status, code) })
		if _, err := c.Token(t.Context()); !errors.Is(err, code) || c.State().Status != StatusSignedOut {
			t.Error(code, err, c.State())
		}
		if stored, err := c.store.Load(t.Context()); stored != nil || err != nil {
			t.Error(code, "is stored still", err)
		}
	}
}

// A refresh whose answer was lost is asked for again, and gets the same successor.
func TestLostAnswerOfARefresh(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	s.clock.Advance(16 * time.Minute)
	var lost atomic.Bool
	s.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/refresh") && !lost.Swap(true) {
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
	token(t, c)
	if s.count("POST /refresh") != 2 {
		t.Error(s.asked)
	}
}

// A sign-out while a refresh is under way wins: its answer does not sign in again.
func TestSignOutWinsOverRefresh(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	s.clock.Advance(16 * time.Minute)
	arrived, leave := make(chan struct{}), make(chan struct{})
	s.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !strings.HasSuffix(r.URL.Path, "/refresh") {
			next.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r) // it succeeds, and its answer is late
		close(arrived)
		<-leave
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(rec.Body.Bytes())
	})
	done := make(chan error)
	go func() {
		_, err := c.Token(t.Context())
		done <- err
	}()
	<-arrived
	if err := c.SignOut(t.Context(), ScopeLocal); err != nil {
		t.Error(err)
	}
	close(leave)
	if err := <-done; err == nil {
		t.Error("a token of a session that was signed out")
	}
	if got := c.State().Status; got != StatusSignedOut {
		t.Error(got)
	}
}

// A caller's context ends its own wait, and not the refresh that others wait for.
func TestContextBoundsTheOneCall(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	s.clock.Advance(16 * time.Minute)
	arrived, leave := make(chan struct{}), make(chan struct{})
	s.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		close(arrived)
		<-leave
		next.ServeHTTP(w, r)
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := c.Token(ctx)
		done <- err
	}()
	<-arrived
	stays := make(chan error)
	go func() {
		_, err := c.Token(t.Context())
		stays <- err
	}()
	for two := false; !two; runtime.Gosched() {
		c.mu.Lock()
		two = c.flight.waiting == 2
		c.mu.Unlock()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(leave)
	if err := <-stays; err != nil {
		t.Error(err)
	}
	if n := s.count("POST /refresh"); n != 1 {
		t.Error(n, "refreshes")
	}
}

// Every method can be called from a listener, and a panic in one harms nobody.
func TestListenersHoldNoLocks(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := newClient(t, s)
	seen := make(chan Status, 20)
	var cancel func()
	ready := make(chan struct{})
	cancel = c.Subscribe(func(st State) {
		<-ready
		_, _ = c.Restore(t.Context())
		_, _ = c.Token(t.Context())
		_, _ = c.Session(t.Context())
		_ = c.State()
		c.Subscribe(func(State) {})()
		if st.Status == StatusSignedIn {
			_ = c.SignOut(t.Context(), ScopeLocal)
		}
		seen <- st.Status
		panic("a listener's own")
	})
	close(ready)
	if got := <-seen; got != StatusLoading {
		t.Error(got)
	}
	if _, err := c.SignUp(t.Context(), SignUpParams{Email: "ada@example.com", Password: password}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []Status{StatusSignedOut, StatusSignedIn, StatusSignedOut} {
		if got := <-seen; got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	cancel()
}

// Events come with changes, and not with questions.
func TestEventsOnlyOnChange(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	told := make(chan State, 20)
	defer c.Subscribe(func(st State) { told <- st })()
	<-told
	for range 3 {
		if _, err := c.User(t.Context()); err != nil {
			t.Fatal(err)
		}
		token(t, c)
	}
	name := "Ada"
	if _, err := c.UpdateUser(t.Context(), UpdateUserParams{FullName: &name}); err != nil {
		t.Fatal(err)
	}
	if st := <-told; st.User.FullName == nil || *st.User.FullName != name {
		t.Error("told of nothing new:", st)
	}
}

// Two people in one process, each with a client, never see each other.
func TestClientsShareNothing(t *testing.T) {
	t.Parallel()
	s := newService(t)
	var wg sync.WaitGroup
	for i := range 8 {
		email := fmt.Sprintf("user%d@example.com", i)
		c := signedIn(t, s, email)
		wg.Go(func() {
			for range 5 {
				if u, err := c.User(t.Context()); err != nil || *u.Email != email {
					t.Error(u, err)
				}
			}
		})
	}
	wg.Wait()
}

// The token goes to the project's origin and those named, and nowhere else, not by a
// redirect either; a stale one is renewed.
func TestTransportSendsTheTokenToItsOriginsOnly(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header.Get("Authorization")) }))
	defer other.Close()
	var tries int
	s.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/stale":
			b, _ := io.ReadAll(r.Body)
			if tries++; tries == 1 {
				answer(w, 401, auth.CodeTokenStale)
				return
			}
			_, _ = w.Write(b)
		default:
			next.ServeHTTP(w, r)
		}
	})
	h := &http.Client{Transport: c.Transport(nil)}
	get := func(url string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := h.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		b, _ := io.ReadAll(res.Body)
		return fmt.Sprint(res.StatusCode, string(b))
	}
	get(other.URL)
	get(s.url + "/away")
	if len(got) != 2 || strings.Join(got, "") != "" {
		t.Errorf("another origin got the token: %q", got)
	}
	if answered := get(s.url + "/stale"); answered != "200body" || tries != 2 || s.count("POST /refresh") != 1 {
		t.Error(answered, tries)
	}
	named := &http.Client{Transport: signedIn(t, s, "bob@example.com", WithTokenOrigins(other.URL)).Transport(nil)}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, other.URL, nil)
	res, err := named.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if !strings.HasPrefix(got[2], "Bearer ") {
		t.Error("a named origin got none")
	}
}

// No error, log line or formatting of anything shows a secret.
func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	sess, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v %+v %#v %s", *sess, sess, *sess, sess) + fmt.Sprint(sess.LogValue())
	s.set(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		b, _ := io.ReadAll(r.Body)
		w.WriteHeader(500)
		_, _ = w.Write(b) // what was sent, echoed
	})
	_, err = c.SignInWithPassword(t.Context(), PasswordParams{Email: "ada@example.com", Password: password})
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	shown += fmt.Sprintf("%v %+v %#v", e, e, e)
	e = &Error{Code: auth.CodeMFARequired, mfa: pending{token: "the-mfa-token"}}
	shown += fmt.Sprintf("%v %+v %#v", e, e, e) + fmt.Sprint(e.LogValue())
	gone := newClient(t, s)
	gone.wire.base.Host = "127.0.0.1:1"
	_, err = gone.Invitation(t.Context(), "the-invitation-token")
	shown += fmt.Sprintf("%v %#v", err, err)
	for _, secret := range []string{password, sess.AccessToken, sess.RefreshToken, "the-invitation-token", "the-mfa-token"} {
		if strings.Contains(shown, secret) {
			t.Errorf("%q is shown in %s", secret, shown)
		}
	}
}

// A second factor is asked for and given; one who has to set one up does so without a
// session.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	setup, err := c.EnrollTOTP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	code := func() string {
		s.clock.Advance(30 * time.Second)
		code, err := totp.GenerateCode(setup.Secret, s.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	recovery, err := c.EnableTOTP(t.Context(), code())
	if err != nil || len(recovery) != 10 {
		t.Fatal(recovery, err)
	}
	fresh := newClient(t, s)
	login := PasswordParams{Email: "ada@example.com", Password: password}
	if _, err := fresh.SignInWithPassword(t.Context(), login); !errors.Is(err, auth.CodeMFARequired) || fresh.State().Status != StatusMFA {
		t.Fatal(err, fresh.State())
	}
	if _, err := fresh.VerifyMFA(t.Context(), MFAParams{TOTPCode: "000000"}); !errors.Is(err, auth.CodeInvalidTOTPCode) || fresh.State().Status != StatusMFA {
		t.Fatal(err, fresh.State())
	}
	if _, err := fresh.VerifyMFA(t.Context(), MFAParams{TOTPCode: code()}); err != nil || fresh.State().Status != StatusSignedIn {
		t.Fatal(err, fresh.State())
	}
	late := newClient(t, s)
	_, _ = late.SignInWithPassword(t.Context(), login)
	s.clock.Advance(6 * time.Minute)
	if got := late.State().Status; got != StatusSignedOut {
		t.Error("the question does not end:", got)
	}
	if sess, err := late.SignInWithPassword(t.Context(), PasswordParams{Email: login.Email, Password: password, TOTPCode: code()}); err != nil || !sess.User.MFAEnabled {
		t.Fatal(err)
	}
	if err := late.Confirm(t.Context(), ConfirmParams{Password: password}); err != nil {
		t.Error(err)
	}
	if codes, err := late.RecoveryCodes(t.Context()); err != nil || len(codes) != 10 {
		t.Error(codes, err)
	}
	if err := late.DisableTOTP(t.Context(), MFAParams{TOTPCode: code()}); err != nil {
		t.Error(err)
	}

	forced := newService(t, auth.WithSettings(auth.Settings{MFARequired: auth.On}))
	n := newClient(t, forced)
	if _, err := n.SignUp(t.Context(), SignUpParams{Email: "eve@example.com", Password: password}); !errors.Is(err, auth.CodeMFAEnrollmentRequired) || n.State().Status != StatusEnroll {
		t.Fatal(err, n.State())
	}
	if setup, err = n.EnrollTOTP(t.Context()); err != nil {
		t.Fatal(err)
	}
	now, err := totp.GenerateCode(setup.Secret, forced.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.EnableTOTP(t.Context(), now); err != nil || n.State().Status != StatusSignedIn {
		t.Fatal(err, n.State())
	}
}

// Requests that may have been carried out are not repeated, and those that were not, are.
func TestRepetition(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for name, row := range map[string]struct {
		door func(w http.ResponseWriter)
		path string
		want int
	}{
		"sign-up, lost":        {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "POST /signup", 1},
		"sign-up, unavailable": {func(w http.ResponseWriter) { answer(w, 503, auth.CodeUnavailable) }, "POST /signup", 1},
		"sign-up, overloaded":  {func(w http.ResponseWriter) { answer(w, 503, auth.CodeOverloaded, "Retry-After", "1") }, "POST /signup", 3},
		"sign-up, limited":     {func(w http.ResponseWriter) { answer(w, 429, auth.CodeRateLimited, "Retry-After", "2") }, "POST /signup", 3},
		"sign-up, for long":    {func(w http.ResponseWriter) { answer(w, 429, auth.CodeRateLimited, "Retry-After", "60") }, "POST /signup", 1},
		"settings, lost":       {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "GET /settings", 3},
		"settings, bad":        {func(w http.ResponseWriter) { answer(w, 400, auth.CodeBadJSON) }, "GET /settings", 1},
	} {
		c, before := newClient(t, s), s.count(row.path)
		s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { row.door(w) })
		var err error
		if row.path == "GET /settings" {
			_, err = c.Settings(t.Context())
		} else {
			_, err = c.SignUp(t.Context(), SignUpParams{Email: "x@example.com", Password: password})
		}
		if n := s.count(row.path) - before; err == nil || n != row.want {
			t.Errorf("%s: asked %d times, %v", name, n, err)
		}
	}
}
