package signin_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
)

// The label of an otpauth URI is "issuer:account", so that a colon in the application's name
// would end the issuer, and the issuer parameter has to equal it.
func TestAuthenticatorLabelOfAnyName(t *testing.T) {
	for name, want := range map[string]string{
		"Acme: Billing": "Acme Billing", "a:b:c": "a b c", ":": "auth.test", "Größe：2": "Größe 2", "Acme & Söhne/50% #1?": "Acme & Söhne/50% #1?", "Acme": "Acme",
	} {
		w := harness.NewWorld(t, auth.WithMail(auth.MailOptions{AppName: name}))
		s := w.PostSignUp(harness.AdaMail)
		setup := harness.DecodeAs[struct{ URI string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(s.AccessToken)).Want(200))
		u, err := url.Parse(setup.URI)
		if err != nil {
			t.Fatal(err)
		}
		label, err := url.PathUnescape(strings.TrimPrefix(u.EscapedPath(), "/"))
		if err != nil || label != want+":"+harness.AdaMail || u.Query().Get("issuer") != want {
			t.Errorf("%q: %s", name, setup.URI)
		}
	}
}
