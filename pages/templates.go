package pages

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/authmount/auth/internal/webpage"
)

//go:embed templates
var files embed.FS

func builtin() fs.FS {
	in, err := fs.Sub(files, "templates")
	if err != nil {
		panic(err) // a constant
	}
	return in
}

// shared are the templates that all pages use.
var shared = [...]string{"layout.html", "parts.html"}

// load parses all templates and executes them, so that New reports mistakes.
func (p *Pages) load(own fs.FS) error {
	names, err := fs.Glob(builtin(), "*.html")
	if err != nil {
		return err
	}
	l := webpage.Layers{Own: own, Builtin: builtin()}
	if err := webpage.CheckFiles(own, append([]string{"style.css"}, names...)...); err != nil {
		return err
	}
	style, err := l.Read("style.css")
	if err != nil {
		return err
	}
	css := string(p.site.Style) + string(style) + p.look.CSS()
	p.css, p.styles = template.CSS(css), webpage.Hash([]byte(css)) //nolint:gosec // the application's file, allowed by its hash
	p.langs = p.kit.PageTexts()
	if own == nil {
		return p.loadBuiltin(l, names)
	}
	return p.parseAll(l, names)
}

// parsed are the built-in templates in the built-in languages.
var parsed struct {
	sync.Mutex
	templates map[string]map[string]*template.Template
}

// loadBuiltin parses and executes the built-in templates. Services without texts of their
// own share them, because templates are immutable after parsing.
func (p *Pages) loadBuiltin(l webpage.Layers, names []string) error {
	if p.langs.Own {
		return p.parseAll(l, names)
	}
	parsed.Lock()
	defer parsed.Unlock()
	if parsed.templates == nil {
		if err := p.parseAll(l, names); err != nil {
			return err
		}
		parsed.templates = p.templates
	}
	p.templates = parsed.templates
	return nil
}

// parseAll parses the templates in every language.
func (p *Pages) parseAll(l webpage.Layers, names []string) error {
	p.templates = map[string]map[string]*template.Template{}
	for _, loc := range p.langs.Names {
		if err := p.parse(l, loc, names); err != nil {
			return err
		}
	}
	return nil
}

func (p *Pages) parse(l webpage.Layers, locale string, names []string) error {
	t := p.langs.Texts(locale)
	base := template.New("layout.html").Option("missingkey=error").Funcs(template.FuncMap{"t": t.Of, "field": newField, "passkey": newPasskeyForm})
	for _, name := range shared {
		if err := add(l, base, name); err != nil {
			return err
		}
	}
	p.templates[locale] = map[string]*template.Template{}
	var errs []error
	for _, name := range names {
		if slices.Contains(shared[:], name) {
			continue
		}
		page := template.Must(base.Clone())
		if err := add(l, page, name); err != nil {
			errs = append(errs, err)
			continue
		}
		p.templates[locale][strings.TrimSuffix(name, ".html")] = page
		errs = append(errs, p.try(locale, strings.TrimSuffix(name, ".html")))
	}
	return errors.Join(errs...)
}

func add(l webpage.Layers, to *template.Template, name string) error {
	text, err := l.Read(name)
	if err != nil {
		return err
	}
	if name != "layout.html" {
		to = to.New(name)
	}
	_, err = to.Parse(string(text))
	return err
}

// try executes a template with much data, also without an operator who acts as the user, and
// with little.
func (p *Pages) try(locale, name string) error {
	full, own := sample(), sample()
	full.Page, full.Locale = name, locale
	own.Page, own.Locale, own.Acting = name, locale, ""
	bare := View{Page: name, Locale: locale, Channel: "phone", values: map[string]string{}}
	for _, v := range []*View{full, own, &bare} {
		if _, err := p.execute(v); err != nil {
			return fmt.Errorf("template %s.html: %w", name, err)
		}
	}
	return nil
}

func (p *Pages) execute(v *View) ([]byte, error) {
	v.Brand, v.Logo, v.Home, v.Prefix = p.look.Brand, template.URL(p.look.Logo), p.home, p.prefix //nolint:gosec // checked by Look.Check
	v.Dir, v.CSS, v.Failed = webpage.Direction(v.Locale), p.css, v.Problem != "" || len(v.errors) > 0
	page := p.templates[v.Locale][v.Page]
	if page == nil {
		return nil, fmt.Errorf("there is no template %q", v.Page)
	}
	var b bytes.Buffer
	err := page.Execute(&b, v)
	return b.Bytes(), err
}

// show sends a page.
func (p *Pages) show(w http.ResponseWriter, r *http.Request, status int, v *View) error {
	body, err := p.execute(v)
	if err != nil {
		return err
	}
	webpage.Write(w, r, webpage.Response{Status: status, Locale: v.Locale, Styles: p.styles, Look: p.look, Scripts: v.Script != "", Body: body})
	return nil
}
