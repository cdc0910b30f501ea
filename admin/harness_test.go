package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/pgstores"
	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/memstore"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// onStores runs a test on the memory store and on Postgres.
func onStores(t *testing.T, test func(t *testing.T, store auth.Store)) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, memstore.New())
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, pgstores.New(t))
	})
}

// office is a service with its admin side.
type office struct {
	*authtest.Env
	t   *testing.T
	adm *admin.Admin
	mux *http.ServeMux
	api *harness.Contract // checks every response against the document

	deploy string // the id of a key, for operations on keys
	job    string // the id of a job, for operations on jobs
	post   *postOffice

	sending func()                                    // runs before each request; may be nil
	mark    func(ctx context.Context) context.Context // changes the context of each request; may be nil

	because string // the reason that examples add; empty: none

	alter func(pattern, body string, headers []string) (string, string, []string) // changes the requests of examples; may be nil
}

// notes is a permission of the application.
const notes = "notes.write"

func newOffice(t *testing.T, store auth.Store, opts ...auth.Option) *office {
	t.Helper()
	return newOfficeWith(t, store, admin.Options{}, opts...)
}

// newOfficeWith is newOffice with options of the admin side.
func newOfficeWith(t *testing.T, store auth.Store, of admin.Options, opts ...auth.Option) *office {
	t.Helper()
	of.Permissions = []admin.Permission{{Name: notes}, {Name: "money.send", Privileged: true}}
	post := &postOffice{}
	base := []auth.Option{auth.WithProvider(authtest.StartProvider(t).OIDC(theProvider)), auth.WithMailer(post)}
	o := &office{Env: authtest.NewOn(t, store, append(base, opts...)...), t: t, mux: http.NewServeMux(), post: post}
	post.open(o.Inbox)
	var err error
	o.adm, err = admin.New(t.Context(), o.Auth, of)
	if err != nil {
		t.Fatal(err)
	}
	o.mux.Handle("/auth/v1/admin/", o.adm.Handler())
	if o.api, err = documentFor(o, of.Authenticate != nil); err != nil {
		t.Fatal(err)
	}
	return o
}

// checkers check the documents, by whether the application has an admin login of its own:
// they differ in nothing else (TestOneDocumentForAllOptions), and writing and reading one
// for each office would take longer than most tests.
var checkers = struct {
	sync.Mutex
	by map[bool]*harness.Contract
}{by: map[bool]*harness.Contract{}}

func documentFor(o *office, elsewhere bool) (*harness.Contract, error) {
	checkers.Lock()
	defer checkers.Unlock()
	if c := checkers.by[elsewhere]; c != nil {
		return c, nil
	}
	doc := o.document()
	c, err := harness.NewContract(doc)
	if err != nil {
		return nil, fmt.Errorf("%w: %.300s", err, doc)
	}
	checkers.by[elsewhere] = c
	return c, nil
}

// document is the office's API description.
func (o *office) document() []byte {
	w := httptest.NewRecorder()
	o.Handler().ServeHTTP(w, httptest.NewRequestWithContext(o.t.Context(), http.MethodGet, "/auth/v1/openapi.json", nil))
	return w.Body.Bytes()
}

// operator signs a user in who has the named permissions, with a second factor.
func (o *office) operator(email string, permissions ...string) *authtest.SignedIn {
	o.t.Helper()
	return o.LoginAs(o.t, email, authtest.Permissions(permissions...), authtest.AAL2())
}

func actor(s *authtest.SignedIn) admin.Actor {
	return admin.User(auth.Caller{UserID: s.User.ID, SessionID: s.SessionID})
}

// countEvents returns the number of events of a type in the audit log.
func (o *office) countEvents(of auth.EventType) int {
	o.t.Helper()
	p, err := o.adm.AuditLog(o.t.Context(), admin.System("test").Accepting(), admin.AuditLogParams{EventFilter: admin.EventFilter{Action: string(of)}, Limit: 200})
	if err != nil {
		o.t.Fatal(err)
	}
	return len(p.Events)
}

// lines is a log that tests read.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// answer is an endpoint's response.
type answer struct {
	t      *testing.T
	status int
	body   map[string]any
	header http.Header
	text   string
}

// do sends a request as a user. Headers come as "Name: value".
func (o *office) do(who *authtest.SignedIn, pattern, body string, headers ...string) *answer {
	o.t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	ctx := o.t.Context()
	if o.mark != nil {
		ctx = o.mark(ctx)
	}
	r := httptest.NewRequestWithContext(ctx, method, "/auth/v1/admin"+path, strings.NewReader(body))
	if body == "" {
		r.Body = http.NoBody
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	if who != nil {
		who.Sign(r)
	}
	w := httptest.NewRecorder()
	if o.sending != nil {
		o.sending()
	}
	o.mux.ServeHTTP(w, r)
	a := &answer{t: o.t, status: w.Code, header: w.Header(), text: w.Body.String()}
	described, _, _ := strings.Cut("/admin"+path, "?")
	if err := o.api.Response(method, described, w.Code, w.Header(), w.Body.Bytes()); err != nil {
		o.t.Errorf("%s: %v", pattern, err)
	}
	if strings.Contains(a.text, "0001-01-01T00:00:00Z") {
		o.t.Errorf("%s tells of an instant that nobody set: %.500s", pattern, a.text)
	}
	if w.Body.Len() > 0 && strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(w.Body.Bytes(), &a.body); err != nil {
			o.t.Fatalf("%s: %v: %.200s", pattern, err, w.Body)
		}
	}
	return a
}

// want checks status and, if given, the code.
func (a *answer) want(status int, code ...auth.Code) *answer {
	a.t.Helper()
	if a.status != status || len(code) > 0 && a.body["code"] != string(code[0]) {
		a.t.Fatalf("%d %v, want %d %v", a.status, a.body, status, code)
	}
	return a
}

// audit lists the events that have a record, newest first.
func (o *office) audit() []auth.Event {
	o.t.Helper()
	var list []auth.Event
	for q := (admin.AuditLogParams{Limit: 200}); ; {
		p, err := o.adm.AuditLog(o.t.Context(), admin.System("test").Accepting(), q)
		if err != nil {
			o.t.Fatal(err)
		}
		for _, e := range p.Events {
			if e.Record != nil && !e.Record.Denied {
				list = append(list, e)
			}
		}
		if p.NextCursor == nil {
			return list
		}
		q.Cursor = *p.NextCursor
	}
}

// later moves the clock past the recent authentication, and renews the access token.
func (o *office) later(s *authtest.SignedIn) *authtest.SignedIn {
	o.t.Helper()
	o.Clock.Advance(16 * time.Minute)
	return o.renewed(s)
}

func (o *office) renewed(s *authtest.SignedIn) *authtest.SignedIn {
	o.t.Helper()
	t, err := o.Refresh(o.t.Context(), auth.RefreshParams{RefreshToken: s.RefreshToken})
	if err != nil {
		o.t.Fatal(err)
	}
	return &authtest.SignedIn{Tokens: *t}
}
