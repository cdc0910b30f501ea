package pages_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/pages"
)

const (
	origin   = "https://auth.test" // origin of authtest.BaseURL
	password = authtest.Password
	address  = "ada@example.com"
)

// site is an application with the pages and one protected page at /notes.
type site struct {
	*authtest.Env
	handler http.Handler
	pages   *pages.Pages
	log     *logged
	tap     *storetap.Tap // records calls of the store
}

// logged collects the log.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newSite(t *testing.T, o pages.Options, opts ...auth.Option) *site {
	t.Helper()
	s := &site{log: &logged{}}
	logger := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	opts = append([]auth.Option{
		auth.WithCookies(auth.CookieOptions{}), auth.WithLogger(logger), auth.WithMail(auth.MailOptions{AppName: "Notes"}),
	}, opts...)
	s.tap = storetap.New(memstore.New())
	s.Env = authtest.NewOn(t, s.tap, opts...)
	var err error
	if s.pages, err = pages.New(s.Auth, o); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/auth/v1/", s.Handler())
	mux.Handle("/account/", s.pages)
	mux.Handle("GET /notes", s.RequirePage(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "notes of "+auth.ClaimsFrom(r.Context()).Email)
	})))
	mux.Handle("GET /{$}", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "home") }))
	s.handler = mux
	return s
}

// browser is a browser without scripts: it stores cookies, follows redirects and posts
// forms of pages.
type browser struct {
	t      *testing.T
	site   *site
	jar    *cookiejar.Jar
	header http.Header
	trail  []string // every requested URL
	page   *shown
}

// shown is the page that the browser shows.
type shown struct {
	url    *url.URL
	status int
	header http.Header
	body   string
	doc    *html.Node
}

func (s *site) browser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, site: s, jar: jar, header: http.Header{
		"Accept": {"text/html,application/xhtml+xml"}, "User-Agent": {"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"},
		"Accept-Language": {"en"},
	}}
}

// send makes one request without following redirects.
func (b *browser) send(method, target string, form url.Values) *http.Response {
	b.t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		b.t.Fatal(err)
	}
	if b.page != nil {
		u = b.page.url.ResolveReference(u)
	} else {
		u = (&url.URL{Scheme: "https", Host: "auth.test"}).ResolveReference(u)
	}
	var body io.Reader = http.NoBody
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequestWithContext(b.t.Context(), method, u.String(), body)
	r.Header = b.header.Clone()
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", origin)
	}
	for _, c := range b.jar.Cookies(u) {
		r.AddCookie(c)
	}
	b.trail = append(b.trail, u.String())
	rec := httptest.NewRecorder()
	b.site.handler.ServeHTTP(rec, r)
	res := rec.Result()
	b.jar.SetCookies(u, res.Cookies())
	res.Request = r
	return res
}

// open requests a page and follows redirects within the site. A redirect to another site
// ends it, with the URL in page.url.
func (b *browser) open(target string) *shown {
	b.t.Helper()
	return b.follow(b.send(http.MethodGet, target, nil)) //nolint:bodyclose // a recorder's
}

func (b *browser) follow(res *http.Response) *shown {
	b.t.Helper()
	for range 10 {
		u := res.Request.URL
		if to := res.Header.Get("Location"); to != "" {
			next, err := u.Parse(to)
			if err != nil {
				b.t.Fatal(err)
			}
			if next.Host != u.Host {
				b.page = &shown{url: next, status: res.StatusCode, header: res.Header}
				return b.page
			}
			b.page = &shown{url: u}
			res = b.send(http.MethodGet, next.String(), nil) //nolint:bodyclose // likewise
			continue
		}
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			b.t.Fatal(err)
		}
		doc, err := html.Parse(bytes.NewReader(raw))
		if err != nil {
			b.t.Fatal(err)
		}
		b.page = &shown{url: u, status: res.StatusCode, header: res.Header, body: string(raw), doc: doc}
		return b.page
	}
	b.t.Fatalf("too many redirects: %v", b.trail)
	return nil
}

// shownCode opens a link in another browser, has it show a code, and returns the code.
func (s *site) shownCode(t *testing.T, to string, k auth.Kind) string {
	t.Helper()
	other := s.browser(t)
	other.open(s.Mail(t, to, k).Link)
	return regexp.MustCompile(`\b\d{6}\b`).FindString(other.submit("show_code", "1").text())
}

// submit posts the form that has all the given fields, with its hidden ones; "do" presses
// the button with that value.
func (b *browser) submit(fields ...string) *shown {
	b.t.Helper()
	for _, f := range b.page.forms() {
		if values, ok := f.filled(fields); ok {
			return b.follow(b.send(http.MethodPost, f.action, values)) //nolint:bodyclose // likewise
		}
	}
	b.t.Fatalf("%s has no form with %v:\n%s", b.page.url, fields, b.page.text())
	return nil
}

// press posts the form with an action.
func (b *browser) press(action string, fields ...string) *shown {
	b.t.Helper()
	for _, f := range b.page.forms() {
		if values, ok := f.filled(fields); ok && f.action == action {
			return b.follow(b.send(http.MethodPost, f.action, values)) //nolint:bodyclose // likewise
		}
	}
	b.t.Fatalf("%s has no form %s with %v", b.page.url, action, fields)
	return nil
}

// form is a form of a page.
type form struct {
	action string
	values url.Values
	names  map[string][]string // values of fields and buttons
}

func (f form) filled(fields []string) (url.Values, bool) {
	values := url.Values{}
	for k, v := range f.values {
		values[k] = v
	}
	for i := 0; i+1 < len(fields); i += 2 {
		have, ok := f.names[fields[i]]
		if !ok || (len(have) > 0 && have[0] != "" && !contains(have, fields[i+1])) {
			return nil, false
		}
		values.Set(fields[i], fields[i+1])
	}
	return values, true
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

func (p *shown) forms() []form {
	var list []form
	for n := range p.doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "form" {
			continue
		}
		f := form{action: attr(n, "action"), values: url.Values{}, names: map[string][]string{}}
		for e := range n.Descendants() {
			name := attr(e, "name")
			switch {
			case name == "":
			case e.Data == "button":
				f.names[name] = append(f.names[name], attr(e, "value"))
			case attr(e, "type") == "hidden":
				f.values.Set(name, attr(e, "value"))
				f.names[name] = append(f.names[name], attr(e, "value"))
			case attr(e, "type") == "checkbox":
				f.names[name] = append(f.names[name], "")
				if has(e, "checked") {
					f.values.Set(name, attr(e, "value"))
				}
			default:
				f.names[name] = append(f.names[name], "")
				f.values.Set(name, attr(e, "value"))
			}
		}
		list = append(list, f)
	}
	return list
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

// find returns the element with an id.
func (p *shown) find(id string) *html.Node {
	for n := range p.doc.Descendants() {
		if n.Type == html.ElementNode && attr(n, "id") == id {
			return n
		}
	}
	return nil
}

func textOf(n *html.Node) string {
	if n == nil {
		return ""
	}
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode && d.Parent.Data != "style" {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func (p *shown) text() string { return textOf(p.doc) }

func (p *shown) heading() string {
	for n := range p.doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "h1" {
			return textOf(n)
		}
	}
	return ""
}

// wrong returns the error of a field, which must be associated with it.
func (p *shown) wrong(t *testing.T, field string) string {
	t.Helper()
	input := p.find(field)
	if input == nil {
		t.Fatalf("no field %s on %s", field, p.url)
	}
	text := textOf(p.find(field + "-error"))
	if text != "" && (attr(input, "aria-invalid") != "true" || !strings.Contains(attr(input, "aria-describedby"), field+"-error")) {
		t.Errorf("the error of %s is not tied to it", field)
	}
	return text
}

// want fails the test unless the page has this status, path and heading.
func (p *shown) want(t *testing.T, status int, path, heading string) *shown {
	t.Helper()
	if p.status != status || p.url.Path != path || (heading != "" && p.heading() != heading) {
		t.Fatalf("got %d %s %q, want %d %s %q; the page says:\n%s", p.status, p.url.Path, p.heading(), status, path, heading, p.text())
	}
	return p
}

// signIn signs a user in, and creates the user first if needed.
func (b *browser) signIn(email string) {
	b.t.Helper()
	b.site.LoginAs(b.t, email)
	b.site.Clock.Advance(time.Millisecond) // sessions are sorted by time
	b.open("/account/sign-in")
	b.submit("login", email, "password", password)
}

// input returns the field with a name.
func (p *shown) input(name string) *html.Node {
	for n := range p.doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "input" && attr(n, "name") == name {
			return n
		}
	}
	return &html.Node{}
}

func (p *shown) all(element string) []*html.Node {
	var list []*html.Node
	for n := range p.doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == element {
			list = append(list, n)
		}
	}
	return list
}

func (p *shown) meta(equiv string) *html.Node {
	for _, n := range p.all("meta") {
		if attr(n, "http-equiv") == equiv {
			return n
		}
	}
	return &html.Node{}
}

// atProvider signs a person in on the provider's page, and returns.
func (b *browser) atProvider(idp *authtest.Provider, who authtest.Person) *shown {
	b.t.Helper()
	if who.Subject != "" {
		idp.SignsIn(who)
	}
	back := idp.Authorize(b.t, b.page.url.String())
	to, err := url.Parse(b.page.url.Query().Get("redirect_uri"))
	if err != nil {
		b.t.Fatal(err)
	}
	to.RawQuery = back.Encode()
	b.page = nil
	return b.open(to.String())
}
