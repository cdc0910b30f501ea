package dashboard

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/authmount/auth"
)

// route is a page: a view, or a form that runs one operation.
type route struct {
	at      string                      // path below the prefix
	asks    string                      // operation that the page requires
	show    func(*visit) (*page, error) // of a view
	form    *action                     // of a form
	file    func(*visit) error          // of a download
	anybody bool                        // open to visitors without an admin role, too
	nav     string                      // name in the navigation; "": not listed
}

// routes is the table of all pages.
func routes() []route {
	return slices.Concat(
		[]route{
			{at: "/{$}", show: showOverview, nav: "Overview"},
			{at: "/users", asks: "GET /users", show: showUsers, nav: "Users"},
			{at: "/sessions", asks: "GET /sessions", show: showSessions, nav: "Sessions"},
			{at: "/roles", asks: "GET /roles", show: showRoles, nav: "Roles"},
			{at: "/audit", asks: "GET /audit-logs", show: showAudit, nav: "Audit log"},
			{at: "/invitations", asks: "GET /invitations", show: showInvitations, nav: "Invitations"},
			{at: "/messages", asks: "GET /messages", show: showMessages, nav: "Messages"},
			{at: "/keys", asks: "GET /keys", show: showKeys, nav: "Keys"},
			{at: "/settings", asks: "GET /settings", show: showSettings, nav: "Settings"},

			{at: "/users/{id}", asks: "GET /users/{id}", show: showUser},
			{at: "/roles/{role}", asks: "GET /roles/{role}", show: showRole},
			{at: "/audit/{id}", asks: "GET /audit-logs/{id}", show: showEvent},
			{at: "/keys/{id}", asks: "GET /keys", show: showKey},
			{at: "/jobs/{id}", show: showJob},
			{at: "/impersonations", asks: "GET /impersonations", show: showImpersonations},
			{at: "/diagnostics", asks: "GET /diagnostics", show: showDiagnostics},

			{at: "/users/export", asks: "GET /users/export", file: exportUsers},
			{at: "/users/{id}/export", asks: "GET /users/{id}/export", file: exportPerson},
			{at: "/audit/export", asks: "GET /audit-logs/export", file: exportAudit},
		},
		actionRoutes(),
		[]route{firstOwnerRoute()},
	)
}

// navigation returns the routes in the menu.
var navigation = sync.OnceValue(func() []route {
	return slices.DeleteFunc(routes(), func(rt route) bool { return rt.nav == "" })
})

// handle serves a route as the endpoints are served.
func (d *Dashboard) handle(rt route) http.Handler {
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := d.serve(rt, w, r); err != nil {
			d.problem(w, r, d.kit.WriteError(w, r, err))
		}
	})
	admitted := http.Handler(inner)
	if !d.adm.OwnLogin() {
		admitted = d.kit.RequirePage(inner, false)
	}
	return d.kit.InJar(d.jar, d.kit.Page(func(w http.ResponseWriter, r *http.Request) error {
		if methods := rt.methods(); !slices.Contains(methods, r.Method) {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			return auth.Reject(auth.CodeMethodNotAllowed, "")
		}
		admitted.ServeHTTP(w, r)
		return nil
	}, d.problem))
}

// methods returns the methods that a route accepts.
func (rt route) methods() []string {
	switch {
	case rt.form != nil:
		return []string{http.MethodGet, http.MethodHead, http.MethodPost}
	case rt.file != nil:
		return []string{http.MethodPost}
	}
	return []string{http.MethodGet, http.MethodHead}
}

// serve answers a request of a signed-in visitor.
func (d *Dashboard) serve(rt route, w http.ResponseWriter, r *http.Request) error {
	v, err := d.begin(rt, w, r)
	if err != nil {
		return v.elsewhere(err)
	}
	switch {
	case rt.form != nil:
		err = v.runAction()
	case rt.file != nil:
		err = rt.file(v)
	default:
		var p *page
		if p, err = rt.show(v); err == nil {
			v.render(http.StatusOK, p)
			return nil
		}
	}
	return v.elsewhere(err)
}

// begins checks whether the visitor may run an operation. For a posted form the check
// counts as an attempt, as in the operation itself.
func (v *visit) begins(pattern string) error {
	if v.r.Method != http.MethodPost || v.denied { // one attempt a request
		return v.me.May(pattern)
	}
	err := v.me.Attempt(v.r.Context(), pattern)
	v.denied = err != nil
	return err
}

// begin identifies the visitor and checks access to the page.
func (d *Dashboard) begin(rt route, w http.ResponseWriter, r *http.Request) (*visit, error) {
	v := d.newVisit(rt, w, r)
	var err error
	if v.who, err = d.adm.Authorize(r); err != nil {
		return v, err
	}
	if v.me, err = d.adm.Visitor(r.Context(), v.who); err != nil {
		return v, err
	}
	if r.Method != http.MethodPost {
		v.who = v.me.Reader()
	}
	if !v.me.Admin && !rt.anybody {
		return v, auth.Reject(auth.CodeNotAdmin, "")
	}
	if err := v.readable(); err != nil {
		return v, err
	}
	if rt.asks != "" {
		err = v.begins(rt.asks)
	}
	if r.Method == http.MethodPost && err == nil {
		var boxes []string
		if rt.form != nil {
			boxes = rt.form.boxes
		}
		v.form, err = d.kit.ReadForm(r, boxes...)
	}
	return v, err
}
