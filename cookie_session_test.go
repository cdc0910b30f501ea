package auth_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// jar is the cookies of a session in cookie mode, by the ends of their names.
type jar struct{ access, refresh *http.Cookie }

func jarOf(a *answer) (j jar) {
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		switch {
		case strings.HasSuffix(c.Name, "-access"):
			j.access = c
		case strings.HasSuffix(c.Name, "-refresh"):
			j.refresh = c
		}
	}
	return j
}

// byCookie are the headers of a page's script that relies on the cookies.
func (j jar) byCookie() []header {
	return []header{{"Cookie", j.access.Name + "=" + j.access.Value + "; " + j.refresh.Name + "=" + j.refresh.Value}, {"Sec-Fetch-Site", "same-origin"}, transport}
}

var transport = header{"X-Session-Transport", "cookie"}

func cookieWorld(t *testing.T, opts ...auth.Option) (*world, jar) {
	t.Helper()
	w := newWorld(t, append([]auth.Option{auth.WithCookies(auth.CookieOptions{})}, opts...)...)
	j := jarOf(w.do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": goodPassword}, transport).want(200))
	if j.access == nil || j.refresh == nil {
		t.Fatal("no cookies")
	}
	return w, j
}

// A session that rises to a second factor by cookie stays in its cookies.
func TestEnrolmentByCookie(t *testing.T) {
	w, j := cookieWorld(t)
	setup := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, j.byCookie()...).want(200))
	a := w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.code(setup.Secret, 0)}, j.byCookie()...).want(200)
	raised := jarOf(a)
	if s := decodeAs[session](a); s.AccessToken != "" || s.RefreshToken != "" || raised.access == nil || raised.refresh == nil {
		t.Fatalf("tokens in the body, or no cookies: %s", a.body)
	}
	for _, secret := range []string{raised.access.Value, raised.refresh.Value} {
		if strings.Contains(string(a.body), secret) {
			t.Error("a token is in the body")
		}
	}
	if c, err := w.Verify(raised.access.Value); err != nil || c.AAL != store.LevelAAL2 {
		t.Errorf("%+v, %v", c, err)
	}
}

// A proxy's own login (HTTP Basic) beside the cookies keeps nobody out, and opens
// nothing without them; a bearer token that is refused does not fall back on them.
func TestBasicLoginBesideCookies(t *testing.T) {
	w, j := cookieWorld(t)
	basic := header{"Authorization", "Basic YTpi"}
	w.do("GET", "/me", nil, append(j.byCookie(), basic)...).want(200)
	w.do("GET", "/me", nil, basic).want(401, auth.CodeBadToken)
	w.do("GET", "/me", nil, append(j.byCookie(), bearer("x.y.z"))...).want(401, auth.CodeBadToken)
}

// Optional asks nothing of nobody, but a token of a session that was revoked is
// one that is refused.
func TestOptionalKnowsRevocations(t *testing.T) {
	for _, name := range []string{"a session", "all sessions"} {
		w := newWorld(t)
		ada := w.LoginAs(t, "ada@example.com")
		r := store.Revocation{UserID: ada.User.ID, At: w.Clock.Now()}
		if name == "a session" {
			r.SessionID = ada.SessionID
		}
		w.Revoke(r)
		h := w.Optional(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNoContent) }))
		for token, want := range map[string]int{"": 204, ada.AccessToken: 401} {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, req)
			if rec.Code != want || (want == 401 && !strings.Contains(rec.Body.String(), string(auth.CodeSessionEnded))) {
				t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
			}
		}
	}
}

// Somebody who is banned may sign out, and is when the ban is over.
func TestLogoutOfABannedUser(t *testing.T) {
	for name, out := range map[string]func(w *world, s session) *answer{
		"bearer": func(w *world, s session) *answer {
			return w.do("POST", "/logout?scope=global", nil, bearer(s.AccessToken))
		},
		"refresh token": func(w *world, s session) *answer {
			return w.do("POST", "/logout", map[string]any{"refresh_token": s.RefreshToken})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.signUp("ada@example.com")
			other := w.login("ada@example.com", goodPassword).session()
			until := w.Clock.Now().Add(time.Hour)
			w.patch(s.User.ID, store.UserPatch{BannedUntil: &until})
			out(w, s).want(204)
			w.do("GET", "/me", nil, bearer(s.AccessToken)).want(403, auth.CodeUserBanned)
			w.patch(s.User.ID, store.UserPatch{BannedUntil: &time.Time{}})
			w.refresh(s.RefreshToken).want(400, auth.CodeSessionEnded)
			w.refresh(other.RefreshToken).want(200)
		})
	}
}
