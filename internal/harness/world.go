// Package harness runs the root's black-box tests: it provides a service with recorded
// events and log, persons and browsers, an inbox, providers, and a second run on
// Postgres. Only tests import it.
package harness

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// Call sends a request to a row of the route table.
func (w *World) Call(route string, body map[string]any, token string) *Answer {
	w.T.Helper()
	method, path, _ := strings.Cut(route, " ")
	var headers []Header
	if token != "" {
		headers = append(headers, Bearer(token))
	}
	var sent any // nil sends no body
	if body != nil {
		sent = body
	}
	return w.Do(method, strings.Replace(path, "{provider}", "google", 1), sent, headers...)
}

// World is one service under test, with its recorded events and log.
type World struct {
	*authtest.Env
	T   *testing.T
	Log *SyncBuffer

	Mu     sync.Mutex
	Events []auth.Event
}

// NewWorld starts a service with recorded events and log.
func NewWorld(t *testing.T, opts ...auth.Option) *World {
	t.Helper()
	w := &World{T: t, Log: &SyncBuffer{}}
	base := []auth.Option{
		WithPasskeys(),
		auth.WithLogger(slog.New(slog.NewTextHandler(w.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		auth.WithHooks(auth.Hooks{OnEvent: w.Record}),
	}
	w.Env = NewEnv(t, append(base, opts...)...)
	return w
}

func (w *World) Record(_ context.Context, e auth.Event) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.Events = append(w.Events, e)
}

// Patch changes a user directly in the store.
func (w *World) Patch(userID string, p store.UserPatch) {
	w.T.Helper()
	c := store.Change{Now: w.Clock.Now(), By: auth.Authority{System: "test"}}
	if _, err := w.Store.UpdateUser(w.T.Context(), store.UpdateUser{Change: c, UserID: userID, Patch: p}); err != nil {
		w.T.Fatal(err)
	}
}

// Fired returns the types of the events since the last call.
func (w *World) Fired() []auth.EventType {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	types := []auth.EventType{}
	for _, e := range w.Events {
		types = append(types, e.Type)
		if e.UserID == "" && !strings.HasSuffix(string(e.Type), "failed") && e.Type != auth.EventSMSBudgetExceeded { // these may have no account
			w.T.Errorf("the event %s tells of nobody", e.Type)
		}
	}
	w.Events = nil
	return types
}

// WantEvents fails the test unless exactly these events fired, in this order.
func (w *World) WantEvents(want ...auth.EventType) {
	w.T.Helper()
	if want == nil {
		want = []auth.EventType{}
	}
	if got := w.Fired(); !slices.Equal(got, want) {
		w.T.Errorf("events %v, want %v", got, want)
	}
}

// SyncBuffer is a log for concurrent writers.
type SyncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *SyncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *SyncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *SyncBuffer) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b.Reset()
}

// Lines returns the lines of the log that match.
func (w *World) Lines(pattern string) []string {
	var found []string
	for line := range strings.Lines(w.Log.String()) {
		if regexp.MustCompile(pattern).MatchString(line) {
			found = append(found, line)
		}
	}
	return found
}

// Refusal returns the error of New for invalid options.
func Refusal(t *testing.T, opts ...auth.Option) string {
	t.Helper()
	a, err := auth.New(t.Context(), memstore.New(), append([]auth.Option{auth.WithDevMode()}, opts...)...)
	if err == nil {
		t.Error("accepted")
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
		return ""
	}
	return err.Error()
}

// ByOperator is the authority of operators in these tests.
func ByOperator() auth.Authority { return auth.Authority{System: "operator"} }
