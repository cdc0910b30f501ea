package auth_test

import (
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// The links and second factors of a banned user are refused before anything is used
// up, so that they are good once the ban is lifted.
func TestBansUseNothingUp(t *testing.T) {
	for name, scene := range map[string]func(*world) (userID string, redeem func() *answer){
		"a verification": func(w *world) (string, func() *answer) {
			s := w.signUp("ada@example.com")
			token := w.linkToken("ada@example.com", auth.KindVerifyEmail)
			return s.User.ID, func() *answer { return w.do("POST", "/verify-email", map[string]any{"token": token}) }
		},
		"a magic link": func(w *world) (string, func() *answer) {
			s := w.member("ada@example.com")
			token := w.magicLink("ada@example.com", nil)
			return s.User.ID, func() *answer { return w.do("POST", "/magic-link/verify", map[string]any{"token": token}) }
		},
		"a second factor": func(w *world) (string, func() *answer) {
			f := w.enrol(w.LoginAs(w.t, "ada@example.com").AccessToken)
			token, code := w.mfaToken(), w.code(f.secret, 0)
			return f.User.ID, func() *answer { return w.verifyMFA(token, code) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			userID, redeem := scene(w)
			until := w.Clock.Now().Add(time.Hour)
			w.patch(userID, store.UserPatch{BannedUntil: &until})
			redeem().want(403, auth.CodeUserBanned)
			if u, err := w.Store.User(t.Context(), store.ByID(userID)); err != nil || name == "a verification" && u.EmailVerified() {
				t.Errorf("verified at %s (%v)", u.EmailVerifiedAt, err)
			}
			w.patch(userID, store.UserPatch{BannedUntil: &time.Time{}})
			redeem().want(200)
		})
	}
}

// Nor does a banned user's sign-in at a provider count as one.
func TestBannedIdentityIsNotRenewed(t *testing.T) {
	w, idp := providerWorld(t)
	s := w.visitor(idp).signIn("google", ada, "").session()
	before := s.User.Identities[0]
	w.Clock.Advance(time.Minute)
	until := w.Clock.Now().Add(time.Hour)
	w.patch(s.User.ID, store.UserPatch{BannedUntil: &until})
	moved := ada
	moved.Email = "moved@example.com"
	w.visitor(idp).signIn("google", moved, "").want(403, auth.CodeUserBanned)
	u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
	if err != nil || len(u.Identities) != 1 || u.Identities[0].Email != before.Email || u.Identities[0].LastSignInAt.Equal(w.Clock.Now()) {
		t.Errorf("%+v, %v", u.Identities, err)
	}
}

// An account that nobody has proved to be theirs gets no identity: not when it is
// asked for, nor, if the proof went meanwhile, at the callback or the exchange.
func TestLinkOfAnUnprovedAccount(t *testing.T) {
	unproved, _ := providerWorld(t)
	nobody := unproved.signUp("ada@example.com")
	unproved.do("POST", "/me/identities/github", nil, bearer(nobody.AccessToken)).want(403, auth.CodeEmailNotVerified)
	for name, body := range map[string]any{
		"callback": nil,
		"exchange": map[string]any{"redirect_to": "https://app.test/in", "code_challenge": challengeOf(verifier)},
	} {
		w, idp := providerWorld(t)
		s := w.squatter("ada@example.com")
		v := w.visitor(idp)
		to := v.link("github", s, body)
		idp.SignsIn(evilGit)
		back := idp.Authorize(t, to)
		none := ""
		lose := func() { w.patch(s.User.ID, store.UserPatch{Phone: &none, PhoneVerifiedAt: &time.Time{}}) }
		if name == "callback" {
			lose()
			v.back("github", back).want(403, auth.CodeEmailNotVerified)
		} else {
			code := w.visitor(idp).back("github", back).want(303).location().Query().Get("code")
			lose()
			w.do("POST", "/exchange", map[string]any{"code": code, "code_verifier": verifier}).want(403, auth.CodeEmailNotVerified)
		}
		if u, err := w.Store.User(t.Context(), store.ByID(s.User.ID)); err != nil || len(u.Identities) != 0 {
			t.Errorf("%s: %+v, %v", name, u.Identities, err)
		}
	}
}

// A magic link that is bound to a verifier and leads nowhere gives nothing without
// it, and stays good.
func TestBoundLinkWithoutRedirect(t *testing.T) {
	w := newWorld(t)
	token := w.magicLink("ada@example.com", map[string]any{"code_challenge": challengeOf(verifier)})
	w.do("POST", "/magic-link/verify", map[string]any{"token": token}).want(400, auth.CodeBadCodeVerifier)
	w.do("POST", "/magic-link/verify", map[string]any{"token": token, "code_verifier": verifier}).session()
}

// Where second factors are switched off, none is set up, nor is one that was begun
// before enabled.
func TestEnrolmentIsOff(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{TOTP: auth.Off}))
	s := w.LoginAs(t, "ada@example.com")
	w.do("POST", "/2fa/setup-totp", nil, bearer(s.AccessToken)).want(403, auth.CodeMethodDisabled)
	w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": "123456"}, bearer(s.AccessToken)).want(403, auth.CodeMethodDisabled)
}

// Two that enrol with one code at once: one of them is told that it is done.
func TestEnabledMeanwhile(t *testing.T) {
	w, tap, _ := tapped(t)
	s := w.LoginAs(t, "ada@example.com")
	setup := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, bearer(s.AccessToken)).want(200))
	enable := func() *answer {
		return w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.code(setup.Secret, 0)}, bearer(s.AccessToken))
	}
	between(tap, "EnableFactor", func() { enable().want(200) })
	enable().want(409, auth.CodeMFAAlreadyEnabled)
}

// Somebody signs up with the address of a magic link while it is used: the link
// signs in to that account, which is its reader's.
func TestSignUpBeforeAMagicLink(t *testing.T) {
	w, tap, _ := tapped(t)
	token := w.magicLink("ada@example.com", nil)
	var squatter session
	between(tap, "RedeemToken", func() { squatter = w.signUp("ada@example.com") })
	s := w.do("POST", "/magic-link/verify", map[string]any{"token": token}).session()
	if s.User.ID != squatter.User.ID || !s.User.EmailVerified || w.alive(squatter.AccessToken) {
		t.Errorf("%+v, and before %+v", s.User, squatter.User)
	}
}

// A code for /exchange is not good once the account has lost what it rests on, even
// where it was left in the store.
func TestExchangeAfterTheLoss(t *testing.T) {
	w, idp := providerWorld(t)
	email, git := "elsewhere@example.com", store.ByIdentity("github", evilGit.Subject)
	for name, c := range map[string]struct {
		code func() string
		of   store.UserKey
		loss store.UserPatch
	}{
		"an address": {
			func() string {
				return w.do("POST", "/magic-link/verify", "token="+w.magicLink("ada@example.com", map[string]any{"redirect_to": "https://app.test/in"}), form).want(303).location().Query().Get("code")
			},
			store.ByEmail("ada@example.com"), store.UserPatch{Email: &email},
		},
		"an identity": {
			func() string {
				return w.visitor(idp).signIn("github", evilGit, "redirect_to=https://app.test/").location().Query().Get("code")
			},
			git, store.UserPatch{Unlink: &git},
		},
	} {
		code := c.code()
		u, err := w.Store.User(t.Context(), c.of)
		if err != nil {
			t.Fatal(err)
		}
		w.patch(u.ID, c.loss)
		if a := w.do("POST", "/exchange", map[string]any{"code": code}); a.status != 400 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

// Nor is a wrong code of a banned user judged: they are told of the ban.
func TestBannedCodesAreNotJudged(t *testing.T) {
	w := newWorld(t)
	f := w.enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	token, until := w.mfaToken(), w.Clock.Now().Add(time.Hour)
	w.patch(f.User.ID, store.UserPatch{BannedUntil: &until})
	w.fired()
	w.verifyMFA(token, other(w.code(f.secret, 0))).want(403, auth.CodeUserBanned)
	w.wantEvents()
}
