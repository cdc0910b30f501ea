package dashboard

import (
	"bytes"
	"html"
	"strconv"
	"strings"
	"time"
)

// Pages are drawn in Go, because executing a template took longer for the frame alone
// than the operations take.

// markup is trusted HTML, written unescaped. Only constants of the code can become
// markup: a variable string does not compile, and no code converts one (TestMarkup).
type markup string

// drawing is a page under construction. All output passes one of the methods raw, text,
// href, decimal and instant.
type drawing struct {
	written *bytes.Buffer
	t       func(text string, values ...any) string // in the visitor's language
}

func newDrawing(b *bytes.Buffer, t func(text string, values ...any) string) *drawing {
	return &drawing{written: b, t: t}
}

// raw writes markup unescaped.
func (d *drawing) raw(parts ...markup) {
	for _, p := range parts {
		d.written.WriteString(string(p))
	}
}

// text writes any string, escaped for text or an attribute in double quotes.
func (d *drawing) text(s string) { d.written.WriteString(html.EscapeString(s)) }

// href writes the target of a link: a path of this host or a web page, and never a URL
// that would run a script.
func (d *drawing) href(to string) {
	path := strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") && !strings.HasPrefix(to, `/\`)
	if !path && !strings.HasPrefix(to, "https://") && !strings.HasPrefix(to, "http://") {
		to = "#"
	}
	d.text(to)
}

// decimal writes a number with the given number of decimal places.
func (d *drawing) decimal(n float64, places int) {
	d.written.Write(strconv.AppendFloat(d.written.AvailableBuffer(), n, 'f', places, 64))
}

// instant writes a time.
func (d *drawing) instant(t time.Time, layout string) {
	d.written.Write(t.UTC().AppendFormat(d.written.AvailableBuffer(), layout))
}

// when writes markup if is holds.
func (d *drawing) when(is bool, m markup) {
	if is {
		d.raw(m)
	}
}

// element writes a text between its tags, or nothing if the text is empty.
func (d *drawing) element(begin markup, s string, end markup) {
	if s != "" {
		d.raw(begin)
		d.text(s)
		d.raw(end)
	}
}
