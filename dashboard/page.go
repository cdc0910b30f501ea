package dashboard

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
)

// page is the content of a screen, in blocks.
type page struct {
	Title   string
	Under   string // line below the title
	Tags    []tag
	Tabs    []link
	Buttons []link
	Filters *form // sent with GET
	Blocks  []block
	Refused bool // the query is invalid: hide the empty tables
	Live    bool // its tables are refreshed periodically
}

// block is a part of a page. Its fields are shown in this order.
type block struct {
	Title   string
	Text    string
	Warn    bool // Text is a warning
	Figures []figure
	Facts   []fact
	Chart   *chart
	Form    *form
	Table   *table
	Code    string // shown unchanged, to copy
	Link    *link
}

// link leads to a page. Without To it is disabled, and Reason says why.
type link struct {
	Text, To, Reason string
	Danger, Here     bool
	Post             bool // a button that posts
}

// tag is a word beside a title or in a cell.
type tag struct{ Text, Kind string } // Kind: "good", "bad", "warn" or ""

// figure is a number with the change since the previous span.
type figure struct {
	Label, Value, Change, To string
}

// fact is a named value.
type fact struct {
	Name  string
	Cells []cell
	Link  *link
}

// cell is a value in a table or a fact.
type cell struct {
	Text  string
	To    string    // target of a link
	Time  time.Time // shown instead of Text
	Code  bool
	Under string // small line below it
	Tags  []tag
	Links []link
}

// table is a list of rows.
type table struct {
	Name    string // for screen readers
	Columns []column
	Rows    []row
	Empty   string // text for an empty table
	Next    string // URL of the next page
	Select  *selection
	Matrix  bool // its first column is fixed
}

type column struct {
	Text string
	Sort string // target that sorts by this column
	Dir  string // "ascending" or "descending" if sorted by this column
}

type row struct {
	ID, Label string // for selection
	Cells     []cell
	Off       bool // not in force any more
}

// selection is the set of actions for selected rows.
type selection struct {
	To      string
	Actions []option
}

// form is fields with a button.
type form struct {
	To, Method, Submit string
	Danger             bool
	Fields             []field
	Hidden             []field
	More               []field // filters that are folded away
	Open               bool    // because one of them is in use
	Problem            string
	Back               string
	Curl               string
}

// field is a field of a form.
type field struct {
	Name, Label, Type, Value, Hint, Error string // Type: text, email, …, textarea, select, check, checks, typed
	Options                               []option
	Checked, Required                     bool
	List                                  []string // suggested values
}

type option struct {
	Value, Text, Description string
	Chosen                   bool
}

// layout is a page with its header and navigation.
type layout struct {
	*page
	Lang, Brand, Logo, Prefix, Script, Style string
	Nav                                      []link
	Who                                      string
	SignOut                                  string
	Notice                                   string
	Acting                                   []acting
}

// buffers are reused for drawing pages.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxReused limits the buffers that are reused, in bytes.
const maxReused = 1 << 20

// render sends a page.
func (v *visit) render(status int, p *page) {
	if p.Refused {
		p.Blocks = slices.DeleteFunc(p.Blocks, func(b block) bool { return b.Table != nil })
	}
	l := &layout{
		page: p, Lang: v.lang, Brand: v.d.look.Brand, Logo: v.d.look.Logo, Prefix: v.d.prefix,
		Script: v.path("/assets/dashboard.js?v=" + v.d.looks.versions["dashboard.js"]), Style: v.path("/assets/dashboard.css?v=" + v.d.looks.versions["dashboard.css"]),
		Who: v.me.Label, Notice: v.takeNotice(),
	}
	if v.me.Admin {
		l.Acting = v.actingAs()
	}
	if v.d.signIn != nil && v.me.Label != "" {
		l.SignOut = v.path("/sign-out")
	}
	if v.me.Admin {
		for _, rt := range navigation() {
			if rt.operation == "" || v.may(rt.operation) {
				to := strings.TrimSuffix(rt.at, "{$}")
				here := v.r.URL.Path == v.path(to) || to != "/" && strings.HasPrefix(v.r.URL.Path, v.path(to)+"/")
				l.Nav = append(l.Nav, link{Text: v.t(rt.nav), To: v.path(to), Here: here})
			}
		}
	}
	b, _ := buffers.Get().(*bytes.Buffer)
	b.Reset()
	defer func() {
		if b.Cap() <= maxReused {
			buffers.Put(b)
		}
	}()
	newDrawing(b, v.t).page(l)
	v.d.send(v.w, v.r, status, b.Bytes())
}

// problem shows the page for an error.
func (d *Dashboard) problem(w http.ResponseWriter, r *http.Request, err error) {
	e := host.As[*auth.Error](err)
	v := d.newVisit(route{}, w, r)
	p := &page{Title: v.t("That did not work")}
	switch e.Status {
	case http.StatusNotFound:
		p.Title = v.t("Nothing here")
	case http.StatusForbidden, http.StatusUnauthorized:
		p.Title = v.t("Not allowed")
	}
	p.Blocks = []block{{Text: v.problemText(e), Warn: true}}
	if e.Code != auth.CodeNotAdmin { // the overview refuses these visitors too
		p.Blocks[0].Link = &link{Text: v.t("To the overview"), To: d.path("/")}
	}
	if d.signIn != nil {
		p.Blocks = append(p.Blocks, block{Form: &form{To: d.path("/sign-out"), Method: "post", Submit: v.t("Sign out")}})
	}
	v.render(e.Status, p)
}

// policy permits only files that the dashboard serves.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// send sends a page, which no cache stores.
func (d *Dashboard) send(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin") // URLs hold filters
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Content-Security-Policy", d.looks.policy)
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may have gone
	}
}
