package auth_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/provider"
)

// Operators are told of a provider what it answers now: whether it is there, and how many
// keys it has where it has any; what is remembered of it counts for nothing.
func TestProvidersAreReached(t *testing.T) {
	none := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[]}`)) }))
	t.Cleanup(none.Close)
	idp := authtest.StartProvider(t)
	named := func(p provider.Provider, name string, edit func(p *provider.Provider)) provider.Provider {
		p.Name = name
		edit(&p)
		return p
	}
	w := newWorld(t, auth.WithProvider(
		idp.OIDC("discovered"), idp.Google(), idp.GitHub(),
		named(idp.Google(), "keyless", func(p *provider.Provider) { p.JWKSURL = none.URL }),
		named(idp.Google(), "locked", func(p *provider.Provider) {
			p.ClientSecret = ""
			p.Secret = func(*provider.Provider, time.Time) (string, error) { return "", errors.New("the key s3cr3t is locked") }
		}),
	))
	idp.Now = w.Clock.Now
	w.visitor(idp).signIn("discovered", ada, "").session() // from here on its document is remembered
	kit := host.Of(w)
	if !kit.HasProvider("google") || kit.HasProvider("other") {
		t.Error("it is not known which providers there are")
	}
	for fault, all := range map[authtest.Fault]map[string]struct{ detail, fails string }{
		authtest.NoFault: {
			"discovered": {"it answers; 1 keys", ""}, "google": {"it answers; 1 keys", ""}, "github": {"it answers; it has no keys to read", ""},
			"keyless": {"", "it publishes no key that can be used"}, "locked": {"", "the client secret cannot be made"},
		},
		authtest.ServerError: {
			"discovered": {"", "status 500"}, "google": {"", "keys: "},
		},
		authtest.Garbage: {"discovered": {"", "malformed JSON"}, "google": {"", "keys: "}},
	} {
		idp.Misbehave(fault)
		for name, want := range all {
			detail, err := kit.ReachProvider(t.Context(), name)
			if detail != want.detail || (err != nil) != (want.fails != "") || err != nil && (!strings.Contains(err.Error(), want.fails) || strings.Contains(err.Error(), "s3cr3t")) {
				t.Errorf("%s, %s: %q, %v", fault, name, detail, err)
			}
		}
	}
}
