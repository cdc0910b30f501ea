package pages_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/html"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/storetap"
)

var update = flag.Bool("update", false, "write testdata/*.txt anew")

// transcript records all requests and responses of a site. Random values get names, so
// that two runs of the same visits are equal.
type transcript struct {
	t  *testing.T
	mu sync.Mutex

	notes []note
	pages map[string]int // numbers of pages already shown
	heads map[string]int // numbers of headers
	forms map[string]int // numbers of forms

	outages bool // each call of the store fails once before it succeeds
}

// note is a request or a heading.
type note struct {
	asked, path string
	answer      string
	news        string // pages, headers and forms that are new
}

func newTranscript(t *testing.T) *transcript {
	t.Helper()
	return &transcript{t: t, pages: map[string]int{}, heads: map[string]int{}, forms: map[string]int{}}
}

// of records all further responses of a site.
func (tr *transcript) of(s *site) {
	inner := s.handler
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			tr.t.Error(err)
		}
		ask := func() *httptest.ResponseRecorder {
			again := r.Clone(r.Context())
			again.Body = io.NopCloser(bytes.NewReader(raw))
			rec := httptest.NewRecorder()
			inner.ServeHTTP(rec, again)
			return rec
		}
		rec := tr.inAnOutage(s, r, ask)
		if rec == nil {
			rec = ask()
		}
		tr.note(r, string(raw), rec)
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	})
}

// spent are the store calls, by page, that follow after the entered value was used up: if
// they fail, the visitor has to start again.
var spent = map[string][]string{
	"POST /account/sign-in/code": {"CreateSession"},
	"GET /account/sign-in/back":  {"CreateSession", "PeekToken"},
}

// inAnOutage repeats a request while each call of the store fails in turn, and returns
// the first response that is not an outage; nil if the request does not get here.
func (tr *transcript) inAnOutage(s *site, r *http.Request, ask func() *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	defer s.tap.Reset(storetap.Hooks{})
	for k := 1; tr.outages && strings.HasPrefix(r.URL.Path, "/account/"); k++ {
		failed, used := "", false
		s.tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, n int) storetap.Fault {
			if n != k && (method == "UseFactor" || method == "UseRecoveryCode") {
				used = true // the code counts once: later requests are tested by themselves
			}
			if n != k || used || slices.Contains(spent[r.Method+" "+r.URL.Path], method) {
				return ""
			}
			failed = method
			return storetap.FailsBefore
		}})
		rec := ask()
		if failed == "" {
			return rec
		}
		if rec.Code != http.StatusServiceUnavailable && !strings.Contains(kept(rec.Header()), string(auth.CodeUnavailable)) {
			return rec
		}
	}
	return nil
}

// say adds a heading.
func (tr *transcript) say(format string, args ...any) {
	tr.notes = append(tr.notes, note{asked: fmt.Sprintf("\n# "+format+"\n", args...)})
}

func (tr *transcript) note(r *http.Request, form string, rec *httptest.ResponseRecorder) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	n := note{path: r.Method + " " + r.URL.Path, asked: named(r.Method + " " + r.URL.RequestURI())}
	call := func(to *string, what string, known map[string]int, text string) {
		if known[text] == 0 {
			n.news += fmt.Sprintf("  %s %d%s", what, len(known)+1, unlike(known, text))
			known[text] = len(known) + 1
		}
		*to += fmt.Sprintf(" %s %d", what, known[text])
	}
	if form != "" {
		call(&n.asked, "form", tr.forms, named(fields(tr.t, form)))
	}
	n.asked += "\n"
	h := rec.Header()
	here := url.QueryEscape(r.URL.RequestURI())
	n.answer = named(fmt.Sprintf("  %d %s", rec.Code, strings.NewReplacer(here, "{here}", strings.ReplaceAll(here, "%2F", "/"), "{here}").Replace(h.Get("Location"))))
	call(&n.answer, "headers", tr.heads, headers(h))
	if strings.HasPrefix(h.Get("Content-Type"), "text/html") {
		doc, err := html.Parse(strings.NewReader(rec.Body.String()))
		if err != nil {
			tr.t.Error(err)
		}
		call(&n.answer, "page", tr.pages, named(outline(doc)))
	}
	n.answer += "\n" + named(kept(h))
	tr.notes = append(tr.notes, n)
}

// unlike returns a text, or its difference from the most similar known one.
func unlike(known map[string]int, text string) string {
	whole := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	best := ":\n" + text
	for _, other := range slices.SortedFunc(maps.Keys(known), func(a, b string) int { return known[a] - known[b] }) {
		of := strings.Split(strings.TrimSuffix(other, "\n"), "\n")
		lines := fmt.Sprintf(", like %d:\n", known[other])
		for _, line := range differs(of, whole) {
			lines += line[:1] + line[2:] + "\n"
		}
		if strings.Count(lines, "\n") < strings.Count(best, "\n") && strings.Count(lines, "\n") <= 1+len(whole)*2/3 {
			best = lines
		}
	}
	return best
}

// differs returns the lines that one text has and the other lacks, in order.
func differs(a, b []string) (lines []string) {
	same := make([][]int, len(a)+1) // lines that the rests have in common
	for i := range same {
		same[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if same[i][j] = max(same[i+1][j], same[i][j+1]); a[i] == b[j] {
				same[i][j] = same[i+1][j+1] + 1
			}
		}
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && same[i+1][j] >= same[i][j+1]:
			lines, i = append(lines, "-"+a[i]), i+1
		default:
			lines, j = append(lines, "+"+b[j]), j+1
		}
	}
	return lines
}

// fields returns the fields of a form.
func fields(t *testing.T, form string) string {
	t.Helper()
	var b strings.Builder
	values, err := url.ParseQuery(form)
	if err != nil {
		t.Error(err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "    %s=%s\n", name, strings.Join(values[name], "; "))
	}
	return b.String()
}

// kept returns the cookies of a response.
func kept(h http.Header) string {
	var b strings.Builder
	for _, c := range (&http.Response{Header: h}).Cookies() {
		value := c.Value
		if strings.HasSuffix(c.Name, "pages") {
			if raw, err := base64.RawURLEncoding.DecodeString(c.Value); err == nil {
				value = strings.TrimSpace(string(raw))
			}
		}
		fmt.Fprintf(&b, "  keeps %s=%s for %d in %s%s\n", c.Name, value, c.MaxAge, c.Path, c.Domain)
	}
	return b.String()
}

// hidden are headers that are recorded elsewhere or follow from the rest.
var hidden = []string{"Content-Length", "Date", "X-Request-Id", "Set-Cookie", "Location", "Content-Security-Policy"}

func headers(h http.Header) string {
	var lines []string
	for name, values := range h {
		if !slices.Contains(hidden, name) {
			lines = append(lines, "    "+name+": "+strings.Join(values, "; ")+"\n")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// telling are the recorded attributes.
var telling = []string{
	"name", "type", "value", "action", "method", "href", "src", "autocomplete", "inputmode", "minlength", "maxlength", "required", "autofocus", "checked",
	"aria-invalid", "aria-describedby", "content", "lang", "for",
}

// outline returns the content of a page, one line per element with recorded attributes or
// text. The frame of the page is one line.
func outline(n *html.Node) string {
	var b strings.Builder
	line := " "
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			if text := strings.Join(strings.Fields(n.Data), " "); text != "" {
				b.WriteString(" " + text)
			}
		case n.Type == html.ElementNode && (n.Data == "style" || n.Data == "link" || (n.Data == "meta" && attr(n, "http-equiv") == "")):
			return
		case attr(n, "class") == "skip":
			return
		case n.Type == html.ElementNode:
			if n.Data == "main" {
				line = "\n    "
			}
			told := n.Data
			for _, name := range telling {
				if has(n, name) {
					told += " " + name + "=" + attr(n, name)
				}
			}
			if class := attr(n, "class"); strings.HasPrefix(class, "page") { // the frame
				told += " " + class
			}
			if told != n.Data || n.Data == "h1" || n.Data == "p" {
				b.WriteString(line + "<" + told + ">")
			}
		}
		for c := range n.ChildNodes() {
			walk(c)
		}
	}
	walk(n)
	return "    " + strings.TrimSpace(b.String()) + "\n"
}

// random are the values that differ in each run, with their names.
var random = []struct {
	re   *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`data:image/png;base64,[\w+/=%]+`), "{image}"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "{id}"},
	{regexp.MustCompile(`\b([A-Z2-7]{4} ){7}[A-Z2-7]{4}\b|\b[A-Z2-7]{32}\b`), "{key}"},
	{regexp.MustCompile(`\b[a-z0-9]{4}(-[a-z0-9]{4}){3,}\b|\b[a-z0-9]{5}-[a-z0-9]{5}\b`), "{recovery code}"},
	{regexp.MustCompile(`code=\d{6}\b`), "code={digits}"},
	{regexp.MustCompile(`-sign-up-[\w-]{8}`), "-sign-up-{id}"},
	{regexp.MustCompile(`(?m)^( *<p> |)\d{6}$`), "$1{digits}"},
	{regexp.MustCompile(`http(://|%3A%2F%2F)127\.0\.0\.1(:|%3A)\d+`), "{provider}"},
	{regexp.MustCompile(`ada\d+(@|%40)`), "ada$1"},
}

var (
	secretLike = regexp.MustCompile(`[\w-]{20,}(\.[\w-]{20,})*`)
	words      = regexp.MustCompile(`^([A-Z]?[a-z]+|[A-Z])$`)
)

// named replaces random values in a text by names.
func named(text string) string {
	for _, r := range random {
		text = r.re.ReplaceAllString(text, r.name)
	}
	return secretLike.ReplaceAllStringFunc(text, func(s string) string {
		for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == '-' || r == '_' }) {
			if !words.MatchString(part) {
				return "{secret}"
			}
		}
		return s
	})
}

// String returns the transcript. Requests with the same response are combined.
func (tr *transcript) String() string {
	var b strings.Builder
	for rest := tr.notes; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].path == rest[0].path && strings.HasPrefix(rest[0].path, "GET") {
			n++
		}
		of, first := map[string]string{}, map[string]note{}
		var order []string
		for _, one := range rest[:n] {
			if _, known := of[one.answer]; !known {
				order, first[one.answer] = append(order, one.answer), one
			}
			if query, same := strings.CutPrefix(one.asked, first[one.answer].path+"?"); same && of[one.answer] != "" {
				of[one.answer] = strings.TrimSuffix(of[one.answer], "\n") + " or ?" + query
				continue
			}
			of[one.answer] += one.asked
		}
		for _, answer := range order {
			b.WriteString(of[answer] + answer + first[answer].news)
		}
		rest = rest[n:]
	}
	return strings.ReplaceAll(b.String(), " \n", "\n")
}

// compare compares the transcript with a file.
func (tr *transcript) compare(name string) {
	tr.t.Helper()
	got, file := tr.String(), filepath.Join("testdata", name+".txt")
	if *update && !tr.outages {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			tr.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		tr.t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	i := 0
	for i < len(g) && i < len(w) && g[i] == w[i] {
		i++
	}
	tr.t.Errorf("line %d of %s is another one; if that is meant to be so, run go test ./pages -run TestTranscript -update\ngot:\n%s\nwant:\n%s",
		i+1, file, strings.Join(g[max(0, i-8):min(len(g), i+8)], "\n"), strings.Join(w[max(0, i-8):min(len(w), i+8)], "\n"))
}
