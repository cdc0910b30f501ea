package auth_test

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

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
)

// enrolled is a user with a second factor.
type enrolled struct {
	session
	secret   string
	recovery []string
}

// code is what an authenticator app shows, offset from now.
func (w *world) code(secret string, offset time.Duration) string {
	w.t.Helper()
	c, err := totp.GenerateCode(secret, w.Clock.Now().Add(offset))
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// enrol sets a second factor up, and lets its code pass.
func (w *world) enrol(access string) enrolled {
	w.t.Helper()
	setup := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, bearer(access)).want(200))
	a := w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.code(setup.Secret, 0)}, bearer(access)).want(200)
	codes := decodeAs[struct {
		RecoveryCodes []string `json:"recovery_codes"`
	}](a).RecoveryCodes
	w.Clock.Advance(time.Minute)
	return enrolled{decodeAs[session](a), setup.Secret, codes}
}

// claimsOf reads a session's level.
func (w *world) claimsOf(s session) *auth.Claims {
	w.t.Helper()
	c, err := w.Verify(s.AccessToken)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func TestEnrol(t *testing.T) {
	w := newWorld(t)
	ada, elsewhere := w.LoginAs(t, "ada@example.com"), w.LoginAs(t, "ada@example.com")
	w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": "123456"}, bearer(ada.AccessToken)).want(409, auth.CodeMFANotPending)
	first := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, bearer(ada.AccessToken)).want(200))
	setup := decodeAs[struct {
		Secret, URI string
		QRCode      string `json:"qr_code"`
	}](w.do("POST", "/2fa/setup-totp", nil, bearer(ada.AccessToken)).want(200))
	u, err := url.Parse(setup.URI)
	if err != nil || u.Scheme != "otpauth" || u.Host != "totp" || u.Path != "/auth.test:ada@example.com" || u.Query().Get("secret") != setup.Secret || u.Query().Get("issuer") != "auth.test" {
		t.Errorf("URI %q, %v", setup.URI, err)
	}
	png := w.do("POST", "/2fa/setup-totp", nil, bearer(ada.AccessToken), header{"Accept", "image/png"}).want(200)
	if png.header.Get("Content-Type") != "image/png" || !strings.HasPrefix(string(png.body), "\x89PNG") {
		t.Errorf("%v", png.header)
	}
	setup = decodeAs[struct {
		Secret, URI string
		QRCode      string `json:"qr_code"`
	}](w.do("POST", "/2fa/setup-totp", nil, bearer(ada.AccessToken)).want(200))
	w.fired()
	w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.code(first.Secret, 0)}, bearer(ada.AccessToken)).want(422, auth.CodeInvalidTOTPCode)
	w.do("POST", "/2fa/verify-and-enable", map[string]any{}, bearer(ada.AccessToken)).want(422, auth.CodeValidationFailed)
	w.wantEvents()
	a := w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.code(setup.Secret, 0)}, bearer(ada.AccessToken)).want(200)
	w.wantEvents(auth.EventMFAEnabled)
	s := decodeAs[session](a)
	if c := w.claimsOf(s); c.AAL != "aal2" || len(c.AMR) != 2 || c.AMR[1].Method != "totp" {
		t.Errorf("claims %+v", c)
	}
	if w.alive(elsewhere.AccessToken) || !w.alive(s.AccessToken) {
		t.Error("the wrong sessions ended")
	}
	if !strings.Contains(string(w.do("GET", "/me", nil, bearer(s.AccessToken)).body), `"mfa_enabled":true`) {
		t.Error("mfa_enabled is not true")
	}
	w.Mail(t, "ada@example.com", auth.KindMFAEnabled)
	w.do("POST", "/2fa/setup-totp", nil, bearer(s.AccessToken)).want(409, auth.CodeMFAAlreadyEnabled)
	// The session stays at aal2 when it is refreshed.
	if c := w.claimsOf(w.refresh(s.RefreshToken).session()); c.AAL != "aal2" {
		t.Errorf("claims after refresh %+v", c)
	}
}

// Every door: whatever the way in, a user with a second factor is asked for it.
func TestEveryDoorAsks(t *testing.T) {
	w, idp := providerWorld(t)
	s := w.signUp("ada@example.com")
	w.confirm("ada@example.com")
	w.visitor(idp).signIn("google", ada, "").session()
	w.visitor(idp).signIn("apple", ada, "").session()
	w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(s.AccessToken)).want(200)
	w.otp(number, w.Mail(t, number, auth.KindPhoneCode).Code, bearer(s.AccessToken)).want(200)
	second := w.enrol(s.AccessToken)
	password := goodPassword
	doors := map[string]func() *answer{
		"POST /login": func() *answer {
			return w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": password})
		},
		"GET /magic-link/verify": func() *answer {
			return w.do("GET", "/magic-link/verify?token="+w.magicLink("ada@example.com", nil), nil)
		},
		"POST /magic-link/verify": func() *answer {
			return w.do("POST", "/magic-link/verify", map[string]any{"token": w.magicLink("ada@example.com", nil)})
		},
		"POST /exchange": func() *answer {
			a := w.do("POST", "/magic-link/verify", "token="+w.magicLink("ada@example.com", map[string]any{"redirect_to": "https://app.test/"}), form, browser).want(303)
			to, _ := url.Parse(a.header.Get("Location"))
			return w.do("POST", "/exchange", map[string]any{"code": to.Query().Get("code")})
		},
		"GET /oauth/{provider}/callback":  func() *answer { return w.visitor(idp).signIn("google", ada, "") },
		"POST /oauth/{provider}/callback": func() *answer { return w.visitor(idp).signIn("apple", ada, "") },
		"POST /oauth/{provider}/id-token": func() *answer {
			return w.do("POST", "/oauth/google/id-token", map[string]any{"id_token": idp.IDToken("google", ada, "")})
		},
		"POST /otp/verify": func() *answer { return w.otp(number, w.phoneCode(number)) },
		"reset, then login": func() *answer {
			w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
			password = "another horse battery"
			w.do("POST", "/reset-password", map[string]any{"token": w.linkToken("ada@example.com", auth.KindResetPassword), "new_password": password}).want(200)
			return w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": password})
		},
	}
	for name, door := range doors {
		w.Clock.Advance(time.Hour)
		w.Inbox.Clear()
		a := door().want(403, auth.CodeMFARequired)
		if strings.Contains(string(a.body), "access_token") || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: a session without the second factor", name)
		}
		asked := decodeAs[struct {
			MFAToken  string `json:"mfa_token"`
			ExpiresIn int    `json:"expires_in"`
			Factors   []string
		}](a)
		if asked.ExpiresIn != 300 || !slices.Equal(asked.Factors, []string{"totp", "recovery_code"}) {
			t.Errorf("%s: %s", name, a.body)
		}
		w.do("GET", "/me", nil, bearer(asked.MFAToken)).want(401, auth.CodeBadToken)
		w.do("POST", "/2fa/setup-totp", nil, bearer(asked.MFAToken)).want(401, auth.CodeBadToken)
		in := w.do("POST", "/2fa/verify", map[string]any{"mfa_token": asked.MFAToken, "totp_code": w.code(second.secret, 0)}).session()
		if c := w.claimsOf(in); c.AAL != "aal2" || len(c.AMR) != 2 {
			t.Errorf("%s: claims %+v", name, c)
		}
		w.do("POST", "/2fa/verify", map[string]any{"mfa_token": asked.MFAToken, "recovery_code": second.recovery[0]}).want(400, auth.CodeInvalidToken)
	}
	// These are all the routes that can answer a session, but for those that
	// need one or its second factor, and those that make a user without one. (An
	// invitation to an account that is there needs its session, or takes it over.)
	for _, op := range sessionRoutes(t) {
		if doors[op] == nil && !slices.Contains([]string{"POST /signup", "POST /invitations/accept", "POST /refresh", "POST /2fa/verify", "POST /2fa/verify-and-enable"}, op) {
			t.Errorf("%s can issue a session and is not tested", op)
		}
	}
	// Both proofs in one call.
	w.Clock.Advance(time.Hour)
	in := w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": password, "totp_code": w.code(second.secret, 0)}).session()
	if w.claimsOf(in).AAL != "aal2" {
		t.Error("not at aal2")
	}
	w.Inbox.Clear()
	w.Clock.Advance(time.Hour)
	w.do("POST", "/otp/verify", map[string]any{"phone": number, "otp": w.phoneCode(number), "totp_code": w.code(second.secret, 0)}).session()
}

// sessionRoutes lists the operations whose document says that they can answer a
// session.
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
	w := newWorld(t)
	if err := json.Unmarshal(w.do("GET", "/openapi.json", nil).body, &doc); err != nil {
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

func (w *world) mfaToken() string {
	w.t.Helper()
	a := w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": authtest.Password}).want(403, auth.CodeMFARequired)
	return decodeAs[struct {
		MFAToken string `json:"mfa_token"`
	}](a).MFAToken
}

func (w *world) verifyMFA(token, code string) *answer {
	w.t.Helper()
	return w.do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": code})
}

// RFC 6238, 5.2: a code is good once, at whichever door, and a step apart from
// the clock at most.
func TestCodeIsGoodOnce(t *testing.T) {
	w := newWorld(t)
	ada := w.enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	code := w.code(ada.secret, 0)
	w.verifyMFA(w.mfaToken(), code).want(200)
	w.verifyMFA(w.mfaToken(), code).want(422, auth.CodeInvalidTOTPCode)
	w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": authtest.Password, "totp_code": code}).want(422, auth.CodeInvalidTOTPCode)
	w.do("POST", "/2fa/verify", map[string]any{"totp_code": code}, bearer(ada.AccessToken)).want(422, auth.CodeInvalidTOTPCode)
	w.do("POST", "/2fa/disable", map[string]any{"totp_code": code}, bearer(ada.AccessToken)).want(422, auth.CodeInvalidTOTPCode)
	w.Clock.Advance(time.Hour)
	w.verifyMFA(w.mfaToken(), w.code(ada.secret, 29*time.Second)).want(200)
	w.verifyMFA(w.mfaToken(), w.code(ada.secret, -29*time.Second)).want(422, auth.CodeInvalidTOTPCode) // older than the newest used
	w.Clock.Advance(time.Hour)
	w.verifyMFA(w.mfaToken(), w.code(ada.secret, -29*time.Second)).want(200)
	w.Clock.Advance(time.Hour)
	w.verifyMFA(w.mfaToken(), w.code(ada.secret, 61*time.Second)).want(422, auth.CodeInvalidTOTPCode)
	w.verifyMFA(w.mfaToken(), w.code(ada.secret, -61*time.Second)).want(422, auth.CodeInvalidTOTPCode)
	token := w.mfaToken()
	w.do("POST", "/2fa/verify", map[string]any{"mfa_token": token}).want(422, auth.CodeValidationFailed)
	w.do("POST", "/2fa/verify", map[string]any{"totp_code": "123456"}).want(401, auth.CodeMissingToken)
	w.verifyMFA("nonsense", "123456").want(400, auth.CodeInvalidToken)
	w.Clock.Advance(5 * time.Minute)
	w.verifyMFA(token, w.code(ada.secret, 0)).want(400, auth.CodeInvalidToken)
}

// AuthQuake: a fresh login does not reset the count of wrong codes.
func TestFreshLoginGivesNoNewTries(t *testing.T) {
	w := newWorld(t)
	ada := w.enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	for range 5 {
		w.verifyMFA(w.mfaToken(), "000000").want(422, auth.CodeInvalidTOTPCode)
	}
	w.verifyMFA(w.mfaToken(), w.code(ada.secret, 0)).want(429, auth.CodeRateLimited)
	w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": authtest.Password, "totp_code": w.code(ada.secret, 0)}).want(429, auth.CodeRateLimited)
	w.do("POST", "/2fa/verify", map[string]any{"recovery_code": ada.recovery[0]}, bearer(ada.AccessToken)).want(429, auth.CodeRateLimited)
	w.Clock.Advance(5 * time.Minute)
	w.verifyMFA(w.mfaToken(), w.code(ada.secret, 0)).want(200)
}

// Two hundred parallel guesses at two doors of two instances: no more than the
// cap are judged, and the right code among those beyond it does not win.
func TestParallelFactorGuesses(t *testing.T) {
	store, secret := memstore.New(), []byte(strings.Repeat("s", 32))
	one := &world{Env: authtest.NewOn(t, store, auth.WithSecret(secret), auth.WithSigningKeys(signingKey)), t: t}
	two := authtest.NewOn(t, store, auth.WithSecret(secret), auth.WithSigningKeys(signingKey), auth.WithClock(one.Clock.Now))
	ada := one.enrol(one.LoginAs(t, "ada@example.com").AccessToken)
	var tokens []string
	for range 4 {
		tokens = append(tokens, one.mfaToken())
	}
	by := auth.Caller{UserID: ada.User.ID, SessionID: one.claimsOf(ada.session).SessionID}
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
	if _, err := two.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: tokens[0], TOTPCode: one.code(ada.secret, 0), RecoveryCode: ""}); !errors.Is(err, auth.CodeRateLimited) {
		t.Errorf("the right code beyond the cap: %v", err)
	}
}

// Twenty parallel uses of one valid code: one success.
func TestParallelFactorUses(t *testing.T) {
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{FactorPerUser: auth.Rate{Burst: 1000, Per: time.Minute}}))
	ada := w.enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	for name, code := range map[string][2]string{"totp": {w.code(ada.secret, 0), ""}, "recovery": {"", ada.recovery[3]}} {
		var tokens []string
		for range 20 {
			tokens = append(tokens, w.mfaToken())
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
	w := newWorld(t)
	ada := w.enrol(w.LoginAs(t, "ada@example.com").AccessToken)
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
	w := newWorld(t)
	ada := w.enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	if len(ada.recovery) != 10 || len(ada.recovery[0]) != 11 || ada.recovery[0] == ada.recovery[1] {
		t.Errorf("codes %v", ada.recovery)
	}
	use := func(code string) *answer {
		return w.do("POST", "/2fa/verify", map[string]any{"mfa_token": w.mfaToken(), "recovery_code": code})
	}
	w.fired()
	in := use(strings.ToUpper(strings.ReplaceAll(ada.recovery[0], "-", " "))).session() // as people type
	if c := w.claimsOf(in); c.AAL != "aal2" || c.AMR[1].Method != "recovery_code" || in.Left != 9 {
		t.Errorf("claims %+v, %d codes left", c, in.Left)
	}
	w.wantEvents(auth.EventRecoveryCodeUsed, auth.EventSignedIn)
	use(ada.recovery[0]).want(422, auth.CodeInvalidTOTPCode)
	fresh := decodeAs[struct {
		RecoveryCodes []string `json:"recovery_codes"`
	}](w.do("POST", "/2fa/recovery-codes", nil, bearer(in.AccessToken)).want(200)).RecoveryCodes
	use(ada.recovery[1]).want(422, auth.CodeInvalidTOTPCode)
	use(fresh[1]).want(200)
	w.Clock.Advance(14*time.Minute + time.Second)
	w.Clock.Advance(time.Minute)
	in = w.refresh(in.RefreshToken).session()
	w.do("POST", "/2fa/recovery-codes", nil, bearer(in.AccessToken)).want(403, auth.CodeReauthNeeded)
	// Stepping up proves it again.
	in = w.do("POST", "/2fa/verify", map[string]any{"totp_code": w.code(ada.secret, 0)}, bearer(in.AccessToken)).session()
	w.do("POST", "/2fa/recovery-codes", nil, bearer(in.AccessToken)).want(200)
	eve := w.LoginAs(t, "eve@example.com")
	w.do("POST", "/2fa/recovery-codes", nil, bearer(eve.AccessToken)).want(409, auth.CodeMFANotEnabled)
	w.do("POST", "/2fa/verify", map[string]any{"totp_code": "123456"}, bearer(eve.AccessToken)).want(409, auth.CodeMFANotEnabled)
	// Of somebody who has signed out, nothing is told.
	w.do("POST", "/logout", nil, bearer(eve.AccessToken)).want(204)
	_, err := w.NewRecoveryCodes(t.Context(), auth.NewRecoveryCodesParams{Caller: auth.Caller{UserID: eve.User.ID, SessionID: eve.SessionID}})
	if !errors.Is(err, auth.CodeSessionEnded) {
		t.Errorf("after signing out: %v", err)
	}
}

func TestDisable(t *testing.T) {
	for name, c := range map[string]struct {
		wait   time.Duration
		body   func(*world, enrolled) map[string]any
		status int
		code   auth.Code
	}{
		"fresh":      {0, func(*world, enrolled) map[string]any { return nil }, 200, ""},
		"stale":      {16 * time.Minute, func(*world, enrolled) map[string]any { return map[string]any{} }, 403, auth.CodeReauthNeeded},
		"code":       {16 * time.Minute, func(w *world, e enrolled) map[string]any { return map[string]any{"totp_code": w.code(e.secret, 0)} }, 200, ""},
		"recovery":   {16 * time.Minute, func(_ *world, e enrolled) map[string]any { return map[string]any{"recovery_code": e.recovery[5]} }, 200, ""},
		"password":   {16 * time.Minute, func(*world, enrolled) map[string]any { return map[string]any{"password": authtest.Password} }, 403, auth.CodeReauthNeeded}, // is the first factor
		"wrong code": {0, func(*world, enrolled) map[string]any { return map[string]any{"totp_code": "000000"} }, 422, auth.CodeInvalidTOTPCode},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, auth.WithTokens(auth.TokenOptions{Life: time.Hour}))
			ada := w.enrol(w.LoginAs(t, "ada@example.com").AccessToken)
			w.Clock.Advance(c.wait)
			var body any
			if b := c.body(w, ada); b != nil {
				body = b
			}
			a := w.do("POST", "/2fa/disable", body, bearer(ada.AccessToken))
			if c.code != "" {
				a.want(c.status, c.code)
				w.mfaToken() // still on
				return
			}
			a.want(200)
			w.Mail(t, "ada@example.com", auth.KindMFADisabled)
			if name == "recovery" {
				w.Mail(t, "ada@example.com", auth.KindRecoveryCodeUsed)
			}
			w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": authtest.Password}).want(200)
			w.do("POST", "/2fa/disable", nil, bearer(ada.AccessToken)).want(409, auth.CodeMFANotEnabled)
		})
	}
}

// Enforced: nobody gets a session before setting a second factor up, and the
// token for that opens nothing else.
func TestMFARequired(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{MFARequired: auth.On, AccountDeletion: auth.On}))
	if !w.PublicSettings(t.Context()).MFARequired {
		t.Error("settings do not tell")
	}
	a := w.do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": goodPassword}).want(403, auth.CodeMFAEnrollmentRequired)
	token := decodeAs[struct {
		MFAToken string `json:"mfa_token"`
	}](a).MFAToken
	for _, rt := range auth.Routes(w.Auth) {
		method, path, _ := strings.Cut(rt, " ")
		if strings.HasPrefix(path, "/2fa/setup") || strings.HasPrefix(path, "/2fa/verify-and") {
			continue
		}
		if a := w.do(method, strings.Replace(path, "{id}", "x", 1), nil, bearer(token)); a.status < 300 && !slices.Contains([]string{"/settings", "/healthz", "/openapi.json", "/.well-known/jwks.json", "/.well-known/openid-configuration"}, path) {
			t.Errorf("%s: %d %s", rt, a.status, a.body)
		}
	}
	ada := w.enrol(token)
	if c := w.claimsOf(ada.session); c.AAL != "aal2" || !w.alive(ada.AccessToken) {
		t.Errorf("claims %+v", c)
	}
	w.do("POST", "/2fa/setup-totp", nil, bearer(token)).want(401, auth.CodeBadToken) // used up
	w.do("POST", "/2fa/disable", nil, bearer(ada.AccessToken)).want(403, auth.CodeMFAEnforced)

	only := newWorld(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(u auth.User) bool { return slices.Contains(u.Roles, "admin") }}))
	only.LoginAs(t, "eve@example.com")
	if _, err := only.ImportUser(t.Context(), auth.ImportUserParams{Email: "root@example.com", Roles: []string{"admin"}, PasswordHash: bcryptHash}); err != nil {
		t.Fatal(err)
	}
	only.do("POST", "/login", map[string]any{"email": "root@example.com", "password": goodPassword}).want(403, auth.CodeMFAEnrollmentRequired)
	if _, err := only.ImportUser(t.Context(), auth.ImportUserParams{Email: "one@example.com", AppMetadata: map[string]any{"mfa_required": true}, PasswordHash: bcryptHash}); err != nil {
		t.Fatal(err)
	}
	only.do("POST", "/login", map[string]any{"email": "one@example.com", "password": goodPassword}).want(403, auth.CodeMFAEnrollmentRequired)
}

func TestRequireLevels(t *testing.T) {
	w := newWorld(t)
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

// No link does away with a second factor of an account whose address was proved.
func TestLinksKeepTheFactor(t *testing.T) {
	w := newWorld(t)
	w.enrol(w.member("one@example.com").AccessToken)
	w.do("GET", "/magic-link/verify?token="+w.magicLink("one@example.com", nil), nil).want(403, auth.CodeMFARequired)
	w.enrol(w.member("two@example.com").AccessToken)
	w.do("POST", "/forgot-password", map[string]any{"email": "two@example.com"}).want(200)
	w.do("POST", "/reset-password", map[string]any{"token": w.linkToken("two@example.com", auth.KindResetPassword), "new_password": "another horse battery"}).want(200)
	w.do("POST", "/login", map[string]any{"email": "two@example.com", "password": "another horse battery"}).want(403, auth.CodeMFARequired)
}

// A stolen access token of an old session cannot lock the owner out with a
// factor of the thief's (ASVS 7.5.1).
func TestEnrolmentNeedsFreshSignIn(t *testing.T) {
	w := newWorld(t, auth.WithTokens(auth.TokenOptions{Life: time.Hour}))
	ada := w.LoginAs(t, "ada@example.com")
	setup := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, bearer(ada.AccessToken)).want(200))
	w.Clock.Advance(16 * time.Minute)
	w.do("POST", "/2fa/setup-totp", nil, bearer(ada.AccessToken)).want(403, auth.CodeReauthNeeded)
	w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.code(setup.Secret, 0)}, bearer(ada.AccessToken)).want(403, auth.CodeReauthNeeded)
}

// plainStore is a store without second factors.
type plainStore struct{ auth.Store }

func TestStoreWithoutFactors(t *testing.T) {
	secret := auth.WithSecret([]byte(strings.Repeat("s", 32)))
	base, mailer := auth.WithBaseURL("https://auth.test/auth/v1"), auth.WithMailer(noMail{})
	if _, err := auth.New(t.Context(), plainStore{memstore.New()}, secret, base, mailer, auth.WithSettings(auth.Settings{MFARequired: auth.On})); err == nil || !strings.Contains(err.Error(), "FactorStore") {
		t.Errorf("error %v", err)
	}
	w := &world{Env: authtest.NewOn(t, plainStore{memstore.New()}), t: t}
	ada := w.LoginAs(t, "ada@example.com")
	w.do("POST", "/2fa/setup-totp", nil, bearer(ada.AccessToken)).want(403, auth.CodeMethodDisabled)
	w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": "123456"}, bearer(ada.AccessToken)).want(403, auth.CodeMethodDisabled)
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
	w := newWorld(t)
	ada := w.LoginAs(t, "ada@example.com")
	secret := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, bearer(ada.AccessToken)).want(200)).Secret
	code := w.code(secret, 0)
	w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": code}, bearer(ada.AccessToken)).want(200)
	w.verifyMFA(w.mfaToken(), code).want(422, auth.CodeInvalidTOTPCode)
}
