package auth_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

const ownersPassword = "the owner's horse battery"

// tapped is a world whose store calls can be come between.
func tapped(t *testing.T, opts ...auth.Option) (*world, *storetap.Tap, *authtest.Provider) {
	t.Helper()
	tap, idp := storetap.New(newStore(t)), authtest.StartProvider(t)
	w := &world{t: t, log: &syncBuffer{}}
	w.Env = authtest.NewOn(t, tap, append([]auth.Option{auth.WithProvider(idp.Google(), idp.GitHub())}, opts...)...)
	idp.Now = w.Clock.Now
	return w, tap, idp
}

// between runs f right before the next call of a method, once.
func between(tap *storetap.Tap, method string, f func()) {
	tap.Reset(storetap.Hooks{Before: func(_ context.Context, called string, _ int) {
		if called == method {
			tap.Reset(storetap.Hooks{})
			f()
		}
	}})
}

// Whoever judged an old password cannot write it, or what they choose, over the
// one that its owner has set meanwhile.
func TestOldPasswordIsNotWrittenBack(t *testing.T) {
	for name, late := range map[string]func(w *world, id string){
		"rehash at login": func(w *world, _ string) { w.login("old@example.com", goodPassword) },
		"change of password": func(w *world, id string) {
			p := auth.ChangePasswordParams{Caller: auth.ByApplication(id), Current: goodPassword, New: "a third horse battery"}
			if err := w.ChangePassword(t.Context(), p); !errors.Is(err, auth.CodeInvalidCredentials) {
				t.Errorf("error %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, tap, _ := tapped(t)
			u, err := w.ImportUser(t.Context(), auth.ImportUserParams{Email: "old@example.com", PasswordHash: bcryptHash, EmailVerified: true})
			if err != nil {
				t.Fatal(err)
			}
			w.do("POST", "/forgot-password", map[string]any{"email": "old@example.com"}).want(200)
			reset := map[string]any{"token": w.linkToken("old@example.com", auth.KindResetPassword), "new_password": ownersPassword}
			done := false
			between(tap, "UpdateUser", func() {
				w.do("POST", "/reset-password", reset).want(200)
				done = true
			})
			late(w, u.ID)
			if !done {
				t.Fatal("nothing came in between")
			}
			for _, old := range []string{goodPassword, "a third horse battery"} {
				w.login("old@example.com", old).want(401, auth.CodeInvalidCredentials)
			}
			w.login("old@example.com", ownersPassword).session()
		})
	}
}

// A link that is redeemed while the account gets another address proves that one
// to be nobody's, and resets nobody's password.
func TestLinkWhileTheAddressChanges(t *testing.T) {
	const elsewhere = "eve@example.com"
	for name, c := range map[string]struct {
		redeem func(w *world) func()
		judge  func(w *world, u auth.User)
	}{
		"verification": {func(w *world) func() {
			token := w.linkToken(ada.Email, auth.KindVerifyEmail)
			return func() { w.do("GET", "/verify-email?token="+token, nil) }
		}, func(w *world, u auth.User) {
			if u.Email == elsewhere && u.EmailVerified() {
				w.t.Error("the link to one address proved another")
			}
		}},
		"reset": {func(w *world) func() {
			w.do("POST", "/forgot-password", map[string]any{"email": ada.Email}).want(200)
			body := map[string]any{"token": w.linkToken(ada.Email, auth.KindResetPassword), "new_password": ownersPassword}
			return func() { w.do("POST", "/reset-password", body).want(400, auth.CodeInvalidToken) }
		}, func(w *world, _ auth.User) { w.login(elsewhere, goodPassword).session() }},
	} {
		t.Run(name, func(t *testing.T) {
			w, tap, _ := tapped(t)
			s, email := w.signUp(ada.Email), elsewhere
			redeem := c.redeem(w)
			between(tap, "RedeemToken", func() { w.patch(s.User.ID, store.UserPatch{Email: &email}) })
			redeem()
			u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
			if err != nil {
				t.Fatal(err)
			}
			c.judge(w, u)
		})
	}
}

// What a sign-in that is under way rests on is lost to the account: it ends,
// wherever it waits.
func TestSignInLosesWhatItRestsOn(t *testing.T) {
	const otherHash = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$6jKHJ7aUCXl0OJHc0mQmYxR0d2bZkZk4p6mC2oYmJ0w"
	elsewhere, otherNumber, hash := "moved@example.com", "+4930777777", otherHash
	google, github := store.ByIdentity("google", ada.Subject), store.ByIdentity("github", ada.Subject)
	proofs := map[string]struct {
		show func(w *world, idp *authtest.Provider) *answer
		lose []store.UserPatch
	}{
		"password": {
			func(w *world, _ *authtest.Provider) *answer { return w.login(ada.Email, goodPassword) },
			[]store.UserPatch{{PasswordHash: &hash}},
		},
		"identity": {
			func(w *world, idp *authtest.Provider) *answer { return w.visitor(idp).signIn("google", ada, "") },
			[]store.UserPatch{{Unlink: &google}, {Link: identityOf("google", "666")}}, // the provider's still, but somebody else there
		},
		"address": {
			func(w *world, _ *authtest.Provider) *answer {
				return w.do("POST", "/magic-link/verify", map[string]any{"token": w.magicLink(ada.Email, nil)})
			},
			[]store.UserPatch{{Email: &elsewhere}},
		},
		"number": {
			func(w *world, _ *authtest.Provider) *answer { return w.otp(number, w.phoneCode(number)) },
			[]store.UserPatch{{Phone: &otherNumber}},
		},
	}
	person := func(t *testing.T, opts ...auth.Option) (*world, *storetap.Tap, *authtest.Provider, session) {
		w, tap, idp := tapped(t, opts...)
		s := w.member(ada.Email)
		phone, at := number, w.Clock.Now()
		w.patch(s.User.ID, store.UserPatch{Phone: &phone, PhoneVerifiedAt: &at, Link: identityOf("google", ada.Subject)})
		w.patch(s.User.ID, store.UserPatch{Link: identityOf("github", ada.Subject)}) // of that name, too, but elsewhere
		return w, tap, idp, s
	}
	for name, proof := range proofs {
		lose := func(w *world, s session) {
			for _, p := range proof.lose {
				w.patch(s.User.ID, p)
			}
		}
		t.Run(name+", before the session", func(t *testing.T) {
			w, tap, idp, s := person(t)
			lost := false
			between(tap, "CreateSession", func() {
				lose(w, s)
				lost = true
			})
			if a := proof.show(w, idp); w.ownerOf(a) != "" || !lost {
				t.Errorf("lost: %v; %d %s", lost, a.status, a.body)
			}
		})
		t.Run(name+", at the second factor", func(t *testing.T) {
			w, _, idp, s := person(t)
			second := w.enrol(s.AccessToken)
			token := decodeAs[map[string]any](proof.show(w, idp).want(403, auth.CodeMFARequired))["mfa_token"]
			lose(w, s)
			w.do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": w.code(second.secret, 0)}).want(400, auth.CodeInvalidToken)
		})
		t.Run(name+", between the second factor and the session", func(t *testing.T) {
			w, tap, idp, s := person(t)
			second := w.enrol(s.AccessToken)
			token := decodeAs[map[string]any](proof.show(w, idp).want(403, auth.CodeMFARequired))["mfa_token"]
			between(tap, "RedeemToken", func() { lose(w, s) })
			w.do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": w.code(second.secret, 0)}).want(400, auth.CodeInvalidToken)
		})
		t.Run(name+", while something else changes", func(t *testing.T) {
			w, tap, idp, s := person(t)
			between(tap, "CreateSession", func() { // a link or code is used up, and would have died; the others are looked for anew
				w.patch(s.User.ID, store.UserPatch{Unlink: &github})
			})
			if got := w.ownerOf(proof.show(w, idp)) != ""; got != (name == "password" || name == "identity") {
				t.Errorf("signed in: %v", got)
			}
		})
		t.Run(name+", at an enrolment", func(t *testing.T) {
			demanded := false
			w, _, idp, s := person(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return demanded }}))
			demanded = true
			token, _ := decodeAs[map[string]any](proof.show(w, idp).want(403, auth.CodeMFAEnrollmentRequired))["mfa_token"].(string)
			w.do("POST", "/2fa/setup-totp", nil, bearer(token)).want(200)
			lose(w, s)
			w.do("POST", "/2fa/setup-totp", nil, bearer(token)).want(401, auth.CodeBadToken)
		})
	}
	for name, begin := range map[string]func(w *world, idp *authtest.Provider) string{
		"identity": func(w *world, idp *authtest.Provider) string {
			return w.visitor(idp).signIn("google", ada, "redirect_to=https://app.test/").location().Query().Get("code")
		},
		"address": func(w *world, _ *authtest.Provider) string {
			token := w.magicLink(ada.Email, map[string]any{"redirect_to": "https://app.test/"})
			to, _ := url.Parse(w.do("POST", "/magic-link/verify", "token="+token, form, browser).want(303).header.Get("Location"))
			return to.Query().Get("code")
		},
	} {
		t.Run(name+", at the exchange", func(t *testing.T) {
			w, _, idp, s := person(t)
			code := begin(w, idp)
			for _, p := range proofs[name].lose {
				w.patch(s.User.ID, p)
			}
			w.do("POST", "/exchange", map[string]any{"code": code}).want(400, auth.CodeInvalidCode)
		})
	}
}

// identityOf is somebody's at a provider.
func identityOf(name, subject string) *auth.Identity {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &auth.Identity{ID: uuid.NewString(), Provider: name, Subject: subject, CreatedAt: at, LastSignInAt: at}
}

// Where everybody needs a second factor, a sign-up waits for one with its
// password; the enrolment ends with it.
func TestEnrolmentAtSignUpRestsOnThePassword(t *testing.T) {
	w, _, _ := tapped(t, auth.WithSettings(auth.Settings{MFARequired: auth.On}))
	a := w.do("POST", "/signup", map[string]any{"email": ada.Email, "password": goodPassword}).want(403, auth.CodeMFAEnrollmentRequired)
	token := decodeAs[map[string]any](a)["mfa_token"].(string)
	setup := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, bearer(token)).want(200))
	u, err := w.Store.User(t.Context(), store.ByEmail(ada.Email))
	if err != nil {
		t.Fatal(err)
	}
	hash := bcryptHash
	w.patch(u.ID, store.UserPatch{PasswordHash: &hash})
	w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.code(setup.Secret, 0)}, bearer(token)).want(401, auth.CodeBadToken)
	if u, err = w.Store.User(t.Context(), store.ByID(u.ID)); err != nil || u.MFAEnabled {
		t.Errorf("%+v, %v", u, err)
	}
}

// A code for /exchange that links an identity makes no session once the account
// has gone to its owner, nor one whose identity stays.
func TestLinkingExchangeAfterTakeover(t *testing.T) {
	for name, during := range map[string]string{"before": "", "between code and link": "UpdateUser", "between link and session": "CreateSession"} {
		t.Run(name, func(t *testing.T) {
			w, tap, idp := tapped(t)
			evil := w.squatter(ada.Email)
			to := w.visitor(idp).link("github", evil, map[string]any{"redirect_to": "https://app.test/", "code_challenge": challengeOf(verifier)})
			idp.SignsIn(evilGit)
			code := w.visitor(idp).back("github", idp.Authorize(t, to)).location().Query().Get("code")
			token, owner := w.magicLink(ada.Email, nil), session{}
			takeOver := func() { owner = w.do("POST", "/magic-link/verify", map[string]any{"token": token}).session() }
			if during == "" {
				takeOver()
			} else {
				between(tap, during, takeOver)
			}
			a := w.do("POST", "/exchange", map[string]any{"code": code, "code_verifier": verifier})
			if owner.User.ID != evil.User.ID {
				t.Fatalf("nobody took the account over: %+v", owner.User)
			}
			if got := w.ownerOf(a); got == owner.User.ID {
				t.Errorf("the squatter has a session: %s", a.body)
			}
			if list, err := w.Sessions(t.Context(), auth.SessionsParams{UserID: owner.User.ID}); err != nil || len(list) != 1 {
				t.Errorf("%d sessions, %v", len(list), err)
			}
		})
	}
}

// A session that is stepped up again and again, or enrols again and again, says so
// once: its tokens do not grow.
func TestStepUpsDoNotAddUp(t *testing.T) {
	w := newWorld(t, auth.WithTokens(auth.TokenOptions{Life: time.Hour}))
	ada := w.enrol(w.member("ada@example.com").AccessToken)
	size := len(ada.AccessToken)
	for range 100 {
		w.Clock.Advance(30 * time.Second)
		ada.session = w.do("POST", "/2fa/verify", map[string]any{"totp_code": w.code(ada.secret, 0)}, bearer(ada.AccessToken)).session()
	}
	c := w.claimsOf(ada.session)
	methods := map[string]int{}
	for _, m := range c.AMR {
		methods[m.Method]++
	}
	if len(c.AMR) != 2 || methods["password"] != 1 || methods["totp"] != 1 || c.AMR[1].Timestamp != w.Clock.Now().Unix() {
		t.Errorf("amr %+v", c.AMR)
	}
	for range 3 {
		w.do("POST", "/2fa/disable", nil, bearer(ada.AccessToken)).want(200)
		ada = w.enrol(ada.AccessToken)
		w.Clock.Advance(-time.Minute)
	}
	if c = w.claimsOf(ada.session); len(c.AMR) != 2 {
		t.Errorf("amr after enrolments: %+v", c.AMR)
	}
	if grown := len(ada.AccessToken) - size; grown > 16 {
		t.Errorf("the token grew by %d bytes", grown)
	}
}

// Somebody who is banned while their sign-in waits for its second factor is told
// before the code is used up.
func TestBanBeforeTheSecondFactor(t *testing.T) {
	w := newWorld(t)
	ada := w.enrol(w.member("ada@example.com").AccessToken)
	verify := func(body map[string]any) *answer {
		body["mfa_token"] = decodeAs[map[string]any](w.login("ada@example.com", goodPassword).want(403, auth.CodeMFARequired))["mfa_token"]
		until := w.Clock.Now().Add(time.Second)
		w.patch(ada.User.ID, store.UserPatch{BannedUntil: &until})
		return w.do("POST", "/2fa/verify", body)
	}
	for name, body := range map[string]map[string]any{"totp": {"totp_code": w.code(ada.secret, 30*time.Second)}, "recovery code": {"recovery_code": ada.recovery[0]}} {
		verify(body).want(403, auth.CodeUserBanned)
		w.Clock.Advance(time.Second)
		body["mfa_token"] = decodeAs[map[string]any](w.login("ada@example.com", goodPassword).want(403, auth.CodeMFARequired))["mfa_token"]
		if a := w.do("POST", "/2fa/verify", body); a.status != 200 {
			t.Errorf("%s: the code was used up by a sign-in that was refused: %d %s", name, a.status, a.body)
		}
	}
}

// Of two callbacks with one state, the second is told so even if it was let in
// before the first had used the state up.
func TestStateUsedMeanwhile(t *testing.T) {
	w, tap, idp := tapped(t)
	v := w.visitor(idp)
	to := v.start("google", "")
	idp.SignsIn(ada)
	back := idp.Authorize(t, to)
	between(tap, "RedeemToken", func() { v.back("google", back).session() })
	v.back("google", back).want(400, auth.CodeBadOAuthState)
}
