package signin_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/memstore"
)

func TestEnrol(t *testing.T) {
	w := harness.NewWorld(t)
	ada, elsewhere := w.LoginAs(t, "ada@example.com"), w.LoginAs(t, "ada@example.com")
	w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": "123456"}, harness.Bearer(ada.AccessToken)).Want(409, auth.CodeMFANotPending)
	first := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(ada.AccessToken)).Want(200))
	setup := harness.DecodeAs[struct {
		Secret, URI string
		QRCode      string `json:"qr_code"`
	}](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(ada.AccessToken)).Want(200))
	u, err := url.Parse(setup.URI)
	if err != nil || u.Scheme != "otpauth" || u.Host != "totp" || u.Path != "/auth.test:ada@example.com" || u.Query().Get("secret") != setup.Secret || u.Query().Get("issuer") != "auth.test" {
		t.Errorf("URI %q, %v", setup.URI, err)
	}
	png := w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(ada.AccessToken), harness.Header{Name: "Accept", Value: "image/png"}).Want(200)
	if png.Header.Get("Content-Type") != "image/png" || !strings.HasPrefix(string(png.Body), "\x89PNG") {
		t.Errorf("%v", png.Header)
	}
	setup = harness.DecodeAs[struct {
		Secret, URI string
		QRCode      string `json:"qr_code"`
	}](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(ada.AccessToken)).Want(200))
	w.Fired()
	w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(first.Secret, 0)}, harness.Bearer(ada.AccessToken)).Want(422, auth.CodeInvalidTOTPCode)
	w.Do("POST", "/2fa/verify-and-enable", map[string]any{}, harness.Bearer(ada.AccessToken)).Want(422, auth.CodeValidationFailed)
	w.WantEvents()
	a := w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(setup.Secret, 0)}, harness.Bearer(ada.AccessToken)).Want(200)
	w.WantEvents(auth.EventMFAEnabled)
	s := harness.DecodeAs[harness.Session](a)
	if c := w.ClaimsOf(s); c.AAL != "aal2" || len(c.AMR) != 2 || c.AMR[1].Method != "totp" {
		t.Errorf("claims %+v", c)
	}
	if w.Alive(elsewhere.AccessToken) || !w.Alive(s.AccessToken) {
		t.Error("the wrong sessions ended")
	}
	if !strings.Contains(string(w.Do("GET", "/me", nil, harness.Bearer(s.AccessToken)).Body), `"mfa_enabled":true`) {
		t.Error("mfa_enabled is not true")
	}
	w.Mail(t, "ada@example.com", auth.KindMFAEnabled)
	w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(s.AccessToken)).Want(409, auth.CodeMFAAlreadyEnabled)
	// The session stays at aal2 when it is refreshed.
	if c := w.ClaimsOf(w.PostRefresh(s.RefreshToken).Session()); c.AAL != "aal2" {
		t.Errorf("claims after refresh %+v", c)
	}
}

// Every sign-in method requires the second factor of a user who has one.
func TestEveryDoorAsks(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	s := w.PostSignUp("ada@example.com")
	w.PostConfirm("ada@example.com")
	w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
	w.NewVisitor(idp).SignIn("apple", harness.Ada, "").Session()
	w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(s.AccessToken)).Want(200)
	w.PostOTP(harness.PhoneNumber, w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code, harness.Bearer(s.AccessToken)).Want(200)
	second := w.Enrol(s.AccessToken)
	password := harness.GoodPassword
	doors := map[string]func() *harness.Answer{
		"POST /login": func() *harness.Answer {
			return w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": password})
		},
		"GET /magic-link/verify": func() *harness.Answer {
			return w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink("ada@example.com", nil)})
		},
		"POST /magic-link/verify": func() *harness.Answer {
			return w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink("ada@example.com", nil)})
		},
		"POST /exchange": func() *harness.Answer {
			a := w.Do("POST", "/magic-link/verify", "token="+w.MagicLink("ada@example.com", map[string]any{"redirect_to": "https://app.test/"}), harness.Form, harness.Browser).Want(303)
			to, _ := url.Parse(a.Header.Get("Location"))
			return w.Do("POST", "/exchange", map[string]any{"code": to.Query().Get("code")})
		},
		"GET /oauth/{provider}/callback":  func() *harness.Answer { return w.NewVisitor(idp).SignIn("google", harness.Ada, "") },
		"POST /oauth/{provider}/callback": func() *harness.Answer { return w.NewVisitor(idp).SignIn("apple", harness.Ada, "") },
		"POST /oauth/{provider}/id-token": func() *harness.Answer {
			return w.Do("POST", "/oauth/google/id-token", map[string]any{"id_token": idp.IDToken("google", harness.Ada, "")})
		},
		"POST /otp/verify": func() *harness.Answer { return w.PostOTP(harness.PhoneNumber, w.PhoneCode(harness.PhoneNumber)) },
		"reset, then login": func() *harness.Answer {
			w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
			password = "another horse battery"
			w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken("ada@example.com", auth.KindResetPassword), "new_password": password}).Want(200)
			return w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": password})
		},
	}
	for name, door := range doors {
		w.Clock.Advance(time.Hour)
		w.Inbox.Clear()
		a := door().Want(403, auth.CodeMFARequired)
		if strings.Contains(string(a.Body), "access_token") || a.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: a session without the second factor", name)
		}
		asked := harness.DecodeAs[struct {
			MFAToken  string `json:"mfa_token"`
			ExpiresIn int    `json:"expires_in"`
			Factors   []string
		}](a)
		if asked.ExpiresIn != 300 || !slices.Equal(asked.Factors, []string{"totp", "recovery_code"}) {
			t.Errorf("%s: %s", name, a.Body)
		}
		w.Do("GET", "/me", nil, harness.Bearer(asked.MFAToken)).Want(401, auth.CodeBadToken)
		w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(asked.MFAToken)).Want(401, auth.CodeBadToken)
		in := w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": asked.MFAToken, "totp_code": w.Code(second.Secret, 0)}).Session()
		if c := w.ClaimsOf(in); c.AAL != "aal2" || len(c.AMR) != 2 {
			t.Errorf("%s: claims %+v", name, c)
		}
		w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": asked.MFAToken, "recovery_code": second.Recovery[0]}).Want(400, auth.CodeInvalidToken)
	}
	// These are all the routes that can answer a session, except those that need one or its
	// second factor, and those that create a user without one. (An invitation to an existing
	// account needs its session, or takes it over. A passkey is two factors at once, see
	// package passkey's tests.)
	for _, op := range sessionRoutes(t) {
		if doors[op] == nil && !slices.Contains([]string{"POST /signup", "POST /invitations/accept", "POST /refresh", "POST /me/confirm", "POST /me/passkeys", "POST /passkeys/sign-in/finish", "POST /2fa/verify", "POST /2fa/verify-and-enable"}, op) {
			t.Errorf("%s can issue a session and is not tested", op)
		}
	}
	// Both factors in one call.
	w.Clock.Advance(time.Hour)
	in := w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": password, "totp_code": w.Code(second.Secret, 0)}).Session()
	if w.ClaimsOf(in).AAL != "aal2" {
		t.Error("not at aal2")
	}
	w.Inbox.Clear()
	w.Clock.Advance(time.Hour)
	w.Do("POST", "/otp/verify", map[string]any{"phone": harness.PhoneNumber, "otp": w.PhoneCode(harness.PhoneNumber), "totp_code": w.Code(second.Secret, 0)}).Session()
}

// sessionRoutes lists the operations that can answer with a session according to the document.
func sessionRoutes(t *testing.T) []string {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]json.RawMessage `json:"responses"`
		} `json:"paths"`
		Components struct {
			Responses map[string]json.RawMessage `json:"responses"`
		} `json:"components"`
	}
	w := harness.NewWorld(t)
	if err := json.Unmarshal(w.Do("GET", "/openapi.json", nil).Body, &doc); err != nil {
		t.Fatal(err)
	}
	var list []string
	for path, methods := range doc.Paths {
		for method, op := range methods {
			ok := string(op.Responses["200"])
			for name, r := range doc.Components.Responses {
				if strings.Contains(ok, "/"+name+`"`) {
					ok += string(r)
				}
			}
			if strings.Contains(ok, `schemas/Session"`) || strings.Contains(ok, `schemas/Enabled"`) {
				list = append(list, strings.ToUpper(method)+" "+path)
			}
		}
	}
	if len(list) < 8 {
		t.Fatalf("routes %v", list)
	}
	return list
}

// A code is valid once over all endpoints, and at most one step apart from the clock (RFC
// 6238, section 5.2).
func TestCodeIsGoodOnce(t *testing.T) {
	w := harness.NewWorld(t)
	ada := w.Enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	code := w.Code(ada.Secret, 0)
	w.PostVerifyMFA(w.MFAToken(), code).Want(200)
	w.PostVerifyMFA(w.MFAToken(), code).Want(422, auth.CodeInvalidTOTPCode)
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": authtest.Password, "totp_code": code}).Want(422, auth.CodeInvalidTOTPCode)
	w.Do("POST", "/2fa/verify", map[string]any{"totp_code": code}, harness.Bearer(ada.AccessToken)).Want(422, auth.CodeInvalidTOTPCode)
	w.Do("POST", "/2fa/disable", map[string]any{"totp_code": code}, harness.Bearer(ada.AccessToken)).Want(422, auth.CodeInvalidTOTPCode)
	w.Clock.Advance(time.Hour)
	w.PostVerifyMFA(w.MFAToken(), w.Code(ada.Secret, 29*time.Second)).Want(200)
	w.PostVerifyMFA(w.MFAToken(), w.Code(ada.Secret, -29*time.Second)).Want(422, auth.CodeInvalidTOTPCode) // older than the newest used
	w.Clock.Advance(time.Hour)
	w.PostVerifyMFA(w.MFAToken(), w.Code(ada.Secret, -29*time.Second)).Want(200)
	w.Clock.Advance(time.Hour)
	w.PostVerifyMFA(w.MFAToken(), w.Code(ada.Secret, 61*time.Second)).Want(422, auth.CodeInvalidTOTPCode)
	w.PostVerifyMFA(w.MFAToken(), w.Code(ada.Secret, -61*time.Second)).Want(422, auth.CodeInvalidTOTPCode)
	token := w.MFAToken()
	w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": token}).Want(422, auth.CodeValidationFailed)
	w.Do("POST", "/2fa/verify", map[string]any{"totp_code": "123456"}).Want(401, auth.CodeMissingToken)
	w.PostVerifyMFA("nonsense", "123456").Want(400, auth.CodeInvalidToken)
	w.Clock.Advance(5 * time.Minute)
	w.PostVerifyMFA(token, w.Code(ada.Secret, 0)).Want(400, auth.CodeInvalidToken)
}

// AuthQuake: a fresh login does not reset the count of wrong codes.
func TestFreshLoginGivesNoNewTries(t *testing.T) {
	w := harness.NewWorld(t)
	ada := w.Enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	for range 5 {
		w.PostVerifyMFA(w.MFAToken(), "000000").Want(422, auth.CodeInvalidTOTPCode)
	}
	w.PostVerifyMFA(w.MFAToken(), w.Code(ada.Secret, 0)).Want(429, auth.CodeRateLimited)
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": authtest.Password, "totp_code": w.Code(ada.Secret, 0)}).Want(429, auth.CodeRateLimited)
	w.Do("POST", "/2fa/verify", map[string]any{"recovery_code": ada.Recovery[0]}, harness.Bearer(ada.AccessToken)).Want(429, auth.CodeRateLimited)
	w.Clock.Advance(5 * time.Minute)
	w.PostVerifyMFA(w.MFAToken(), w.Code(ada.Secret, 0)).Want(200)
}

// Two hundred parallel attempts at two endpoints of two instances: no more than the limit
// are checked, and the right code beyond it is refused.
func TestParallelFactorGuesses(t *testing.T) {
	store, secret := memstore.New(), testsecret.Of("s")
	one := &harness.World{Env: authtest.NewOn(t, store, auth.WithSecret(secret), auth.WithSigningKeys(harness.SigningKey)), T: t}
	two := authtest.NewOn(t, store, auth.WithSecret(secret), auth.WithSigningKeys(harness.SigningKey), auth.WithClock(one.Clock.Now))
	ada := one.Enrol(one.LoginAs(t, "ada@example.com").AccessToken)
	var tokens []string
	for range 4 {
		tokens = append(tokens, one.MFAToken())
	}
	by := auth.Caller{UserID: ada.User.ID, SessionID: one.ClaimsOf(ada.Session).SessionID}
	var judged, refused atomic.Int32
	var wg sync.WaitGroup
	for i := range 200 {
		a := []*auth.Auth{one.Auth, two.Auth}[i%2]
		wg.Go(func() {
			var err error
			if i%4 < 2 {
				_, err = a.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: tokens[i%len(tokens)], TOTPCode: "000000", RecoveryCode: ""})
			} else {
				_, err = a.StepUp(t.Context(), auth.StepUpParams{Caller: by, RecoveryCode: "aaaaa-aaaaa"})
			}
			switch {
			case errors.Is(err, auth.CodeInvalidTOTPCode):
				judged.Add(1)
			case errors.Is(err, auth.CodeRateLimited):
				refused.Add(1)
			default:
				t.Errorf("error %v", err)
			}
		})
	}
	wg.Wait()
	if judged.Load() != 5 || refused.Load() != 195 {
		t.Errorf("%d judged, %d refused", judged.Load(), refused.Load())
	}
	if _, err := two.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: tokens[0], TOTPCode: one.Code(ada.Secret, 0), RecoveryCode: ""}); !errors.Is(err, auth.CodeRateLimited) {
		t.Errorf("the right code beyond the cap: %v", err)
	}
}

// Twenty parallel uses of one valid code: one success.
func TestParallelFactorUses(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{FactorPerUser: auth.Rate{Burst: 1000, Per: time.Minute}}))
	ada := w.Enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	for name, code := range map[string][2]string{"totp": {w.Code(ada.Secret, 0), ""}, "recovery": {"", ada.Recovery[3]}} {
		var tokens []string
		for range 20 {
			tokens = append(tokens, w.MFAToken())
		}
		var won atomic.Int32
		var wg sync.WaitGroup
		for _, token := range tokens {
			wg.Go(func() {
				_, err := w.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: token, TOTPCode: code[0], RecoveryCode: code[1]})
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, auth.CodeInvalidTOTPCode):
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("%s: %d won", name, won.Load())
		}
	}
}

// Ten of 32 characters are 50 bits.
func TestRecoveryCodesAreRandom(t *testing.T) {
	w := harness.NewWorld(t)
	ada := w.Enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	seen := map[rune]bool{}
	for range 30 {
		codes, err := w.NewRecoveryCodes(t.Context(), auth.NewRecoveryCodesParams{Caller: auth.ByApplication(ada.User.ID)})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range codes {
			for _, r := range strings.ReplaceAll(c, "-", "") {
				seen[r] = true
			}
		}
	}
	if len(seen) != 32 {
		t.Errorf("recovery codes are made of %d characters", len(seen))
	}
}

func TestRecoveryCodes(t *testing.T) {
	w := harness.NewWorld(t)
	ada := w.Enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	if len(ada.Recovery) != 10 || len(ada.Recovery[0]) != 11 || ada.Recovery[0] == ada.Recovery[1] {
		t.Errorf("codes %v", ada.Recovery)
	}
	use := func(code string) *harness.Answer {
		return w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": w.MFAToken(), "recovery_code": code})
	}
	w.Fired()
	in := use(strings.ToUpper(strings.ReplaceAll(ada.Recovery[0], "-", " "))).Session() // as people type
	if c := w.ClaimsOf(in); c.AAL != "aal2" || c.AMR[1].Method != "recovery_code" || in.Left != 9 {
		t.Errorf("claims %+v, %d codes left", c, in.Left)
	}
	w.WantEvents(auth.EventRecoveryCodeUsed, auth.EventSignedIn)
	use(ada.Recovery[0]).Want(422, auth.CodeInvalidTOTPCode)
	fresh := harness.DecodeAs[struct {
		RecoveryCodes []string `json:"recovery_codes"`
	}](w.Do("POST", "/2fa/recovery-codes", nil, harness.Bearer(in.AccessToken)).Want(200)).RecoveryCodes
	use(ada.Recovery[1]).Want(422, auth.CodeInvalidTOTPCode)
	use(fresh[1]).Want(200)
	w.Clock.Advance(14*time.Minute + time.Second)
	w.Clock.Advance(time.Minute)
	in = w.PostRefresh(in.RefreshToken).Session()
	w.Do("POST", "/2fa/recovery-codes", nil, harness.Bearer(in.AccessToken)).Want(403, auth.CodeReauthNeeded)
	// A step-up refreshes the authentication.
	in = w.Do("POST", "/2fa/verify", map[string]any{"totp_code": w.Code(ada.Secret, 0)}, harness.Bearer(in.AccessToken)).Session()
	w.Do("POST", "/2fa/recovery-codes", nil, harness.Bearer(in.AccessToken)).Want(200)
	eve := w.LoginAs(t, "eve@example.com")
	w.Do("POST", "/2fa/recovery-codes", nil, harness.Bearer(eve.AccessToken)).Want(409, auth.CodeMFANotEnabled)
	w.Do("POST", "/2fa/verify", map[string]any{"totp_code": "123456"}, harness.Bearer(eve.AccessToken)).Want(409, auth.CodeMFANotEnabled)
	// A signed-out caller learns nothing about the account.
	w.Do("POST", "/logout", nil, harness.Bearer(eve.AccessToken)).Want(204)
	_, err := w.NewRecoveryCodes(t.Context(), auth.NewRecoveryCodesParams{Caller: auth.Caller{UserID: eve.User.ID, SessionID: eve.SessionID}})
	if !errors.Is(err, auth.CodeSessionEnded) {
		t.Errorf("after signing out: %v", err)
	}
}

func TestDisable(t *testing.T) {
	for name, c := range map[string]struct {
		wait   time.Duration
		body   func(*harness.World, harness.Enrolled) map[string]any
		status int
		code   auth.Code
	}{
		"fresh": {0, func(*harness.World, harness.Enrolled) map[string]any { return nil }, 200, ""},
		"stale": {16 * time.Minute, func(*harness.World, harness.Enrolled) map[string]any { return map[string]any{} }, 403, auth.CodeReauthNeeded},
		"code": {16 * time.Minute, func(w *harness.World, e harness.Enrolled) map[string]any {
			return map[string]any{"totp_code": w.Code(e.Secret, 0)}
		}, 200, ""},
		"recovery": {16 * time.Minute, func(_ *harness.World, e harness.Enrolled) map[string]any {
			return map[string]any{"recovery_code": e.Recovery[5]}
		}, 200, ""},
		"password": {16 * time.Minute, func(*harness.World, harness.Enrolled) map[string]any {
			return map[string]any{"password": authtest.Password}
		}, 403, auth.CodeReauthNeeded}, // is the first factor
		"wrong code": {0, func(*harness.World, harness.Enrolled) map[string]any { return map[string]any{"totp_code": "000000"} }, 422, auth.CodeInvalidTOTPCode},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, auth.WithTokens(auth.TokenOptions{Life: time.Hour}))
			ada := w.Enrol(w.LoginAs(t, "ada@example.com").AccessToken)
			w.Clock.Advance(c.wait)
			var body any
			if b := c.body(w, ada); b != nil {
				body = b
			}
			a := w.Do("POST", "/2fa/disable", body, harness.Bearer(ada.AccessToken))
			if c.code != "" {
				a.Want(c.status, c.code)
				w.MFAToken() // still on
				return
			}
			a.Want(200)
			w.Mail(t, "ada@example.com", auth.KindMFADisabled)
			if name == "recovery" {
				w.Mail(t, "ada@example.com", auth.KindRecoveryCodeUsed)
			}
			w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": authtest.Password}).Want(200)
			w.Do("POST", "/2fa/disable", nil, harness.Bearer(ada.AccessToken)).Want(409, auth.CodeMFANotEnabled)
		})
	}
}

// Enforced: no session is created before a second factor is set up, and the token for the
// setup permits nothing else.
func TestMFARequired(t *testing.T) {
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{MFARequired: auth.On, AccountDeletion: auth.On}))
	if !w.PublicSettings(t.Context()).MFARequired {
		t.Error("settings do not tell")
	}
	a := w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}).Want(403, auth.CodeMFAEnrollmentRequired)
	token := harness.DecodeAs[struct {
		MFAToken string `json:"mfa_token"`
	}](a).MFAToken
	for _, rt := range harness.Routes(w.Auth) {
		method, path, _ := strings.Cut(rt, " ")
		if strings.HasPrefix(path, "/2fa/setup") || strings.HasPrefix(path, "/2fa/verify-and") {
			continue
		}
		if a := w.Do(method, strings.Replace(path, "{id}", "x", 1), nil, harness.Bearer(token)); a.Status < 300 && !slices.Contains([]string{"/settings", "/pages/passkey.js", "/passkeys/sign-in/begin", "/healthz", "/openapi.json", "/.well-known/jwks.json", "/.well-known/openid-configuration"}, path) {
			t.Errorf("%s: %d %s", rt, a.Status, a.Body)
		}
	}
	ada := w.Enrol(token)
	if c := w.ClaimsOf(ada.Session); c.AAL != "aal2" || !w.Alive(ada.AccessToken) {
		t.Errorf("claims %+v", c)
	}
	w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(token)).Want(401, auth.CodeBadToken) // used up
	w.Do("POST", "/2fa/disable", nil, harness.Bearer(ada.AccessToken)).Want(403, auth.CodeMFAEnforced)

	only := harness.NewWorld(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(u auth.User) bool { return slices.Contains(u.Roles, "admin") }}))
	only.LoginAs(t, "eve@example.com")
	if _, err := only.ImportUser(t.Context(), auth.ImportUserParams{Email: "root@example.com", Accepted: true, Roles: []string{"admin"}, PasswordHash: harness.BcryptHash}); err != nil {
		t.Fatal(err)
	}
	only.Do("POST", "/login", map[string]any{"email": "root@example.com", "password": harness.GoodPassword}).Want(403, auth.CodeMFAEnrollmentRequired)
	if _, err := only.ImportUser(t.Context(), auth.ImportUserParams{Email: "one@example.com", AppMetadata: map[string]any{"mfa_required": true}, PasswordHash: harness.BcryptHash}); err != nil {
		t.Fatal(err)
	}
	only.Do("POST", "/login", map[string]any{"email": "one@example.com", "password": harness.GoodPassword}).Want(403, auth.CodeMFAEnrollmentRequired)
}

func TestRequireLevels(t *testing.T) {
	w := harness.NewWorld(t)
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	call := func(req auth.Requirement, claims map[string]any) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+w.MintToken(t, claims))
		rec := httptest.NewRecorder()
		w.Require(ok, req).ServeHTTP(rec, r)
		return rec.Code
	}
	old := []any{map[string]any{"method": "password", "timestamp": w.Clock.Now().Add(-10 * time.Minute).Unix()}}
	for name, c := range map[string]struct {
		req    auth.Requirement
		claims map[string]any
		want   int
	}{
		"aal1":  {auth.AAL2(), nil, 403},
		"aal2":  {auth.AAL2(), map[string]any{"aal": "aal2"}, 200},
		"fresh": {auth.FreshAuth(5 * time.Minute), nil, 200},
		"stale": {auth.FreshAuth(5 * time.Minute), map[string]any{"amr": old}, 403},
		"older": {auth.FreshAuth(15 * time.Minute), map[string]any{"amr": old}, 200},
	} {
		if got := call(c.req, c.claims); got != c.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// No link removes the second factor of an account with a verified address.
func TestLinksKeepTheFactor(t *testing.T) {
	w := harness.NewWorld(t)
	w.Enrol(w.Member("one@example.com").AccessToken)
	w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink("one@example.com", nil)}).Want(403, auth.CodeMFARequired)
	w.Enrol(w.Member("two@example.com").AccessToken)
	w.Do("POST", "/forgot-password", map[string]any{"email": "two@example.com"}).Want(200)
	w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken("two@example.com", auth.KindResetPassword), "new_password": "another horse battery"}).Want(200)
	w.Do("POST", "/login", map[string]any{"email": "two@example.com", "password": "another horse battery"}).Want(403, auth.CodeMFARequired)
}

// A stolen access token of an old session cannot lock the owner out with a
// factor of the thief's (ASVS 7.5.1).
func TestEnrolmentNeedsFreshSignIn(t *testing.T) {
	w := harness.NewWorld(t, auth.WithTokens(auth.TokenOptions{Life: time.Hour}))
	ada := w.LoginAs(t, "ada@example.com")
	setup := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(ada.AccessToken)).Want(200))
	w.Clock.Advance(16 * time.Minute)
	w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(ada.AccessToken)).Want(403, auth.CodeReauthNeeded)
	w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(setup.Secret, 0)}, harness.Bearer(ada.AccessToken)).Want(403, auth.CodeReauthNeeded)
}

func TestStoreWithoutFactors(t *testing.T) {
	secret := auth.WithSecret(testsecret.Of("s"))
	base, mailer := auth.WithBaseURL("https://auth.test/auth/v1"), auth.WithMailer(harness.NoMail{})
	if _, err := auth.New(t.Context(), harness.PlainStore{Store: memstore.New()}, secret, base, mailer, auth.WithSettings(auth.Settings{MFARequired: auth.On})); err == nil || !strings.Contains(err.Error(), "FactorStore") {
		t.Errorf("error %v", err)
	}
	w := &harness.World{Env: authtest.NewOn(t, harness.PlainStore{Store: memstore.New()}), T: t}
	ada := w.LoginAs(t, "ada@example.com")
	w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(ada.AccessToken)).Want(403, auth.CodeMethodDisabled)
	w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": "123456"}, harness.Bearer(ada.AccessToken)).Want(403, auth.CodeMethodDisabled)
	if _, err := w.NewRecoveryCodes(t.Context(), auth.NewRecoveryCodesParams{Caller: auth.ByApplication(ada.User.ID)}); !errors.Is(err, auth.CodeMFANotEnabled) {
		t.Errorf("recovery codes: %v", err)
	}
	if err := w.DisableTOTP(t.Context(), auth.DisableTOTPParams{Caller: auth.ByApplication(ada.User.ID)}); !errors.Is(err, auth.CodeMFANotEnabled) {
		t.Errorf("switched off: %v", err)
	}
	if w.PublicSettings(t.Context()).Methods.TOTP {
		t.Error("settings tell of what is not there")
	}
}

// The code that switched the second factor on is spent, too.
func TestEnrolmentSpendsItsCode(t *testing.T) {
	w := harness.NewWorld(t)
	ada := w.LoginAs(t, "ada@example.com")
	secret := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(ada.AccessToken)).Want(200)).Secret
	code := w.Code(secret, 0)
	w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": code}, harness.Bearer(ada.AccessToken)).Want(200)
	w.PostVerifyMFA(w.MFAToken(), code).Want(422, auth.CodeInvalidTOTPCode)
}
