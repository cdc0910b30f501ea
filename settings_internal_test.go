package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/store"
)

// Whatever the store says of settings that does not count, whoever runs the service is
// told of, each by its name, and of nothing else; the rest is in force.
func TestSettingsThatDoNotCountAreTold(t *testing.T) {
	for document, want := range map[string][]string{
		`{}`: nil,
		`{"sender_name":"Acme","signup_enabled":false}`:                           nil,
		`{"sender_name":"Acme","nothing":1}`:                                      {"nothing"},
		`{"sender_name":"Acme","signup_enabled":"perhaps"}`:                       {"signup_enabled"},
		`{"sender_name":"Acme","totp_enabled":false}`:                             {"totp_enabled"}, // of the options
		`{"sender_name":"Acme","nothing":1,"nought":2,"password_min_length":"x"}`: {"nothing", "nought", "password_min_length"},
	} {
		var log bytes.Buffer
		a := &Auth{cfg: config{log: slog.New(slog.NewTextHandler(&log, nil)), baseURL: &url.URL{Scheme: "https", Host: "auth.test"}, settings: Settings{TOTP: On}}}
		a.settings.options = a.cfg.newOptionSettings()
		d, err := parseDocument([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		s, faults := a.settings.options.settle(&a.cfg, d)
		if got := slices.Sorted(maps.Keys(faults)); !slices.Equal(got, want) {
			t.Errorf("%s: faults %v", document, faults)
		}
		if strings.Contains(document, "Acme") && s.SenderName != "Acme" || !s.TOTP.On() {
			t.Errorf("%s: %+v", document, s)
		}
		if err := a.put(t.Context(), store.StoredSettings{Revision: 7, Document: []byte(document)}); err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(log.String(), "revision=7"); told != (want != nil) {
			t.Errorf("%s: the log says %q", document, log.String())
		}
		for _, name := range want {
			if !strings.Contains(log.String(), name) {
				t.Errorf("%s: the log does not say %s: %q", document, name, log.String())
			}
		}
		// What was there already, nobody has to mend who changes something else.
		if _, err := a.settings.options.edit(&a.cfg, d, map[string]json.RawMessage{"auto_linking": []byte("false")}); err != nil {
			t.Errorf("%s, and another change: %v", document, err)
		}
	}
}

// waywardSettings is a store of settings that is away now and then.
type waywardSettings struct {
	store.ProjectStore
	away atomic.Bool
}

func (s *waywardSettings) Settings(context.Context) (store.StoredSettings, error) {
	if s.away.Load() {
		return store.StoredSettings{}, errors.New("away")
	}
	return store.StoredSettings{}, nil
}

// While the settings cannot be read the log says so once, and once more when they can.
func TestSettingsThatCannotBeReadAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		s := &waywardSettings{}
		a := &Auth{cfg: config{log: slog.New(slog.NewTextHandler(&log, nil)), baseURL: &url.URL{Scheme: "https", Host: "auth.test"}}}
		a.project = s
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); a.followSettings(ctx) }()
		after := func(gone bool, away, back int) {
			t.Helper()
			s.away.Store(gone)
			<-time.After(10 * time.Second) // the bubble's clock
			synctest.Wait()
			if n, m := strings.Count(log.String(), "cannot be read; those read last stay in force"), strings.Count(log.String(), "can be read again"); n != away || m != back || a.settings.failing.Load() != gone {
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

// Somebody can sign in under settings by any one way that is on and theirs, and by none
// that lacks anything; and with the second factor that they would be asked for.
func TestWaysInUnderSettings(t *testing.T) {
	then := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	type who struct {
		a *Auth
		s Settings
		c store.Credentials
		f bool // a factor is asked for anyway
	}
	nobody := func() *who { // can come in by no way
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
	// By each of these the factor that is asked for is there, or none is; without it, not.
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
	judge := func(what string, want bool, changes ...change) {
		t.Helper()
		w := nobody()
		for _, c := range changes {
			c(w)
		}
		if got := w.a.wayIn(w.s, w.c, w.f); got != want {
			t.Errorf("%s: %t", what, got)
		}
	}
	judge("nothing", false)
	for way, p := range ways {
		judge(way, true, p.has)
		for lack, without := range p.lacks {
			judge(way+" without "+lack, false, p.has, without)
		}
		for name, f := range factors {
			judge(way+", a factor "+name, true, p.has, f.has)
			judge(way+", no factor that "+name, false, p.has, f.has, f.lacks)
		}
	}
}
