package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
)

// An account's pages answer the questions of operators on every tab: who banned it and the
// reason, who gave it a role, who impersonates it.
func TestAnswersAboutAUser(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ids := o.ids()
	b := o.signedIn("owner@example.com")
	b.get("/dashboard" + ids.Replace("/users/{eve}"))
	b.want(http.StatusOK, "Banned for good. By test: "+spaces.ReplaceAllString(hostile, " "), "Change the ban")
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
		b.want(http.StatusOK, "Too many failures hold sign-ins off")
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
	b.want(http.StatusOK, "4 sessions would end now.", "192.0.2.7", "Impersonation")
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
	for _, box := range []string{admin.PermUsersRead, admin.PermSettingsRead} {
		if !strings.Contains(b.body, `value="`+box+`"`) {
			t.Errorf("%s is not offered", box)
		}
	}
	for _, never := range []string{admin.PermKeysWrite, admin.PermRolesAssign, admin.PermImpersonate} {
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
	b.want(http.StatusOK, "Nobody was selected")
	b.get("/dashboard" + ids.Replace("/users/bulk?action=ban&ids={ada}"))
	if strings.Contains(b.text(), "Nobody was selected") {
		t.Error("somebody was")
	}
}
