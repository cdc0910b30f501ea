package auth_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

func (w *world) refresh(token string) *answer {
	w.t.Helper()
	return w.do("POST", "/refresh", map[string]any{"refresh_token": token})
}

func TestRefreshRotates(t *testing.T) {
	w := newWorld(t)
	first := w.signUp("ada@example.com")
	w.fired()
	second := w.refresh(first.RefreshToken).session()
	w.wantEvents(auth.EventRefreshed)
	if second.RefreshToken == first.RefreshToken || second.AccessToken == first.AccessToken {
		t.Error("nothing new")
	}
	// A lost response: the parent is answered with the same successor.
	w.Clock.Advance(29 * time.Second)
	if again := w.refresh(first.RefreshToken).session(); again.RefreshToken != second.RefreshToken {
		t.Error("the parent got another successor")
	}
	w.fired()
	// After the grace period it may come late once (TestLateRefresh); then it is
	// reuse, and the whole session ends.
	w.Clock.Advance(time.Second)
	w.refresh(first.RefreshToken).want(200)
	w.wantEvents(auth.EventReplayed, auth.EventRefreshed)
	w.Clock.Advance(30 * time.Second)
	w.refresh(first.RefreshToken).want(400, auth.CodeRefreshTokenReused)
	w.wantEvents(auth.EventReused)
	w.refresh(second.RefreshToken).want(400, auth.CodeSessionEnded)
	if w.alive(second.AccessToken) {
		t.Error("/me still works")
	}
}

func TestRefreshReuseOfGrandparent(t *testing.T) {
	w := newWorld(t)
	first := w.signUp("ada@example.com")
	second := w.refresh(first.RefreshToken).session()
	third := w.refresh(second.RefreshToken).session()
	w.refresh(first.RefreshToken).want(400, auth.CodeRefreshTokenReused)
	w.refresh(third.RefreshToken).want(400, auth.CodeSessionEnded)
}

func TestRefreshRefusesForgeries(t *testing.T) {
	w := newWorld(t)
	s := w.signUp("ada@example.com")
	other := newWorld(t).signUp("ada@example.com")
	flipped := []byte(s.RefreshToken)
	flipped[10] ^= 1
	for name, token := range map[string]string{
		"of another server": other.RefreshToken, "flipped": string(flipped), "cut": s.RefreshToken[:40],
		"longer": s.RefreshToken + "A", "no version": s.RefreshToken[3:], "v2": "v2." + s.RefreshToken[3:], "padded": s.RefreshToken + "=",
		"line break": s.RefreshToken[:20] + "\n" + s.RefreshToken[20:], "access token": s.AccessToken,
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.refresh(token).want(400, auth.CodeInvalidRefreshToken)
		})
	}
	w.t = t
	w.refresh(s.RefreshToken).want(200)
	w.do("POST", "/refresh", map[string]any{}).want(422, auth.CodeValidationFailed)
}

// Fifty tabs refresh at once: one step forward, one successor for all.
func TestParallelRefresh(t *testing.T) {
	w := newWorld(t)
	s := w.signUp("ada@example.com")
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		seen = map[string]int{}
	)
	for range 50 {
		wg.Go(func() {
			tokens, err := w.Refresh(t.Context(), auth.RefreshParams{RefreshToken: s.RefreshToken})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			seen[tokens.RefreshToken]++
		})
	}
	wg.Wait()
	if len(seen) != 1 {
		t.Errorf("%d successors, want 1", len(seen))
	}
	for next := range seen {
		tokens, err := w.Refresh(t.Context(), auth.RefreshParams{RefreshToken: next})
		if err != nil || seen[tokens.RefreshToken] > 0 {
			t.Errorf("the successor does not lead on: %v", err)
		}
	}
}

func TestSessionsEndInTime(t *testing.T) {
	w := newWorld(t, auth.WithSessions(auth.SessionOptions{IdleTimeout: time.Hour, Lifetime: 150 * time.Minute}), auth.WithRateLimits(auth.RateLimits{Off: true}))
	idle := w.signUp("idle@example.com")
	busy := w.signUp("busy@example.com")
	for range 3 {
		w.Clock.Advance(45 * time.Minute)
		busy = w.refresh(busy.RefreshToken).session()
	}
	w.refresh(idle.RefreshToken).want(400, auth.CodeSessionEnded)
	w.Clock.Advance(15 * time.Minute)
	w.refresh(busy.RefreshToken).want(400, auth.CodeSessionEnded)
}

func TestRefreshLimit(t *testing.T) {
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{RefreshPerSession: auth.Rate{Burst: 2, Per: time.Minute}}))
	s := w.signUp("ada@example.com")
	s = w.refresh(s.RefreshToken).session()
	s = w.refresh(s.RefreshToken).session()
	w.refresh(s.RefreshToken).want(429, auth.CodeRateLimited)
	w.Clock.Advance(30 * time.Second)
	w.refresh(s.RefreshToken).want(200)
}

// The application's claims are worked out for nobody beyond the limit.
func TestRefreshLimitComesBeforeClaims(t *testing.T) {
	asked := 0
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{RefreshPerSession: auth.Rate{Burst: 2, Per: time.Minute}}),
		auth.WithClaims(func(context.Context, auth.User) (map[string]any, error) { asked++; return nil, nil }))
	s := w.signUp("ada@example.com")
	s = w.refresh(s.RefreshToken).session()
	s = w.refresh(s.RefreshToken).session()
	before := asked
	w.refresh(s.RefreshToken).want(429, auth.CodeRateLimited)
	if asked != before {
		t.Errorf("asked %d times beyond the limit", asked-before)
	}
}

// An outage is no reuse: nobody is logged out by it.
func TestOutage(t *testing.T) {
	store := &failingStore{Store: memstore.New()}
	env := authtest.NewOn(t, store)
	ada := env.LoginAs(t, "ada@example.com")
	w := &world{Env: env, t: t}
	store.down = true
	if a := w.refresh(ada.RefreshToken).want(503, auth.CodeUnavailable); a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	w.do("GET", "/healthz", nil).want(503, auth.CodeUnavailable)
	w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": authtest.Password}).want(503, auth.CodeUnavailable)
	store.down = false
	w.refresh(ada.RefreshToken).want(200)
	w.do("GET", "/healthz", nil).want(200)
}

func TestLogout(t *testing.T) {
	for scope, want := range map[string][3]bool{
		"":              {false, true, true},
		"?scope=local":  {false, true, true},
		"?scope=others": {true, false, true},
		"?scope=global": {false, false, true},
	} {
		t.Run(scope, func(t *testing.T) {
			w := newWorld(t)
			one, two, other := w.LoginAs(t, "ada@example.com"), w.LoginAs(t, "ada@example.com"), w.LoginAs(t, "eve@example.com")
			w.do("POST", "/logout"+scope, nil, bearer(one.AccessToken)).want(204)
			got := [3]bool{w.alive(one.AccessToken), w.alive(two.AccessToken), w.alive(other.AccessToken)}
			if got != want {
				t.Errorf("alive %v, want %v", got, want)
			}
			w.do("POST", "/logout"+scope, nil, bearer(one.AccessToken)).want(204) // again, and no error
		})
	}
	w := newWorld(t)
	ada := w.LoginAs(t, "ada@example.com")
	w.do("POST", "/logout", nil).want(401, auth.CodeMissingToken)
	w.do("POST", "/logout", nil, bearer("nonsense")).want(401, auth.CodeBadToken)
	w.do("POST", "/logout", map[string]any{"refresh_token": "nonsense"}).want(400, auth.CodeInvalidRefreshToken)
	w.do("POST", "/logout?scope=all", nil, bearer(ada.AccessToken)).want(422, auth.CodeValidationFailed)
	w.do("POST", "/logout", map[string]any{"refresh_token": ada.RefreshToken}).want(204)
	w.do("POST", "/logout", map[string]any{"refresh_token": ada.RefreshToken}).want(204)
	w.refresh(ada.RefreshToken).want(400, auth.CodeSessionEnded)
}

func TestSessions(t *testing.T) {
	w := newWorld(t)
	one := w.LoginAs(t, "ada@example.com")
	w.Clock.Advance(time.Second)
	two, eve := w.LoginAs(t, "ada@example.com"), w.LoginAs(t, "eve@example.com")
	a := w.do("GET", "/sessions", nil, bearer(one.AccessToken)).want(200)
	list := decodeAs[struct {
		Sessions []struct {
			ID      string `json:"id"`
			Current bool   `json:"current"`
		} `json:"sessions"`
	}](a).Sessions
	if len(list) != 2 || list[0].ID != two.SessionID || list[0].Current || !list[1].Current {
		t.Errorf("sessions %+v", list)
	}
	w.do("DELETE", "/sessions/"+eve.SessionID, nil, bearer(one.AccessToken)).want(404, auth.CodeSessionNotFound)
	w.do("DELETE", "/sessions/nonsense", nil, bearer(one.AccessToken)).want(404, auth.CodeSessionNotFound)
	if !w.alive(eve.AccessToken) {
		t.Error("another user's session ended")
	}
	w.do("DELETE", "/sessions/"+two.SessionID, nil, bearer(one.AccessToken)).want(204)
	w.do("DELETE", "/sessions/"+two.SessionID, nil, bearer(one.AccessToken)).want(404, auth.CodeSessionNotFound)
	w.do("GET", "/me", nil, bearer(two.AccessToken)).want(401, auth.CodeSessionEnded)
	three := w.LoginAs(t, "ada@example.com")
	w.do("DELETE", "/sessions", nil, bearer(one.AccessToken)).want(204)
	if w.alive(three.AccessToken) || !w.alive(one.AccessToken) {
		t.Error("the wrong sessions ended")
	}
}

// Restart: a new process with the same secret on the same store goes on where
// the old one stopped, and brings nothing back to life.
func TestRestart(t *testing.T) {
	secret, store := []byte(strings.Repeat("s", 32)), memstore.New()
	start := func() *world {
		env := authtest.NewOn(t, store, auth.WithSecret(secret), auth.WithSigningKeys(signingKey))
		return &world{Env: env, t: t}
	}
	before := start()
	kept, ended := before.LoginAs(t, "ada@example.com"), before.LoginAs(t, "ada@example.com")
	before.do("POST", "/logout", nil, bearer(ended.AccessToken)).want(204)
	after := start()
	after.refresh(ended.RefreshToken).want(400, auth.CodeSessionEnded)
	after.refresh(kept.RefreshToken).want(200)
	if !after.alive(kept.AccessToken) {
		t.Error("the access token died with the process")
	}
}

// A login that was judged by the old password makes no session after a change.
func TestLoginRacesPasswordChange(t *testing.T) {
	var w *world
	changing := false
	w = newWorld(t, auth.WithHooks(auth.Hooks{BeforeSignIn: func(_ context.Context, s auth.SignInAttempt) error {
		if !changing {
			return nil
		}
		changing = false
		return w.ChangePassword(t.Context(), auth.ChangePasswordParams{Caller: auth.ByApplication(s.User.ID), Current: authtest.Password, New: "another horse battery"})
	}}))
	w.LoginAs(t, "ada@example.com")
	changing = true
	_, err := w.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	if !errors.Is(err, auth.CodeInvalidCredentials) {
		t.Errorf("error %v", err)
	}
	u, err := w.Store.User(t.Context(), store.ByEmail("ada@example.com"))
	if err != nil {
		t.Fatal(err)
	}
	if list, err := w.Sessions(t.Context(), auth.SessionsParams{UserID: u.ID}); err != nil || len(list) != 0 {
		t.Errorf("%d sessions survived, %v", len(list), err)
	}
}

// Without a session there is no "this session": a logout from Go that forgot to
// name it ends nothing.
func TestLogoutNeedsASession(t *testing.T) {
	w := newWorld(t)
	ada := w.LoginAs(t, "ada@example.com")
	for _, scope := range []auth.LogoutScope{"", auth.LogoutLocal, auth.LogoutOthers, "globl"} {
		err := w.Logout(t.Context(), auth.LogoutParams{Caller: auth.ByApplication(ada.User.ID), Scope: scope})
		if !errors.Is(err, auth.CodeValidationFailed) || !w.alive(ada.AccessToken) {
			t.Errorf("%q: %v", scope, err)
		}
	}
	claims, err := w.Verify(ada.AccessToken)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Logout(t.Context(), auth.LogoutParams{Caller: claims.Caller(), Scope: "globl"}); !errors.Is(err, auth.CodeValidationFailed) || !w.alive(ada.AccessToken) {
		t.Errorf("an unknown scope: %v", err)
	}
	if err := w.Logout(t.Context(), auth.LogoutParams{Caller: auth.ByApplication(ada.User.ID), Scope: auth.LogoutGlobal}); err != nil || w.alive(ada.AccessToken) {
		t.Errorf("global: %v", err)
	}
}

// Whoever ends the other sessions ends those that are about to begin, too: a
// password that waits for its second factor, a code on its way back.
func TestSignOutEndsWhatIsAboutToBegin(t *testing.T) {
	for request, dies := range map[string]bool{
		"POST /logout?scope=global": true, "POST /logout?scope=others": true, "DELETE /sessions": true, "POST /logout": false,
	} {
		t.Run(request, func(t *testing.T) {
			w := newWorld(t)
			e := w.enrol(w.signUp("ada@example.com").AccessToken)
			token := decodeAs[struct {
				MFAToken string `json:"mfa_token"`
			}](w.login("ada@example.com", goodPassword).want(403, auth.CodeMFARequired)).MFAToken
			method, path, _ := strings.Cut(request, " ")
			w.do(method, path, nil, bearer(e.AccessToken)).want(204)
			if a := w.verifyMFA(token, w.code(e.secret, 0)); dies {
				a.want(400, auth.CodeInvalidToken)
			} else {
				a.want(200)
			}
		})
	}
}
