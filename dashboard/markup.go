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
	written *bytes.Buffer
	t       func(text string, values ...any) string // in the visitor's language
}

func newDrawing(b *bytes.Buffer, t func(text string, values ...any) string) *drawing {
	return &drawing{written: b, t: t}
}

// raw writes markup of the code's own.
func (d *drawing) raw(parts ...markup) {
	for _, p := range parts {
		d.written.WriteString(string(p))
	}
}

// text writes what may be anything, for a text or an attribute in double quotes.
func (d *drawing) text(s string) { d.written.WriteString(html.EscapeString(s)) }

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
	d.written.Write(strconv.AppendFloat(d.written.AvailableBuffer(), n, 'f', places, 64))
}

// instant writes a time.
func (d *drawing) instant(t time.Time, layout string) {
	d.written.Write(t.UTC().AppendFormat(d.written.AvailableBuffer(), layout))
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
