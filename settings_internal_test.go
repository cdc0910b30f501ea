package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// leaks is a BreachChecker that knows no password.
type leaks struct{}

func (leaks) Breached(context.Context, string) (bool, error) { return false, nil }

// settingOpts returns options that set every setting, by name.
func settingOpts(t *testing.T, d *setting) Option {
	t.Helper()
	if d.option == "" {
		var s Settings
		valid, _ := settingSamples(t, d, math.MaxInt64)
		if err := d.read(&s, json.RawMessage(valid[0])); err != nil {
			t.Fatal(err)
		}
		return WithSettings(s)
	}
	o, ok := map[string]Option{
		"WithPasswords":    WithPasswords(PasswordOptions{MinLength: 12, Breach: leaks{}}),
		"WithSessions":     WithSessions(SessionOptions{IdleTimeout: 48 * time.Hour, Lifetime: 96 * time.Hour}),
		"WithMail":         WithMail(MailOptions{AppName: "Acme"}),
		"WithRedirectURLs": WithRedirectURLs("https://one.test/*"),
		"WithCORS":         WithCORS("https://one.test"),
	}[d.option]
	if !ok {
		t.Fatalf("%s: no sample of the option %s", d.name, d.option)
	}
	return o
}

// settingsAuth is an Auth with options, complete enough for its settings.
func settingsAuth(t *testing.T, log io.Writer, opts ...Option) *Auth {
	t.Helper()
	a := &Auth{cfg: configOf(opts...)}
	a.cfg.log, a.cfg.baseURL, a.cfg.keepsFactors = slog.New(slog.NewTextHandler(log, nil)), &url.URL{Scheme: "https", Host: "auth.test"}, true
	a.settings.options = a.cfg.newOptionSettings()
	if len(a.cfg.errs) > 0 {
		t.Fatal(a.cfg.errs)
	}
	return a
}

// openAuth is an Auth with only open settings.
func openAuth(t *testing.T, log io.Writer) *Auth {
	t.Helper()
	return settingsAuth(t, log, Default(WithPasswords(PasswordOptions{Breach: leaks{}})), Default(WithSessions(SessionOptions{IdleTimeout: 48 * time.Hour})), Default(WithRedirectURLs()), Default(WithCORS()))
}

// invalidTexts are texts that settings refuse, by name.
var invalidTexts = map[string][]string{
	"mfa_required_for": {"", "a\nb", strings.Repeat("x", 65)},
	"redirect_urls":    {"", "https://*.two.test/*", "javascript:/*", "http://two.test/*"},
	"cors_origins":     {"", "*", "http://two.test", "https://two.test/path", "https://*.test", "https://a@two.test"},
	"sender_name":      {"", "a\r\nBcc: b@example.com", "Win at evil.example", "evil\u3002example", "evil\u2024example", strings.Repeat("n", 61)},
}

// settingSamples returns values of a setting as JSON, with each bound and the values
// beyond it.
func settingSamples(t *testing.T, d *setting, most int64) (valid, invalid []string) {
	t.Helper()
	asJSON := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	n := d.maxEntries()
	switch kind := d.kind(); kind {
	case host.SettingSwitch:
		return []string{"true", "false"}, []string{"1", `"true"`, "[]"}
	case host.SettingNumber, host.SettingSeconds:
		valid, invalid = []string{asJSON(d.min), asJSON(d.min + 1)}, []string{asJSON(d.min - 1), "-1", "8.5", `"600"`, "1e300", "true"}
		if most < math.MaxInt64 {
			valid, invalid = append(valid, asJSON(most)), append(invalid, asJSON(most+1))
		}
	case host.SettingList:
		entry := d.example.([]string)
		valid, invalid = []string{asJSON(entry), "[]", asJSON(slices.Repeat(entry, n))}, []string{asJSON(slices.Repeat(entry, n+1)), "[1]", asJSON(entry[0]), "{}"}
	case host.SettingText:
		valid, invalid = []string{asJSON(d.example)}, []string{"1", "[]", "{}"}
	case host.SettingTexts:
		valid, invalid = []string{asJSON(d.example), "{}"}, []string{`{"":"x"}`, `{"footer":1}`, "[]", `"x"`} // the rest: internal/outbox
	}
	if d.valid != nil && len(invalidTexts[d.name]) == 0 {
		t.Fatalf("%s: no sample of an invalid text", d.name)
	}
	for _, text := range invalidTexts[d.name] {
		if d.kind() == host.SettingList {
			invalid = append(invalid, asJSON(append(slices.Clone(d.example.([]string)), text)))
		} else {
			invalid = append(invalid, asJSON(text))
		}
	}
	return valid, invalid
}

// sameJSON compares a value with a JSON text.
func sameJSON(t *testing.T, v any, text string) bool {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b) == text
}

// A valid stored value of any setting replaces the value of the options, and nothing
// else; an invalid one changes nothing and is reported by name, in the log and to the
// operator who stores it. Null restores the value of the options.
func TestStoredSettings(t *testing.T) {
	var log bytes.Buffer
	a := openAuth(t, &log)
	o := &a.settings.options
	values := func(s *Settings, without string) map[string]any {
		all := map[string]any{}
		for _, d := range declaredSettings {
			if d.name != without {
				all[d.name] = d.value(s)
			}
		}
		return all
	}
	for _, d := range declaredSettings {
		most := int64(math.MaxInt64)
		if d.max != nil {
			most = d.max(&a.cfg, &o.base)
		}
		valid, invalid := settingSamples(t, &d, most)
		for _, raw := range valid {
			stored := document{d.name: json.RawMessage(raw)}
			s, faults := o.settle(&a.cfg, stored)
			if len(faults) > 0 || !sameJSON(t, d.value(&s), raw) || o.source(&d, stored, faults) != fromStore || !reflect.DeepEqual(values(&s, d.name), values(&o.base, d.name)) {
				t.Errorf("%s, stored as %.80s: %v, faults %v", d.name, raw, d.value(&s), faults)
			}
			if next, err := o.edit(&a.cfg, document{}, stored); err != nil || string(next[d.name]) != raw {
				t.Errorf("%s, changed to %.80s: %v, %v", d.name, raw, next, err)
			}
			if next, err := o.edit(&a.cfg, stored, document{d.name: json.RawMessage("null")}); err != nil || len(next) > 0 {
				t.Errorf("%s, restored: %v, %v", d.name, next, err)
			}
		}
		for _, raw := range append(invalid, "null") {
			log.Reset()
			stored := document{d.name: json.RawMessage(raw), "unknown": json.RawMessage("1"), "signup_enabled": json.RawMessage("false")}
			if d.name == "signup_enabled" {
				stored[d.name] = json.RawMessage(raw)
			}
			s, faults := o.settle(&a.cfg, stored)
			if len(faults) != 2 || faults[d.name] == "" || faults["unknown"] == "" || s.SignUp.On() != (d.name == "signup_enabled") || !reflect.DeepEqual(d.value(&s), d.value(&o.base)) {
				t.Errorf("%s, stored as %.80s: %v, faults %v", d.name, raw, d.value(&s), faults)
			}
			text, err := json.Marshal(stored)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.put(t.Context(), store.StoredSettings{Revision: 7, Document: text}); err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"revision=7", d.name, "unknown"} {
				if !strings.Contains(log.String(), part) {
					t.Errorf("%s, stored as %.80s: the log has no %s: %s", d.name, raw, part, log.String())
				}
			}
			if _, err := o.edit(&a.cfg, stored, document{"account_deletion": json.RawMessage("true")}); d.name != "account_deletion" && err != nil {
				t.Errorf("%s, stored as %.80s: other changes fail: %v", d.name, raw, err)
			}
			if raw == "null" {
				continue // as a change it restores
			}
			next, err := o.edit(&a.cfg, document{}, document{d.name: json.RawMessage(raw), "totp_enabled": json.RawMessage("false"), d.name + "x": json.RawMessage("null")})
			if d.name == "totp_enabled" {
				next, err = o.edit(&a.cfg, document{}, document{d.name: json.RawMessage(raw), d.name + "x": json.RawMessage("null")})
			}
			if e := host.As[*Error](err); e == nil || next != nil || e.Code != CodeValidationFailed || len(e.Fields) != 2 || e.Fields[d.name] == "" || e.Fields[d.name+"x"] == "" {
				t.Errorf("%s, changed to %.80s: %v, %v", d.name, raw, next, err)
			}
		}
	}
	log.Reset()
	if err := a.put(t.Context(), store.StoredSettings{Document: []byte(`{"sender_name":"Acme"}`)}); err != nil || log.Len() > 0 {
		t.Errorf("%v, and without a fault the log has %s", err, log.String())
	}
}

// Options decide whether a setting can be stored: unset and within Default it can, and
// set outside of Default it cannot, whichever of the two calls comes first.
func TestOptionsLockSettings(t *testing.T) {
	for _, d := range declaredSettings {
		set := func() Option { return settingOpts(t, &d) }
		for name, c := range map[string]struct {
			opts   []Option
			source string
			locked bool
		}{
			"unset": {nil, fromDefault, false}, "open": {[]Option{Default(set())}, fromOption, false}, "locked": {[]Option{set()}, fromOption, true},
		} {
			a := settingsAuth(t, io.Discard, c.opts...)
			o := &a.settings.options
			if d.take == nil && d.option != "" { // a list that stored entries are added to, only if it is open
				c.source, c.locked = fromDefault, name != "open"
			}
			if d.option != "" && d.closed != nil && name == "unset" {
				c.locked = true
			}
			valid, _ := settingSamples(t, &d, math.MaxInt64)
			raw := valid[len(valid)-1]
			stored := document{d.name: json.RawMessage(raw)}
			s, faults := o.settle(&a.cfg, stored)
			reason := o.lockedBy(&a.cfg, &d)
			switch {
			case o.source(&d, document{}, nil) != c.source, (reason != "") != c.locked:
				t.Errorf("%s, %s: from %s, locked because it %q", d.name, name, o.source(&d, document{}, nil), reason)
			case c.locked && (faults[d.name] != reason || o.source(&d, stored, faults) != c.source || !reflect.DeepEqual(s, o.base)):
				t.Errorf("%s, %s, stored as %s: %v, faults %v", d.name, name, raw, d.value(&s), faults)
			case !c.locked && (len(faults) > 0 || o.source(&d, stored, faults) != fromStore || !sameJSON(t, d.value(&s), raw)):
				t.Errorf("%s, %s, stored as %s: %v, faults %v", d.name, name, raw, d.value(&s), faults)
			case name == "locked" && d.take != nil && !strings.Contains(reason, d.option):
				t.Errorf("%s, %s: the reason is %q", d.name, name, reason)
			}
			if was := defaultSettings(&a.cfg); (c.source == fromDefault) != reflect.DeepEqual(d.value(&o.base), d.value(&was)) && d.kind() != host.SettingSwitch {
				t.Errorf("%s, %s: %v, by default %v", d.name, name, d.value(&o.base), d.value(&was))
			}
		}
		if d.option == "" {
			continue
		}
		var s Settings
		valid, _ := settingSamples(t, &d, math.MaxInt64)
		if err := d.read(&s, json.RawMessage(valid[0])); err != nil {
			t.Fatal(err)
		}
		if c := configOf(WithSettings(s)); len(c.errs) != 1 || !strings.Contains(c.errs[0].Error(), d.name+" is set with "+d.option) {
			t.Errorf("%s by WithSettings: %v", d.name, c.errs)
		}
	}
	// The locked value wins over the open one, in either order.
	for _, opts := range [][]Option{
		{WithSettings(Settings{SignUp: Off}), Default(WithSettings(Settings{SignUp: On, TOTP: Off}))},
		{Default(WithSettings(Settings{SignUp: On, TOTP: Off})), WithSettings(Settings{SignUp: Off})},
	} {
		if s := settingsAuth(t, io.Discard, opts...).settings.options.base; s.SignUp.On() || s.TOTP.On() {
			t.Errorf("%+v", s)
		}
	}
	// A locked sub-second time of sessions does not count as unlimited.
	a := settingsAuth(t, io.Discard, Default(WithSessions(SessionOptions{IdleTimeout: time.Millisecond})))
	if s, faults := a.settings.options.settle(&a.cfg, document{"session_idle_timeout": json.RawMessage("300")}); s.IdleTimeout != time.Millisecond || len(faults) != 1 {
		t.Errorf("%s, %v", s.IdleTimeout, faults)
	}
	if c := configOf(Default(Default(WithSettings(Settings{SignUp: Off})))); len(c.errs) > 0 || c.openSettings.SignUp != Off {
		t.Errorf("Default twice: %v", c.errs)
	}
}

// The settings in force, and those of options, share no list and no map with a caller.
func TestSettingsShareNothing(t *testing.T) {
	a := openAuth(t, io.Discard)
	stored := document{}
	for _, d := range declaredSettings {
		if d.example != nil {
			valid, _ := settingSamples(t, &d, math.MaxInt64)
			stored[d.name] = json.RawMessage(valid[0])
		}
	}
	text, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.put(t.Context(), store.StoredSettings{Document: text}); err != nil {
		t.Fatal(err)
	}
	spoil := func(s *Settings) {
		for _, d := range declaredSettings {
			switch p := d.at(s).(type) {
			case *[]string:
				clear(*p)
			case *map[string]string:
				clear(*p)
			}
		}
	}
	s := a.Settings(t.Context())
	spoil(&s)
	s = a.Settings(t.Context())
	for _, d := range declaredSettings {
		if raw, ok := stored[d.name]; ok && !sameJSON(t, d.value(&s), string(raw)) {
			t.Errorf("%s in force: %v, want %s", d.name, d.value(&s), raw)
		}
	}
	for _, wrap := range []func(Option) Option{func(o Option) Option { return o }, Default} {
		s := Settings{MFARequiredFor: []string{"editor"}, Texts: map[string]string{"footer": "Notes Ltd"}}
		c := configOf(wrap(WithSettings(s)))
		spoil(&s)
		if got := c.newOptionSettings().base; !slices.Equal(got.MFARequiredFor, []string{"editor"}) || got.Texts["footer"] != "Notes Ltd" {
			t.Errorf("of an option: %+v", got)
		}
	}
}

// SettingsRows are the rows of the table in docs/settings.md.
func SettingsRows() string {
	var b strings.Builder
	b.WriteString("| setting | default | option | |\n|---|---|---|---|\n")
	c := configOf()
	c.baseURL = &url.URL{Host: "app.example.com"}
	defaults := defaultSettings(&c)
	for _, d := range declaredSettings {
		was, err := json.Marshal(d.value(&defaults))
		if err != nil {
			return err.Error()
		}
		text := d.describe()
		if d.example != nil {
			example, err := json.Marshal(d.example)
			if err != nil {
				return err.Error()
			}
			text += " Example: `" + string(example) + "`."
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", d.name, was, d.setBy(), text)
	}
	return b.String()
}

// failingSettings is a store of settings with outages.
type failingSettings struct {
	store.ProjectStore
	away atomic.Bool
}

func (s *failingSettings) Settings(context.Context) (store.StoredSettings, error) {
	if s.away.Load() {
		return store.StoredSettings{}, errors.New("away")
	}
	return store.StoredSettings{}, nil
}

// While the settings cannot be read, the log reports it once, and once more when they can.
func TestSettingsThatCannotBeReadAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		s := &failingSettings{}
		a := &Auth{cfg: config{log: slog.New(slog.NewTextHandler(&log, nil)), baseURL: &url.URL{Scheme: "https", Host: "auth.test"}}}
		a.project = s
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); a.followSettings(ctx) }()
		after := func(gone bool, away, back int) {
			t.Helper()
			s.away.Store(gone)
			<-time.After(10 * time.Second) // the synctest clock
			synctest.Wait()
			if n, m := strings.Count(log.String(), "cannot be read; the last ones remain in force"), strings.Count(log.String(), "can be read again"); n != away || m != back || a.settings.failing.Load() != gone {
				t.Errorf("told %d and %d times, failing %t: %s", n, m, a.settings.failing.Load(), log.String())
			}
		}
		after(false, 0, 0)
		after(true, 1, 0)
		after(false, 1, 1)
		after(true, 2, 1)
		end()
		<-done
	})
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// A user can sign in with any one method that is enabled and complete, and with no
// incomplete one. If a second factor is required, the user must have it or be able to set
// it up.
func TestWaysInUnderSettings(t *testing.T) {
	then := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	type who struct {
		a *Auth
		s Settings
		c store.Credentials
		f bool // a factor is required anyway
	}
	nobody := func() *who { // has no sign-in method
		return &who{
			a: &Auth{cfg: config{sms: NewInbox()}, providers: map[string]*oauthClient{"google": {}}, factors: struct{ store.FactorStore }{}},
			s: Settings{Password: Off, MagicLink: Off, Phone: Off, OAuth: Off, TOTP: Off, RequireConfirmation: Off},
		}
	}
	type change = func(*who)
	ways := map[string]struct {
		has   change
		lacks map[string]change
	}{
		"password": {func(w *who) { w.s.Password, w.c.PasswordHash = On, "hash" }, map[string]change{
			"switched on": func(w *who) { w.s.Password = Off }, "a password": func(w *who) { w.c.PasswordHash = "" },
			"an address": func(w *who) { w.s.RequireConfirmation, w.c.User.Email = On, "ada@example.com" },
		}},
		"password, address": {func(w *who) {
			w.s.Password, w.c.PasswordHash, w.s.RequireConfirmation, w.c.User.Email, w.c.User.EmailVerifiedAt = On, "hash", On, "ada@example.com", then
		}, map[string]change{"a proof": func(w *who) { w.c.User.EmailVerifiedAt = time.Time{} }}},
		"password, number": {func(w *who) {
			w.s.Password, w.c.PasswordHash, w.s.RequireConfirmation, w.c.User.Phone, w.c.User.PhoneVerifiedAt = On, "hash", On, "+49301", then
		}, map[string]change{"a proof": func(w *who) { w.c.User.PhoneVerifiedAt = time.Time{} }}},
		"magic link": {func(w *who) { w.s.MagicLink, w.c.User.Email, w.c.User.EmailVerifiedAt = On, "ada@example.com", then }, map[string]change{
			"switched on": func(w *who) { w.s.MagicLink = Off }, "a proof": func(w *who) { w.c.User.EmailVerifiedAt = time.Time{} }, "an address": func(w *who) { w.c.User.Email = "" },
		}},
		"phone": {func(w *who) { w.s.Phone, w.c.User.Phone, w.c.User.PhoneVerifiedAt = On, "+49301", then }, map[string]change{
			"switched on": func(w *who) { w.s.Phone = Off }, "a proof": func(w *who) { w.c.User.PhoneVerifiedAt = time.Time{} }, "a sender": func(w *who) { w.a.cfg.sms = nil },
		}},
		"oauth": {func(w *who) {
			w.s.OAuth, w.c.User.Identities = On, []Identity{{Provider: "acme"}, {Provider: "google"}}
		}, map[string]change{
			"switched on": func(w *who) { w.s.OAuth = Off }, "one configured": func(w *who) { w.c.User.Identities = w.c.User.Identities[:1] },
		}},
	}
	// Each of these makes the required factor available, or none required; without it,
	// sign-in fails.
	factors := map[string]struct {
		has, lacks change
	}{
		"not asked for":            {func(*who) {}, func(w *who) { w.f = true }},
		"not asked of all":         {func(*who) {}, func(w *who) { w.s.MFARequired = On }},
		"not asked of the role":    {func(w *who) { w.c.User.Roles, w.s.MFARequiredFor = []string{"editor"}, []string{"admin"} }, func(w *who) { w.s.MFARequiredFor = []string{"editor"} }},
		"not asked of the account": {func(w *who) { w.c.User.AppMetadata = map[string]any{"mfa_required": false} }, func(w *who) { w.c.User.AppMetadata = map[string]any{"mfa_required": true} }},
		"not asked by code":        {func(w *who) { w.a.cfg.mfa.RequiredFor = func(User) bool { return false } }, func(w *who) { w.a.cfg.mfa.RequiredFor = func(User) bool { return true } }},
		"is there":                 {func(w *who) { w.f, w.c.User.MFAEnabled = true, true }, func(w *who) { w.c.User.MFAEnabled = false }},
		"is there, of all":         {func(w *who) { w.s.MFARequired, w.c.User.MFAEnabled = On, true }, func(w *who) { w.c.User.MFAEnabled = false }},
		"can be set up":            {func(w *who) { w.f, w.s.TOTP = true, On }, func(w *who) { w.s.TOTP = Off }},
		"can be kept":              {func(w *who) { w.f, w.s.TOTP = true, On }, func(w *who) { w.a.factors = nil }},
	}
	check := func(what string, want bool, changes ...change) {
		t.Helper()
		w := nobody()
		for _, c := range changes {
			c(w)
		}
		if got := w.a.canSignIn(w.s, w.c, w.f, false, false); got != want {
			t.Errorf("%s: %t", what, got)
		}
	}
	check("nothing", false)
	for way, p := range ways {
		check(way, true, p.has)
		for lack, without := range p.lacks {
			check(way+" without "+lack, false, p.has, without)
		}
		for name, f := range factors {
			check(way+", a factor "+name, true, p.has, f.has)
			check(way+", no factor that "+name, false, p.has, f.has, f.lacks)
		}
	}
}
