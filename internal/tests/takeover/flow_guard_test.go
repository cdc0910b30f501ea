package takeover_test

import (
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// The links and second factors of a banned user are refused before anything is used up, so
// that they are valid once the ban is lifted.
func TestBansUseNothingUp(t *testing.T) {
	for name, scene := range map[string]func(*harness.World) (userID string, redeem func() *harness.Answer){
		"a verification": func(w *harness.World) (string, func() *harness.Answer) {
			s := w.PostSignUp("ada@example.com")
			token := w.LinkToken("ada@example.com", auth.KindVerifyEmail)
			return s.User.ID, func() *harness.Answer {
				return w.Do("POST", "/verify-email", map[string]any{"token": token, "password": harness.GoodPassword})
			}
		},
		"a magic link": func(w *harness.World) (string, func() *harness.Answer) {
			s := w.Member("ada@example.com")
			token := w.MagicLink("ada@example.com", nil)
			return s.User.ID, func() *harness.Answer { return w.Do("POST", "/magic-link/verify", map[string]any{"token": token}) }
		},
		"a second factor": func(w *harness.World) (string, func() *harness.Answer) {
			f := w.Enrol(w.LoginAs(w.T, "ada@example.com").AccessToken)
			token, code := w.MFAToken(), w.Code(f.Secret, 0)
			return f.User.ID, func() *harness.Answer { return w.PostVerifyMFA(token, code) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t)
			userID, redeem := scene(w)
			until := w.Clock.Now().Add(time.Hour)
			w.Patch(userID, store.UserPatch{BannedUntil: &until})
			redeem().Want(403, auth.CodeUserBanned)
			if u, err := w.Store.User(t.Context(), store.ByID(userID)); err != nil || name == "a verification" && u.EmailVerified() {
				t.Errorf("verified at %s (%v)", u.EmailVerifiedAt, err)
			}
			w.Patch(userID, store.UserPatch{BannedUntil: &time.Time{}})
			redeem().Want(200)
		})
	}
}

// Nor does a banned user's sign-in at a provider count as one.
func TestBannedIdentityIsNotRenewed(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	s := w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
	before := s.User.Identities[0]
	w.Clock.Advance(time.Minute)
	until := w.Clock.Now().Add(time.Hour)
	w.Patch(s.User.ID, store.UserPatch{BannedUntil: &until})
	moved := harness.Ada
	moved.Email = "moved@example.com"
	w.NewVisitor(idp).SignIn("google", moved, "").Want(403, auth.CodeUserBanned)
	u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
	if err != nil || len(u.Identities) != 1 || u.Identities[0].Email != before.Email || u.Identities[0].LastSignInAt.Equal(w.Clock.Now()) {
		t.Errorf("%+v, %v", u.Identities, err)
	}
}

// An unverified account gets no identity: not on request, nor, if it lost its verification
// meanwhile, at the callback or the exchange.
func TestLinkOfAnUnprovedAccount(t *testing.T) {
	unproved, _ := harness.NewProviderWorld(t)
	nobody := unproved.PostSignUp("ada@example.com")
	unproved.Do("POST", "/me/identities/github", nil, harness.Bearer(nobody.AccessToken)).Want(403, auth.CodeEmailNotVerified)
	for name, body := range map[string]any{
		"callback": nil,
		"exchange": map[string]any{"redirect_to": "https://app.test/in", "code_challenge": harness.ChallengeOf(harness.Verifier)},
	} {
		w, idp := harness.NewProviderWorld(t)
		s := w.Squatter("ada@example.com")
		v := w.NewVisitor(idp)
		to := v.Link("github", s, body)
		idp.SignsIn(harness.EvilGit)
		back := idp.Authorize(t, to)
		lost := store.ByIdentity("facebook", "669")
		lose := func() { w.Patch(s.User.ID, store.UserPatch{Unlink: &lost}) }
		if name == "callback" {
			lose()
			v.Back("github", back).Want(403, auth.CodeEmailNotVerified)
		} else {
			code := w.NewVisitor(idp).Back("github", back).Want(303).Location().Query().Get("code")
			lose()
			w.Do("POST", "/exchange", map[string]any{"code": code, "code_verifier": harness.Verifier}).Want(403, auth.CodeEmailNotVerified)
		}
		if u, err := w.Store.User(t.Context(), store.ByID(s.User.ID)); err != nil || len(u.Identities) != 0 {
			t.Errorf("%s: %+v, %v", name, u.Identities, err)
		}
	}
}

// A magic link that is bound to a verifier and has no redirect returns nothing without the
// verifier, and stays valid.
func TestBoundLinkWithoutRedirect(t *testing.T) {
	w := harness.NewWorld(t)
	token := w.MagicLink("ada@example.com", map[string]any{"code_challenge": harness.ChallengeOf(harness.Verifier)})
	w.Do("POST", "/magic-link/verify", map[string]any{"token": token}).Want(400, auth.CodeBadCodeVerifier)
	w.Do("POST", "/magic-link/verify", map[string]any{"token": token, "code_verifier": harness.Verifier}).Session()
}

// Where second factors are switched off, none is set up, and an enrolment that was started
// before is not completed.
func TestEnrolmentIsOff(t *testing.T) {
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{TOTP: auth.Off}))
	s := w.LoginAs(t, "ada@example.com")
	w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(s.AccessToken)).Want(403, auth.CodeMethodDisabled)
	w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": "123456"}, harness.Bearer(s.AccessToken)).Want(403, auth.CodeMethodDisabled)
}

// Two parallel enrolments with one code: one of them gets the error that it is enabled already.
func TestEnabledMeanwhile(t *testing.T) {
	w, tap, _ := harness.NewTappedWorld(t)
	s := w.LoginAs(t, "ada@example.com")
	setup := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(s.AccessToken)).Want(200))
	enable := func() *harness.Answer {
		return w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(setup.Secret, 0)}, harness.Bearer(s.AccessToken))
	}
	harness.BeforeCall(tap, "EnableFactor", func() { enable().Want(200) })
	enable().Want(409, auth.CodeMFAAlreadyEnabled)
}

// A sign-up with the address of a magic link happens while the link is used: the link signs
// in to that account, which belongs to the link's reader.
func TestSignUpBeforeAMagicLink(t *testing.T) {
	w, tap, _ := harness.NewTappedWorld(t)
	token := w.MagicLink("ada@example.com", nil)
	var squatter harness.Session
	harness.BeforeCall(tap, "RedeemToken", func() { squatter = w.PostSignUp("ada@example.com") })
	s := w.Do("POST", "/magic-link/verify", map[string]any{"token": token}).Session()
	if s.User.ID != squatter.User.ID || !s.User.EmailVerified || w.Alive(squatter.AccessToken) {
		t.Errorf("%+v, and before %+v", s.User, squatter.User)
	}
}

// A code for /exchange is invalid once the account has lost the credential that it depends
// on, even if the store still has it.
func TestExchangeAfterTheLoss(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	email, git := "elsewhere@example.com", store.ByIdentity("github", harness.EvilGit.Subject)
	for name, c := range map[string]struct {
		code func() string
		of   store.UserKey
		loss store.UserPatch
	}{
		"an address": {
			func() string {
				return w.Do("POST", "/magic-link/verify", "token="+w.MagicLink("ada@example.com", map[string]any{"redirect_to": "https://app.test/in"}), harness.Form).Want(303).Location().Query().Get("code")
			},
			store.ByEmail("ada@example.com"), store.UserPatch{Email: &email},
		},
		"an identity": {
			func() string {
				return w.NewVisitor(idp).SignIn("github", harness.EvilGit, "redirect_to=https://app.test/").Location().Query().Get("code")
			},
			git, store.UserPatch{Unlink: &git},
		},
	} {
		code := c.code()
		u, err := w.Store.User(t.Context(), c.of)
		if err != nil {
			t.Fatal(err)
		}
		w.Patch(u.ID, c.loss)
		if a := w.PostExchange(code, harness.Verifier); a.Status != 400 {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
}

// A banned user's wrong code is not checked either: the answer reports the ban.
func TestBannedCodesAreNotJudged(t *testing.T) {
	w := harness.NewWorld(t)
	f := w.Enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	token, until := w.MFAToken(), w.Clock.Now().Add(time.Hour)
	w.Patch(f.User.ID, store.UserPatch{BannedUntil: &until})
	w.Fired()
	w.PostVerifyMFA(token, harness.OtherNumber(w.Code(f.Secret, 0))).Want(403, auth.CodeUserBanned)
	w.WantEvents()
}
