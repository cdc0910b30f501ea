package auth

import (
	"net/http"
	"strings"

	"github.com/authmount/auth/internal/webpage"
)

// Opening a link shows a page with one button, and only the button uses the link
// up: mail scanners open links too. Programs complete at once, with JSON.

// asksForPage tells whether a GET is answered with the confirm page.
func (a *Auth) asksForPage(r *http.Request) bool {
	switch a.cfg.links.Mode {
	case DirectLinks:
		return false
	case StrictLinks:
		return !acceptsByName(r, "application/json")
	default:
		return !fromProgram(r)
	}
}

// fromProgram tells a program, which says so by what it accepts, from whatever
// else opens a link: browsers, and scanners and previews that pose as one.
func fromProgram(r *http.Request) bool {
	if acceptsByName(r, "application/json") {
		return true
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "Sec-Fetch-") {
			return false
		}
	}
	accept := r.Header.Get("Accept")
	return (accept == "" || accept == "*/*") && !strings.Contains(r.UserAgent(), "Mozilla/")
}

// showPage fills in what every page needs. The pages post to the path they were
// opened at, whatever prefix that had.
func (a *Auth) showPage(w http.ResponseWriter, r *http.Request, status int, pg page, redirectTo string) {
	pg.Action = "?"
	pg.FormTarget = originOf(redirectTo)
	a.showAs(w, r, status, pg)
}

func (a *Auth) showAs(w http.ResponseWriter, r *http.Request, status int, pg page) {
	pg.Locale = preferredLocale(r.Context(), User{})
	a.pages.write(w, r, status, pg, a.look())
}

func originOf(target string) string { return webpage.Origin(target) }

// showProblem is writeError for people.
func (a *Auth) showProblem(w http.ResponseWriter, r *http.Request, err error) error {
	return a.showProblemOn(w, r, err, page{OfLink: true})
}

// showProblemOn is showProblem on a page of which something is known already.
func (a *Auth) showProblemOn(w http.ResponseWriter, r *http.Request, err error, pg page) error {
	e := a.logged(r, err)
	writeErrorHeaders(w, e)
	pg.Name, pg.Problem, pg.Code = "problem", e.Message, e.Code
	a.showAs(w, r, e.Status, pg)
	return nil
}

// showDone ends a flow: on to the application, or a page that says so.
func (a *Auth) showDone(w http.ResponseWriter, r *http.Request, pg page, redirectTo string) error {
	if redirectTo != "" {
		return seeOther(w, redirectTo)
	}
	pg.Name = "done"
	a.showAs(w, r, http.StatusOK, pg)
	return nil
}

func seeOther(w http.ResponseWriter, to string) error {
	h := w.Header()
	h.Set("Location", to)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}
