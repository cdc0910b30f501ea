package passkey_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/passkey"
)

// An operator who acts as a user cannot touch the user's passkeys, in Go either.
func TestActingOperatorTouchesNoPasskey(t *testing.T) {
	w := newWorld(t)
	added, err := w.add(false)
	w.must(err)
	adm, err := admin.New(t.Context(), w.Auth, admin.Options{})
	w.must(err)
	op := w.LoginAs(t, "op@example.com", authtest.Permissions(admin.PermImpersonate, "auth.users.read"), authtest.AAL2())
	acts, err := adm.Impersonate(t.Context(), admin.User(auth.Caller{UserID: op.User.ID, SessionID: op.SessionID}), admin.ImpersonateParams{UserID: w.ada.User.ID, Reason: "test"})
	w.must(err)
	claims, err := w.Verify(acts.AccessToken)
	w.must(err)
	by := claims.Caller()
	yes := true
	_, err = w.BeginPasskey(t.Context(), auth.BeginPasskeyParams{Caller: by})
	if err == nil {
		t.Error("begin")
	}
	_, err = w.ListPasskeys(t.Context(), by)
	if err == nil {
		t.Error("list")
	}
	begun, err := w.BeginPasskeyFactor(t.Context(), auth.BeginPasskeyFactorParams{Caller: by})
	if err == nil {
		t.Error("begin factor", begun)
	}
	if _, err = w.ChangePasskey(t.Context(), auth.ChangePasskeyParams{Caller: by, ID: added.Passkey.ID, SecondFactor: &yes}); err == nil {
		t.Error("change")
	}
	if w.RemovePasskey(t.Context(), auth.RemovePasskeyParams{Caller: by, ID: added.Passkey.ID}) == nil {
		t.Error("remove")
	}
	for _, b := range []auth.Caller{by, {UserID: by.UserID, SessionID: by.SessionID}} { // the mark of the operator left out
		p := w.begin()
		if _, err := w.Confirm(t.Context(), auth.ConfirmParams{Caller: b, Passkey: p.Credential}); err == nil {
			t.Error("confirm")
		}
		if _, err := w.StepUp(t.Context(), auth.StepUpParams{Caller: b, Passkey: p.Credential}); err == nil {
			t.Error("step up")
		}
		if _, err := w.BeginPasskey(t.Context(), auth.BeginPasskeyParams{Caller: b}); err == nil {
			t.Error("begin")
		}
	}
}

// Support does not remove the passkeys of somebody with more permissions, and the attempt is recorded.
func TestSupportRemovesNoPasskeyOfAnOwner(t *testing.T) {
	n := 0
	w := newWorld(t, auth.WithHooks(auth.Hooks{OnEvent: func(_ context.Context, e auth.Event) {
		if e.Type == auth.EventAdminDenied && e.Record != nil {
			n++
		}
	}}))
	w.ada = w.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner))
	added, err := w.add(true)
	w.must(err)
	adm, err := admin.New(t.Context(), w.Auth, admin.Options{})
	w.must(err)
	op := w.LoginAs(t, "op@example.com", authtest.Permissions("auth.users.read", "auth.credentials"), authtest.AAL2())
	who := admin.User(auth.Caller{UserID: op.User.ID, SessionID: op.SessionID})
	for _, id := range []string{added.Passkey.ID, ""} {
		_, err = adm.RemoveFactor(t.Context(), who, admin.RemoveFactorParams{UserID: w.ada.User.ID, FactorID: id, Reason: "test"})
		w.want(err, auth.CodeTargetStronger)
	}
	if n != 2 {
		t.Errorf("%d refused attempts recorded", n)
	}
}

// The passkey of an account that is gone, or is somebody else's now, signs in nowhere.
func TestPasskeyOfAFormerAccount(t *testing.T) {
	setup := func(t *testing.T) (*world, *admin.Admin) {
		w := newWorld(t)
		_, err := w.add(false)
		w.must(err)
		adm, err := admin.New(t.Context(), w.Auth, admin.Options{})
		w.must(err)
		return w, adm
	}
	t.Run("deleted and created again", func(t *testing.T) {
		w, adm := setup(t)
		w.must(adm.DeleteUser(t.Context(), admin.System("test"), admin.DeleteUserParams{UserID: w.ada.User.ID, Reason: "test"}))
		if err := w.as(w.key); err == nil {
			t.Error("signed in to a deleted account")
		}
		w.ada = w.LoginAs(t, "ada@example.com")
		if err := w.as(w.key); err == nil {
			t.Error("signed in to a new account")
		}
	})
	t.Run("anonymised", func(t *testing.T) {
		w, adm := setup(t)
		_, err := adm.AnonymizeUser(t.Context(), admin.System("test"), admin.AnonymizeUserParams{UserID: w.ada.User.ID, Reason: "test"})
		w.must(err)
		if err := w.as(w.key); err == nil {
			t.Error("signed in")
		}
		f, err := adm.Factors(t.Context(), admin.System("test"), w.ada.User.ID)
		w.must(err)
		if len(f) > 0 {
			t.Errorf("%d factors left", len(f))
		}
	})
	t.Run("address set by an operator, verified by its owner", func(t *testing.T) {
		w, adm := setup(t)
		other, no := "victim@example.com", false
		_, err := adm.UpdateUser(t.Context(), admin.System("test"), admin.UpdateUserParams{UserID: w.ada.User.ID, Email: &other, EmailVerified: &no})
		w.must(err)
		_, err = w.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: other})
		w.must(err)
		in, err := w.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: w.token(other, auth.KindMagicLink)})
		w.must(err)
		own := w.key
		got, err := w.signIn()
		if err == nil && got.User.ID == in.User.ID {
			t.Errorf("the former holder's passkey signs in to %s", got.User.Email)
		}
		w.key = own
	})
	t.Run("banned", func(t *testing.T) {
		w, adm := setup(t)
		_, err := adm.BanUser(t.Context(), admin.System("test"), admin.BanUserParams{UserID: w.ada.User.ID, Reason: "test"})
		w.must(err)
		good := cloned(w.key)
		bad := cloned(w.key)
		bad.Flags = authenticator.UserPresent
		w.want(w.as(bad), auth.CodeInvalidPasskey) // tells nothing without a proof
		w.want(w.as(good), auth.CodeUserBanned)
	})
}

// Origins that look like a listed one, or are on the same RP ID.
func TestOriginsOfASharedRPID(t *testing.T) {
	w := &world{t: t, key: authenticator.New(origin)}
	hash := base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	w.Env = authtest.NewOn(t, harness.NewStore(t), auth.WithBaseURL("https://login.example.com:8443/auth/v1"),
		auth.WithPasskeys(passkey.New(passkey.Options{RPID: "example.com", Origins: []string{"https://app.example.com", "https://example.net"}, AndroidApps: []string{"android:apk-key-hash:" + hash}})))
	w.ada = w.LoginAs(t, "ada@example.com")
	w.key.Origin = "https://login.example.com:8443"
	_, err := w.add(false)
	w.must(err)
	for _, o := range []string{
		"https://login.example.com", "https://login.example.com:443", "https://login.example.com:8444", "http://login.example.com:8443", "https://example.com", "https://x.app.example.com",
		"http://app.example.com", "http://app.example.com:443", "https://app.example.com:8443", "https://app.example.com.", "https://app.example.com.evil.test", "https://app.example.com@evil.test",
		"https://evil.test#https://app.example.com", "https://evil.test?.example.com", "https://sub.example.net", "null", "", "file://", "android:apk-key-hash:" + strings.ToUpper(hash), "android:apk-key-hash:" + hash + "=",
		"ios:bundle-id:com.example", "https://app.exаmple.com", "https://", "https:app.example.com", "https:/app.example.com",
	} {
		key := cloned(w.key)
		key.Origin = o
		if err := w.as(key); !errors.Is(err, auth.CodeInvalidPasskey) {
			t.Errorf("%q: %v", o, err)
		}
	}
	for _, o := range []string{"https://login.example.com:8443", "https://app.example.com", "https://example.net", "android:apk-key-hash:" + hash} {
		key := cloned(w.key)
		key.Origin = o
		w.must(w.as(key))
	}
}

// Two services on one RP ID, with one user: an assertion for one is none for the other.
func TestRelayBetweenServicesOfOneRPID(t *testing.T) {
	w, first, _, out := moving(t)
	to := arrival(t, passkey.Options{})
	_, err := to.ImportUser(t.Context(), out)
	w.must(err)
	begun, err := w.BeginPasskeySignIn(t.Context())
	w.must(err)
	response, err := first.Get(begun.PublicKey)
	w.must(err)
	_, err = to.FinishPasskeySignIn(t.Context(), auth.FinishPasskeySignInParams{RequestID: begun.RequestID, Credential: response})
	w.want(err, auth.CodeInvalidPasskey)
	_, err = w.FinishPasskeySignIn(t.Context(), auth.FinishPasskeySignInParams{RequestID: begun.RequestID, Credential: response})
	w.must(err)
}

// A passkey's session keeps its level and methods over a refresh, and is recent for 15 minutes.
func TestRefreshAfterPasskey(t *testing.T) {
	w := newWorld(t)
	_, err := w.add(false)
	w.must(err)
	in, err := w.signIn()
	w.must(err)
	fresh := w.Require(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), auth.FreshAuth(15*time.Minute), auth.AAL2())
	opens := func(in *auth.Tokens) bool {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+in.AccessToken)
		rec := httptest.NewRecorder()
		fresh.ServeHTTP(rec, r)
		return rec.Code == http.StatusOK
	}
	if !opens(in) {
		t.Error("a new sign-in is not recent")
	}
	for range 2 {
		w.Clock.Advance(8 * time.Minute)
		in, err = w.Refresh(t.Context(), auth.RefreshParams{RefreshToken: in.RefreshToken})
		w.must(err)
	}
	if c := w.claims(in); c.AAL != "aal2" || len(c.AMR) != 1 || opens(in) {
		t.Errorf("%+v, recent %v", c, opens(in))
	}
	w.ada.Tokens = *in
	_, err = w.BeginPasskey(t.Context(), auth.BeginPasskeyParams{Caller: w.caller()})
	w.want(err, auth.CodeReauthNeeded)
	for range 30 { // the list of methods does not grow
		w.must(w.confirms(w.key))
	}
	in, err = w.Refresh(t.Context(), auth.RefreshParams{RefreshToken: in.RefreshToken})
	w.must(err)
	if c := w.claims(in); len(c.AMR) > 2 || !opens(in) {
		t.Errorf("%+v", c.AMR)
	}
}

// No way leads from a passkey without verification of the user, alone, to the second level.
func TestNoVerificationNoSecondLevel(t *testing.T) {
	w := newWorld(t, auth.WithMFA(auth.MFAOptions{TrustDevices: 24 * time.Hour}))
	w.silent()
	ctx := auth.ContextWithClient(t.Context(), auth.Client{Device: "3f0c2a52-6b7c-4ee1-9a55-7f4d3c1b2a19"})
	in, err := w.FinishPasskeySignIn(ctx, w.begin())
	w.must(err)
	in, err = w.Refresh(ctx, auth.RefreshParams{RefreshToken: in.RefreshToken})
	w.must(err)
	by := w.claims(in).Caller()
	begun, err := w.BeginPasskeyFactor(ctx, auth.BeginPasskeyFactorParams{Caller: by})
	w.must(err)
	response, err := w.key.Get(begun.PublicKey)
	w.must(err)
	if up, err := w.StepUp(ctx, auth.StepUpParams{Caller: by, Passkey: response}); err == nil && w.claims(up).AAL != "aal1" {
		t.Error("step up by the same passkey")
	}
	w.ada.Tokens = *in
	second := authenticator.New(origin)
	own := w.key
	w.key = second
	_, err = w.add(false) // in a session of one factor, a second passkey by hand
	w.must(err)
	w.key = own
	for _, flags := range []byte{authenticator.UserPresent, authenticator.UserVerified, 0, synced &^ authenticator.UserVerified} {
		w.key.Flags = flags
		_, err = w.signIn()
		w.want(err, auth.CodeInvalidPasskey)
		w.want(w.confirms(w.key), auth.CodeInvalidPasskey)
	}
}

// A session that turns a passkey into a second factor and back again fills no audit log.
func TestTogglesFillNoAuditLog(t *testing.T) {
	w := newWorld(t)
	added, err := w.add(false)
	w.must(err)
	in, err := w.signIn()
	w.must(err)
	w.ada.Tokens = *in
	n := 0
	for i := range 400 {
		yes := i%2 == 0
		if _, err = w.ChangePasskey(t.Context(), auth.ChangePasskeyParams{Caller: w.caller(), ID: added.Passkey.ID, SecondFactor: &yes}); err != nil {
			break
		}
		n++
	}
	w.want(err, auth.CodeRateLimited)
	if n < 20 { // nobody who changes their mind is refused
		t.Errorf("refused after %d", n)
	}
	no := false
	_, err = w.ChangePasskey(t.Context(), auth.ChangePasskeyParams{Caller: auth.ByApplication(w.ada.User.ID), ID: added.Passkey.ID, SecondFactor: &no})
	w.must(err)
}

// A session that adds and removes passkeys sends a bounded number of mails, and after a change of
// the address to the new one.
func TestNoticesAreBounded(t *testing.T) {
	w := newWorld(t)
	_, err := w.UpdateMe(t.Context(), auth.UpdateMeParams{Caller: w.caller(), Email: new("new@example.com")})
	w.must(err)
	_, err = w.VerifyEmail(t.Context(), auth.VerifyEmailParams{Token: w.token("new@example.com", auth.KindChangeEmail), Within: w.caller()})
	w.must(err)
	w.Mail(t, "ada@example.com", auth.KindEmailChanged)
	for range 25 {
		w.key = authenticator.New(origin)
		added, err := w.add(false)
		w.must(err)
		w.must(w.RemovePasskey(t.Context(), auth.RemovePasskeyParams{Caller: w.caller(), ID: added.Passkey.ID}))
	}
	w.Mail(t, "new@example.com", auth.KindPasskeyAdded)
	w.Mail(t, "new@example.com", auth.KindPasskeyRemoved)
	n := map[auth.Kind]int{}
	for _, m := range w.Inbox.Messages() {
		if n[m.Kind]++; m.To == "ada@example.com" && (m.Kind == auth.KindPasskeyAdded || m.Kind == auth.KindPasskeyRemoved) {
			t.Errorf("%s to the former address", m.Kind)
		}
	}
	if n[auth.KindPasskeyAdded] > 20 || n[auth.KindPasskeyRemoved] > 20 {
		t.Error(n)
	}
}

// A secret key with all permissions is no user with passkeys.
func TestSecretKeyTouchesNoPasskey(t *testing.T) {
	w := newWorld(t)
	added, err := w.add(false)
	w.must(err)
	adm, err := admin.New(t.Context(), w.Auth, admin.Options{})
	w.must(err)
	key, err := adm.CreateKey(t.Context(), admin.System("test"), admin.CreateKeyParams{Name: "all", Scopes: []string{"auth.*"}})
	w.must(err)
	for _, route := range []string{
		"GET /me/passkeys", "POST /me/passkeys/begin", "POST /me/passkeys", "PATCH /me/passkeys/" + added.Passkey.ID, "DELETE /me/passkeys/" + added.Passkey.ID,
		"POST /2fa/passkey", "POST /me/confirm", "POST /2fa/recovery-codes",
	} {
		method, path, _ := strings.Cut(route, " ")
		r := httptest.NewRequestWithContext(t.Context(), method, authtest.BaseURL+path, strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+key.Secret.Reveal())
		rec := httptest.NewRecorder()
		w.Handler().ServeHTTP(rec, r)
		if rec.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", route, rec.Code, rec.Body)
		}
	}
}
