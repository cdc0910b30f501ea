package signin_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/hostileclient"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// A session is checked when the whole request has arrived. A request with a body that
// arrives after the session has ended changes nothing, on any route.
func TestBodyBeforeSession(t *testing.T) {
	type victim struct {
		email string
		harness.Session
	}
	for name, act := range map[string]struct {
		ends   func(w *harness.Listening, v victim)
		status int
		code   auth.Code
	}{
		"signed out": {func(w *harness.Listening, v victim) {
			w.Do("POST", "/logout?scope=global", nil, harness.Bearer(v.AccessToken)).Want(204)
		}, 401, auth.CodeSessionEnded},
		"reset by the owner": {func(w *harness.Listening, v victim) {
			w.Do("POST", "/forgot-password", map[string]any{"email": v.email}).Want(200)
			w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken(v.email, auth.KindResetPassword), "new_password": "another horse battery"}).Want(200)
		}, 401, auth.CodeSessionEnded},
		"banned": {func(w *harness.Listening, v victim) {
			until := w.Clock.Now().Add(time.Hour)
			w.Patch(v.User.ID, store.UserPatch{BannedUntil: &until})
		}, 403, auth.CodeUserBanned},
		"left alone": {func(*harness.Listening, victim) {}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			idp := authtest.StartProvider(t)
			w := harness.NewListening(t, nil, auth.WithProvider(idp.Google()))
			for i, pattern := range harness.SessionRoutes(w.Auth) {
				v := victim{email: strings.Repeat("x", i+1) + "@example.com"}
				v.Session = w.Member(v.email)
				var read atomic.Bool
				w.Tap.Reset(storetap.Hooks{Before: func(_ context.Context, method string, _ int) {
					if method == "Session" {
						read.Store(true)
					}
				}})
				held, err := hostileclient.Hold(t.Context(), w.Addr, harness.Request(pattern, v.AccessToken))
				if err != nil {
					t.Errorf("%s: %v", pattern, err)
					continue
				}
				if read.Load() {
					t.Errorf("%s: the session was read before the body", pattern)
				}
				w.Tap.Reset(storetap.Hooks{})
				act.ends(w, v)
				before := looked(w, v.User.ID)
				res, err := held.Send()
				if err != nil {
					t.Fatalf("%s: %v", pattern, err)
				}
				a := &harness.Answer{T: t, Status: res.Status, Body: res.Body}
				if act.status != 0 {
					a.Want(act.status, act.code)
					if after := looked(w, v.User.ID); !reflect.DeepEqual(after, before) {
						t.Errorf("%s: changed\n%+v\nto\n%+v", pattern, before, after)
					}
				} else if a.Status == 401 || a.Status == 400 || strings.Contains(string(a.Body), string(auth.CodeUserBanned)) {
					t.Errorf("%s: %d %s, and nothing had ended", pattern, a.Status, a.Body)
				}
				if err := held.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// looked returns a user's stored data.
func looked(w *harness.Listening, id string) harness.Snapshot {
	w.T.Helper()
	v := harness.Snapshot{}
	var err error
	if v.Credentials, err = w.Store.Credentials(w.T.Context(), store.ByID(id)); err != nil && !errors.Is(err, store.ErrNotFound) {
		w.T.Fatal(err)
	}
	factors, _ := store.Capability[store.FactorStore](w.Store)
	if v.Factors, err = factors.Factors(w.T.Context(), id); err != nil {
		w.T.Fatal(err)
	}
	if v.Sessions, err = w.Store.Sessions(w.T.Context(), id, w.Clock.Now()); err != nil {
		w.T.Fatal(err)
	}
	return v
}

// A request makes no permanent change if its authority ends before its body arrives. This
// holds for every kind of authority.
func TestBodyBeforeAuthority(t *testing.T) {
	held := func(w *harness.Listening, pattern, access, body string) *hostileclient.Held {
		r := harness.Request(pattern, access)
		r.Body = body
		h, err := hostileclient.Hold(w.T.Context(), w.Addr, r)
		if err != nil {
			w.T.Fatal(err)
		}
		return h
	}
	reset := func(w *harness.Listening, email string) {
		w.Do("POST", "/forgot-password", map[string]any{"email": email}).Want(200)
		w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken(email, auth.KindResetPassword), "new_password": "another horse battery"}).Want(200)
	}
	send := func(h *hostileclient.Held, status int, code auth.Code) {
		t.Helper()
		res, err := h.Send()
		if err != nil {
			t.Fatal(err)
		}
		(&harness.Answer{T: t, Status: res.Status, Body: res.Body}).Want(status, code)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Run("a factor is not removed", func(t *testing.T) {
		w := harness.NewListening(t, nil)
		e := w.Enrol(w.Member("ada@example.com").AccessToken)
		h := held(w, "POST /2fa/disable", e.AccessToken, `{"totp_code":"`+w.Code(e.Secret, 0)+`"}`)
		reset(w, "ada@example.com")
		send(h, 401, auth.CodeSessionEnded)
		w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": "another horse battery"}).Want(403, auth.CodeMFARequired)
	})
	t.Run("no factor is set up with the token of a sign-in", func(t *testing.T) {
		w := harness.NewListening(t, nil, auth.WithMFA(auth.MFAOptions{RequiredFor: func(u auth.User) bool { return u.FullName == harness.MustEnrol }}))
		s := w.Member("ada@example.com")
		name := harness.MustEnrol
		w.Patch(s.User.ID, store.UserPatch{FullName: &name})
		token, _ := harness.DecodeAs[map[string]any](w.PostLogin("ada@example.com", harness.GoodPassword).Want(403, auth.CodeMFAEnrollmentRequired))["mfa_token"].(string)
		secret := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(token)).Want(200)).Secret
		h := held(w, "POST /2fa/verify-and-enable", token, `{"totp_code":"`+w.Code(secret, 0)+`"}`)
		reset(w, "ada@example.com")
		send(h, 401, auth.CodeBadToken)
		w.PostLogin("ada@example.com", "another horse battery").Want(403, auth.CodeMFAEnrollmentRequired)
	})
	t.Run("no first password is set", func(t *testing.T) {
		idp := authtest.StartProvider(t)
		w := harness.NewListening(t, nil, auth.WithProvider(idp.Google()))
		idp.Now = w.Clock.Now
		s := w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
		h := held(w, "POST /me/password", s.AccessToken, `{"new_password":"thieves' horse battery"}`)
		w.Do("POST", "/logout", nil, harness.Bearer(s.AccessToken)).Want(204)
		send(h, 401, auth.CodeSessionEnded)
		w.PostLogin(harness.Ada.Email, "thieves' horse battery").Want(401, auth.CodeInvalidCredentials)
	})
}

// A request with a body that never arrives is given up on every route, and so is its
// connection. A request without a body does not wait.
func TestLateBody(t *testing.T) {
	const each = 3
	w := harness.NewListening(t, nil, harness.WithBodyWait(30*time.Millisecond))
	s := w.Member("ada@example.com")
	before := runtime.NumGoroutine()
	var list []*hostileclient.Held
	for _, pattern := range harness.Routes(w.Auth) {
		for range each {
			h, err := hostileclient.Hold(t.Context(), w.Addr, harness.Request(pattern, s.AccessToken))
			if err != nil {
				t.Fatalf("%s: %v", pattern, err)
			}
			list = append(list, h)
		}
	}
	for _, h := range list {
		res, err := h.Response()
		if err != nil {
			t.Fatal(err)
		}
		(&harness.Answer{T: t, Status: res.Status, Body: res.Body}).Want(400, auth.CodeBadJSON)
		if err := h.Closed(); err != nil || !res.Closes {
			t.Errorf("the connection stays open: %v", err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	harness.Settled(t, before)
	// Unknown paths are answered at once, without waiting for the rest of the request.
	for _, r := range []hostileclient.Request{{Method: "POST", Path: "/auth/v1/nothing"}, {Method: "PUT", Path: "/auth/v1/me"}, {Method: "POST", Path: "/elsewhere"}} {
		r.Header = []hostileclient.Field{{Name: "Content-Length", Value: "10"}}
		res, err := hostileclient.Do(t.Context(), w.Addr, r)
		if err != nil || (res.Status != 404 && res.Status != 405) || !res.Closes {
			t.Errorf("%s: %+v, %v", r.Path, res, err)
		}
	}
	harness.Settled(t, before)
	r := harness.Request("GET /me", s.AccessToken)
	r.Body = ""
	if res, err := hostileclient.Do(t.Context(), w.Addr, r); err != nil || res.Status != 200 || res.Closes {
		t.Errorf("%+v, %v", res, err)
	}
}

// The deadline applies to the body alone: an answer may take longer, and the next request on
// the connection has a deadline of its own.
func TestBodyDeadlineEndsWithBody(t *testing.T) {
	const wait = 20 * time.Millisecond
	slow := auth.WithClaims(func(ctx context.Context, _ auth.User) (map[string]any, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * wait):
			return nil, nil
		}
	})
	w := harness.NewListening(t, nil, harness.WithBodyWait(wait), slow)
	w.Member("ada@example.com")
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	for range 3 {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+w.Addr+"/login", strings.NewReader(`{"email":"ada@example.com","password":"`+harness.GoodPassword+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil || res.StatusCode != 200 {
			t.Errorf("%d, %v", res.StatusCode, err)
		}
	}
}

// A server with a shorter limit of its own keeps it.
func TestServersReadTimeout(t *testing.T) {
	w := harness.NewListening(t, func(s *http.Server) { s.ReadTimeout = 30 * time.Millisecond })
	h, err := hostileclient.Hold(t.Context(), w.Addr, harness.Request("POST /login", ""))
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.Response()
	if err != nil {
		t.Fatal(err)
	}
	(&harness.Answer{T: t, Status: res.Status, Body: res.Body}).Want(400, auth.CodeBadJSON)
	if err := errors.Join(h.Closed(), h.Close()); err != nil {
		t.Error(err)
	}
}
