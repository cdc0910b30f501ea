package signin_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// jar is the cookies of a session in cookie mode, by the ends of their names.
type jar struct{ access, refresh *http.Cookie }

func jarOf(a *harness.Answer) (j jar) {
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
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
func (j jar) byCookie() []harness.Header {
	return []harness.Header{{Name: "Cookie", Value: j.access.Name + "=" + j.access.Value + "; " + j.refresh.Name + "=" + j.refresh.Value}, {Name: "Sec-Fetch-Site", Value: "same-origin"}, harness.Transport}
}

func cookieWorld(t *testing.T, opts ...auth.Option) (*harness.World, jar) {
	t.Helper()
	w := harness.NewWorld(t, append([]auth.Option{auth.WithCookies(auth.CookieOptions{})}, opts...)...)
	j := jarOf(w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}, harness.Transport).Want(200))
	if j.access == nil || j.refresh == nil {
		t.Fatal("no cookies")
	}
	return w, j
}

// A session that is raised to a second factor by cookie stays in its cookies.
func TestEnrolmentByCookie(t *testing.T) {
	w, j := cookieWorld(t)
	setup := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, j.byCookie()...).Want(200))
	a := w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(setup.Secret, 0)}, j.byCookie()...).Want(200)
	raised := jarOf(a)
	if s := harness.DecodeAs[harness.Session](a); s.AccessToken != "" || s.RefreshToken != "" || raised.access == nil || raised.refresh == nil {
		t.Fatalf("tokens in the body, or no cookies: %s", a.Body)
	}
	for _, secret := range []string{raised.access.Value, raised.refresh.Value} {
		if strings.Contains(string(a.Body), secret) {
			t.Error("a token is in the body")
		}
	}
	if c, err := w.Verify(raised.access.Value); err != nil || c.AAL != store.LevelAAL2 {
		t.Errorf("%+v, %v", c, err)
	}
}

// A proxy's own login (HTTP Basic) beside the cookies blocks no one and grants nothing
// without them. A refused bearer token does not fall back on the cookies.
func TestBasicLoginBesideCookies(t *testing.T) {
	w, j := cookieWorld(t)
	basic := harness.Header{Name: "Authorization", Value: "Basic YTpi"}
	w.Do("GET", "/me", nil, append(j.byCookie(), basic)...).Want(200)
	w.Do("GET", "/me", nil, basic).Want(401, auth.CodeBadToken)
	w.Do("GET", "/me", nil, append(j.byCookie(), harness.Bearer("x.y.z"))...).Want(401, auth.CodeBadToken)
}

// Optional accepts requests without a token, but refuses a token of a revoked session.
func TestOptionalKnowsRevocations(t *testing.T) {
	for _, name := range []string{"a session", "all sessions"} {
		w := harness.NewWorld(t)
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

// A banned user may sign out, and is still signed out when the ban ends.
func TestLogoutOfABannedUser(t *testing.T) {
	for name, out := range map[string]func(w *harness.World, s harness.Session) *harness.Answer{
		"bearer": func(w *harness.World, s harness.Session) *harness.Answer {
			return w.Do("POST", "/logout?scope=global", nil, harness.Bearer(s.AccessToken))
		},
		"refresh token": func(w *harness.World, s harness.Session) *harness.Answer {
			return w.Do("POST", "/logout", map[string]any{"refresh_token": s.RefreshToken})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t)
			s := w.PostSignUp("ada@example.com")
			other := w.PostLogin("ada@example.com", harness.GoodPassword).Session()
			until := w.Clock.Now().Add(time.Hour)
			w.Patch(s.User.ID, store.UserPatch{BannedUntil: &until})
			out(w, s).Want(204)
			w.Do("GET", "/me", nil, harness.Bearer(s.AccessToken)).Want(403, auth.CodeUserBanned)
			w.Patch(s.User.ID, store.UserPatch{BannedUntil: &time.Time{}})
			w.PostRefresh(s.RefreshToken).Want(400, auth.CodeSessionEnded)
			w.PostRefresh(other.RefreshToken).Want(200)
		})
	}
}
