package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/axetest"
	"github.com/authmount/auth/internal/browsertest"
	"github.com/authmount/auth/pages"
)

// actingOffice is an office whose application has package pages and a page of its own.
func actingOffice(t *testing.T) (o *office, ada string) {
	t.Helper()
	o = newOffice(t, nil, admin.Options{})
	o.mux.Handle("/account/", pages.Must(o.Auth, pages.Options{Home: "/notes"}))
	o.mux.Handle("/notes", o.RequirePage(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := auth.ClaimsFrom(r.Context())
		_, _ = w.Write([]byte("notes of " + c.Email))
		if c.Impersonator != nil {
			_, _ = w.Write([]byte(" for an operator"))
		}
	})))
	return o, o.user("ada@example.com").ID
}

// begin starts to act as a user, and returns the link of the answer.
func (b *browser) begin(id string, form url.Values) string {
	b.t.Helper()
	form.Set("reason", "ticket 7")
	b.post("/dashboard/users/"+id+"/impersonate", form)
	b.want(http.StatusOK, "The link is valid for one minute.")
	for n := range b.doc.Descendants() {
		for _, a := range n.Attr {
			if n.Data == "a" && a.Key == "href" && strings.Contains(a.Val, "code=") {
				return a.Val
			}
		}
	}
	b.t.Fatalf("no link:\n%s", b.text())
	return ""
}

// An operator goes from the dashboard into the application as another user.
func TestActInTheApplication(t *testing.T) {
	t.Parallel()
	o, ada := actingOffice(t)
	b := o.signedIn("owner@example.com")
	b.get("/dashboard/users/" + ada + "/impersonate")
	b.want(http.StatusOK, "A path as in the address bar, such as /orders.")
	link := b.begin(ada, url.Values{"return_to": {"/notes"}})
	b.get(link)
	b.want(http.StatusOK, "ada@example.com", "Act as this user")
	b.get(link) // looking uses nothing up
	b.post(b.at.Path, b.form())
	b.want(http.StatusOK, "notes of ada@example.com for an operator")
	if b.at.Path != "/notes" {
		t.Errorf("at %s", b.at)
	}
	token := b.accessToken()
	b.get("/dashboard/") // the operator's own session goes on
	b.want(http.StatusOK, "owner@example.com", "In the application you act as ada@example.com.")
	cyd := o.user("cyd@example.com").ID
	b.get(b.begin(cyd, url.Values{})) // also while acting as somebody else
	b.post(b.at.Path, b.form())
	b.want(http.StatusOK, "notes of cyd@example.com for an operator")
	if status := o.me(token); status != http.StatusUnauthorized {
		t.Errorf("the token of the replaced impersonation: %d", status)
	}
	b.get(link)
	b.want(http.StatusBadRequest)
	o.Clock.Advance(auth.ImpersonationLife + 2*time.Minute)
	b.get("/notes")
	if b.at.Path != "/account/sign-in" {
		t.Errorf("after its end: %s", b.at)
	}
}

// Nobody else's browser goes on with the link, and the link ends after a minute.
func TestActInAnotherBrowser(t *testing.T) {
	t.Parallel()
	o, ada := actingOffice(t)
	b := o.signedIn("owner@example.com")
	link := b.begin(ada, url.Values{})
	at, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"code": {at.Query().Get("code")}}
	victim := o.browser()
	victim.get(link)
	victim.want(http.StatusBadRequest, "another browser")
	if strings.Contains(victim.text(), "ada@example.com") {
		t.Error("a stranger's page names the user")
	}
	victim.post("/account/act", form)
	victim.want(http.StatusBadRequest)
	other := o.signedIn("owner@example.com") // has a verifier, of another link
	other.begin(ada, url.Values{})
	other.post("/account/act", form)
	other.want(http.StatusBadRequest)
	for _, who := range []*browser{victim, other} {
		who.get("/notes")
		if who.at.Path != "/account/sign-in" {
			t.Errorf("signed in at %s", who.at)
		}
	}
	b.header.Set("Origin", "https://office.example.com") // a dashboard that is also elsewhere
	b.header.Set("Sec-Fetch-Site", "same-origin")
	b.post("/dashboard/users/"+ada+"/impersonate", url.Values{"reason": {"x"}})
	b.want(http.StatusForbidden, "Open the dashboard at "+o.url)
	b.header.Del("Origin")
	late := b.begin(ada, url.Values{})
	o.Clock.Advance(time.Minute)
	b.get(late)
	b.want(http.StatusBadRequest)
	b.post("/dashboard/users/"+ada+"/impersonate", url.Values{"reason": {"x"}, "return_to": {"https://evil.example.com/"}})
	b.want(http.StatusUnprocessableEntity, "is not a path of the application")
}

// A page of the application begins with its own challenge, which the form takes over.
func TestActAtAPageOfTheApplication(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ada := o.user("ada@example.com").ID
	b := o.signedIn("owner@example.com")
	b.get("/dashboard/users/" + ada + "/impersonate?" + url.Values{"redirect_to": {o.url + "/app"}, "code_challenge": {actChallenge}}.Encode())
	form := b.form()
	if form.Get("code_challenge") != actChallenge || form.Get("redirect_to") != o.url+"/app" {
		t.Fatalf("%v", form)
	}
	if link := b.begin(ada, form); !strings.HasPrefix(link, o.url+"/app?code=") {
		t.Error(link)
	}
}

// accessToken returns the access token in the application's cookie.
func (b *browser) accessToken() string {
	b.t.Helper()
	at, err := url.Parse(b.o.url + "/notes")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range b.client.Jar.Cookies(at) {
		if strings.HasSuffix(c.Name, "authmount-access") {
			return c.Value
		}
	}
	b.t.Fatal("no access token")
	return ""
}

// me returns the status of GET /me with a copied access token.
func (o *office) me(token string) int {
	o.t.Helper()
	b := o.browser()
	b.header.Set("Authorization", "Bearer "+token)
	b.get("/auth/v1/me")
	return b.status
}

// actAs returns an operator's browser that acts as a user.
func (o *office) actAs(id string) *browser {
	o.t.Helper()
	b := o.signedIn("owner@example.com")
	b.get(b.begin(id, url.Values{"return_to": {"/notes"}}))
	b.post(b.at.Path, b.form())
	b.want(http.StatusOK, "for an operator")
	return b
}

// live returns the number of live impersonations.
func (o *office) live() int {
	o.t.Helper()
	list, err := o.adm.Impersonations(o.t.Context(), admin.System("test").Accepting())
	if err != nil {
		o.t.Fatal(err)
	}
	return len(list)
}

// "Sign out" and "Stop" end the impersonation itself, so that a copy of its token is
// worthless, and nothing of the user's. So does the operator's own sign-in in its place.
func TestActingEndsBySigningOut(t *testing.T) {
	t.Parallel()
	o, ada := actingOffice(t)
	own := o.LoginAs(t, "ada@example.com")
	for name, leave := range map[string]func(*browser){
		"sign out": func(b *browser) {
			b.post("/account/sign-out", url.Values{})
			b.want(http.StatusOK, "owner@example.com")
			if b.at.Path != "/dashboard/" {
				t.Errorf("the operator is at %s", b.at)
			}
		},
		"sign in as oneself": func(b *browser) {
			b.post("/account/sign-in", url.Values{"login": {"owner@example.com"}, "password": {authtest.Password}})
			b.get("/notes")
			b.want(http.StatusOK, "notes of owner@example.com")
		},
	} {
		b := o.actAs(ada)
		token := b.accessToken()
		if status := o.me(token); status != http.StatusOK {
			t.Fatalf("%s: before: %d", name, status)
		}
		leave(b)
		if status := o.me(token); status != http.StatusUnauthorized || o.live() != 0 {
			t.Errorf("%s: the copied token gets %d, and %d impersonations are live", name, status, o.live())
		}
		b.get("/dashboard/")
		b.want(http.StatusOK, "owner@example.com")
		if strings.Contains(b.text(), "In the application") {
			t.Errorf("%s: the dashboard goes on about it", name)
		}
	}
	if status := o.me(own.AccessToken); status != http.StatusOK {
		t.Errorf("the user's own session: %d", status)
	}
}

// While acting, the account says so and offers no forms except the end. Other pages and
// posts are refused as such, ask for no secret of the user, and change and count nothing.
func TestActingInTheAccount(t *testing.T) {
	t.Parallel()
	o, ada := actingOffice(t)
	closed := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the page was shown") })
	o.mux.Handle("/factor", o.RequirePage(closed, auth.AAL2()))
	o.mux.Handle("/fresh", o.RequirePage(closed, auth.FreshAuth(time.Hour)))
	own := o.LoginAs(t, "ada@example.com")
	b := o.actAs(ada)
	b.get("/account/")
	b.want(http.StatusOK, "You are acting as ada@example.com.", "Stop")
	for n := range b.doc.Descendants() {
		for _, a := range n.Attr {
			if n.Data == "form" && a.Key == "action" && a.Val != "/account/sign-out" || n.Data == "a" && a.Key == "href" && strings.HasPrefix(a.Val, "/account/") && a.Val != "/account/" {
				t.Errorf("offers %s", a.Val)
			}
		}
	}
	const refused = "You cannot do this while acting as another user."
	for _, at := range []string{"/account/password", "/account/email", "/account/email/code", "/account/phone", "/account/phone/code", "/account/second-factor", "/account/delete",
		"/account/sign-in/second", "/account/sign-in?reason=insufficient_aal", "/account/sign-in?reason=reauthentication_needed"} {
		b.get(at)
		b.want(http.StatusForbidden, refused)
	}
	for _, at := range []string{"/factor", "/fresh"} {
		b.get(at)
		b.want(http.StatusForbidden, refused)
	}
	for at, form := range map[string]url.Values{
		"profile": {"full_name": {"Eve"}}, "sessions": {}, "identities": {"provider": {"acme"}, "do": {"link"}}, "email/confirm": {}, "email": {"email": {"eve@example.com"}},
		"phone": {"phone": {"+4915199999999"}}, "phone/code": {"code": {"123456"}}, "second-factor": {"code": {"123456"}}, "delete": {"sure": {"yes"}}, "sign-in/second": {"code": {"123456"}},
		"password": {"current_password": {"wrong"}, "password": {"another long password"}},
	} {
		b.post("/account/"+at, form)
		b.want(http.StatusForbidden, refused)
	}
	if status := o.me(own.AccessToken); status != http.StatusOK {
		t.Errorf("the user's own session: %d", status)
	}
	b.get("/notes") // goes on
	b.want(http.StatusOK, "notes of ada@example.com for an operator")
	user := o.browser() // the user's own account has its forms, and names the operator's session
	user.post("/account/sign-in", url.Values{"login": {"ada@example.com"}, "password": {authtest.Password}})
	user.get("/account/")
	user.want(http.StatusOK, "An operator is acting as you", "Save", "Sign out all other devices")
	if strings.Contains(user.text(), "You are acting") {
		t.Error("the user acts as themselves")
	}
	user.post("/account/profile", url.Values{"full_name": {"Ada"}})
	user.want(http.StatusOK, "Saved.")
	user.header.Set("Accept-Language", "de")
	user.get("/account/")
	user.want(http.StatusOK, "Jemand vom Betreiber handelt gerade als du")
	user.post("/account/sessions", url.Values{})
	if status := o.live(); status != 0 {
		t.Errorf("the user ended %d too few", status)
	}
	b.get("/dashboard/")
	b.want(http.StatusOK, "owner@example.com")
	if strings.Contains(b.text(), "In the application") {
		t.Error("the user has ended it, and the dashboard says otherwise")
	}
}

// The page that goes on as a user, and the one that refuses another browser, are accessible.
func TestActAccessibility(t *testing.T) {
	t.Parallel()
	axe := axetest.Source(t)
	o, ada := actingOffice(t)
	ctx := o.window("owner@example.com", true)
	look := func(name string) {
		t.Helper()
		axetest.Check(ctx, t, axe, name, axetest.Looks(), func(look string) chromedp.Action { return browsertest.Shot(t, look) })
	}
	browsertest.Do(ctx, t, chromedp.Navigate(o.url+"/dashboard/users/"+ada+"/impersonate"), browsertest.Type("[name=reason]", "ticket 7"+kb.Enter), browsertest.Visible("a[href*='code=']"))
	var link string
	browsertest.Do(ctx, t, chromedp.Evaluate(`document.querySelector("a[href*='code=']").href`, &link))
	browsertest.Do(ctx, t, chromedp.Navigate(link), browsertest.Until(`document.body.textContent.includes('Act as this user')`))
	look("act")
	browsertest.Do(ctx, t, browsertest.Click("main form button"), browsertest.Until(`location.pathname === '/notes'`), chromedp.Navigate(link), browsertest.Until(`location.pathname === '/account/act' && document.readyState === 'complete'`))
	look("act-over")
}

// Acting as a user who needs a second factor shows none: the session stays below AAL2, and
// routes that require it stay closed.
func TestActWithRequiredFactor(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{}, auth.WithSettings(auth.Settings{MFARequiredFor: []string{"editor"}}))
	o.mux.Handle("/account/", pages.Must(o.Auth, pages.Options{Home: "/notes"}))
	var got *auth.Claims
	show := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = auth.ClaimsFrom(r.Context()) })
	o.mux.Handle("/notes", o.RequirePage(show))
	o.mux.Handle("/vault", o.RequirePage(show, auth.AAL2()))
	if err := o.adm.EnsureRole(t.Context(), admin.System("test").Accepting(), admin.CreateRoleParams{Name: "editor", Permissions: []string{"notes.write"}}); err != nil {
		t.Fatal(err)
	}
	ada := o.user("ada@example.com", "editor").ID
	b := o.signedIn("owner@example.com")
	b.get(b.begin(ada, url.Values{}))
	b.post(b.at.Path, b.form())
	if got == nil || got.UserID != ada || got.Impersonator == nil || got.AAL != "aal1" {
		t.Errorf("claims %+v", got)
	}
	got = nil
	if b.get("/vault"); got != nil {
		t.Error("acting passes a second factor")
	}
}

// With scripts, the notice of an impersonation disappears when it is ended in a dialog.
func TestEndedImpersonationIsNotShown(t *testing.T) {
	t.Parallel()
	o, ada := actingOffice(t)
	ctx := o.window("owner@example.com", true)
	browsertest.Do(ctx, t, chromedp.Navigate(o.url+"/dashboard/users/"+ada+"/impersonate"), browsertest.Type("[name=reason]", "ticket 7"+kb.Enter), browsertest.Visible("a[href*='code=']"),
		chromedp.Navigate(o.url+"/dashboard/users/"+ada), browsertest.Click("aside.acting a"), browsertest.Visible("dialog[open] form"),
		browsertest.Click("dialog[open] [type=submit]"), browsertest.Until(`document.querySelector('main').textContent.includes('It has ended.') && !document.querySelector('dialog[open]')`),
		browsertest.Until(`!document.querySelector('aside.acting')`))
}
