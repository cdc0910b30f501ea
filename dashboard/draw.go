package dashboard

import (
	"html/template"
	"strings"
)

// What lists repeat by the hundred, a template draws too slowly: cells, their tags and
// their buttons are written here, where every text and every address passes a drawing's
// text and href.

// drawing is a part of a page in the making.
type drawing struct{ strings.Builder }

// raw writes markup of the code's own.
func (d *drawing) raw(parts ...string) {
	for _, p := range parts {
		_, _ = d.WriteString(p) // never fails
	}
}

// text writes what may be anything, for a text or an attribute in double quotes.
func (d *drawing) text(s string) { d.raw(template.HTMLEscapeString(s)) }

// href writes where a link leads: a path of this host, or a page elsewhere, and never
// anything that would run.
func (d *drawing) href(to string) {
	path := strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") && !strings.HasPrefix(to, `/\`)
	if !path && !strings.HasPrefix(to, "https://") && !strings.HasPrefix(to, "http://") {
		to = "#"
	}
	d.text(to)
}

func (d *drawing) html() template.HTML { return template.HTML(d.String()) } //nolint:gosec // of parts that were escaped

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
		if l.Danger {
			d.raw(" danger")
		}
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

func (d *drawing) cell(c cell) {
	kind := "bdi" // names may be written from right to left
	if c.Code {
		kind = "code"
	}
	switch {
	case !c.Time.IsZero():
		at := absolute(c.Time)
		d.raw(`<time datetime="`, iso(c.Time), `" title="`, at, `">`, at, `</time>`)
	case c.Text == "" && c.To == "":
	default:
		if c.To != "" {
			d.raw(`<a href="`)
			d.href(c.To)
			d.raw(`">`)
		}
		d.raw("<", kind, ">")
		d.text(c.Text)
		d.raw("</", kind, ">")
		if c.To != "" {
			d.raw(`</a>`)
		}
	}
	if c.Under != "" {
		d.raw(`<small><bdi>`)
		d.text(c.Under)
		d.raw(`</bdi></small>`)
	}
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

// drawRows are the rows of a table; picks is what the box of one that can be selected is
// called by, with the row's name behind it.
func drawRows(t *table, picks string) template.HTML {
	var d drawing
	if len(t.Rows) > 0 {
		d.Grow(len(t.Rows) * (len(t.Rows[0].Cells) + 1) * 160) // of a cell, about
	}
	for _, r := range t.Rows {
		if r.Off {
			d.raw("\n<tr class=\"gone\">")
		} else {
			d.raw("\n<tr>")
		}
		if t.Select != nil {
			d.raw(`<td><input type="checkbox" name="ids" value="`)
			d.text(r.ID)
			d.raw(`" aria-label="`)
			d.text(picks + " " + r.Label)
			d.raw(`"></td>`)
		}
		for _, c := range r.Cells {
			d.raw("<td>")
			d.cell(c)
			d.raw("</td>")
		}
		d.raw("</tr>")
	}
	return d.html()
}

// drawMenu are links to screens or parts, of which one may be here.
func drawMenu(list []link) template.HTML {
	var d drawing
	for _, l := range list {
		d.raw(`<li><a href="`)
		d.href(l.To)
		d.raw(`"`)
		if l.Here {
			d.raw(` aria-current="page"`)
		}
		d.raw(`>`)
		d.text(l.Text)
		d.raw(`</a></li>`)
	}
	return d.html()
}

func drawCell(c cell) template.HTML {
	var d drawing
	d.cell(c)
	return d.html()
}

func drawTag(t tag) template.HTML {
	var d drawing
	d.tag(t)
	return d.html()
}

// drawAnyButton takes what templates have: a link, or where one is.
func drawAnyButton(l any) template.HTML {
	var d drawing
	switch l := l.(type) {
	case link:
		d.button(l)
	case *link:
		d.button(*l)
	}
	return d.html()
}
