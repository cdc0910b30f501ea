package auth

import (
	"testing"
	"time"

	"github.com/authmount/auth/store"
)

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
