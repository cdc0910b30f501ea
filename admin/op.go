package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/download"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/wire"
)

// endpoint is a row of the table of operations: the rules of an operation, and the
// handler of its requests.
type endpoint struct {
	op     operation
	params reflect.Type // P
	handle func(m *Admin, who Actor, w http.ResponseWriter, r *http.Request) error
}

// op returns the row of an operation. The tags of P's fields name the place of each
// parameter in a request: path, query, json (a member of the body) or header (If-Match).
// The tag is:"id" marks ids outside the path.
// R is the response, with JSON tags, unless it is a replier. Pages of the dashboard and
// code of the application call do directly; do enforces the rules through [Admin.reader]
// or [carryOut].
func op[P, R any](o operation, do func(*Admin, context.Context, Actor, P) (R, error)) endpoint {
	read := parametersOf[P](o)
	return endpoint{o, reflect.TypeFor[P](), func(m *Admin, who Actor, w http.ResponseWriter, r *http.Request) error {
		p, err := read(m, r)
		if err != nil {
			return err
		}
		result, err := do(m, m.kit.WithFacts(r), who, p)
		if err != nil {
			return err
		}
		a := m.replyOf(o, result)
		if a.revision != nil {
			setRevision(w, *a.revision)
		}
		if a.body == nil {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		return m.kit.WriteJSON(w, a.status, a.body)
	}}
}

// export returns the row of an operation that streams a file. The file has the given name
// and the extension of its format.
func export[P any](o operation, name string, format func(P) string, do func(*Admin, context.Context, Actor, P, io.Writer) error) endpoint {
	read := parametersOf[P](o)
	return endpoint{o, reflect.TypeFor[P](), func(m *Admin, who Actor, w http.ResponseWriter, r *http.Request) error {
		p, err := read(m, r)
		if err != nil {
			return err
		}
		out := newDownload(w, name, format(p))
		if r.Method == http.MethodHead && o.recorded { // HEAD returns no data
			if _, err := m.reader(r.Context(), who, o); err != nil {
				return err
			}
			out.Begin()
			return nil
		}
		return out.End(r.Context(), m.kit.Log(), do(m, r.Context(), who, p, out))
	}}
}

func newDownload(w http.ResponseWriter, name, format string) *download.Response {
	if format == FormatCSV {
		return download.New(w, name+"."+FormatCSV, "text/csv; charset=utf-8")
	}
	return download.New(w, name+"."+FormatNDJSON, mediaNDJSON)
}

// none is the type of absent parameters or results.
type none = struct{}

// bare adapts an operation without parameters.
func bare[R any](do func(*Admin, context.Context, Actor) (R, error)) func(*Admin, context.Context, Actor, none) (R, error) {
	return func(m *Admin, ctx context.Context, who Actor, _ none) (R, error) { return do(m, ctx, who) }
}

// idOnly are the parameters of an operation with only an id in its path.
type idOnly struct {
	ID string `path:"id"`
}

func byID[R any](do func(*Admin, context.Context, Actor, string) (R, error)) func(*Admin, context.Context, Actor, idOnly) (R, error) {
	return func(m *Admin, ctx context.Context, who Actor, p idOnly) (R, error) { return do(m, ctx, who, p.ID) }
}

// idAndReason are the parameters of an operation that ends something.
type idAndReason struct {
	ID     string `path:"id"`
	Reason string `json:"reason"`
}

// silent adapts an operation without a result.
func silent[P any](do func(*Admin, context.Context, Actor, P) error) func(*Admin, context.Context, Actor, P) (none, error) {
	return func(m *Admin, ctx context.Context, who Actor, p P) (none, error) { return none{}, do(m, ctx, who, p) }
}

// listed wraps a list in an object with one member.
func listed[P, T, V any](name string, do func(*Admin, context.Context, Actor, P) ([]T, error), view func(*Admin, T) V) func(*Admin, context.Context, Actor, P) (map[string][]V, error) {
	return func(m *Admin, ctx context.Context, who Actor, p P) (map[string][]V, error) {
		list, err := do(m, ctx, who, p)
		views := make([]V, 0, len(list))
		for _, v := range list {
			views = append(views, view(m, v))
		}
		return map[string][]V{name: views}, err
	}
}

// reply is the response of an operation.
type reply struct {
	status   int    // 0: that of the operation
	revision *int64 // of the ETag
	body     any    // nil: 204
}

// replier is a result with its own response.
type replier interface{ reply(m *Admin) reply }

func (m *Admin) replyOf(o operation, result any) (a reply) {
	switch v := result.(type) {
	case none:
	case auth.User:
		a = reply{revision: &v.Revision, body: m.view(v)}
	case replier:
		a = v.reply(m)
	default:
		a.body = v
	}
	if a.status == 0 {
		a.status = o.created
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a
}

// View returns the response body of an operation's result, a value with JSON tags, and
// the revision of its ETag, or nil.
func (m *Admin) View(result any) (view any, revision *int64) {
	a := m.replyOf(operation{}, result)
	return a.body, a.revision
}

// parametersOf returns a function that reads the parameters of an operation from a
// request. It fails at the first unreadable part: the revision, the query, the body, in
// this order.
func parametersOf[P any](o operation) func(*Admin, *http.Request) (P, error) {
	t := reflect.TypeFor[P]()
	paths, required := map[int]string{}, map[int]string{}
	revision, whole := -1, -1
	var ids []int
	hasBody, hasQuery := false, o.strict
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("is") == "id" {
			ids = append(ids, i)
		}
		switch {
		case f.Tag.Get("path") != "":
			paths[i] = f.Tag.Get("path")
		case f.Tag.Get("header") != "":
			revision = i
		case f.Tag.Get("json") == "*": // the body itself
			whole = i
		case f.Tag.Get("json") != "":
			hasBody = true
			if must := f.Tag.Get("required"); must != "" {
				required[i] = must
			}
		case f.Tag.Get("query") != "" || f.Anonymous:
			hasQuery = true
		}
	}
	return func(m *Admin, r *http.Request) (p P, err error) {
		fields := reflect.ValueOf(&p).Elem()
		for i, name := range paths {
			fields.Field(i).SetString(r.PathValue(name))
		}
		if revision >= 0 {
			n, err := m.ifMatch(r)
			if err != nil {
				return p, err
			}
			fields.Field(revision).Set(reflect.ValueOf(n))
		}
		if hasQuery {
			if err := m.query(r.URL.Query(), &p); err != nil {
				return p, err
			}
		}
		switch {
		case whole >= 0:
			err = m.kit.Decode(r, fields.Field(whole).Addr().Interface())
		case hasBody && o.bodyless:
			err = m.kit.DecodeOptional(r, &p)
		case hasBody:
			err = m.kit.Decode(r, &p)
		}
		if err != nil {
			return p, err
		}
		for _, i := range ids {
			name := cmp.Or(t.Field(i).Tag.Get("json"), t.Field(i).Tag.Get("query"))
			list, several := fields.Field(i).Interface().([]string)
			if !several {
				list = []string{fields.Field(i).String()}
			}
			for k, id := range list {
				if list[k], err = m.normalID(name, id); err != nil {
					return p, err
				}
			}
			if !several {
				fields.Field(i).SetString(list[0])
			}
		}
		for i, must := range required {
			if fields.Field(i).IsNil() {
				name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
				return p, m.kit.Invalid(name, must)
			}
		}
		return p, nil
	}
}

// query reads a query strictly, because ignoring an unknown filter would return more than
// the caller wants.
func (m *Admin) query(from url.Values, into any) error {
	var wrong *wire.ParameterError
	if errors.As(wire.FillQuery(from, into), &wrong) {
		return m.kit.Invalid(wrong.Name, wrong.Problem)
	}
	return nil
}

// setRevision writes a revision as ETag.
func setRevision(w http.ResponseWriter, revision int64) {
	w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(revision, 10)))
}

// ifMatch returns the revision that a request requires, or nil.
func (m *Admin) ifMatch(r *http.Request) (*int64, error) {
	h := r.Header.Get("If-Match")
	if h == "" || h == "*" {
		return nil, nil
	}
	n, err := strconv.ParseInt(strings.Trim(h, `"`), 10, 64)
	if err != nil || h != strconv.Quote(strconv.FormatInt(n, 10)) { // in the one form that setRevision writes
		return nil, m.fail(auth.CodePreconditionFailed, err)
	}
	return &n, nil
}

// cursorOf encodes the position of the next page in an opaque form; nil: there is no next
// page.
func cursorOf[T any](v *T) *string {
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return ptr(base64.RawURLEncoding.EncodeToString(b))
}

// readCursor decodes a cursor; nil: it is empty. A cursor of another list has another
// form, or a position without rows: it gives no access.
func readCursor[T any](m *Admin, s string) (*T, error) {
	if s == "" {
		return nil, nil
	}
	into := new(T)
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		d := json.NewDecoder(strings.NewReader(string(b)))
		d.DisallowUnknownFields()
		err = d.Decode(into)
	}
	if err != nil || bytes.Contains(b, []byte(`\u0000`)) {
		return nil, m.kit.Invalid("cursor", "does not belong to this list")
	}
	return into, nil
}

func ptr[T any](v T) *T { return &v }

// serve answers a request of an actor.
func (m *Admin) serve(e endpoint, who Actor, w http.ResponseWriter, r *http.Request) error {
	if err := m.checkRequest(e.op, r); err != nil {
		return err
	}
	r, err := m.withKey(e.op, r)
	if err != nil {
		return err
	}
	return e.handle(m, who, w, r)
}

// allowedKey is the context key for whether a request's operation has checked the actor.
type allowedKey struct{}

// permissionFirst replaces an error about a request's content if the actor may not do the
// operation at all, because such errors describe operations and accounts. The operation
// has not checked the actor yet.
func (m *Admin) permissionFirst(ctx context.Context, who Actor, o operation, err error) error {
	var e *auth.Error
	if !errors.As(err, &e) || o.pattern == opMe.pattern {
		return err
	}
	switch e.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		if _, refused := m.reader(ctx, who, o); refused != nil {
			return refused
		}
	}
	return err
}

// mount serves the table. It identifies the caller for all endpoints. cookies is
// Options.SameOriginCookies.
func (m *Admin) mount(cookies bool) (http.Handler, error) {
	var routes []host.Route
	access := host.Operating
	if m.authenticate != nil {
		access = host.Elsewhere
	}
	for _, e := range endpoints() {
		routes = append(routes, host.Route{Pattern: e.op.pattern, Access: access, WhenDisabled: true, Cookies: cookies, Streams: e.op.streams, NoKeys: !e.op.forKeys(), Errors: host.Codes(e.op.failures()...), Handle: func(w http.ResponseWriter, r *http.Request) error {
			who, err := m.actorOf(r)
			if err != nil {
				return err
			}
			allowed := new(atomic.Bool)
			err = m.serve(e, who, w, r.WithContext(context.WithValue(r.Context(), allowedKey{}, allowed)))
			if allowed.Load() {
				return err
			}
			return m.permissionFirst(r.Context(), who, e.op, err)
		}})
	}
	routes = append(routes, m.kit.FirstOwnerRoutes()...) // also with Options.Authorize, where no link is created
	schemas, err := allSchemas()
	if err != nil {
		return nil, err
	}
	prose, err := allProse()
	if err != nil {
		return nil, err
	}
	m.kit.Describe("/admin", routes, schemas, prose)
	return m.kit.Handler("/admin", routes), nil
}
