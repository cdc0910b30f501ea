package auth_test

import (
	"context"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// claimsStore is a store with claims of its own, which it knows once a row is written.
type claimsStore struct{ auth.Store }

func (s *claimsStore) Unwrap() auth.Store { return s.Store }

func (s *claimsStore) with(u auth.User) auth.User {
	u.Claims = map[string]any{"plan": "pro", "seat": 1}
	return u
}

func (s *claimsStore) CreateUser(ctx context.Context, c store.CreateUser) (auth.User, error) {
	u, err := s.Store.CreateUser(ctx, c)
	return s.with(u), err
}

func (s *claimsStore) Session(ctx context.Context, id string, now time.Time) (auth.Session, auth.User, error) {
	sess, u, err := s.Store.Session(ctx, id, now)
	return sess, s.with(u), err
}

func (s *claimsStore) AdvanceSession(ctx context.Context, c store.Advance) (auth.Session, auth.User, error) {
	sess, u, err := s.Store.AdvanceSession(ctx, c)
	return sess, s.with(u), err
}

// The store's claims are in the first token of an account and in those of later, under
// the application's own.
func TestClaimsOfTheStore(t *testing.T) {
	seat := auth.WithClaims(func(context.Context, auth.User) (map[string]any, error) { return map[string]any{"seat": 2}, nil })
	for name, c := range map[string]struct {
		opts []auth.Option
		seat float64
	}{"alone": {nil, 1}, "under the application's": {[]auth.Option{seat}, 2}} {
		t.Run(name, func(t *testing.T) {
			w := &world{t: t, Env: authtest.NewOn(t, &claimsStore{newStore(t)}, c.opts...)}
			s := w.signUp(adaMail)
			for _, s := range []session{s, w.refresh(s.RefreshToken).session()} {
				if got := w.claimsOf(s).Custom; got["plan"] != "pro" || got["seat"] != c.seat {
					t.Errorf("claims %v", got)
				}
			}
			w.endSession(s)
			w.refresh(s.RefreshToken).want(400, auth.CodeSessionEnded)
		})
	}
}

// Tokens are for one audience, and those for another are none.
func TestAudience(t *testing.T) {
	w := newWorld(t, auth.WithTokens(auth.TokenOptions{Audience: "notes"}))
	ada := w.LoginAs(t, adaMail)
	if got := tokenPart(t, ada.AccessToken, 1)["aud"]; got != "notes" {
		t.Errorf("aud %v", got)
	}
	for audience, want := range map[string]int{"notes": 200, "authenticated": 401} {
		if got := w.lets(w.MintToken(t, map[string]any{"aud": audience})); got != want {
			t.Errorf("for %s: %d, want %d", audience, got, want)
		}
	}
}

// Methods without a registered name (RFC 8176) go by their own.
func TestAMRStringsOfOtherMethods(t *testing.T) {
	w := newWorld(t, auth.WithTokens(auth.TokenOptions{AMRStrings: true}))
	for method, s := range map[string]session{
		"sms":        w.otp(number, w.phoneCode(number)).session(),
		"magic_link": w.do("GET", "/magic-link/verify?token="+w.magicLink(adaMail, nil), nil).session(),
	} {
		if got := toJSON(t, tokenPart(t, s.AccessToken, 1)["amr"]); got != `["`+method+`"]` {
			t.Errorf("amr %s, want %s", got, method)
		}
	}
}
