package passkey_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/passkey"
	"github.com/authmount/auth/store"
)

// token returns the token of the newest link to an address.
func (w *world) token(to string, k auth.Kind) string {
	w.t.Helper()
	link, err := url.Parse(w.Mail(w.t, to, k).Link)
	w.must(err)
	return link.Query().Get("token")
}

// onlyPasskeys removes the password of ada's account.
func (w *world) onlyPasskeys() {
	w.t.Helper()
	_, err := w.Store.UpdateUser(w.t.Context(), store.UpdateUser{
		Change: store.Change{Now: w.Clock.Now(), By: auth.Authority{System: "test"}}, UserID: w.ada.User.ID, Patch: store.UserPatch{PasswordHash: new(string)},
	})
	w.must(err)
}

// Who lost the only passkey gets in again by mail, also while links are switched off. Others
// get no link then, and nobody learns which addresses do.
func TestLostPasskey(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{MagicLink: auth.Off, SignUp: auth.Off}))
	w.LoginAs(t, "ben@example.com")
	_, err := w.add(false)
	w.must(err)
	w.onlyPasskeys()
	w.Inbox.Clear()
	for _, to := range []string{"ada@example.com", "ben@example.com", "nobody@example.com"} {
		sent, err := w.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: to})
		w.must(err)
		if sent.RequestID == "" {
			t.Errorf("%s: another answer", to)
		}
	}
	tokens, err := w.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: w.token("ada@example.com", auth.KindMagicLink)})
	w.must(err)
	if tokens.User.ID != w.ada.User.ID {
		t.Errorf("%+v", tokens.User)
	}
	for _, m := range w.Inbox.Messages() {
		if m.To != "ada@example.com" {
			t.Errorf("%s got %s", m.To, m.Kind)
		}
	}
	w.ada.Tokens = *tokens
	w.key = authenticator.New(origin)
	if _, err := w.add(false); err != nil { // a new one
		t.Error(err)
	}
}

// A second factor is asked for after the link.
func TestLostPasskeyWithFactor(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{MagicLink: auth.Off}))
	added, err := w.add(true)
	w.must(err)
	w.onlyPasskeys()
	_, err = w.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "ada@example.com"})
	w.must(err)
	_, err = w.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: w.token("ada@example.com", auth.KindMagicLink)})
	w.want(err, auth.CodeMFARequired)
	var e *auth.Error
	errors.As(err, &e)
	_, err = w.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: e.MFAToken, RecoveryCode: added.RecoveryCodes[0]})
	w.must(err)
}

// A sign-up with a passkey verifies the address first, also while links are switched off.
func TestSignUpWithPasskey(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{MagicLink: auth.Off}))
	sent, err := w.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "new@example.com"})
	w.must(err)
	tokens, err := w.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Email: "new@example.com", Code: w.Mail(t, "new@example.com", auth.KindMagicLink).Code, RequestID: sent.RequestID})
	w.must(err)
	// Who leaves before the passkey is added comes back in the same way.
	w.Clock.Advance(time.Hour)
	w.Inbox.Clear()
	sent, err = w.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "new@example.com"})
	w.must(err)
	first := tokens.User.ID
	tokens, err = w.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Email: "new@example.com", Code: w.Mail(t, "new@example.com", auth.KindMagicLink).Code, RequestID: sent.RequestID})
	w.must(err)
	if tokens.User.ID != first {
		t.Errorf("another account: %+v", tokens.User)
	}
	w.ada.Tokens = *tokens
	_, err = w.add(false)
	w.must(err)
	again, err := w.signIn()
	w.must(err)
	if again.User.Email != "new@example.com" {
		t.Errorf("%+v", again.User)
	}
}

// Parallel first passkeys of a service all succeed.
func TestParallelFirstPasskeys(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	for i := range 4 {
		in := w.LoginAs(t, fmt.Sprintf("user%d@example.com", i))
		wg.Go(func() {
			claims, err := w.Verify(in.AccessToken)
			if err != nil {
				t.Error(err)
				return
			}
			begun, err := w.BeginPasskey(t.Context(), auth.BeginPasskeyParams{Caller: claims.Caller()})
			if err != nil {
				t.Error(err)
				return
			}
			credential, err := authenticator.New(origin).Create(begun.PublicKey)
			if err == nil {
				_, err = w.AddPasskey(t.Context(), auth.AddPasskeyParams{Caller: claims.Caller(), Credential: credential})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// Two passkeys that are added to one account at once: both, or one of them with an error to
// repeat.
func TestParallelPasskeysOfOneAccount(t *testing.T) {
	w := newWorld(t)
	by := w.caller()
	var wg sync.WaitGroup
	var failed atomic.Int32
	for range 4 {
		begun, err := w.BeginPasskey(t.Context(), auth.BeginPasskeyParams{Caller: by})
		w.must(err)
		credential, err := authenticator.New(origin).Create(begun.PublicKey)
		w.must(err)
		wg.Go(func() {
			if _, err := w.AddPasskey(t.Context(), auth.AddPasskeyParams{Caller: by, Credential: credential}); err != nil {
				failed.Add(1)
				var e *auth.Error
				if !errors.As(err, &e) || e.Status >= 500 && e.Code != auth.CodeUnavailable {
					t.Errorf("%v", err)
				}
			}
		})
	}
	wg.Wait()
	list, err := w.ListPasskeys(t.Context(), by)
	w.must(err)
	if len(list.Passkeys) != 4-int(failed.Load()) || len(list.Passkeys) == 0 {
		t.Errorf("%d passkeys, %d errors", len(list.Passkeys), failed.Load())
	}
}

func TestLastSignInMethodStays(t *testing.T) {
	w := newWorld(t)
	added, err := w.add(false)
	w.must(err)
	w.onlyPasskeys()
	remove := auth.RemovePasskeyParams{Caller: w.caller(), ID: added.Passkey.ID}
	w.want(w.RemovePasskey(t.Context(), remove), auth.CodeLastSignInMethod)
	w.key = authenticator.New(origin)
	_, err = w.add(false)
	w.must(err)
	w.must(w.RemovePasskey(t.Context(), remove))
}

// The account recovery link removes the passkeys that the reported session added, and no
// others.
func TestRecoveryLinkRemovesNewPasskeys(t *testing.T) {
	w := newWorld(t)
	_, err := w.add(false) // the owner's
	w.must(err)
	own := w.key
	w.Clock.Advance(time.Hour)
	thief, err := w.Login(auth.ContextWithClient(t.Context(), auth.Client{Device: "of a thief"}), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	w.must(err)
	w.ada.Tokens = *thief
	for range 3 {
		w.key = authenticator.New(origin)
		_, err = w.add(false)
		w.must(err)
	}
	thiefs := w.begin()
	other := authtest.NewOn(t, w.Store, auth.WithClock(w.Clock.Now)) // an instance without passkeys
	w.must(other.SecureAccount(t.Context(), auth.SecureAccountParams{Token: w.token("ada@example.com", auth.KindNewDevice)}))
	if _, err := w.FinishPasskeySignIn(t.Context(), thiefs); err == nil {
		t.Error("the thief's passkey works")
	}
	w.key = own
	_, err = w.signIn()
	w.must(err)
	list, err := w.ListPasskeys(t.Context(), auth.ByApplication(w.ada.User.ID))
	w.must(err)
	if len(list.Passkeys) != 1 {
		t.Errorf("%d passkeys, want the owner's", len(list.Passkeys))
	}
}

// A passkey is added in a session of its holder, and not by the application.
func TestApplicationAddsNoPasskey(t *testing.T) {
	w := newWorld(t)
	application := auth.ByApplication(w.ada.User.ID)
	_, err := w.BeginPasskey(t.Context(), auth.BeginPasskeyParams{Caller: application})
	w.want(err, auth.CodeValidationFailed)
	credential, err := w.key.Create(mustBegin(w).PublicKey)
	w.must(err)
	_, err = w.AddPasskey(t.Context(), auth.AddPasskeyParams{Caller: application, Credential: credential})
	w.want(err, auth.CodeValidationFailed)
	list, err := w.ListPasskeys(t.Context(), application)
	w.must(err)
	if len(list.Passkeys) > 0 {
		t.Errorf("%+v", list.Passkeys)
	}
}

// The holder accepts permissions of an operator with a passkey, which stays.
func TestAcceptanceKeepsThePasskeyThatIsUsed(t *testing.T) {
	w := newWorld(t)
	_, err := w.add(false)
	w.must(err)
	used := w.key
	w.key = authenticator.New(origin)
	_, err = w.add(false) // somebody else's, perhaps
	w.must(err)
	adm, err := admin.New(t.Context(), w.Auth, admin.Options{RequireMFA: auth.Off})
	w.must(err)
	_, err = adm.Grant(t.Context(), admin.System("test"), admin.GrantParams{UserID: w.ada.User.ID, Role: "admin"})
	w.must(err)
	_, err = adm.Send(t.Context(), admin.System("test"), admin.SendParams{UserID: w.ada.User.ID, Type: admin.LinkAccept})
	w.must(err)
	token := w.token("ada@example.com", auth.KindInvitation)
	begun, err := w.BeginPasskeyFactor(t.Context(), auth.BeginPasskeyFactorParams{InvitationToken: token})
	w.must(err)
	response, err := used.Get(begun.PublicKey)
	w.must(err)
	tokens, err := w.AcceptInvitation(t.Context(), auth.AcceptInvitationParams{Token: token, Passkey: response})
	w.must(err)
	if claims := w.claims(tokens); claims.AAL != "aal2" || len(claims.Roles) != 1 {
		t.Errorf("%+v", claims)
	}
	_, err = w.signIn()
	w.want(err, auth.CodeInvalidPasskey)
	w.key = used
	_, err = w.signIn()
	w.must(err)
	_, err = w.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	w.want(err, auth.CodeInvalidCredentials)
}

// Another RP ID than that of stored passkeys is refused.
func TestAnotherRPID(t *testing.T) {
	st := harness.NewStore(t)
	w := &world{t: t, key: authenticator.New(origin)}
	w.Env = authtest.NewOn(t, st, auth.WithPasskeys(passkey.New(passkey.Options{})))
	w.ada = w.LoginAs(t, "ada@example.com")
	_, err := w.add(false)
	w.must(err)
	start := func(o passkey.Options) error {
		a, err := auth.New(t.Context(), st, auth.WithSecret([]byte("4f1d0f0c8b1a7e6d5c4b3a29181706f5")), auth.WithBaseURL("https://app.auth.test/auth/v1"),
			auth.WithMailer(noMail{}), auth.WithPasskeys(passkey.New(o)))
		if err == nil {
			w.must(a.Close(t.Context()))
		}
		return err
	}
	for name, c := range map[string]struct {
		o    passkey.Options
		want string
	}{
		"another":        {passkey.Options{}, `"auth.test"`},
		"as before":      {passkey.Options{RPID: "auth.test"}, ""},
		"allowed":        {passkey.Options{OtherRPID: true}, ""},
		"a suffix":       {passkey.Options{RPID: "test"}, "public suffix"},
		"elsewhere":      {passkey.Options{RPID: "example.com"}, "not in the domain"},
		"an address":     {passkey.Options{RPID: "127.0.0.1"}, "address"},
		"no origin":      {passkey.Options{Origins: []string{"https://a.test/x"}}, "origin"},
		"no hash":        {passkey.Options{AndroidApps: []string{"android:apk-key-hash:x"}}, "SHA-256"},
		"no AAGUID":      {passkey.Options{Authenticators: []string{"x"}}, "AAGUID"},
		"no metadata":    {passkey.Options{Authenticators: []string{"fbfc3007-154e-4ecc-8c0b-6e020557d7bd"}}, "Metadata"},
		"http elsewhere": {passkey.Options{Origins: []string{"http://a.test"}}, "origin"},
	} {
		if err := start(c.o); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWellKnown(t *testing.T) {
	a := authtest.New(t, auth.WithPasskeys(passkey.New(passkey.Options{RPID: "auth.test", Origins: []string{"https://app.auth.test", "https://other.test"}})))
	get := func(path string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		a.WellKnown().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return rec
	}
	if rec := get("/.well-known/webauthn"); rec.Code != 200 || strings.TrimSpace(rec.Body.String()) != `{"origins":["https://other.test"]}` || !strings.HasPrefix(rec.Header().Get("Content-Type"), "application/json") {
		t.Errorf("%d %q %v", rec.Code, rec.Body, rec.Header())
	}
	for _, path := range []string{"/.well-known/passkey-endpoints", "/.well-known/change-password"} { // there is no account page
		if rec := get(path); rec.Code != 404 {
			t.Errorf("%s: %d", path, rec.Code)
		}
	}
}

type noMail struct{}

func (noMail) Send(context.Context, auth.Message) error { return nil }
