package pages

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/internal/host"
)

// Paths are the paths of all pages that take a method, with something in place of
// what varies.
func (p *Pages) Paths(method string) []string {
	var list []string
	for _, rt := range p.routes() {
		if slices.Contains(rt.methods(), method) {
			list = append(list, p.path(strings.NewReplacer("{$}", "", "{provider}", "acme").Replace(rt.at)))
		}
	}
	return list
}

// Posts are the paths that take forms.
func (p *Pages) Posts() []string { return p.Paths(http.MethodPost) }

// Texts are the texts of a language.
func (p *Pages) Texts(locale string) map[string]string { return p.texts[locale] }

// Apart are the paths, below the prefix, of the same pages with sessions of their own.
func Apart() []string {
	var list []string
	for _, rt := range (&Pages{jar: &host.Jar{}}).routes() {
		list = append(list, strings.ReplaceAll(rt.at, "{provider}", "acme"))
	}
	slices.Sort(list)
	return list
}

// Wait is how a language says how long something takes.
func (p *Pages) Wait(locale string, d time.Duration) string { return p.texts[locale].wait(d) }
