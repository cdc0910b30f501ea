package wire

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

func post(t *testing.T, contentType string, body io.Reader) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
	r.Header.Set("Content-Type", contentType)
	return r
}

var errConnection = errors.New("the connection broke")

func TestReadBody(t *testing.T) {
	full := strings.Repeat("x", MaxBody)
	longType := "text/plain" + strings.Repeat(" ", MaxContentType-len("text/plain;x=y")) + ";x=y"
	for name, c := range map[string]struct {
		r         *http.Request
		body      string
		mediaType string
		err       error
	}{
		"no body":         {&http.Request{Header: http.Header{}}, "", "", nil},
		"empty":           {post(t, "application/json", strings.NewReader("")), "", "", nil},
		"parameters":      {post(t, "Application/JSON; charset=utf-8", strings.NewReader("{}")), "{}", "application/json", nil},
		"no type":         {post(t, "", strings.NewReader("{}")), "{}", "", nil},
		"unreadable type": {post(t, "application/json; =", strings.NewReader("{}")), "{}", "", nil},
		"longest type":    {post(t, longType, strings.NewReader("{}")), "{}", "text/plain", nil},
		"too long a type": {post(t, longType+"z", strings.NewReader("{}")), "{}", "", nil},
		"as long as may":  {post(t, "text/plain", strings.NewReader(full)), full, "text/plain", nil},
		"too long":        {post(t, "text/plain", strings.NewReader(full+"x")), "", "", ErrTooLarge},
		"endless":         {post(t, "text/plain", io.MultiReader(strings.NewReader(full), strings.NewReader(full), iotest.ErrReader(errConnection))), "", "", ErrTooLarge},
		"broken":          {post(t, "text/plain", io.MultiReader(strings.NewReader("{"), iotest.ErrReader(errConnection))), "", "", errConnection},
	} {
		body, mediaType, err := ReadBody(c.r)
		if string(body) != c.body || mediaType != c.mediaType || !errors.Is(err, c.err) {
			t.Errorf("%s: %d bytes, %q, %v", name, len(body), mediaType, err)
		}
		if c.body == "" && body != nil {
			t.Errorf("%s: not nil", name)
		}
	}
}

func TestDecode(t *testing.T) {
	for name, c := range map[string]struct {
		contentType, body string
		want              error
	}{
		"fine":             {"application/json", `{"email":"a"}`, nil},
		"with a charset":   {"application/json; charset=utf-8", `{"email":"a"}`, nil},
		"no body":          {"application/json", "", ErrNoBody},
		"no type":          {"", `{"email":"a"}`, ErrMediaType},
		"plain text":       {"text/plain", `{"email":"a"}`, ErrMediaType},
		"form":             {"application/x-www-form-urlencoded", `{"email":"a"}`, ErrMediaType},
		"unknown suffix":   {"application/json+x", `{"email":"a"}`, ErrMediaType},
		"too large":        {"text/plain", strings.Repeat(" ", MaxBody+1), ErrTooLarge},
		"malformed":        {"application/json", `{"email":`, ErrMalformed},
		"duplicate member": {"application/json", `{"email":"a","email":"b"}`, ErrDuplicateName},
	} {
		var p params
		if err := Decode(post(t, c.contentType, strings.NewReader(c.body)), &p); !errors.Is(err, c.want) || (err == nil) != (p.Email == "a") {
			t.Errorf("%s: %+v, %v; want %v", name, p, err, c.want)
		}
	}
}

func TestForm(t *testing.T) {
	const formType = "application/x-www-form-urlencoded"
	for contentType, want := range map[string]bool{
		formType: true, formType + ";charset=utf-8": true, "APPLICATION/X-WWW-FORM-URLENCODED": true,
		"": false, "application/json": false, "multipart/form-data; boundary=x": false, formType + "; =": false, formType + "x": false,
	} {
		if got := IsForm(post(t, contentType, nil)); got != want {
			t.Errorf("%q: %v", contentType, got)
		}
	}
	for body, want := range map[string]error{
		"token=a%20b&token=c&x": nil, "": nil, "token=%zz": ErrForm, "a;b": ErrForm, strings.Repeat("x", MaxBody+1): ErrTooLarge,
	} {
		form, err := ReadForm(post(t, formType, strings.NewReader(body)))
		if !errors.Is(err, want) || (err != nil && form != nil) {
			t.Errorf("%.40q: %v, %v; want %v", body, form, err, want)
		}
		if strings.HasPrefix(body, "token=a") && form.Get("token") != "a b" {
			t.Errorf("form %v", form)
		}
	}
}

func TestAccepts(t *testing.T) {
	for _, c := range []struct {
		accept []string
		want   bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"text/html"}, true},
		{[]string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, true},
		{[]string{"application/json", "text/html"}, true}, // two header fields
		{[]string{"application/json, TEXT/HTML;level=1 ; q=0.1"}, true},
		{[]string{"*/*"}, false},
		{[]string{"text/*"}, false},
		{[]string{"application/json"}, false},
		{[]string{"text/htmlx"}, false},
		{[]string{"text/html;q=0"}, false},
		{[]string{"text/html; q=0.000"}, false},
		{[]string{"text/html;q=0, text/html"}, true},
		{[]string{"text/html;q=many"}, true},
		{[]string{",;q=1,/,"}, false},
		{[]string{"text/html," + strings.Repeat("x", MaxAccept-10)}, true},
		{[]string{"text/html," + strings.Repeat("x", MaxAccept-9)}, false}, // too long: ignored
		{[]string{"text/html", strings.Repeat("x", MaxAccept)}, false},
	} {
		r := &http.Request{Header: http.Header{"Accept": c.accept}}
		if got := Accepts(r, "text/html"); got != c.want {
			t.Errorf("%q: %v", c.accept, got)
		}
	}
}

func FuzzAccepts(f *testing.F) {
	for _, s := range []string{"text/html", "text/html;q=0", `text/html;a="b,c";q=1`, "*/*", ",,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := &http.Request{Header: http.Header{"Accept": {s}}}
		if Accepts(r, "text/html") && !strings.Contains(strings.ToLower(s), "text/html") {
			t.Errorf("%q does not name it", s)
		}
		// An additional name counts after any other ones.
		r.Header.Add("Accept", "image/png")
		if len(s)+len("image/png") <= MaxAccept && !Accepts(r, "image/png") {
			t.Errorf("a name after %q is not heard", s)
		}
	})
}
