package takeover_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// An account with a verified phone number belongs to the holder of the number. Whoever reads
// an email address that the account names unverified gets an account of their own, in every
// way to verify an address but a reset, at the first attempt, and the account loses the
// address and nothing else.
// The address may come from a provider that vouches for none, or from an import.
func TestMailboxOfAnAccountWithAHolder(t *testing.T) {
	const address = "mistyped@example.com"
	accounts := map[string]func(w *harness.World, idp *authtest.Provider) string{
		"provider": func(w *harness.World, idp *authtest.Provider) string {
			s := w.NewVisitor(idp).SignIn("oidc", authtest.Person{Subject: "s1", Email: address}, "").Session()
			w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(s.AccessToken)).Want(200)
			w.PostOTP(harness.PhoneNumber, w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code, harness.Bearer(s.AccessToken)).Want(200)
			w.Enrol(s.AccessToken)
			return s.User.ID
		},
		"import": func(w *harness.World, _ *authtest.Provider) string {
			return w.Imported(auth.ImportUserParams{Email: address, Phone: harness.PhoneNumber, PhoneVerified: true, PasswordHash: harness.BcryptHash, TOTPSecret: importedSecret, Roles: []string{"editor"}}).ID
		},
	}
	ways := map[string]func(w *harness.World, idp *authtest.Provider){
		"magic link": func(w *harness.World, _ *authtest.Provider) {
			token := w.MagicLink(address, map[string]any{"redirect_to": harness.AppURL})
			if shown := w.Page(w.Handler(), "GET", "/magic-link/verify?token="+token, harness.Browser); !strings.Contains(string(shown.Body), "confirm this address in your account") {
				w.T.Errorf("the page does not say that an account is created: %s", shown.Body)
			}
			w.Do("POST", "/magic-link/verify", map[string]any{"token": token}).Session()
		},
		"code of a magic link": func(w *harness.World, _ *authtest.Provider) {
			m := w.AskByMail(address, nil)
			w.ByCode(address, m.Code, m.Request, nil).Session()
		},
		"reset": func(w *harness.World, _ *authtest.Provider) {
			w.Do("POST", "/forgot-password", map[string]any{"email": address}).Want(200)
			w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken(address, auth.KindResetPassword), "new_password": harness.OwnersPassword}).Want(403, auth.CodeEmailNotVerified)
		},
		"provider": func(w *harness.World, idp *authtest.Provider) {
			w.NewVisitor(idp).SignIn("google", authtest.Person{Subject: "s2", Email: address, EmailVerified: true}, "").Session()
		},
	}
	for from, prepare := range accounts {
		for way, prove := range ways {
			t.Run(from+" "+way, func(t *testing.T) {
				w, idp := harness.NewProviderWorld(t)
				id := prepare(w, idp)
				before, err := w.Store.Credentials(t.Context(), store.ByID(id))
				if err != nil {
					t.Fatal(err)
				}
				live, err := w.Store.Sessions(t.Context(), id, w.Clock.Now())
				if err != nil {
					t.Fatal(err)
				}
				prove(w, idp)
				after, err := w.Store.Credentials(t.Context(), store.ByID(id))
				if err != nil {
					t.Fatal(err)
				}
				had, has := before.User, after.User
				if (has.Email != "") != (way == "reset") || has.Phone != had.Phone || !has.PhoneVerified() || has.MFAEnabled != had.MFAEnabled || !slices.Equal(has.Roles, had.Roles) || len(has.Identities) != len(had.Identities) || after.PasswordHash != before.PasswordHash {
					t.Errorf("the account was %+v and is %+v", had, has)
				}
				if left, err := w.Store.Sessions(t.Context(), id, w.Clock.Now()); err != nil || len(left) != len(live) {
					t.Errorf("%d of %d sessions are left, %v", len(left), len(live), err)
				}
				if u, err := w.Store.User(t.Context(), store.ByEmail(address)); err == nil && u.ID == id && way != "reset" {
					t.Error("the address still names the account")
				}
			})
		}
	}
}

// "This wasn't me" takes only the address from such an account.
func TestDisownedAccountWithAHolder(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp(harness.AdaMail)
	phone, at := harness.PhoneNumber, w.Clock.Now()
	w.Patch(s.User.ID, store.UserPatch{Phone: &phone, PhoneVerifiedAt: &at})
	body := url.Values{"token": {w.LinkToken(harness.AdaMail, auth.KindVerifyEmail)}, "disown": {"1"}}
	w.Do("POST", "/verify-email", body.Encode(), harness.Form, harness.Browser).Want(200)
	u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
	if err != nil || u.Email != "" || u.Phone != phone {
		t.Errorf("%+v, %v", u, err)
	}
}

// The holder of a verified number, who forgot the password, is told that the address is not
// confirmed yet. The account keeps it, and the link works once it is. A link of an operator or
// the application works at once, because they vouch for the address.
func TestHolderForgetsThePassword(t *testing.T) {
	const address = "ada@example.com"
	w := harness.NewWorld(t)
	id := w.Imported(auth.ImportUserParams{Email: address, Phone: harness.PhoneNumber, PhoneVerified: true, PasswordHash: harness.BcryptHash}).ID
	w.Do("POST", "/forgot-password", map[string]any{"email": address}).Want(200)
	body := map[string]any{"token": w.LinkToken(address, auth.KindResetPassword), "new_password": harness.OwnersPassword}
	w.Do("POST", "/reset-password", body).Want(403, auth.CodeEmailNotVerified)
	if shown := w.Page(w.Handler(), "GET", "/reset-password?token="+body["token"].(string), harness.Browser); shown.Status != 403 || !strings.Contains(string(shown.Body), "Nobody has confirmed this address") {
		t.Errorf("the page: %d %s", shown.Status, shown.Body)
	}
	at := w.Clock.Now()
	w.Patch(id, store.UserPatch{EmailVerifiedAt: &at})
	w.Do("POST", "/reset-password", body).Want(200)
	if s := w.PostLogin(address, harness.OwnersPassword).Session(); s.User.ID != id {
		t.Errorf("%+v", s.User)
	}
	other := w.Imported(auth.ImportUserParams{Email: "bob@example.com", Phone: "+4930777777", PhoneVerified: true}).ID
	if err := w.SendWelcome(t.Context(), auth.SendWelcomeParams{UserID: other}); err != nil {
		t.Fatal(err)
	}
	w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken("bob@example.com", auth.KindWelcome), "new_password": harness.OwnersPassword}).Want(200)
}

// A ban is the holder's: it does not keep a person out whose address or number the banned
// account named unverified.
func TestBannedAccountKeepsNoIdentifier(t *testing.T) {
	for name, signIn := range map[string]func(w *harness.World) *harness.Answer{
		"number": func(w *harness.World) *harness.Answer { return w.PostOTP(harness.PhoneNumber, w.NewCode("")) },
		"address": func(w *harness.World) *harness.Answer {
			return w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink(harness.AdaMail, nil)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t)
			id := w.Imported(auth.ImportUserParams{Email: harness.AdaMail, Phone: harness.PhoneNumber, EmailVerified: name == "number", PhoneVerified: name == "address", BannedUntil: w.Clock.Now().Add(24 * time.Hour)}).ID
			if s := signIn(w).Session(); s.User.ID == id {
				t.Errorf("the banned account: %+v", s.User)
			}
		})
	}
}
