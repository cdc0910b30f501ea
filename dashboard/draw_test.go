package dashboard

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// fill puts a text into each text value, and one element into each list.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fill(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Struct:
		if at, ok := v.Addr().Interface().(*time.Time); ok {
			*at = time.Unix(1, 0)
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), text)
			}
		}
	}
}

// A text that would run, or links to a script, is harmless in every member of all the
// types that pages show.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`"><script>alert(1)</script><img src=x onerror=alert(1)>`, `javascript:alert(1)`, `' onclick='alert(1)`, `//evil.example`, "</title><style>*{}</style>", "{{.}}&lt;script&gt;"} {
		for _, kind := range []string{"", "check", "checks", "select", "textarea", "lines", "typed", "password", text} {
			for _, post := range []bool{true, false} {
				l := &layout{page: &page{}}
				fill(reflect.ValueOf(l).Elem(), text)
				fill(reflect.ValueOf(l.page).Elem(), text)
				l.Filters.Fields[0].Type, l.Blocks[0].Form.Fields[0].Type, l.Buttons[0].Post = kind, kind, post
				if post { // a cell shows its time, or its text
					l.Blocks[0].Table.Rows[0].Cells[0].Time = time.Time{}
				}
				var b bytes.Buffer
				newDrawing(&b, func(s string, values ...any) string { return s + fmt.Sprint(values...) }).page(l)
				checkHarmless(t, text, b.String())
			}
		}
	}
}

func checkHarmless(t *testing.T, text, page string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	checkNesting(t, page)
	scripts, images, shown := 0, 0, false
	for n := range doc.Descendants() {
		shown = shown || n.Type == html.TextNode && strings.Contains(n.Data, text)
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "script":
			if scripts++; n.FirstChild != nil {
				t.Errorf("%q: a script says %q", text, n.FirstChild.Data)
			}
		case "img":
			images++
		case "style", "iframe", "object", "base", "template":
			t.Errorf("%q: there is a <%s>", text, n.Data)
		}
		for _, a := range n.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc", strings.ContainsAny(a.Key, `"'<>`):
				t.Errorf("%q: <%s> has %s=%q", text, n.Data, a.Key, a.Val)
			case (a.Key == "href" || a.Key == "action") && a.Val != "data:,":
				if !strings.HasPrefix(a.Val, "#") && (!strings.HasPrefix(a.Val, "/") || strings.HasPrefix(a.Val, "//")) {
					t.Errorf("%q: <%s> leads to %q", text, n.Data, a.Val)
				}
			}
		}
	}
	if scripts != 1 || images != 1 || !shown {
		t.Errorf("%q: %d scripts, %d images, shown: %v", text, scripts, images, shown)
	}
}

// Each method of a drawing writes its argument, and a link leads to paths of this host and
// to pages elsewhere.
func TestMarkupMethods(t *testing.T) {
	t.Parallel()
	drawn := func(draw func(d *drawing)) string {
		var b bytes.Buffer
		draw(newDrawing(&b, nil))
		return b.String()
	}
	for to, want := range map[string]string{
		"/users?a=1&b=2": "/users?a=1&amp;b=2", "https://example.com/": "https://example.com/", "http://127.0.0.1/": "http://127.0.0.1/",
		"//evil.example": "#", `/\evil.example`: "#", "javascript:alert(1)": "#", "JAVASCRIPT:alert(1)": "#", "data:text/html,x": "#", "": "#", "users": "#", " /users": "#",
	} {
		if got := drawn(func(d *drawing) { d.href(to) }); got != want {
			t.Errorf("%q leads to %q, want %q", to, got, want)
		}
	}
	for want, draw := range map[string]func(d *drawing){
		"1.50": func(d *drawing) { d.decimal(1.5, 2) },
		"2026-01-02": func(d *drawing) {
			d.instant(time.Date(2026, 1, 3, 1, 0, 0, 0, time.FixedZone("", 7200)), time.DateOnly)
		},
		"<p>a &lt; b</p>":   func(d *drawing) { d.element("<p>", "a < b", "</p>") },
		"":                  func(d *drawing) { d.element("<p>", "", "</p>"); d.when(false, "x") },
		"<b>&#34;&#39;</b>": func(d *drawing) { d.raw("<b>"); d.text(`"'`); d.when(true, "</b>") },
	} {
		if got := drawn(draw); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// checkNesting fails for an element that is not closed, or not within its parent.
func checkNesting(t *testing.T, page string) {
	t.Helper()
	var open []string
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		kind := z.Next()
		name := z.Token().Data
		switch {
		case kind == html.ErrorToken:
			if len(open) > 0 {
				t.Errorf("never ended: %q", open)
			}
			return
		case kind == html.StartTagToken && !slices.Contains([]string{"meta", "link", "img", "input"}, name):
			open = append(open, name)
		case kind == html.EndTagToken && (len(open) == 0 || open[len(open)-1] != name):
			t.Fatalf("</%s> within %q", name, open)
		case kind == html.EndTagToken:
			open = open[:len(open)-1]
		}
	}
}
