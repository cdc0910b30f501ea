package dashboard_test

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/dashboard"
	"github.com/authmount/auth/store"
)

// deeds are the values posted to each form, in addition to its initial ones, and the
// page's text afterwards. {ada}, {eve}, {key} and so on are ids of the scene.
var deeds = map[string]struct {
	at   string
	form url.Values
	want string
}{
	"/first-owner":                             {}, // TestFirstOwner
	"/users/new":                               {"/users/new", url.Values{"email": {"new@example.com"}}, "The account was created."},
	"/users/bulk":                              {"/users/bulk?action=ban&ids={ada}", url.Values{"reason": {"spam"}, "sure": {"1"}}, "1 done, 0 skipped, 0 failed"},
	"/users/import":                            {"/users/import", url.Values{"rows": {`{"email":"imported@example.com"}`}}, "Job"},
	"/users/{id}/edit":                         {"/users/{ada}/edit", url.Values{"full_name": {"Ada Byron"}}, "Saved."},
	"/users/{id}/address":                      {"/users/{ada}/address", url.Values{"email": {"ada@example.org"}, "email_verified": {"1"}}, "ada@example.org"},
	"/users/{id}/metadata":                     {"/users/{ada}/metadata", url.Values{"app_metadata": {`{"plan":"gold"}`}}, "gold"},
	"/users/{id}/ban":                          {"/users/{ada}/ban", url.Values{"reason": {"spam"}, "typed": {"ada@example.com"}}, "Banned permanently."},
	"/users/{id}/unban":                        {"/users/{eve}/unban", nil, "The ban was lifted."},
	"/users/{id}/unlock":                       {"/users/{ada}/unlock", nil, "Unlocked."},
	"/users/{id}/delete":                       {"/users/{eve}/delete", url.Values{"reason": {"asked"}, "typed": {"eve@example.com"}}, "Deleted."},
	"/users/{id}/anonymize":                    {"/users/{eve}/anonymize", url.Values{"reason": {"asked"}, "typed": {"eve@example.com"}}, "Anonymised."},
	"/users/{id}/password":                     {"/users/{ada}/password", url.Values{"password": {"correct horse battery staple 7"}}, "The password was set."},
	"/users/{id}/factors/{factor}/remove":      {"/users/{mfa}/factors/{factor}/remove", nil, "Removed."},
	"/users/{id}/identities/{identity}/unlink": {"/users/{linked}/identities/{identity}/unlink", url.Values{"force": {"1"}}, "Unlinked."},
	"/users/{id}/link":                         {"/users/{ada}/link", nil, "It is shown only once."},
	"/users/{id}/send":                         {"/users/{ada}/send", nil, "It was sent."},
	"/users/{id}/impersonate":                  {"/users/{ada}/impersonate", url.Values{"reason": {"ticket 7"}, "redirect_to": {"{url}/app"}, "code_challenge": {actChallenge}}, "The link is valid for one minute."},
	"/users/{id}/roles":                        {"/users/{ada}/roles", url.Values{"roles": {"support"}}, "The roles were changed"},
	"/users/{id}/sign-out":                     {"/users/{ada}/sign-out", nil, "All sessions have ended."},
	"/sessions/{id}/end":                       {"/sessions/{session}/end", nil, "The session has ended."},
	"/sessions/revoke":                         {"/sessions/revoke", url.Values{"ip": {"192.0.2.7"}, "typed": {"end"}}, "3 sessions ended"},
	"/impersonations/{id}/end":                 {"/impersonations/{impersonation}/end", nil, "It has ended."},
	"/roles/new":                               {"/roles/new", url.Values{"name": {"reader"}, "permissions": {"notes.write"}}, "reader"},
	"/roles/{role}/edit":                       {"/roles/editor/edit", url.Values{"patterns": {"notes.*"}, "sure": {"1"}}, "The role was changed"},
	"/roles/{role}/delete":                     {"/roles/auditor/delete", url.Values{"typed": {"auditor"}}, "The role was deleted."},
	"/invitations/new":                         {"/invitations/new", url.Values{"email": {"carl@example.com"}}, "carl@example.com"},
	"/invitations/{id}/resend":                 {"/invitations/{invitation}/resend", nil, "The invitation was sent."},
	"/invitations/{id}/withdraw":               {"/invitations/{invitation}/withdraw", nil, "The invitation was withdrawn."},
	"/messages/{id}/retry":                     {"/messages/{message}/retry", nil, "It was sent."},
	"/keys/new":                                {"/keys/new", url.Values{"name": {"billing"}, "scopes": {"auth.users.read"}}, "sk_live_"},
	"/keys/{id}/edit":                          {"/keys/{key}/edit", url.Values{"name": {"other"}}, "Saved."},
	"/keys/{id}/rotate":                        {"/keys/{key}/rotate", nil, "sk_live_"},
	"/keys/{id}/revoke":                        {"/keys/{key}/revoke", url.Values{"typed": {hostile}}, "The key was revoked."},
	"/settings/{name}/edit":                    {"/settings/magic_link_enabled/edit", url.Values{"value": nil}, "Saved"},
	"/settings/test-mail":                      {"/settings/test-mail", nil, "It works"},
	"/settings/test-sms":                       {"/settings/test-sms", nil, "It did not work"},
	"/providers/{name}/test":                   {"/providers/acme/test", nil, "It works"},
}

// Every form works without scripts. It requires a typed confirmation where there is one,
// and is refused without it.
func TestEveryForm(t *testing.T) {
	t.Parallel()
	forms := dashboard.Forms()
	for at := range deeds {
		if !slices.Contains(forms, at) {
			t.Errorf("there is no form %s", at)
		}
	}
	for _, at := range forms {
		deed, ok := deeds[at]
		if !ok {
			t.Errorf("the form %s has no test: add a row to deeds", at)
			continue
		}
		if deed.at == "" {
			continue
		}
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, nil, admin.Options{})
			ids := o.ids()
			b := o.signedIn("owner@example.com")
			b.get("/dashboard" + ids.Replace(deed.at))
			b.want(http.StatusOK)
			o.wantCurl(b, at)
			form := b.form()
			for name, list := range deed.form {
				form.Del(name)
				for _, text := range list {
					form.Add(name, ids.Replace(text))
				}
			}
			if form.Has("typed") {
				wrong := url.Values{}
				for name, list := range form {
					wrong[name] = list
				}
				wrong.Set("typed", "something else")
				b.post("/dashboard"+ids.Replace(deed.at), wrong)
				b.want(http.StatusUnprocessableEntity)
			}
			b.post("/dashboard"+ids.Replace(deed.at), form)
			b.want(http.StatusOK, deed.want)
		})
	}
}

// Only a form that gives a role explains when roles with a second factor take effect.
func TestNoticeOfChangedRoles(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	at := o.ids().Replace("/dashboard/users/{ada}/roles")
	b := o.signedIn("owner@example.com")
	for _, c := range []struct {
		roles []string
		waits bool
	}{{[]string{"support", "auditor"}, true}, {[]string{"support"}, false}, {nil, false}} {
		b.get(at)
		b.want(http.StatusOK)
		form := b.form()
		form["roles"] = c.roles
		b.post(at, form)
		b.want(http.StatusOK, "The roles were changed")
		if got := strings.Contains(b.text(), "a role that needs a second factor waits"); got != c.waits {
			t.Errorf("%q: the notice is about second factors: %t", c.roles, got)
		}
	}
}

var asCurl = regexp.MustCompile(`curl -X ([A-Z]+) '([^']+)'`)

// wantCurl fails unless a form shows the equivalent API request, and the API has that
// endpoint.
func (o *office) wantCurl(b *browser, form string) {
	o.t.Helper()
	asked := asCurl.FindStringSubmatch(b.text())
	if none := slices.Contains([]string{"/users/bulk", "/users/import", "/users/{id}/impersonate"}, form); none != (asked == nil) {
		o.t.Errorf("as curl: %q", asked)
	}
	if asked == nil {
		return
	}
	r, err := http.NewRequestWithContext(o.t.Context(), asked[1], asked[2], nil)
	if err != nil {
		o.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		o.t.Errorf("%s %s without a key is %d", asked[1], asked[2], res.StatusCode)
	}
}

// ids replaces the names of the scene by its ids.
func (o *office) ids() *strings.Replacer {
	o.t.Helper()
	ctx, who := o.t.Context(), admin.System("test").Accepting()
	must := func(err error) {
		o.t.Helper()
		if err != nil {
			o.t.Fatal(err)
		}
	}
	ada := o.scene()
	pairs := []string{"{ada}", ada.ID, "{url}", o.url}
	eve, err := o.adm.LookupUser(ctx, who, store.ByEmail("eve@example.com"))
	must(err)
	keys, err := o.adm.ListKeys(ctx, who, admin.ListKeysParams{})
	must(err)
	invitations, err := o.adm.Invitations(ctx, who, admin.InvitationsParams{})
	must(err)
	sessions, err := o.adm.UserSessions(ctx, who, ada.ID)
	must(err)
	pairs = append(pairs, "{eve}", eve.ID, "{key}", keys.Keys[0].ID, "{invitation}", invitations.Invitations[0].ID, "{session}", sessions[0].ID)
	mfa := o.LoginAs(o.t, "mfa@example.com", authtest.AAL2())
	factors, err := o.adm.Factors(ctx, who, mfa.User.ID)
	must(err)
	pairs = append(pairs, "{mfa}", mfa.User.ID, "{factor}", factors[0].ID)
	linked, err := o.ImportUser(ctx, auth.ImportUserParams{Email: "linked@example.com", EmailVerified: true, Identities: []auth.Identity{{Provider: "acme", Subject: "7", Email: "linked@example.com"}}})
	must(err)
	pairs = append(pairs, "{linked}", linked.ID, "{identity}", linked.Identities[0].ID)
	boss := o.LoginAs(o.t, "boss@example.com", authtest.Roles(auth.RoleOwner))
	imp, err := o.adm.Impersonate(ctx, admin.User(auth.Caller{UserID: boss.User.ID, SessionID: boss.SessionID}), admin.ImpersonateParams{UserID: ada.ID, Reason: "ticket"})
	must(err)
	return strings.NewReplacer(append(pairs, "{impersonation}", imp.SessionID, "{message}", o.failedMessage(ada))...)
}

// The page of a job names the reason for each row that was not done.
func TestJobNamesItsFailures(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	b := o.signedIn("owner@example.com")
	b.post("/dashboard/users/import", url.Values{"on_conflict": {"error"}, "rows": {`{"email":"a@example.com"}
{"email":"b@example.com","roles":["help-desk"]}
{"email":"owner@example.com"}
{"email":"c@example.com","surname":"C"}`}})
	for at := b.at.Path; !strings.Contains(b.text(), "Rows 4 Done 1 Skipped 0 Failed 3"); b.get(at) { // the job is running
		b.want(http.StatusOK, "Rows 4")
	}
	b.want(http.StatusOK, `There is no role "help-desk".`, "surname: is no field of accounts", "owner@example.com")
	if _, err := o.Store.User(t.Context(), store.ByEmail("b@example.com")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the account of the refused row: %v", err)
	}
}
