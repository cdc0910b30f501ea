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

// DefaultPrefix is where the pages are, unless Options.Prefix says otherwise.
const DefaultPrefix = "/account"

// Options are what an application may choose. The zero value will do.
type Options struct {
	// Brand is the application's name; default: MailOptions.AppName.
	Brand string
	// Logo is the address of an image: a path of the same origin, an https
	// address, or data:image/…; default: none. It is shown beside the brand, 32
	// pixels high, on white and on nearly black; in mails, too, if browsers load it by
	// https.
	Logo string
	// Accent is the colour of buttons and links, and of buttons in mails, "#rrggbb";
	// default: a blue. Where
	// it could not be read it is made darker, and lighter for those who prefer dark
	// pages, so that it keeps the contrast that WCAG 2.2 asks for.
	Accent string
	// Home is where people go after they have signed in, unless they were going
	// somewhere, and where the brand leads: a path of the same origin; default "/".
	Home string
	// Prefix is the path below which the pages are; default [DefaultPrefix]. With
	// another one, CookieOptions.SignInURL has to be Prefix + "/sign-in".
	Prefix string
	// Templates has files that take the place of those of this package, one by
	// one, and texts: "texts.en.json" has those that are to be other ones, and
	// "texts.fr.json" adds a language. docs/pages.md lists the files, the variables and
	// the texts. A file by another name is an error of New. Default: none.
	Templates fs.FS
	// ProviderLabels are what people call the providers, by their names: {"acme":
	// "Example SSO"}. Default: their usual names.
	ProviderLabels map[string]string
}

// Pages is an http.Handler that serves the pages, see [New]. It is safe for
// concurrent use.
type Pages struct {
	a          *auth.Auth
	kit        host.Kit
	site       host.Site
	prefix     string
	missedOnce sync.Once // of what the log says only once
	home       string
	look       webpage.Look
	labels     map[string]string
	langs      *webpage.Languages
	texts      map[string]texts
	templates  map[string]map[string]*template.Template // by locale and name
	css        template.CSS
	styles     string
	mux        *http.ServeMux
	jar        *host.Jar // nil: the sessions are the application's
}

// New makes the pages of a service that has [auth.WithCookies]. From then on the
// pages that mailed links lead to look like these, lead back to the application,
// and providers return here. The error names everything that is wrong.
func New(a *auth.Auth, o Options) (*Pages, error) {
	return build(a, o, nil)
}

// NewApart makes pages to sign in to something else than the application: their
// sessions are in a jar, whose SignInURL is that of their prefix, and there is no
// account and no sign-up.
func NewApart(a *auth.Auth, o Options, jar host.Jar) (*Pages, error) {
	return build(a, o, &jar)
}

func build(a *auth.Auth, o Options, jar *host.Jar) (*Pages, error) {
	k := host.Of(a)
	p := &Pages{jar: jar, a: a, kit: k, site: k.Site(), prefix: strings.TrimSuffix(o.Prefix, "/"), home: o.Home, labels: o.ProviderLabels}
	if o.Prefix == "" {
		p.prefix = DefaultPrefix
	}
	if p.home == "" {
		p.home = "/"
	}
	p.look = webpage.Look{Brand: o.Brand, Logo: o.Logo, Accent: o.Accent, Home: p.home, SignIn: p.path("/sign-in")}
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
	k.UsePages(host.PageOptions{Look: p.look, Returns: p.path(backPath), Holds: p.holds, Apart: jar != nil})
	return p, nil
}

// check tells what is wrong with the options.
func (p *Pages) check() error {
	var errs []error
	if err := p.look.Check(); err != nil {
		errs = append(errs, err)
	}
	if !redirect.IsLocal(p.home) {
		errs = append(errs, fmt.Errorf("the option Home, %q, is no path of the same origin", p.home))
	}
	if !redirect.IsLocal(p.prefix) || strings.ContainsAny(p.prefix, "?#{}") {
		errs = append(errs, fmt.Errorf("the option Prefix, %q, is no plain path", p.prefix))
	}
	if p.site.Captcha { // or these would be the door without one
		errs = append(errs, errors.New("auth.WithCaptcha is on, and these pages, which run no script, ask for no captcha: leave it out, or draw the forms yourself and post them to the endpoints"))
	}
	if p.jar != nil {
		return errors.Join(errs...)
	}
	switch want := p.path("/sign-in"); p.site.SignInURL {
	case "":
		errs = append(errs, errors.New("the sessions of pages are in cookies: add the option auth.WithCookies(auth.CookieOptions{}) to auth.New"))
	case want, p.site.Origin + want:
	default:
		errs = append(errs, fmt.Errorf("CookieOptions.SignInURL is %q, and the sign-in page is at %q: set one of them to the other", p.site.SignInURL, want))
	}
	return errors.Join(errs...)
}

// path is where something below the prefix is.
func (p *Pages) path(below string) string { return p.prefix + below }

// ServeHTTP serves the pages; mount it at Prefix + "/".
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// Must is New for programs that cannot do without: it panics where New returns an
// error.
func Must(a *auth.Auth, o Options) *Pages {
	p, err := New(a, o)
	if err != nil {
		panic(err)
	}
	return p
}
