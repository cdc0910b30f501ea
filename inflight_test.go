package auth_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// A sign-in that has shown its second factor does not survive the replacement of
// that factor: the code was one of a factor that is gone.
func TestSecondFactorReplacedInFlight(t *testing.T) {
	for name, verify := range map[string]func(w *world, old enrolled, mfaToken string) *answer{
		"login": func(w *world, old enrolled, _ string) *answer {
			return w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": goodPassword, "totp_code": w.code(old.secret, 0)})
		},
		"a code": func(w *world, old enrolled, mfaToken string) *answer {
			return w.do("POST", "/2fa/verify", map[string]any{"mfa_token": mfaToken, "totp_code": w.code(old.secret, 0)})
		},
		"a recovery code": func(w *world, old enrolled, mfaToken string) *answer {
			return w.do("POST", "/2fa/verify", map[string]any{"mfa_token": mfaToken, "recovery_code": old.recovery[0]})
		},
	} {
		t.Run(name, func(t *testing.T) {
			tap := storetap.New(newStore(t))
			w := &world{t: t, log: &syncBuffer{}, Env: authtest.NewOn(t, tap)}
			old := w.enrol(w.member("ada@example.com").AccessToken)
			mfaToken := decodeAs[map[string]any](w.login("ada@example.com", goodPassword).want(403, auth.CodeMFARequired))["mfa_token"].(string)
			var fresh enrolled
			tap.Reset(storetap.Hooks{Before: func(_ context.Context, method string, _ int) {
				if method != "CreateSession" {
					return
				}
				tap.Reset(storetap.Hooks{})
				w.do("POST", "/2fa/disable", map[string]any{"totp_code": w.code(old.secret, 30*time.Second)}, bearer(old.AccessToken)).want(200)
				fresh = w.enrol(old.AccessToken)
			}})
			if a := verify(w, old, mfaToken); a.status < 400 || a.status >= 500 {
				t.Errorf("%d %s", a.status, a.body)
			}
			if fresh.AccessToken == "" || !w.alive(fresh.AccessToken) {
				t.Error("the owner's session has ended, or nothing came in between")
			}
		})
	}
}

// Claims that cannot be worked out use no refresh token up, however long that
// lasts: a client that tries again is no thief.
func TestRefreshWhileClaimsFail(t *testing.T) {
	down := false
	w := newWorld(t, auth.WithClaims(func(context.Context, auth.User) (map[string]any, error) {
		if down {
			return nil, errors.New("the application's database is away")
		}
		return map[string]any{"plan": "free"}, nil
	}))
	s := w.signUp("ada@example.com")
	down = true
	for range 4 {
		w.refresh(s.RefreshToken).want(503, auth.CodeUnavailable)
		w.Clock.Advance(15 * time.Second)
	}
	down = false
	next := w.refresh(s.RefreshToken).session()
	if c := w.claimsOf(next); c.Custom["plan"] != "free" {
		t.Errorf("claims %+v", c)
	}
}

// Nor does a step-up answer as if it had made tokens.
func TestStepUpWhileClaimsFail(t *testing.T) {
	down := false
	w := newWorld(t, auth.WithClaims(func(context.Context, auth.User) (map[string]any, error) {
		if down {
			return nil, errors.New("the application's database is away")
		}
		return nil, nil
	}))
	s := w.signUp("ada@example.com")
	e := w.enrol(s.AccessToken)
	down = true
	w.do("POST", "/2fa/verify", map[string]any{"totp_code": w.later(e.secret)}, bearer(e.AccessToken)).want(503, auth.CodeUnavailable)
}

// A link to a new address dies with the session that asked for it: the thief of a
// session cannot wait until its owner has ended it.
func TestNewAddressNeedsTheSession(t *testing.T) {
	for name, end := range map[string]func(w *world, thief session){
		"signed out everywhere": func(w *world, _ session) {
			w.do("POST", "/logout?scope=global", nil, bearer(w.login("ada@example.com", goodPassword).session().AccessToken)).want(204)
		},
		"banned": func(w *world, thief session) {
			until := w.Clock.Now().Add(time.Hour)
			w.patch(thief.User.ID, store.UserPatch{BannedUntil: &until})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			thief := w.member("ada@example.com")
			w.do("PATCH", "/me", map[string]any{"email": "thief@example.com"}, bearer(thief.AccessToken)).want(200)
			token := w.linkToken("thief@example.com", auth.KindChangeEmail)
			end(w, thief)
			if a := w.do("GET", "/verify-email?token="+token, nil); a.status == 200 {
				t.Errorf("moved: %s", a.body)
			}
			if u, err := w.Store.User(t.Context(), store.ByID(thief.User.ID)); err != nil || u.Email != "ada@example.com" {
				t.Errorf("user %+v, %v", u, err)
			}
		})
	}
}

// The page asks whose account it is wherever the reader may never have heard of
// it, also where an identity or another address was there first.
func TestWasThatYouElsewhere(t *testing.T) {
	no := func(w *world, token string) string {
		page := string(w.do("GET", "/verify-email?token="+token, nil, browser).want(200).body)
		if !strings.Contains(page, "not me") || !strings.Contains(page, "2026") {
			t.Errorf("page %s", page)
		}
		return string(w.do("POST", "/verify-email", url.Values{"token": {token}, "disown": {"1"}}.Encode(), form, browser).want(200).body)
	}
	// Made by an identity whose provider does not prove addresses.
	w, idp := providerWorld(t)
	squatter := authtest.Person{Subject: "666", Email: "ada@example.com"}
	evil := w.visitor(idp).signIn("facebook", squatter, "").session()
	if page := no(w, w.linkToken("ada@example.com", auth.KindVerifyEmail)); !strings.Contains(page, "yours now") {
		t.Errorf("page %s", page)
	}
	if w.alive(evil.AccessToken) {
		t.Error("the squatter's session goes on")
	}
	w.visitor(idp).signIn("facebook", squatter, "").want(409, auth.CodeAccountExists)
	// Made with another address, and corrected to this one: nothing of the reader's is on it.
	w = newWorld(t)
	s := w.signUp("throwaway@example.com")
	w.do("PATCH", "/me", map[string]any{"email": "ada@example.com"}, bearer(s.AccessToken)).want(200)
	token := w.linkToken("ada@example.com", auth.KindChangeEmail)
	if page := no(w, token); !strings.Contains(page, "Nothing was changed") {
		t.Errorf("page %s", page)
	}
	w.do("GET", "/verify-email?token="+token, nil).want(400, auth.CodeInvalidToken)
}
