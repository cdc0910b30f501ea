package service_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// optionRow is a production setup with some options changed, and the whole error of New; ""
// if it is accepted.
type optionRow struct {
	opts []auth.Option
	says string
}

// optionRows are single refusals, and options that are only just accepted.
func optionRows() []optionRow {
	const noFactorKind = "WithSettings: a second factor is required while every kind of it (totp_enabled, passkey_enabled) is off: a user without one could never sign in"
	row := func(says string, opts ...auth.Option) optionRow { return optionRow{opts, says} }
	secret := func(n int) []byte { return append(testsecret.Of("s"), testsecret.Of("more")...)[:n] }
	idp := func(name, id string) provider.Provider {
		p := provider.Google(id, "secret")
		p.Name = name
		return p
	}
	inbox := "an Inbox, also the one of WithDevMode, works only over http on a loopback host, because its readers can sign in as any user"
	rows := []optionRow{
		row(""),
		row("option 4 of 4 is nil", nil),
		row("WithMFA: TrustDevices is negative or above 30 days", auth.WithMFA(auth.MFAOptions{TrustDevices: -time.Second})),
		row("WithMFA: TrustDevices is negative or above 30 days", auth.WithMFA(auth.MFAOptions{TrustDevices: store.MaxTrust + 1})),
		row("WithSecret: a secret needs at least 32 bytes, this one has 31: is the variable set? openssl rand -hex 32 generates one", auth.WithSecret(secret(31))),
		row("WithSecret: a secret needs at least 32 bytes, this one has 31: is the variable set? openssl rand -hex 32 generates one", auth.WithSecret(secret(32), secret(31))),
		row("", auth.WithSecret(secret(32), secret(33))),
		row("", auth.WithSecret([]byte("00112233445566778899aabbccddeeff"))),
		row("WithSecret: a secret needs random bytes, this one has fewer than 8 different ones: is the variable set? openssl rand -hex 32 generates one", auth.WithSecret([]byte(strings.Repeat("s", 64)))),
		row("WithSecret: a secret needs random bytes, this one has fewer than 8 different ones: is the variable set? openssl rand -hex 32 generates one", auth.WithSecret([]byte(strings.Repeat("1234567", 5)[:33]))),
		row("WithSecret: a secret needs random bytes, this one has fewer than 8 different ones: is the variable set? openssl rand -hex 32 generates one", auth.WithSecret([]byte(strings.Repeat("changeme", 4)))),
		row(noFactorKind, auth.WithSettings(auth.Settings{TOTP: auth.Off, MFARequired: auth.On})),
		row(noFactorKind, auth.WithSettings(auth.Settings{TOTP: auth.Off, MFARequiredFor: []string{"editor"}})),
		row(noFactorKind, auth.Default(auth.WithSettings(auth.Settings{TOTP: auth.Off})), auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return true }})),
		row("", auth.WithSettings(auth.Settings{TOTP: auth.Off})),
		row("WithSecret: a secret needs random bytes, this one repeats itself: is the variable set? openssl rand -hex 32 generates one", auth.WithSecret([]byte(strings.Repeat("password12", 4)[:37]))),
		row("WithSharedSecret: a secret needs random bytes, this one repeats itself", auth.WithSecret(secret(32)), auth.WithSharedSecret([]byte(strings.Repeat("changeme?", 4)))),
		row("WithBaseURL: http on a host that is not loopback: use https", auth.WithBaseURL("http://auth.test")),
		row("WithBaseURL: http on a host that is not loopback: use https", auth.WithBaseURL("http://auth.test"), auth.WithDevMode()),
		row("WithBaseURL: http on a loopback host needs WithDevMode", auth.WithBaseURL("http://127.0.0.1")),
		row("", auth.WithBaseURL("http://127.0.0.1"), auth.WithDevMode()),
		row("", auth.WithBaseURL("https://auth.test:8443/"), auth.WithDevMode()),
		row("WithMailer: "+inbox, auth.WithMailer(auth.NewInbox())),
		row("WithSMSSender: "+inbox, auth.WithSMSSender(auth.NewInbox())),
		row("WithSMSSender: "+inbox, auth.WithSMSSender(auth.NewInbox()), auth.WithDevMode()),
		row("", auth.WithBaseURL("http://127.0.0.1"), auth.WithDevMode(), auth.WithMailer(auth.NewInbox()), auth.WithSMSSender(auth.NewInbox())),
		row(`WithPrefix: "auth" does not start with a slash`, auth.WithPrefix("auth")),
		row("", auth.WithPrefix("/")),
		row("", auth.WithPrefix("/a/b/")),
		row("WithSigningKeys: the key is nil", auth.WithSigningKeys(nil)),
		row("WithClaims: the function is nil", auth.WithClaims(nil)),
		row("WithCaptcha: a Verifier is required: turnstile.New, hcaptcha.New or another one", auth.WithCaptcha(auth.CaptchaOptions{})),
		row("WithTokens: the life of an access token must be at most 24 hours", auth.WithTokens(auth.TokenOptions{Life: 24*time.Hour + 1})),
		row("WithTokens: the life of an access token must be at most 24 hours", auth.WithTokens(auth.TokenOptions{Life: -1})),
		row("", auth.WithTokens(auth.TokenOptions{Life: 24 * time.Hour})),
		row("WithSessions: RefreshGrace is above 5 minutes", auth.WithSessions(auth.SessionOptions{RefreshGrace: 5*time.Minute + 1})),
		row("", auth.WithSessions(auth.SessionOptions{RefreshGrace: 5 * time.Minute})),
		row("WithSessions: IdleTimeout and Lifetime must not be negative", auth.WithSessions(auth.SessionOptions{IdleTimeout: -1})),
		row("WithSessions: IdleTimeout and Lifetime must not be negative", auth.WithSessions(auth.SessionOptions{Lifetime: -1})),
		row("WithSettings: redirect_urls is set with WithRedirectURLs", auth.WithSettings(auth.Settings{RedirectURLs: []string{"https://app.test/"}})),
		row("WithSettings: enabled is neither On nor Off", auth.WithSettings(auth.Settings{Enabled: 7})),
		row(`WithSettings: "" is not a role's name`, auth.Default(auth.WithSettings(auth.Settings{MFARequiredFor: []string{""}}))),
		row("Default: takes only WithSettings, WithPasswords, WithSessions, WithRedirectURLs, WithCORS, WithMail: other options have no settings that can be changed", auth.Default(auth.WithPrefix("/a"))),
		row("Default: takes only WithSettings, WithPasswords, WithSessions, WithRedirectURLs, WithCORS, WithMail: other options have no settings that can be changed", auth.Default(nil)),
		row("", auth.Default(auth.WithSettings(auth.Settings{SignUp: auth.Off})), auth.Default(auth.WithRedirectURLs()), auth.Default(auth.WithCORS())),
		row("", auth.WithLinks(auth.LinkOptions{SignInByGET: true, URLs: map[auth.Kind]string{auth.KindResetPassword: "http://app.test/reset", auth.KindMagicLink: "https://app.test/in"}})),
		row("WithAPIKeys: a key needs at least 8 characters", auth.WithAPIKeys("12345678", "1234567")),
		row("", auth.WithAPIKeys("12345678")),
		row("WithPrivilegedRoles: a name is empty or has control characters", auth.WithPrivilegedRoles("superuser", "")),
		row("", auth.WithPrivilegedRoles("superuser")),
		row("WithSecretKeys: a key has to begin with sk_", auth.WithSecretKeys(auth.SecretKey{Key: "pk_test_0123456789", Scopes: []string{"*"}})),
		row("WithSecretKeys: a key needs at least 16 characters, and only letters, digits and -._~: generate 32 random bytes", auth.WithSecretKeys(auth.SecretKey{Key: "sk_test_0123456", Scopes: []string{"*"}})),
		row("WithSecretKeys: a key needs scopes, such as auth.users.read, or * for all permissions that keys can have", auth.WithSecretKeys(auth.SecretKey{Key: "sk_test_0123456789"})),
		row("", auth.WithSecretKeys(auth.SecretKey{Key: "sk_test_01234567", Scopes: []string{"*"}})),
		row(`WithTrustedProxies: netip.ParsePrefix("10.0.0.1"): no '/'`, auth.WithTrustedProxies("10.0.0.1")),
		row("", auth.WithTrustedProxies("10.0.0.1/8")),
		row("WithCORS: any origin cannot be allowed together with WithCookies", auth.WithCORS("*"), auth.WithCookies(auth.CookieOptions{})),
		row("", auth.WithCORS("*")),
		row("", auth.WithCORS("https://app.test", "http://localhost:3000"), auth.WithCookies(auth.CookieOptions{})),
		row(`WithCookies: "a b" cannot be in a cookie's name`, auth.WithCookies(auth.CookieOptions{Name: "a b"})),
		row("", auth.WithCookies(auth.CookieOptions{Name: "my-app_1", SignInURL: "/in?a=b"})),
		row("", auth.WithCookies(auth.CookieOptions{SignInURL: "https://app.test/in"})),
		row("", auth.WithCookies(auth.CookieOptions{SignInURL: "http://localhost:3000/in"})),
		row("WithOnRefused: the function is nil", auth.WithOnRefused(nil)),
		row("WithLogger: the logger is nil", auth.WithLogger(nil)),
		row("WithClock: the clock is nil", auth.WithClock(nil)),
		row("WithRateLimits: LoginPerIP: a Burst of 1 needs Per, the time in which it refills", auth.WithRateLimits(auth.RateLimits{LoginPerIP: auth.Rate{Burst: 1}})),
		row("WithRateLimits: LoginPerIP: a Burst of 1 needs Per, the time in which it refills\nWithRateLimits: SignupPerIP: a Burst of 2 needs Per, the time in which it refills",
			auth.WithRateLimits(auth.RateLimits{LoginPerIP: auth.Rate{Burst: 1}, SignupPerIP: auth.Rate{Burst: 2}})),
		row("WithMailer: no port\nWithMailer: no host", auth.WithMailer(invalidMail{errors.Join(errors.New("no port"), errors.New("no host"))})),
		row("WithMailer: no port and no host", auth.WithMailer(invalidMail{fmt.Errorf("%w and %w", errors.New("no port"), errors.New("no host"))})),
		row("WithMailer: no port\nand no host", auth.WithMailer(invalidMail{errors.New("no port\nand no host")})),
		row("", auth.WithMailer(invalidMail{})),
		row(`WithBaseURL: parse "https://auth.test/%": invalid URL escape "%"`, auth.WithBaseURL("https://auth.test/%")),
		row(`WithProvider: two providers are named "idp"`, auth.WithProvider(idp("idp", "a"), idp("idp", "b"))),
		row("", auth.WithProvider(idp("idp", "a"), idp("other", "a"))),
		row("WithProvider: idp: the client id is missing", auth.WithProvider(idp("idp", ""))),
		row("WithPhone: a code has 6 to 10 digits", auth.WithPhone(auth.PhoneOptions{CodeLength: 5})),
		row("WithPhone: a code has 6 to 10 digits", auth.WithPhone(auth.PhoneOptions{CodeLength: 11})),
		row("", auth.WithPhone(auth.PhoneOptions{CodeLength: 10})),
		row("WithPhone: a code lives 1 to 10 minutes (NIST SP 800-63B-4)", auth.WithPhone(auth.PhoneOptions{Life: time.Minute - 1})),
		row("WithPhone: a code lives 1 to 10 minutes (NIST SP 800-63B-4)", auth.WithPhone(auth.PhoneOptions{Life: 10*time.Minute + 1})),
		row("", auth.WithPhone(auth.PhoneOptions{CodeLength: 6, Life: time.Minute})),
		row("", auth.WithAuditLog(auth.AuditOptions{Retention: 24 * time.Hour})),
		row("WithAuditLog: the retention is less than a day: set at least 24 hours, or a negative value to keep events for ever", auth.WithAuditLog(auth.AuditOptions{Retention: 24*time.Hour - 1})),
		row("", auth.WithPhone(auth.PhoneOptions{Life: 10 * time.Minute})),
	}
	for _, raw := range []string{"auth.test", "ftp://auth.test", "https:///auth", "https://user@auth.test", "https://auth.test?a=b", "https://auth.test#a"} {
		rows = append(rows, row("WithBaseURL: "+strconv.Quote(raw)+" is not an absolute http(s) URL without query, such as https://app.example.com/auth/v1", auth.WithBaseURL(raw)))
	}
	for _, prefix := range []string{"/a//b", "/a/../b", "/{a}", "/a b", "/a\tb", "/a}"} {
		rows = append(rows, row("WithPrefix: "+strconv.Quote(prefix)+" is not a plain path", auth.WithPrefix(prefix)))
	}
	for _, raw := range []string{"/reset", "ftp://app.test/reset", "https:///reset", "https://app.test/reset#a", "https://app.test/%"} {
		rows = append(rows, row("WithLinks: "+strconv.Quote(raw)+" is not an absolute http(s) URL", auth.WithLinks(auth.LinkOptions{URLs: map[auth.Kind]string{auth.KindResetPassword: raw}})))
	}
	for _, raw := range []string{"//app.test/in", "signin", "http://app.test/in", "https://user@app.test/in", "https:///in", "https://app.test/%"} {
		rows = append(rows, row("WithCookies: SignInURL "+strconv.Quote(raw)+" is neither a path of the same origin nor an https address", auth.WithCookies(auth.CookieOptions{SignInURL: raw})))
	}
	for _, origin := range []string{"app.test", "//app.test", "https://", "https://app.test/", "https://*.app.test", "https://app.test/%"} {
		rows = append(rows, row("WithCORS: "+strconv.Quote(origin)+" is not an origin like https://app.example.com", auth.WithCORS(origin)))
	}
	for raw, why := range map[string]string{
		"https://*.app.test/*": "a wildcard may only be a trailing /*", "javascript:/*": "has a scheme that is not allowed", "http://app.test/*": "http is only allowed for loopback hosts",
		"https://app.test/?a=b": "a pattern has no query or fragment", "https://app.test/#a": "a pattern has no query or fragment",
	} {
		rows = append(rows, row("WithRedirectURLs: "+strconv.Quote(raw)+": "+why+"; want https://host/path, or https://host/* for all below", auth.WithRedirectURLs(raw)))
	}
	for _, prefix := range []string{"49", "+", "+4x"} {
		rows = append(rows, row("WithPhone: "+strconv.Quote(prefix)+" is not a prefix like +49", auth.WithPhone(auth.PhoneOptions{Deny: []string{prefix}})))
	}
	return rows
}

// TestNewSays holds the refusals of New to their words.
func TestNewSays(t *testing.T) {
	try := func(store auth.Store, says string, opts ...auth.Option) {
		t.Helper()
		a, err := auth.New(t.Context(), store, opts...)
		got := ""
		if err != nil {
			got = strings.TrimPrefix(err.Error(), "auth.New: ")
		}
		if a != nil {
			_ = a.Close(t.Context())
		}
		if got != says || (a == nil) != (err != nil) {
			t.Errorf("%q, want %q", got, says)
		}
	}
	usual := []auth.Option{auth.WithSecret(testsecret.Of("s")), auth.WithMailer(harness.NoMail{}), auth.WithBaseURL("https://auth.test/auth/v1")}
	for _, r := range optionRows() {
		try(memstore.New(), r.says, append(slices.Clone(usual), r.opts...)...)
	}
	for i, says := range []string{
		"WithSecret: a secret of 32 random bytes (openssl rand -hex 32) is needed, or WithDevMode for development",
		"WithMailer: a mailer is needed, or WithDevMode for development",
		"WithBaseURL: the public URL (https://…/auth/v1) is needed, or WithDevMode for development",
	} {
		try(memstore.New(), says, slices.Delete(slices.Clone(usual), i, i+1)...)
	}
	try(memstore.New(), "WithBaseURL: the public URL (https://…/auth/v1) is needed, or WithDevMode for development", usual[0], auth.WithMailer(auth.NewInbox()))
	try(agedStore{memstore.New()}, fmt.Sprintf("the store service_test.agedStore implements version %d of the store contract, this package needs %d: update the older one, see ContractVersion", store.ContractVersion-1, store.ContractVersion), usual...)
	for option, o := range map[string]auth.Option{
		"WithSettings": auth.WithSettings(auth.Settings{MFARequired: auth.On}),
		"WithMFA":      auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return false }}),
		"WithAuditLog": auth.WithAuditLog(auth.AuditOptions{}),
	} {
		try(memstore.New(), "", append(slices.Clone(usual), o)...)
		says := ": neither the store nor a store that it wraps implements store.FactorStore, needed for: second factors, recovery codes"
		if option == "WithAuditLog" {
			says = ": neither the store nor a store that it wraps implements store.Journal, needed for: audit log, messages that outlive the process, message log, package admin"
		}
		try(harness.PlainStore{Store: memstore.New()}, option+says, append(slices.Clone(usual), o)...)
		try(nil, "a store is required: memstore.New() or another Store", append(slices.Clone(usual), o)...)
	}
}

// invalidMail is a mailer that reports its own fault.
type invalidMail struct{ err error }

func (m invalidMail) Validate() error { return m.err }

func (invalidMail) Send(context.Context, auth.Message) error { return nil }

// agedStore is of another version than this package.
type agedStore struct{ auth.Store }

func (agedStore) Contract() int { return store.ContractVersion - 1 }

// Dev mode adds missing senders and replaces none.
func TestDevModeKeepsSenders(t *testing.T) {
	var own *auth.Inbox
	texts := func() auth.Option { return auth.WithSMSSender(own) }
	for name, c := range map[string]struct {
		opts       func() []auth.Option
		own, inbox int  // texts that arrive
		mailed     bool // to the inbox
		off        bool // there are no texts
	}{
		"nothing given":       {opts: func() []auth.Option { return nil }, inbox: 1, mailed: true},
		"a sender of texts":   {opts: func() []auth.Option { return []auth.Option{texts()} }, own: 1, mailed: true},
		"a mailer":            {opts: func() []auth.Option { return []auth.Option{auth.WithMailer(harness.NoMail{})} }, off: true},
		"a mailer and sender": {opts: func() []auth.Option { return []auth.Option{auth.WithMailer(harness.NoMail{}), texts()} }, own: 1},
	} {
		own = auth.NewInbox()
		a, err := auth.New(t.Context(), memstore.New(), append([]auth.Option{auth.WithDevMode()}, c.opts()...)...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err = a.SendPhoneCode(t.Context(), auth.SendPhoneCodeParams{Phone: "+4915112345678"})
		if c.off != errors.Is(err, auth.CodeMethodDisabled) || !c.off && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
		inbox := 0
		if in := a.Inbox(); in != nil {
			inbox = len(in.Messages())
		}
		if len(own.Messages()) != c.own || inbox != c.inbox || (a.Inbox() != nil) != c.mailed {
			t.Errorf("%s: %d texts by the sender, %d in the inbox %v", name, len(own.Messages()), inbox, a.Inbox())
		}
	}
}
