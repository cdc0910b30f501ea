package auth

import (
	"context"
	"crypto/ed25519"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// solved is a verifier of captchas.
type solved struct{ n int }

func (solved) Verify(context.Context, string, netip.Addr) error { return nil }

// configOf is what options say, one after the other.
func configOf(opts ...Option) config {
	var c config
	for _, o := range opts {
		o(&c)
	}
	return c
}

// sameConfig compares functions by which they are, and the rest by what it is.
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

// Of an option that is given twice the second counts, or both, as its doc says. What of
// the first was wrong stays told.
func TestOptionsGivenTwice(t *testing.T) {
	key := func(b byte) []byte { return []byte(strings.Repeat(string(b), 32)) }
	signer := func(b byte) ed25519.PrivateKey { return ed25519.NewKeyFromSeed(key(b)) }
	replaced := map[string][2]Option{
		"WithSecret":       {WithSecret(key('a'), key('b')), WithSecret(key('c'))},
		"WithBaseURL":      {WithBaseURL("https://a.test"), WithBaseURL("https://b.test/auth")},
		"WithPrefix":       {WithPrefix("/a"), WithPrefix("/b")},
		"WithTokens":       {WithTokens(TokenOptions{Issuer: "a"}), WithTokens(TokenOptions{Audience: "b"})},
		"WithSigningKeys":  {WithSigningKeys(signer('a'), signer('b').Public()), WithSigningKeys(signer('c'))},
		"WithSharedSecret": {WithSharedSecret(key('a'), key('b')), WithSharedSecret(key('c'))},
		"WithSessions":     {WithSessions(SessionOptions{MaxPerUser: 1}), WithSessions(SessionOptions{Lifetime: time.Hour})},
		"WithSettings":     {WithSettings(Settings{SignUp: Off}), WithSettings(Settings{TOTP: Off})},
		"WithPasswords":    {WithPasswords(PasswordOptions{MinLength: 9}), WithPasswords(PasswordOptions{MinLength: 10})},
		"WithMFA":          {WithMFA(MFAOptions{RequiredFor: func(User) bool { return true }}), WithMFA(MFAOptions{TrustDevices: time.Hour})},
		"WithMailer":       {WithMailer(sender("a")), WithMailer(sender("b"))},
		"WithSMSSender":    {WithSMSSender(sender("a")), WithSMSSender(sender("b"))},
		"WithPhone":        {WithPhone(PhoneOptions{Allow: []string{"+49"}}), WithPhone(PhoneOptions{Deny: []string{"+1"}})},
		"WithMail":         {WithMail(MailOptions{AppName: "A"}), WithMail(MailOptions{Queue: 7})},
		"WithLinks":        {WithLinks(LinkOptions{Mode: DirectLinks}), WithLinks(LinkOptions{URLs: map[Kind]string{KindMagicLink: "https://a.test/in"}})},
		"WithRateLimits":   {WithRateLimits(RateLimits{Off: true}), WithRateLimits(RateLimits{SendGap: Rate{Burst: 1, Per: time.Hour}})},
		"WithCookies":      {WithCookies(CookieOptions{Name: "a"}), WithCookies(CookieOptions{SignInURL: "/in"})},
		"WithOnRefused":    {WithOnRefused(func(http.ResponseWriter, *http.Request, error) {}), WithOnRefused(func(http.ResponseWriter, *http.Request, error) { panic("b") })},
		"WithLogger":       {WithLogger(slog.New(slog.DiscardHandler)), WithLogger(slog.Default())},
		"WithClock":        {WithClock(func() time.Time { return time.Time{} }), WithClock(time.Now)},
		"WithCaptcha":      {WithCaptcha(CaptchaOptions{Verifier: solved{1}, FailOpen: true}), WithCaptcha(CaptchaOptions{Verifier: solved{2}})},
		"WithAuditLog":     {WithAuditLog(AuditOptions{Retention: time.Hour}), WithAuditLog(AuditOptions{Retention: -1})},
	}
	for name, o := range replaced {
		if got := configOf(o[0], o[1]); !sameConfig(got, configOf(o[1])) || sameConfig(got, configOf(o[0])) {
			t.Errorf("%s: the second call does not replace the first", name)
		}
	}
	// These two replace each other.
	for name, o := range map[string][2]Option{
		"a key in place of a secret": {replaced["WithSharedSecret"][0], replaced["WithSigningKeys"][0]},
		"a secret in place of a key": {replaced["WithSigningKeys"][0], replaced["WithSharedSecret"][0]},
	} {
		if !sameConfig(configOf(o[0], o[1]), configOf(o[1])) {
			t.Errorf("%s: the first is still there", name)
		}
	}
	claims := func(context.Context, User) (map[string]any, error) { return nil, nil }
	added := map[string]struct {
		first, second Option
		n             func(c config) int
	}{
		"WithClaims":         {WithClaims(claims), WithClaims(claims), func(c config) int { return len(c.claims) }},
		"WithProvider":       {WithProvider(provider.Google("a", "s"), provider.GitHub("a", "s")), WithProvider(provider.Discord("a", "s")), func(c config) int { return len(c.providers) }},
		"WithHooks":          {WithHooks(Hooks{}), WithHooks(Hooks{}), func(c config) int { return len(c.hooks) }},
		"WithRedirectURLs":   {WithRedirectURLs("https://a.test/", "https://b.test/"), WithRedirectURLs("https://c.test/*"), func(c config) int { return len(c.redirects) }},
		"WithAPIKeys":        {WithAPIKeys("12345678", "23456789"), WithAPIKeys("34567890"), func(c config) int { return len(c.apiKeys) }},
		"WithSecretKeys":     {WithSecretKeys(SecretKey{"sk_test_01234567", []string{"*"}}, SecretKey{"sk_test_12345678", []string{"*"}}), WithSecretKeys(SecretKey{"sk_test_23456789", []string{"*"}}), func(c config) int { return len(c.secretKeys) }},
		"WithTrustedProxies": {WithTrustedProxies("10.0.0.0/8", "fd00::/8"), WithTrustedProxies("192.168.0.0/16"), func(c config) int { return len(c.trustedProxies) }},
		"WithCORS":           {WithCORS("https://a.test", "https://b.test"), WithCORS("https://c.test"), func(c config) int { return len(c.corsOrigins) }},
	}
	for name, o := range added {
		if n, want := o.n(configOf(o.first, o.second)), o.n(configOf(o.first))+o.n(configOf(o.second)); n != want || want < 2 {
			t.Errorf("%s: %d of both calls, want %d", name, n, want)
		}
	}
	for name, doc := range optionDocs(t) {
		_, replaces := replaced[name]
		_, adds := added[name]
		if says := strings.Contains(doc, "replaces the first"); says != replaces {
			t.Errorf("%s: its doc says %t, and it is held to %t, that a second call replaces the first", name, says, replaces)
		}
		if says := strings.Contains(doc, "add more") || strings.Contains(doc, "add up") || strings.Contains(doc, "behind those of earlier calls"); says != adds {
			t.Errorf("%s: its doc says %t, and it is held to %t, that calls add up", name, says, adds)
		}
	}
	if c := configOf(WithPrefix("a"), WithPrefix("/b")); len(c.errs) != 1 || c.prefix != "/b" {
		t.Errorf("%v, %q", c.errs, c.prefix)
	}
}

// optionDocs is what is said of each option.
func optionDocs(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || f.Type.Results.NumFields() != 1 || !strings.HasPrefix(f.Name.Name, "With") {
				continue
			}
			if id, ok := f.Type.Results.List[0].Type.(*ast.Ident); ok && id.Name == "Option" {
				docs[f.Name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
			}
		}
	}
	if len(docs) < 25 {
		t.Fatalf("only %d options were found", len(docs))
	}
	return docs
}

// What was given to an option may be changed or wiped afterwards.
func TestOptionsKeepTheirOwn(t *testing.T) {
	for name, given := range map[string]func() (o Option, change func()){
		"a secret": func() (Option, func()) {
			s, old := []byte(strings.Repeat("a", 32)), []byte(strings.Repeat("b", 32))
			return WithSecret(s, old), func() { clear(s); clear(old) }
		},
		"a secret that is shared": func() (Option, func()) {
			s, old := []byte(strings.Repeat("a", 32)), []byte(strings.Repeat("b", 32))
			return WithSharedSecret(s, old), func() { clear(s); clear(old) }
		},
		"roles": func() (Option, func()) {
			roles := []string{"owner"}
			return WithSettings(Settings{MFARequiredFor: roles}), func() { clear(roles) }
		},
		"roles, by default": func() (Option, func()) {
			roles := []string{"owner"}
			return Default(WithSettings(Settings{MFARequiredFor: roles})), func() { clear(roles) }
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
			return WithSecretKeys(SecretKey{"sk_test_01234567", scopes}), func() { clear(scopes) }
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

// slowStart is a store that notes for how long it may take to say that it is ready.
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

// New waits for a store, and not for ever; what it says of itself is passed on.
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

// sender sends nothing, and has a name.
type sender string

func (sender) Send(context.Context, Message) error { return nil }
