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
	public   access = iota // everyone
	signedIn               // users with a live session
	fresh                  // users with a recent sign-in
)

// route is a page.
type route struct {
	at     string // path below the prefix
	apart  bool   // also served by NewApart
	page   string // name of its template
	access access
	fields []string                     // fields of its form, in order
	show   func(*visit) error           // sets the page's data; may be nil
	begin  func(*visit) (any, error)    // returns the options of a passkey for the script; may be nil
	post   func(*visit) (string, error) // returns the next path; "" shows the page
	noGet  bool                         // only accepts posts
	act    bool                         // an operator who acts as the user may see it; public pages are open to all
}

// backPath is the target of providers and links.
const backPath = "/sign-in/back"

// routes is the table of all pages. See serve.
func (p *Pages) routes() []route {
	all := []route{
		{at: "/sign-in", apart: true, page: "sign_in", fields: []string{"login", "password"}, show: showSignIn, begin: beginSignIn, post: postSignIn},
		{at: "/sign-in/mail", apart: true, page: "send_code", fields: []string{"email"}, show: showSend("mail"), post: postSendMail},
		{at: "/sign-in/phone", apart: true, page: "send_code", fields: []string{"phone"}, show: showSend("phone"), post: postSendPhone},
		{at: "/sign-in/code", apart: true, page: "enter_code", fields: []string{"code"}, show: showCode, post: postCode},
		{at: "/sign-in/with/{provider}", apart: true, page: "problem", show: showProvider},
		{at: "/sign-in/confirm", page: "enter_code", fields: []string{"code"}, show: showConfirm, post: postConfirm},
		{at: backPath, apart: true, page: "problem", show: showBack},
		{at: "/sign-in/second", apart: true, page: "second_factor", fields: []string{"code"}, show: showSecond, begin: beginSecond, post: postSecond},
		{at: "/sign-in/enrol", apart: true, page: "enrol", fields: []string{"code"}, show: showForcedEnrol, begin: beginForcedEnrol, post: postForcedEnrol},
		{at: "/sign-up", page: "sign_up", fields: []string{"full_name", "email", "password"}, show: showSignUp, post: postSignUp},
		{at: "/sign-up/code", page: "enter_code", fields: []string{"code"}, show: showAddressCode("/sign-in"), post: postAddressCode("/sign-in")},
		{at: "/forgot-password", apart: true, page: "forgot_password", fields: []string{"email"}, show: showForgot, post: postForgot},
		{at: "/forgot-password/sent", apart: true, page: "check_mail", show: showSent("check_mail.forgot")},
		{at: "/act", page: "act", show: showAct, post: postAct},
		{at: "/sign-out", apart: true, page: "problem", post: postSignOut, noGet: true},
		{at: "/signed-out", apart: true, page: "signed_out"},

		{at: "/{$}", page: "account", access: signedIn, show: showAccount, act: true},
		{at: "/profile", page: "account", access: signedIn, fields: []string{"full_name"}, show: showAccount, post: postProfile, noGet: true},
		{at: "/sessions", page: "account", access: signedIn, show: showAccount, post: postSessions, noGet: true},
		{at: "/identities", page: "account", access: fresh, show: showAccount, post: postIdentities, noGet: true},
		{at: "/passkeys", page: "account", access: fresh, show: showAccount, begin: beginPasskeys, post: postPasskeys, noGet: true},
		{at: "/passkeys/new", page: "passkey", access: fresh, show: showNewPasskey, begin: beginPasskeys, post: postNewPasskey},
		{at: "/email/confirm", page: "account", access: signedIn, fields: []string{"code"}, show: showAccount, post: postConfirmEmail, noGet: true},
		{at: "/password", page: "password", access: signedIn, fields: []string{"current_password", "password"}, show: showPassword, post: postPassword},
		{at: "/email", page: "email", access: fresh, fields: []string{"email"}, post: postEmail},
		{at: "/email/code", page: "enter_code", access: signedIn, fields: []string{"code"}, show: showAddressCode("/email"), post: postAddressCode("/")},
		{at: "/phone", page: "phone", access: fresh, fields: []string{"phone"}, post: postPhone},
		{at: "/phone/code", page: "enter_code", access: signedIn, fields: []string{"code"}, show: showPhoneCode, post: postPhoneCode},
		{at: "/second-factor", apart: true, page: "enrol", access: fresh, fields: []string{"code"}, show: showFactor, begin: beginFactor, post: postFactor},
		{at: "/delete", page: "delete", access: fresh, fields: []string{"sure"}, show: showDelete, post: postDelete},
	}
	if p.jar != nil {
		all = slices.DeleteFunc(all, func(rt route) bool { return !rt.apart })
	}
	return all
}

// path returns the pattern of a route's path.
func (rt route) path(p *Pages) string { return p.prefix + rt.at }

// focus returns the field that has the focus on pages with one purpose.
func (rt route) focus() string {
	if rt.page == "enter_code" || rt.page == "second_factor" {
		return "code"
	}
	return ""
}

// missed logs, once, a request outside the prefix: then the pages are mounted at another
// path and no page is found.
func (p *Pages) missed(r *http.Request) {
	if r.URL.Path == p.prefix || strings.HasPrefix(r.URL.Path, p.prefix+"/") {
		return
	}
	p.missedOnce.Do(func() {
		p.kit.Log().WarnContext(r.Context(), "pages: a request is outside the prefix of the pages: if they are mounted at its path, set Options.Prefix and CookieOptions.SignInURL to that path, and do not use http.StripPrefix",
			"seen", r.URL.Path, "prefix", p.prefix)
	})
}

// methods returns the HTTP methods of a route.
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

// handler serves a page as endpoints are served. The page checks the visitor's access.
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

// serve handles a request: a successful post redirects to another page, a failed one
// shows the same page again.
func (p *Pages) serve(rt route, w http.ResponseWriter, r *http.Request) error {
	v, err := p.begin(rt, w, r)
	if err != nil {
		return err
	}
	err = v.admit()
	if err == nil && r.Method == http.MethodPost && rt.begin != nil && v.form.Has("options") {
		begun, err := rt.begin(v)
		if err != nil {
			return err
		}
		v.keep()
		return p.kit.WriteJSON(w, http.StatusOK, begun)
	}
	if err == nil && r.Method == http.MethodPost {
		var to string
		if to, err = rt.post(v); err == nil {
			if to == "" {
				return v.render(http.StatusOK)
			}
			v.redirect(to)
			return nil
		}
		v.flow.Notice = "" // the notice is about a success
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
		if r.Method != http.MethodPost || is(err, auth.CodeImpersonationForbidden) {
			v.Page = "problem"
			return v.render(status)
		}
	}
	err = nil // the page shows it
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

// admit reads the session, and redirects to sign-in if a recent one is required. It
// refuses an operator who acts as the user.
func (v *visit) admit() error {
	if v.rt.access == public {
		return nil
	}
	s, u, err := v.p.a.Current(v.ctx, v.claims)
	if err != nil {
		return err
	}
	v.session, v.user = s, u
	v.Locale = v.p.langs.Pick(v.p.kit.PreferredLocale(v.ctx, u))
	v.texts = v.p.langs.Texts(v.Locale)
	v.User = User{Email: u.Email, EmailVerified: u.EmailVerified(), Phone: u.Phone, FullName: u.FullName, MFAEnabled: u.MFAEnabled}
	if v.isActing() {
		v.Acting = who(u)
		if !v.rt.act {
			return auth.Reject(auth.CodeImpersonationForbidden, "")
		}
	}
	if v.rt.access == fresh {
		return auth.FreshAuth(v.p.kit.RecentPeriod()).Check(v.p.a, v.r, v.claims)
	}
	return nil
}

// problem shows the error page.
func (p *Pages) problem(w http.ResponseWriter, r *http.Request, err error) {
	e := host.As[*auth.Error](err)
	v := p.newView(r, "problem")
	t := p.langs.Texts(v.Locale)
	v.Problem = t.Or("error."+string(e.Code), "error.internal", "wait", t.Wait(e.RetryAfter))
	if err := p.show(w, r, e.Status, &v); err != nil {
		p.a.WriteError(w, r, err)
	}
}
