package authclient

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
)

// outcome is the result of a method: its error, or that of the first row that it lists,
// and whether it returned anything else.
func outcome(ctx context.Context, m reflect.Value) (told, more bool, err error) {
	var in []reflect.Value
	for j := range m.Type().NumIn() {
		p := m.Type().In(j)
		switch {
		case m.Type().IsVariadic() && j == m.Type().NumIn()-1:
			continue
		case p == reflect.TypeFor[context.Context]():
			in = append(in, reflect.ValueOf(ctx))
		case p == reflect.TypeFor[io.Reader]():
			in = append(in, reflect.ValueOf(strings.NewReader("{}\n")))
		case p.Kind() == reflect.String:
			in = append(in, reflect.ValueOf("x").Convert(p))
		case p.Kind() == reflect.Struct && p.NumField() > 0 && p.Field(0).Name == "Provider":
			v := reflect.New(p).Elem()
			v.Field(0).SetString("x")
			in = append(in, v)
		case p.Kind() == reflect.Func:
			in = append(in, reflect.MakeFunc(p, func([]reflect.Value) []reflect.Value { return nil }))
		default:
			in = append(in, reflect.Zero(p))
		}
	}
	for _, out := range m.Call(in) {
		switch {
		case out.Kind() == reflect.Func && out.Type().CanSeq2():
			told = true
			for row, failed := range out.Seq2() {
				err, _ = failed.Interface().(error)
				more = more || !row.IsZero()
			}
		case out.Type() == reflect.TypeFor[error]():
			told = true
			err, _ = out.Interface().(error)
		default:
			more = more || !out.IsZero()
		}
	}
	return told, more, err
}

// Every method returns a refusal of the server as its error, and nothing else. If the
// store cannot be read and the session is needed, nothing is sent, and the store's own
// error is returned.
func TestEveryFailureIsTold(t *testing.T) {
	t.Parallel()
	refusing := &sent{}
	a, err := NewAdmin("https://app.example.com", secretKey, WithHTTPClient(&http.Client{Transport: refusing}))
	if err != nil {
		t.Fatal(err)
	}
	each := func(v reflect.Value, check func(name string, m reflect.Value)) {
		for i := range v.NumMethod() {
			check(v.Type().Method(i).Name, v.Method(i))
		}
	}
	refuses := func(name string, m reflect.Value) {
		refusing.request = ""
		if told, more, err := outcome(t.Context(), m); refusing.request != "" && (!told || !errors.Is(err, auth.CodeValidationFailed) || more) {
			t.Errorf("%s: %v, and something else: %v", name, err, more)
		}
	}
	each(reflect.ValueOf(a), refuses)
	client := func(s TokenStore) *Client {
		c, err := NewClient("https://app.example.com", WithHTTPClient(&http.Client{Transport: refusing}), WithTokenStore(s), WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	each(reflect.ValueOf(client(&endless{})), func(name string, _ reflect.Value) {
		if name != "OAuthURL" { // it only returns a URL
			refuses(name, reflect.ValueOf(client(&endless{})).MethodByName(name))
		}
	})
	// These need no session, or sign in: then the session is another one.
	needless := []string{"AcceptInvitation", "Exchange", "Healthy", "Invitation", "ResetPassword", "ResetPasswordForEmail", "SecureAccount", "Settings", "SignInWithIDToken", "SignInWithOAuth",
		"SignInWithPassword", "SignUp", "SignOut", "UserOf", "VerifyMFA", "VerifyMagicLink", "VerifyOTP"}
	each(reflect.ValueOf(client(unreadable{})), func(name string, _ reflect.Value) {
		refusing.request = ""
		told, _, err := outcome(t.Context(), reflect.ValueOf(client(unreadable{})).MethodByName(name))
		if told && !slices.Contains(needless, name) && (!errors.Is(err, errUnreadable) || refusing.request != "") {
			t.Errorf("%s without the store: %v, and sent was %q", name, err, refusing.request)
		}
	})
	if err := client(unreadable{}).SignOut(t.Context(), ScopeOthers); !errors.Is(err, errUnreadable) {
		t.Error(err)
	}
}

var errUnreadable = errors.New("unreadable")

// unreadable is a store that fails to load.
type unreadable struct{}

func (unreadable) Load(context.Context) (*Session, error) { return nil, errUnreadable }
func (unreadable) Save(context.Context, *Session) error   { return nil }
func (unreadable) Clear(context.Context) error            { return nil }

// pages is a server of lists, each of three pages of one row.
type pages struct {
	asked []string // the cursors
	fails string   // fails at this page
	stuck bool     // it names the same page for ever
}

func (s *pages) RoundTrip(r *http.Request) (*http.Response, error) {
	at := r.URL.Query().Get("cursor")
	s.asked = append(s.asked, at)
	next := map[string]any{"": "2", "2": "3", "3": nil}[at]
	if s.stuck {
		next = "2"
	}
	body := map[string]any{"next_cursor": next}
	for _, name := range []string{"events", "users", "invitations", "messages", "sessions"} {
		body[name] = []any{map[string]any{}}
	}
	b, err := json.Marshal(body)
	status := http.StatusOK
	if s.fails != "" && at == s.fails {
		status, b = http.StatusBadRequest, []byte(`{"code":"validation_failed"}`)
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(b))), Request: r}, err
}

// Every list follows the cursors to its end, or to an error, and requests no more pages
// than the caller reads.
func TestListsFollowTheirCursors(t *testing.T) {
	t.Parallel()
	lists := 0
	for i := range reflect.TypeFor[*Admin]().NumMethod() {
		m := reflect.TypeFor[*Admin]().Method(i)
		if m.Type.NumOut() != 1 || m.Type.Out(0).Kind() != reflect.Func || m.Name == "JobResults" {
			continue
		}
		lists++
		for what, row := range map[string]struct {
			pages
			most, rows int
			asked      []string
			code       error
		}{
			"all":           {pages{}, 9, 3, []string{"", "2", "3"}, nil},
			"the first":     {pages{}, 1, 1, []string{""}, nil},
			"the first two": {pages{}, 2, 2, []string{"", "2"}, nil},
			"cut off":       {pages{fails: "2"}, 9, 1, []string{"", "2"}, auth.CodeValidationFailed},
			"no end":        {pages{stuck: true}, 9, 2, []string{"", "2"}, nil},
		} {
			s := row.pages
			a, err := NewAdmin("https://app.example.com", secretKey, WithHTTPClient(&http.Client{Transport: &s}))
			if err != nil {
				t.Fatal(err)
			}
			in := []reflect.Value{reflect.ValueOf(a), reflect.ValueOf(t.Context())}
			for j := 2; j < m.Type.NumIn()-1; j++ {
				v := reflect.New(m.Type.In(j)).Elem()
				if v.Kind() == reflect.String {
					v.SetString("x")
				}
				in = append(in, v)
			}
			rows, failed := 0, error(nil)
			for _, err := range m.Func.Call(in)[0].Seq2() {
				if failed, _ = err.Interface().(error); failed != nil {
					continue
				}
				if rows++; rows == row.most {
					break
				}
			}
			if rows != row.rows || !slices.Equal(s.asked, row.asked) || !errors.Is(failed, row.code) {
				t.Errorf("%s, %s: %d rows of pages %q, %v", m.Name, what, rows, s.asked, failed)
			}
		}
	}
	if lists < 7 {
		t.Error(lists, "lists")
	}
}

// Options beside a query are sent, too, and unset ones are not.
func TestChoicesAreSent(t *testing.T) {
	t.Parallel()
	var request, accept, device string
	tr := roundTrip(func(r *http.Request) (*http.Response, error) {
		request, accept, device = r.Method+" "+strings.TrimPrefix(r.URL.RequestURI(), "/auth/v1"), r.Header.Get("Accept"), r.Header.Get("X-Device-Id")
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"job_id":"j"}`)), Request: r}, nil
	})
	a, err := NewAdmin("https://app.example.com", secretKey, WithHTTPClient(&http.Client{Transport: tr}))
	if err != nil {
		t.Fatal(err)
	}
	id := strings.Repeat("d", 32)
	c, err := NewClient("https://app.example.com", WithHTTPClient(&http.Client{Transport: tr}), WithDeviceID(id))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	importing := func(on string) func() error {
		return func() error {
			job, err := a.ImportUsersFrom(ctx, strings.NewReader("{}\n"), ImportParams{OnConflict: on})
			if job != "j" {
				t.Error("the job is", job)
			}
			return err
		}
	}
	export := func(f Format) func() error {
		return func() error {
			r, err := a.ExportAudit(ctx, AuditExportQuery{Format: f})
			if err == nil {
				err = r.Close()
			}
			return err
		}
	}
	for want, call := range map[string]func() error{
		"POST /admin/users/import?on_conflict=skip application/json ":      importing("skip"),
		"POST /admin/users/import application/json ":                       importing(""),
		"GET /admin/audit-logs/export?format=csv text/csv ":                export(CSV),
		"GET /admin/audit-logs/export?format=ndjson application/x-ndjson ": export(NDJSON),
		"GET /admin/audit-logs/export application/x-ndjson ":               export(""),
		"POST /forgot-password application/json " + id:                     func() error { return c.ResetPasswordForEmail(ctx, "e", "") },
	} {
		if err := call(); err != nil || request+" "+accept+" "+device != want {
			t.Errorf("sent %s %s %s, want %s, %v", request, accept, device, want, err)
		}
	}
}

// The error for an unreadable answer does not quote it, because it may be secret.
func TestUnreadableIsToldUnquoted(t *testing.T) {
	t.Parallel()
	for text, why := range map[string]string{`["secret"]`: "malformed JSON", `secret`: "malformed JSON", `{"id":7}`: "malformed JSON", `{"id":"secret`: "unexpected EOF"} {
		for _, err := range Rows[AdminUser](io.NopCloser(strings.NewReader(text))) {
			if err == nil || err.Error() != "authclient: bad_response: "+why {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
	for text, rows := range map[string]int{`{"id":"1"}{"id":`: 1, `{"id":"secret`: 0, `{"id":"1"} secret`: 1, `["secret"]`: 0, `{"id":["secret"]}`: 0, "": 0} {
		n, failed := 0, error(nil)
		for _, err := range Rows[AdminUser](io.NopCloser(strings.NewReader(text))) {
			if failed = err; err == nil {
				n++
			}
		}
		if n != rows || text != "" && (!errors.Is(failed, CodeBadResponse) || strings.Contains(failed.Error(), "secret")) || text == "" && failed != nil {
			t.Errorf("%q: %d rows, %v", text, n, failed)
		}
	}
	dir := t.TempDir()
	for text, want := range map[string]bool{`{"refresh_token":"r"}`: true, `{"access_token":"secret"}`: false, `secret`: false, ``: false} {
		f := FileStore{Path: dir + "/session"}
		if err := os.WriteFile(f.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := f.Load(t.Context())
		if (err == nil) != want || want && s.RefreshToken != "r" || !want && (s != nil || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%q: %v, %v", text, s, err)
		}
	}
	if s, err := (FileStore{Path: dir}).Load(t.Context()); err == nil || s != nil {
		t.Error("a folder holds a session")
	}
	for token, want := range map[string]string{
		"": "", "a": "", "a.b.c": "", "a.e30.c": "", "a.eyJzdWIiOiJ1In0.c": "u", "a.eyJzdWIiOiJ1In0": "u", "a.eyJzdWIiOjd9.c": "", "a.eyJzdWIiOiJ1In0=.c": "",
	} {
		if got := subject(token); got != want {
			t.Errorf("%q is of %q", token, got)
		}
	}
	e := &Error{Code: auth.CodeValidationFailed, Fields: map[string]string{"phone": "is none", "email": "is one, too"}, cause: io.ErrUnexpectedEOF}
	if got := e.Error(); got != "authclient: validation_failed: email is one, too: phone is none: unexpected EOF" {
		t.Error(got)
	}
	err := (&wire{config: &config{}}).do(t.Context(), call{method: http.MethodPost, path: "/x", body: map[string]any{"secret": make(chan int)}}, nil)
	if !errors.Is(err, auth.CodeValidationFailed) || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// A wait is no longer than the caller's deadline: the error is the server's answer, not
// the deadline.
func TestPausesEndWithTheirCaller(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pauseFor(gone, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := pauseFor(t.Context(), 0); err != nil {
		t.Error(err)
	}
	for what, row := range map[string]struct {
		left   time.Duration // the request needs ten seconds
		pause  error
		tries  int
		pauses int
	}{
		"time enough": {time.Hour, nil, 3, 2},
		"too little":  {5 * time.Second, nil, 1, 0},
		"gone":        {time.Hour, context.Canceled, 1, 1},
	} {
		tries, pauses := 0, 0
		tr := roundTrip(func(r *http.Request) (*http.Response, error) {
			tries++
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"10"}}, Body: io.NopCloser(strings.NewReader(`{"code":"overloaded"}`)), Request: r}, nil
		})
		c, err := NewClient("https://app.example.com", WithHTTPClient(&http.Client{Transport: tr}))
		if err != nil {
			t.Fatal(err)
		}
		c.wire.pause = func(context.Context, time.Duration) error { pauses++; return row.pause }
		ctx, cancel := context.WithTimeout(t.Context(), row.left)
		if _, err := c.UserOf(ctx, "t"); !errors.Is(err, auth.CodeOverloaded) || tries != row.tries || pauses != row.pauses {
			t.Errorf("%s: %v after %d tries and %d pauses", what, err, tries, pauses)
		}
		cancel()
	}
}
