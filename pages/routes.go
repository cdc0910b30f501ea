package pages

import (
	"net/http"
	"slices"
	"strings"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
)

// access says who may see a page.
type access int

const (
	public   access = iota // everybody
	signedIn               // a live session
	fresh                  // one whose sign-in was lately
)

// route is a page.
type route struct {
	at     string // below the prefix
	apart  bool   // it is there for pages with sessions of their own, too
	page   string // its template
	access access
	fields []string                     // of its form, in their order
	show   func(*visit) error           // fills the page in; nil: nothing to fill in
	post   func(*visit) (string, error) // where the browser goes on to; "" shows the page
	noGet  bool                         // it is only posted to
}

// backPath is where providers and links lead back to.
const backPath = "/sign-in/back"

// routes is the table of all pages. What is said here holds for all of them; see
// serve.
func (p *Pages) routes() []route {
	all := []route{
		{at: "/sign-in", apart: true, page: "sign_in", fields: []string{"login", "password"}, show: showSignIn, post: postSignIn},
		{at: "/sign-in/mail", apart: true, page: "send_code", fields: []string{"email"}, show: showSend("mail"), post: postSendMail},
		{at: "/sign-in/phone", apart: true, page: "send_code", fields: []string{"phone"}, show: showSend("phone"), post: postSendPhone},
		{at: "/sign-in/code", apart: true, page: "enter_code", fields: []string{"code"}, show: showCode, post: postCode},
		{at: "/sign-in/with/{provider}", apart: true, page: "problem", show: showProvider},
		{at: backPath, apart: true, page: "problem", show: showBack},
		{at: "/sign-in/second", apart: true, page: "second_factor", fields: []string{"code"}, show: showSecond, post: postSecond},
		{at: "/sign-in/enrol", apart: true, page: "enrol", fields: []string{"code"}, show: showForcedEnrol, post: postForcedEnrol},
		{at: "/sign-up", page: "sign_up", fields: []string{"full_name", "email", "password"}, show: showSignUp, post: postSignUp},
		{at: "/sign-up/code", page: "enter_code", fields: []string{"code"}, show: showAddressCode("/sign-in"), post: postAddressCode("/sign-in")},
		{at: "/forgot-password", apart: true, page: "forgot_password", fields: []string{"email"}, show: showForgot, post: postForgot},
		{at: "/forgot-password/sent", apart: true, page: "check_mail", show: showSent("check_mail.forgot")},
		{at: "/sign-out", apart: true, page: "problem", post: postSignOut, noGet: true},
		{at: "/signed-out", apart: true, page: "signed_out"},

		{at: "/{$}", page: "account", access: signedIn, show: showAccount},
		{at: "/profile", page: "account", access: signedIn, fields: []string{"full_name"}, show: showAccount, post: postProfile, noGet: true},
		{at: "/sessions", page: "account", access: signedIn, show: showAccount, post: postSessions, noGet: true},
		{at: "/identities", page: "account", access: fresh, show: showAccount, post: postIdentities, noGet: true},
		{at: "/email/confirm", page: "account", access: signedIn, show: showAccount, post: postConfirmEmail, noGet: true},
		{at: "/password", page: "password", access: signedIn, fields: []string{"current_password", "password"}, show: showPassword, post: postPassword},
		{at: "/email", page: "email", access: fresh, fields: []string{"email"}, post: postEmail},
		{at: "/email/code", page: "enter_code", access: signedIn, fields: []string{"code"}, show: showAddressCode("/email"), post: postAddressCode("/")},
		{at: "/phone", page: "phone", access: fresh, fields: []string{"phone"}, post: postPhone},
		{at: "/phone/code", page: "enter_code", access: signedIn, fields: []string{"code"}, show: showPhoneCode, post: postPhoneCode},
		{at: "/second-factor", apart: true, page: "enrol", access: fresh, fields: []string{"code"}, show: showFactor, post: postFactor},
		{at: "/delete", page: "delete", access: fresh, fields: []string{"sure"}, show: showDelete, post: postDelete},
	}
	if p.jar != nil {
		all = slices.DeleteFunc(all, func(rt route) bool { return !rt.apart })
	}
	return all
}

// path is the pattern of a route's path.
func (rt route) path(p *Pages) string { return p.prefix + rt.at }

// focus is the field that a page begins with, if it has one purpose.
func (rt route) focus() string {
	if rt.page == "enter_code" || rt.page == "second_factor" {
		return "code"
	}
	return ""
}

// missed notes, once, a request outside the prefix: the pages are mounted at another
// path than they believe, and none of them will ever be found.
func (p *Pages) missed(r *http.Request) {
	if r.URL.Path == p.prefix || strings.HasPrefix(r.URL.Path, p.prefix+"/") {
		return
	}
	p.missedOnce.Do(func() {
		p.kit.Log().WarnContext(r.Context(), "pages: a request missed the pages: if they are mounted there, set Options.Prefix, and CookieOptions.SignInURL, to that path, and put no http.StripPrefix around them",
			"seen", r.URL.Path, "prefix", p.prefix)
	})
}

// methods are what a route takes.
func (rt route) methods() []string {
	var list []string
	if !rt.noGet {
		list = append(list, http.MethodGet, http.MethodHead)
	}
	if rt.post != nil {
		list = append(list, http.MethodPost)
	}
	return list
}

// handler serves a page as the endpoints are served; who may see it is said by the
// library.
func (p *Pages) handler(rt route) http.Handler {
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.serve(rt, w, r); err != nil {
			p.problem(w, r, p.kit.WriteError(w, r, err))
		}
	})
	admitted := p.a.Optional(inner)
	if rt.access != public {
		admitted = p.kit.RequirePage(inner, true)
	}
	page := p.kit.Page(func(w http.ResponseWriter, r *http.Request) error {
		if !slices.Contains(rt.methods(), r.Method) {
			w.Header().Set("Allow", strings.Join(rt.methods(), ", "))
			return auth.Reject(auth.CodeMethodNotAllowed, "")
		}
		admitted.ServeHTTP(w, r)
		return nil
	}, p.problem)
	if p.jar != nil {
		page = p.kit.InJar(*p.jar, page)
	}
	return page
}

// serve answers a request of a page: a post leads on to another page if it went
// well, and shows the same page again if it did not.
func (p *Pages) serve(rt route, w http.ResponseWriter, r *http.Request) error {
	v, err := p.begin(rt, w, r)
	if err != nil {
		return err
	}
	err = v.admit()
	if err == nil && r.Method == http.MethodPost {
		var to string
		if to, err = rt.post(v); err == nil {
			if to == "" {
				return v.render(http.StatusOK)
			}
			v.redirect(to)
			return nil
		}
		v.flow.Notice = "" // it was not done
	}
	status := http.StatusOK
	if err != nil {
		if to, ok := v.elsewhere(err); ok {
			v.redirect(string(to))
			return nil
		}
		e := host.As[*auth.Error](p.kit.WriteError(w, r, err))
		status = e.Status
		v.fail(e)
		if r.Method != http.MethodPost {
			v.Page = "problem"
			return v.render(status)
		}
	}
	err = nil // it is said on the page
	if rt.show != nil {
		err = rt.show(v)
	}
	switch to, ok := v.elsewhere(err); {
	case ok:
		v.redirect(string(to))
		return nil
	case err != nil:
		return err
	}
	return v.render(status)
}

// admit reads who is signed in, and asks for a fresh sign-in where one is needed.
func (v *visit) admit() error {
	if v.rt.access == public {
		return nil
	}
	_, u, err := v.p.a.Current(v.ctx, v.claims)
	if err != nil {
		return err
	}
	v.user = u
	v.Locale = v.p.langs.Pick(v.p.kit.PreferredLocale(v.ctx, u))
	v.texts = v.p.texts[v.Locale]
	v.User = User{Email: u.Email, EmailVerified: u.EmailVerified(), Phone: u.Phone, FullName: u.FullName, MFAEnabled: u.MFAEnabled}
	if v.rt.access == fresh {
		return auth.FreshAuth(v.p.kit.FreshFor())(v.p.a, v.r, v.claims)
	}
	return nil
}

// problem is the page for what no page could be made of.
func (p *Pages) problem(w http.ResponseWriter, r *http.Request, err error) {
	e := host.As[*auth.Error](err)
	v := p.newView(r, "problem")
	t := p.texts[v.Locale]
	v.Problem = t.or("error."+string(e.Code), "error.internal", "wait", t.wait(e.RetryAfter))
	if err := p.show(w, r, e.Status, &v); err != nil {
		p.a.WriteError(w, r, err)
	}
}
