package oauth_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/provider"
)

type profileFunc = func(ctx context.Context, api *provider.API) (provider.Profile, error)

// ownProvider is a provider of the application's own: an authtest.Provider signs
// in, and profile finds out who it was.
func ownProvider(idp *authtest.Provider, profile profileFunc) provider.Provider {
	like := idp.Discord()
	return provider.OAuth2("own", provider.OAuth2Options{
		ClientID: like.ClientID, ClientSecret: like.ClientSecret, AuthURL: like.AuthURL, TokenURL: like.TokenURL, Scopes: []string{"identify", "email"},
		Profile: profile,
	})
}

// A custom provider may identify a user by any request and in any form.
func TestOwnProvider(t *testing.T) {
	mux := http.NewServeMux()
	signedIn := func(w http.ResponseWriter, r *http.Request) bool {
		ok := len(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) == 40
		if !ok {
			http.Error(w, "who?", http.StatusUnauthorized)
		}
		return ok
	}
	mux.HandleFunc("GET /json", func(w http.ResponseWriter, r *http.Request) {
		if signedIn(w, r) {
			_, _ = w.Write([]byte(`{"id":"7","mail":"ada@example.com"}`))
		}
	})
	mux.HandleFunc("POST /form", func(w http.ResponseWriter, r *http.Request) {
		if signedIn(w, r) && r.PostFormValue("method") == "users.me" {
			_, _ = w.Write([]byte(`{"id":"7","mail":"ada@example.com"}`))
		}
	})
	mux.HandleFunc("POST /text", func(w http.ResponseWriter, r *http.Request) {
		if signedIn(w, r) && r.Header.Get("Content-Type") == "text/plain" {
			w.Header().Set("Content-Type", "application/x-www-form-urlencoded")
			_, _ = w.Write([]byte("id=7&mail=ada%40example.com"))
		}
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	type me struct{ ID, Mail string }
	for name, profile := range map[string]profileFunc{
		"GET": func(ctx context.Context, api *provider.API) (provider.Profile, error) {
			var u me
			err := api.Get(ctx, srv.URL+"/json", &u)
			return provider.Profile{Subject: u.ID, Email: u.Mail, EmailVerified: true}, err
		},
		"POST of a form": func(ctx context.Context, api *provider.API) (provider.Profile, error) {
			var u me
			err := api.PostForm(ctx, srv.URL+"/form", url.Values{"method": {"users.me"}}, &u)
			return provider.Profile{Subject: u.ID, Email: u.Mail, EmailVerified: true}, err
		},
		"no JSON": func(ctx context.Context, api *provider.API) (provider.Profile, error) {
			res, err := api.Do(ctx, provider.Request{Method: "POST", URL: srv.URL + "/text", ContentType: "text/plain", Body: []byte("me")})
			if err != nil {
				return provider.Profile{}, err
			}
			u, err := url.ParseQuery(string(res.Body))
			return provider.Profile{Subject: u.Get("id"), Email: u.Get("mail"), EmailVerified: true}, err
		},
	} {
		idp := authtest.StartProvider(t)
		w := harness.NewWorld(t, auth.WithProvider(ownProvider(idp, profile)))
		if s := w.NewVisitor(idp).SignIn("own", harness.Ada, "").Session(); s.User.Email != "ada@example.com" || !s.User.EmailVerified || s.User.Identities[0].Subject != "7" {
			t.Errorf("%s: user %+v", name, s.User)
		}
	}
}

// A Profile function may refuse users with a message of its own. Other errors, and a missing
// user, are the provider's fault.
func TestProfileRejects(t *testing.T) {
	for name, c := range map[string]struct {
		who    provider.Profile
		err    error
		status int
		code   auth.Code
		words  string
	}{
		"refused":    {provider.Profile{Subject: "1"}, auth.Reject(auth.CodeSignupDisabled, "Members only."), 403, auth.CodeSignupDisabled, "Members only."},
		"failed":     {provider.Profile{Subject: "1"}, errors.New("out of order"), 502, auth.CodeProviderError, ""},
		"nobody":     {provider.Profile{Email: "ada@example.com", EmailVerified: true}, nil, 502, auth.CodeProviderError, ""},
		"odd nobody": {provider.Profile{Subject: "a\nb"}, nil, 502, auth.CodeProviderError, ""},
	} {
		idp := authtest.StartProvider(t)
		w := harness.NewWorld(t, auth.WithProvider(ownProvider(idp, func(context.Context, *provider.API) (provider.Profile, error) { return c.who, c.err })))
		if a := w.NewVisitor(idp).SignIn("own", harness.Ada, "").Want(c.status, c.code); !strings.Contains(string(a.Body), c.words) || strings.Contains(string(a.Body), "out of order") {
			t.Errorf("%s: %s", name, a.Body)
		}
	}
}

// A custom OpenID provider may express the standard claims in another way: by redirect and
// by a native app's token.
func TestOwnClaims(t *testing.T) {
	idp := authtest.StartProvider(t)
	p := idp.Google()
	p.Name = "own"
	p.ProfileOf = func(_ *provider.Provider, c provider.Claims) (provider.Profile, error) {
		if !c.Flag("staff") {
			return provider.Profile{}, auth.Reject(auth.CodeSignupDisabled, "Staff only.")
		}
		return provider.Profile{Subject: c.Text("employee"), Email: c.Text("email"), EmailVerified: true}, nil
	}
	w := harness.NewWorld(t, auth.WithProvider(p))
	idp.Now = w.Clock.Now
	staff := authtest.Person{Subject: "1", Email: "ada@example.com", Claims: map[string]any{"staff": true, "employee": "E7"}}
	s := w.NewVisitor(idp).SignIn("own", staff, "").Session()
	native := w.Do("POST", "/oauth/own/id-token", map[string]any{"id_token": idp.IDToken("google", staff, "")}).Session()
	if s.User.Identities[0].Subject != "E7" || !s.User.EmailVerified || native.User.ID != s.User.ID {
		t.Errorf("%+v %+v", s.User, native.User)
	}
	guest := authtest.Person{Subject: "2", Email: "bob@example.com", EmailVerified: true}
	w.NewVisitor(idp).SignIn("own", guest, "").Want(403, auth.CodeSignupDisabled)
	w.Do("POST", "/oauth/own/id-token", map[string]any{"id_token": idp.IDToken("google", guest, "")}).Want(403, auth.CodeSignupDisabled)
}

// A valid token of an app that identifies no user differs from a failing provider: the
// answer blames the token, and the log has the reason.
func TestNativeTokenThatSignsNobodyIn(t *testing.T) {
	for name, c := range map[string]struct {
		who  provider.Profile
		err  error
		code auth.Code
		why  string // the reason in the log
	}{
		"refused":        {provider.Profile{Subject: "1"}, auth.Reject(auth.CodeSignupDisabled, "Members only."), auth.CodeSignupDisabled, ""},
		"not understood": {provider.Profile{Subject: "1"}, errors.New("no claim of an employee"), auth.CodeInvalidToken, "the ID token is not valid for a sign-in: no claim of an employee"},
		"nobody":         {provider.Profile{Email: "ada@example.com", EmailVerified: true}, nil, auth.CodeInvalidToken, "the ID token is not valid for a sign-in: no usable subject"},
		"odd nobody":     {provider.Profile{Subject: "a\nb"}, nil, auth.CodeInvalidToken, "the ID token is not valid for a sign-in: no usable subject"},
	} {
		idp := authtest.StartProvider(t)
		p := idp.Google()
		p.ProfileOf = func(*provider.Provider, provider.Claims) (provider.Profile, error) { return c.who, c.err }
		w := harness.NewWorld(t, auth.WithProvider(p))
		idp.Now = w.Clock.Now
		_, err := w.SignInWithIDToken(t.Context(), auth.IDTokenParams{Provider: "google", IDToken: idp.IDToken("google", harness.Ada, "")})
		if !errors.Is(err, c.code) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", name, err)
		}
		var e *auth.Error
		if errors.As(err, &e) && c.why != "" && e.Message != "The ID token is not valid." {
			t.Errorf("%s: people read %q", name, e.Message)
		}
	}
}

// A token is not used up by a sign-in that failed by a fault of ours, and is by one that
// was refused.
func TestNativeTokenAfterAFault(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		code auth.Code
		good bool // the token, afterwards
	}{
		"a fault":   {errors.New("out of order"), auth.CodeInternal, true},
		"an outage": {auth.Reject(auth.CodeUnavailable, ""), auth.CodeUnavailable, true},
		"a refusal": {auth.Reject(auth.CodeSignupDisabled, ""), auth.CodeSignupDisabled, false},
	} {
		idp := authtest.StartProvider(t)
		answer := c.err
		w := harness.NewWorld(t, auth.WithProvider(idp.Google()), auth.WithHooks(auth.Hooks{BeforeSignIn: func(context.Context, auth.SignInAttempt) error { return answer }}))
		idp.Now = w.Clock.Now
		in := auth.IDTokenParams{Provider: "google", IDToken: idp.IDToken("google", harness.Ada, "")}
		if _, err := w.SignInWithIDToken(t.Context(), in); !errors.Is(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
		answer = nil
		if _, err := w.SignInWithIDToken(t.Context(), in); (err == nil) != c.good || !c.good && !errors.Is(err, auth.CodeInvalidToken) {
			t.Errorf("%s: afterwards %v", name, err)
		}
	}
}
