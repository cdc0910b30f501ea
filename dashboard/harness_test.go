package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/dashboard"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// actChallenge is the code challenge of a page that goes on as another user.
const actChallenge = "qOvah1pr6ukJG77KO3U91MgKQTiTZ2PNg4TcM8sUGUQ"

// office is a service with its dashboard, on a real port.
type office struct {
	*authtest.Env
	t     *testing.T
	adm   *admin.Admin
	url   string
	dash  *dashboard.Dashboard
	owner auth.User
	mux   *http.ServeMux

	numbers int
}

func newOffice(t *testing.T, store auth.Store, of admin.Options, opts ...auth.Option) *office {
	t.Helper()
	o := &office{t: t}
	mux := http.NewServeMux()
	srv := httptest.NewUnstartedServer(mux)
	o.url = strings.Replace("http://"+srv.Listener.Addr().String(), "127.0.0.1", "localhost", 1) // browsers bind passkeys to names
	of.Permissions = []admin.Permission{{Name: "notes.write", Description: "Change notes"}, {Name: "money.send", Privileged: true}}
	if of.RequireMFA == 0 {
		of.RequireMFA = auth.Off
	}
	if store == nil {
		store = memstore.New()
	}
	o.Env = authtest.NewOn(t, store, append([]auth.Option{
		auth.WithDevMode(), auth.WithBaseURL(o.url + "/auth/v1"), auth.WithMail(auth.MailOptions{AppName: "Notes"}), auth.WithRateLimits(auth.RateLimits{Off: true}),
		auth.WithProvider(authtest.StartProvider(t).OIDC("acme")), auth.WithRedirectURLs(o.url + "/app"), auth.WithCookies(auth.CookieOptions{}), auth.WithSMSSender(&failingSMS{}),
	}, opts...)...)
	var err error
	if o.adm, err = admin.New(t.Context(), o.Auth, of); err != nil {
		t.Fatal(err)
	}
	if o.dash, err = dashboard.New(o.adm, dashboard.Options{}); err != nil {
		t.Fatal(err)
	}
	mux.Handle("/auth/v1/", o.Handler())
	mux.Handle("/auth/v1/admin/", o.adm.Handler())
	mux.Handle("/dashboard/", o.dash)
	o.mux = mux
	srv.Start()
	t.Cleanup(srv.Close)
	o.owner = o.user("owner@example.com", auth.RoleOwner)
	return o
}

// user creates an account with roles and authtest's password.
func (o *office) user(email string, roles ...string) auth.User {
	o.t.Helper()
	u, err := o.adm.CreateUser(o.t.Context(), admin.System("test").Accepting(), admin.CreateUserParams{Email: email, EmailVerified: true, Phone: o.number(), PhoneVerified: true, Password: authtest.Password, Roles: roles})
	if err != nil {
		o.t.Fatal(err)
	}
	return u
}

// number returns a phone number that no other account has.
func (o *office) number() string {
	o.numbers++
	return fmt.Sprintf("+4915199%06d", o.numbers)
}

// browser is a browser without scripts: it keeps cookies, follows redirects and posts
// forms.
type browser struct {
	t      *testing.T
	o      *office
	client *http.Client
	header http.Header
	at     *url.URL
	status int
	got    http.Header
	body   string
	doc    *html.Node
}

func (o *office) browser() *browser {
	o.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		o.t.Fatal(err)
	}
	return &browser{t: o.t, o: o, client: &http.Client{Jar: jar}, header: http.Header{"Accept": {"text/html"}, "Accept-Language": {"en"}, "Sec-Fetch-Site": {"same-origin"}}}
}

// signedIn returns a signed-in browser.
func (o *office) signedIn(email string) *browser {
	o.t.Helper()
	b := o.browser()
	b.get("/dashboard/")
	if b.at.Path != "/dashboard/sign-in" {
		o.t.Fatalf("whoever is not signed in sees %s", b.at)
	}
	b.post(b.at.RequestURI(), url.Values{"login": {email}, "password": {authtest.Password}})
	if b.at.Path != "/dashboard/" {
		o.t.Fatalf("after signing in: %s %d\n%.2000s", b.at, b.status, b.body)
	}
	return b
}

func (b *browser) send(method, target string, form url.Values) {
	b.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	if !strings.Contains(target, "://") {
		target = b.o.url + target
	}
	r, err := http.NewRequestWithContext(b.t.Context(), method, target, body)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header = b.header.Clone()
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	b.do(r)
}

// do sends a request, and reads the page.
func (b *browser) do(r *http.Request) {
	b.t.Helper()
	res, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	b.at, b.status, b.got, b.body = res.Request.URL, res.StatusCode, res.Header, string(raw)
	if b.doc, err = html.Parse(strings.NewReader(b.body)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) get(target string) { b.t.Helper(); b.send(http.MethodGet, target, nil) }
func (b *browser) post(target string, form url.Values) {
	b.t.Helper()
	b.send(http.MethodPost, target, form)
}

// want fails unless the page has a status and texts.
func (b *browser) want(status int, texts ...string) {
	b.t.Helper()
	if b.status != status {
		b.t.Fatalf("%s is %d, want %d\n%s", b.at, b.status, status, b.text())
	}
	for _, text := range texts {
		if !strings.Contains(b.text(), text) {
			b.t.Fatalf("%s does not say %q:\n%s", b.at, text, b.text())
		}
	}
}

var spaces = regexp.MustCompile(`\s+`)

// text is the page's text.
func (b *browser) text() string {
	var out strings.Builder
	for n := range b.doc.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "script" && n.Parent.Data != "style" {
			out.WriteString(n.Data + " ")
		}
	}
	return spaces.ReplaceAllString(out.String(), " ")
}

// links returns the page's links within the dashboard.
func (b *browser) links() []string {
	var list []string
	for n := range b.doc.Descendants() {
		if n.Data != "a" {
			continue
		}
		for _, a := range n.Attr {
			if a.Key == "href" && strings.HasPrefix(a.Val, "/dashboard/") {
				list = append(list, a.Val)
			}
		}
	}
	return list
}

// form returns the initial values of the page's form.
func (b *browser) form() url.Values {
	v := url.Values{}
	for n := range b.doc.Descendants() {
		at := map[string]string{}
		for _, a := range n.Attr {
			at[a.Key] = a.Val
		}
		_, checked := at["checked"]
		switch {
		case at["name"] == "" || n.Data == "meta":
		case n.Data == "input" && at["type"] == "checkbox":
			if checked {
				v.Add(at["name"], at["value"])
			}
		case n.Data == "input":
			v.Set(at["name"], at["value"])
		case n.Data == "textarea":
			if n.FirstChild != nil {
				v.Set(at["name"], n.FirstChild.Data)
			} else {
				v.Set(at["name"], "")
			}
		case n.Data == "select":
			for o := range n.Descendants() {
				for _, a := range o.Attr {
					if _, has := v[at["name"]]; a.Key == "value" && !has || a.Key == "selected" {
						v.Set(at["name"], valueOf(o))
					}
				}
			}
		}
	}
	return v
}

func valueOf(n *html.Node) string {
	for _, a := range n.Attr {
		if a.Key == "value" {
			return a.Val
		}
	}
	return ""
}

// failingSMS always refuses.
type failingSMS struct{}

func (*failingSMS) Send(context.Context, auth.Message) error {
	return auth.Permanent(errors.New("no such number"))
}

// failedMessage returns the id of a message that was refused.
func (o *office) failedMessage(u auth.User) string {
	o.t.Helper()
	who := admin.System("test").Accepting()
	if _, err := o.adm.Send(o.t.Context(), who, admin.SendParams{UserID: u.ID, Type: admin.LinkCode}); err != nil {
		o.t.Fatal(err)
	}
	host.Of(o).WaitForMessages(o.t.Context())
	p, err := o.adm.Messages(o.t.Context(), who, admin.MessagesParams{State: store.MessageFailed})
	if err != nil || len(p.Messages) == 0 {
		o.t.Fatalf("no message failed: %v", err)
	}
	return p.Messages[0].ID
}
