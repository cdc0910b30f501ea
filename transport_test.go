package auth_test

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
)

// sameSite is what a browser says of a page's own request.
var sameSite = header{"Sec-Fetch-Site", "same-origin"}

// inBody tells whether an answer's body carries tokens.
func (a *answer) inBody() bool {
	var s struct {
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
	}
	_ = json.Unmarshal(a.body, &s) // a page has none
	return s.AccessToken != "" || s.RefreshToken != ""
}

// Every route of the table, and every one that will be there, keeps to the rules of
// cookies and bearer tokens side by side.
func TestTransportOfEveryRoute(t *testing.T) {
	w := newWorld(t, auth.WithCookies(auth.CookieOptions{}), auth.WithRateLimits(auth.RateLimits{Off: true}))
	if err := auth.CheapPasswords(w.Auth); err != nil {
		t.Fatal(err)
	}
	sessions := append(auth.SessionRoutes(w.Auth), "POST /logout", "POST /refresh")
	n := 0
	fresh := func() jar {
		n++
		return jarOf(w.do("POST", "/signup", credentials(fmt.Sprintf("ada%d@example.com", n), goodPassword), transport).want(200))
	}
	for _, pattern := range auth.Routes(w.Auth) {
		r := request(pattern, "")
		send := func(body any, headers ...header) *answer { return w.do(r.Method, r.Path, body, headers...) }
		none := func(a *answer, what string) {
			t.Helper()
			if len(a.set()) > 0 {
				t.Errorf("%s, %s: cookies %v", pattern, what, a.set())
			}
		}
		needsOne := slices.Contains(sessions, pattern)
		safe := r.Method == "GET"

		// By cookie: in, and out again in cookies.
		j := fresh()
		a := send(r.Body, j.sent(), sameSite)
		if a.inBody() {
			t.Errorf("%s by cookie: tokens in the body: %s", pattern, a.body)
		}
		if needsOne && a.status == 401 {
			t.Errorf("%s by cookie: %d %s", pattern, a.status, a.body)
		}
		if safe {
			none(a, "a GET by cookie")
		}

		// By bearer token: the cookies are not touched.
		for what, more := range map[string][]header{"bearer": nil, "both": {fresh().sent(), sameSite}} {
			a = send(r.Body, append(more, bearer(fresh().access.Value))...)
			none(a, what)
			if needsOne && a.status == 401 {
				t.Errorf("%s, %s: %d %s", pattern, what, a.status, a.body)
			}
		}

		// A bearer token that is refused does not fall back to cookies.
		j = fresh()
		a = send(r.Body, bearer("x.y.z"), j.sent(), sameSite)
		none(a, "a bad bearer token and good cookies")
		if needsOne && a.status != 401 && (pattern != "POST /refresh" || a.status != 422) {
			t.Errorf("%s with a bad bearer token and good cookies: %d %s", pattern, a.status, a.body)
		}

		// Two cookies of one name are none.
		two := header{"Cookie", j.access.Name + "=" + j.access.Value + "; " + j.access.Name + "=x; " + j.refresh.Name + "=" + j.refresh.Value + "; " + j.refresh.Name + "=x"}
		a = send(r.Body, two, sameSite)
		none(a, "two cookies of one name")
		if needsOne && a.status != 401 && (pattern != "POST /refresh" || a.status != 422) {
			t.Errorf("%s with two cookies of one name: %d %s", pattern, a.status, a.body)
		}

		// Another site reads nothing that changes something, and gets no cookies set.
		for what, more := range map[string][]header{"a foreign page": {j.sent()}, "a foreign page that asks for cookies": {transport}} {
			a = send(r.Body, append(more, header{"Sec-Fetch-Site", "cross-site"})...)
			none(a, what)
			must := needsOne || what != "a foreign page"
			if must && !safe && a.status != 403 && !auth.Open(w.Auth, pattern) {
				t.Errorf("%s of %s: %d %s", pattern, what, a.status, a.body)
			}
		}
		if !w.alive(j.access.Value) {
			t.Errorf("%s: the session has ended", pattern)
		}

		// A form is taken where the table says so, and from this origin only.
		a = send("nobody=knows", form, browser, header{"Sec-Fetch-Site", "same-site"})
		none(a, "a foreign form")
		if !safe && slices.Contains(auth.FormRoutes(w.Auth), pattern) != (a.status == 403) && !auth.Open(w.Auth, pattern) {
			t.Errorf("%s as a foreign form: %d %s", pattern, a.status, a.body)
		}
	}
}

// A sign-in gets its session where it asked for it, and only there.
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
		headers []header
		cookies bool
	}{
		"JSON":                    {credentials("ada@example.com", goodPassword), nil, false},
		"JSON of a browser":       {credentials("ada@example.com", goodPassword), []header{browser, sameSite}, false},
		"JSON, header":            {credentials("ada@example.com", goodPassword), []header{transport}, true},
		"JSON, another transport": {credentials("ada@example.com", goodPassword), []header{{"X-Session-Transport", "Cookie"}}, false},
		"form":                    {posted("email", "ada@example.com", "password", goodPassword), []header{form}, true},
		"form of a browser":       {posted("email", "ada@example.com", "password", goodPassword), []header{form, sameSite}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, auth.WithCookies(auth.CookieOptions{}))
			for _, path := range []string{"/signup", "/login"} {
				a := w.do("POST", path, c.body, append([]header{{"Content-Type", "application/json"}}, c.headers...)...).want(200)
				if set := a.set(); (len(set) == 2) != c.cookies || (len(set) == 0) == c.cookies || a.inBody() == c.cookies {
					t.Errorf("%s: cookies %v, body %s", path, set, a.body)
				}
				if device := strings.Contains(strings.Join(a.header.Values("Set-Cookie"), ";"), "-device="); device != c.cookies {
					t.Errorf("%s: a cookie for the device %v", path, device)
				}
			}
		})
	}
	// Without cookies there are none, whatever asks for them.
	w := newWorld(t)
	w.do("POST", "/signup", posted("email", "ada@example.com", "password", goodPassword), form).want(415, auth.CodeUnsupportedMediaType)
	if a := w.do("POST", "/signup", credentials("ada@example.com", goodPassword), transport); len(a.set()) > 0 || !a.inBody() {
		t.Errorf("cookies %v, body %s", a.set(), a.body)
	}
}

// "Remember me" is what the form or body says, and holds for every refresh.
func TestRemember(t *testing.T) {
	kept := func(a *answer) bool {
		t.Helper()
		j := jarOf(a)
		if j.access == nil || j.refresh == nil || (j.access.MaxAge > 0) != (j.refresh.MaxAge > 0) {
			t.Fatalf("cookies %v", a.set())
		}
		return j.refresh.MaxAge > 0
	}
	with := func(remember any) map[string]any {
		m := credentials("ada@example.com", goodPassword)
		m["remember"] = remember
		return m
	}
	const fields = "email=ada@example.com&password=correct+horse+battery"
	for name, c := range map[string]struct {
		body    any
		headers []header
		want    bool
	}{
		"JSON says nothing": {credentials("ada@example.com", goodPassword), nil, true},
		"JSON says yes":     {with(true), nil, true},
		"JSON says no":      {with(false), nil, false},
		"the box is ticked": {fields + "&remember=on", []header{form}, true},
		"it has a value":    {fields + "&remember=true", []header{form}, true},
		"it is not ticked":  {fields, []header{form}, false},
		"the form says no":  {fields + "&remember=false", []header{form}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, auth.WithCookies(auth.CookieOptions{}))
			w.signUp("ada@example.com")
			a := w.do("POST", "/login", c.body, append([]header{transport}, c.headers...)...).want(200)
			if kept(a) != c.want {
				t.Errorf("cookies %v", a.set())
			}
			for range 2 { // in place and by the endpoint
				j := jarOf(a)
				if a = w.do("POST", "/refresh", nil, j.sent(), sameSite).want(200); kept(a) != c.want {
					t.Errorf("refreshed: %v", a.set())
				}
				j.access.Value = "x" //nolint:gosec // as a browser sends it
				if a = w.page(w.RequirePage(w.Optional(w.RequirePage(greets))), "GET", "/", j.sent()).want(200); kept(a) != c.want {
					t.Errorf("refreshed in place: %v", a.set())
				}
			}
			setup := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, jarOf(a).sent(), sameSite).want(200))
			if a = w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.code(setup.Secret, 0)}, jarOf(a).sent(), sameSite).want(200); kept(a) != c.want {
				t.Errorf("enrolled: %v", a.set())
			}
			w.Clock.Advance(90e9)
			if a = w.do("POST", "/2fa/verify", "totp_code="+w.code(setup.Secret, 0), form, jarOf(a).sent(), sameSite).want(200); kept(a) != c.want {
				t.Errorf("stepped up by a form: %v", a.set())
			}
			w.do("POST", "/logout", nil, jarOf(a).sent(), sameSite).want(204).cleared()
		})
	}
	w := newWorld(t, auth.WithCookies(auth.CookieOptions{}))
	w.do("POST", "/signup", with("yes"), transport).want(400, auth.CodeBadJSON)
	w.do("POST", "/signup", fields+"&remember=maybe", form).want(400, auth.CodeBadJSON)
}

// A form is read as strictly as JSON, and leads where it says it does, if that is
// here or on the list: judged before anything happens.
func TestForms(t *testing.T) {
	const fields = "email=ada@example.com&password=correct+horse+battery"
	w := newWorld(t, auth.WithCookies(auth.CookieOptions{}))
	w.signUp("ada@example.com")
	for name, c := range map[string]struct {
		path, body string
		accept     header
		status     int
		says       string // in the body, or where it leads
	}{
		"JSON":                    {"/login", fields, header{}, 200, `"access_token":null`},
		"a page":                  {"/login", fields, browser, 200, "You are signed in"},
		"a path":                  {"/login", fields + "&return_to=/notes?page=2", browser, 303, "/notes?page=2"},
		"a listed address":        {"/login", fields + "&return_to=https://app.test/notes", header{}, 303, "https://app.test/notes"},
		"by the other name":       {"/login", fields + "&redirect_to=/notes", browser, 303, "/notes"},
		"both":                    {"/login", fields + "&redirect_to=/other&return_to=/notes", browser, 303, "/notes"},
		"elsewhere":               {"/login", fields + "&return_to=https://evil.test/", header{}, 400, "redirect_not_allowed"},
		"elsewhere, other name":   {"/login", fields + "&redirect_to=https://evil.test/", header{}, 400, "redirect_not_allowed"},
		"a host as a path":        {"/login", fields + "&return_to=//evil.test/", header{}, 400, "redirect_not_allowed"},
		"a backslash":             {"/login", fields + `&return_to=/\evil.test/`, header{}, 400, "redirect_not_allowed"},
		"a script":                {"/login", fields + "&return_to=javascript:alert(1)", header{}, 400, "redirect_not_allowed"},
		"unknown field":           {"/login", fields + "&role=admin", header{}, 400, `unknown field \"role\"`},
		"double field":            {"/login", fields + "&email=eve@example.com", header{}, 400, "duplicate name"},
		"malformed":               {"/login", fields + "&x=%zz", header{}, 400, "malformed form"},
		"not UTF-8":               {"/login", fields + "&totp_code=%ff", header{}, 400, "not UTF-8"},
		"what no form can say":    {"/signup", "email=bob@example.com&password=correct+horse+battery&user_metadata=x", header{}, 400, "user_metadata"},
		"wrong password":          {"/login", "email=ada@example.com&password=wrong", header{}, 401, "invalid_credentials"},
		"wrong, a page":           {"/login", "email=ada@example.com&password=wrong&return_to=/notes", browser, 401, "Go back to auth.test to try again"},
		"a link":                  {"/magic-link/send", "email=cy@example.com&redirect_to=https://app.test/", browser, 200, "Look at your messages"},
		"a link, then a page":     {"/forgot-password", "email=ada@example.com&return_to=/sent", browser, 303, "/sent"},
		"a link to elsewhere":     {"/magic-link/send", "email=di@example.com&redirect_to=https://evil.test/", header{}, 400, "redirect_not_allowed"},
		"a link to no account":    {"/magic-link/send", "email=ed@example.com&create_user=false", header{}, 200, "{"},
		"sign-up":                 {"/signup", "email=fay@example.com&password=correct+horse+battery&redirect_to=https://app.test/welcome", browser, 303, "https://app.test/welcome"},
		"sign-up, a page":         {"/signup", "email=gil@example.com&password=correct+horse+battery", browser, 200, "You are signed in"},
		"a code that is wrong":    {"/otp/verify", "phone=%2B4930123456&otp=123456", header{}, 400, "invalid_code"},
		"a second factor's token": {"/2fa/verify", "mfa_token=x&totp_code=123456", header{}, 400, "invalid_token"},
	} {
		t.Run(name, func(t *testing.T) {
			a := w.do("POST", c.path, c.body, form, c.accept, sameSite).want(c.status)
			got := string(a.body)
			if c.status == 303 {
				got = a.header.Get("Location")
			}
			if !strings.Contains(got, c.says) || (c.status == 303 && got != c.says) {
				t.Errorf("%s, want %q", got, c.says)
			}
			if signedIn := len(a.set()) == 2; signedIn != (c.status < 400 && (c.path == "/login" || c.path == "/signup")) {
				t.Errorf("cookies %v", a.set())
			}
		})
	}
	// Out again, by a button.
	a := w.do("POST", "/login", fields, form, sameSite).want(200)
	out := w.do("POST", "/logout", "return_to=/bye", form, jarOf(a).sent(), sameSite).want(303).cleared()
	if out.header.Get("Location") != "/bye" {
		t.Errorf("header %v", out.header)
	}
	w.do("POST", "/logout", "", form, browser, jarOf(a).sent(), sameSite).want(200).says("You are signed out")
	// A form says the API key in a field.
	keyed := newWorld(t, auth.WithCookies(auth.CookieOptions{}), auth.WithAPIKeys("pk_test_12345678"))
	keyed.do("POST", "/signup", fields, form).want(401, auth.CodeInvalidAPIKey)
	keyed.do("POST", "/signup", fields+"&apikey=pk_test_12345678", form).want(200)
}

// A page of the application's own signs in and out; another site's post does not,
// even if its handler forgets to ask.
func TestSetCookies(t *testing.T) {
	w := newWorld(t, auth.WithCookies(auth.CookieOptions{}))
	w.signUp("ada@example.com")
	h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		tokens, err := w.Login(r.Context(), auth.LoginParams{Email: "ada@example.com", Password: goodPassword})
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
		a := w.page(h, "POST", target, sameSite).want(200)
		if j := jarOf(a); j.access == nil || j.refresh == nil || (j.refresh.MaxAge > 0) != want || len(a.header.Values("Set-Cookie")) != 2 {
			t.Errorf("%s: cookies %q", target, a.header.Values("Set-Cookie"))
		}
		w.page(w.RequirePage(greets), "GET", "/", jarOf(a).sent()).want(200).says("hello ada@example.com")
	}
	if a := w.page(h, "POST", "/signin", header{"Sec-Fetch-Site", "cross-site"}).want(403, auth.CodeCrossSiteRequest); len(a.set()) > 0 {
		t.Errorf("cookies %v", a.set())
	}
	out := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { w.ClearCookies(rw) })
	w.page(out, "POST", "/signout", sameSite).want(200).cleared()

	without := newWorld(t)
	ada := without.LoginAs(t, "ada@example.com")
	rec := httptest.NewRecorder()
	if err := without.SetCookies(rec, httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), &ada.Tokens); err == nil || len(rec.Header()) > 0 {
		t.Errorf("%v, header %v", err, rec.Header())
	}
}

// A link that a program opens beside cookies hands its tokens to the program: an
// image or a frame of another site could open one, too, and would sign the browser
// in to an account of its own.
func TestLinkBesideCookiesSetsNone(t *testing.T) {
	w, j := cookieWorld(t)
	for i, accept := range []string{"application/json", "*/*"} {
		a := w.do("GET", "/magic-link/verify?token="+w.magicLink(fmt.Sprintf("bob%d@example.com", i), nil), nil, j.sent(), header{"Accept", accept}).want(200)
		if len(a.set()) > 0 || !a.inBody() {
			t.Errorf("%s: cookies %v, body %s", accept, a.set(), a.body)
		}
	}
}

// A link that was asked for with a challenge signs nobody in where it is opened, also
// where there are cookies: the holder of the verifier gets the session.
func TestBoundLinkSetsNoCookies(t *testing.T) {
	w := newWorld(t, auth.WithCookies(auth.CookieOptions{}))
	token := w.magicLink("bob@example.com", map[string]any{"redirect_to": "https://app.test/in", "code_challenge": challengeOf(verifier)})
	a := w.do("POST", "/magic-link/verify", "token="+token, form, browser, sameSite).want(303)
	code := a.location().Query().Get("code")
	if len(a.set()) > 0 || code == "" {
		t.Fatalf("cookies %v, to %s", a.set(), a.location())
	}
	w.do("POST", "/exchange", map[string]any{"code": code, "code_verifier": verifier}).want(200)
}
