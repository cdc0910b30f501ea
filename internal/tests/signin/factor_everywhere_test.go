package signin_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// adas is a service with an account that has every sign-in method, and a session of it. A
// second factor becomes required after that.
type adas struct {
	*harness.World
	idp     *authtest.Provider
	id      string
	secret  string // of the second factor; empty: none
	session harness.Session
	key     *authenticator.Authenticator
	cookies *harness.Visitor // of the browser that began at the provider
}

const auditor = "auditor"

// newAdas creates the account, and its session without a factor.
func newAdas(t *testing.T, enrolled bool, opts ...auth.Option) *adas {
	w, idp := harness.NewProviderWorld(t, append(opts, auth.WithRateLimits(auth.RateLimits{Off: true}))...)
	a := &adas{World: w, idp: idp}
	u := w.Imported(auth.ImportUserParams{
		Email: harness.Ada.Email, EmailVerified: true, Phone: harness.PhoneNumber, PhoneVerified: true, PasswordHash: harness.BcryptHash,
		Identities: []auth.Identity{{Provider: "oidc", Subject: harness.Ada.Subject}, {Provider: "google", Subject: harness.Ada.Subject}},
	})
	a.id = u.ID
	a.session = w.PostLogin(harness.Ada.Email, harness.GoodPassword).Want(200).Session()
	a.key = w.AddsPasskey(a.session.AccessToken, false)
	if enrolled {
		second := w.PostLogin(harness.Ada.Email, harness.GoodPassword).Want(200).Session()
		a.secret = w.Enrol(second.AccessToken).Secret
		if !w.Alive(a.session.AccessToken) { // the enrolment ended the other sessions
			a.session = harness.Session{}
		}
	}
	a.cookies = w.NewVisitor(idp)
	return a
}

// returns completes a sign-in at the provider.
func (a *adas) returns(query string) *harness.Answer {
	return a.cookies.SignIn("oidc", harness.Ada, query)
}

// code returns the code in the address of a redirect.
func (a *adas) exchanged(at *harness.Answer) *harness.Answer {
	return a.PostExchange(at.Location().Query().Get("code"), harness.Verifier)
}

func (a *adas) bearer() harness.Header { return harness.Bearer(a.session.AccessToken) }

// token returns the token of a sign-in that waits for the second factor. Only a mailed link
// leads to the enrolment of one, because the account has a passkey.
func (a *adas) token() string {
	if a.secret == "" {
		return harness.DecodeAs[waiting](a.Do("POST", "/magic-link/verify", map[string]any{"token": a.magic(nil)})).MFAToken
	}
	return a.tokenByPassword()
}

func (a *adas) tokenByPassword() string {
	return harness.DecodeAs[waiting](a.PostLogin(harness.Ada.Email, harness.GoodPassword)).MFAToken
}

func (a *adas) magic(more map[string]any) string { return a.MagicLink(harness.Ada.Email, more) }

// entryPoint answers with tokens of ada's account, if it does so without a second factor.
type entryPoint struct {
	name   string
	within bool // it continues a session
	raises bool // it completes a second factor
	pages  bool // it is a page's form, or leads a browser back; the session is in cookies
	call   func(a *adas) *harness.Answer
}

// posts sends the form of a link's page.
func (a *adas) posts(path string, form url.Values) *harness.Answer {
	return a.Do("POST", path, form.Encode(), harness.Form, harness.Browser, harness.Header{Name: "Sec-Fetch-Site", Value: "same-origin"})
}

// showsPasskey shows ada's passkey in her session, as an account that needs a second factor asks.
func (a *adas) showsPasskey() harness.Header {
	own := map[string]any{"passkey": harness.PasskeyFactor(a.T, a.Do, a.key, "", a.bearer())}
	return harness.Bearer(a.Do("POST", "/me/confirm", own, a.bearer()).Want(200).Session().AccessToken)
}

// entryPoints are the ways to tokens, by route.
func entryPoints() map[string][]entryPoint {
	newcomer := func(a *adas, more map[string]any) *harness.Answer {
		body := map[string]any{"email": "new@example.com", "password": harness.GoodPassword}
		maps.Copy(body, more)
		return a.Do("POST", "/signup", body)
	}
	callback := []entryPoint{
		{name: "signs in", call: func(a *adas) *harness.Answer { return a.returns("") }},
		{name: "signs a browser in", pages: true, call: func(a *adas) *harness.Answer {
			return a.returns("redirect_to=" + url.QueryEscape("https://auth.test/in"))
		}},
		{name: "links an identity", within: true, call: func(a *adas) *harness.Answer {
			to := a.cookies.Link("github", a.session, map[string]any{})
			a.idp.SignsIn(harness.Ada)
			return a.cookies.Back("github", a.idp.Authorize(a.T, to))
		}},
	}
	return map[string][]entryPoint{
		"POST /signup": {{name: "signs up", call: func(a *adas) *harness.Answer { return newcomer(a, nil) }}},
		"POST /login": {
			{name: "by address", call: func(a *adas) *harness.Answer { return a.PostLogin(harness.Ada.Email, harness.GoodPassword) }},
			{name: "by number", call: func(a *adas) *harness.Answer {
				return a.Do("POST", "/login", map[string]any{"phone": harness.PhoneNumber, "password": harness.GoodPassword})
			}},
		},
		"POST /refresh": {{name: "refreshes", within: true, call: func(a *adas) *harness.Answer { return a.PostRefresh(a.session.RefreshToken) }}},
		"POST /exchange": {
			{name: "of a provider", call: func(a *adas) *harness.Answer {
				return a.exchanged(a.returns("redirect_to=" + url.QueryEscape(harness.AppURL)))
			}},
			{name: "of a link", call: func(a *adas) *harness.Answer {
				token := a.magic(map[string]any{"redirect_to": harness.AppURL, "code_challenge": harness.ChallengeOf(harness.Verifier)})
				return a.exchanged(a.Do("POST", "/magic-link/verify", "token="+token, harness.Form, harness.Browser))
			}},
		},
		"GET /oauth/{provider}/callback": callback,
		"POST /oauth/{provider}/callback": {{name: "signs in", call: func(a *adas) *harness.Answer {
			person := harness.Ada
			person.Subject = "apple-1815"
			return a.cookies.SignIn("apple", person, "")
		}}},
		"POST /oauth/{provider}/id-token": {{name: "signs in", call: func(a *adas) *harness.Answer {
			return a.Do("POST", "/oauth/google/id-token", map[string]any{"id_token": a.idp.IDToken("google", harness.Ada, "n"), "nonce": "n"})
		}}},
		"GET /magic-link/verify": {{name: "answers whether the link is valid", call: func(a *adas) *harness.Answer {
			return a.Do("GET", "/magic-link/verify?token="+a.magic(nil), nil)
		}}},
		"POST /magic-link/verify": {
			{name: "by the link", call: func(a *adas) *harness.Answer {
				return a.Do("POST", "/magic-link/verify", map[string]any{"token": a.magic(nil)})
			}},
			{name: "by the code", call: func(a *adas) *harness.Answer {
				m := a.AskByMail(harness.Ada.Email, nil)
				return a.ByCode(harness.Ada.Email, m.Code, m.Request, nil)
			}},
			{name: "by the link's page", pages: true, call: func(a *adas) *harness.Answer {
				return a.posts("/magic-link/verify", url.Values{"token": {a.magic(nil)}})
			}},
			{name: "by the link of an operator", pages: true, call: func(a *adas) *harness.Answer {
				sent, err := a.SendMagicLink(a.T.Context(), auth.SendMagicLinkParams{Email: harness.Ada.Email})
				if err != nil {
					a.T.Fatal(err, sent)
				}
				return a.posts("/magic-link/verify", url.Values{"token": {a.LinkToken(harness.Ada.Email, auth.KindMagicLink)}})
			}},
			{name: "signs a newcomer up", pages: true, call: func(a *adas) *harness.Answer {
				return a.posts("/magic-link/verify", url.Values{"token": {a.MagicLink("new@example.com", nil)}})
			}},
			{name: "by the page of the factor", pages: true, raises: true, call: func(a *adas) *harness.Answer {
				first := a.posts("/magic-link/verify", url.Values{"token": {a.magic(nil)}})
				return a.factorPage(first)
			}},
		},
		"POST /otp/verify": {
			{name: "signs in", call: func(a *adas) *harness.Answer {
				return a.PostOTP(harness.PhoneNumber, a.PhoneCode(harness.PhoneNumber))
			}},
			{name: "verifies a number", within: true, call: func(a *adas) *harness.Answer {
				by := a.bearer()
				if a.secret == "" {
					by = a.showsPasskey()
				}
				a.Do("PATCH", "/me", map[string]any{"phone": "+4930999999"}, by).Want(200)
				return a.PostOTP("+4930999999", a.Mail(a.T, "+4930999999", auth.KindPhoneCode).Code, a.bearer())
			}},
		},
		"POST /invitations/accept": {
			{name: "of an account", within: true, call: func(a *adas) *harness.Answer {
				return a.Do("POST", "/invitations/accept", map[string]any{"token": a.Invited(harness.Ada.Email, auditor)}, a.bearer())
			}},
			{name: "of a newcomer", call: func(a *adas) *harness.Answer {
				token := a.Invited("new@example.com", auditor)
				return a.Do("POST", "/invitations/accept", map[string]any{"token": token, "password": "a new long password"})
			}},
			{name: "of a newcomer on its page", pages: true, call: func(a *adas) *harness.Answer {
				return a.posts("/invitations/accept", url.Values{"token": {a.Invited("new@example.com", auditor)}, "password": {"a new long password"}})
			}},
		},
		"POST /me/confirm": {
			{name: "by password", within: true, call: func(a *adas) *harness.Answer {
				return a.Do("POST", "/me/confirm", map[string]any{"password": harness.GoodPassword}, a.bearer())
			}},
		},
		"POST /passkeys/sign-in/finish": {{name: "by passkey", call: func(a *adas) *harness.Answer {
			return a.Do("POST", "/passkeys/sign-in/finish", harness.PasskeySignIn(a.T, a.Do, a.key))
		}}},
		"POST /me/passkeys": {
			{name: "adds one", within: true, call: func(a *adas) *harness.Answer {
				by := a.showsPasskey()
				return a.Do("POST", "/me/passkeys", harness.Registration(a.T, a.Do, harness.NewKey(), false, by), by)
			}},
			{name: "enrols", raises: true, call: func(a *adas) *harness.Answer {
				token := harness.Bearer(a.token())
				return a.Do("POST", "/me/passkeys", harness.Registration(a.T, a.Do, harness.NewKey(), false, token), token)
			}},
		},
		"POST /2fa/verify": {
			{name: "signs in", raises: true, call: func(a *adas) *harness.Answer { return a.PostVerifyMFA(a.token(), a.Later(a.secret)) }},
			{name: "makes a passkey the factor", raises: true, call: func(a *adas) *harness.Answer {
				token := a.tokenByPassword()
				return a.Do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "passkey": harness.PasskeyFactor(a.T, a.Do, a.key, token)})
			}},
		},
		"POST /2fa/verify-and-enable": {{name: "enrols", raises: true, call: func(a *adas) *harness.Answer {
			token := a.token()
			setup := harness.DecodeAs[struct{ Secret string }](a.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(token)).Want(200))
			return a.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": a.Code(setup.Secret, 0)}, harness.Bearer(token))
		}}},
	}
}

// factorPage sends the form of the page on which a sign-in by link waits for its factor, and
// sets the factor up first if it has to.
func (a *adas) factorPage(waiting *harness.Answer) *harness.Answer {
	var sent []string
	for _, c := range (&http.Response{Header: waiting.Header}).Cookies() {
		if strings.HasSuffix(c.Name, "factor") && c.Value != "" {
			sent = append(sent, c.Name+"="+c.Value)
		}
	}
	if len(sent) != 1 || waiting.Location().Path != "/auth/v1/magic-link/verify" {
		a.T.Fatalf("no sign-in waits: %d %v", waiting.Status, waiting.Header)
	}
	post := func(form string) *harness.Answer {
		return a.Do("POST", "/magic-link/verify", form, harness.Form, harness.Browser, harness.Header{Name: "Sec-Fetch-Site", Value: "same-origin"}, harness.Cookies(sent...))
	}
	if a.secret != "" {
		return post("code=" + a.Later(a.secret))
	}
	page := string(post("do=begin").Want(200).Body)
	_, after, _ := strings.Cut(page, `name="secret" value="`)
	secret, _, _ := strings.Cut(after, `"`)
	return post("do=enable&secret=" + secret + "&code=" + a.Code(secret, 0))
}

// routesWithTokens returns the routes of the document that answer with an access token.
func routesWithTokens(t *testing.T) (list []string) {
	var doc map[string]any
	if err := json.Unmarshal(harness.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	var has func(v any, depth int) bool
	has = func(v any, depth int) bool {
		switch v := v.(type) {
		case []any:
			return slices.ContainsFunc(v, func(e any) bool { return has(e, depth) })
		case map[string]any:
			if v["access_token"] != nil {
				return true
			}
			if ref, ok := v["$ref"].(string); ok && depth < 10 {
				at := any(doc)
				for _, name := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
					at = at.(map[string]any)[name]
				}
				return has(at, depth+1)
			}
			for _, e := range v {
				if has(e, depth) {
					return true
				}
			}
		}
		return false
	}
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			o, _ := op.(map[string]any)
			answers, _ := o["responses"].(map[string]any)
			for status, response := range answers {
				if status < "400" && has(response, 0) {
					list = append(list, strings.ToUpper(method)+" "+path)
				}
			}
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// Every endpoint that answers with tokens respects a second factor that became required of
// everybody, of the account or of a role: no token at aal1 carries what is required.
func TestNoEndpointOmitsARequiredFactor(t *testing.T) {
	t.Parallel()
	table := entryPoints()
	if routes := routesWithTokens(t); !slices.Equal(routes, slices.Sorted(maps.Keys(table))) {
		t.Fatalf("the routes with tokens are %v, and the test has %v", routes, slices.Sorted(maps.Keys(table)))
	}
	for pattern, list := range table {
		for _, e := range list {
			for _, required := range []string{"of nobody", "of everybody", "of the account", "of a role"} {
				for _, enrolled := range []bool{false, true} {
					due := enrolled || required != "of nobody"
					if e.within && enrolled || e.raises && (!due || !e.pages && enrolled != strings.HasPrefix(e.name, "signs in")) {
						continue // there is no such session: an enrolment ends the others
					}
					name := pattern + " " + e.name + ", required " + required
					if enrolled {
						name += ", with a factor"
					}
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						omits(t, e, required, enrolled)
					})
				}
			}
		}
	}
}

func omits(t *testing.T, e entryPoint, required string, enrolled bool) {
	due := false
	var settings auth.Settings
	if required == "of a role" {
		settings.MFARequiredFor = []string{auditor}
	}
	opts := []auth.Option{auth.WithSettings(settings), auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return due && required == "of everybody" }})}
	if e.pages {
		opts = append(opts, auth.WithCookies(auth.CookieOptions{}), auth.WithRedirectURLs("https://auth.test/in"))
	}
	a := newAdas(t, enrolled, opts...)
	due = true
	switch required {
	case "of the account":
		a.Patch(a.id, store.UserPatch{AppMetadata: map[string]any{"mfa_required": true}})
	case "of a role":
		a.Patch(a.id, store.UserPatch{Roles: &[]string{auditor, "pro"}})
	}
	if e.within && a.session.AccessToken == "" || e.raises && a.token() == "" {
		t.Fatal("there is no such session")
	}
	before := a.read()
	w := e.call(a)
	var body struct {
		AccessToken string `json:"access_token"`
		MFAToken    string `json:"mfa_token"`
		Code        auth.Code
	}
	if len(w.Body) > 0 && strings.HasPrefix(w.Header.Get("Content-Type"), "application/json") {
		body = harness.DecodeAs[struct {
			AccessToken string `json:"access_token"`
			MFAToken    string `json:"mfa_token"`
			Code        auth.Code
		}](w)
	}
	for name, c := range w.SetCookies() {
		if strings.HasSuffix(name, "-access") {
			body.AccessToken = c.Value
		}
	}
	asked := body.Code == auth.CodeMFARequired || body.Code == auth.CodeMFAEnrollmentRequired
	if w.Status == 403 && (!asked || body.MFAToken == "") || w.Status != 403 && asked {
		t.Errorf("%d %s", w.Status, w.Body)
	}
	if body.AccessToken == "" {
		if required == "of nobody" && !enrolled && !strings.HasPrefix(e.name, "answers") {
			t.Errorf("%d %s", w.Status, w.Body)
		}
		if after := a.read(); e.within && asked && after.Revision != before.Revision {
			t.Errorf("it was refused after its effect: %+v", after)
		}
		return
	}
	c, err := a.Verify(body.AccessToken)
	if err != nil {
		t.Fatal(err)
	}
	own := c.UserID == a.id
	switch {
	case c.AAL == store.LevelAAL2:
	case e.raises:
		t.Errorf("a factor was used, and the token is at %s", c.AAL)
	case required == "of everybody", required == "of the account" && own, enrolled && own && !e.within:
		t.Errorf("a token at %s with %v", c.AAL, c.Roles)
	case required == "of a role" && slices.Contains(c.Roles, auditor):
		t.Errorf("a token at %s with %v", c.AAL, c.Roles)
	}
}

func (a *adas) read() auth.User {
	u, err := a.Store.User(a.T.Context(), store.ByID(a.id))
	if err != nil {
		a.T.Fatal(err)
	}
	return u
}
