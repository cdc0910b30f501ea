package auth

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"strings"

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
	pg.App, pg.Locale = a.appName(), cmp.Or(pg.Locale, pageLocale(r.Context()), preferredLocale(r.Context(), User{}))
	a.templates.pages.write(w, r, status, pg, a.look())
}

// onPage returns the request of a page's form, with the page's language for new accounts.
func (a *Auth) onPage(r *http.Request) *http.Request {
	return r.WithContext(withPageLocale(r.Context(), a.templates.pages.langs.Pick(preferredLocale(r.Context(), User{}))))
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
	pg.Name, pg.Failure, pg.MinLength = "problem", e, a.settings.now.Load().settings.PasswordMinLength
	a.showAs(w, r, e.Status, pg)
	return nil
}

// showDone ends a flow: it redirects to the application, or shows a page with the
// result.
func (a *Auth) showDone(w http.ResponseWriter, r *http.Request, pg page, redirectTo string) error {
	if redirectTo != "" {
		return seeOther(w, redirectTo)
	}
	pg.Name, pg.Done = "done", cmp.Or(pg.Done, "email_verified")
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
	Failure      *Error         // sets Problem, Code and Reasons
	Problem      string         // the error's text
	Code         Code           // of the problem
	OfLink       bool           // problem: the error is about a link
	FromSender   bool           // problem: only the link's sender can create another
	NoOther      bool           // problem: there is no other link
	Reasons      []string       // of weak_password
	MinLength    int            // of passwords
	First        bool           // reset_password: the user has never had a password or a session
	TypedCode    string         // type_code, link_elsewhere, confirm_sign_up: the user types it in the browser that requested it
	TakesOver    bool           // confirm_sign_in: the sign-in deletes credentials that others have set up
	Creates      bool           // confirm_sign_in: the sign-in creates an account, beside which the reader may have one with a phone number
	Done         string         // "signed_in", "signed_out", "sent", "email_verified", "password_reset", "disowned", "left_alone", "refused", "secured", "accepted", "owner"
	TakenOver    bool           // credentials that others had set up were deleted
	Disownable   bool           // confirm_email: another person may have created the account
	MadeAt       string         // when the account was created; link_elsewhere: when the change was requested
	MadeFrom     string         // on which device, if known; link_elsewhere: of the request
	Given        bool           // confirm_email, confirm_sign_up: an operator created the account
	NewAddress   string         // confirm_email, link_elsewhere: the requested email address, and Address is the account's
	Over         bool           // link_elsewhere: the session that requested it has ended
	Replaced     bool           // link_elsewhere: the link is used or replaced
	MovesBack    bool           // secure_account: the email address is restored
	ResetSent    bool           // disowned, secured: a link to choose a password was sent
	CodesDropped bool           // secured: the recovery codes were removed; the next sign-in gets new ones
	SignInTo     bool           // accept_invitation: the address has an account, and its owner has to sign in first
	Unconfirmed  bool           // problem: a reset by an address that nobody confirmed
	SignedIn     bool           // accept_invitation: the owner is signed in; first_owner: a user is signed in
	NoPassword   bool           // accept_invitation: passwords are switched off; confirm_sign_up: or the account has none
	Providers    []providerLink // accept_invitation

	Username                string // accept_invitation: for password managers
	Roles                   string // accept_invitation: the roles that it gives
	BackTo                  string // first_owner without a session, accept_invitation with SignInTo: where the sign-in leads back to
	NeedsFactor             bool   // accept_invitation: they need a second factor
	StartsClean, AsksFactor bool   // accept_invitation: the account starts clean; it has to show its second factor
	OffersFactor            bool   // accept_invitation: it has a second factor, which stays if it is shown
	FormTarget              string // origin that the form's answer redirects to

	AppOnly       bool         // second_factor: recovery codes are not taken
	Script        string       // second_factor, enrol, accept_invitation: the script, if a passkey can be used; "": none
	PasskeyDue    bool         // second_factor: only a passkey continues, because the account needs a second factor and has none
	NoApp         bool         // second_factor, accept_invitation: the account has no authenticator app, only recovery codes and passkeys
	TrustDays     int          // second_factor: days for which the device can be trusted; 0: no checkbox
	Trust         bool         // second_factor: the checkbox is ticked
	UsedCode      bool         // done: the sign-in used a recovery code
	CodesLeft     int          // done with UsedCode: recovery codes that are left
	CodesOf       int          // done with UsedCode: their number at first
	NewCodes      string       // done with UsedCode: the page that creates new ones, or ""
	Setup         *factorSetup // enrol: the new factor; nil: not yet created
	RecoveryCodes []string     // recovery_codes
	Next          template.URL // recovery_codes, done with UsedCode: where the browser goes afterwards; "": the start page
}

var pageNames = []string{"confirm_sign_in", "type_code", "confirm_email", "link_elsewhere", "confirm_sign_up", "reset_password", "accept_invitation", "secure_account", "first_owner", "second_factor", "enrol", "recovery_codes", "done", "problem"}

// pages are the parsed pages by name, and the texts of all pages.
type pages struct {
	langs     *webpage.Languages
	templates map[string]*template.Template
	css       []byte
}

// parsePages parses the templates of pages. They are the same in all languages.
func parsePages(l webpage.Layers, langs *webpage.Languages) (*pages, error) {
	css, err := l.Read("page/style.css")
	if err != nil {
		return nil, err
	}
	layout, err := l.Read("page/layout.html")
	if err != nil {
		return nil, err
	}
	p := &pages{langs: langs, templates: map[string]*template.Template{}, css: css}
	for _, name := range pageNames {
		body, err := l.Read("page/" + name + ".html")
		if err != nil {
			return nil, fmt.Errorf("template: %w", err)
		}
		t, err := template.New("layout").Parse(string(layout))
		if err == nil {
			_, err = t.Parse(string(body))
		}
		if err != nil {
			return nil, fmt.Errorf("template %s.html: %w", name, err)
		}
		p.templates[name] = t
	}
	return p, nil
}

// pageData is the data of templates: a page in the reader's language.
type pageData struct {
	page
	CSS   template.CSS
	Dir   string // "ltr" or "rtl"
	texts webpage.Texts
}

// T returns a text. Its placeholders are {brand}, {address}, {new}, {device}, {date} and
// {n}, and the given ones. A text has a variant that names the device, if it is known, and
// one for accounts that an operator created.
func (d *pageData) T(key string, values ...any) template.HTML { return d.text(key, plain, values) }

// M is T with the email addresses marked.
func (d *pageData) M(key string) template.HTML {
	return d.text(key, func(s string) string { return `<span class="address">` + plain(s) + `</span>` }, nil)
}

func (d *pageData) text(key string, address func(string) string, values []any) template.HTML {
	for i := 1; i < len(values); i += 2 {
		values[i] = plain(fmt.Sprint(values[i]))
	}
	escaped := webpage.Texts{"": plain(d.texts.Of(d.variant(key)))}
	return template.HTML(escaped.Of("", append(values, "brand", plain(d.App), "address", address(d.Address), "new", address(d.NewAddress), "device", plain(d.MadeFrom), "date", plain(d.MadeAt), "n", d.MinLength)...)) //nolint:gosec // text and values are escaped
}

// plain escapes a text for HTML. Apostrophes need no escape between tags; in attributes
// html/template escapes them.
func plain(s string) string { return strings.ReplaceAll(template.HTMLEscapeString(s), "&#39;", "'") }

func (d *pageData) variant(key string) string {
	if _, ok := d.texts[key+"_given"]; ok && d.Given {
		return key + "_given"
	}
	if _, ok := d.texts[key+"_device"]; ok && d.MadeFrom != "" {
		return key + "_device"
	}
	return key
}

// problemText returns the text of a problem. An application's own message stays.
func (d *pageData) problemText() string {
	e := d.Failure
	if e.Message != errorTable[e.Code].Message {
		return e.Message
	}
	key := "error." + string(e.Code)
	if d.Unconfirmed {
		return d.texts.Of("link.reset.unconfirmed")
	}
	if d.OfLink {
		if _, ok := d.texts["link.problem."+string(e.Code)]; ok {
			key = "link.problem." + string(e.Code)
		}
	}
	return d.texts.Or(key, "error.internal", "wait", d.texts.Wait(e.RetryAfter))
}

// Advice returns the key of a text about the next step after a problem, or "". Only a link
// that is not valid any more is replaced by another one.
func (d *pageData) Advice() string {
	switch {
	case d.Code == CodeMissingPermission:
		return ""
	case !d.OfLink:
		return "link.problem.again"
	case d.Code != CodeInvalidToken, d.NoOther:
		return ""
	case d.FromSender:
		return "link.problem.sender"
	}
	return "link.problem.link"
}

// write responds with a page, in the application's look.
func (p *pages) write(w http.ResponseWriter, r *http.Request, status int, pg page, look webpage.Look) {
	pg.App, pg.Locale = cmp.Or(look.Brand, pg.App), p.langs.Pick(pg.Locale)
	pg.Logo, pg.Home, pg.SignIn = template.URL(look.Logo), look.Home, look.SignIn //nolint:gosec // the application's own, judged by Look.Check
	css := string(p.css) + look.CSS()
	data := &pageData{page: pg, CSS: template.CSS(css), Dir: webpage.Direction(pg.Locale), texts: p.langs.Texts(pg.Locale)} //nolint:gosec // the embedder's own file, allowed by its hash
	if e := pg.Failure; e != nil {
		data.Code, data.Problem, data.Reasons = e.Code, data.problemText(), e.Reasons
	}
	var b bytes.Buffer
	if err := p.templates[pg.Name].Execute(&b, data); err != nil {
		panic(fmt.Errorf("page %s: %w", pg.Name, err)) // answered as 500 like any panic
	}
	webpage.Write(w, r, webpage.Response{
		Status: status, Locale: pg.Locale, Styles: webpage.Hash([]byte(css)), Look: look, FormTarget: pg.FormTarget, Scripts: pg.Script != "", Body: b.Bytes(),
	})
}
