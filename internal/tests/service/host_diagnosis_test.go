package service_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// The diagnosis of a provider uses its present answer: whether it is reachable, and how many
// keys it has where it has any. Cached data does not count.
func TestProvidersAreReached(t *testing.T) {
	none := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[]}`)) }))
	t.Cleanup(none.Close)
	idp := authtest.StartProvider(t)
	named := func(p provider.Provider, name string, edit func(p *provider.Provider)) provider.Provider {
		p.Name = name
		edit(&p)
		return p
	}
	w := harness.NewWorld(t, auth.WithProvider(
		idp.OIDC("discovered"), idp.Google(), idp.GitHub(),
		named(idp.Google(), "keyless", func(p *provider.Provider) { p.JWKSURL = none.URL }),
		named(idp.Google(), "locked", func(p *provider.Provider) {
			p.ClientSecret = ""
			p.Secret = func(*provider.Provider, time.Time) (string, error) { return "", errors.New("the key s3cr3t is locked") }
		}),
	))
	idp.Now = w.Clock.Now
	w.NewVisitor(idp).SignIn("discovered", harness.Ada, "").Session() // from here on its document is remembered
	kit := host.Of(w)
	if !kit.HasProvider("google") || kit.HasProvider("other") {
		t.Error("it is not known which providers there are")
	}
	for fault, all := range map[authtest.Fault]map[string]struct{ detail, fails string }{
		authtest.NoFault: {
			"discovered": {"it answers; 1 keys", ""}, "google": {"it answers; 1 keys", ""}, "github": {"it answers; it has no keys to read", ""},
			"keyless": {"", "it publishes no usable key"}, "locked": {"", "the client secret cannot be created"},
		},
		authtest.ServerError: {
			"discovered": {"", "status 500"}, "google": {"", "keys: "},
		},
		authtest.Garbage: {"discovered": {"", "malformed JSON"}, "google": {"", "keys: "}},
	} {
		idp.Misbehave(fault)
		for name, want := range all {
			detail, err := kit.TestProvider(t.Context(), name)
			if detail != want.detail || (err != nil) != (want.fails != "") || err != nil && (!strings.Contains(err.Error(), want.fails) || strings.Contains(err.Error(), "s3cr3t")) {
				t.Errorf("%s, %s: %q, %v", fault, name, detail, err)
			}
		}
	}
}

// sick is a store that returns a given diagnosis.
type sick struct {
	auth.Store
	store.AdminStore
	says store.StoreDiagnosis
	err  error
}

func (s *sick) Unwrap() auth.Store { return s.Store }

func (s *sick) Diagnose(context.Context) (store.StoreDiagnosis, error) { return s.says, s.err }

// A diagnosis has everything that the store reports about itself and omits members that do
// not apply. It also has the caller as seen here.
func TestDiagnosisIsWhole(t *testing.T) {
	m := memstore.New()
	s := &sick{Store: m, AdminStore: m}
	w := &harness.World{T: t, Log: &harness.SyncBuffer{}, Env: authtest.NewOn(t, s, auth.WithTrustedProxies("10.0.0.0/8", "fd00::/8"))}
	kit := host.Of(w)
	var got host.Diagnosis
	room := kit.Handler("/room", []host.Route{{Pattern: "GET /how", Access: host.Open, Handle: func(rw http.ResponseWriter, r *http.Request) (err error) {
		if got, err = kit.Diagnose(kit.WithFacts(r)); err != nil {
			return err
		}
		return kit.WriteJSON(rw, http.StatusOK, got)
	}}})
	ask := func() *harness.Answer {
		t.Helper()
		return w.DoOn(room, "GET", "/room/how", nil, harness.Header{Name: "X-Forwarded-For", Value: "203.0.113.9"}, harness.Header{Name: "X-Real-Ip", Value: "203.0.113.9"})
	}
	ask().Want(200)
	if st := got.Store; st.Now != nil || st.Ahead != nil || st.Schema != nil || got.Mail.Waiting == nil || *got.Mail.Waiting != 0 || got.Mail.Oldest != nil || got.Feed != (host.Feed{}) {
		t.Errorf("of nothing: %+v", got)
	}
	c := got.Client
	if ip, err := netip.ParseAddr(c.IP); err != nil || !strings.HasPrefix(c.Peer, ip.String()) || !slices.Equal(c.Forwarded, []string{"X-Forwarded-For", "X-Real-Ip"}) || !c.Unheeded || c.TrustedProxies != 2 {
		t.Errorf("client %+v", c)
	}
	if len(got.Keys) != 1 || !got.Keys[0].Signs || got.Keys[0].ID == "" || got.Keys[0].Algorithm != "ES256" {
		t.Errorf("keys %+v", got.Keys)
	}
	at := w.Clock.Now().Add(time.Hour)
	s.says = store.StoreDiagnosis{Now: at, Schema: 1, Waiting: 3, Oldest: at.Add(-time.Minute), Feeds: 2, FeedAt: at.Add(-time.Second)}
	ask().Want(200)
	st, mail, feed := got.Store, got.Mail, got.Feed
	switch {
	case st.Now == nil || !st.Now.Equal(at), st.Ahead == nil || *st.Ahead != 3600, st.Schema == nil || *st.Schema != 1, st.Response < 0 || st.Response > 60:
		t.Errorf("store %+v", st)
	case mail.Waiting == nil || *mail.Waiting != 3, mail.Oldest == nil || !mail.Oldest.Equal(s.says.Oldest), mail.Here != 0:
		t.Errorf("mail %+v", mail)
	case feed.Following != 2, feed.LookedAt == nil || !feed.LookedAt.Equal(s.says.FeedAt):
		t.Errorf("feed %+v", feed)
	}
	s.err = errors.New("away")
	ask().Want(503, auth.CodeUnavailable)
}

// Pages learn from the setup which service they belong to.
func TestSiteOfThePages(t *testing.T) {
	for name, c := range map[string]struct {
		opts []auth.Option
		want host.Site
	}{
		"plain": {nil, host.Site{App: "auth.test", Locale: "en"}},
		"whole": {
			[]auth.Option{
				auth.WithMail(auth.MailOptions{AppName: "Acme", Locale: "de"}), auth.WithCookies(auth.CookieOptions{SignInURL: "/in"}),
				auth.WithCaptcha(auth.CaptchaOptions{Verifier: anyCaptcha{}}), auth.WithRedirectURLs("https://app.test/", "https://app.test/below/*"),
			},
			host.Site{App: "Acme", Locale: "de", SignInURL: "/in", Captcha: true, Redirects: []string{"https://app.test/", "https://app.test/below/*"}},
		},
		"cookies": {[]auth.Option{auth.WithCookies(auth.CookieOptions{})}, host.Site{App: "auth.test", Locale: "en", SignInURL: "/account/sign-in"}},
	} {
		a := harness.NewPlain(t, append([]auth.Option{auth.WithBaseURL("https://auth.test:8443/auth/v1")}, c.opts...)...)
		got := host.Of(a).Site()
		if len(got.Style) == 0 {
			t.Errorf("%s: no style", name)
		}
		got.Style = nil
		c.want.Origin, c.want.Mount, c.want.Script = "https://auth.test:8443", "https://auth.test:8443/auth/v1", "/auth/v1/pages/passkey.js"
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// anyCaptcha takes any captcha.
type anyCaptcha struct{}

func (anyCaptcha) Verify(context.Context, string, netip.Addr) error { return nil }
