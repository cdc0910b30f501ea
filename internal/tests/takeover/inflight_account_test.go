package takeover_test

import (
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// A request that checked an old password cannot write it, or a new one, over the password
// that the owner has set meanwhile.
func TestOldPasswordIsNotWrittenBack(t *testing.T) {
	for name, late := range map[string]func(w *harness.World, id string){
		"rehash at login": func(w *harness.World, _ string) { w.PostLogin("old@example.com", harness.GoodPassword) },
		"change of password": func(w *harness.World, id string) {
			p := auth.ChangePasswordParams{Caller: auth.ByApplication(id), Current: harness.GoodPassword, New: "a third horse battery"}
			if err := w.ChangePassword(t.Context(), p); !errors.Is(err, auth.CodeInvalidCredentials) {
				t.Errorf("error %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, tap, _ := harness.NewTappedWorld(t)
			u, err := w.ImportUser(t.Context(), auth.ImportUserParams{Email: "old@example.com", PasswordHash: harness.BcryptHash, EmailVerified: true})
			if err != nil {
				t.Fatal(err)
			}
			w.Do("POST", "/forgot-password", map[string]any{"email": "old@example.com"}).Want(200)
			reset := map[string]any{"token": w.LinkToken("old@example.com", auth.KindResetPassword), "new_password": harness.OwnersPassword}
			done := false
			harness.BeforeCall(tap, "UpdateUser", func() {
				w.Do("POST", "/reset-password", reset).Want(200)
				done = true
			})
			late(w, u.ID)
			if !done {
				t.Fatal("nothing came in between")
			}
			for _, old := range []string{harness.GoodPassword, "a third horse battery"} {
				w.PostLogin("old@example.com", old).Want(401, auth.CodeInvalidCredentials)
			}
			w.PostLogin("old@example.com", harness.OwnersPassword).Session()
		})
	}
}

// A link that is redeemed while the account gets another address does not verify that
// address and resets no password.
func TestLinkWhileTheAddressChanges(t *testing.T) {
	const elsewhere = "eve@example.com"
	for name, c := range map[string]struct {
		redeem func(w *harness.World) func()
		judge  func(w *harness.World, u auth.User)
	}{
		"verification": {func(w *harness.World) func() {
			token := w.LinkToken(harness.Ada.Email, auth.KindVerifyEmail)
			return func() { w.Do("POST", "/verify-email", map[string]any{"token": token}) }
		}, func(w *harness.World, u auth.User) {
			if u.Email == elsewhere && u.EmailVerified() {
				w.T.Error("the link to one address proved another")
			}
		}},
		"reset": {func(w *harness.World) func() {
			w.Do("POST", "/forgot-password", map[string]any{"email": harness.Ada.Email}).Want(200)
			body := map[string]any{"token": w.LinkToken(harness.Ada.Email, auth.KindResetPassword), "new_password": harness.OwnersPassword}
			return func() { w.Do("POST", "/reset-password", body).Want(400, auth.CodeInvalidToken) }
		}, func(w *harness.World, _ auth.User) { w.PostLogin(elsewhere, harness.GoodPassword).Session() }},
	} {
		t.Run(name, func(t *testing.T) {
			w, tap, _ := harness.NewTappedWorld(t)
			s, email := w.PostSignUp(harness.Ada.Email), elsewhere
			redeem := c.redeem(w)
			harness.BeforeCall(tap, "RedeemToken", func() { w.Patch(s.User.ID, store.UserPatch{Email: &email}) })
			redeem()
			u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
			if err != nil {
				t.Fatal(err)
			}
			c.judge(w, u)
		})
	}
}

// A sign-in ends at every stage if the account loses the credential that the sign-in depends on.
func TestSignInLosesWhatItRestsOn(t *testing.T) {
	const otherHash = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$6jKHJ7aUCXl0OJHc0mQmYxR0d2bZkZk4p6mC2oYmJ0w"
	elsewhere, otherNumber, hash := "moved@example.com", "+4930777777", otherHash
	google, github := store.ByIdentity("google", harness.Ada.Subject), store.ByIdentity("github", harness.Ada.Subject)
	proofs := map[string]struct {
		show func(w *harness.World, idp *authtest.Provider) *harness.Answer
		lose []store.UserPatch
	}{
		"password": {
			func(w *harness.World, _ *authtest.Provider) *harness.Answer {
				return w.PostLogin(harness.Ada.Email, harness.GoodPassword)
			},
			[]store.UserPatch{{PasswordHash: &hash}},
		},
		"identity": {
			func(w *harness.World, idp *authtest.Provider) *harness.Answer {
				return w.NewVisitor(idp).SignIn("google", harness.Ada, "")
			},
			[]store.UserPatch{{Unlink: &google}, {Link: identityOf("google", "666")}}, // still of the provider, but with another subject
		},
		"address": {
			func(w *harness.World, _ *authtest.Provider) *harness.Answer {
				return w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink(harness.Ada.Email, nil)})
			},
			[]store.UserPatch{{Email: &elsewhere}},
		},
		"number": {
			func(w *harness.World, _ *authtest.Provider) *harness.Answer {
				return w.PostOTP(harness.PhoneNumber, w.PhoneCode(harness.PhoneNumber))
			},
			[]store.UserPatch{{Phone: &otherNumber}},
		},
	}
	person := func(t *testing.T, opts ...auth.Option) (*harness.World, *storetap.Tap, *authtest.Provider, harness.Session) {
		w, tap, idp := harness.NewTappedWorld(t, opts...)
		s := w.Member(harness.Ada.Email)
		phone, at := harness.PhoneNumber, w.Clock.Now()
		w.Patch(s.User.ID, store.UserPatch{Phone: &phone, PhoneVerifiedAt: &at, Link: identityOf("google", harness.Ada.Subject)})
		w.Patch(s.User.ID, store.UserPatch{Link: identityOf("github", harness.Ada.Subject)}) // of that name, too, but elsewhere
		return w, tap, idp, s
	}
	for name, proof := range proofs {
		lose := func(w *harness.World, s harness.Session) {
			for _, p := range proof.lose {
				w.Patch(s.User.ID, p)
			}
		}
		t.Run(name+", before the session", func(t *testing.T) {
			w, tap, idp, s := person(t)
			lost := false
			harness.BeforeCall(tap, "CreateSession", func() {
				lose(w, s)
				lost = true
			})
			if a := proof.show(w, idp); w.OwnerOf(a) != "" || !lost {
				t.Errorf("lost: %v; %d %s", lost, a.Status, a.Body)
			}
		})
		t.Run(name+", at the second factor", func(t *testing.T) {
			w, _, idp, s := person(t)
			second := w.Enrol(s.AccessToken)
			token := harness.DecodeAs[map[string]any](proof.show(w, idp).Want(403, auth.CodeMFARequired))["mfa_token"]
			lose(w, s)
			w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": w.Code(second.Secret, 0)}).Want(400, auth.CodeInvalidToken)
		})
		t.Run(name+", while the second factor is checked", func(t *testing.T) {
			w, tap, idp, s := person(t)
			second := w.Enrol(s.AccessToken)
			token := harness.DecodeAs[map[string]any](proof.show(w, idp).Want(403, auth.CodeMFARequired))["mfa_token"]
			harness.BeforeCall(tap, "UseFactor", func() { lose(w, s) })
			w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": w.Code(second.Secret, 0)}).Want(400, auth.CodeInvalidToken)
		})
		t.Run(name+", while something else changes", func(t *testing.T) {
			w, tap, idp, s := person(t)
			harness.BeforeCall(tap, "CreateSession", func() { // a link or code is used up, and would have died; the others are looked for anew
				w.Patch(s.User.ID, store.UserPatch{Unlink: &github})
			})
			if got := w.OwnerOf(proof.show(w, idp)) != ""; got != (name == "password" || name == "identity") {
				t.Errorf("signed in: %v", got)
			}
		})
		t.Run(name+", at an enrolment", func(t *testing.T) {
			demanded := false
			w, _, idp, s := person(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return demanded }}))
			demanded = true
			token, _ := harness.DecodeAs[map[string]any](proof.show(w, idp).Want(403, auth.CodeMFAEnrollmentRequired))["mfa_token"].(string)
			w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(token)).Want(200)
			lose(w, s)
			w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(token)).Want(401, auth.CodeBadToken)
		})
	}
	for name, begin := range map[string]func(w *harness.World, idp *authtest.Provider) string{
		"identity": func(w *harness.World, idp *authtest.Provider) string {
			return w.NewVisitor(idp).SignIn("google", harness.Ada, "redirect_to=https://app.test/").Location().Query().Get("code")
		},
		"address": func(w *harness.World, _ *authtest.Provider) string {
			token := w.MagicLink(harness.Ada.Email, map[string]any{"redirect_to": "https://app.test/", "code_challenge": harness.ChallengeOf(harness.Verifier), "code_challenge_method": "S256"})
			to, _ := url.Parse(w.Do("POST", "/magic-link/verify", "token="+token, harness.Form, harness.Browser).Want(303).Header.Get("Location"))
			return to.Query().Get("code")
		},
	} {
		t.Run(name+", at the exchange", func(t *testing.T) {
			w, _, idp, s := person(t)
			code := begin(w, idp)
			for _, p := range proofs[name].lose {
				w.Patch(s.User.ID, p)
			}
			w.PostExchange(code, harness.Verifier).Want(400, auth.CodeInvalidCode)
		})
	}
}

// identityOf is an identity at a provider.
func identityOf(name, subject string) *auth.Identity {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &auth.Identity{ID: uuid.NewString(), Provider: name, Subject: subject, CreatedAt: at, LastSignInAt: at}
}

// Where every user needs a second factor, the enrolment at a sign-up depends on the password
// and ends with it.
func TestEnrolmentAtSignUpRestsOnThePassword(t *testing.T) {
	w, _, _ := harness.NewTappedWorld(t, auth.WithSettings(auth.Settings{MFARequired: auth.On}))
	a := w.Do("POST", "/signup", map[string]any{"email": harness.Ada.Email, "password": harness.GoodPassword}).Want(403, auth.CodeMFAEnrollmentRequired)
	token := harness.DecodeAs[map[string]any](a)["mfa_token"].(string)
	setup := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(token)).Want(200))
	u, err := w.Store.User(t.Context(), store.ByEmail(harness.Ada.Email))
	if err != nil {
		t.Fatal(err)
	}
	hash := harness.BcryptHash
	w.Patch(u.ID, store.UserPatch{PasswordHash: &hash})
	w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(setup.Secret, 0)}, harness.Bearer(token)).Want(401, auth.CodeBadToken)
	if u, err = w.Store.User(t.Context(), store.ByID(u.ID)); err != nil || u.MFAEnabled {
		t.Errorf("%+v, %v", u, err)
	}
}

// A code for /exchange that links an identity creates no session once the owner has taken
// the account over, nor a session without its identity.
func TestLinkingExchangeAfterTakeover(t *testing.T) {
	for name, during := range map[string]string{"before": "", "between code and link": "UpdateUser", "between link and session": "CreateSession"} {
		t.Run(name, func(t *testing.T) {
			w, tap, idp := harness.NewTappedWorld(t)
			evil := w.Squatter(harness.Ada.Email)
			to := w.NewVisitor(idp).Link("github", evil, map[string]any{"redirect_to": "https://app.test/", "code_challenge": harness.ChallengeOf(harness.Verifier)})
			idp.SignsIn(harness.EvilGit)
			code := w.NewVisitor(idp).Back("github", idp.Authorize(t, to)).Location().Query().Get("code")
			token, owner := w.MagicLink(harness.Ada.Email, nil), harness.Session{}
			takeOver := func() { owner = w.Do("POST", "/magic-link/verify", map[string]any{"token": token}).Session() }
			if during == "" {
				takeOver()
			} else {
				harness.BeforeCall(tap, during, takeOver)
			}
			a := w.Do("POST", "/exchange", map[string]any{"code": code, "code_verifier": harness.Verifier})
			if owner.User.ID != evil.User.ID {
				t.Fatalf("nobody took the account over: %+v", owner.User)
			}
			if got := w.OwnerOf(a); got == owner.User.ID {
				t.Errorf("the squatter has a session: %s", a.Body)
			}
			if list, err := w.Sessions(t.Context(), auth.SessionsParams{UserID: owner.User.ID}); err != nil || len(list) != 1 {
				t.Errorf("%d sessions, %v", len(list), err)
			}
		})
	}
}

// A session that steps up or enrols repeatedly lists each factor once, so that its tokens do
// not grow.
func TestStepUpsDoNotAddUp(t *testing.T) {
	w := harness.NewWorld(t, auth.WithTokens(auth.TokenOptions{Life: time.Hour}))
	ada := w.Enrol(w.Member("ada@example.com").AccessToken)
	size := len(ada.AccessToken)
	for range 100 {
		w.Clock.Advance(30 * time.Second)
		ada.Session = w.Do("POST", "/2fa/verify", map[string]any{"totp_code": w.Code(ada.Secret, 0)}, harness.Bearer(ada.AccessToken)).Session()
	}
	c := w.ClaimsOf(ada.Session)
	methods := map[string]int{}
	for _, m := range c.AMR {
		methods[m.Method]++
	}
	if len(c.AMR) != 2 || methods["password"] != 1 || methods["totp"] != 1 || c.AMR[1].Timestamp != w.Clock.Now().Unix() {
		t.Errorf("amr %+v", c.AMR)
	}
	for range 3 {
		w.Do("POST", "/2fa/disable", nil, harness.Bearer(ada.AccessToken)).Want(200)
		ada = w.Enrol(ada.AccessToken)
		w.Clock.Advance(-time.Minute)
	}
	if c = w.ClaimsOf(ada.Session); len(c.AMR) != 2 {
		t.Errorf("amr after enrolments: %+v", c.AMR)
	}
	if grown := len(ada.AccessToken) - size; grown > 16 {
		t.Errorf("the token grew by %d bytes", grown)
	}
}

// A user who is banned while their sign-in waits for its second factor gets the error before
// the code is used up.
func TestBanBeforeTheSecondFactor(t *testing.T) {
	w := harness.NewWorld(t)
	ada := w.Enrol(w.Member("ada@example.com").AccessToken)
	verify := func(body map[string]any) *harness.Answer {
		body["mfa_token"] = harness.DecodeAs[map[string]any](w.PostLogin("ada@example.com", harness.GoodPassword).Want(403, auth.CodeMFARequired))["mfa_token"]
		until := w.Clock.Now().Add(time.Second)
		w.Patch(ada.User.ID, store.UserPatch{BannedUntil: &until})
		return w.Do("POST", "/2fa/verify", body)
	}
	for name, body := range map[string]map[string]any{"totp": {"totp_code": w.Code(ada.Secret, 30*time.Second)}, "recovery code": {"recovery_code": ada.Recovery[0]}} {
		verify(body).Want(403, auth.CodeUserBanned)
		w.Clock.Advance(time.Second)
		body["mfa_token"] = harness.DecodeAs[map[string]any](w.PostLogin("ada@example.com", harness.GoodPassword).Want(403, auth.CodeMFARequired))["mfa_token"]
		if a := w.Do("POST", "/2fa/verify", body); a.Status != 200 {
			t.Errorf("%s: the code was used up by a sign-in that was refused: %d %s", name, a.Status, a.Body)
		}
	}
}

// Of two callbacks with one state, the second gets an error even if it started before the
// first had used the state up.
func TestStateUsedMeanwhile(t *testing.T) {
	w, tap, idp := harness.NewTappedWorld(t)
	v := w.NewVisitor(idp)
	to := v.Start("google", "")
	idp.SignsIn(harness.Ada)
	back := idp.Authorize(t, to)
	harness.BeforeCall(tap, "RedeemToken", func() { v.Back("google", back).Session() })
	v.Back("google", back).Want(400, auth.CodeBadOAuthState)
}
