package signin_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// lasts reports whether a browser keeps the session's cookies that an answer sets.
func lasts(a *harness.Answer) bool {
	a.T.Helper()
	j := jarOf(a)
	if j.access == nil || j.refresh == nil || (j.access.MaxAge > 0) != (j.refresh.MaxAge > 0) || strings.HasSuffix(j.refresh.Value, ".brief") != (j.refresh.MaxAge == 0) {
		a.T.Fatalf("cookies %v, answer %d %s", a.SetCookies(), a.Status, a.Body)
	}
	return j.refresh.MaxAge > 0
}

// The choice to keep the cookies at the start of a sign-in by provider or link holds at its
// end, for every kind of answer. The request that ends it may override the choice.
func TestRememberAcrossASignIn(t *testing.T) {
	const back = "redirect_to=" + "https://app.test/" + "&code_challenge="
	said := map[string]struct {
		query url.Values
		body  map[string]any
		want  bool
	}{
		"nothing": {url.Values{}, map[string]any{}, true},
		"yes":     {url.Values{"remember": {"true"}}, map[string]any{"remember": true}, true},
		"no":      {url.Values{"remember": {"false"}}, map[string]any{"remember": false}, false},
	}
	code := func(a *harness.Answer) string { return a.Location().Query().Get("code") }
	exchange := func(v *harness.Visitor, code string, more map[string]any) *harness.Answer {
		body := map[string]any{"code": code, "code_verifier": harness.Verifier}
		for name, value := range more {
			body[name] = value
		}
		return v.Do("POST", "/exchange", body, harness.Transport)
	}
	bound := func(body map[string]any) map[string]any {
		body["redirect_to"], body["code_challenge"] = harness.AppURL, harness.ChallengeOf(harness.Verifier)
		return body
	}
	opens := func(v *harness.Visitor, token string, more ...string) *harness.Answer {
		return v.Do("POST", "/magic-link/verify", strings.Join(append([]string{"token=" + token}, more...), "&"), harness.Form, harness.SameOrigin)
	}
	ends := map[string]struct {
		sign      func(v *harness.Visitor, query url.Values, body map[string]any) *harness.Answer
		otherwise bool // the end says the opposite
	}{
		"a callback": {func(v *harness.Visitor, query url.Values, _ map[string]any) *harness.Answer {
			return v.SignIn("google", harness.Ada, query.Encode())
		}, false},
		"a callback that is posted": {func(v *harness.Visitor, query url.Values, _ map[string]any) *harness.Answer {
			return v.SignIn("apple", harness.Ada, query.Encode())
		}, false},
		"a provider's code": {func(v *harness.Visitor, query url.Values, _ map[string]any) *harness.Answer {
			return exchange(v, code(v.SignIn("google", harness.Ada, back+harness.ChallengeOf(harness.Verifier)+"&"+query.Encode())), nil)
		}, false},
		"a provider's code in a form": {func(v *harness.Visitor, query url.Values, _ map[string]any) *harness.Answer {
			if len(query) == 0 { // a form has a box
				query = url.Values{"remember": {"on"}}
			}
			code := code(v.SignIn("google", harness.Ada, back+harness.ChallengeOf(harness.Verifier)+"&"+query.Encode()))
			return v.Do("POST", "/exchange", "code="+code+"&code_verifier="+harness.Verifier, harness.Form, harness.SameOrigin)
		}, false},
		"a provider's code that says yes": {func(v *harness.Visitor, query url.Values, _ map[string]any) *harness.Answer {
			return exchange(v, code(v.SignIn("google", harness.Ada, back+harness.ChallengeOf(harness.Verifier)+"&"+query.Encode())), map[string]any{"remember": query.Get("remember") == "false"})
		}, true},
		"a link's page": {func(v *harness.Visitor, _ url.Values, body map[string]any) *harness.Answer {
			return opens(v, v.MagicLink("ada@example.com", body))
		}, false},
		"a link's page that leads on": {func(v *harness.Visitor, _ url.Values, body map[string]any) *harness.Answer {
			body["redirect_to"] = harness.AppURL
			return opens(v, v.MagicLink("ada@example.com", body))
		}, false},
		"a link's page that says otherwise": {func(v *harness.Visitor, query url.Values, body map[string]any) *harness.Answer {
			more := "remember=false"
			if query.Get("remember") == "false" {
				more = "remember=on"
			}
			return opens(v, v.MagicLink("ada@example.com", body), more)
		}, true},
		"a link's token": {func(v *harness.Visitor, _ url.Values, body map[string]any) *harness.Answer {
			return v.Do("POST", "/magic-link/verify", map[string]any{"token": v.MagicLink("ada@example.com", body)}, harness.Transport)
		}, false},
		"a bound link's code": {func(v *harness.Visitor, _ url.Values, body map[string]any) *harness.Answer {
			return exchange(v, code(opens(v, v.MagicLink("ada@example.com", bound(body)))), nil)
		}, false},
		"a second factor": {func(v *harness.Visitor, _ url.Values, body map[string]any) *harness.Answer {
			mfa := v.Enrol(v.Do("POST", "/magic-link/verify", map[string]any{"token": v.MagicLink("ada@example.com", nil)}).Session().AccessToken)
			v.Clock.Advance(time.Minute)
			token := harness.DecodeAs[struct {
				MFAToken string `json:"mfa_token"`
			}](v.Do("POST", "/magic-link/verify", map[string]any{"token": v.MagicLink("ada@example.com", body)}, harness.Transport).Want(403, auth.CodeMFARequired)).MFAToken
			return v.Do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": v.Code(mfa.Secret, 0)}, harness.Transport)
		}, false},
	}
	for name, end := range ends {
		for word, c := range said {
			t.Run(name+", "+word, func(t *testing.T) {
				w, idp := harness.NewProviderWorld(t, auth.WithCookies(auth.CookieOptions{}))
				body := map[string]any{}
				for name, value := range c.body {
					body[name] = value
				}
				if got := lasts(end.sign(w.NewVisitor(idp), c.query, body)); got != (c.want != end.otherwise) {
					t.Errorf("the cookies last %v", got)
				}
			})
		}
	}
}

// A sign-in that requires the setup of a second factor keeps the choice, too. A form that
// sends a link has a checkbox, as others have. An invalid value is refused.
func TestRememberIsReadAtTheBeginning(t *testing.T) {
	w, idp := harness.NewProviderWorld(t, auth.WithCookies(auth.CookieOptions{}), auth.WithSettings(auth.Settings{MFARequired: auth.On}))
	v := w.NewVisitor(idp)
	token := harness.DecodeAs[struct {
		MFAToken string `json:"mfa_token"`
	}](v.SignIn("google", harness.Ada, "remember=off").Want(403, auth.CodeMFAEnrollmentRequired)).MFAToken
	setup := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(token)).Want(200))
	if lasts(w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(setup.Secret, 0)}, harness.Bearer(token), harness.Transport).Want(200)) {
		t.Error("the cookies of an enrolment last")
	}

	w, idp = harness.NewProviderWorld(t, auth.WithCookies(auth.CookieOptions{}))
	for fields, want := range map[string]bool{"": false, "&remember=on": true, "&remember=false": false} {
		email := "box" + strings.Trim(fields, "&=") + "@example.com"
		email = strings.ReplaceAll(email, "=", "-")
		w.Do("POST", "/magic-link/send", "email="+email+fields, harness.Form, harness.SameOrigin).Want(200)
		a := w.Do("POST", "/magic-link/verify", "token="+w.LinkToken(email, auth.KindMagicLink), harness.Form, harness.SameOrigin).Want(200)
		if lasts(a) != want {
			t.Errorf("form %q: cookies %v", fields, a.SetCookies())
		}
	}
	w.Do("GET", "/oauth/google?remember=maybe", nil).Want(422, auth.CodeValidationFailed)
	w.Do("POST", "/magic-link/send", map[string]any{"email": harness.AdaMail, "remember": "maybe"}).Want(400, auth.CodeBadJSON)
	token = w.MagicLink(harness.AdaMail, nil)
	w.Do("POST", "/magic-link/verify", "token="+token+"&remember=maybe", harness.Form, harness.SameOrigin).Want(400)
	w.Do("POST", "/magic-link/verify", "token="+token, harness.Form, harness.SameOrigin).Want(200) // it was not spent

	// An application that sets the cookies itself need not repeat the choice.
	to, err := w.StartOAuth(t.Context(), auth.StartOAuthParams{Provider: "google", Browser: "hers", Remember: new(bool)})
	if err != nil {
		t.Fatal(err)
	}
	idp.SignsIn(harness.Ada)
	q := idp.Authorize(t, to)
	res, err := w.FinishOAuth(t.Context(), auth.OAuthCallback{Provider: "google", State: q.Get("state"), Code: q.Get("code"), Issuer: q.Get("iss"), Browser: "hers"})
	if err != nil {
		t.Fatal(err)
	}
	if a := w.Page(setsCookies(w, res.Tokens), "POST", "/", harness.SameOrigin).Want(200); lasts(a) {
		t.Errorf("cookies %v", a.SetCookies())
	}
	if a := w.Page(setsCookies(w, res.Tokens, auth.Remember(true)), "POST", "/", harness.SameOrigin).Want(200); !lasts(a) {
		t.Errorf("cookies %v", a.SetCookies())
	}
}

// setsCookies is a page that signs a browser in.
func setsCookies(w *harness.World, tokens *auth.Tokens, settings ...auth.CookieSetting) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if err := w.SetCookies(rw, r, tokens, settings...); err != nil {
			w.WriteError(rw, r, err)
		}
	})
}

// If every user must set up a second factor, a sign-in creates no session if its account
// changes at that point.
func TestSignInIsAskedMeanwhile(t *testing.T) {
	st := harness.NewStore(t)
	tap := storetap.New(st)
	u := authtest.NewOn(t, st).LoginAs(t, "ada@example.com").User // while no one had to
	e := authtest.NewOn(t, tap, auth.WithSettings(auth.Settings{MFARequired: auth.On}))
	var once sync.Once
	tap.Reset(storetap.Hooks{Before: func(ctx context.Context, method string, _ int) {
		if method == "PutToken" {
			once.Do(func() {
				number := "+4930123456"
				c := store.UpdateUser{Change: store.Change{Now: e.Clock.Now(), By: auth.Authority{System: "test"}}, UserID: u.ID, Patch: store.UserPatch{Phone: &number}}
				if _, err := st.UpdateUser(ctx, c); err != nil {
					t.Error(err)
				}
			})
		}
	}})
	tokens, err := e.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	if tokens != nil || err == nil {
		t.Errorf("signed in: %v", err)
	}
	list, err := st.Sessions(t.Context(), u.ID, e.Clock.Now())
	if err != nil || len(list) != 1 {
		t.Errorf("%d sessions, want the one before: %v", len(list), err)
	}
}
