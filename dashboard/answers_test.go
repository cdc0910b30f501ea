package dashboard_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// An account's pages answer the questions of operators on every tab: who banned it and the
// reason, who gave it a role, who impersonates it.
func TestAnswersAboutAUser(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ids := o.ids()
	b := o.signedIn("owner@example.com")
	b.get("/dashboard" + ids.Replace("/users/{eve}"))
	b.want(http.StatusOK, "Banned permanently. By test (System): "+spaces.ReplaceAllString(hostile, " "), "Change the ban")
	b.get("/dashboard" + ids.Replace("/users/{ada}?tab=timeline"))
	b.want(http.StatusOK, "+editor")
	b.get("/dashboard" + ids.Replace("/users/{ada}?tab=sessions"))
	b.want(http.StatusOK, "Operators who act as this user", "boss@example.com", "ticket")
}

// Every tab of an account reports its locks.
func TestLocksOnEveryTab(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{}, auth.WithRateLimits(auth.RateLimits{}))
	ada := o.scene()
	b := o.signedIn("owner@example.com")
	for range 12 {
		_, err := o.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: "wrong password"})
		if err == nil {
			t.Fatal("a wrong password is right")
		}
	}
	for _, tab := range []string{"", "?tab=timeline", "?tab=sessions", "?tab=access", "?tab=roles"} {
		b.get("/dashboard/users/" + ada.ID + tab)
		b.want(http.StatusOK, "Too many failed attempts")
	}
}

// A form that revokes sessions names their owner and their count first.
func TestWhoseSessionsEnd(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ids := o.ids()
	b := o.signedIn("owner@example.com")
	b.get("/dashboard/sessions/revoke?ip=192.0.2.7")
	b.want(http.StatusOK, "3 sessions would end now.", "ada@example.com")
	if at := b.form().Get("ip"); at != "192.0.2.7" {
		t.Errorf("the address is %q", at)
	}
	b.get("/dashboard/sessions/revoke?before=2026-01-02")
	b.want(http.StatusOK)
	if at := b.form().Get("before"); at != "2026-01-02T00:00" {
		t.Errorf("the time is %q", at)
	}
	b.get("/dashboard/sessions/revoke?ip=192.0.2.7&before=nonsense")
	b.want(http.StatusOK)
	b.get("/dashboard/sessions/revoke")
	b.want(http.StatusOK)
	if strings.Contains(b.text(), "would end now") {
		t.Error("a form that does not say yet which sessions shows some")
	}
	b.get("/dashboard" + ids.Replace("/users/{ada}/sign-out"))
	b.want(http.StatusOK, "4 sessions would end now.", "192.0.2.7", "Operator acting as the user")
}

// Lists find an account by its email address or phone number where the operation takes its
// id.
func TestFiltersByAddress(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ids := o.ids()
	b := o.signedIn("owner@example.com")
	for _, name := range []string{"user", "actor"} {
		b.get("/dashboard/audit?" + url.Values{name: {"ADA@example.com"}, "action": {"user.signed_in"}}.Encode())
		b.want(http.StatusOK, "ada@example.com")
		if n := strings.Count(b.body, "<tr>") - 1; n != 3 {
			t.Errorf("by %s: %d rows, want 3", name, n)
		}
		export := ids.Replace("/dashboard/audit/export?action=user.signed_in&") + name + "=" + ids.Replace("{ada}")
		if !strings.Contains(b.body, strings.ReplaceAll(export, "&", "&amp;")) {
			t.Errorf("by %s: what is exported is not what is shown", name)
		}
	}
	b.get("/dashboard/messages?user=ada@example.com")
	b.want(http.StatusOK, "reset_password")
	b.get("/dashboard/audit?user=nobody@example.com")
	b.want(http.StatusOK)
	if strings.Count(b.body, "<tr>") > 1 {
		t.Error("somebody who is not there has events")
	}
}

// Forms offer only valid choices: scopes that keys may have, URLs of the list of
// redirects. They report an empty selection.
func TestFormsOfferWhatCanBe(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{}, auth.WithRedirectURLs("https://app.test/after"))
	ids := o.ids()
	b := o.signedIn("owner@example.com")
	b.get("/dashboard/keys/new")
	b.want(http.StatusOK)
	for _, box := range []string{admin.PermUsersRead, admin.PermSettingsRead, admin.PermRolesAssign, "role/" + admin.RoleSupport} {
		if !strings.Contains(b.body, `value="`+box+`"`) {
			t.Errorf("%s is not offered", box)
		}
	}
	for _, never := range []string{admin.PermKeysWrite, admin.PermImpersonate, "role/" + auth.RoleOwner, "role/" + admin.RoleAdmin} {
		if strings.Contains(b.body, `value="`+never+`"`) {
			t.Errorf("%s is offered", never)
		}
	}
	for _, at := range []string{ids.Replace("/users/{ada}/impersonate"), "/invitations/new"} {
		b.get("/dashboard" + at)
		b.want(http.StatusOK)
		if !strings.Contains(b.body, `<option value="https://app.test/after">`) {
			t.Errorf("%s does not say where it may lead", at)
		}
	}
	b.get("/dashboard/users/bulk?action=ban")
	b.want(http.StatusOK, "No users were selected")
	b.get("/dashboard" + ids.Replace("/users/bulk?action=ban&ids={ada}"))
	if strings.Contains(b.text(), "No users were selected") {
		t.Error("somebody was")
	}
}

// The hourly budget of a key is set, shown again, and removed.
func TestHourlyLimitOfAKey(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	b := o.signedIn("owner@example.com")
	b.get("/dashboard/keys/new")
	form := b.form()
	form.Set("name", "cleaner")
	form.Set("scopes", admin.PermUsersBan)
	form.Set("hourly_limit", "many")
	b.post("/dashboard/keys/new", form)
	b.want(http.StatusUnprocessableEntity, "has to be a number")
	form.Set("hourly_limit", "60")
	b.post("/dashboard/keys/new", form)
	b.want(http.StatusOK, "sk_live_")
	for _, want := range []int{60, 0} {
		page, err := o.adm.ListKeys(t.Context(), admin.System("test"), admin.ListKeysParams{})
		if err != nil || len(page.Keys) != 1 {
			t.Fatal(page, err)
		}
		k := page.Keys[0]
		if k.HourlyLimit != want {
			t.Errorf("limit %d, want %d", k.HourlyLimit, want)
		}
		b.get("/dashboard/keys/" + k.ID + "/edit")
		if form = b.form(); form.Get("hourly_limit") != map[int]string{60: "60"}[want] {
			t.Errorf("the form shows %q", form.Get("hourly_limit"))
		}
		form.Set("hourly_limit", "")
		b.post("/dashboard/keys/"+k.ID+"/edit", form)
		b.want(http.StatusOK, "Saved.")
	}
}

// An owner marks the name of a role as privileged, and removes the mark.
func TestPrivilegedRole(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	b := o.signedIn("owner@example.com")
	b.get("/dashboard/roles/new")
	form := b.form()
	form.Set("name", "superuser")
	form.Set("privileged", "yes")
	b.post("/dashboard/roles/new", form)
	for _, want := range []bool{true, false} {
		list, err := o.adm.Roles(t.Context(), admin.System("test"))
		if err != nil {
			t.Fatal(err)
		}
		if r := list.Roles[slices.IndexFunc(list.Roles, func(r store.RolePermissions) bool { return r.Name == "superuser" })]; r.Privileged != want {
			t.Errorf("privileged %t, want %t", r.Privileged, want)
		}
		b.get("/dashboard/roles/superuser/edit")
		form = b.form()
		if form.Has("privileged") != want {
			t.Errorf("the form shows %q", form.Get("privileged"))
		}
		form.Del("privileged")
		form.Set("sure", "yes")
		b.post("/dashboard/roles/superuser/edit", form)
	}
}

// An account that has not accepted its permissions is listed, and gets the link.
func TestWaitingAccounts(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	b := o.signedIn("owner@example.com")
	u, err := o.adm.CreateUser(t.Context(), admin.System("test"), admin.CreateUserParams{Email: "new@example.com", EmailVerified: true, Roles: []string{"support"}})
	if err != nil {
		t.Fatal(err)
	}
	b.get("/dashboard/users?status=waiting")
	b.want(http.StatusOK, "new@example.com")
	if strings.Contains(b.text(), "ada@example.com") {
		t.Error("an account that does not wait is listed")
	}
	b.want(http.StatusOK, "Waiting since", "test")
	b.get("/dashboard/users/" + u.ID)
	at := "/dashboard/users/" + u.ID + "/send?type=accept"
	b.want(http.StatusOK, "This account waits", "new@example.com", "By test (System)", "Send the link to accept")
	if !slices.Contains(b.links(), at) {
		t.Errorf("no button that leads to %s", at)
	}
	b.get(at)
	if form := b.form(); form.Get("type") != "accept" {
		t.Errorf("the form sends %q", form.Get("type"))
	}
	b.post(at, b.form())
	o.Mail(t, "new@example.com", auth.KindInvitation)

	b.get("/dashboard/users/" + u.ID + "/roles")
	b.want(http.StatusOK, `"address":"new@example.com"`)
	b.get("/dashboard/users/" + o.owner.ID)
	if strings.Contains(b.text(), "This account waits") {
		t.Error("an account that does not wait is shown as waiting")
	}
	permissions := []string{admin.PermUsersRead}
	if _, err := o.adm.CreateRole(t.Context(), admin.System("test").Accepting(), admin.CreateRoleParams{Name: "reader", Permissions: permissions}); err != nil {
		t.Fatal(err)
	}
	o.user("reader@example.com", "reader")
	reader := o.signedIn("reader@example.com")
	reader.get("/dashboard/users/" + u.ID)
	reader.want(http.StatusOK, "This account waits", "This needs the permission auth.messages.send")
	if slices.Contains(reader.links(), at) {
		t.Error("the button is shown to somebody who may not send")
	}
}

// Invitations and new accounts have a choice of the service's languages.
func TestALanguageIsChosen(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	b := o.signedIn("owner@example.com")
	for at, email := range map[string]string{"/dashboard/invitations/new": "ada@example.com", "/dashboard/users/new": "bob@example.com"} {
		b.get(at)
		b.want(http.StatusOK, "The language of your browser", "Deutsch", "français")
		form := b.form()
		form.Set("email", email)
		form.Set("locale", "de")
		if form.Has("send") {
			form.Set("send", "invite")
		}
		b.post(at, form)
		b.want(http.StatusOK)
		kind := auth.KindInvitation
		if at == "/dashboard/users/new" {
			kind = auth.KindWelcome
		}
		if m := o.Mail(t, email, kind); m.Locale != "de" {
			t.Errorf("%s: sent in %s", at, m.Locale)
		}
	}
}

// The form for roles warns above its button if nobody has verified the account's address.
func TestRolesOfAnUnverifiedAddress(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	b := o.signedIn("owner@example.com")
	for name, c := range map[string]struct {
		p     admin.CreateUserParams
		warns bool
	}{
		"email":          {admin.CreateUserParams{Email: "new@example.com"}, true},
		"phone":          {admin.CreateUserParams{Phone: o.number()}, true},
		"verified email": {admin.CreateUserParams{Email: "old@example.com", EmailVerified: true, Phone: o.number()}, false},
	} {
		u, err := o.adm.CreateUser(t.Context(), admin.System("test"), c.p)
		if err != nil {
			t.Fatal(err)
		}
		b.get("/dashboard/users/" + u.ID + "/roles")
		b.want(http.StatusOK, "Change the roles")
		warning, button := strings.Index(b.text(), "is not verified: a person without this address"), strings.Index(b.text(), "Save")
		if (warning >= 0) != c.warns || warning > button {
			t.Errorf("%s: %s", name, b.text())
		}
	}
}

// A role that needs a second factor is marked, and a permission that only it gives is not
// simply allowed.
func TestCheckNamesTheSecondFactor(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{}, auth.WithSettings(auth.Settings{MFARequiredFor: []string{"accountant"}}))
	system := admin.System("test").Accepting()
	for _, name := range []string{"accountant", "writer"} {
		if _, err := o.adm.CreateRole(t.Context(), system, admin.CreateRoleParams{Name: name, Permissions: []string{"notes.write"}}); err != nil {
			t.Fatal(err)
		}
	}
	b := o.signedIn("owner@example.com")
	only, both := o.user("only@example.com", "accountant"), o.user("both@example.com", "accountant", "writer")
	b.get("/dashboard/users/" + only.ID + "?tab=roles&permission=notes.write")
	b.want(http.StatusOK, "Needs a second factor", "Not allowed yet: accountant needs a second factor, and the account has none.")
	b.get("/dashboard/users/" + both.ID + "?tab=roles&permission=notes.write")
	b.want(http.StatusOK, "Allowed, by: accountant, writer.")
	o.LoginAs(t, "only@example.com", authtest.AAL2())
	b.get("/dashboard/users/" + only.ID + "?tab=roles&permission=notes.write")
	b.want(http.StatusOK, "Allowed in sessions with a second factor, by: accountant.")
}

// The audit log names a person by the email address, and says which kind of program acted.
func TestAuditLogNamesItsActors(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ids := o.ids()
	b := o.signedIn("owner@example.com")
	at := "/dashboard" + ids.Replace("/users/{ada}/ban")
	b.get(at)
	form := b.form()
	form.Set("reason", "spam")
	form.Set("typed", "ada@example.com")
	b.post(at, form)
	b.want(http.StatusOK, "Banned")
	key, err := o.adm.CreateKey(t.Context(), admin.System("setup"), admin.CreateKeyParams{Name: "nightly", Scopes: []string{admin.PermUsersBan}})
	if err != nil {
		t.Fatal(err)
	}
	for i, who := range []admin.Actor{admin.System("setup"), admin.System("authmount user ban"), admin.Key(key.Secret.Reveal())} {
		until := o.Clock.Now().AddDate(0, 0, 1+i)
		if _, err := o.adm.BanUser(t.Context(), who, admin.BanUserParams{UserID: ids.Replace("{ada}"), Reason: "spam", Until: until}); err != nil {
			t.Fatal(err)
		}
	}
	b.get("/dashboard/audit?action=user.banned&target=ada@example.com")
	b.want(http.StatusOK, "spam owner@example.com ada@example.com", "setup System ada@", "authmount user ban Command line ada@", "nightly Key ada@")
}
