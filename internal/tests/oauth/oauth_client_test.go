package oauth_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/provider"
)

// Additional parameters of the application reach the provider. Empty ones do not.
func TestAuthParamsReachTheProvider(t *testing.T) {
	idp := authtest.StartProvider(t)
	p := idp.Google()
	p.AuthParams = map[string]string{"access_type": "offline", "hd": ""}
	w := harness.NewWorld(t, auth.WithProvider(p))
	to, err := url.Parse(w.NewVisitor(idp).Start("google", "login_hint=ada"))
	if err != nil {
		t.Fatal(err)
	}
	if q := to.Query(); q.Get("access_type") != "offline" || q.Has("hd") || q.Has("prompt") || q.Get("login_hint") != "ada" {
		t.Errorf("%v", q)
	}
}

// Without the client's secret, the provider is not called and no one is signed in.
func TestClientSecretCannotBeMade(t *testing.T) {
	idp := authtest.StartProvider(t)
	p := idp.Google()
	p.ClientSecret = ""
	p.Secret = func(*provider.Provider, time.Time) (string, error) { return "", errors.New("the key is locked") }
	w := harness.NewWorld(t, auth.WithProvider(p))
	idp.Now = w.Clock.Now
	w.NewVisitor(idp).SignIn("google", harness.Ada, "").Want(502, auth.CodeProviderError)
	if n := idp.Requests("/google/token"); n != 0 {
		t.Errorf("%d requests for tokens", n)
	}
}

// A provider with short ID tokens signs no one in if its user info endpoint fails.
func TestUserInfoFails(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"an error": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(`{"sub":"` + harness.Ada.Subject + `","email":"ada@example.com","email_verified":true}`))
		},
		"no JSON":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"no answer":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"no object":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[]")) },
		"another user": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"sub":"x"}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(answer)
			t.Cleanup(srv.Close)
			idp := authtest.StartProvider(t)
			p := idp.OIDC("oidc")
			p.UserInfoURL = srv.URL
			w := harness.NewWorld(t, auth.WithProvider(p))
			idp.Now = w.Clock.Now
			w.NewVisitor(idp).SignIn("oidc", harness.Ada, "").Want(502, auth.CodeProviderError)
		})
	}
}

// A provider with short ID tokens is queried for the other claims in JSON, with the access
// token. The name from the ID token stays if there is no other one.
func TestUserInfoIsAskedFor(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"nothing is missing": {"", "Ada"},
		"a name":             {`{"sub":"` + harness.Ada.Subject + `","email":"ada@example.com","name":"Countess"}`, "Countess"},
		"no name":            {`{"sub":"` + harness.Ada.Subject + `","email":"ada@example.com"}`, "Ada"},
	} {
		var asked http.Header
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = r.Header
			_, _ = w.Write([]byte(c.answer))
		}))
		t.Cleanup(srv.Close)
		idp := authtest.StartProvider(t)
		p := idp.OIDC("oidc")
		p.UserInfoURL = srv.URL
		w := harness.NewWorld(t, auth.WithProvider(p))
		idp.Now = w.Clock.Now
		who := authtest.Person{Subject: harness.Ada.Subject, Claims: map[string]any{"name": "Ada", "email": nil}}
		if c.answer == "" {
			who.Email, who.Claims = "ada@example.com", map[string]any{"name": "Ada", "email": "ada@example.com"}
		}
		s := w.NewVisitor(idp).SignIn("oidc", who, "").Session()
		if c.answer == "" {
			if asked != nil || s.User.FullName != c.want {
				t.Errorf("%s: %+v, asked with %v", name, s.User, asked)
			}
			continue
		}
		if s.User.FullName != c.want || s.User.Email != "ada@example.com" || asked.Get("Accept") != "application/json" || !strings.HasPrefix(asked.Get("Authorization"), "Bearer ") {
			t.Errorf("%s: %+v, asked with %v", name, s.User, asked)
		}
	}
}

// A form with an unreadable part is refused and uses nothing up.
func TestMalformedCallbackForm(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	v := w.NewVisitor(idp)
	to := v.Start("apple", "")
	idp.SignsIn(harness.Ada)
	back := idp.Authorize(t, to).Encode()
	v.Do("POST", "/oauth/apple/callback", back+"&x=%zz", harness.Form).Want(400, auth.CodeBadOAuthState)
	v.Do("POST", "/oauth/apple/callback", "{}").Want(415, auth.CodeUnsupportedMediaType)
	v.Do("POST", "/oauth/apple/callback", back, harness.Form).Want(200)
}

// Users without an email address from their provider share no limit by address and have no
// address to confirm.
func TestPeopleWithoutAddresses(t *testing.T) {
	w, idp := harness.NewProviderWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	for _, subject := range []string{"1", "2", "3", "4", "5", "6"} {
		w.NewVisitor(idp).SignIn("twitter", authtest.Person{Subject: subject}, "").Session()
	}
}

func TestStartAtAnUnknownProvider(t *testing.T) {
	w, _ := harness.NewProviderWorld(t)
	if to, err := w.StartOAuth(t.Context(), auth.StartOAuthParams{Provider: "nobody", Browser: "b"}); !errors.Is(err, auth.CodeUnknownProvider) {
		t.Errorf("%q, %v", to, err)
	}
}
