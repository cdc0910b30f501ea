package pages

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/internal/host"
)

// Paths returns the paths of all pages with a method, with example values for parameters.
func (p *Pages) Paths(method string) []string {
	var list []string
	for _, rt := range p.routes() {
		if slices.Contains(rt.methods(), method) {
			list = append(list, p.path(strings.NewReplacer("{$}", "", "{provider}", "acme").Replace(rt.at)))
		}
	}
	return list
}

// Posts returns the paths with forms.
func (p *Pages) Posts() []string { return p.Paths(http.MethodPost) }

// Texts returns the texts of a language.
func (p *Pages) Texts(locale string) map[string]string { return p.langs.Texts(locale) }

// Apart returns the paths below the prefix of pages with separate sessions.
func Apart() []string {
	var list []string
	for _, rt := range (&Pages{jar: &host.Jar{}}).routes() {
		list = append(list, strings.ReplaceAll(rt.at, "{provider}", "acme"))
	}
	slices.Sort(list)
	return list
}

// Wait formats a duration in a language.
func (p *Pages) Wait(locale string, d time.Duration) string { return p.langs.Texts(locale).Wait(d) }
