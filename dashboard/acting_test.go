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
	b.want(http.StatusOK, "A path, such as /orders.")
	link := b.begin(ada, url.Values{"return_to": {"/notes"}})
	b.get(link)
	b.want(http.StatusOK, "ada@example.com", "Continue as this user")
	b.get(link) // looking uses nothing up
	b.post(b.at.Path, b.form())
	b.want(http.StatusOK, "notes of ada@example.com for an operator")
	if b.at.Path != "/notes" {
		t.Errorf("at %s", b.at)
	}
	b.get("/dashboard/") // the operator's own session goes on
	b.want(http.StatusOK, "owner@example.com", "In the application you are impersonating ada@example.com.")
	cyd := o.user("cyd@example.com").ID
	b.get(b.begin(cyd, url.Values{})) // also while acting as somebody else
	b.post(b.at.Path, b.form())
	b.want(http.StatusOK, "notes of cyd@example.com for an operator")
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
	browsertest.Do(ctx, t, chromedp.Navigate(link), browsertest.Until(`document.body.textContent.includes('Continue as this user')`))
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
