package authclient

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// An invalid id leads to no other operation, even if a proxy rewrites the path.
func TestIdsKeepTheirPlace(t *testing.T) {
	s := newService(t)
	a, err := NewAdmin(s.url, secretKey)
	if err != nil {
		t.Fatal(err)
	}
	c := signedIn(t, s, "ada@example.com")
	set, err := c.EnrollTOTP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	code, err := totp.GenerateCode(set.Secret, s.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.EnableTOTP(t.Context(), code); err != nil {
		t.Fatal(err)
	}
	id := c.State().User.ID
	s.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		r.URL.Path, r.URL.RawPath = path.Clean(r.URL.Path), ""
		next.ServeHTTP(w, r)
	})
	for _, bad := range []string{"", ".", ".."} {
		if _, err := a.RemoveFactor(t.Context(), id, bad, "one factor, named by a form"); err == nil {
			t.Errorf("%q: a factor was removed", bad)
		}
		if _, err := a.RemoveRole(t.Context(), bad, "editor"); err == nil {
			t.Errorf("%q: a role was removed", bad)
		}
		if err := c.EndSession(t.Context(), bad); err == nil {
			t.Errorf("%q: sessions were ended", bad)
		}
	}
	s.set(nil)
	if left, err := a.Factors(t.Context(), id); err != nil || len(left) == 0 {
		t.Errorf("%d factors are left, %v", len(left), err)
	}
}

// A request of Ada's is not done as Bob, who signed in in another process meanwhile.
func TestNothingInAnothersName(t *testing.T) {
	for name, ask := range map[string]func(c *Client) error{
		"a call": func(c *Client) error { return c.DeleteAccount(t.Context()) },
		"the transport": func(c *Client) error {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, c.wire.base.String()+"/me", nil)
			if err != nil {
				return err
			}
			res, err := c.Transport(nil).RoundTrip(r)
			if err != nil {
				return err
			}
			defer func() { _ = res.Body.Close() }()
			_, err = io.Copy(io.Discard, res.Body)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			store := &MemoryStore{}
			ada, bob := signedIn(t, s, "ada@example.com", WithTokenStore(store)), signedIn(t, s, "bob@example.com")
			bobs, err := bob.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var asked []string
			s.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.Method != http.MethodDelete {
					next.ServeHTTP(w, r)
					return
				}
				if c, err := s.Verify(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")); err == nil {
					asked = append(asked, c.Email)
				}
				if err := store.Save(context.Background(), bobs); err != nil {
					t.Error(err)
				}
				answer(w, http.StatusUnauthorized, auth.CodeTokenStale)
			})
			_ = ask(ada) // its result is the refusal
			if !slices.Equal(asked, []string{"ada@example.com"}) {
				t.Errorf("asked as %v", asked)
			}
		})
	}
}

// A verifier remembers revocations that it learns of before it has keys.
func TestRevokedBeforeThereAreKeys(t *testing.T) {
	s := newService(t)
	tok := accessToken(t, signedIn(t, s, "ada@example.com"))
	claims, err := s.Verify(tok)
	if err != nil {
		t.Fatal(err)
	}
	s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		answer(w, http.StatusServiceUnavailable, auth.CodeUnavailable)
	})
	v := newVerifier(t, s, WithLateStart())
	v.Revoke(store.Revocation{SessionID: claims.SessionID, At: s.clock.Now().Add(time.Minute)})
	s.set(nil)
	s.clock.Advance(2 * keysPause)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+tok)
	w := httptest.NewRecorder()
	v.Require(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })).ServeHTTP(w, r)
	if w.Code != http.StatusUnauthorized {
		t.Errorf("%d", w.Code)
	}
}

// A server that hangs delays one request, and not every one.
func TestHangingServer(t *testing.T) {
	s := newService(t)
	c, v := signedIn(t, s, "ada@example.com"), newVerifier(t, s)
	s.clock.Advance(keysStale + time.Minute)
	if err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	tok, quit := accessToken(t, c), make(chan struct{})
	t.Cleanup(func() { close(quit) })
	s.set(func(http.ResponseWriter, *http.Request, http.Handler) { <-quit })
	if _, err := v.Verify(t.Context(), tok); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), keysWait-time.Millisecond)
	defer cancel()
	if _, err := v.Verify(ctx, tok); err != nil || ctx.Err() != nil {
		t.Errorf("the second waited as well: %v, %v", err, ctx.Err())
	}
}

// A clock that was ahead and is corrected does not keep old keys valid.
func TestClockSetBack(t *testing.T) {
	s := newService(t)
	right := s.clock.Now()
	s.clock.Advance(365 * 24 * time.Hour)
	v := newVerifier(t, s)
	s.clock.mu.Lock()
	s.clock.at = right
	s.clock.mu.Unlock()
	c := signedIn(t, s, "ada@example.com")
	n := s.count("GET /.well-known/jwks.json")
	for range 100 {
		if _, err := v.Verify(t.Context(), accessToken(t, c)); err != nil {
			t.Fatal(err)
		}
		if s.count("GET /.well-known/jwks.json") > n {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Error("the keys are not read again")
}
