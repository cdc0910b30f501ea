package pages

import (
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strings"
	"sync"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/internal/webpage"
)

// DefaultPrefix is the default of Options.Prefix.
const DefaultPrefix = "/account"

// Options configure the pages. The zero value is valid.
type Options struct {
	// Brand is the application's name; default: MailOptions.AppName.
	Brand string
	// Logo is the URL of an image: a path of the same origin, an https URL, or
	// data:image/…; default: none. It is shown next to the brand, 32 pixels high, on
	// white and on nearly black. Mails also show it if it can be loaded by https.
	Logo string
	// Accent is the colour of buttons and links, also in mails, as "#rrggbb"; default: a
	// blue. If needed for the contrast of WCAG 2.2, it is made darker, and lighter on
	// dark pages.
	Accent string
	// Home is the page after sign-in, unless the visitor came from another page, and the
	// target of the brand: a path of the same origin; default "/".
	Home string
	// Prefix is the path below which browsers see the pages; default [DefaultPrefix],
	// behind the path that a proxy strips (auth.WithPrefix). With another
	// one, set CookieOptions.SignInURL to Prefix + "/sign-in".
	Prefix string
	// Templates has files that replace files of this package, one by one. docs/pages.md
	// lists the files and the variables. New returns an error for other file names.
	// Default: none. Texts are in auth.MailOptions.Templates.
	Templates fs.FS
	// ProviderLabels are the labels of providers by their names: {"acme": "Example SSO"}.
	// Default: their usual names.
	ProviderLabels map[string]string
}

// Pages is an http.Handler that serves the pages, see [New]. It is safe for concurrent
// use.
type Pages struct {
	a          *auth.Auth
	kit        host.Kit
	site       host.Site
	prefix     string
	missedOnce sync.Once // logs a missed request once
	home       string
	look       webpage.Look
	labels     map[string]string
	langs      *webpage.Languages
	templates  map[string]map[string]*template.Template // by locale and name
	css        template.CSS
	styles     string
	mux        *http.ServeMux
	jar        *host.Jar // nil: the application's sessions
}

// New returns the pages of a service that has [auth.WithCookies]. From then on the pages
// of mailed links have the same look and link back to the application, and providers
// return here, so a service has these pages once. The error contains all problems.
func New(a *auth.Auth, o Options) (*Pages, error) {
	return build(a, o, nil)
}

// NewApart returns pages for another part than the application, such as the dashboard:
// their sessions are in a jar, whose SignInURL is the sign-in page below their prefix,
// and they have no account and no sign-up.
func NewApart(a *auth.Auth, o Options, jar host.Jar) (*Pages, error) {
	return build(a, o, &jar)
}

func build(a *auth.Auth, o Options, jar *host.Jar) (*Pages, error) {
	k := host.Of(a)
	p := &Pages{jar: jar, a: a, kit: k, site: k.Site(), prefix: strings.TrimSuffix(o.Prefix, "/"), home: o.Home, labels: o.ProviderLabels}
	if o.Prefix == "" {
		p.prefix = p.site.PublicPath + DefaultPrefix
	}
	if p.home == "" {
		p.home = p.site.PublicPath + "/"
	}
	p.look = webpage.Look{Brand: o.Brand, Logo: o.Logo, Accent: o.Accent, Home: p.home, SignIn: p.path("/sign-in"), Account: p.path("/"), Factor: p.path("/second-factor")}
	if p.look.Brand == "" {
		p.look.Brand = p.site.App
	}
	if err := errors.Join(p.check(), p.load(o.Templates)); err != nil {
		return nil, fmt.Errorf("pages.New: %w", err)
	}
	p.mux = http.NewServeMux()
	for _, rt := range p.routes() {
		p.mux.Handle(rt.path(p), p.handler(rt))
	}
	p.mux.Handle("/", p.kit.Page(func(_ http.ResponseWriter, r *http.Request) error {
		p.missed(r)
		return auth.Reject(auth.CodeNotFound, "")
	}, p.problem))
	actPath := ""
	if jar == nil {
		actPath = p.path("/act")
	}
	if err := k.UsePages(host.PageOptions{Look: p.look, ReturnPath: p.path(backPath), ActPath: actPath, HasVerifier: p.holds, Separate: jar != nil}); err != nil {
		return nil, fmt.Errorf("pages.New: %w", err)
	}
	return p, nil
}

// check returns the problems of the options.
func (p *Pages) check() error {
	var errs []error
	if err := p.look.Check(); err != nil {
		errs = append(errs, err)
	}
	if !redirect.IsLocal(p.home) {
		errs = append(errs, fmt.Errorf("the option Home, %q, is not a path of the same origin", p.home))
	}
	if !redirect.IsLocal(p.prefix) || strings.ContainsAny(p.prefix, "?#{}") {
		errs = append(errs, fmt.Errorf("the option Prefix, %q, is not a plain path", p.prefix))
	}
	if p.site.Captcha { // these pages would bypass the captcha
		errs = append(errs, errors.New("auth.WithCaptcha is set, but these pages cannot show a captcha: remove the option, or write your own forms and post them to the endpoints"))
	}
	if p.jar != nil {
		return errors.Join(errs...)
	}
	switch want := p.path("/sign-in"); p.site.SignInURL {
	case "":
		errs = append(errs, errors.New("the sessions of pages are in cookies: add the option auth.WithCookies(auth.CookieOptions{}) to auth.New"))
	case want, p.site.Origin + want:
	default:
		errs = append(errs, fmt.Errorf("CookieOptions.SignInURL is %q, but the sign-in page is at %q: make them equal", p.site.SignInURL, want))
	}
	return errors.Join(errs...)
}

// path returns the path of a page below the prefix.
func (p *Pages) path(below string) string { return p.prefix + below }

// ServeHTTP serves the pages; mount it at Prefix + "/". It accepts paths from which a proxy
// stripped the start of Prefix.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mux.ServeHTTP(w, host.Unstripped(p.prefix, r))
}

// Must is New for programs that need the pages: it panics if New returns an error.
func Must(a *auth.Auth, o Options) *Pages {
	p, err := New(a, o)
	if err != nil {
		panic(err)
	}
	return p
}
