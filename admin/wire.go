package admin

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
)

// endpoint is an operation at its door.
type endpoint struct {
	op     operation
	handle func(m *Admin, who Actor, w http.ResponseWriter, r *http.Request) error
}

// endpoints is the route table: every operation there is, once.
func endpoints() []endpoint {
	return slices.Concat(
		meEndpoints,
		userEndpoints,
		roleEndpoints,
		keyEndpoints,
		sessionEndpoints,
		impersonationEndpoints,
		auditEndpoints,
		statsEndpoints,
		settingsEndpoints,
		invitationEndpoints,
		linkEndpoints,
		messageEndpoints,
		personEndpoints,
		jobEndpoints,
	)
}

// failures are how an operation may fail besides what its access and its body say.
func (o operation) failures() []auth.Code {
	list := []auth.Code{auth.CodeNotAdmin, auth.CodeInsufficientAAL, auth.CodeValidationFailed}
	if o.permission != "" {
		list = append(list, auth.CodeMissingPermission)
	}
	if o.stepUp {
		list = append(list, auth.CodeReauthNeeded)
	}
	if o.against != anybody {
		list = append(list, auth.CodeTargetStronger, auth.CodeUserNotFound)
	}
	if o.recorded {
		list = append(list, auth.CodeCrossSiteRequest)
	}
	if o.secret {
		list = append(list, auth.CodeIdempotencyReplayed)
	}
	if o.revisable() && !slices.Contains(o.fails, auth.CodePreconditionFailed) {
		list = append(list, auth.CodePreconditionFailed)
	}
	return append(list, o.fails...)
}

// formed refuses what an operation would not look at: parameters in the address of one
// that takes a body, which somebody might rely on; a revision of what has none, which is
// never the present one (RFC 9110, section 13.1.1); and an export that another site has
// a visitor's browser ask for.
func (m *Admin) formed(op operation, r *http.Request) error {
	if err := m.readable(op, r); err != nil {
		return err
	}
	if slices.Contains([]string{http.MethodPost, http.MethodPatch, http.MethodPut}, r.Method) && !op.streams {
		if err := m.values(r).done(); err != nil {
			return err
		}
	}
	if given := r.Header.Get("If-Match"); given != "" && given != "*" && op.revisable() && !slices.Contains(op.fails, auth.CodePreconditionFailed) {
		return m.fail(auth.CodePreconditionFailed, nil)
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if op.recorded && r.Header.Get("Authorization") == "" && site != "" && site != "same-origin" && site != "none" {
		return m.fail(auth.CodeCrossSiteRequest, nil)
	}
	return nil
}

// readable refuses texts in the address that no store keeps, and gives ids their one form.
func (m *Admin) readable(op operation, r *http.Request) error {
	for _, found := range wildcard.FindAllStringSubmatch(op.pattern, -1) {
		name := found[1]
		value := r.PathValue(name)
		if !isText(value) {
			return m.kit.Invalid(name, "has characters that cannot be kept")
		}
		if id, err := uuid.Parse(value); err == nil {
			r.SetPathValue(name, id.String())
		}
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return m.kit.Invalid("query", "is malformed")
	}
	for name, values := range q {
		if !isText(name + strings.Join(values, "")) {
			return m.kit.Invalid("query", "has characters that cannot be kept")
		}
	}
	return nil
}

var wildcard = regexp.MustCompile(`\{(\w+)\}`)

// isText tells whether every store keeps a text.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// mount serves the table. Who asks is found here, for all endpoints alike.
func (m *Admin) mount() (http.Handler, error) {
	var routes []host.Route
	access := host.Operating
	if m.authorize != nil {
		access = host.Elsewhere
	}
	for _, e := range endpoints() {
		routes = append(routes, host.Route{Pattern: e.op.pattern, Access: access, WhenDisabled: true, Streams: e.op.streams, Errors: host.Codes(e.op.failures()...), Handle: func(w http.ResponseWriter, r *http.Request) error {
			who, err := m.asks(r)
			if err != nil {
				return err
			}
			return m.answer(e, who, w, r)
		}})
	}
	routes = append(routes, m.kit.FirstOwnerRoutes()...) // with Options.Authorize, too, where no link is made
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

// answer has an endpoint do what somebody asks of it.
func (m *Admin) answer(e endpoint, who Actor, w http.ResponseWriter, r *http.Request) error {
	if err := m.formed(e.op, r); err != nil {
		return err
	}
	r, err := m.withKey(e.op, r)
	if err != nil {
		return err
	}
	return e.handle(m, who, w, r)
}

// asks finds out who sent a request that was let through.
func (m *Admin) asks(r *http.Request) (Actor, error) {
	if text, ok := m.kit.RequestKey(r.Context()); ok {
		return Key(text), nil
	}
	if m.authorize != nil {
		return m.asksElsewhere(r)
	}
	s, u := m.kit.Current(r.Context())
	return User(auth.Caller{UserID: u.ID, SessionID: s.ID}), nil
}

// userView is an account as the admin side shows it.
type userView struct {
	auth.UserView

	Revision int64  `json:"revision"`
	Status   string `json:"status"` // "active", "banned", "unconfirmed"
}

func (m *Admin) view(u auth.User) userView {
	return userView{UserView: auth.ViewOf(u), Revision: u.Revision, Status: m.status(&u)}
}

// status is how an account is, in a word.
func (m *Admin) status(u *auth.User) string {
	switch {
	case u.Banned(m.kit.Now()):
		return "banned"
	case u.Unproved():
		return "unconfirmed"
	}
	return "active"
}

// writeUser writes an account with its revision as ETag.
func (m *Admin) writeUser(w http.ResponseWriter, u auth.User, err error) error {
	if err != nil {
		return err
	}
	setRevision(w, u.Revision)
	return m.kit.WriteJSON(w, http.StatusOK, m.view(u))
}

// setRevision writes a revision as ETag.
func setRevision(w http.ResponseWriter, revision int64) {
	w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(revision, 10)))
}

// ifMatch is the revision that a request rests on, or nil.
func (m *Admin) ifMatch(r *http.Request) (*int64, error) {
	h := r.Header.Get("If-Match")
	if h == "" || h == "*" {
		return nil, nil
	}
	text, err := strconv.Unquote(h)
	if err != nil {
		return nil, m.fail(auth.CodePreconditionFailed, err)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, m.fail(auth.CodePreconditionFailed, err)
	}
	return &n, nil
}

// cursorOf writes what to ask for next, in a form that says nothing.
func cursorOf(v any) string {
	if v == nil {
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// readCursor reads what cursorOf wrote. A cursor of another list is one of a wrong
// form, or names a place where nothing is: it opens nothing.
func (m *Admin) readCursor(s string, into any) error {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		d := json.NewDecoder(strings.NewReader(string(b)))
		d.DisallowUnknownFields()
		err = d.Decode(into)
	}
	if err != nil || bytes.Contains(b, []byte(`\u0000`)) {
		return m.kit.Invalid("cursor", "is none of this list")
	}
	return nil
}

// values reads a query strictly: a parameter that nobody knows is a mistake that would
// show more than was asked for.
type values struct {
	m    *Admin
	from url.Values
	seen map[string]bool
	err  error
}

func (m *Admin) values(r *http.Request) *values {
	return &values{m: m, from: r.URL.Query(), seen: map[string]bool{}} // how it is written was judged: readable
}

func (v *values) fault(name, problem string) {
	if v.err == nil {
		v.err = v.m.kit.Invalid(name, problem)
	}
}

func (v *values) text(name string) string {
	v.seen[name] = true
	if len(v.from[name]) > 1 {
		v.fault(name, "is given twice")
	}
	return v.from.Get(name)
}

func (v *values) time(name string) (t time.Time) {
	if s := v.text(name); s != "" {
		var err error
		if t, err = time.Parse(time.RFC3339, s); err != nil {
			v.fault(name, "has to be a time such as 2026-01-02T15:04:05Z")
		}
	}
	return t.UTC()
}

// limit is how many rows are asked for; 0: as many as by default.
func (v *values) limit() (n int) {
	const name = "limit"
	if s := v.text(name); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil || n < 1 {
			v.fault(name, "has to be a number from 1")
		}
	}
	return n
}

func (v *values) flag(name string) *bool {
	text := v.text(name)
	switch {
	case text == "" && !v.from.Has(name):
		return nil
	case text == "true":
		return ptr(true)
	case text == "false":
		return ptr(false)
	}
	v.fault(name, "has to be true or false")
	return nil
}

// done is the first fault of a query.
func (v *values) done() error {
	for name := range v.from {
		if !v.seen[name] {
			v.fault(name, "is no parameter of this list")
		}
	}
	return v.err
}

func ptr[T any](v T) *T { return &v }

var (
	opMe        = operation{pattern: "GET /me"}
	meEndpoints = []endpoint{{opMe, (*Admin).handleMe}}
)

func (m *Admin) handleMe(who Actor, w http.ResponseWriter, r *http.Request) error {
	a, err := m.reader(r.Context(), who, opMe)
	if err != nil {
		return err
	}
	var user *userView
	if a.user != nil {
		user = ptr(m.view(*a.user))
	}
	return m.kit.WriteJSON(w, http.StatusOK, struct {
		Actor         actorView `json:"actor"`
		User          *userView `json:"user"`
		Permissions   []string  `json:"permissions"`
		Impersonating bool      `json:"impersonating"`
	}{a.view(), user, a.permissions, false})
}
