package dashboard

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/download"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/wire"
)

// visit is one request of a page.
type visit struct {
	d          *Dashboard
	rt         route
	w          http.ResponseWriter
	r          *http.Request
	ctx        context.Context
	actor      admin.Actor
	redirected bool // the browser was redirected
	me         admin.Visitor
	form       url.Values // posted values
	lang       string
	t          func(text string, values ...any) string

	permitted map[string]bool // results of May, because lists ask for each row
	denied    bool            // a denied attempt was recorded
	addsRoles bool            // the form gives the account another role
}

func (d *Dashboard) newVisit(rt route, w http.ResponseWriter, r *http.Request) *visit {
	v := &visit{d: d, rt: rt, w: w, r: r, ctx: d.kit.WithFacts(r), lang: d.looks.langs.Pick(d.kit.PreferredLocale(r.Context(), auth.User{})), permitted: map[string]bool{}}
	v.t = d.looks.langs.Texts(v.lang).Of
	return v
}

// shown returns the result of an operation as an object with JSON names.
func (v *visit) shown(result any, err error) (object, error) {
	if err != nil {
		return nil, err
	}
	view, revision := v.d.adm.View(result)
	out := recordOf(view)
	if out == nil {
		out = &record{value: reflect.ValueOf(map[string]any{})}
	}
	if revision != nil {
		out.revision = strconv.FormatInt(*revision, 10)
	}
	return out, nil
}

// find calls an operation with the parameters of a query, parsed as its endpoint does.
func find[P, R any](v *visit, query url.Values, do func(context.Context, admin.Actor, P) (R, error)) (object, error) {
	var p P
	if err := v.fill(query, &p); err != nil {
		return nil, err
	}
	return v.shown(do(v.ctx, v.actor, p))
}

func (v *visit) fill(query url.Values, into any) error {
	var wrong *wire.ParameterError
	if errors.As(wire.FillQuery(query, into), &wrong) {
		return v.d.kit.Invalid(wrong.Name, wrong.Problem)
	}
	return nil
}

// id returns the id in the page's path.
func (v *visit) id() string { return v.r.PathValue("id") }

// checkURL rejects URLs with text that no store accepts.
func (v *visit) checkURL() error {
	storable := func(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
	if !storable(v.r.URL.Path) {
		return auth.Reject(auth.CodeNotFound, "")
	}
	query, err := url.ParseQuery(v.r.URL.RawQuery)
	if err != nil {
		return v.d.kit.Invalid("query", "is malformed")
	}
	for name, values := range query {
		if !storable(name + strings.Join(values, "")) {
			return v.d.kit.Invalid("query", "has characters that cannot be stored")
		}
	}
	return nil
}

// download sends a file that an operation writes.
func (v *visit) download(name, media string, write func(io.Writer) error) error {
	v.w.Header().Set("X-Content-Type-Options", "nosniff")
	out := download.New(v.w, name, media)
	return out.End(v.ctx, v.d.kit.Log(), write(out))
}

// may reports whether the visitor may run an operation, now or after signing in again.
func (v *visit) may(pattern string) bool {
	permitted, cached := v.permitted[pattern]
	if !cached {
		err := v.me.May(pattern)
		permitted = err == nil || errors.Is(err, auth.CodeReauthNeeded) || errors.Is(err, auth.CodeInsufficientAAL)
		v.permitted[pattern] = permitted
	}
	return permitted
}

// path returns a path of the dashboard.
func (v *visit) path(below string) string { return v.d.path(below) }

// here returns the page's URL with a changed query.
func (v *visit) here(change func(url.Values)) string {
	q := v.r.URL.Query()
	change(q)
	if len(q) == 0 {
		return v.r.URL.Path
	}
	return v.r.URL.Path + "?" + q.Encode()
}

// redirectToSignIn redirects the visitor to the sign-in page if signing in resolves the error.
// It returns all other errors.
func (v *visit) redirectToSignIn(err error) error {
	if err == nil || v.d.signIn == nil {
		return err
	}
	for _, c := range []auth.Code{auth.CodeReauthNeeded, auth.CodeInsufficientAAL, auth.CodeSessionEnded, auth.CodeMissingToken} {
		if !errors.Is(err, c) {
			continue
		}
		if c == auth.CodeSessionEnded { // otherwise the sign-in page would redirect back
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

// redirect sends the browser to a page, with GET.
func (v *visit) redirect(to string) {
	v.redirected = true
	h := v.w.Header()
	h.Set("Location", to)
	h.Set("Cache-Control", "no-store")
	v.w.WriteHeader(http.StatusSeeOther)
}

// noticeCookie holds the notice of the last action, shown once.
const noticeCookie = "admin-notice"

// setNotice stores the notice that the next page shows.
func (v *visit) setNotice(text string) {
	v.d.kit.SetCookie(v.w, noticeCookie, base64.RawURLEncoding.EncodeToString([]byte(text)), 60)
}

// takeNotice returns the notice and deletes it.
func (v *visit) takeNotice() string {
	b, err := base64.RawURLEncoding.DecodeString(v.d.kit.Cookie(v.r, noticeCookie))
	if err != nil || len(b) == 0 || v.r.Method == http.MethodHead {
		return ""
	}
	v.d.kit.SetCookie(v.w, noticeCookie, "", -1)
	return string(b)
}

// problemText returns an error's text for people.
func (v *visit) problemText(err error) string {
	var e *auth.Error
	if !errors.As(err, &e) {
		e = host.As[*auth.Error](v.d.kit.Error(string(auth.CodeInternal), err))
	}
	switch {
	case e.Code == auth.CodeMissingPermission && e.Permission != "":
		return v.t("This needs the permission {permission}, which your roles do not include.", "permission", e.Permission)
	case e.Code == auth.CodeNotAdmin:
		return v.t("You are signed in, but none of your roles opens the dashboard.")
	case e.Code == auth.CodeValidationFailed && len(e.Fields) > 0:
		var parts []string
		for field, problem := range e.Fields {
			parts = append(parts, strings.TrimSpace(field+" "+problem))
		}
		return v.t("This input was refused: {what}.", "what", strings.Join(parts, "; "))
	}
	return v.t(e.Message)
}
