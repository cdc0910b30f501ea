package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
)

// page is what a link page shows; templates see it as it is, with App.
type page struct {
	Name       string // "confirm_sign_in", "type_code", "confirm_email", "reset_password", "secure_account", "done", "problem"
	App        string
	Locale     string
	Action     string   // where the form posts
	Token      string   // of the link, hidden in the form
	Address    string   // masked
	Problem    string   // what went wrong
	Code       Code     // of the problem
	OfLink     bool     // problem: it is one of a link
	Reasons    []string // of weak_password
	MinLength  int
	TypedCode  string // type_code: to be typed where it was asked for
	TakesOver  bool   // confirm_sign_in: what others have set up on the account goes
	Done       string // "signed_in", "signed_out", "sent", "email_verified", "password_reset", "disowned", "left_alone", "secured"
	TakenOver  bool   // what others had set up on the account is gone
	Disownable bool   // confirm_email: the account may be somebody else's doing
	MadeAt     string // when it was made
	MadeFrom   string // and by which device, if that is known
	MovesBack  bool   // secure_account: the address becomes the account's again
	ResetSent  bool   // disowned, secured: a link to choose a password was sent
	FormTarget string // origin that the form's answer redirects to
}

var pageNames = []string{"confirm_sign_in", "type_code", "confirm_email", "reset_password", "secure_account", "done", "problem"}

// pages are the parsed pages by name and locale.
type pages struct {
	app       string
	langs     *languages
	templates map[string]*template.Template
	styles    string // what the policy says of styles
	css       template.CSS
}

func newPages(o MailOptions) (*pages, error) {
	o.defaults()
	l := layered{o.Templates}
	langs, err := newLanguages(l, "page", "done", "html", o.Locale)
	if err != nil {
		return nil, err
	}
	css, err := l.read("page/style.css")
	if err != nil {
		return nil, err
	}
	layout, err := l.read("page/layout.html")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(css)
	p := &pages{
		app: printable(o.AppName), langs: langs, templates: map[string]*template.Template{},
		styles: "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
		css:    template.CSS(css), //nolint:gosec // the embedder's own file, allowed by its hash
	}
	for _, loc := range langs.names {
		for _, name := range pageNames {
			body, err := l.read("page/" + name + "." + loc + ".html")
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
			p.templates[name+"."+loc] = t
		}
	}
	return p, nil
}

// write responds with a page. Nothing on it can run, be framed, or load from
// elsewhere, and its address, which holds the token, goes nowhere.
func (p *pages) write(w http.ResponseWriter, r *http.Request, status int, pg page) {
	pg.App, pg.Locale = p.app, p.langs.pick(pg.Locale)
	var b bytes.Buffer
	data := struct {
		page
		CSS template.CSS
	}{pg, p.css}
	if err := p.templates[pg.Name+"."+pg.Locale].Execute(&b, data); err != nil {
		panic(fmt.Errorf("page %s: %w", pg.Name, err)) // answered as 500 like any panic
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", pg.Locale)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src "+p.styles+"; img-src data:; base-uri 'none'; form-action "+
		formAction(pg.FormTarget)+"; frame-ancestors 'none'")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b.Bytes()) // a client that has gone needs no answer
	}
}

var plainOrigin = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:(//[A-Za-z0-9.\-:\[\]]+)?$`)

// formAction lets the form post here, and its answer redirect to the
// application: browsers hold redirects to the policy too.
func formAction(target string) string {
	if plainOrigin.MatchString(target) {
		return "'self' " + target
	}
	return "'self'"
}
