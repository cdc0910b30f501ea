// Package dashboard serves web pages for operators on the operations of package admin:
//
//	adm, err := admin.New(ctx, a, admin.Options{})
//	…
//	dash, err := dashboard.New(adm, dashboard.Options{})
//	…
//	mux.Handle("/dashboard/", dash)
//
// The pages work without scripts; one small module improves them. Operators sign in with
// the sign-in methods that the service offers, into separate cookies, and see the pages
// that their roles permit. Every page calls the operations below /admin as the visitor.
// The dashboard has no rules of its own: if an operation fails, the page shows its code.
package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/internal/webpage"
	"github.com/authmount/auth/pages"
)

// DefaultPrefix is the dashboard's path, unless Options.Prefix is set.
const DefaultPrefix = "/dashboard"

// Options configures a dashboard. The zero value is valid.
type Options struct {
	// Prefix is the path below which browsers see the dashboard; default
	// [DefaultPrefix]. Behind a proxy that strips a part of the path, it is still the
	// full path.
	Prefix string
	// Brand is the name in the header; default: MailOptions.AppName.
	Brand string
	// Logo is the URL of an image, as in pages.Options; default: none.
	Logo string
	// Accent is the colour of buttons and links, "#rrggbb"; default: a blue.
	Accent string
}

// Dashboard is an http.Handler that serves the pages, see [New]. It is safe for
// concurrent use.
type Dashboard struct {
	adm    *admin.Admin
	kit    host.Kit
	prefix string
	look   webpage.Look
	jar    host.Jar
	signIn *pages.Pages // nil if the application has its own admin login
	mux    *http.ServeMux
	looks  looks
}

// New returns a dashboard for an [admin.Admin]. The error lists all invalid options.
func New(adm *admin.Admin, o Options) (*Dashboard, error) {
	d := &Dashboard{adm: adm, kit: host.Of(adm.Auth()), prefix: strings.TrimSuffix(o.Prefix, "/")}
	if o.Prefix == "" {
		d.prefix = d.kit.Site().PublicPath + DefaultPrefix
	}
	d.jar = host.Jar{Name: "admin", SignInURL: d.path("/sign-in")}
	d.look = webpage.Look{Brand: o.Brand, Logo: o.Logo, Accent: o.Accent, Home: d.path("/"), SignIn: d.jar.SignInURL}
	if d.look.Brand == "" {
		d.look.Brand = d.kit.Site().App
	}
	var errs []error
	if !redirect.IsLocal(d.prefix) || strings.ContainsAny(d.prefix, "?#{}") {
		errs = append(errs, fmt.Errorf("the option Prefix, %q, is not a plain path", d.prefix))
	}
	if err := d.look.Check(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 0 && !adm.OwnLogin() {
		var err error
		if d.signIn, err = pages.NewApart(adm.Auth(), pages.Options{Prefix: d.prefix, Home: d.path("/"), Brand: d.look.Brand, Logo: o.Logo, Accent: o.Accent}, d.jar); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		errs = append(errs, d.load())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("dashboard.New: %w", err)
	}
	d.mux = d.mount()
	return d, nil
}

// path returns a path below the prefix.
func (d *Dashboard) path(below string) string { return d.prefix + below }

// ServeHTTP serves the pages. It accepts paths with the prefix, and paths that a proxy
// or http.StripPrefix stripped the prefix or the start of it from.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	whole := host.Unstripped(d.prefix, r)
	if whole == r && r.URL.Path != d.prefix && !strings.HasPrefix(r.URL.Path, d.prefix+"/") {
		whole = host.Below(d.prefix, r)
	}
	d.mux.ServeHTTP(w, whole)
}

// mount registers all routes.
func (d *Dashboard) mount() *http.ServeMux {
	mux := http.NewServeMux()
	for _, rt := range routes() {
		mux.Handle(d.prefix+rt.at, d.handle(rt))
	}
	mux.Handle("GET "+d.prefix+"/assets/{file}", http.HandlerFunc(d.serveAsset))
	if d.signIn != nil {
		for _, below := range []string{"/sign-in", "/sign-in/", "/sign-out", "/signed-out", "/second-factor", "/forgot-password", "/forgot-password/"} {
			mux.Handle(d.prefix+below, d.whileOn(below, d.signIn))
		}
	}
	mux.Handle(d.prefix, http.RedirectHandler(d.path("/"), http.StatusSeeOther))
	mux.Handle("/", d.handle(route{show: func(v *visit) (*page, error) { return nil, auth.Reject(auth.CodeNotFound, "") }}))
	return mux
}

// whileOn keeps sign-in available while the service is switched off, so that an operator
// can switch it on. Password reset answers 404 then, as the service's own endpoints do.
func (d *Dashboard) whileOn(below string, h http.Handler) http.Handler {
	if !strings.HasPrefix(below, "/forgot-password") {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.adm.Auth().Settings(r.Context()).Enabled.On() {
			d.problem(w, r, d.kit.WriteError(w, r, auth.Reject(auth.CodeNotFound, "")))
			return
		}
		h.ServeHTTP(w, r)
	})
}
