package dashboard_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/passkey"
)

// After their session is revoked, a user is led to the sign-in page, not around in a
// circle, and can sign in again.
func TestEndedSession(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(), admin.Options{})
	b := o.signedIn("owner@example.com")
	if _, err := o.adm.EndSessions(t.Context(), admin.System("test").Accepting(), o.owner.ID, "lost"); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"/dashboard/sessions", "/dashboard/sign-in"} {
		b.get(at)
		if b.status != http.StatusOK || b.at.Path != "/dashboard/sign-in" {
			t.Fatalf("%s leads to %s, %d", at, b.at, b.status)
		}
	}
	b.post(b.at.RequestURI(), url.Values{"login": {"owner@example.com"}, "password": {authtest.Password}})
	b.want(http.StatusOK, "Overview")
}

// A sign-in by a provider also uses the dashboard's own cookies, and returns to the
// requested page.
func TestSignInByProvider(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	b := o.browser()
	b.get("/dashboard/users")
	b.get("/dashboard/sign-in/with/acme?return_to=%2Fdashboard%2Fusers")
	if strings.HasPrefix(b.at.String(), o.url) {
		t.Fatalf("the provider's page is %s: %s", b.at, b.text())
	}
	form := b.form()
	form.Set("person_email", "owner@example.com")
	form.Set("person_verified", "on")
	form.Set("choice", "go")
	b.header.Del("Sec-Fetch-Site")
	b.post(b.at.String(), form)
	b.want(http.StatusOK, "owner@example.com", "Invite")
	if b.at.Path != "/dashboard/users" {
		t.Errorf("the provider leads to %s", b.at)
	}
	b.get("/auth/v1/me")
	if b.status != http.StatusUnauthorized {
		t.Errorf("the sign-in opens /me: %d", b.status)
	}
}

// A link by mail signs in the browser that requested it, and shows another one its code.
func TestSignInByLink(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	b, other := o.browser(), o.browser()
	b.get("/dashboard/sign-in/mail")
	b.post("/dashboard/sign-in/mail", url.Values{"email": {"owner@example.com"}})
	b.want(http.StatusOK)
	link := o.Mail(t, "owner@example.com", auth.KindMagicLink).Link
	other.get(link)
	if f := other.form(); f.Has("token") {
		other.post(other.at.RequestURI(), f)
	}
	other.get("/dashboard/")
	if other.at.Path != "/dashboard/sign-in" {
		t.Fatalf("a browser that did not ask is signed in: %s", other.at)
	}
	b.header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	b.get(link)
	if f := b.form(); f.Has("token") {
		b.post(b.at.RequestURI(), f)
	}
	if b.at.Path != "/dashboard/" {
		t.Errorf("the link leads to %s: %.600s", b.at, b.text())
	}
}

// An operator whose passkey is no second factor is not led around in a circle: after showing
// the passkey, the operator sets up a second factor.
func TestOperatorWithAPlainPasskey(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{RequireMFA: auth.On}, auth.WithPasskeys(passkey.New(passkey.Options{})))
	key := authenticator.New(o.url)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	in, err := o.Login(t.Context(), auth.LoginParams{Email: "owner@example.com", Password: authtest.Password})
	must(err)
	claims, err := o.Verify(in.AccessToken)
	must(err)
	begun, err := o.BeginPasskey(t.Context(), auth.BeginPasskeyParams{Caller: claims.Caller()})
	must(err)
	credential, err := key.Create(begun.PublicKey)
	must(err)
	_, err = o.AddPasskey(t.Context(), auth.AddPasskeyParams{Caller: claims.Caller(), Credential: credential})
	must(err)

	b := o.browser()
	b.get("/dashboard/users")
	b.post(b.at.RequestURI(), url.Values{"login": {"owner@example.com"}, "password": {authtest.Password}})
	if b.at.Path != "/dashboard/sign-in/second" {
		t.Fatalf("an owner with a passkey is led to %s\n%s", b.at, b.text())
	}
	b.post("/dashboard/sign-in/second", url.Values{"do": {"passkey"}, "options": {""}})
	var options struct {
		PublicKey map[string]any `json:"public_key"`
	}
	must(json.Unmarshal([]byte(b.body), &options))
	assertion, err := key.Get(options.PublicKey)
	must(err)
	b.post("/dashboard/sign-in/second", url.Values{"do": {"passkey"}, "credential": {string(assertion)}})
	if b.at.Path != "/dashboard/second-factor" {
		t.Fatalf("an owner who has shown the passkey is led to %s\n%s", b.at, b.text())
	}
	b.post(b.at.RequestURI(), url.Values{})
	form := b.form()
	code, err := totp.GenerateCode(form.Get("secret"), o.Clock.Now())
	must(err)
	form.Set("code", code)
	form.Set("do", "enable")
	b.post("/dashboard/second-factor", form)
	b.want(http.StatusOK)
	b.get("/dashboard/users")
	if b.at.Path != "/dashboard/users" {
		t.Fatalf("an owner with a factor is led to %s", b.at)
	}
}
