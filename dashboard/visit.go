package dashboard

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/wire"
)

// visit is one request of a page.
type visit struct {
	d    *Dashboard
	rt   route
	w    http.ResponseWriter
	r    *http.Request
	ctx  context.Context
	who  admin.Actor
	gone bool // the browser was sent elsewhere
	me   admin.Known
	form url.Values // what was posted
	lang string
	t    func(text string, values ...any) string

	judged map[string]bool // what May said: lists ask for each of their rows
	denied bool            // an attempt was recorded
}

func (d *Dashboard) newVisit(rt route, w http.ResponseWriter, r *http.Request) *visit {
	v := &visit{d: d, rt: rt, w: w, r: r, ctx: r.Context(), lang: d.looks.langs.Pick(d.kit.PreferredLocale(r.Context(), auth.User{})), judged: map[string]bool{}}
	v.t = d.looks.texts[v.lang].of
	return v
}

// answer is what an endpoint returned: a value, or the text of a file.
type answer struct {
	header http.Header
	value  any
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(int)             {}
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// TakeAnswer has the value that would be written as JSON (wire.Write).
func (a *answer) TakeAnswer(v wire.Answer) { a.value = v.Value }

// ask has an endpoint do something in the visitor's name, and reads its answer.
func (v *visit) ask(method, path string, query url.Values, body any) (object, error) {
	r, err := v.request(method, path, query, body)
	if err != nil {
		return nil, err
	}
	return v.answered(r)
}

// get reads.
func (v *visit) get(path string, query url.Values) (object, error) {
	return v.ask(http.MethodGet, path, query, nil)
}

// request is one of an endpoint, as a program would send it.
func (v *visit) request(method, path string, query url.Values, body any) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(v.ctx, method, path, reader) //nolint:gosec // it goes nowhere: an endpoint of this process is asked
	if err != nil {
		return nil, err
	}
	r.URL.RawQuery, r.RemoteAddr = query.Encode(), v.r.RemoteAddr
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip"} { // for the diagnostics
		if list := v.r.Header.Values(name); len(list) > 0 {
			r.Header[name] = list
		}
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if revision := v.form.Get("revision"); revision != "" && method != http.MethodPost && method != http.MethodGet {
		r.Header.Set("If-Match", `"`+revision+`"`)
	}
	return r, nil
}

// stream is ask with a body that is read bit by bit.
func (v *visit) stream(method, path string, query url.Values, body string) (object, error) {
	r, err := http.NewRequestWithContext(v.ctx, method, path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.URL.RawQuery = query.Encode()
	r.Header.Set("Content-Type", "application/x-ndjson")
	return v.answered(r)
}

// answered has an endpoint answer, and reads that.
func (v *visit) answered(r *http.Request) (object, error) {
	a := &answer{header: http.Header{}}
	if err := v.d.room.Serve(v.who, a, r); err != nil {
		return nil, err
	}
	if a.value == nil && a.body.Len() > 0 {
		if err := json.Unmarshal(a.body.Bytes(), &a.value); err != nil {
			return nil, err
		}
	}
	out := recordOf(a.value)
	if out == nil {
		out = &record{value: reflect.ValueOf(map[string]any{})}
	}
	out.revision = strings.Trim(a.header.Get("ETag"), `"`)
	return out, nil
}

// download has an endpoint write a file to the browser.
func (v *visit) download(path string, query url.Values, name string) error {
	r, err := v.request(http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if err := v.d.room.Serve(v.who, v.w, r); err != nil {
		h.Del("Content-Disposition")
		return err
	}
	return nil
}

// may tells whether the visitor may do an operation, now or after they have shown once
// more that it is them.
func (v *visit) may(pattern string) bool {
	is, known := v.judged[pattern]
	if !known {
		err := v.me.May(pattern)
		is = err == nil || errors.Is(err, auth.CodeReauthNeeded) || errors.Is(err, auth.CodeInsufficientAAL)
		v.judged[pattern] = is
	}
	return is
}

// path is where something of the dashboard is.
func (v *visit) path(below string) string { return v.d.path(below) }

// here is the page with another query.
func (v *visit) here(change func(url.Values)) string {
	q := v.r.URL.Query()
	change(q)
	if len(q) == 0 {
		return v.r.URL.Path
	}
	return v.r.URL.Path + "?" + q.Encode()
}

// elsewhere sends the visitor to where an error can be mended: to sign in, or to show
// once more who they are. Other errors are for a page.
func (v *visit) elsewhere(err error) error {
	if err == nil || v.d.signIn == nil {
		return err
	}
	for _, c := range []auth.Code{auth.CodeReauthNeeded, auth.CodeInsufficientAAL, auth.CodeSessionEnded, auth.CodeMissingToken} {
		if !errors.Is(err, c) {
			continue
		}
		if c == auth.CodeSessionEnded { // else the sign-in page would lead back with them
			v.d.kit.ClearCookies(v.w, v.r)
		}
		back := v.r.URL.RequestURI()
		if v.rt.file != nil {
			back = v.path("/")
		}
		v.redirect(v.d.jar.SignInURL + "?" + url.Values{"reason": {string(c)}, "return_to": {back}}.Encode())
		return nil
	}
	return err
}

// redirect sends the browser on, with GET.
func (v *visit) redirect(to string) {
	v.gone = true
	h := v.w.Header()
	h.Set("Location", to)
	h.Set("Cache-Control", "no-store")
	v.w.WriteHeader(http.StatusSeeOther)
}

// noticeCookie says what has just been done, once.
const noticeCookie = "admin-notice"

func (v *visit) note(text string) {
	v.d.kit.SetCookie(v.w, noticeCookie, base64.RawURLEncoding.EncodeToString([]byte(text)), 60)
}

// noted is what has just been done, and forgets it.
func (v *visit) noted() string {
	b, err := base64.RawURLEncoding.DecodeString(v.d.kit.Cookie(v.r, noticeCookie))
	if err != nil || len(b) == 0 || v.r.Method == http.MethodHead {
		return ""
	}
	v.d.kit.SetCookie(v.w, noticeCookie, "", -1)
	return string(b)
}

// problemText is what people are told of an error.
func (v *visit) problemText(err error) string {
	var e *auth.Error
	if !errors.As(err, &e) {
		e = host.As[*auth.Error](v.d.kit.Error(string(auth.CodeInternal), err))
	}
	switch {
	case e.Code == auth.CodeMissingPermission && e.Permission != "":
		return v.t("Your roles do not hold the permission {permission}, which this needs.", "permission", e.Permission)
	case e.Code == auth.CodeNotAdmin:
		return v.t("You are signed in, but none of your roles opens the dashboard.")
	case e.Code == auth.CodeValidationFailed && len(e.Fields) > 0:
		var parts []string
		for field, problem := range e.Fields {
			parts = append(parts, strings.TrimSpace(field+" "+problem))
		}
		return v.t("That cannot be done as it was entered: {what}.", "what", strings.Join(parts, "; "))
	}
	return v.t(e.Message)
}
