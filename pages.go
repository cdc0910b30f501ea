package auth

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/authmount/auth/internal/visible"
	"github.com/authmount/auth/internal/webpage"
)

// A GET of a link completes nothing, because mail scanners open links, too. Browsers get a
// page whose button posts the token; programs learn whether the link is valid.

// answerProgram is the response to a program that opens a link. err is the error of
// reading the link.
func answerProgram(w http.ResponseWriter, err error) error {
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// fromProgram reports whether a request comes from a program, by its headers. Browsers
// are not programs, and neither are scanners and previews that imitate a browser.
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

// showPage writes a page of a link. The pages post to the path of the request, with any
// prefix.
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

// showProblem is writeError for browsers.
func (a *Auth) showProblem(w http.ResponseWriter, r *http.Request, err error) error {
	return a.showProblemOn(w, r, err, page{OfLink: true})
}

// showProblemOn is showProblem with fields of the page.
func (a *Auth) showProblemOn(w http.ResponseWriter, r *http.Request, err error, pg page) error {
	e := a.logged(r, err)
	writeErrorHeaders(w, e)
	pg.Name, pg.Problem, pg.Code, pg.Reasons = "problem", e.Message, e.Code, e.Reasons
	pg.MinLength = a.settings.now.Load().settings.PasswordMinLength
	a.showAs(w, r, e.Status, pg)
	return nil
}

// showDone ends a flow: it redirects to the application, or shows a page with the
// result.
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

// page is the content of a link page. Templates read its fields, and App.
type page struct {
	Name         string // "confirm_sign_in", "type_code", "confirm_email", "link_elsewhere", "confirm_sign_up", "reset_password", "accept_invitation", "secure_account", "first_owner", "second_factor", "enrol", "recovery_codes", "done", "problem"
	App          string
	Logo         template.URL // URL of the application's logo, or ""
	Home         string       // the application's start page, or ""
	SignIn       string       // its sign-in page, or ""
	Locale       string
	Action       string         // where the form posts
	Token        string         // of the link, hidden in the form
	Address      string         // masked, except on confirm_sign_up
	Problem      string         // the error's message
	Code         Code           // of the problem
	OfLink       bool           // problem: the error is about a link
	Reasons      []string       // of weak_password
	MinLength    int            // of passwords
	First        bool           // reset_password: the user has never had a password or a session
	TypedCode    string         // type_code, link_elsewhere, confirm_sign_up: the user types it in the browser that requested it
	TakesOver    bool           // confirm_sign_in: the sign-in deletes credentials that others have set up
	Done         string         // "signed_in", "signed_out", "sent", "email_verified", "password_reset", "disowned", "left_alone", "refused", "secured", "accepted", "owner"
	TakenOver    bool           // credentials that others had set up were deleted
	Disownable   bool           // confirm_email: another person may have created the account
	MadeAt       string         // when the account was created; link_elsewhere: when the change was requested
	MadeFrom     string         // on which device, if known; link_elsewhere: of the request
	NewAddress   string         // confirm_email, link_elsewhere: the requested email address, and Address is the account's
	Over         bool           // link_elsewhere: the session that requested it has ended
	Replaced     bool           // link_elsewhere: the link is used or replaced
	MovesBack    bool           // secure_account: the email address is restored
	ResetSent    bool           // disowned, secured: a link to choose a password was sent
	CodesDropped bool           // secured: the recovery codes were removed; the next sign-in gets new ones
	SignInTo     bool           // accept_invitation: the address has an account, and its owner has to sign in first
	SignedIn     bool           // accept_invitation: the owner is signed in; first_owner: a user is signed in
	NoPassword   bool           // accept_invitation: passwords are switched off; confirm_sign_up: or the account has none
	Providers    []providerLink // accept_invitation

	StartsClean, AsksFactor bool   // accept_invitation: the account starts clean; it has to show its second factor
	FormTarget              string // origin that the form's answer redirects to

	TrustDays     int          // second_factor: days for which the device can be trusted; 0: no checkbox
	Trust         bool         // second_factor: the checkbox is ticked
	Setup         *factorSetup // enrol: the new factor; nil: not yet created
	RecoveryCodes []string     // recovery_codes
	CodesLeft     *int         // done: recovery codes that are left; nil: none was used
	CodesOf       int          // done: their number at first
	NewCodes      string       // done: the page that creates new ones, or ""
	Next          template.URL // recovery_codes, done with CodesLeft: where the browser goes afterwards; "": the start page
}

var pageNames = []string{"confirm_sign_in", "type_code", "confirm_email", "link_elsewhere", "confirm_sign_up", "reset_password", "accept_invitation", "secure_account", "first_owner", "second_factor", "enrol", "recovery_codes", "done", "problem"}

// pages are the parsed pages by name and locale.
type pages struct {
	app       func() string
	langs     *webpage.Languages
	templates map[string]*template.Template
	css       []byte
}

func newPages(o MailOptions) (*pages, error) {
	o.defaults()
	l := layered(o.Templates)
	langs, err := webpage.FindLanguages(l, "page", "done", "html", o.Locale)
	if err != nil {
		return nil, fmt.Errorf("WithMail: %w", err)
	}
	css, err := l.Read("page/style.css")
	if err != nil {
		return nil, err
	}
	p := &pages{app: func() string { return visible.Line(o.AppName) }, langs: langs, css: css}
	if o.Templates == nil {
		p.templates, err = builtinPages()
	} else {
		p.templates, err = parsePages(l, langs.Names)
	}
	return p, err
}

// builtinPages parses the built-in pages once for all, as builtinMails does mails.
var builtinPages = sync.OnceValues(func() (map[string]*template.Template, error) {
	l := layered(nil)
	langs, err := webpage.FindLanguages(l, "page", "done", "html", builtinLocale)
	if err != nil {
		return nil, err
	}
	return parsePages(l, langs.Names)
})

// parsePages parses the pages of some languages, by "name.locale".
func parsePages(l webpage.Layers, locales []string) (map[string]*template.Template, error) {
	layout, err := l.Read("page/layout.html")
	if err != nil {
		return nil, err
	}
	parsed := map[string]*template.Template{}
	for _, loc := range locales {
		for _, name := range pageNames {
			body, err := l.Read("page/" + name + "." + loc + ".html")
			if err != nil {
				return nil, fmt.Errorf("template: %w", err)
			}
			t, err := template.New("layout").Parse(string(layout))
			if err == nil {
				_, err = t.Parse(string(body))
			}
			if err != nil {
				return nil, fmt.Errorf("template %s.%s.html: %w", name, loc, err)
			}
			parsed[name+"."+loc] = t
		}
	}
	return parsed, nil
}

// write responds with a page, in the application's look.
func (p *pages) write(w http.ResponseWriter, r *http.Request, status int, pg page, look webpage.Look) {
	pg.App, pg.Locale = cmp.Or(look.Brand, p.app()), p.langs.Pick(pg.Locale)
	pg.Logo, pg.Home, pg.SignIn = template.URL(look.Logo), look.Home, look.SignIn //nolint:gosec // the application's own, judged by Look.Check
	css := string(p.css) + look.CSS()
	var b bytes.Buffer
	data := struct {
		page
		CSS template.CSS
	}{pg, template.CSS(css)} //nolint:gosec // the embedder's own file, allowed by its hash
	if err := p.templates[pg.Name+"."+pg.Locale].Execute(&b, data); err != nil {
		panic(fmt.Errorf("page %s: %w", pg.Name, err)) // answered as 500 like any panic
	}
	webpage.Write(w, r, webpage.Response{
		Status: status, Locale: pg.Locale, Styles: webpage.Hash([]byte(css)), Look: look, FormTarget: pg.FormTarget, Body: b.Bytes(),
	})
}
