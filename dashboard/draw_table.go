package dashboard

func (d *drawing) table(t *table) {
	if len(t.Rows) == 0 {
		d.element(`<p class="empty">`, t.Empty, `</p>`)
		return
	}
	picks := ""
	if t.Select != nil {
		picks = d.t("Select")
		d.raw(`<form method="get" action="`)
		d.href(t.Select.To)
		d.raw(`" class="select">`)
	}
	d.raw("\n", `<div class="scroll" role="region" aria-label="`)
	d.text(t.Name)
	d.raw(`" tabindex="0"><table`)
	d.when(t.Matrix, ` class="matrix"`)
	d.raw(">\n<caption class=\"hidden\">")
	d.text(t.Name)
	d.raw("</caption>\n<thead><tr>")
	d.element(`<th scope="col"><span class="hidden">`, picks, `</span></th>`)
	for _, c := range t.Columns {
		d.column(c)
	}
	d.raw("</tr></thead>\n<tbody>")
	for i := range t.Rows {
		d.row(&t.Rows[i], picks)
	}
	d.raw("\n</tbody></table></div>")
	if t.Select != nil {
		d.selection(t.Select)
	}
	if t.Next != "" {
		d.raw("\n", `<p class="buttons"><a class="button other" rel="next" href="`)
		d.href(t.Next)
		d.raw(`">`)
		d.text(d.t("Next page"))
		d.raw(`</a></p>`)
	}
}

// column draws a column's head, which links to the table sorted by it.
func (d *drawing) column(c column) {
	if c.Text == "" {
		d.raw(`<td></td>`)
		return
	}
	d.raw(`<th scope="col"`)
	d.element(` aria-sort="`, c.Dir, `"`)
	d.raw(`>`)
	if c.Sort == "" {
		d.text(c.Text)
	} else {
		d.raw(`<a href="`)
		d.href(c.Sort)
		d.raw(`">`)
		d.text(c.Text)
		d.when(c.Dir == "ascending", " ↑")
		d.when(c.Dir != "" && c.Dir != "ascending", " ↓")
		d.raw(`</a>`)
	}
	d.raw(`</th>`)
}

// row draws a row. If rows can be selected, it starts with a box, labelled with picks and
// the row's label.
func (d *drawing) row(r *row, picks string) {
	if r.Off {
		d.raw("\n<tr class=\"gone\">")
	} else {
		d.raw("\n<tr>")
	}
	if picks != "" {
		d.raw(`<td><input type="checkbox" name="ids" value="`)
		d.text(r.ID)
		d.raw(`" aria-label="`)
		d.text(picks)
		d.raw(` `)
		d.text(r.Label)
		d.raw(`"></td>`)
	}
	for i := range r.Cells {
		d.raw("<td>")
		d.cell(&r.Cells[i])
		d.raw("</td>")
	}
	d.raw("</tr>")
}

// selection draws the actions for selected rows, below the rows.
func (d *drawing) selection(s *selection) {
	d.raw("\n", `<div class="bulk"><label for="bulk-action">`)
	d.text(d.t("With the selected users"))
	d.raw(`</label> <select id="bulk-action" name="action">`)
	for _, a := range s.Actions {
		d.raw(`<option value="`)
		d.text(a.Value)
		d.raw(`">`)
		d.text(a.Text)
		d.raw(`</option>`)
	}
	d.raw(`</select> <button type="submit" class="other">`)
	d.text(d.t("Continue"))
	d.raw(`</button> <span class="count" aria-live="polite"></span></div>`, "\n</form>")
}
