package signin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
)

// inBody reports whether an answer's body carries tokens.
func inBody(a *harness.Answer) bool {
	var s struct {
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
	}
	_ = json.Unmarshal(a.Body, &s) // a page has none
	return s.AccessToken != "" || s.RefreshToken != ""
}

// Every present and future route of the table follows the rules of cookies and bearer tokens
// in one request.
func TestTransportOfEveryRoute(t *testing.T) {
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}), auth.WithRateLimits(auth.RateLimits{Off: true}))
	if err := harness.CheapPasswords(w.Auth); err != nil {
		t.Fatal(err)
	}
	sessions := append(harness.SessionRoutes(w.Auth), "POST /logout", "POST /refresh")
	n := 0
	fresh := func() jar {
		n++
		return jarOf(w.Do("POST", "/signup", harness.Credentials(fmt.Sprintf("ada%d@example.com", n), harness.GoodPassword), harness.Transport).Want(200))
	}
	for _, pattern := range harness.Routes(w.Auth) {
		r := harness.Request(pattern, "")
		send := func(body any, headers ...harness.Header) *harness.Answer {
			return w.Do(r.Method, r.Path, body, headers...)
		}
		none := func(a *harness.Answer, what string) {
			t.Helper()
			if len(a.SetCookies()) > 0 {
				t.Errorf("%s, %s: cookies %v", pattern, what, a.SetCookies())
			}
		}
		needsOne := slices.Contains(sessions, pattern)
		safe := r.Method == "GET"

		// By cookie: in, and out again in cookies.
		j := fresh()
		a := send(r.Body, j.sent(), harness.SameOrigin)
		if inBody(a) {
			t.Errorf("%s by cookie: tokens in the body: %s", pattern, a.Body)
		}
		if needsOne && a.Status == 401 {
			t.Errorf("%s by cookie: %d %s", pattern, a.Status, a.Body)
		}
		if safe {
			none(a, "a GET by cookie")
		}

		// By bearer token: the cookies are not touched.
		for what, more := range map[string][]harness.Header{"bearer": nil, "both": {fresh().sent(), harness.SameOrigin}} {
			a = send(r.Body, append(more, harness.Bearer(fresh().access.Value))...)
			none(a, what)
			if needsOne && a.Status == 401 {
				t.Errorf("%s, %s: %d %s", pattern, what, a.Status, a.Body)
			}
		}

		// A bearer token that is refused does not fall back to cookies.
		j = fresh()
		a = send(r.Body, harness.Bearer("x.y.z"), j.sent(), harness.SameOrigin)
		none(a, "a bad bearer token and good cookies")
		if needsOne && a.Status != 401 && (pattern != "POST /refresh" || a.Status != 422) {
			t.Errorf("%s with a bad bearer token and good cookies: %d %s", pattern, a.Status, a.Body)
		}

		// Two cookies of one name are none.
		two := harness.Header{Name: "Cookie", Value: j.access.Name + "=" + j.access.Value + "; " + j.access.Name + "=x; " + j.refresh.Name + "=" + j.refresh.Value + "; " + j.refresh.Name + "=x"}
		a = send(r.Body, two, harness.SameOrigin)
		none(a, "two cookies of one name")
		if needsOne && a.Status != 401 && (pattern != "POST /refresh" || a.Status != 422) {
			t.Errorf("%s with two cookies of one name: %d %s", pattern, a.Status, a.Body)
		}

		// Another site reads nothing that changes something, and gets no cookies set.
		for what, more := range map[string][]harness.Header{"a foreign page": {j.sent()}, "a foreign page that asks for cookies": {harness.Transport}} {
			a = send(r.Body, append(more, harness.Header{Name: "Sec-Fetch-Site", Value: "cross-site"})...)
			none(a, what)
			must := needsOne || what != "a foreign page"
			if must && !safe && a.Status != 403 && !harness.IsOpen(w.Auth, pattern) {
				t.Errorf("%s of %s: %d %s", pattern, what, a.Status, a.Body)
			}
		}
		if !w.Alive(j.access.Value) {
			t.Errorf("%s: the session has ended", pattern)
		}

		// A form is accepted where the table says so, and from this origin only.
		a = send("nobody=knows", harness.Form, harness.Browser, harness.Header{Name: "Sec-Fetch-Site", Value: "same-site"})
		none(a, "a foreign form")
		if !safe && slices.Contains(harness.FormRoutes(w.Auth), pattern) != (a.Status == 403) && !harness.IsOpen(w.Auth, pattern) {
			t.Errorf("%s as a foreign form: %d %s", pattern, a.Status, a.Body)
		}
	}
}

// A sign-in gets its session by the requested transport, and only there.
func TestSignInsChooseTheirTransport(t *testing.T) {
	posted := func(values ...string) string {
		v := url.Values{}
		for pair := range slices.Chunk(values, 2) {
			v.Set(pair[0], pair[1])
		}
		return v.Encode()
	}
	for name, c := range map[string]struct {
		body    any
		headers []harness.Header
		cookies bool
	}{
		"JSON":                    {harness.Credentials("ada@example.com", harness.GoodPassword), nil, false},
		"JSON of a browser":       {harness.Credentials("ada@example.com", harness.GoodPassword), []harness.Header{harness.Browser, harness.SameOrigin}, false},
		"JSON, header":            {harness.Credentials("ada@example.com", harness.GoodPassword), []harness.Header{harness.Transport}, true},
		"JSON, another transport": {harness.Credentials("ada@example.com", harness.GoodPassword), []harness.Header{{Name: "X-Session-Transport", Value: "Cookie"}}, false},
		"form":                    {posted("email", "ada@example.com", "password", harness.GoodPassword), []harness.Header{harness.Form}, true},
		"form of a browser":       {posted("email", "ada@example.com", "password", harness.GoodPassword), []harness.Header{harness.Form, harness.SameOrigin}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
			for _, path := range []string{"/signup", "/login"} {
				a := w.Do("POST", path, c.body, append([]harness.Header{{Name: "Content-Type", Value: "application/json"}}, c.headers...)...).Want(200)
				if set := a.SetCookies(); (len(set) == 2) != c.cookies || (len(set) == 0) == c.cookies || inBody(a) == c.cookies {
					t.Errorf("%s: cookies %v, body %s", path, set, a.Body)
				}
				if device := strings.Contains(strings.Join(a.Header.Values("Set-Cookie"), ";"), "-device="); device != c.cookies {
					t.Errorf("%s: a cookie for the device %v", path, device)
				}
			}
		})
	}
	// Without the option for cookies there are none, even on request.
	w := harness.NewWorld(t)
	w.Do("POST", "/signup", posted("email", "ada@example.com", "password", harness.GoodPassword), harness.Form).Want(415, auth.CodeUnsupportedMediaType)
	if a := w.Do("POST", "/signup", harness.Credentials("ada@example.com", harness.GoodPassword), harness.Transport); len(a.SetCookies()) > 0 || !inBody(a) {
		t.Errorf("cookies %v, body %s", a.SetCookies(), a.Body)
	}
}

// "Remember me" comes from the form or body and holds for every refresh.
func TestRemember(t *testing.T) {
	kept := func(a *harness.Answer) bool {
		t.Helper()
		j := jarOf(a)
		if j.access == nil || j.refresh == nil || (j.access.MaxAge > 0) != (j.refresh.MaxAge > 0) {
			t.Fatalf("cookies %v", a.SetCookies())
		}
		return j.refresh.MaxAge > 0
	}
	with := func(remember any) map[string]any {
		m := harness.Credentials("ada@example.com", harness.GoodPassword)
		m["remember"] = remember
		return m
	}
	const fields = "email=ada@example.com&password=correct+horse+battery"
	for name, c := range map[string]struct {
		body    any
		headers []harness.Header
		want    bool
	}{
		"JSON says nothing": {harness.Credentials("ada@example.com", harness.GoodPassword), nil, true},
		"JSON says yes":     {with(true), nil, true},
		"JSON says no":      {with(false), nil, false},
		"the box is ticked": {fields + "&remember=on", []harness.Header{harness.Form}, true},
		"it has a value":    {fields + "&remember=true", []harness.Header{harness.Form}, true},
		"it is not ticked":  {fields, []harness.Header{harness.Form}, false},
		"the form says no":  {fields + "&remember=false", []harness.Header{harness.Form}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
			w.PostSignUp("ada@example.com")
			a := w.Do("POST", "/login", c.body, append([]harness.Header{harness.Transport}, c.headers...)...).Want(200)
			if kept(a) != c.want {
				t.Errorf("cookies %v", a.SetCookies())
			}
			for range 2 { // in place and by the endpoint
				j := jarOf(a)
				if a = w.Do("POST", "/refresh", nil, j.sent(), harness.SameOrigin).Want(200); kept(a) != c.want {
					t.Errorf("refreshed: %v", a.SetCookies())
				}
				j.access.Value = "x" //nolint:gosec // as a browser sends it
				if a = w.Page(w.RequirePage(w.Optional(w.RequirePage(harness.Greeter))), "GET", "/", j.sent()).Want(200); kept(a) != c.want {
					t.Errorf("refreshed in place: %v", a.SetCookies())
				}
			}
			setup := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, jarOf(a).sent(), harness.SameOrigin).Want(200))
			if a = w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(setup.Secret, 0)}, jarOf(a).sent(), harness.SameOrigin).Want(200); kept(a) != c.want {
				t.Errorf("enrolled: %v", a.SetCookies())
			}
			w.Clock.Advance(90e9)
			if a = w.Do("POST", "/2fa/verify", "totp_code="+w.Code(setup.Secret, 0), harness.Form, jarOf(a).sent(), harness.SameOrigin).Want(200); kept(a) != c.want {
				t.Errorf("stepped up by a form: %v", a.SetCookies())
			}
			cleared(w.Do("POST", "/logout", nil, jarOf(a).sent(), harness.SameOrigin).Want(204))
		})
	}
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
	w.Do("POST", "/signup", with("yes"), harness.Transport).Want(400, auth.CodeBadJSON)
	w.Do("POST", "/signup", fields+"&remember=maybe", harness.Form).Want(400, auth.CodeBadJSON)
}

// A form is read as strictly as JSON. It leads to its redirect URL if that is local or on
// the list, which is checked before anything changes.
func TestForms(t *testing.T) {
	const fields = "email=ada@example.com&password=correct+horse+battery"
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
	w.PostSignUp("ada@example.com")
	for name, c := range map[string]struct {
		path, body string
		accept     harness.Header
		status     int
		says       string // in the body, or where it leads
	}{
		"JSON":                    {"/login", fields, harness.Header{}, 200, `"access_token":null`},
		"a page":                  {"/login", fields, harness.Browser, 200, "You are signed in"},
		"a path":                  {"/login", fields + "&return_to=/notes?page=2", harness.Browser, 303, "/notes?page=2"},
		"a listed address":        {"/login", fields + "&return_to=https://app.test/notes", harness.Header{}, 303, "https://app.test/notes"},
		"by the other name":       {"/login", fields + "&redirect_to=/notes", harness.Browser, 303, "/notes"},
		"both":                    {"/login", fields + "&redirect_to=/other&return_to=/notes", harness.Browser, 303, "/notes"},
		"elsewhere":               {"/login", fields + "&return_to=https://evil.test/", harness.Header{}, 400, "redirect_not_allowed"},
		"elsewhere, other name":   {"/login", fields + "&redirect_to=https://evil.test/", harness.Header{}, 400, "redirect_not_allowed"},
		"a host as a path":        {"/login", fields + "&return_to=//evil.test/", harness.Header{}, 400, "redirect_not_allowed"},
		"a backslash":             {"/login", fields + `&return_to=/\evil.test/`, harness.Header{}, 400, "redirect_not_allowed"},
		"a script":                {"/login", fields + "&return_to=javascript:alert(1)", harness.Header{}, 400, "redirect_not_allowed"},
		"unknown field":           {"/login", fields + "&role=admin", harness.Header{}, 400, `unknown field \"role\"`},
		"double field":            {"/login", fields + "&email=eve@example.com", harness.Header{}, 400, "duplicate name"},
		"malformed":               {"/login", fields + "&x=%zz", harness.Header{}, 400, "malformed form"},
		"not UTF-8":               {"/login", fields + "&totp_code=%ff", harness.Header{}, 400, "not UTF-8"},
		"what no form can say":    {"/signup", "email=bob@example.com&password=correct+horse+battery&user_metadata=x", harness.Header{}, 400, "user_metadata"},
		"wrong password":          {"/login", "email=ada@example.com&password=wrong", harness.Header{}, 401, "invalid_credentials"},
		"wrong, a page":           {"/login", "email=ada@example.com&password=wrong&return_to=/notes", harness.Browser, 401, "Go back to auth.test to try again"},
		"a link":                  {"/magic-link/send", "email=cy@example.com&redirect_to=https://app.test/", harness.Browser, 200, "Check your messages"},
		"a link, then a page":     {"/forgot-password", "email=ada@example.com&return_to=/sent", harness.Browser, 303, "/sent"},
		"a link to elsewhere":     {"/magic-link/send", "email=di@example.com&redirect_to=https://evil.test/", harness.Header{}, 400, "redirect_not_allowed"},
		"a link to no account":    {"/magic-link/send", "email=ed@example.com&create_user=false", harness.Header{}, 200, "{"},
		"sign-up":                 {"/signup", "email=fay@example.com&password=correct+horse+battery&redirect_to=https://app.test/welcome", harness.Browser, 303, "https://app.test/welcome"},
		"sign-up, a page":         {"/signup", "email=gil@example.com&password=correct+horse+battery", harness.Browser, 200, "You are signed in"},
		"a code that is wrong":    {"/otp/verify", "phone=%2B4930123456&otp=123456", harness.Header{}, 400, "invalid_code"},
		"a second factor's token": {"/2fa/verify", "mfa_token=x&totp_code=123456", harness.Header{}, 400, "invalid_token"},
	} {
		t.Run(name, func(t *testing.T) {
			a := w.Do("POST", c.path, c.body, harness.Form, c.accept, harness.SameOrigin).Want(c.status)
			got := string(a.Body)
			if c.status == 303 {
				got = a.Header.Get("Location")
			}
			if !strings.Contains(got, c.says) || (c.status == 303 && got != c.says) {
				t.Errorf("%s, want %q", got, c.says)
			}
			if signedIn := len(a.SetCookies()) == 2; signedIn != (c.status < 400 && (c.path == "/login" || c.path == "/signup")) {
				t.Errorf("cookies %v", a.SetCookies())
			}
		})
	}
	// Out again, by a button.
	a := w.Do("POST", "/login", fields, harness.Form, harness.SameOrigin).Want(200)
	out := cleared(w.Do("POST", "/logout", "return_to=/bye", harness.Form, jarOf(a).sent(), harness.SameOrigin).Want(303))
	if out.Header.Get("Location") != "/bye" {
		t.Errorf("header %v", out.Header)
	}
	says(w.Do("POST", "/logout", "", harness.Form, harness.Browser, jarOf(a).sent(), harness.SameOrigin).Want(200), "You are signed out")
	// A form sends the API key in a field.
	keyed := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}), auth.WithAPIKeys("pk_test_12345678"))
	keyed.Do("POST", "/signup", fields, harness.Form).Want(401, auth.CodeInvalidAPIKey)
	keyed.Do("POST", "/signup", fields+"&apikey=pk_test_12345678", harness.Form).Want(200)
}

// A page of the application's own signs in and out; another site's post does not,
// even if its handler forgets to ask.
func TestSetCookies(t *testing.T) {
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
	w.PostSignUp("ada@example.com")
	h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		tokens, err := w.Login(r.Context(), auth.LoginParams{Email: "ada@example.com", Password: harness.GoodPassword})
		if err == nil {
			err = w.SetCookies(rw, r, tokens, auth.Remember(false))
		}
		if err == nil {
			err = w.SetCookies(rw, r, tokens, auth.Remember(r.URL.Query().Has("remember")))
		}
		if err != nil {
			w.WriteError(rw, r, err)
		}
	})
	for target, want := range map[string]bool{"/signin": false, "/signin?remember": true} {
		a := w.Page(h, "POST", target, harness.SameOrigin).Want(200)
		if j := jarOf(a); j.access == nil || j.refresh == nil || (j.refresh.MaxAge > 0) != want || len(a.Header.Values("Set-Cookie")) != 2 {
			t.Errorf("%s: cookies %q", target, a.Header.Values("Set-Cookie"))
		}
		says(w.Page(w.RequirePage(harness.Greeter), "GET", "/", jarOf(a).sent()).Want(200), "hello ada@example.com")
	}
	if a := w.Page(h, "POST", "/signin", harness.Header{Name: "Sec-Fetch-Site", Value: "cross-site"}).Want(403, auth.CodeCrossSiteRequest); len(a.SetCookies()) > 0 {
		t.Errorf("cookies %v", a.SetCookies())
	}
	out := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { w.ClearCookies(rw) })
	cleared(w.Page(out, "POST", "/signout", harness.SameOrigin).Want(200))

	without := harness.NewWorld(t)
	ada := without.LoginAs(t, "ada@example.com")
	rec := httptest.NewRecorder()
	if err := without.SetCookies(rec, httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), &ada.Tokens); err == nil || len(rec.Header()) > 0 {
		t.Errorf("%v, header %v", err, rec.Header())
	}
}

// A link that a program opens beside cookies returns its tokens to the program. Cookies
// would let an image or a frame of another site sign the browser in to another account.
func TestLinkBesideCookiesSetsNone(t *testing.T) {
	w, j := cookieWorld(t, auth.WithLinks(auth.LinkOptions{SignInByGET: true}))
	for i, accept := range []string{"application/json", "*/*"} {
		a := w.Do("GET", "/magic-link/verify?token="+w.MagicLink(fmt.Sprintf("bob%d@example.com", i), nil), nil, j.sent(), harness.Header{Name: "Accept", Value: accept}).Want(200)
		if len(a.SetCookies()) > 0 || !inBody(a) {
			t.Errorf("%s: cookies %v, body %s", accept, a.SetCookies(), a.Body)
		}
	}
}

// A link that was requested with a challenge signs no one in where it is opened, even with
// cookies: the holder of the verifier gets the session.
func TestBoundLinkSetsNoCookies(t *testing.T) {
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
	token := w.MagicLink("bob@example.com", map[string]any{"redirect_to": "https://app.test/in", "code_challenge": harness.ChallengeOf(harness.Verifier)})
	a := w.Do("POST", "/magic-link/verify", "token="+token, harness.Form, harness.Browser, harness.SameOrigin).Want(303)
	code := a.Location().Query().Get("code")
	if len(a.SetCookies()) > 0 || code == "" {
		t.Fatalf("cookies %v, to %s", a.SetCookies(), a.Location())
	}
	w.Do("POST", "/exchange", map[string]any{"code": code, "code_verifier": harness.Verifier}).Want(200)
}
