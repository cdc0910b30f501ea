package pages_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/pages"
)

// A failure after the second factor was verified is reported and has no effect, because a
// visitor who believes that a factor is off, or codes are valid, would notice too late.
func TestFailuresBehindTheSecondFactor(t *testing.T) {
	for do, row := range map[string]struct{ method, said string }{
		"disable": {"RemoveFactor", "Your second factor is off"},
		"codes":   {"PutRecoveryCodes", "Your recovery codes"},
	} {
		s := newSite(t, pages.Options{})
		b := s.browser(t)
		b.signIn(address)
		b.open("/account/second-factor")
		secret, recovery := enrol(t, b)
		s.Clock.Advance(30 * time.Second)
		b.open("/account/second-factor")
		failed := 0
		s.tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, _ int) storetap.Fault {
			if method != row.method {
				return storetap.NoFault
			}
			failed++
			return storetap.FailsBefore
		}})
		p := b.submit("do", do, "code", code(t, s, secret))
		s.tap.Reset(storetap.Hooks{})
		if p.status != http.StatusServiceUnavailable || failed == 0 || strings.Contains(p.text(), row.said) {
			t.Errorf("%s: %d after %d failures: %s", do, p.status, failed, p.text())
		}
		other := s.browser(t)
		other.open("/account/sign-in")
		other.submit("login", address, "password", password)
		other.open("/account/sign-in/second?with=recovery")
		other.submit("with", "recovery", "code", recovery[0]).want(t, 200, "/", "")
	}
}

// Providers have their usual labels, unless the application sets others.
func TestProvidersHaveTheirUsualNames(t *testing.T) {
	idp := authtest.StartProvider(t)
	var opts []auth.Option
	names := map[string]string{"github": "GitHub", "twitter": "X", "google": "Google", "acme": "Acme", "globex": "Our staff"}
	for name := range names {
		opts = append(opts, auth.WithProvider(idp.OIDC(name)))
	}
	s := newSite(t, pages.Options{ProviderLabels: map[string]string{"globex": "Our staff"}}, opts...)
	said := map[string]string{}
	for _, a := range s.browser(t).open("/account/sign-in").all("a") {
		if name, ok := strings.CutPrefix(attr(a, "href"), "/account/sign-in/with/"); ok {
			name, _, _ = strings.Cut(name, "?")
			said[name] = textOf(a)
		}
	}
	for name, want := range names {
		if !strings.HasSuffix(said[name], " "+want) {
			t.Errorf("%s is called %q", name, said[name])
		}
	}
}

// A malformed or oversized form is the client's error and changes nothing.
func TestFormsThatAreNone(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	for what, form := range map[string]url.Values{
		"too long": {"login": {strings.Repeat("x", 4<<20)}, "password": {password}},
	} {
		if res := b.send(http.MethodPost, "/account/sign-in", form); res.StatusCode != http.StatusRequestEntityTooLarge && res.StatusCode != http.StatusBadRequest { //nolint:bodyclose // a recorder's
			t.Errorf("%s: %d", what, res.StatusCode)
		}
	}
}
