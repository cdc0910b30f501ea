package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// theProvider is the provider that every office has.
const theProvider = "idp"

// settingsTargets are the recorded targets of the operations on settings.
var settingsTargets = map[string]string{
	"PATCH /settings": "settings", "POST /settings/test-mail": "email", "POST /settings/test-sms": "sms", "POST /settings/test-provider/{name}": theProvider,
}

// hasPhone gives a user a verified phone number.
func (o *office) hasPhone(s *authtest.SignedIn, number string) {
	o.t.Helper()
	now := o.Clock.Now()
	_, err := o.Store.UpdateUser(o.t.Context(), store.UpdateUser{
		Change: store.Change{Now: now, By: auth.Authority{System: "test"}}, UserID: s.User.ID, Patch: store.UserPatch{Phone: &number, PhoneVerifiedAt: &now},
	})
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) owner() *authtest.SignedIn {
	o.t.Helper()
	return o.LoginAs(o.t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
}

// setting is one setting of an answer.
func (a *answer) setting(name string) map[string]any {
	a.t.Helper()
	all, _ := a.body["settings"].(map[string]any)
	s, ok := all[name].(map[string]any)
	if !ok {
		a.t.Fatalf("no setting %q in %v", name, a.body)
	}
	return s
}

// settingSample is a valid value of a setting that differs from the current one, and an
// invalid one, as JSON. The bounds are tested with the declarations, in the root package.
func settingSample(t *testing.T, d host.SettingDeclaration, now any) (valid, invalid string) {
	t.Helper()
	var v, wrong any
	switch d.Kind {
	case host.SettingSwitch:
		v, wrong = now != true, "true"
	case host.SettingNumber, host.SettingSeconds:
		if v, wrong = d.Min, d.Min-1; fmt.Sprint(now) == fmt.Sprint(v) {
			v = d.Min + 1
		}
	case host.SettingList:
		v, wrong = d.Example, []string{""}
	case host.SettingText:
		v, wrong = d.Example, ""
	case host.SettingTexts:
		v, wrong = d.Example, map[string]string{"": "x"}
	}
	list, err := json.Marshal([]any{v, wrong})
	if err != nil {
		t.Fatal(err)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(list, &raw); err != nil {
		t.Fatal(err)
	}
	return string(raw[0]), string(raw[1])
}

// Every setting can be changed, if its value is valid and the revision is the current one;
// else nothing changes. A change is in force at once, is recorded, and null restores the
// value of the options. Other instances follow.
func TestEverySetting(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		opts := []auth.Option{
			auth.Default(auth.WithPasswords(auth.PasswordOptions{Breach: leaked{}})),
			auth.Default(auth.WithSessions(auth.SessionOptions{IdleTimeout: 48 * time.Hour})),
			auth.Default(auth.WithRedirectURLs()), auth.Default(auth.WithCORS()), auth.WithCookies(auth.CookieOptions{}),
		}
		o, two := newOffice(t, st, opts...), newOffice(t, st, opts...)
		owner := o.owner()
		all := map[string]json.RawMessage{}
		for _, d := range host.DeclaredSettings() {
			before, was := o.do(owner, "GET /settings", "").want(200), o.Settings(t.Context())
			revision := before.header.Get("ETag")
			valid, invalid := settingSample(t, d, before.setting(d.Name)["value"])
			change := func(value string) string { return `{"` + d.Name + `":` + value + `}` }

			other := `"account_deletion":true`
			if d.Name == "account_deletion" {
				other = `"totp_enabled":false`
			}
			refused := o.do(owner, "PATCH /settings", `{`+other+`,"`+d.Name+`":`+invalid+`}`).want(422, auth.CodeValidationFailed)
			details, _ := refused.body["details"].(map[string]any)
			if fields, _ := details["fields"].(map[string]any); len(fields) != 1 || fields[d.Name] == nil {
				t.Errorf("%s as %s: %v", d.Name, invalid, refused.body)
			}
			o.do(owner, "PATCH /settings", change(valid), `If-Match: "999"`).want(412, auth.CodePreconditionFailed)
			if after := o.do(owner, "GET /settings", "").want(200); after.header.Get("ETag") != revision || !reflect.DeepEqual(after.body, before.body) || !reflect.DeepEqual(o.Settings(t.Context()), was) {
				t.Errorf("%s: refused, and yet changed to %v", d.Name, after.body)
			}

			changed := o.do(owner, "PATCH /settings", change(valid), "If-Match: "+revision).want(200)
			s := changed.setting(d.Name)
			if raw, err := json.Marshal(s["value"]); err != nil || string(raw) != valid || s["source"] != "store" || s["locked"] != false || changed.header.Get("ETag") == revision {
				t.Errorf("%s as %s: %v, ETag %s", d.Name, valid, s, changed.header.Get("ETag"))
			}
			if reflect.DeepEqual(o.Settings(t.Context()), was) {
				t.Errorf("%s as %s is not in force", d.Name, valid)
			}
			if r := o.audit()[0]; r.Type != auth.EventSettingsChanged || len(r.Record.Changes) != 1 || r.Record.Changes[d.Name].Before == nil || r.Record.Changes[d.Name].After == nil {
				t.Errorf("%s: recorded %+v", d.Name, r.Record)
			}
			restored := o.do(owner, "PATCH /settings", change("null")).want(200)
			if !reflect.DeepEqual(restored.body["settings"], before.body["settings"]) || !reflect.DeepEqual(o.Settings(t.Context()), was) {
				t.Errorf("%s, restored: %v, was %v", d.Name, restored.setting(d.Name), before.setting(d.Name))
			}
			if d.Kind != host.SettingSwitch {
				all[d.Name] = json.RawMessage(valid)
			}
		}
		body, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		o.do(owner, "PATCH /settings", string(body)).want(200)
		two.await(func() bool { return reflect.DeepEqual(two.Settings(t.Context()), o.Settings(t.Context())) })
		for _, body := range []string{`[]`, `null`, `{"enabled":true,"enabled":false}`, `{"session_lifetime":1e3000}`} {
			o.do(owner, "PATCH /settings", body).want(400, auth.CodeBadJSON)
		}
		for _, body := range []string{`{}`, `{"Enabled":false}`, `{"signup_enabled":null,"no_such":null}`} {
			o.do(owner, "PATCH /settings", body).want(422, auth.CodeValidationFailed)
		}
	})
}

// An option locks its settings, and the list of settings reports that.
func TestSettingsOfOptionsAreLocked(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(), auth.WithSettings(auth.Settings{AccountDeletion: auth.On}))
	owner := o.owner()
	for name, locked := range map[string]bool{"account_deletion": true, "redirect_urls": true, "cors_origins": true, "password_breach_check": true, "signup_enabled": false} {
		s := o.do(owner, "GET /settings", "").want(200).setting(name)
		if s["locked"] != locked || (s["locked_because"] != nil) != locked {
			t.Errorf("%s: %v", name, s)
		}
	}
	o.do(owner, "PATCH /settings", `{"account_deletion":false,"signup_enabled":false}`).want(422, auth.CodeValidationFailed)
	if s := o.Settings(t.Context()); !s.AccountDeletion.On() || !s.SignUp.On() {
		t.Errorf("%+v", s)
	}
}

// A redirect URL and an origin receive the sign-ins of owners, too: only "*" adds one. Other
// operators remove them, and change other settings.
func TestSettingsThatReachOwners(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store, auth.Default(auth.WithRedirectURLs()), auth.Default(auth.WithCORS()))
		owner, clerk := o.owner(), o.operator("clerk@example.com", admin.PermSettingsRead, admin.PermSettingsWrite)
		for name, list := range map[string][2]string{"redirect_urls": {"https://two.test/*", "https://evil.test/*"}, "cors_origins": {"https://two.test", "https://evil.test"}} {
			o.do(owner, "PATCH /settings", `{"`+name+`":["`+list[0]+`"]}`).want(200)
			for _, more := range []string{`["` + list[1] + `"]`, `["` + list[0] + `","` + list[1] + `"]`} {
				o.do(clerk, "PATCH /settings", `{"signup_enabled":false,"`+name+`":`+more+`}`).want(403, auth.CodeMissingPermission)
			}
			if !o.Settings(t.Context()).SignUp.On() {
				t.Error("half of a refused change is in force")
			}
			o.do(clerk, "PATCH /settings", `{"account_deletion":true,"`+name+`":["`+list[0]+`"]}`).want(200)
			o.do(clerk, "PATCH /settings", `{"`+name+`":[]}`).want(200)
		}
	})
}

// A setting that would leave no owner a sign-in method is refused, for every switch; one
// that leaves a method is not.
func TestSettingsLeaveAnOwner(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.do(owner, "PATCH /settings", `{"password_enabled":false,"magic_link_enabled":false}`).want(409, auth.CodeLastOwner)
		if !o.Settings(t.Context()).Password.On() {
			t.Fatal("passwords are off")
		}
		o.do(owner, "PATCH /settings", `{"password_enabled":false}`).want(200) // a magic link remains
		o.do(owner, "PATCH /settings", `{"magic_link_enabled":false}`).want(409, auth.CodeLastOwner)
		o.hasPhone(owner, "+4930123456")
		o.do(owner, "PATCH /settings", `{"magic_link_enabled":false}`).want(200) // a phone number remains
		// A user without a factor has no sign-in method where a factor is required and
		// none can be set up.
		o.do(owner, "PATCH /settings", `{"totp_enabled":false}`).want(200)
		u, err := o.ImportUser(t.Context(), auth.ImportUserParams{Email: "plain@example.com", EmailVerified: true, Accepted: true, Roles: []string{auth.RoleOwner}, AppMetadata: map[string]any{"mfa_required": true}})
		if err != nil {
			t.Fatal(err)
		}
		o.onlyOwners(u.ID)
		seen, err := o.adm.Settings(t.Context(), admin.System("test").Accepting())
		if err != nil {
			t.Fatal(err)
		}
		p := admin.SetSettingsParams{Set: map[string]any{"password_enabled": true}, Revision: &seen.Revision}
		if _, err = o.adm.SetSettings(t.Context(), admin.System("test").Accepting(), p); err != nil { // nobody could before, and switching one on harms nobody
			t.Error(err)
		}
		_, err = o.adm.SetSettings(t.Context(), admin.System("test").Accepting(), p)
		wantCode(t, err, auth.CodePreconditionFailed)
	})
}

// A second factor cannot be required while nobody can set one up, whichever of the two
// settings comes last. Other settings can then still be changed.
func TestSettingsKeepAKindOfFactor(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(), harness.WithPasskeys())
	owner := o.owner()
	o.do(owner, "PATCH /settings", `{"totp_enabled":false,"mfa_required":true}`).want(200) // passkeys are left
	o.do(owner, "PATCH /settings", `{"passkey_enabled":false}`).want(422, auth.CodeValidationFailed)
	o.do(owner, "PATCH /settings", `{"totp_enabled":null,"mfa_required":null}`).want(200)

	o = newOffice(t, memstore.New())
	owner = o.owner()
	for _, twice := range [][2]string{
		{`{"totp_enabled":false}`, `{"mfa_required":true}`},
		{`{"mfa_required":true}`, `{"totp_enabled":false}`},
		{`{"totp_enabled":false}`, `{"mfa_required_for":["editor"]}`},
		{`{"mfa_required_for":["editor"]}`, `{"totp_enabled":false}`},
		{`{"mfa_required":false}`, `{"mfa_required":true,"totp_enabled":false}`},
	} {
		o.do(owner, "PATCH /settings", twice[0]).want(200)
		o.do(owner, "PATCH /settings", twice[1]).want(422, auth.CodeValidationFailed)
		o.do(owner, "PATCH /settings", `{"signup_enabled":false}`).want(200)
		o.do(owner, "PATCH /settings", `{"totp_enabled":null,"mfa_required":null,"mfa_required_for":null,"signup_enabled":null}`).want(200)
	}
}

// An owner with a sign-in method is found among any number of owners without one.
func TestSettingsLeaveAnOwnerAmongMany(t *testing.T) {
	o := newOffice(t, memstore.New())
	o.LoginAs(t, "first@example.com", authtest.Roles(auth.RoleOwner)) // the oldest account, the last in the list
	o.Clock.Advance(time.Minute)
	for i := range 250 {
		o.imported(fmt.Sprintf("owner%d@example.com", i), auth.RoleOwner)
	}
	_, err := o.adm.SetSettings(t.Context(), admin.System("test").Accepting(), admin.SetSettingsParams{Set: map[string]any{"magic_link_enabled": false}})
	if err != nil {
		t.Errorf("the one with a password was not found: %v", err)
	}
}

// An owner without a factor keeps a sign-in method, to the admin side too, while factors
// can be set up.
func TestSettingsAskOwnersForAFactor(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOfficeWith(t, store, admin.Options{RequireMFA: auth.Off})
		u, err := o.ImportUser(t.Context(), auth.ImportUserParams{Email: "plain@example.com", EmailVerified: true, Accepted: true, Roles: []string{auth.RoleOwner}, AppMetadata: map[string]any{"mfa_required": true}})
		if err != nil {
			t.Fatal(err)
		}
		o.onlyOwners(u.ID)
		set := func(name string, v bool) error {
			_, err := o.adm.SetSettings(t.Context(), admin.System("test").Accepting(), admin.SetSettingsParams{Set: map[string]any{name: v}})
			return err
		}
		wantCode(t, set("totp_enabled", false), auth.CodeLastOwner)
	})
	o := newOffice(t, memstore.New()) // operators need a factor here, users or not
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner))
	keeper := o.operator("keeper@example.com", admin.PermSettingsWrite)
	o.do(keeper, "PATCH /settings", `{"totp_enabled":false}`).want(409, auth.CodeLastOwner)
	o.arm(owner)
	o.do(keeper, "PATCH /settings", `{"totp_enabled":false}`).want(200)
}

// The owner who would keep a sign-in method may lose it between the check and the change:
// then the change is checked again.
func TestSettingsLeaveAnOwnerMeanwhile(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		tap := storetap.New(store)
		o := newOffice(t, tap)
		owner := o.owner()
		other := o.LoginAs(t, "other@example.com", authtest.Roles(auth.RoleOwner))
		o.onlyOwners(owner.User.ID, other.User.ID)
		o.unprove(owner, other) // neither has an address for a link
		o.hasPhone(other, "+4930123457")
		var once sync.Once
		tap.Reset(storetap.Hooks{Before: func(ctx context.Context, method string, _ int) {
			if method == "PutSettings" {
				once.Do(func() {
					if _, err := o.adm.Withdraw(ctx, admin.System("test").Accepting(), other.User.ID, auth.RoleOwner); err != nil {
						t.Error(err)
					}
				})
			}
		}})
		o.do(owner, "PATCH /settings", `{"password_enabled":false}`).want(409, auth.CodeLastOwner)
		if !o.Settings(t.Context()).Password.On() {
			t.Error("passwords are off")
		}
	})
}

// unprove makes the addresses of users unverified.
func (o *office) unprove(people ...*authtest.SignedIn) {
	o.t.Helper()
	for _, s := range people {
		c := store.Change{Now: o.Clock.Now(), By: auth.Authority{System: "test"}}
		if _, err := o.Store.UpdateUser(o.t.Context(), store.UpdateUser{Change: c, UserID: s.User.ID, Patch: store.UserPatch{EmailVerifiedAt: &time.Time{}}}); err != nil {
			o.t.Fatal(err)
		}
	}
}

// No request reads settings from the store: they cost one read a second under any load.
func TestSettingsCostNoStatement(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		var mu sync.Mutex
		reads := 0
		tap := storetap.New(store)
		tap.Reset(storetap.Hooks{Background: true, Before: func(_ context.Context, method string, _ int) {
			if mu.Lock(); method == "Settings" {
				reads++
			}
			mu.Unlock()
		}})
		begun := time.Now()
		o := newOffice(t, tap)
		ada := o.LoginAs(t, "ada@example.com")
		for range 30 {
			ada = o.renewed(ada)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/auth/v1/me", nil)
			ada.Sign(r)
			w := httptest.NewRecorder()
			o.Handler().ServeHTTP(w, r)
			if w.Code != 200 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			o.Settings(t.Context())
		}
		mu.Lock()
		defer mu.Unlock()
		if most := 2 + int(time.Since(begun)/(900*time.Millisecond)); reads == 0 || reads > most {
			t.Errorf("%d reads, want from 1 to %d", reads, most)
		}
	})
}

// A change takes effect in every instance within about a second, without a request to it,
// and remains in effect while the store cannot be read.
func TestSettingsEverywhere(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		tap := storetap.New(store)
		log := &lines{}
		one, two, three := newOffice(t, store), newOffice(t, store), newOffice(t, tap, auth.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
		owner := one.owner()
		one.do(owner, "PATCH /settings", `{"signup_enabled":false}`).want(200)
		changed := time.Now()
		for _, o := range []*office{two, three} {
			o.await(func() bool { return !o.Settings(t.Context()).SignUp.On() })
		}
		if took := time.Since(changed); took > 5*time.Second { // a second, on an idle machine
			t.Errorf("it took %s", took)
		}
		failed := make(chan struct{})
		var once sync.Once
		tap.Reset(storetap.Hooks{Background: true, Fault: func(_ context.Context, method string, _ int) storetap.Fault {
			if method == "Settings" {
				once.Do(func() { close(failed) })
				return storetap.FailsBefore
			}
			return storetap.NoFault
		}})
		<-failed
		one.do(owner, "PATCH /settings", `{"signup_enabled":true}`).want(200)
		two.await(func() bool { return two.Settings(t.Context()).SignUp.On() })
		if three.Settings(t.Context()).SignUp.On() {
			t.Error("what could not be read is in force")
		}
		if text := log.String(); strings.Contains(text, "the settings can be read again") {
			t.Errorf("they cannot be read yet: %s", text)
		}
		tap.Reset(storetap.Hooks{})
		three.await(func() bool { return three.Settings(t.Context()).SignUp.On() })
		three.await(func() bool { return strings.Contains(log.String(), "the settings can be read again") })
		if n := strings.Count(log.String(), "the settings cannot be read"); n != 1 {
			t.Errorf("an outage is told %d times", n)
		}
	})
}

// await polls until something holds.
func (o *office) await(holds func() bool) {
	o.t.Helper()
	tick, deadline := time.NewTicker(5*time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			o.t.Fatal("it never came into force")
		}
	}
}

// A service that was switched off starts switched off: without its settings it does not
// start.
func TestSettingsAtStart(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		tap := storetap.New(store)
		tap.Reset(storetap.Hooks{Background: true, Fault: func(_ context.Context, method string, _ int) storetap.Fault {
			if method == "Settings" {
				return storetap.FailsBefore
			}
			return storetap.NoFault
		}})
		_, err := auth.New(t.Context(), tap, auth.WithDevMode())
		if !errors.Is(err, storetap.ErrFault) || !strings.Contains(err.Error(), "settings cannot be read") {
			t.Errorf("%v", err)
		}
	})
}

// When the service is switched off, all endpoints are closed except to users who can
// switch it on again: by role, as checked at sign-in, with every sign-in method.
func TestSwitchedOff(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner, ada := o.owner(), o.LoginAs(t, "ada@example.com")
		writer := o.LoginAs(t, "writer@example.com", authtest.Permissions("auth.settings.*"))
		reader := o.LoginAs(t, "reader@example.com", authtest.Permissions("auth.settings.read", "auth.users.*"))
		o.do(owner, "PATCH /settings", `{"enabled":false}`).want(200)
		send := func(who *authtest.SignedIn, method, path, body string) int {
			r := httptest.NewRequestWithContext(t.Context(), method, "/auth/v1"+path, strings.NewReader(body))
			if body == "" {
				r.Body = http.NoBody
			} else {
				r.Header.Set("Content-Type", "application/json")
			}
			if who != nil {
				who.Sign(r)
			}
			w := httptest.NewRecorder()
			o.Handler().ServeHTTP(w, r)
			return w.Code
		}
		login := func(email string) string { return `{"email":"` + email + `","password":"` + authtest.Password + `"}` }
		for _, c := range []struct {
			who          *authtest.SignedIn
			method, path string
			body         string
			status       int
		}{
			{nil, "GET", "/healthz", "", 200},
			{nil, "GET", "/settings", "", 404},
			{nil, "POST", "/signup", login("new@example.com"), 404},
			{nil, "POST", "/forgot-password", `{"email":"ada@example.com"}`, 404},
			{nil, "POST", "/login", login("ada@example.com"), 404},
			{nil, "POST", "/login", login("reader@example.com"), 404},
			{nil, "POST", "/login", login("writer@example.com"), 200},
			{nil, "POST", "/login", login("owner@example.com"), 403}, // the answer asks for the second factor
			{ada, "GET", "/me", "", 404},
			{reader, "GET", "/me", "", 404},
			{owner, "GET", "/me", "", 200},
			{owner, "GET", "/sessions", "", 404},
			{ada, "PATCH", "/me", `{"full_name":"x"}`, 404},
			{nil, "POST", "/refresh", `{"refresh_token":"` + ada.RefreshToken + `"}`, 404},
			{nil, "POST", "/refresh", `{"refresh_token":"` + writer.RefreshToken + `"}`, 200},
		} {
			if got := send(c.who, c.method, c.path, c.body); got != c.status {
				t.Errorf("%s %s %.60s: %d, want %d", c.method, c.path, c.body, got, c.status)
			}
		}
		o.do(owner, "GET /users", "").want(200)
		o.do(owner, "PATCH /settings", `{"enabled":true}`).want(200)
		if got := send(nil, "POST", "/refresh", `{"refresh_token":"`+ada.RefreshToken+`"}`); got != 200 {
			t.Errorf("the session of before: %d", got)
		}
	})
}

// Diagnostics report the observations of one instance, and no secret.
func TestDiagnostics(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store, auth.WithTrustedProxies("10.0.0.0/8"))
		owner := o.owner()
		o.do(owner, "PATCH /settings", `{"signup_enabled":false}`).want(200)
		a := o.do(owner, "GET /diagnostics", "", "X-Forwarded-For: 203.0.113.9").want(200)
		client, _ := a.body["client"].(map[string]any)
		if client["ip"] != "192.0.2.1" || client["unheeded"] != true || fmt.Sprint(client["forwarded"]) != "[X-Forwarded-For]" || client["trusted_proxies"] != 1.0 {
			t.Errorf("client %v", client)
		}
		settings, _ := a.body["settings"].(map[string]any)
		if settings["revision"] != 1.0 || settings["read_at"] == nil || settings["failing"] != false {
			t.Errorf("settings %v", settings)
		}
		keys, _ := a.body["keys"].([]any)
		if len(keys) != 1 || keys[0].(map[string]any)["signs"] != true {
			t.Errorf("keys %v", keys)
		}
		if fmt.Sprint(a.body["api_keys"]) != "[]" {
			t.Errorf("API keys %v", a.body["api_keys"])
		}
		mail, _ := a.body["mail"].(map[string]any)
		at, _ := a.body["store"].(map[string]any)
		_, onPostgres := store.(interface{ Migrate(context.Context) error })
		if mail["waiting"] == nil || (at["schema_version"] != nil) != onPostgres || (at["ahead_by"] != nil) != onPostgres {
			t.Errorf("mail %v, store %v", mail, at)
		}
	})
}
