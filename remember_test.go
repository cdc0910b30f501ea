package auth_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
)

// lasts tells whether a browser keeps the session's cookies that an answer sets.
func lasts(a *answer) bool {
	a.t.Helper()
	j := jarOf(a)
	if j.access == nil || j.refresh == nil || (j.access.MaxAge > 0) != (j.refresh.MaxAge > 0) || strings.HasSuffix(j.refresh.Value, ".brief") != (j.refresh.MaxAge == 0) {
		a.t.Fatalf("cookies %v, answer %d %s", a.set(), a.status, a.body)
	}
	return j.refresh.MaxAge > 0
}

// What is said of keeping the cookies as a sign-in at a provider or by a link begins
// holds where it ends, whichever answer that is; the request that ends it may say
// otherwise.
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
	code := func(a *answer) string { return a.location().Query().Get("code") }
	exchange := func(v *visitor, code string, more map[string]any) *answer {
		body := map[string]any{"code": code, "code_verifier": verifier}
		for name, value := range more {
			body[name] = value
		}
		return v.do("POST", "/exchange", body, transport)
	}
	bound := func(body map[string]any) map[string]any {
		body["redirect_to"], body["code_challenge"] = appURL, challengeOf(verifier)
		return body
	}
	opens := func(v *visitor, token string, more ...string) *answer {
		return v.do("POST", "/magic-link/verify", strings.Join(append([]string{"token=" + token}, more...), "&"), form, sameSite)
	}
	ends := map[string]struct {
		sign      func(v *visitor, query url.Values, body map[string]any) *answer
		otherwise bool // the end says the opposite
	}{
		"a callback": {func(v *visitor, query url.Values, _ map[string]any) *answer {
			return v.signIn("google", ada, query.Encode())
		}, false},
		"a callback that is posted": {func(v *visitor, query url.Values, _ map[string]any) *answer {
			return v.signIn("apple", ada, query.Encode())
		}, false},
		"a provider's code": {func(v *visitor, query url.Values, _ map[string]any) *answer {
			return exchange(v, code(v.signIn("google", ada, back+challengeOf(verifier)+"&"+query.Encode())), nil)
		}, false},
		"a provider's code in a form": {func(v *visitor, query url.Values, _ map[string]any) *answer {
			if len(query) == 0 { // a form has a box
				query = url.Values{"remember": {"on"}}
			}
			code := code(v.signIn("google", ada, back+challengeOf(verifier)+"&"+query.Encode()))
			return v.do("POST", "/exchange", "code="+code+"&code_verifier="+verifier, form, sameSite)
		}, false},
		"a provider's code that says yes": {func(v *visitor, query url.Values, _ map[string]any) *answer {
			return exchange(v, code(v.signIn("google", ada, back+challengeOf(verifier)+"&"+query.Encode())), map[string]any{"remember": query.Get("remember") == "false"})
		}, true},
		"a link's page": {func(v *visitor, _ url.Values, body map[string]any) *answer {
			return opens(v, v.magicLink("ada@example.com", body))
		}, false},
		"a link's page that leads on": {func(v *visitor, _ url.Values, body map[string]any) *answer {
			body["redirect_to"] = appURL
			return opens(v, v.magicLink("ada@example.com", body))
		}, false},
		"a link's page that says otherwise": {func(v *visitor, query url.Values, body map[string]any) *answer {
			more := "remember=false"
			if query.Get("remember") == "false" {
				more = "remember=on"
			}
			return opens(v, v.magicLink("ada@example.com", body), more)
		}, true},
		"a link's token": {func(v *visitor, _ url.Values, body map[string]any) *answer {
			return v.do("POST", "/magic-link/verify", map[string]any{"token": v.magicLink("ada@example.com", body)}, transport)
		}, false},
		"a bound link's code": {func(v *visitor, _ url.Values, body map[string]any) *answer {
			return exchange(v, code(opens(v, v.magicLink("ada@example.com", bound(body)))), nil)
		}, false},
		"a second factor": {func(v *visitor, _ url.Values, body map[string]any) *answer {
			mfa := v.enrol(v.do("GET", "/magic-link/verify?token="+v.magicLink("ada@example.com", nil), nil).session().AccessToken)
			v.Clock.Advance(time.Minute)
			token := decodeAs[struct {
				MFAToken string `json:"mfa_token"`
			}](v.do("POST", "/magic-link/verify", map[string]any{"token": v.magicLink("ada@example.com", body)}, transport).want(403, auth.CodeMFARequired)).MFAToken
			return v.do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": v.code(mfa.secret, 0)}, transport)
		}, false},
	}
	for name, end := range ends {
		for word, c := range said {
			t.Run(name+", "+word, func(t *testing.T) {
				w, idp := providerWorld(t, auth.WithCookies(auth.CookieOptions{}))
				body := map[string]any{}
				for name, value := range c.body {
					body[name] = value
				}
				if got := lasts(end.sign(w.visitor(idp), c.query, body)); got != (c.want != end.otherwise) {
					t.Errorf("the cookies last %v", got)
				}
			})
		}
	}
}

// A sign-in that leads to setting a second factor up keeps its word, too; a form that
// sends a link has a box, as others have; and what is neither is refused.
func TestRememberIsReadAtTheBeginning(t *testing.T) {
	w, idp := providerWorld(t, auth.WithCookies(auth.CookieOptions{}), auth.WithSettings(auth.Settings{MFARequired: auth.On}))
	v := w.visitor(idp)
	token := decodeAs[struct {
		MFAToken string `json:"mfa_token"`
	}](v.signIn("google", ada, "remember=off").want(403, auth.CodeMFAEnrollmentRequired)).MFAToken
	setup := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, bearer(token)).want(200))
	if lasts(w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.code(setup.Secret, 0)}, bearer(token), transport).want(200)) {
		t.Error("the cookies of an enrolment last")
	}

	w, idp = providerWorld(t, auth.WithCookies(auth.CookieOptions{}))
	for fields, want := range map[string]bool{"": false, "&remember=on": true, "&remember=false": false} {
		email := "box" + strings.Trim(fields, "&=") + "@example.com"
		email = strings.ReplaceAll(email, "=", "-")
		w.do("POST", "/magic-link/send", "email="+email+fields, form, sameSite).want(200)
		a := w.do("POST", "/magic-link/verify", "token="+w.linkToken(email, auth.KindMagicLink), form, sameSite).want(200)
		if lasts(a) != want {
			t.Errorf("form %q: cookies %v", fields, a.set())
		}
	}
	w.do("GET", "/oauth/google?remember=maybe", nil).want(422, auth.CodeValidationFailed)
	w.do("POST", "/magic-link/send", map[string]any{"email": adaMail, "remember": "maybe"}).want(400, auth.CodeBadJSON)
	token = w.magicLink(adaMail, nil)
	w.do("POST", "/magic-link/verify", "token="+token+"&remember=maybe", form, sameSite).want(400)
	w.do("POST", "/magic-link/verify", "token="+token, form, sameSite).want(200) // it was not spent

	// Code of the application that sets the cookies itself need not say it again.
	to, err := w.StartOAuth(t.Context(), auth.StartOAuthParams{Provider: "google", Browser: "hers", Remember: new(bool)})
	if err != nil {
		t.Fatal(err)
	}
	idp.SignsIn(ada)
	q := idp.Authorize(t, to)
	res, err := w.FinishOAuth(t.Context(), auth.OAuthCallback{Provider: "google", State: q.Get("state"), Code: q.Get("code"), Issuer: q.Get("iss"), Browser: "hers"})
	if err != nil {
		t.Fatal(err)
	}
	if a := w.page(setsCookies(w, res.Tokens), "POST", "/", sameSite).want(200); lasts(a) {
		t.Errorf("cookies %v", a.set())
	}
	if a := w.page(setsCookies(w, res.Tokens, auth.Remember(true)), "POST", "/", sameSite).want(200); !lasts(a) {
		t.Errorf("cookies %v", a.set())
	}
}

// setsCookies is a page that signs a browser in.
func setsCookies(w *world, tokens *auth.Tokens, settings ...auth.CookieSetting) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if err := w.SetCookies(rw, r, tokens, settings...); err != nil {
			w.WriteError(rw, r, err)
		}
	})
}
