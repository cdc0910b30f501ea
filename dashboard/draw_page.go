package dashboard

import "github.com/authmount/auth/internal/webpage"

// page draws the whole document.
func (d *drawing) page(l *layout) {
	d.raw("<!doctype html>\n", `<html lang="`)
	d.text(l.Lang)
	d.raw(`" dir="`)
	d.text(webpage.Direction(l.Lang))
	d.raw("\">\n<head>\n", `<meta charset="utf-8">`, "\n", `<meta name="viewport" content="width=device-width, initial-scale=1">`, "\n",
		`<meta name="robots" content="noindex">`, "\n", `<meta name="color-scheme" content="light dark">`, "\n", `<link rel="icon" href="data:,">`, "\n<title>")
	d.text(l.Title)
	d.raw(" · ")
	d.text(l.Brand)
	d.raw("</title>\n", `<link rel="stylesheet" href="`)
	d.href(l.Style)
	d.raw("\">\n", `<script type="module" src="`)
	d.href(l.Script)
	d.raw("\"></script>\n</head>\n", `<body data-prefix="`)
	d.text(l.Prefix)
	d.raw("\">\n", `<a class="skip" href="#main">`)
	d.text(d.t("Skip to content"))
	d.raw("</a>\n")
	d.bar(l)
	for _, a := range l.Acting {
		d.acting(l, a)
	}
	d.raw("\n", `<div class="frame">`)
	if len(l.Nav) > 0 {
		d.raw("\n", `<nav class="side" aria-label="`)
		d.text(d.t("Pages"))
		d.raw(`"><ul>`)
		d.menu(l.Nav)
		d.raw("\n</ul></nav>")
	}
	d.main(l)
	d.raw("\n</div>\n")
	d.help()
	d.raw("\n</body>\n</html>\n")
}

// bar draws the header: the brand and the visitor.
func (d *drawing) bar(l *layout) {
	d.raw(`<header class="bar">`, "\n", `<a class="brand" href="`)
	d.href(l.Prefix + "/")
	d.raw(`">`)
	d.element(`<img src="`, l.Logo, `" alt="" height="28">`) // checked by webpage.Look
	d.raw(`<span>`)
	d.text(l.Brand)
	d.raw(`</span></a>`)
	if l.Who != "" {
		d.raw("\n", `<div class="who"><span>`)
		d.text(l.Who)
		d.raw(`</span>`)
		if l.SignOut != "" {
			d.raw(`<form method="post" action="`)
			d.href(l.SignOut)
			d.raw(`"><button type="submit" class="plain">`)
			d.text(d.t("Sign out"))
			d.raw(`</button></form>`)
		}
		d.raw(`</div>`)
	}
	d.raw("\n</header>")
}

// acting draws the notice of a running impersonation.
func (d *drawing) acting(l *layout, a acting) {
	d.raw("\n", `<aside class="acting" aria-label="`)
	d.text(d.t("Operator acting as the user"))
	d.raw(`"><p>`)
	d.text(d.t("In the application you act as {who}.", "who", a.Label))
	d.raw(`</p> <a class="button other" href="`)
	d.href(l.Prefix + "/impersonations/" + a.ID + "/end")
	d.raw(`">`)
	d.text(d.t("End it"))
	d.raw(`</a></aside>`)
}

// main draws the page's content.
func (d *drawing) main(l *layout) {
	d.raw("\n", `<main id="main" tabindex="-1"`)
	d.when(l.Live, ` data-live="5"`)
	d.raw(`>`)
	d.element(`<p class="notice" role="status">`, l.Notice, `</p>`)
	d.raw("\n", `<div class="title"><h1>`)
	d.text(l.Title)
	for _, t := range l.Tags {
		d.raw(` `)
		d.tag(t)
	}
	d.raw(`</h1>`)
	d.element("\n<p>", l.Under, `</p>`)
	d.raw(`</div>`)
	if len(l.Tabs) > 0 {
		d.raw("\n", `<nav class="tabs" aria-label="`)
		d.text(d.t("Parts"))
		d.raw(`"><ul>`)
		d.menu(l.Tabs)
		d.raw(`</ul></nav>`)
	}
	if len(l.Buttons) > 0 {
		d.raw("\n", `<div class="buttons">`)
		for _, b := range l.Buttons {
			d.button(b)
		}
		d.raw(`</div>`)
	}
	if l.Filters != nil {
		d.filters(l.Filters)
	}
	for i := range l.Blocks {
		d.block(&l.Blocks[i])
	}
	d.raw("\n</main>")
}

func (d *drawing) block(b *block) {
	d.raw("\n", `<section class="block`)
	d.when(b.Warn, ` warn`)
	d.raw(`">`)
	d.element("\n<h2>", b.Title, `</h2>`)
	d.element("\n<p>", b.Text, `</p>`)
	d.figures(b.Figures)
	d.facts(b.Facts)
	if b.Chart != nil {
		d.chart(b.Chart)
	}
	if b.Form != nil {
		d.form(b.Form)
	}
	if b.Table != nil {
		d.table(b.Table)
	}
	d.code(b.Code)
	if b.Link != nil {
		d.raw("\n", `<p class="buttons">`)
		d.button(*b.Link)
		d.raw(`</p>`)
	}
	d.raw("\n</section>")
}

func (d *drawing) figures(list []figure) {
	if len(list) == 0 {
		return
	}
	d.raw("\n", `<ul class="figures">`)
	for _, f := range list {
		d.raw(`<li>`)
		if f.To != "" {
			d.raw(`<a href="`)
			d.href(f.To)
			d.raw(`">`)
		}
		d.raw(`<span class="label">`)
		d.text(f.Label)
		d.raw(`</span> <strong>`)
		d.text(f.Value)
		d.raw(`</strong>`)
		d.element(` <span class="change">`, f.Change, `</span>`)
		d.when(f.To != "", `</a>`)
		d.raw(`</li>`)
	}
	d.raw(`</ul>`)
}

func (d *drawing) facts(list []fact) {
	if len(list) == 0 {
		return
	}
	d.raw("\n<dl>")
	for _, f := range list {
		d.raw(`<div><dt>`)
		d.text(f.Name)
		d.raw(`</dt><dd>`)
		for i := range f.Cells {
			d.cell(&f.Cells[i])
		}
		if f.Link != nil {
			d.button(*f.Link)
		}
		d.raw(`</dd></div>`)
	}
	d.raw(`</dl>`)
}

// code draws text that is shown unchanged, to copy.
func (d *drawing) code(s string) {
	if s == "" {
		return
	}
	d.raw(`<pre tabindex="0" data-copy="`)
	d.text(d.t("Copy"))
	d.raw(`">`)
	d.text(s)
	d.raw(`</pre>`)
}

// help draws the list of keyboard shortcuts, which the script opens.
func (d *drawing) help() {
	d.raw(`<dialog id="help" aria-labelledby="help-title"><h2 id="help-title">`)
	d.text(d.t("Keyboard shortcuts"))
	d.raw("</h2>\n", `<dl class="keys">`)
	d.key(`<kbd>/</kbd>`, d.t("Search"))
	d.key(`<kbd>g</kbd> <kbd>o</kbd>`, d.t("Overview"))
	d.key(`<kbd>g</kbd> <kbd>u</kbd>`, d.t("Users"))
	d.key(`<kbd>g</kbd> <kbd>s</kbd>`, d.t("Sessions"))
	d.key(`<kbd>g</kbd> <kbd>a</kbd>`, d.t("Audit log"))
	d.key(`<kbd>Esc</kbd>`, d.t("Close"))
	d.raw("</dl>\n", `<form method="dialog"><button>`)
	d.text(d.t("Close"))
	d.raw(`</button></form></dialog>`)
}

func (d *drawing) key(keys markup, does string) {
	d.raw(`<div><dt>`, keys, `</dt><dd>`)
	d.text(does)
	d.raw(`</dd></div>`)
}
