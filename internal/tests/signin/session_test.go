package signin_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

func TestRefreshRotates(t *testing.T) {
	w := harness.NewWorld(t)
	first := w.PostSignUp("ada@example.com")
	w.Fired()
	second := w.PostRefresh(first.RefreshToken).Session()
	w.WantEvents(auth.EventRefreshed)
	if second.RefreshToken == first.RefreshToken || second.AccessToken == first.AccessToken {
		t.Error("nothing new")
	}
	// A lost response: the parent is answered with the same successor.
	w.Clock.Advance(29 * time.Second)
	if again := w.PostRefresh(first.RefreshToken).Session(); again.RefreshToken != second.RefreshToken {
		t.Error("the parent got another successor")
	}
	w.Fired()
	// After the grace period the token is accepted late once (TestLateRefresh). After that
	// it is reuse, and the whole session ends.
	w.Clock.Advance(time.Second)
	w.PostRefresh(first.RefreshToken).Want(200)
	w.WantEvents(auth.EventReplayed, auth.EventRefreshed)
	w.Clock.Advance(30 * time.Second)
	w.PostRefresh(first.RefreshToken).Want(400, auth.CodeRefreshTokenReused)
	w.WantEvents(auth.EventReused)
	w.PostRefresh(second.RefreshToken).Want(400, auth.CodeSessionEnded)
	if w.Alive(second.AccessToken) {
		t.Error("/me still works")
	}
}

func TestRefreshReuseOfGrandparent(t *testing.T) {
	w := harness.NewWorld(t)
	first := w.PostSignUp("ada@example.com")
	second := w.PostRefresh(first.RefreshToken).Session()
	third := w.PostRefresh(second.RefreshToken).Session()
	w.PostRefresh(first.RefreshToken).Want(400, auth.CodeRefreshTokenReused)
	w.PostRefresh(third.RefreshToken).Want(400, auth.CodeSessionEnded)
}

func TestRefreshRefusesForgeries(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	other := harness.NewWorld(t).PostSignUp("ada@example.com")
	flipped := []byte(s.RefreshToken)
	flipped[10] ^= 1
	for name, token := range map[string]string{
		"of another server": other.RefreshToken, "flipped": string(flipped), "cut": s.RefreshToken[:40],
		"longer": s.RefreshToken + "A", "no version": s.RefreshToken[3:], "v2": "v2." + s.RefreshToken[3:], "padded": s.RefreshToken + "=",
		"line break": s.RefreshToken[:20] + "\n" + s.RefreshToken[20:], "access token": s.AccessToken,
	} {
		t.Run(name, func(t *testing.T) {
			w.T = t
			w.PostRefresh(token).Want(400, auth.CodeInvalidRefreshToken)
		})
	}
	w.T = t
	w.PostRefresh(s.RefreshToken).Want(200)
	w.Do("POST", "/refresh", map[string]any{}).Want(422, auth.CodeValidationFailed)
}

// Fifty tabs refresh at once: one step forward, one successor for all.
func TestParallelRefresh(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
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
	w := harness.NewWorld(t, auth.WithSessions(auth.SessionOptions{IdleTimeout: time.Hour, Lifetime: 150 * time.Minute}), auth.WithRateLimits(auth.RateLimits{Off: true}))
	idle := w.PostSignUp("idle@example.com")
	busy := w.PostSignUp("busy@example.com")
	for range 3 {
		w.Clock.Advance(45 * time.Minute)
		busy = w.PostRefresh(busy.RefreshToken).Session()
	}
	w.PostRefresh(idle.RefreshToken).Want(400, auth.CodeSessionEnded)
	w.Clock.Advance(15 * time.Minute)
	w.PostRefresh(busy.RefreshToken).Want(400, auth.CodeSessionEnded)
}

func TestRefreshLimit(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{RefreshPerSession: auth.Rate{Burst: 2, Per: time.Minute}}))
	s := w.PostSignUp("ada@example.com")
	s = w.PostRefresh(s.RefreshToken).Session()
	s = w.PostRefresh(s.RefreshToken).Session()
	w.PostRefresh(s.RefreshToken).Want(429, auth.CodeRateLimited)
	w.Clock.Advance(30 * time.Second)
	w.PostRefresh(s.RefreshToken).Want(200)
}

// The application's claims are not computed beyond the limit.
func TestRefreshLimitComesBeforeClaims(t *testing.T) {
	asked := 0
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{RefreshPerSession: auth.Rate{Burst: 2, Per: time.Minute}}),
		auth.WithClaims(func(context.Context, auth.User) (map[string]any, error) { asked++; return nil, nil }))
	s := w.PostSignUp("ada@example.com")
	s = w.PostRefresh(s.RefreshToken).Session()
	s = w.PostRefresh(s.RefreshToken).Session()
	before := asked
	w.PostRefresh(s.RefreshToken).Want(429, auth.CodeRateLimited)
	if asked != before {
		t.Errorf("asked %d times beyond the limit", asked-before)
	}
}

// An outage is no reuse and ends no session.
func TestOutage(t *testing.T) {
	store := &failingStore{Store: memstore.New()}
	env := authtest.NewOn(t, store)
	ada := env.LoginAs(t, "ada@example.com")
	w := &harness.World{Env: env, T: t}
	store.down = true
	if a := w.PostRefresh(ada.RefreshToken).Want(503, auth.CodeUnavailable); a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	w.Do("GET", "/healthz", nil).Want(503, auth.CodeUnavailable)
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": authtest.Password}).Want(503, auth.CodeUnavailable)
	store.down = false
	w.PostRefresh(ada.RefreshToken).Want(200)
	w.Do("GET", "/healthz", nil).Want(200)
}

func TestLogout(t *testing.T) {
	for scope, want := range map[string][3]bool{
		"":              {false, true, true},
		"?scope=local":  {false, true, true},
		"?scope=others": {true, false, true},
		"?scope=global": {false, false, true},
	} {
		t.Run(scope, func(t *testing.T) {
			w := harness.NewWorld(t)
			one, two, other := w.LoginAs(t, "ada@example.com"), w.LoginAs(t, "ada@example.com"), w.LoginAs(t, "eve@example.com")
			w.Do("POST", "/logout"+scope, nil, harness.Bearer(one.AccessToken)).Want(204)
			got := [3]bool{w.Alive(one.AccessToken), w.Alive(two.AccessToken), w.Alive(other.AccessToken)}
			if got != want {
				t.Errorf("alive %v, want %v", got, want)
			}
			w.Do("POST", "/logout"+scope, nil, harness.Bearer(one.AccessToken)).Want(204) // again, and no error
		})
	}
	w := harness.NewWorld(t)
	ada := w.LoginAs(t, "ada@example.com")
	w.Do("POST", "/logout", nil).Want(401, auth.CodeMissingToken)
	w.Do("POST", "/logout", nil, harness.Bearer("nonsense")).Want(401, auth.CodeBadToken)
	w.Do("POST", "/logout", map[string]any{"refresh_token": "nonsense"}).Want(400, auth.CodeInvalidRefreshToken)
	w.Do("POST", "/logout?scope=all", nil, harness.Bearer(ada.AccessToken)).Want(422, auth.CodeValidationFailed)
	w.Do("POST", "/logout", map[string]any{"refresh_token": ada.RefreshToken}).Want(204)
	w.Do("POST", "/logout", map[string]any{"refresh_token": ada.RefreshToken}).Want(204)
	w.PostRefresh(ada.RefreshToken).Want(400, auth.CodeSessionEnded)
}

func TestSessions(t *testing.T) {
	w := harness.NewWorld(t)
	one := w.LoginAs(t, "ada@example.com")
	w.Clock.Advance(time.Second)
	two, eve := w.LoginAs(t, "ada@example.com"), w.LoginAs(t, "eve@example.com")
	a := w.Do("GET", "/sessions", nil, harness.Bearer(one.AccessToken)).Want(200)
	list := harness.DecodeAs[struct {
		Sessions []struct {
			ID      string `json:"id"`
			Current bool   `json:"current"`
		} `json:"sessions"`
	}](a).Sessions
	if len(list) != 2 || list[0].ID != two.SessionID || list[0].Current || !list[1].Current {
		t.Errorf("sessions %+v", list)
	}
	w.Do("DELETE", "/sessions/"+eve.SessionID, nil, harness.Bearer(one.AccessToken)).Want(404, auth.CodeSessionNotFound)
	w.Do("DELETE", "/sessions/nonsense", nil, harness.Bearer(one.AccessToken)).Want(404, auth.CodeSessionNotFound)
	if !w.Alive(eve.AccessToken) {
		t.Error("another user's session ended")
	}
	w.Do("DELETE", "/sessions/"+two.SessionID, nil, harness.Bearer(one.AccessToken)).Want(204)
	w.Do("DELETE", "/sessions/"+two.SessionID, nil, harness.Bearer(one.AccessToken)).Want(404, auth.CodeSessionNotFound)
	w.Do("GET", "/me", nil, harness.Bearer(two.AccessToken)).Want(401, auth.CodeSessionEnded)
	three := w.LoginAs(t, "ada@example.com")
	w.Do("DELETE", "/sessions", nil, harness.Bearer(one.AccessToken)).Want(204)
	if w.Alive(three.AccessToken) || !w.Alive(one.AccessToken) {
		t.Error("the wrong sessions ended")
	}
}

// Restart: a new process with the same secret on the same store continues where the old one
// stopped, and restores nothing that was revoked.
func TestRestart(t *testing.T) {
	secret, store := testsecret.Of("s"), memstore.New()
	start := func() *harness.World {
		env := authtest.NewOn(t, store, auth.WithSecret(secret), auth.WithSigningKeys(harness.SigningKey))
		return &harness.World{Env: env, T: t}
	}
	before := start()
	kept, ended := before.LoginAs(t, "ada@example.com"), before.LoginAs(t, "ada@example.com")
	before.Do("POST", "/logout", nil, harness.Bearer(ended.AccessToken)).Want(204)
	after := start()
	after.PostRefresh(ended.RefreshToken).Want(400, auth.CodeSessionEnded)
	after.PostRefresh(kept.RefreshToken).Want(200)
	if !after.Alive(kept.AccessToken) {
		t.Error("the access token died with the process")
	}
}

// A login that was checked against the old password creates no session after a change.
func TestLoginRacesPasswordChange(t *testing.T) {
	var w *harness.World
	changing := false
	w = harness.NewWorld(t, auth.WithHooks(auth.Hooks{BeforeSignIn: func(_ context.Context, s auth.SignInAttempt) error {
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
	w := harness.NewWorld(t)
	ada := w.LoginAs(t, "ada@example.com")
	for _, scope := range []auth.LogoutScope{"", auth.LogoutLocal, auth.LogoutOthers, "globl"} {
		err := w.Logout(t.Context(), auth.LogoutParams{Caller: auth.ByApplication(ada.User.ID), Scope: scope})
		if !errors.Is(err, auth.CodeValidationFailed) || !w.Alive(ada.AccessToken) {
			t.Errorf("%q: %v", scope, err)
		}
	}
	claims, err := w.Verify(ada.AccessToken)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Logout(t.Context(), auth.LogoutParams{Caller: claims.Caller(), Scope: "globl"}); !errors.Is(err, auth.CodeValidationFailed) || !w.Alive(ada.AccessToken) {
		t.Errorf("an unknown scope: %v", err)
	}
	if err := w.Logout(t.Context(), auth.LogoutParams{Caller: auth.ByApplication(ada.User.ID), Scope: auth.LogoutGlobal}); err != nil || w.Alive(ada.AccessToken) {
		t.Errorf("global: %v", err)
	}
}

// Signing out of the other sessions also ends sign-ins that are under way: a password that
// waits for its second factor, and a code on its way back.
func TestSignOutEndsWhatIsAboutToBegin(t *testing.T) {
	for request, dies := range map[string]bool{
		"POST /logout?scope=global": true, "POST /logout?scope=others": true, "DELETE /sessions": true, "POST /logout": false,
	} {
		t.Run(request, func(t *testing.T) {
			w := harness.NewWorld(t)
			e := w.Enrol(w.PostSignUp("ada@example.com").AccessToken)
			token := harness.DecodeAs[struct {
				MFAToken string `json:"mfa_token"`
			}](w.PostLogin("ada@example.com", harness.GoodPassword).Want(403, auth.CodeMFARequired)).MFAToken
			method, path, _ := strings.Cut(request, " ")
			w.Do(method, path, nil, harness.Bearer(e.AccessToken)).Want(204)
			if a := w.PostVerifyMFA(token, w.Code(e.Secret, 0)); dies {
				a.Want(400, auth.CodeInvalidToken)
			} else {
				a.Want(200)
			}
		})
	}
}
