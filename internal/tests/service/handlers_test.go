package service_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// The route table and the document list the same endpoints.
func TestDocumentMatchesRoutes(t *testing.T) {
	routes := harness.Routes(harness.NewPlain(t))
	slices.Sort(routes)
	if ops := harness.API().Operations(); !slices.Equal(routes, ops) {
		t.Errorf("routes %v\ndocument %v", routes, ops)
	}
}

// Access: every route requires the credentials that the document states.
func TestAccess(t *testing.T) {
	type security []map[string]any
	var doc struct {
		Security security // of operations that name none
		Paths    map[string]map[string]struct {
			Security *security
		}
	}
	w := harness.NewWorld(t, auth.WithAPIKeys("pk_test_12345678"))
	if err := json.Unmarshal(w.Do("GET", "/openapi.json", nil).Body, &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			asks := doc.Security
			if op.Security != nil {
				asks = *op.Security
			}
			a := w.Do(strings.ToUpper(method), strings.NewReplacer("{id}", "x", "{provider}", "x").Replace(path), nil)
			if wantKey := len(asks) > 0; wantKey != (a.Status == 401 && strings.Contains(string(a.Body), "invalid_api_key")) {
				t.Errorf("%s %s without a key: %d %s", method, path, a.Status, a.Body)
			}
			a = w.Do(strings.ToUpper(method), strings.NewReplacer("{id}", "x", "{provider}", "x").Replace(path), nil, harness.Header{Name: "apikey", Value: "pk_test_12345678"})
			signedIn := len(asks) > 0 && asks[0]["bearer"] != nil
			if signedIn != (a.Status == 401 && strings.Contains(string(a.Body), "missing_token") && path != "/logout" && path != "/verify-email" && path != "/2fa/passkey") {
				t.Errorf("%s %s without a token: %d %s", method, path, a.Status, a.Body)
			}
		}
	}
	w.Do("GET", "/settings", nil, harness.Header{Name: "X-API-Key", Value: "pk_test_12345678"}).Want(200)
	w.Do("GET", "/settings", nil, harness.Header{Name: "apikey", Value: "pk_test_12345679"}).Want(401, auth.CodeInvalidAPIKey)
	// No route takes JSON without a key. Only providers and the pages post without one.
	for _, rt := range harness.Routes(w.Auth) {
		method, path, _ := strings.Cut(rt, " ")
		if method != "GET" && !strings.HasSuffix(path, "/callback") {
			w.Do(method, path, map[string]any{"token": "x"}).Want(401, auth.CodeInvalidAPIKey)
		}
	}
	w.Do("POST", "/magic-link/verify", "token=x", harness.Form, harness.Browser).Want(400)
	// The key as bearer token, as some client libraries send it, is no token.
	w.Do("GET", "/me", nil, harness.Header{Name: "apikey", Value: "pk_test_12345678"}, harness.Bearer("pk_test_12345678")).Want(401, auth.CodeMissingToken)
	w.Do("POST", "/otp/verify", map[string]any{"phone": "+4930123456", "otp": "123456"}, harness.Header{Name: "apikey", Value: "pk_test_12345678"}, harness.Bearer("pk_test_12345678")).Want(400, auth.CodeInvalidCode)
}

func TestGeneralRules(t *testing.T) {
	w := harness.NewWorld(t)
	login := `{"email":"a@example.com","password":"x"}`
	deep := strings.Repeat(`{"a":`, 32) + "1" + strings.Repeat("}", 32)
	for name, c := range map[string]struct {
		method, path, body string
		headers            []harness.Header
		status             int
		code               auth.Code
	}{
		"unknown path":         {"GET", "/nope", "", nil, 404, auth.CodeNotFound},
		"the mount itself":     {"GET", "/auth/v1/", "", nil, 404, auth.CodeNotFound},
		"trailing slash":       {"POST", "/login/", login, nil, 404, auth.CodeNotFound},
		"double slash":         {"POST", "//login", login, nil, 404, auth.CodeNotFound},
		"dots":                 {"POST", "/x/../login", login, nil, 404, auth.CodeNotFound},
		"wrong method":         {"PUT", "/login", login, nil, 405, auth.CodeMethodNotAllowed},
		"GET on a POST":        {"GET", "/login", "", nil, 405, auth.CodeMethodNotAllowed},
		"HEAD on a POST":       {"HEAD", "/login", "", nil, 405, ""},
		"no body":              {"POST", "/login", "", nil, 400, auth.CodeBadJSON},
		"text":                 {"POST", "/login", login, []harness.Header{{Name: "Content-Type", Value: "text/plain"}}, 415, auth.CodeUnsupportedMediaType},
		"form":                 {"POST", "/login", "email=a", []harness.Header{harness.Form}, 415, auth.CodeUnsupportedMediaType},
		"no type":              {"POST", "/login", login, []harness.Header{{Name: "Content-Type", Value: ""}}, 415, auth.CodeUnsupportedMediaType},
		"type with parameters": {"POST", "/login", login, []harness.Header{{Name: "Content-Type", Value: "application/json; charset=utf-8"}}, 401, auth.CodeInvalidCredentials},
		"array":                {"POST", "/login", "[]", nil, 400, auth.CodeBadJSON},
		"null":                 {"POST", "/login", "null", nil, 400, auth.CodeBadJSON},
		"trailing data":        {"POST", "/login", login + "{}", nil, 400, auth.CodeBadJSON},
		"cut":                  {"POST", "/login", login[:20], nil, 400, auth.CodeBadJSON},
		"wrong type":           {"POST", "/login", `{"email":1,"password":"x"}`, nil, 400, auth.CodeBadJSON},
		"duplicate":            {"POST", "/login", `{"email":"a@example.com","email":"b@example.com","password":"x"}`, nil, 400, auth.CodeBadJSON},
		"duplicate by escape":  {"POST", "/login", `{"email":"a@example.com","\u0065mail":"b@example.com","password":"x"}`, nil, 400, auth.CodeBadJSON},
		"nested duplicate":     {"POST", "/login", `{"email":"a@example.com","password":"x","y":[{"z":1,"z":2}]}`, nil, 400, auth.CodeBadJSON},
		"other case":           {"POST", "/login", `{"Email":"a@example.com","password":"x"}`, nil, 422, auth.CodeValidationFailed},
		"not UTF-8":            {"POST", "/login", "{\"email\":\"\xff@example.com\",\"password\":\"x\"}", nil, 400, auth.CodeBadJSON},
		"32 deep":              {"POST", "/login", deep, nil, 422, auth.CodeValidationFailed},
		"33 deep":              {"POST", "/login", `{"a":` + deep + `}`, nil, 400, auth.CodeBadJSON},
		"unknown fields":       {"POST", "/login", `{"email":"a@example.com","password":"x","more":{"y":1}}`, nil, 401, auth.CodeInvalidCredentials},
		"largest":              {"POST", "/login", `{"a":"` + strings.Repeat("x", 64<<10-8) + `"}`, nil, 422, auth.CodeValidationFailed},
		"too large":            {"POST", "/login", `{"a":"` + strings.Repeat("x", 64<<10-7) + `"}`, nil, 413, auth.CodeBodyTooLarge},
		"injection":            {"POST", "/login", `{"email":"' or 1=1 --","password":"x"}`, nil, 422, auth.CodeValidationFailed},
		"null bytes":           {"POST", "/login", `{"email":"a\u0000@example.com","password":"x"}`, nil, 422, auth.CodeValidationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w.T = t
			var body any
			if c.body != "" {
				body = c.body
			}
			a := w.Do(c.method, c.path, body, c.headers...)
			if a.Status != c.status {
				t.Fatalf("status %d, want %d: %s", a.Status, c.status, a.Body)
			}
			if c.code != "" {
				a.Want(c.status, c.code)
			}
			if c.status == 405 && a.Header.Get("Allow") != "POST" {
				t.Errorf("Allow %q", a.Header.Get("Allow"))
			}
			if a.Header.Get("Content-Type") != "application/json; charset=utf-8" || a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("headers %v", a.Header)
			}
		})
	}
}

func TestRequestID(t *testing.T) {
	w := harness.NewWorld(t)
	if got := w.Do("GET", "/nope", nil, harness.Header{Name: "X-Request-Id", Value: "abc-123"}); got.Header.Get("X-Request-Id") != "abc-123" || !strings.Contains(string(got.Body), `"request_id":"abc-123"`) {
		t.Errorf("%v %s", got.Header, got.Body)
	}
	for _, bad := range []string{"", "a b", "a\"b", strings.Repeat("x", 129), "ä"} {
		if got := w.Do("GET", "/nope", nil, harness.Header{Name: "X-Request-Id", Value: bad}).Header.Get("X-Request-Id"); got == bad || got == "" {
			t.Errorf("%q became %q", bad, got)
		}
	}
}

// Mounting: with the prefix, without it, and behind StripPrefix.
func TestMounts(t *testing.T) {
	env := harness.NewEnv(t)
	mux := http.NewServeMux()
	mux.Handle("/auth/v1/", env.Handler())
	mux.Handle("/other/", http.StripPrefix("/other", env.Handler()))
	mux.Handle("/", env.Handler())
	for _, path := range []string{"/auth/v1/settings", "/other/settings", "/other/auth/v1/settings", "/settings"} {
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if rec.Code != http.StatusOK {
			t.Errorf("%s: %d", path, rec.Code)
		}
	}
	w := harness.NewWorld(t, auth.WithPrefix("/login/api"))
	w.Do("GET", "/login/api/settings", nil).Want(200)
	w.Do("GET", "/settings", nil).Want(200)
	h := harness.NewEnv(t, auth.WithPrefix("/oauth")).Handler() // a prefix of endpoints, too
	for path, want := range map[string]int{"/oauth/settings": 200, "/settings": 200, "/oauth/oauth/callback": 404, "/oauth/oauth/nobody/callback": 404, "/oauth/me": 401} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if rec.Code != want || rec.Header().Get("X-Request-Id") == "" {
			t.Errorf("%s: %d, want %d", path, rec.Code, want)
		}
	}
}

// The codes are frozen: clients depend on them.
func TestErrorTable(t *testing.T) {
	want := map[auth.Code]int{
		"bad_json": 400, "invalid_token": 400, "invalid_code": 400, "bad_code_verifier": 400, "invalid_refresh_token": 400, "refresh_token_reused": 400,
		"redirect_not_allowed": 400, "bad_oauth_state": 400, "oauth_denied": 400, "invalid_credentials": 401, "missing_token": 401, "bad_token": 401, "token_stale": 401, "session_ended": 401, "invalid_api_key": 401,
		"reauthentication_needed": 403, "email_not_verified": 403, "user_banned": 403, "signup_disabled": 403, "method_disabled": 403, "missing_permission": 403, "not_admin": 403, "target_stronger": 403, "impersonation_forbidden": 403, "user_not_found": 404, "role_not_found": 404, "role_in_use": 409, "precondition_failed": 412, "idempotency_replayed": 409, "mfa_required": 403, "mfa_enrollment_required": 403, "mfa_enforced": 403, "insufficient_aal": 403, "cross_site_request": 403,
		"mfa_already_enabled": 409, "mfa_not_enabled": 409, "mfa_not_pending": 409, "account_exists": 409, "identity_already_exists": 409, "last_sign_in_method": 409, "last_owner": 409, "invalid_totp_code": 422, "invalid_passkey": 422, "passkey_removed": 422, "passkey_not_found": 404, "passkey_already_exists": 409,
		"not_found": 404, "unknown_provider": 404, "session_not_found": 404, "method_not_allowed": 405, "user_already_exists": 409, "body_too_large": 413, "unsupported_media_type": 415,
		"validation_failed": 422, "query_too_broad": 422, "weak_password": 422, "same_password": 422, "rate_limited": 429, "internal": 500, "provider_error": 502, "unavailable": 503, "overloaded": 503, "revocations_unavailable": 503,
	}
	if got := harness.ErrorStatuses(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("codes %v\nwant %v", got, want)
	}
}

// Log masking (ASVS 16.2.5): no secret of a whole walk is in the log.
func TestLogHoldsNoSecrets(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	verify := w.LinkToken("ada@example.com", auth.KindVerifyEmail)
	w.Do("POST", "/verify-email", map[string]any{"token": verify, "password": harness.GoodPassword}).Want(200)
	magic := w.MagicLink("ada@example.com", nil)
	w.Do("POST", "/magic-link/verify", map[string]any{"token": magic}).Want(200)
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": "wrong-secret-horse"}).Want(401)
	w.Do("POST", "/login", `{"email":"ada@example.com","password":"wrong-secret-horse","password":1}`).Want(400)
	w.Do("GET", "/me", nil, harness.Bearer(s.AccessToken+"x")).Want(401)
	next := w.PostRefresh(s.RefreshToken).Session()
	w.PostRefresh(next.RefreshToken + "x").Want(400)
	slog.New(slog.NewTextHandler(w.Log, nil)).Info("values", "tokens", auth.Tokens{AccessToken: s.AccessToken, RefreshToken: s.RefreshToken},
		"message", auth.Message{To: "ada@example.com", Link: magic, Text: magic}, "login", auth.LoginParams{Email: "ada@example.com", Password: harness.GoodPassword},
		"sign-up", auth.SignUpParams{Email: "ada@example.com", Password: harness.GoodPassword}, "change", auth.ChangePasswordParams{Current: harness.GoodPassword, New: harness.GoodPassword},
		"credentials", store.Credentials{PasswordHash: harness.GoodPassword})
	log := w.Log.String()
	if !strings.Contains(log, "invalid_credentials") {
		t.Fatal("the log is not looked at")
	}
	for name, secret := range map[string]string{
		"password": harness.GoodPassword, "wrong password": "wrong-secret-horse", "access token": s.AccessToken, "refresh token": s.RefreshToken,
		"next refresh token": next.RefreshToken, "verify token": verify, "magic token": magic, "address": "ada@example.com",
	} {
		if strings.Contains(log, secret) {
			t.Errorf("the %s is in the log", name)
		}
	}
}

// Cookie mode: tokens only in HttpOnly cookies, and no request from elsewhere
// that relies on them.
func TestCookies(t *testing.T) {
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
	a := w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}, harness.Transport)
	if s := a.Session(); s.AccessToken != "" || s.RefreshToken != "" {
		t.Error("tokens in the body")
	}
	jar := func(a *harness.Answer) (access, refresh *http.Cookie) {
		for _, c := range (&http.Response{Header: a.Header}).Cookies() {
			switch c.Name {
			case "__Host-authmount-access":
				access = c
			case "__Host-authmount-refresh":
				refresh = c
			}
		}
		return access, refresh
	}
	access, refresh := jar(a)
	if access == nil || refresh == nil || !access.HttpOnly || !access.Secure || access.SameSite != http.SameSiteLaxMode || access.Path != "/" || access.Domain != "" ||
		!refresh.HttpOnly || !refresh.Secure || refresh.SameSite != http.SameSiteLaxMode || refresh.Path != "/" || refresh.Domain != "" {
		t.Fatalf("cookies %v, %v", access, refresh)
	}
	cookies := harness.Header{Name: "Cookie", Value: access.Name + "=" + access.Value + "; " + refresh.Name + "=" + refresh.Value}
	w.Do("GET", "/me", nil, cookies).Want(200)
	foreign := []harness.Header{cookies, {Name: "Origin", Value: "https://evil.test"}, {Name: "Sec-Fetch-Site", Value: "cross-site"}}
	w.Do("PATCH", "/me", map[string]any{"full_name": "Eve"}, foreign...).Want(403, auth.CodeCrossSiteRequest)
	w.Do("POST", "/refresh", nil, foreign...).Want(403, auth.CodeCrossSiteRequest)
	w.Do("POST", "/logout", nil, foreign...).Want(403, auth.CodeCrossSiteRequest)
	w.Do("PATCH", "/me", map[string]any{"full_name": "Ada"}, cookies, harness.Header{Name: "Sec-Fetch-Site", Value: "same-origin"}).Want(200)
	next, _ := jar(w.Do("POST", "/refresh", nil, cookies, harness.Header{Name: "Sec-Fetch-Site", Value: "same-origin"}).Want(200))
	if next == nil || next.Value == access.Value {
		t.Error("no new cookie")
	}
	out := w.Do("POST", "/logout", nil, cookies, harness.Header{Name: "Sec-Fetch-Site", Value: "same-origin"}).Want(204)
	if gone, _ := jar(out); gone == nil || gone.MaxAge >= 0 {
		t.Errorf("cookie after logout: %v", gone)
	}
	w.Do("GET", "/me", nil, cookies).Want(401, auth.CodeSessionEnded)
}

// A page's form that another site posts signs no one in.
func TestLoginCSRF(t *testing.T) {
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
	token := w.MagicLink("attacker@example.com", nil)
	a := w.Do("POST", "/magic-link/verify", "token="+token, harness.Form, harness.Browser, harness.Header{Name: "Sec-Fetch-Site", Value: "cross-site"}, harness.Header{Name: "Origin", Value: "https://evil.test"}).Want(403)
	if a.Header.Get("Set-Cookie") != "" {
		t.Error("signed in from another site")
	}
	w.Do("POST", "/magic-link/verify", "token="+token, harness.Form, harness.Browser, harness.Header{Name: "Sec-Fetch-Site", Value: "same-origin"}).Want(200)
}

// Limits by address: IPv6 counts by /64, and forwarding headers only as far as
// trusted proxies vouch for them.
func TestClientAddress(t *testing.T) {
	limits := auth.WithRateLimits(auth.RateLimits{SignupPerIP: auth.Rate{Burst: 1, Per: time.Hour}})
	for name, c := range map[string]struct {
		opts   []auth.Option
		first  []harness.Header
		second []harness.Header
		same   bool
	}{
		"same IPv4":              {nil, []harness.Header{{Name: "RemoteAddr", Value: "192.0.2.1:1"}}, []harness.Header{{Name: "RemoteAddr", Value: "192.0.2.1:2"}}, true},
		"other IPv4":             {nil, []harness.Header{{Name: "RemoteAddr", Value: "192.0.2.1:1"}}, []harness.Header{{Name: "RemoteAddr", Value: "192.0.2.2:1"}}, false},
		"same /64":               {nil, []harness.Header{{Name: "RemoteAddr", Value: "[2001:db8::1]:1"}}, []harness.Header{{Name: "RemoteAddr", Value: "[2001:db8::ffff:2]:1"}}, true},
		"other /64":              {nil, []harness.Header{{Name: "RemoteAddr", Value: "[2001:db8::1]:1"}}, []harness.Header{{Name: "RemoteAddr", Value: "[2001:db8:0:1::1]:1"}}, false},
		"mapped IPv4":            {nil, []harness.Header{{Name: "RemoteAddr", Value: "192.0.2.1:1"}}, []harness.Header{{Name: "RemoteAddr", Value: "[::ffff:192.0.2.1]:1"}}, true},
		"header from anybody":    {nil, []harness.Header{{Name: "X-Forwarded-For", Value: "198.51.100.1"}}, []harness.Header{{Name: "X-Forwarded-For", Value: "198.51.100.2"}}, true},
		"header from a proxy":    {proxies, []harness.Header{{Name: "X-Forwarded-For", Value: "198.51.100.1"}}, []harness.Header{{Name: "X-Forwarded-For", Value: "198.51.100.2"}}, false},
		"spoofed beyond a proxy": {proxies, []harness.Header{{Name: "X-Forwarded-For", Value: "1.1.1.1, 198.51.100.1"}}, []harness.Header{{Name: "X-Forwarded-For", Value: "2.2.2.2, 198.51.100.1"}}, true},
		"two proxies":            {proxies, []harness.Header{{Name: "X-Forwarded-For", Value: "198.51.100.1, 192.0.2.7"}}, []harness.Header{{Name: "X-Forwarded-For", Value: "198.51.100.2, 192.0.2.7"}}, false},
		"garbled":                {proxies, []harness.Header{{Name: "X-Forwarded-For", Value: "198.51.100.1, x"}}, []harness.Header{{Name: "X-Forwarded-For", Value: "198.51.100.2, y"}}, true},
		"beside a proxy's own":   {proxies, []harness.Header{{Name: "X-Forwarded-For", Value: "1.1.1.1"}, {Name: "Forwarded", Value: "for=198.51.100.2"}}, []harness.Header{{Name: "X-Forwarded-For", Value: "2.2.2.2"}, {Name: "Forwarded", Value: "for=198.51.100.2"}}, true},
		"Forwarded":              {proxies, []harness.Header{{Name: "Forwarded", Value: `for="[2001:db8::1]:80";proto=https`}}, []harness.Header{{Name: "Forwarded", Value: "for=198.51.100.2"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, append(c.opts, limits)...)
			sign := func(email string, h []harness.Header) *harness.Answer {
				return w.Do("POST", "/signup", map[string]any{"email": email, "password": harness.GoodPassword}, h...)
			}
			sign("a@example.com", c.first).Want(200)
			want := http.StatusOK
			if c.same {
				want = http.StatusTooManyRequests
			}
			sign("b@example.com", c.second).Want(want)
		})
	}
}

var proxies = []auth.Option{auth.WithTrustedProxies("192.0.2.0/24")} // httptest's own address is 192.0.2.1

func TestRedirects(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{Off: true}),
		auth.WithRedirectURLs("https://exact.test/cb", "https://port.test:8443/*", "http://localhost/*", "myapp://auth/*", "https://sub.test/app/*"))
	for target, ok := range map[string]bool{
		"https://app.test/":                             true,
		"https://app.test":                              true,
		"https://app.test/a/b?c=d#e":                    true,
		"https://APP.test/x":                            true,
		"https://app.test:443/x":                        true,
		"https://exact.test/cb":                         true,
		"https://exact.test/cb?x=1":                     true,
		"https://port.test:8443/x":                      true,
		"http://localhost:3000/x":                       true,
		"myapp://auth/done":                             true,
		"https://sub.test/app/x":                        true,
		"https://sub.test/app":                          true,
		"https://sub.test/application":                  false,
		"https://sub.test/app/../admin":                 false,
		"https://sub.test/app/%2e%2e/admin":             false,
		"https://exact.test/cb/":                        false,
		"https://exact.test/other":                      false,
		"https://port.test/x":                           false,
		"http://app.test/":                              false,
		"https://app.test.evil.test/":                   false,
		"https://evil.test/":                            false,
		"https://evil.test#@app.test/":                  false,
		"https://app.test@evil.test/":                   false,
		"https://user:pw@app.test/":                     false,
		"https://app.test:444/":                         false,
		"//app.test/":                                   false,
		"///app.test/":                                  false,
		"/relative":                                     false,
		"https:app.test":                                false,
		"https:/app.test":                               false,
		`https://app.test\@evil.test/`:                  false,
		`https://app.test/\evil`:                        false,
		"https://app.test//evil.test":                   false,
		"https://app.test/%2f/evil.test":                false,
		"javascript:alert(1)":                           false,
		"JavaScript:alert(1)//https://app.test/":        false,
		"data:text/html,x":                              false,
		"https://app.test/\r\nSet-Cookie: x=y":          false,
		"https://app.test/\tx":                          false,
		" https://app.test/":                            false,
		"https://app.test/ü":                            false,
		"https://аpp.test/":                             false, // Cyrillic а
		"https://app.test/" + strings.Repeat("x", 3000): false,
	} {
		want, code := 200, auth.Code("")
		if !ok {
			want, code = 400, auth.CodeRedirectNotAllowed
		}
		a := w.Do("POST", "/magic-link/send", map[string]any{"email": "a@example.com", "redirect_to": target})
		if a.Status != want || !strings.Contains(string(a.Body), string(code)) {
			t.Errorf("%q: %d %s", target, a.Status, a.Body)
		}
	}
}

// Sends: one per minute and five per hour to an email address, thirty per hour from a
// client, ignoring letter case.
func TestSendLimits(t *testing.T) {
	w := harness.NewWorld(t)
	send := func(email string) *harness.Answer {
		return w.Do("POST", "/forgot-password", map[string]any{"email": email})
	}
	for i := range 5 {
		send("ada@example.com").Want(200)
		if a := send("ADA@example.com").Want(429, auth.CodeRateLimited); i == 0 && a.Header.Get("Retry-After") != "60" {
			t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
		}
		w.Clock.Advance(time.Minute)
	}
	send("ada@example.com").Want(429)
	for i := range 25 {
		send(fmt.Sprintf("user%d@example.com", i)).Want(200)
	}
	for i := 25; ; i++ { // five were refilled in five minutes, minus those already spent
		if send(fmt.Sprintf("user%d@example.com", i)).Status == 429 {
			break
		}
		if i > 35 {
			t.Fatal("no limit per client")
		}
	}
}

func TestNewRefuses(t *testing.T) {
	secret := auth.WithSecret(testsecret.Of("s"))
	base := auth.WithBaseURL("https://auth.test/auth/v1")
	mailer := auth.WithMailer(harness.NoMail{})
	for name, c := range map[string]struct {
		opts []auth.Option
		want string
	}{
		"no secret":           {[]auth.Option{base, mailer}, "WithSecret"},
		"short secret":        {[]auth.Option{auth.WithSecret([]byte("short")), base, mailer}, "32 bytes"},
		"short previous":      {[]auth.Option{auth.WithSecret(testsecret.Of("s"), []byte("x")), base, mailer}, "32 bytes"},
		"weak previous":       {[]auth.Option{auth.WithSecret(testsecret.Of("s"), []byte(strings.Repeat("password", 4))), base, mailer}, "fewer than 8"},
		"no mailer":           {[]auth.Option{secret, base}, "WithMailer"},
		"no URL":              {[]auth.Option{secret, mailer}, "WithBaseURL"},
		"http":                {[]auth.Option{secret, mailer, auth.WithBaseURL("http://auth.test")}, "https"},
		"http in dev mode":    {[]auth.Option{auth.WithDevMode(), auth.WithBaseURL("http://auth.test")}, "loopback"},
		"prefix of names":     {[]auth.Option{secret, mailer, base, auth.WithPrefix("/{tenant}")}, "plain path"},
		"prefix with detours": {[]auth.Option{secret, mailer, base, auth.WithPrefix("/a//b")}, "plain path"},
		"relative prefix":     {[]auth.Option{secret, mailer, base, auth.WithPrefix("auth")}, "slash"},
		"relative URL":        {[]auth.Option{secret, mailer, auth.WithBaseURL("/auth/v1")}, "absolute"},
		"weak hashing":        {[]auth.Option{secret, base, mailer, auth.WithPasswords(auth.PasswordOptions{Argon2id: auth.Argon2idParams{Memory: 1024, Time: 1, Threads: 1}})}, "OWASP"},
		"short passwords":     {[]auth.Option{secret, base, mailer, auth.WithPasswords(auth.PasswordOptions{MinLength: 6})}, "MinLength"},
		"wildcard host":       {[]auth.Option{secret, base, mailer, auth.WithRedirectURLs("https://*.app.test/*")}, "wildcard"},
		"javascript redirect": {[]auth.Option{secret, base, mailer, auth.WithRedirectURLs("javascript:/*")}, "scheme"},
		"bad proxies":         {[]auth.Option{secret, base, mailer, auth.WithTrustedProxies("10.0.0.0")}, "WithTrustedProxies"},
		"any origin, cookies": {[]auth.Option{secret, base, mailer, auth.WithCORS("*"), auth.WithCookies(auth.CookieOptions{})}, "WithCORS"},
		"unknown algorithm":   {[]auth.Option{secret, base, mailer, auth.WithTokens(auth.TokenOptions{Algorithm: "none"})}, "algorithm"},
		"long-lived tokens":   {[]auth.Option{secret, base, mailer, auth.WithTokens(auth.TokenOptions{Life: 48 * time.Hour})}, "24 hours"},
		"endless grace":       {[]auth.Option{secret, base, mailer, auth.WithSessions(auth.SessionOptions{RefreshGrace: time.Hour})}, "WithSessions"},
		"no logger":           {[]auth.Option{secret, base, mailer, auth.WithLogger(nil)}, "WithLogger"},
		"no clock":            {[]auth.Option{secret, base, mailer, auth.WithClock(nil)}, "WithClock"},
		"no claims":           {[]auth.Option{secret, base, mailer, auth.WithClaims(nil)}, "WithClaims"},
		"short API key":       {[]auth.Option{secret, base, mailer, auth.WithAPIKeys("pk")}, "WithAPIKeys"},
	} {
		a, err := auth.New(t.Context(), memstore.New(), c.opts...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if a != nil {
			t.Errorf("%s: an Auth all the same", name)
		}
	}
	if _, err := auth.New(t.Context(), nil, secret, base, mailer); err == nil || !strings.Contains(err.Error(), "store") {
		t.Errorf("no store: %v", err)
	}
	a, err := auth.New(t.Context(), memstore.New(), auth.WithDevMode())
	if err != nil {
		t.Fatal(err)
	}
	if a.Inbox() == nil {
		t.Error("dev mode has no inbox")
	}
	_ = a.Close(t.Context())
}

// For a redirect URL that is missing on the allow-list, the log names the URL and the
// option. It does not contain the query, which may hold secrets.
func TestRefusedRedirectIsLogged(t *testing.T) {
	w := harness.NewWorld(t)
	w.Do("POST", "/magic-link/send", map[string]any{"email": "a@example.com", "redirect_to": "https://other.test/cb?s=hidden"}).Want(400, auth.CodeRedirectNotAllowed)
	log := w.Log.String()
	if !strings.Contains(log, "WithRedirectURLs") || !strings.Contains(log, "other.test") || strings.Contains(log, "hidden") {
		t.Errorf("log %s", log)
	}
}

// Each fault is reported once, on a line that names the option.
func TestNewNamesOptions(t *testing.T) {
	for name, c := range map[string]struct {
		opts []auth.Option
		want []string // the starts of the lines
	}{
		"nothing": {nil, []string{"WithSecret: ", "WithMailer: ", "WithBaseURL: the public URL"}},
		"public http": {[]auth.Option{auth.WithBaseURL("http://auth.test/auth/v1")},
			[]string{"WithSecret: ", "WithMailer: ", "WithBaseURL: http on a host that is not loopback"}},
		"http without dev mode": {[]auth.Option{auth.WithBaseURL("http://localhost/auth/v1")},
			[]string{"WithSecret: ", "WithMailer: ", "WithBaseURL: http on a loopback host needs WithDevMode"}},
		"public http in dev mode": {[]auth.Option{auth.WithDevMode(), auth.WithBaseURL("http://auth.test")},
			[]string{"WithBaseURL: http on a host that is not loopback"}},
		"relative URL": {[]auth.Option{auth.WithBaseURL("/auth/v1")},
			[]string{"WithBaseURL: \"/auth/v1\" is not", "WithSecret: ", "WithMailer: "}},
		"half a provider": {[]auth.Option{auth.WithDevMode(), auth.WithProvider(provider.Google("", ""))},
			[]string{"WithProvider: google: the client id", "WithProvider: google: the client secret"}},
	} {
		_, err := auth.New(t.Context(), memstore.New(), c.opts...)
		text, ok := strings.CutPrefix(fmt.Sprint(err), "auth.New: ")
		lines := strings.Split(text, "\n")
		ok = ok && len(lines) == len(c.want)
		for i := 0; ok && i < len(lines); i++ {
			ok = strings.HasPrefix(lines[i], c.want[i])
		}
		if !ok {
			t.Errorf("%s: %v, want lines with %q", name, err, c.want)
		}
	}
}

// The pages' one style is allowed by its hash, and nothing else is.
func TestPagePolicyAllowsItsStyle(t *testing.T) {
	w := harness.NewWorld(t)
	a := w.Do("GET", "/magic-link/verify?token="+w.MagicLink("a@example.com", map[string]any{"redirect_to": "https://app.test/"}), nil, harness.Browser).Want(200)
	_, rest, _ := strings.Cut(string(a.Body), "<style>")
	style, _, _ := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(style))
	csp := a.Header.Get("Content-Security-Policy")
	if !strings.Contains(csp, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
		t.Errorf("policy %q does not allow the style", csp)
	}
	if !strings.Contains(csp, "form-action 'self' https://app.test;") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy %q", csp)
	}
}

func TestHugeLoginBurst(t *testing.T) {
	w := harness.NewWorld(t, auth.WithPasswords(auth.PasswordOptions{Queue: 4, Workers: 1, Argon2id: harness.UsualCost}))
	w.LoginAs(t, "ada@example.com")
	answers := make(chan int, 40)
	for range 40 {
		go func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/login", strings.NewReader(`{"email":"ada@example.com","password":"`+authtest.Password+`"}`))
			r.Header.Set("Content-Type", "application/json")
			rec := httptest.NewRecorder()
			w.Handler().ServeHTTP(rec, r)
			if rec.Code == 503 && rec.Header().Get("Retry-After") == "" {
				t.Error("503 without Retry-After")
			}
			answers <- rec.Code
		}()
	}
	count := map[int]int{}
	for range 40 {
		count[<-answers]++
	}
	if count[200] == 0 || count[503] == 0 || count[200]+count[503] != 40 {
		t.Errorf("answers %v", count)
	}
	// Any client can cause this, so it is no server error and is not logged each time.
	log := w.Log.String()
	if n := strings.Count(log, "auth: overloaded"); n != 1 || strings.Contains(log, "level=ERROR") {
		t.Errorf("%d lines: %s", n, log)
	}
}
