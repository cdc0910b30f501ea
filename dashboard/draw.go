package dashboard

import "time"

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
	case l.Reason != "":
		d.raw(`<span class="button off" title="`)
		d.text(l.Reason)
		d.raw(`">`)
		d.text(l.Text)
		d.raw(`<span class="hidden"> (`)
		d.text(l.Reason)
		d.raw(`)</span></span>`)
	}
}

// menu draws links to screens or tabs, and marks the present one.
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
	open, end := markup("<bdi>"), markup("</bdi>") // names may be right-to-left
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
