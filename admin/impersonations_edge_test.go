package admin_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// actVerifier is the verifier of the browser that goes on as another user.
const actVerifier = "verifier-of-the-operators-own-browser-0123456789"

// codeFor starts an impersonation and returns the code for its token.
func (s *stage) codeFor() string {
	s.t.Helper()
	res, err := s.adm.Impersonate(s.t.Context(), actor(s.operator), admin.ImpersonateParams{UserID: s.ada.User.ID, Reason: "ticket 7", RedirectTo: "https://app.example.com/x", CodeChallenge: oauth2.S256ChallengeFromVerifier(actVerifier)})
	if err != nil {
		s.t.Fatal(err)
	}
	u, err := url.Parse(res.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	return u.Query().Get("code")
}

// While the store is unavailable, an impersonation is neither over nor live: nobody is
// admitted, and no answer reports that it has ended.
func TestImpersonationWhileTheStoreIsAway(t *testing.T) {
	tap := storetap.New(memstore.New())
	s := newStage(t, tap)
	without := func(method string) {
		tap.Reset(storetap.Hooks{Fault: func(_ context.Context, m string, _ int) storetap.Fault {
			if m == method {
				return storetap.FailsBefore
			}
			return storetap.NoFault
		}})
	}
	code := s.codeFor()
	without("Impersonation")
	s.want("GET", "/auth/v1/me", 503, auth.CodeUnavailable)
	s.want("GET", "/own/live", 503, auth.CodeUnavailable)
	s.want("POST", "/auth/v1/login", 503, auth.CodeUnavailable)
	if status, c, _ := s.send("", "POST", "/auth/v1/exchange", `{"code":"`+code+`","code_verifier":"`+actVerifier+`"}`); status != 503 || c != auth.CodeUnavailable {
		t.Errorf("exchange: %d %s", status, c)
	}
	without("EndImpersonation")
	s.want("POST", "/auth/v1/logout", 503, auth.CodeUnavailable)
	without("PutToken")
	res, err := s.adm.Impersonate(t.Context(), actor(s.operator), admin.ImpersonateParams{UserID: s.ada.User.ID, Reason: "ticket 7", RedirectTo: "https://app.example.com/x", CodeChallenge: oauth2.S256ChallengeFromVerifier(actVerifier)})
	if wantCode(t, err, auth.CodeUnavailable); res.URL != "" {
		t.Errorf("%+v", res)
	}
	tap.Reset(storetap.Hooks{})
	s.want("GET", "/auth/v1/me", 200, "")
}

// After an impersonation ends, its requests are anonymous: they reach public routes, and a
// code for it is invalid. The event names the ended impersonation.
func TestEndedImpersonationIsNobodys(t *testing.T) {
	var last auth.Event
	s := newStage(t, memstore.New(), auth.WithHooks(auth.Hooks{OnEvent: func(_ context.Context, e auth.Event) { last = e }}))
	ask := func() int {
		status, _, _ := s.send(s.acts.AccessToken, "POST", "/auth/v1/forgot-password", `{"email":"ada@example.com"}`)
		return status
	}
	if status := ask(); status != 403 {
		t.Errorf("live: %d", status)
	}
	s.want("POST", "/auth/v1/logout", 204, "")
	if last.Type != auth.EventImpersonationEnded || last.SessionID != s.acts.SessionID || last.UserID != s.ada.User.ID {
		t.Errorf("told of %+v", last)
	}
	if status := ask(); status != 200 {
		t.Errorf("ended: %d", status)
	}
	code := s.codeFor()
	if _, err := s.adm.EndSessions(t.Context(), admin.System("test").Accepting(), s.ada.User.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	if status, c, _ := s.send("", "POST", "/auth/v1/exchange", `{"code":"`+code+`","code_verifier":"`+actVerifier+`"}`); status != 400 || c != auth.CodeInvalidCode {
		t.Errorf("exchange: %d %s", status, c)
	}
}

// A token that names an impersonation of another user, or by another actor, opens nothing,
// even with a valid signature.
func TestImpersonationIsOfWhomItsTokenNames(t *testing.T) {
	s := newStage(t, memstore.New())
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(s.acts.AccessToken, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(claims, act map[string]any){
		"as it is":           func(_, _ map[string]any) {},
		"another user":       func(c, _ map[string]any) { c["sub"] = s.operator.User.ID },
		"another actor":      func(_, act map[string]any) { act["sub"] = s.ada.User.ID },
		"another's session":  func(_, act map[string]any) { act["session_id"] = s.ada.SessionID },
		"nobody acts in one": func(c, _ map[string]any) { delete(c, "act"); c["act"] = nil },
	} {
		var claims map[string]any
		if err := json.Unmarshal(raw, &claims); err != nil {
			t.Fatal(err)
		}
		edit(claims, claims["act"].(map[string]any))
		c, err := s.Verify(s.MintToken(t, claims))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, _, err = s.Current(t.Context(), c); (err == nil) != (name == "as it is") || err != nil && !errors.Is(err, auth.CodeSessionEnded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Nothing prolongs an impersonation.
func TestImpersonationIsNotProlonged(t *testing.T) {
	s := newStage(t, memstore.New())
	c, err := s.Verify(s.acts.AccessToken)
	if err != nil {
		t.Fatal(err)
	}
	sess, u, err := s.Current(t.Context(), c)
	if err != nil || u.ID != s.ada.User.ID || !sess.ExpiresAt.Equal(sess.CreatedAt.Add(auth.ImpersonationLife)) || !sess.IdleUntil.Equal(sess.ExpiresAt) || sess.AAL != store.LevelAAL1 {
		t.Errorf("%+v, %v", sess, err)
	}
}
