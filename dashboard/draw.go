package dashboard

import (
	"bytes"
	"html"
	"strconv"
	"strings"
	"time"
)

// Pages are drawn in Go: a template takes longer for its frame alone than the operations
// behind it do.

// markup is what stands in a page as it is. Only what is written in the code can become
// it: a text that is not constant does not compile, and nothing converts one
// (TestMarkup).
type markup string

// drawing is a page in the making. Everything that goes into it passes one of its
// methods raw, text, href, decimal and instant.
type drawing struct {
	to *bytes.Buffer
	t  func(text string, values ...any) string // in the visitor's language
}

// raw writes markup of the code's own.
func (d *drawing) raw(parts ...markup) {
	for _, p := range parts {
		d.to.WriteString(string(p))
	}
}

// text writes what may be anything, for a text or an attribute in double quotes.
func (d *drawing) text(s string) { d.to.WriteString(html.EscapeString(s)) }

// href writes where a link leads: a path of this host, or a page elsewhere, and never
// anything that would run.
func (d *drawing) href(to string) {
	path := strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") && !strings.HasPrefix(to, `/\`)
	if !path && !strings.HasPrefix(to, "https://") && !strings.HasPrefix(to, "http://") {
		to = "#"
	}
	d.text(to)
}

// decimal writes a number with that many places.
func (d *drawing) decimal(n float64, places int) {
	d.to.Write(strconv.AppendFloat(d.to.AvailableBuffer(), n, 'f', places, 64))
}

// instant writes a time.
func (d *drawing) instant(t time.Time, layout string) {
	d.to.Write(t.UTC().AppendFormat(d.to.AvailableBuffer(), layout))
}

// when writes markup if something is so.
func (d *drawing) when(is bool, m markup) {
	if is {
		d.raw(m)
	}
}

// element writes a text between its tags; nothing if there is none.
func (d *drawing) element(begin markup, s string, end markup) {
	if s != "" {
		d.raw(begin)
		d.text(s)
		d.raw(end)
	}
}

func (d *drawing) tag(t tag) {
	d.raw(`<span class="tag`)
	if t.Kind != "" {
		d.raw(" ")
		d.text(t.Kind)
	}
	d.raw(`">`)
	d.text(t.Text)
	d.raw(`</span>`)
}

func (d *drawing) button(l link) {
	switch {
	case l.Post:
		d.raw(`<form method="post" action="`)
		d.href(l.To)
		d.raw(`"><button type="submit" class="button other">`)
		d.text(l.Text)
		d.raw(`</button></form>`)
	case l.To != "":
		d.raw(`<a class="button other`)
		d.when(l.Danger, " danger")
		d.raw(`" href="`)
		d.href(l.To)
		d.raw(`">`)
		d.text(l.Text)
		d.raw(`</a>`)
	case l.Why != "":
		d.raw(`<span class="button off" title="`)
		d.text(l.Why)
		d.raw(`">`)
		d.text(l.Text)
		d.raw(`<span class="hidden"> (`)
		d.text(l.Why)
		d.raw(`)</span></span>`)
	}
}

// menu is links to screens or parts, of which one may be here.
func (d *drawing) menu(list []link) {
	for _, l := range list {
		d.raw(`<li><a href="`)
		d.href(l.To)
		d.raw(`"`)
		d.when(l.Here, ` aria-current="page"`)
		d.raw(`>`)
		d.text(l.Text)
		d.raw(`</a></li>`)
	}
}

func (d *drawing) cell(c *cell) {
	open, end := markup("<bdi>"), markup("</bdi>") // names may be written from right to left
	if c.Code {
		open, end = "<code>", "</code>"
	}
	switch {
	case !c.Time.IsZero():
		d.raw(`<time datetime="`)
		d.instant(c.Time, time.RFC3339)
		d.raw(`" title="`)
		d.instant(c.Time, forPeople)
		d.raw(`">`)
		d.instant(c.Time, forPeople)
		d.raw(`</time>`)
	case c.Text == "" && c.To == "":
	default:
		if c.To != "" {
			d.raw(`<a href="`)
			d.href(c.To)
			d.raw(`">`)
		}
		d.raw(open)
		d.text(c.Text)
		d.raw(end)
		d.when(c.To != "", `</a>`)
	}
	d.element(`<small><bdi>`, c.Under, `</bdi></small>`)
	for _, t := range c.Tags {
		d.raw(" ")
		d.tag(t)
	}
	if len(c.Links) > 0 {
		d.raw(`<span class="row">`)
		for _, l := range c.Links {
			d.button(l)
		}
		d.raw(`</span>`)
	}
}
