package dashboard

// form draws fields with a button, below the form's problem.
func (d *drawing) form(f *form) {
	d.raw("\n", `<form method="`)
	d.text(f.Method)
	d.raw(`" action="`)
	d.href(f.To)
	d.raw(`" class="entry">`)
	d.element("\n<p class=\"wrong\" role=\"alert\">", f.Problem, `</p>`)
	d.fields(f.Hidden, f.Fields)
	d.raw("\n", `<div class="buttons"><button type="submit"`)
	d.when(f.Danger, ` class="danger"`)
	d.raw(`>`)
	d.text(f.Submit)
	d.raw(`</button>`)
	if f.Back != "" {
		d.raw(`<a class="button other" href="`)
		d.href(f.Back)
		d.raw(`">`)
		d.text(d.t("Cancel"))
		d.raw(`</a>`)
	}
	d.raw(`</div>`)
	if f.Curl != "" {
		d.raw("\n<details><summary>")
		d.text(d.t("As curl"))
		d.raw(`</summary>`)
		d.code(f.Curl)
		d.raw(`</details>`)
	}
	d.raw("\n</form>")
}

// filters draws a list's filters, the rarer ones folded away.
func (d *drawing) filters(f *form) {
	d.raw("\n", `<form method="get" action="`)
	d.href(f.To)
	d.raw(`" class="filters" role="search">`)
	d.fields(f.Hidden, f.Fields)
	d.raw("\n", `<div class="field end"><button type="submit">`)
	d.text(f.Submit)
	d.raw(`</button> <a href="`)
	d.href(f.To)
	d.raw(`">`)
	d.text(d.t("Reset"))
	d.raw(`</a></div>`)
	if len(f.More) > 0 {
		d.raw("\n<details")
		d.when(f.Open, ` open`)
		d.raw(`><summary>`)
		d.text(d.t("More filters"))
		d.raw(`</summary><div>`)
		d.fields(nil, f.More)
		d.raw(`</div></details>`)
	}
	d.raw("\n</form>")
}

// fields draws hidden fields, and the others below each other.
func (d *drawing) fields(hidden, list []field) {
	for _, f := range hidden {
		d.raw(`<input type="hidden"`)
		d.named(f.Name, f.Value)
		d.raw(`>`)
	}
	for i := range list {
		d.raw(`<div class="field">`)
		d.field(&list[i])
		d.raw(`</div>`)
	}
}

func (d *drawing) field(f *field) {
	switch f.Type {
	case "check":
		d.raw(`<label class="check"><input type="checkbox"`)
		d.named(f.Name, "1")
		d.when(f.Checked, ` checked`)
		d.described(f)
		d.raw(`> `)
		d.text(f.Label)
		d.raw(`</label>`)
	case "checks":
		d.raw(`<fieldset><legend>`)
		d.text(f.Label)
		d.raw(`</legend><div class="checks">`)
		for _, o := range f.Options {
			d.box(f.Name, o)
		}
		d.raw(`</div></fieldset>`)
	default:
		d.raw(`<label for="`)
		d.id(f, "")
		d.raw(`">`)
		d.text(f.Label)
		d.raw(`</label>`)
		d.entry(f)
	}
	d.about(f)
}

// box draws one of several boxes.
func (d *drawing) box(name string, o option) {
	d.raw(`<label class="check"><input type="checkbox"`)
	d.named(name, o.Value)
	d.when(o.Chosen, ` checked`)
	d.raw(`> <span><bdi>`)
	d.text(o.Text)
	d.raw(`</bdi>`)
	if o.Description != "" {
		d.raw(`<small>`)
		d.text(o.Description)
		d.raw(`</small>`)
	}
	d.raw(`</span></label>`)
}

// entry draws a field's input.
func (d *drawing) entry(f *field) {
	switch f.Type {
	case "select":
		d.open("select", "", f)
		d.described(f)
		d.raw(`>`)
		for _, o := range f.Options {
			d.raw(`<option value="`)
			d.text(o.Value)
			d.raw(`"`)
			d.when(o.Chosen, ` selected`)
			d.raw(`>`)
			d.text(o.Text)
			d.raw(`</option>`)
		}
		d.raw(`</select>`)
	case "textarea", "lines":
		d.open("textarea", "", f)
		rows := markup("6")
		if f.Type == "lines" {
			rows = "2"
		}
		d.raw(` rows="`, rows, `" spellcheck="false"`)
		d.when(f.Required, ` required`)
		d.described(f)
		d.raw(`>`)
		d.text(f.Value)
		d.raw(`</textarea>`)
	case "typed":
		d.open("input", "text", f)
		d.raw(` autocomplete="off" autocapitalize="none" spellcheck="false" required`)
		d.described(f)
		d.raw(`>`)
	case "password":
		d.open("input", "password", f)
		d.raw(` autocomplete="new-password"`)
		d.described(f)
		d.raw(`>`)
	default:
		d.open("input", f.Type, f)
		d.raw(` value="`)
		d.text(f.Value)
		d.raw(`" autocomplete="off"`)
		d.when(f.Required, ` required`)
		if len(f.List) > 0 {
			d.raw(` list="`)
			d.id(f, "-list")
			d.raw(`"`)
		}
		d.described(f)
		d.raw(`>`)
	}
}

// open starts an element and leaves its tag open for attributes; kind is an input's type.
func (d *drawing) open(element markup, kind string, f *field) {
	d.raw(`<`, element, ` id="`)
	d.id(f, "")
	if kind != "" {
		d.raw(`" type="`)
		d.text(kind)
	}
	d.raw(`" name="`)
	d.text(f.Name)
	d.raw(`"`)
}

// about draws the lines below a field.
func (d *drawing) about(f *field) {
	if len(f.List) > 0 {
		d.raw(`<datalist id="`)
		d.id(f, "-list")
		d.raw(`">`)
		for _, value := range f.List {
			d.raw(`<option value="`)
			d.text(value)
			d.raw(`"></option>`)
		}
		d.raw(`</datalist>`)
	}
	for _, line := range []struct {
		class, suffix markup
		text          string
	}{{"hint", "-hint", f.Hint}, {"wrong", "-error", f.Error}} {
		if line.text != "" {
			d.raw(`<p class="`, line.class, `" id="`)
			d.id(f, line.suffix)
			d.raw(`">`)
			d.text(line.text)
			d.raw(`</p>`)
		}
	}
}

// described refers to the lines that describe a field, its error first.
func (d *drawing) described(f *field) {
	if f.Hint == "" && f.Error == "" {
		return
	}
	d.raw(` aria-describedby="`)
	if f.Error != "" {
		d.id(f, "-error")
		d.when(f.Hint != "", " ")
	}
	if f.Hint != "" {
		d.id(f, "-hint")
	}
	d.raw(`"`)
	d.when(f.Error != "", ` aria-invalid="true"`)
}

func (d *drawing) id(f *field, suffix markup) {
	d.raw("f-")
	d.text(f.Name)
	d.raw(suffix)
}

func (d *drawing) named(name, value string) {
	d.raw(` name="`)
	d.text(name)
	d.raw(`" value="`)
	d.text(value)
	d.raw(`"`)
}
