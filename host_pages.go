package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/internal/webpage"
)

func (k kit) Site() host.Site {
	s := host.Site{App: k.a.appName(), Locale: k.a.templates.pages.langs.Names[0], Origin: originOf(k.a.cfg.baseURL.String()), Mount: k.a.cfg.baseURL.String(), PublicPath: k.a.cfg.publicPath, Style: k.a.templates.pages.css, Script: k.a.pageScriptAt(), Captcha: k.a.cfg.captcha != nil}
	for _, p := range k.a.cfg.redirects {
		s.Redirects = append(s.Redirects, p.String())
	}
	if k.a.cfg.cookies != nil {
		s.SignInURL = k.a.cfg.cookies.SignInURL
	}
	return s
}

func (k kit) PageTexts() *webpage.Languages { return k.a.templates.pages.langs }

func (k kit) DashboardTexts() (*webpage.Languages, error) {
	langs, err := dashboardTexts(k.a.templates.layers)
	if err == nil {
		logGaps(k.a.cfg.log, langs.Gaps, langs.Names[0])
	}
	return langs, err
}

func (k kit) SeparateHome() string {
	if pages := k.a.separatePages.Load(); pages != nil {
		return pages.Look.Home
	}
	return ""
}

func (k kit) Log() *slog.Logger { return k.a.cfg.log }

func (k kit) UsePages(p host.PageOptions) error {
	if p.Separate {
		k.a.separatePages.Store(&p)
		return nil
	}
	if !k.a.mountedPages.CompareAndSwap(nil, &p) {
		return errors.New("this auth.Auth has pages already: links and providers could return to one of both only")
	}
	return nil
}

// mountedPageOptions returns the mounted pages that providers and links may redirect
// back to.
func (a *Auth) mountedPageOptions() []*host.PageOptions {
	var list []*host.PageOptions
	for _, pages := range []*host.PageOptions{a.mountedPages.Load(), a.separatePages.Load()} {
		if pages != nil {
			list = append(list, pages)
		}
	}
	return list
}

// look returns the look of the pages that links open.
func (a *Auth) look() webpage.Look {
	if pages := a.mountedPages.Load(); pages != nil {
		return pages.Look
	}
	return webpage.Look{}
}

// redirects returns the allow-list, with the mounted pages that users return to.
func (a *Auth) redirects() []redirect.Pattern {
	listed := a.settings.now.Load().redirects
	var own []redirect.Pattern
	for _, pages := range a.mountedPageOptions() {
		for _, path := range []string{pages.ReturnPath, pages.ActPath} {
			if path != "" {
				own = append(own, redirect.Pattern{Scheme: a.cfg.baseURL.Scheme, Host: a.cfg.baseURL.Hostname(), Port: a.cfg.baseURL.Port(), Path: path})
			}
		}
	}
	return append(own, listed...)
}

func (k kit) Page(h func(http.ResponseWriter, *http.Request) error, problem func(http.ResponseWriter, *http.Request, error)) http.Handler {
	return k.a.endpoint(func(w http.ResponseWriter, r *http.Request) error {
		if err := k.servePage(w, r, h); err != nil {
			e := k.a.logged(r, err)
			writeErrorHeaders(w, e)
			problem(w, r, e)
		}
		return nil
	})
}

func (k kit) servePage(w http.ResponseWriter, r *http.Request, h func(http.ResponseWriter, *http.Request) error) (err error) {
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler { //nolint:errorlint // the very value
			err = fail(CodeInternal, fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		} else if v != nil {
			panic(v)
		}
	}()
	if to := k.a.atOwnHost(r); to != "" {
		http.Redirect(w, r, to, http.StatusTemporaryRedirect) //nolint:gosec // at the host of the base URL
		return nil
	}
	k.a.waitForBody(w, r)
	if jarOf(r.Context()) == nil && !k.a.Settings(r.Context()).Enabled.On() { // pages with their own sessions stay open, so that an operator can switch sign-in on again
		return fail(CodeNotFound, nil)
	}
	if err := k.a.takeBody(w, r); err != nil {
		return err
	}
	if err := k.a.CheckOrigin(r); err != nil {
		return err
	}
	return h(w, r)
}

func (k kit) ReadForm(r *http.Request, boxes ...string) (url.Values, error) {
	if !isForm(r) {
		return nil, fail(CodeUnsupportedMediaType, errors.New("no form"))
	}
	f, err := readPosted(r, boxes...)
	if err != nil {
		return nil, err
	}
	return f.values, nil
}

func (k kit) WriteError(w http.ResponseWriter, r *http.Request, err error) error {
	e := k.a.logged(r, err)
	writeErrorHeaders(w, e)
	return e
}

func (k kit) Cookie(r *http.Request, name string) string {
	if c := soleCookie(r, k.a.cookieNamed(name)); c != nil {
		return c.Value
	}
	return ""
}

func (k kit) SetCookie(w http.ResponseWriter, name, value string, maxAge int) {
	k.a.setCookie(w, k.a.cookieNamed(name), value, maxAge)
}

func (k kit) SetSignUp(w http.ResponseWriter, r *http.Request, requestID string) {
	k.a.setSignUp(w, r, requestID)
}

func (k kit) SignUps(r *http.Request) string { return k.a.signUpsOf(r, "") }

func (k kit) BeginPasskeySignIn(w http.ResponseWriter, r *http.Request) (any, error) {
	return k.a.beginPasskeyInBrowser(w, r)
}

func (k kit) PasskeySignIn(r *http.Request) string { return k.a.passkeyCookie(r) }

func (kit) PostedCredential(form url.Values, begin func() error) (json.RawMessage, error) {
	return postedCredential(form, begin)
}

func (k kit) PasskeyRPID() string {
	if k.a.cfg.passkeys == nil {
		return ""
	}
	id, _ := k.a.cfg.passkeys.RPID()
	return id
}

func (k kit) PreferredLocale(ctx context.Context, u User) string { return preferredLocale(ctx, u) }

func (k kit) WithPageLocale(ctx context.Context, locale string) context.Context {
	return withPageLocale(ctx, locale)
}

func (k kit) RecentPeriod() time.Duration { return freshFor }

func (k kit) TrustDevices() time.Duration { return k.a.cfg.mfa.TrustDevices }

func (k kit) BindBrowser(w http.ResponseWriter, r *http.Request, provider string) (string, error) {
	p, err := k.a.provider(r.Context(), provider)
	if err != nil {
		return "", err
	}
	c := k.a.bindBrowser(r, p)
	http.SetCookie(w, c)
	return c.Value, nil
}

type jarKey struct{}

// jarOf returns the cookie jar of a request's pages, or nil for the application's.
func jarOf(ctx context.Context) *host.Jar {
	jar, _ := ctx.Value(jarKey{}).(*host.Jar)
	return jar
}

func (k kit) InJar(jar host.Jar, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), jarKey{}, &jar)))
	})
}

func (kit) FactorDue(ctx context.Context) error {
	err, _ := ctx.Value(factorDueKey{}).(error)
	return err
}

func (k kit) RequirePage(next http.Handler, live bool) http.Handler {
	var reqs []Requirement
	if live {
		reqs = append(reqs, CheckSession())
	}
	return k.a.requirePage(next, reqs)
}

func (k kit) ClearCookies(w http.ResponseWriter, r *http.Request) { k.a.clearCookies(r.Context(), w) }

func (k kit) HasCookies() bool { return k.a.cfg.cookies != nil }

// hasCookies reports whether a request's sessions may be in cookies.
func (a *Auth) hasCookies(ctx context.Context) bool {
	return (a.cfg.cookies != nil || jarOf(ctx) != nil) && ctx.Value(cookieRuleKey{}) != noCookies
}

// cookieNames returns the names of the token cookies.
func (a *Auth) cookieNames(ctx context.Context) (access, refresh string) {
	of := ""
	if jar := jarOf(ctx); jar != nil {
		of = jar.Name + "-"
	}
	return a.cookieNamed(of + "access"), a.cookieNamed(of + "refresh")
}

// signInPage returns the page to which visitors without a session are redirected.
func (a *Auth) signInPage(ctx context.Context) string {
	if jar := jarOf(ctx); jar != nil {
		return jar.SignInURL
	}
	return a.cfg.cookies.SignInURL
}
