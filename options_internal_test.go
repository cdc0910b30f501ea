package auth

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// solved accepts every captcha.
type solved struct{}

func (solved) Verify(context.Context, string, netip.Addr) error { return nil }

// configOf applies options in their order.
func configOf(opts ...Option) config {
	var c config
	for _, o := range opts {
		o(&c)
	}
	return c
}

// sameConfig compares functions by their pointers, and the rest by value.
func sameConfig(a, b config) bool {
	funcs := func(c *config) (of []uintptr) {
		for _, f := range []any{c.now, c.onRefused, c.mfa.RequiredFor} {
			of = append(of, reflect.ValueOf(f).Pointer())
		}
		c.now, c.onRefused, c.mfa.RequiredFor = nil, nil, nil
		return of
	}
	return reflect.DeepEqual(funcs(&a), funcs(&b)) && reflect.DeepEqual(a, b)
}

// The second call of an option that collects state replaces the first.
func TestSecondCallReplaces(t *testing.T) {
	key := func(b byte) []byte { return testsecret.Of(string(b)) }
	signer := func(b byte) ed25519.PrivateKey { return ed25519.NewKeyFromSeed(key(b)) }
	for name, o := range map[string][2]Option{
		"WithSecret":       {WithSecret(key('a'), key('b')), WithSecret(key('c'))},
		"WithBaseURL":      {WithBaseURL("https://a.test"), WithBaseURL("https://b.test/auth")},
		"WithSigningKeys":  {WithSigningKeys(signer('a'), signer('b').Public()), WithSigningKeys(signer('c'))},
		"WithSharedSecret": {WithSharedSecret(key('a'), key('b')), WithSharedSecret(key('c'))},
		"keys, a secret":   {WithSigningKeys(signer('a'), signer('b').Public()), WithSharedSecret(key('c'))},
		"a secret, a key":  {WithSharedSecret(key('a'), key('b')), WithSigningKeys(signer('c'))},
		"WithSettings":     {WithSettings(Settings{SignUp: Off}), WithSettings(Settings{TOTP: Off})},
		"WithLinks":        {WithLinks(LinkOptions{SignInByGET: true}), WithLinks(LinkOptions{URLs: map[Kind]string{KindMagicLink: "https://a.test/in"}})},
	} {
		if got := configOf(o[0], o[1]); !sameConfig(got, configOf(o[1])) || sameConfig(got, configOf(o[0])) {
			t.Errorf("%s: the first call still counts", name)
		}
	}
	if c := configOf(WithPrefix("a"), WithPrefix("/b")); len(c.errs) != 1 || c.prefix != "/b" {
		t.Errorf("an error of the first call: %v, %q", c.errs, c.prefix)
	}
	c := configOf(WithRedirectURLs("https://a.test/"), WithRedirectURLs("https://b.test/*"), WithAPIKeys("12345678"), WithAPIKeys("23456789"),
		WithTrustedProxies("10.0.0.0/8"), WithTrustedProxies("fd00::/8"), WithCORS("https://a.test"), WithCORS("https://b.test"),
		WithHooks(Hooks{}), WithHooks(Hooks{}), WithProvider(provider.Google("a", "s")), WithProvider(provider.GitHub("a", "s")))
	if len(c.redirects) != 2 || len(c.apiKeys) != 2 || len(c.trustedProxies) != 2 || len(c.corsOrigins) != 2 || len(c.hooks) != 2 || len(c.providers) != 2 {
		t.Errorf("calls do not add up: %+v", c)
	}
}

// The caller may change or clear the arguments of an option afterwards.
func TestOptionsKeepTheirOwn(t *testing.T) {
	for name, given := range map[string]func() (o Option, change func()){
		"a secret": func() (Option, func()) {
			s, old := testsecret.Of("a"), testsecret.Of("b")
			return WithSecret(s, old), func() { clear(s); clear(old) }
		},
		"a secret that is shared": func() (Option, func()) {
			s, old := testsecret.Of("a"), testsecret.Of("b")
			return WithSharedSecret(s, old), func() { clear(s); clear(old) }
		},
		"links": func() (Option, func()) {
			urls := map[Kind]string{KindMagicLink: "https://a.test/in"}
			return WithLinks(LinkOptions{URLs: urls}), func() { clear(urls) }
		},
		"public keys": func() (Option, func()) {
			keys := []string{"12345678"}
			return WithAPIKeys(keys...), func() { clear(keys) }
		},
		"secret keys": func() (Option, func()) {
			scopes := []string{"*"}
			return WithSecretKeys(SecretKey{Key: "sk_test_01234567", Scopes: scopes}), func() { clear(scopes) }
		},
		"origins": func() (Option, func()) {
			origins := []string{"https://a.test"}
			return WithCORS(origins...), func() { clear(origins) }
		},
	} {
		o, change := given()
		got := configOf(o)
		change()
		o, _ = given()
		if want := configOf(o); !sameConfig(got, want) || len(want.errs) > 0 {
			t.Errorf("%s: changed with what was given, or %v", name, want.errs)
		}
	}
}

// slowStart is a store that records the timeouts of its first calls.
type slowStart struct {
	Store
	store.ProjectStore
	may []time.Duration
}

func (s *slowStart) note(ctx context.Context) error {
	if at, ok := ctx.Deadline(); ok {
		s.may = append(s.may, time.Until(at))
	}
	return errors.New("away")
}

func (s *slowStart) Check(ctx context.Context) error { return s.note(ctx) }

func (s *slowStart) Settings(ctx context.Context) (store.StoredSettings, error) {
	return store.StoredSettings{}, s.note(ctx)
}

// New waits up to 15 seconds for a store, and returns its error.
func TestStoreIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStart{}
		a := &Auth{}
		a.project = s
		for what, err := range map[string]error{"ready": checkStore(t.Context(), s), "settings": a.begin(t.Context())} {
			if err == nil || !strings.Contains(err.Error(), "away") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if len(s.may) != 2 || s.may[0] != 15*time.Second || s.may[1] != 15*time.Second {
			t.Errorf("it may take %v", s.may)
		}
	})
}

// Settings accept http URLs only on loopback, at any port.
func TestOriginsThatSettingsMayName(t *testing.T) {
	for o, want := range map[string]bool{
		"https://app.test": true, "https://app.test:8443": true, "http://localhost": true, "http://localhost:3000": true, "http://127.0.0.1:3000": true, "http://[::1]:3000": true,
		"http://app.test": false, "HTTPS://app.test": false, "http://app.test:3000": false, "http://localhost.evil.test:3000": false, "*": false, "ftp://localhost:21": false, "https://app.test?x": false,
	} {
		if err := checkStoredOrigin(o); (err == nil) != want {
			t.Errorf("%s: %v", o, err)
		}
	}
}
