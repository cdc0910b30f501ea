package dashboard

// chart draws a picture, its legend and a table of the same numbers.
func (d *drawing) chart(c *chart) {
	if len(c.Times) == 0 {
		d.element(`<p class="empty">`, c.Empty, `</p>`)
		return
	}
	d.raw("\n", `<figure class="chart"><div class="plot" role="img" aria-label="`)
	d.text(c.Name)
	d.raw(`">`)
	d.plot(c)
	d.raw("</div>\n<figcaption>")
	for _, l := range c.Lines {
		d.raw(`<span class="key"><svg width="10" height="10" aria-hidden="true"><rect class="`)
		d.text(l.Class)
		d.raw(`" width="10" height="10"/></svg> `)
		d.text(l.Name)
		d.raw(` `)
		d.decimal(float64(l.Total), 0)
		d.raw(`</span> `)
	}
	d.raw("</figcaption>\n<details><summary>")
	d.text(d.t("As a table"))
	d.raw(`</summary>`)
	d.table(c.Table)
	d.raw(`</details></figure>`)
}

// plot is the picture.
func (d *drawing) plot(c *chart) {
	top := int64(1)
	for _, t := range c.Times {
		var sum int64
		for _, l := range c.Lines {
			sum += l.At[t]
		}
		top = max(top, sum)
	}
	scale := nice(top)
	d.raw(`<svg viewBox="0 0`)
	d.number(" ", chartWidth, 0)
	d.number(" ", chartHeight, 0)
	d.raw(`" aria-hidden="true" focusable="false">`)
	high := float64(chartHeight - chartBottom - 8)
	for i := range 3 { // grid lines
		y := 8 + high*float64(i)/2
		d.number(`<line class="grid" x1="`, chartLeft, 0)
		d.number(`" x2="`, chartWidth, 0)
		d.number(`" y1="`, y, 1)
		d.number(`" y2="`, y, 1)
		d.number(`"/><text x="`, chartLeft-6, 0)
		d.number(`" y="`, y+4, 1)
		d.raw(`" text-anchor="end">`)
		d.text(short(scale * float64(2-i) / 2))
		d.raw(`</text>`)
	}
	step := float64(chartWidth-chartLeft) / float64(len(c.Times))
	for i := range c.Times {
		d.bars(c, i, step, high, scale)
	}
	for _, i := range ticks(len(c.Times)) {
		d.tick(c, i, step)
	}
	d.raw(`</svg>`)
}

// bars draws the stacked bars of one time.
func (d *drawing) bars(c *chart, i int, step, high, scale float64) {
	gap, y := min(3, step/4), 8+high
	for _, l := range c.Lines {
		n := l.At[c.Times[i]]
		if n <= 0 {
			continue
		}
		h := max(1, high*float64(n)/scale)
		y -= h
		d.raw(`<rect class="`)
		d.text(l.Class)
		d.number(`" x="`, chartLeft+float64(i)*step+gap/2, 1)
		d.number(`" y="`, max(0, y), 1)
		d.number(`" width="`, max(0.5, min(step-gap, 60)), 1)
		d.number(`" height="`, h, 1)
		d.raw(`"/>`)
	}
}

// tick draws a time below its bar.
func (d *drawing) tick(c *chart, i int, step float64) {
	text := c.Times[i].Format("01-02")
	if c.Hours {
		text = c.Times[i].Format("15:04")
	}
	last := i == len(c.Times)-1 && len(c.Times) > 1
	if last {
		d.number(`<text x="`, chartWidth, 1)
	} else {
		d.number(`<text x="`, chartLeft+(float64(i)+0.5)*step, 1)
	}
	d.number(`" y="`, chartHeight-5, 0)
	d.raw(`" text-anchor="`)
	d.when(last, "end")
	d.when(!last, "middle")
	d.raw(`">`)
	d.text(text)
	d.raw(`</text>`)
}

// number draws a number with decimal places, after its attribute's name.
func (d *drawing) number(of markup, n float64, places int) {
	d.raw(of)
	d.decimal(n, places)
}
