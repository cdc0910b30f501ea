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
	at        string                      // path below the prefix
	operation string                      // operation that the page requires
	show      func(*visit) (*page, error) // of a view
	form      *action                     // of a form
	file      func(*visit) error          // of a download
	public    bool                        // open to visitors without an admin role, too
	nav       string                      // name in the navigation; "": not listed
}

// routes is the table of all pages.
func routes() []route {
	return slices.Concat(
		[]route{
			{at: "/{$}", show: showOverview, nav: "Overview"},
			{at: "/users", operation: "GET /users", show: showUsers, nav: "Users"},
			{at: "/sessions", operation: "GET /sessions", show: showSessions, nav: "Sessions"},
			{at: "/roles", operation: "GET /roles", show: showRoles, nav: "Roles"},
			{at: "/audit", operation: "GET /audit-logs", show: showAudit, nav: "Audit log"},
			{at: "/invitations", operation: "GET /invitations", show: showInvitations, nav: "Invitations"},
			{at: "/messages", operation: "GET /messages", show: showMessages, nav: "Messages"},
			{at: "/keys", operation: "GET /keys", show: showKeys, nav: "Keys"},
			{at: "/settings", operation: "GET /settings", show: showSettings, nav: "Settings"},

			{at: "/users/{id}", operation: "GET /users/{id}", show: showUser},
			{at: "/roles/{role}", operation: "GET /roles/{role}", show: showRole},
			{at: "/audit/{id}", operation: "GET /audit-logs/{id}", show: showEvent},
			{at: "/keys/{id}", operation: "GET /keys", show: showKey},
			{at: "/jobs/{id}", show: showJob},
			{at: "/impersonations", operation: "GET /impersonations", show: showImpersonations},
			{at: "/diagnostics", operation: "GET /diagnostics", show: showDiagnostics},

			{at: "/users/export", operation: "GET /users/export", file: exportUsers},
			{at: "/users/{id}/export", operation: "GET /users/{id}/export", file: exportPerson},
			{at: "/audit/export", operation: "GET /audit-logs/export", file: exportAudit},
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
		if rt.public {
			admitted = d.welcomeFirstOwner(admitted)
		}
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
		return v.redirectToSignIn(err)
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
	return v.redirectToSignIn(err)
}

// checkOperation checks whether the visitor may run an operation. For a posted form the check
// counts as an attempt, as in the operation itself.
func (v *visit) checkOperation(pattern string) error {
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
	if v.actor, err = d.adm.Authorize(r); err != nil {
		return v, err
	}
	if v.me, err = d.adm.Visitor(r.Context(), v.actor); err != nil {
		return v, err
	}
	if r.Method != http.MethodPost {
		v.actor = v.me.Reader()
	}
	if !v.me.Admin && !rt.public {
		return v, auth.Reject(auth.CodeNotAdmin, "")
	}
	if err := v.checkURL(); err != nil {
		return v, err
	}
	if rt.operation != "" {
		err = v.checkOperation(rt.operation)
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
