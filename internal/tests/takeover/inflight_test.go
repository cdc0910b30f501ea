package takeover_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// A sign-in that has used its second factor does not survive the replacement of that factor,
// because its code belongs to a deleted factor.
func TestSecondFactorReplacedInFlight(t *testing.T) {
	for name, verify := range map[string]func(w *harness.World, old harness.Enrolled, mfaToken string) *harness.Answer{
		"login": func(w *harness.World, old harness.Enrolled, _ string) *harness.Answer {
			return w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword, "totp_code": w.Code(old.Secret, 0)})
		},
		"a code": func(w *harness.World, old harness.Enrolled, mfaToken string) *harness.Answer {
			return w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": mfaToken, "totp_code": w.Code(old.Secret, 0)})
		},
		"a recovery code": func(w *harness.World, old harness.Enrolled, mfaToken string) *harness.Answer {
			return w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": mfaToken, "recovery_code": old.Recovery[0]})
		},
	} {
		t.Run(name, func(t *testing.T) {
			tap := storetap.New(harness.NewStore(t))
			w := &harness.World{T: t, Log: &harness.SyncBuffer{}, Env: authtest.NewOn(t, tap)}
			old := w.Enrol(w.Member("ada@example.com").AccessToken)
			mfaToken := harness.DecodeAs[map[string]any](w.PostLogin("ada@example.com", harness.GoodPassword).Want(403, auth.CodeMFARequired))["mfa_token"].(string)
			var fresh harness.Enrolled
			tap.Reset(storetap.Hooks{Before: func(_ context.Context, method string, _ int) {
				if method != "UseFactor" && method != "UseRecoveryCode" {
					return
				}
				tap.Reset(storetap.Hooks{})
				w.Do("POST", "/2fa/disable", map[string]any{"totp_code": w.Code(old.Secret, 30*time.Second)}, harness.Bearer(old.AccessToken)).Want(200)
				fresh = w.Enrol(old.AccessToken)
			}})
			if a := verify(w, old, mfaToken); a.Status < 400 || a.Status >= 500 {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			if fresh.AccessToken == "" || !w.Alive(fresh.AccessToken) {
				t.Error("the owner's session has ended, or nothing came in between")
			}
		})
	}
}

// A failure of the claims uses up no refresh token, however long it lasts: a client that
// repeats its request is no thief.
func TestRefreshWhileClaimsFail(t *testing.T) {
	down := false
	w := harness.NewWorld(t, auth.WithClaims(func(context.Context, auth.User) (map[string]any, error) {
		if down {
			return nil, errors.New("the application's database is away")
		}
		return map[string]any{"plan": "free"}, nil
	}))
	s := w.PostSignUp("ada@example.com")
	down = true
	for range 4 {
		w.PostRefresh(s.RefreshToken).Want(503, auth.CodeUnavailable)
		w.Clock.Advance(15 * time.Second)
	}
	down = false
	next := w.PostRefresh(s.RefreshToken).Session()
	if c := w.ClaimsOf(next); c.Custom["plan"] != "free" {
		t.Errorf("claims %+v", c)
	}
}

// A step-up reports no new tokens either while the claims fail.
func TestStepUpWhileClaimsFail(t *testing.T) {
	down := false
	w := harness.NewWorld(t, auth.WithClaims(func(context.Context, auth.User) (map[string]any, error) {
		if down {
			return nil, errors.New("the application's database is away")
		}
		return nil, nil
	}))
	s := w.PostSignUp("ada@example.com")
	e := w.Enrol(s.AccessToken)
	down = true
	w.Do("POST", "/2fa/verify", map[string]any{"totp_code": w.Later(e.Secret)}, harness.Bearer(e.AccessToken)).Want(503, auth.CodeUnavailable)
}

// A link to a new address ends with the session that requested it, so that a thief cannot
// wait until the owner has ended the session.
func TestNewAddressNeedsTheSession(t *testing.T) {
	for name, end := range map[string]func(w *harness.World, thief harness.Session){
		"signed out everywhere": func(w *harness.World, _ harness.Session) {
			w.Do("POST", "/logout?scope=global", nil, harness.Bearer(w.PostLogin("ada@example.com", harness.GoodPassword).Session().AccessToken)).Want(204)
		},
		"banned": func(w *harness.World, thief harness.Session) {
			until := w.Clock.Now().Add(time.Hour)
			w.Patch(thief.User.ID, store.UserPatch{BannedUntil: &until})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t)
			thief := w.Member("ada@example.com")
			w.Do("PATCH", "/me", map[string]any{"email": "thief@example.com"}, harness.Bearer(thief.AccessToken)).Want(200)
			token := w.LinkToken("thief@example.com", auth.KindChangeEmail)
			end(w, thief)
			if a := w.Do("POST", "/verify-email", map[string]any{"token": token}, harness.Bearer(thief.AccessToken)); a.Status == 200 {
				t.Errorf("moved: %s", a.Body)
			}
			if u, err := w.Store.User(t.Context(), store.ByID(thief.User.ID)); err != nil || u.Email != "ada@example.com" {
				t.Errorf("user %+v, %v", u, err)
			}
		})
	}
}

// The page asks who created the account wherever the reader may not know it, even if an
// identity or another address was there first.
func TestWasThatYouElsewhere(t *testing.T) {
	no := func(w *harness.World, token string) string {
		page := string(w.Do("GET", "/verify-email?token="+token, nil, harness.Browser).Want(200).Body)
		if !strings.Contains(page, "wasn't me") || !strings.Contains(page, "2026") {
			t.Errorf("page %s", page)
		}
		return string(w.Do("POST", "/verify-email", url.Values{"token": {token}, "disown": {"1"}}.Encode(), harness.Form, harness.Browser).Want(200).Body)
	}
	// Created by an identity of a provider that does not verify addresses.
	w, idp := harness.NewProviderWorld(t)
	squatter := authtest.Person{Subject: "666", Email: "ada@example.com"}
	evil := w.NewVisitor(idp).SignIn("facebook", squatter, "").Session()
	if page := no(w, w.LinkToken("ada@example.com", auth.KindVerifyEmail)); !strings.Contains(page, "yours now") {
		t.Errorf("page %s", page)
	}
	if w.Alive(evil.AccessToken) {
		t.Error("the squatter's session goes on")
	}
	w.NewVisitor(idp).SignIn("facebook", squatter, "").Want(409, auth.CodeAccountExists)
	// Created with another address and corrected to this one: the account has nothing of the reader's.
	w = harness.NewWorld(t)
	s := w.PostSignUp("throwaway@example.com")
	w.Do("PATCH", "/me", map[string]any{"email": "ada@example.com"}, harness.Bearer(s.AccessToken)).Want(200)
	token := w.LinkToken("ada@example.com", auth.KindChangeEmail)
	if page := no(w, token); !strings.Contains(page, "Nothing was changed") {
		t.Errorf("page %s", page)
	}
	w.Do("POST", "/verify-email", map[string]any{"token": token}).Want(400, auth.CodeInvalidToken)
}
