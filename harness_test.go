package auth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/apicheck"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// api is the document that every response is held to.
var api = func() *apicheck.Checker {
	c, err := apicheck.Load(auth.Document())
	if err != nil {
		panic(err)
	}
	return c
}()

var apiMu sync.Mutex

// world is one service under test, with what happened in it.
type world struct {
	*authtest.Env
	t   *testing.T
	log *syncBuffer

	mu     sync.Mutex
	events []auth.Event
}

// newWorld starts a service whose events and log are recorded.
func newWorld(t *testing.T, opts ...auth.Option) *world {
	t.Helper()
	w := &world{t: t, log: &syncBuffer{}}
	base := []auth.Option{
		auth.WithLogger(slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		auth.WithHooks(auth.Hooks{OnEvent: w.record}),
	}
	w.Env = newEnv(t, append(base, opts...)...)
	return w
}

func (w *world) record(_ context.Context, e auth.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// patch changes a user behind the service's back.
func (w *world) patch(userID string, p store.UserPatch) {
	w.t.Helper()
	c := store.Change{Now: w.Clock.Now(), By: auth.Authority{System: "test"}}
	if _, err := w.Store.UpdateUser(w.t.Context(), store.UpdateUser{Change: c, UserID: userID, Patch: p}); err != nil {
		w.t.Fatal(err)
	}
}

// fired returns the types of the events since the last call.
func (w *world) fired() []auth.EventType {
	w.mu.Lock()
	defer w.mu.Unlock()
	types := []auth.EventType{}
	for _, e := range w.events {
		types = append(types, e.Type)
		if e.UserID == "" && !strings.HasSuffix(string(e.Type), "failed") && e.Type != auth.EventSMSBudgetExceeded { // which may be about nobody
			w.t.Errorf("the event %s tells of nobody", e.Type)
		}
	}
	w.events = nil
	return types
}

// wantEvents fails the test unless exactly these events fired, in this order.
func (w *world) wantEvents(want ...auth.EventType) {
	w.t.Helper()
	if want == nil {
		want = []auth.EventType{}
	}
	if got := w.fired(); !slices.Equal(got, want) {
		w.t.Errorf("events %v, want %v", got, want)
	}
}

// syncBuffer is a log that many goroutines write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *syncBuffer) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b.Reset()
}

// answer is a response that has been read and checked.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// header is an edit of a request.
type header struct{ name, value string }

func bearer(token string) header { return header{"Authorization", "Bearer " + token} }

// do sends one request and holds the response to the OpenAPI document.
func (w *world) do(method, path string, body any, headers ...header) *answer {
	w.t.Helper()
	a := w.doOn(w.Handler(), method, path, body, headers...)
	path, _, _ = strings.Cut(path, "?")
	if method != http.MethodOptions && documented(path, a.status) {
		apiMu.Lock()
		defer apiMu.Unlock()
		if err := api.Response(method, strings.TrimPrefix(path, "/auth/v1"), a.status, a.header, a.body); err != nil {
			w.t.Errorf("%v\n%s", err, a.body)
		}
	}
	return a
}

// doOn sends one request to a handler.
func (w *world) doOn(h http.Handler, method, path string, body any, headers ...header) *answer {
	w.t.Helper()
	var reader io.Reader = http.NoBody
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			w.t.Fatal(err)
		}
		reader = bytes.NewReader(raw)
	}
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, reader)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, edit := range headers {
		switch edit.name {
		case "RemoteAddr":
			r.RemoteAddr = edit.value
		default:
			r.Header.Set(edit.name, edit.value)
		}
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return &answer{t: w.t, status: rec.Code, header: rec.Header(), body: rec.Body.Bytes()}
}

// documented leaves out what no document can list: methods and paths that do
// not exist.
func documented(path string, status int) bool {
	known := strings.TrimPrefix(path, "/auth/v1")
	return status != http.StatusMethodNotAllowed && slices.ContainsFunc(api.Operations(), func(op string) bool {
		_, p, _ := strings.Cut(op, " ")
		return template(p).MatchString(known)
	})
}

// template matches the paths that a documented path stands for.
func template(path string) *regexp.Regexp {
	return regexp.MustCompile("^" + regexp.MustCompile(`\\{[a-z]+\\}`).ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$")
}

// want fails the test unless the status is right and, for errors, the code.
func (a *answer) want(status int, code ...auth.Code) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	if len(code) > 0 {
		var e struct {
			Code auth.Code `json:"code"`
		}
		if err := json.Unmarshal(a.body, &e); err != nil || e.Code != code[0] {
			a.t.Fatalf("code %q, want %q: %s", e.Code, code[0], a.body)
		}
	}
	return a
}

// session is the wire's Session object, as far as tests look at it.
type session struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	User         user   `json:"user"`
	Left         int    `json:"recovery_codes_left"`
}

type user struct {
	ID            string         `json:"id"`
	Email         string         `json:"email"`
	EmailVerified bool           `json:"email_verified"`
	MFAEnabled    bool           `json:"mfa_enabled"`
	Identities    []identity     `json:"identities"`
	FullName      string         `json:"full_name"`
	UserMetadata  map[string]any `json:"user_metadata"`
	AppMetadata   map[string]any `json:"app_metadata"`
	Roles         []string       `json:"roles"`
}

type identity struct {
	Provider string `json:"provider"`
	Subject  string `json:"subject"`
	Email    string `json:"email"`
}

func decodeAs[T any](a *answer) T {
	a.t.Helper()
	var v T
	if err := json.Unmarshal(a.body, &v); err != nil {
		a.t.Fatalf("%v: %s", err, a.body)
	}
	return v
}

func (a *answer) session() session { a.t.Helper(); a.want(200); return decodeAs[session](a) }

const goodPassword = "correct horse battery"

// signUp makes an account through the wire.
func (w *world) signUp(email string) session {
	w.t.Helper()
	return w.do("POST", "/signup", map[string]any{"email": email, "password": goodPassword}).session()
}

// member is signUp of somebody who confirms the address.
func (w *world) member(email string) session {
	w.t.Helper()
	s := w.signUp(email)
	w.do("POST", "/verify-email", map[string]any{"token": w.linkToken(email, auth.KindVerifyEmail)}, bearer(s.AccessToken)).want(200)
	return s
}

// squatter is signUp of somebody who does not have that mailbox, but has proved a
// number of their own, so that the account may grow other ways in.
func (w *world) squatter(email string) session {
	w.t.Helper()
	s := w.signUp(email)
	phone, at := "+4930555555", w.Clock.Now()
	w.patch(s.User.ID, store.UserPatch{Phone: &phone, PhoneVerifiedAt: &at})
	return s
}

// linkToken waits for a message and returns the token of its link.
func (w *world) linkToken(to string, k auth.Kind) string {
	w.t.Helper()
	u, err := url.Parse(w.Mail(w.t, to, k).Link)
	if err != nil {
		w.t.Fatal(err)
	}
	return u.Query().Get("token")
}

// alive tells whether /me still takes an access token.
func (w *world) alive(access string) bool {
	w.t.Helper()
	return w.do("GET", "/me", nil, bearer(access)).status == http.StatusOK
}

// form is a page's post.
var form = header{"Content-Type", "application/x-www-form-urlencoded"}

// browser is what browsers accept.
var browser = header{"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}

// failingStore returns every call with an error while it is down.
type failingStore struct {
	auth.Store
	down bool
}

var errDown = errors.New("connection refused")

func (f *failingStore) Credentials(ctx context.Context, k store.UserKey) (store.Credentials, error) {
	if f.down {
		return store.Credentials{}, errDown
	}
	return f.Store.Credentials(ctx, k)
}

func (f *failingStore) AdvanceSession(ctx context.Context, a store.Advance) (auth.Session, auth.User, error) {
	if f.down {
		return auth.Session{}, auth.User{}, errDown
	}
	return f.Store.AdvanceSession(ctx, a)
}

func (f *failingStore) Ping(ctx context.Context) error {
	if f.down {
		return errDown
	}
	return f.Store.Ping(ctx)
}

// invited invites an address, as the admin side does, and returns the link's token.
func (w *world) invited(email string) string {
	w.t.Helper()
	kit, ctx := host.Of(w), w.t.Context()
	kit.JudgeInvitations(func(context.Context, host.Invitation) (host.Terms, error) {
		return host.Terms{}, nil
	})
	inv, err := kit.CleanInvitation(host.Invitation{Email: email, By: auth.Actor{Kind: store.ActorSystem, ID: "test"}}, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	c := kit.Change(ctx, auth.Authority{System: "test"})
	if err := kit.Invite(ctx, &c, &host.Send{}, inv, nil); err != nil {
		w.t.Fatal(err)
	}
	kit.Committed(ctx, c, nil)
	return w.linkToken(email, auth.KindInvitation)
}

// usualCost is what hashing costs where no option says otherwise, for tests of what
// comes of that; authtest makes it cheap.
var usualCost = auth.Argon2idParams{Memory: 19456, Time: 2, Threads: 1} //nolint:gochecknoglobals // a constant
