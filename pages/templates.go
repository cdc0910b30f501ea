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

// defaultLocale has every text.
const defaultLocale = "en"

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
	if err := checkFiles(own, names); err != nil {
		return err
	}
	style, err := l.Read("style.css")
	if err != nil {
		return err
	}
	css := string(p.site.Style) + string(style) + p.look.CSS()
	p.css, p.styles = template.CSS(css), webpage.Hash([]byte(css)) //nolint:gosec // the application's file, allowed by its hash
	if p.langs, err = p.languagesOf(l); err != nil {
		return err
	}
	if own == nil {
		shared, err := builtinTemplates()
		p.texts, p.templates = shared.texts, shared.templates
		return err
	}
	return p.parseAll(own, l, names)
}

// builtinTemplates parses and executes the built-in templates once per process, because
// templates are immutable after parsing.
var builtinTemplates = sync.OnceValues(func() (*Pages, error) {
	p, l := &Pages{}, webpage.Layers{Builtin: builtin()}
	names, err := fs.Glob(l.Builtin, "*.html")
	if err != nil {
		return p, err
	}
	if p.langs, err = p.languagesOf(l); err != nil {
		return p, err
	}
	return p, p.parseAll(nil, l, names)
})

// parseAll parses the texts and templates of every language.
func (p *Pages) parseAll(own fs.FS, l webpage.Layers, names []string) error {
	p.texts, p.templates = map[string]texts{}, map[string]map[string]*template.Template{}
	for _, loc := range p.langs.Names {
		var err error
		if p.texts[loc], err = loadTexts(own, loc); err != nil {
			return err
		}
		if err := p.parse(l, loc, names); err != nil {
			return err
		}
	}
	return nil
}

// checkFiles rejects files that would never be read.
func checkFiles(own fs.FS, names []string) error {
	if own == nil {
		return nil
	}
	return fs.WalkDir(own, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || slices.Contains(names, name) || name == "style.css" {
			return err
		}
		if locale, ok := strings.CutPrefix(name, "texts."); ok && strings.HasSuffix(locale, ".json") {
			return nil
		}
		return fmt.Errorf("the option Templates has a file %q that is not read; there are style.css, texts.<language>.json, %s", name, strings.Join(names, ", "))
	})
}

func (p *Pages) parse(l webpage.Layers, locale string, names []string) error {
	t := p.texts[locale]
	base := template.New("layout.html").Option("missingkey=error").Funcs(template.FuncMap{"t": t.of, "field": newField})
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
	v.CSS, v.Failed = p.css, v.Problem != "" || len(v.errors) > 0
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
	webpage.Write(w, r, webpage.Response{Status: status, Locale: v.Locale, Styles: p.styles, Look: p.look, Body: body})
	return nil
}
