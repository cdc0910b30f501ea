package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/hostileclient"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// listening is a world behind a real listener.
type listening struct {
	*world
	tap  *storetap.Tap
	addr string
}

// listen starts one. edit, which may be nil, changes the server before it starts.
func listen(t *testing.T, edit func(*http.Server), opts ...auth.Option) *listening {
	t.Helper()
	tap := storetap.New(newStore(t))
	w := &world{t: t, log: &syncBuffer{}}
	base := []auth.Option{
		auth.WithRateLimits(auth.RateLimits{Off: true}), auth.WithSettings(auth.Settings{AccountDeletion: auth.On}),
		auth.WithLogger(slog.New(slog.NewTextHandler(w.log, nil))),
	}
	w.Env = authtest.NewOn(t, tap, append(base, opts...)...)
	if err := auth.CheapPasswords(w.Auth); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(w.Handler())
	if edit != nil {
		edit(srv.Config)
	}
	srv.Start()
	t.Cleanup(srv.Close)
	return &listening{w, tap, srv.Listener.Addr().String()}
}

// request is one of a route, with everything in its body that any route might take
// from somebody who is signed in.
func request(pattern, access string) hostileclient.Request {
	method, path, _ := strings.Cut(pattern, " ")
	body, err := json.Marshal(map[string]any{
		"full_name": "Thief", "user_metadata": map[string]any{"thief": true}, "email": "thief@example.com",
		"current_password": goodPassword, "new_password": "thieves' horse battery", "totp_code": "123456",
	})
	if err != nil {
		panic(err) // strings only
	}
	return hostileclient.Request{
		Method: method, Path: "/auth/v1" + strings.NewReplacer("{provider}", "google", "{id}", "00000000-0000-7000-8000-000000000000").Replace(path),
		Header: []hostileclient.Field{{Name: "Authorization", Value: "Bearer " + access}, {Name: "Content-Type", Value: "application/json"}},
		Body:   string(body),
	}
}

// A session is judged when the whole request is there: whoever sends the head, and
// the body only after the session has ended, changes nothing, whatever the route.
func TestBodyBeforeSession(t *testing.T) {
	type victim struct {
		email string
		session
	}
	for name, act := range map[string]struct {
		ends   func(w *listening, v victim)
		status int
		code   auth.Code
	}{
		"signed out": {func(w *listening, v victim) {
			w.do("POST", "/logout?scope=global", nil, bearer(v.AccessToken)).want(204)
		}, 401, auth.CodeSessionEnded},
		"reset by the owner": {func(w *listening, v victim) {
			w.do("POST", "/forgot-password", map[string]any{"email": v.email}).want(200)
			w.do("POST", "/reset-password", map[string]any{"token": w.linkToken(v.email, auth.KindResetPassword), "new_password": "another horse battery"}).want(200)
		}, 401, auth.CodeSessionEnded},
		"banned": {func(w *listening, v victim) {
			until := w.Clock.Now().Add(time.Hour)
			w.patch(v.User.ID, store.UserPatch{BannedUntil: &until})
		}, 403, auth.CodeUserBanned},
		"left alone": {func(*listening, victim) {}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			idp := authtest.StartProvider(t)
			w := listen(t, nil, auth.WithProvider(idp.Google()))
			for i, pattern := range auth.SessionRoutes(w.Auth) {
				v := victim{email: strings.Repeat("x", i+1) + "@example.com"}
				v.session = w.member(v.email)
				var read atomic.Bool
				w.tap.Reset(storetap.Hooks{Before: func(_ context.Context, method string, _ int) {
					if method == "Session" {
						read.Store(true)
					}
				}})
				held, err := hostileclient.Hold(t.Context(), w.addr, request(pattern, v.AccessToken))
				if err != nil {
					t.Errorf("%s: %v", pattern, err)
					continue
				}
				if read.Load() {
					t.Errorf("%s: the session was read before the body", pattern)
				}
				w.tap.Reset(storetap.Hooks{})
				act.ends(w, v)
				before := w.looked(v.User.ID)
				res, err := held.Send()
				if err != nil {
					t.Fatalf("%s: %v", pattern, err)
				}
				a := &answer{t: t, status: res.Status, body: res.Body}
				if act.status != 0 {
					a.want(act.status, act.code)
					if after := w.looked(v.User.ID); !reflect.DeepEqual(after, before) {
						t.Errorf("%s: changed\n%+v\nto\n%+v", pattern, before, after)
					}
				} else if a.status == 401 || a.status == 400 || strings.Contains(string(a.body), string(auth.CodeUserBanned)) {
					t.Errorf("%s: %d %s, and nothing had ended", pattern, a.status, a.body)
				}
				if err := held.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// looked is what is stored of a user.
func (w *listening) looked(id string) snapshot {
	w.t.Helper()
	v := snapshot{}
	var err error
	if v.Credentials, err = w.Store.Credentials(w.t.Context(), store.ByID(id)); err != nil && !errors.Is(err, store.ErrNotFound) {
		w.t.Fatal(err)
	}
	factors, _ := store.Capability[store.FactorStore](w.Store)
	if v.Factors, err = factors.Factors(w.t.Context(), id); err != nil {
		w.t.Fatal(err)
	}
	if v.Sessions, err = w.Store.Sessions(w.t.Context(), id, w.Clock.Now()); err != nil {
		w.t.Fatal(err)
	}
	return v
}

// What is changed for good is not changed by a request whose body comes after its
// authority has gone, whatever that was.
func TestBodyBeforeAuthority(t *testing.T) {
	held := func(w *listening, pattern, access, body string) *hostileclient.Held {
		r := request(pattern, access)
		r.Body = body
		h, err := hostileclient.Hold(w.t.Context(), w.addr, r)
		if err != nil {
			w.t.Fatal(err)
		}
		return h
	}
	reset := func(w *listening, email string) {
		w.do("POST", "/forgot-password", map[string]any{"email": email}).want(200)
		w.do("POST", "/reset-password", map[string]any{"token": w.linkToken(email, auth.KindResetPassword), "new_password": "another horse battery"}).want(200)
	}
	send := func(h *hostileclient.Held, status int, code auth.Code) {
		t.Helper()
		res, err := h.Send()
		if err != nil {
			t.Fatal(err)
		}
		(&answer{t: t, status: res.Status, body: res.Body}).want(status, code)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Run("a factor is not removed", func(t *testing.T) {
		w := listen(t, nil)
		e := w.enrol(w.member("ada@example.com").AccessToken)
		h := held(w, "POST /2fa/disable", e.AccessToken, `{"totp_code":"`+w.code(e.secret, 0)+`"}`)
		reset(w, "ada@example.com")
		send(h, 401, auth.CodeSessionEnded)
		w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": "another horse battery"}).want(403, auth.CodeMFARequired)
	})
	t.Run("no factor is set up with the token of a sign-in", func(t *testing.T) {
		w := listen(t, nil, auth.WithMFA(auth.MFAOptions{RequiredFor: func(u auth.User) bool { return u.FullName == mustEnrol }}))
		s := w.member("ada@example.com")
		name := mustEnrol
		w.patch(s.User.ID, store.UserPatch{FullName: &name})
		token, _ := decodeAs[map[string]any](w.login("ada@example.com", goodPassword).want(403, auth.CodeMFAEnrollmentRequired))["mfa_token"].(string)
		secret := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, bearer(token)).want(200)).Secret
		h := held(w, "POST /2fa/verify-and-enable", token, `{"totp_code":"`+w.code(secret, 0)+`"}`)
		reset(w, "ada@example.com")
		send(h, 401, auth.CodeBadToken)
		w.login("ada@example.com", "another horse battery").want(403, auth.CodeMFAEnrollmentRequired)
	})
	t.Run("no first password is set", func(t *testing.T) {
		idp := authtest.StartProvider(t)
		w := listen(t, nil, auth.WithProvider(idp.Google()))
		idp.Now = w.Clock.Now
		s := w.visitor(idp).signIn("google", ada, "").session()
		h := held(w, "POST /me/password", s.AccessToken, `{"new_password":"thieves' horse battery"}`)
		w.do("POST", "/logout", nil, bearer(s.AccessToken)).want(204)
		send(h, 401, auth.CodeSessionEnded)
		w.login(ada.Email, "thieves' horse battery").want(401, auth.CodeInvalidCredentials)
	})
}

// A body that does not come is given up, whatever the route, and so is its
// connection; a request without one waits for nothing.
func TestLateBody(t *testing.T) {
	const each = 3
	w := listen(t, nil, auth.WithBodyWait(30*time.Millisecond))
	s := w.member("ada@example.com")
	before := runtime.NumGoroutine()
	var list []*hostileclient.Held
	for _, pattern := range auth.Routes(w.Auth) {
		for range each {
			h, err := hostileclient.Hold(t.Context(), w.addr, request(pattern, s.AccessToken))
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
		(&answer{t: t, status: res.Status, body: res.Body}).want(400, auth.CodeBadJSON)
		if err := h.Closed(); err != nil || !res.Closes {
			t.Errorf("the connection stays open: %v", err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	settled(t, before)
	// Paths that do not exist are answered at once, and what is left of the request is
	// not waited for, either.
	for _, r := range []hostileclient.Request{{Method: "POST", Path: "/auth/v1/nothing"}, {Method: "PUT", Path: "/auth/v1/me"}, {Method: "POST", Path: "/elsewhere"}} {
		r.Header = []hostileclient.Field{{Name: "Content-Length", Value: "10"}}
		res, err := hostileclient.Do(t.Context(), w.addr, r)
		if err != nil || (res.Status != 404 && res.Status != 405) || !res.Closes {
			t.Errorf("%s: %+v, %v", r.Path, res, err)
		}
	}
	settled(t, before)
	r := request("GET /me", s.AccessToken)
	r.Body = ""
	if res, err := hostileclient.Do(t.Context(), w.addr, r); err != nil || res.Status != 200 || res.Closes {
		t.Errorf("%+v, %v", res, err)
	}
}

// settled waits until there are no more goroutines than before, but for what an
// idle connection or two may take.
func settled(t *testing.T, before int) {
	t.Helper()
	const spare = 8
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before+spare; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, and there were %d", runtime.NumGoroutine(), before)
		}
	}
}

// The deadline is the body's alone: an answer may take longer, and the next
// request on the connection has a body of its own to wait for.
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
	w := listen(t, nil, auth.WithBodyWait(wait), slow)
	w.member("ada@example.com")
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	for range 3 {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+w.addr+"/login", strings.NewReader(`{"email":"ada@example.com","password":"`+goodPassword+`"}`))
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

// A server whose own limit is shorter keeps it.
func TestServersReadTimeout(t *testing.T) {
	w := listen(t, func(s *http.Server) { s.ReadTimeout = 30 * time.Millisecond })
	h, err := hostileclient.Hold(t.Context(), w.addr, request("POST /login", ""))
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.Response()
	if err != nil {
		t.Fatal(err)
	}
	(&answer{t: t, status: res.Status, body: res.Body}).want(400, auth.CodeBadJSON)
	if err := errors.Join(h.Closed(), h.Close()); err != nil {
		t.Error(err)
	}
}
