package passkey_test

import (
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/store"
)

// wrongCodes enters wrong codes for an address until one of them gets another answer, and
// returns their number and that answer.
func (w *world) wrongCodes(email string) string {
	w.t.Helper()
	sent, err := w.SendMagicLink(w.t.Context(), auth.SendMagicLinkParams{Email: email})
	w.must(err)
	for i := range 20 {
		_, err = w.VerifyMagicLink(w.t.Context(), auth.VerifyMagicLinkParams{Email: email, Code: "000000", RequestID: sent.RequestID})
		if !errors.Is(err, auth.CodeInvalidCode) {
			return fmt.Sprint(i, " ", err)
		}
	}
	return "none"
}

// While links are off, wrong codes do not tell which addresses have an account with another
// sign-in method.
func TestWrongCodesTellNothing(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{MagicLink: auth.Off}))
	has, none := w.wrongCodes("ada@example.com"), w.wrongCodes("nobody@example.com")
	if has != none {
		t.Errorf("an account: %s; nobody: %s", has, none)
	}
}

// A stranger's account with a verified phone number does not keep the owner of its unverified
// address from signing up, while links are off.
func TestSquatterDoesNotBlockSignUp(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{MagicLink: auth.Off}))
	who := w.LoginAs(t, "owner@example.com")
	phone, now, none := "+4915112345678", w.Clock.Now(), time.Time{}
	_, err := w.Store.UpdateUser(t.Context(), store.UpdateUser{
		Change: store.Change{Now: now, By: auth.Authority{System: "test"}}, UserID: who.User.ID, Patch: store.UserPatch{Phone: &phone, PhoneVerifiedAt: &now, EmailVerifiedAt: &none},
	})
	w.must(err)
	w.Inbox.Clear()
	sent, err := w.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "owner@example.com"})
	w.must(err)
	m := w.Mail(t, "owner@example.com", auth.KindMagicLink)
	tokens, err := w.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Email: "owner@example.com", Code: m.Code, RequestID: sent.RequestID})
	if err != nil {
		t.Errorf("the mailed code: %v", err)
		link, _ := url.Parse(m.Link)
		tokens, err = w.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: link.Query().Get("token")})
	}
	if err != nil {
		t.Fatalf("the mailed link: %v", err)
	}
	if tokens.User.ID == who.User.ID {
		t.Error("the address's owner got the stranger's account")
	}
}

// Nor does a stranger's account that has the address and a password, but never verified it.
func TestUnverifiedAccountDoesNotBlockSignUp(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{MagicLink: auth.Off}))
	_, err := w.SignUp(t.Context(), auth.SignUpParams{Email: "owner@example.com", Password: authtest.Password})
	w.must(err)
	w.Inbox.Clear()
	sent, err := w.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "owner@example.com"})
	w.must(err)
	tokens, err := w.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{
		Email: "owner@example.com", Code: w.Mail(t, "owner@example.com", auth.KindMagicLink).Code, RequestID: sent.RequestID,
	})
	w.must(err)
	w.ada.Tokens = *tokens
	_, err = w.add(false)
	w.must(err)
	_, err = w.Login(t.Context(), auth.LoginParams{Email: "owner@example.com", Password: authtest.Password})
	w.want(err, auth.CodeInvalidCredentials) // the stranger's
}

// silent adds a passkey that the browser created by itself.
func (w *world) silent() *auth.AddedPasskey {
	w.t.Helper()
	begun, err := w.BeginPasskey(w.t.Context(), auth.BeginPasskeyParams{Caller: w.caller(), Conditional: true})
	w.must(err)
	w.key.Flags = 0
	response, err := w.key.Create(begun.PublicKey)
	w.must(err)
	w.key.Flags = authenticator.UserPresent | authenticator.UserVerified
	added, err := w.AddPasskey(w.t.Context(), auth.AddPasskeyParams{Caller: w.caller(), Credential: response})
	w.must(err)
	return added
}

// A recovery code makes no device trusted, also after a passkey that is the first factor.
func TestRecoveryCodeAfterPasskeyTrustsNoDevice(t *testing.T) {
	w := newWorld(t, auth.WithMFA(auth.MFAOptions{TrustDevices: 24 * time.Hour}))
	w.silent()
	own := w.key
	w.key = authenticator.New(origin)
	second, err := w.add(true)
	w.must(err)
	w.key = own
	ctx := auth.ContextWithClient(t.Context(), auth.Client{Device: "3f0c2a52-6b7c-4ee1-9a55-7f4d3c1b2a19"})
	_, err = w.FinishPasskeySignIn(ctx, w.begin())
	w.want(err, auth.CodeMFARequired)
	var e *auth.Error
	errors.As(err, &e)
	_, err = w.VerifyMFA(ctx, auth.VerifyMFAParams{MFAToken: e.MFAToken, RecoveryCode: second.RecoveryCodes[0], TrustDevice: true})
	w.must(err)
	_, err = w.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	w.want(err, auth.CodeMFARequired)
}
