package authclient

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// scenarioRun is a scenario in progress.
type scenarioRun struct {
	*testing.T

	s        scenario
	fixtures map[string]any
	server   *clock // its clock; the client's may be wrong
	wrong    time.Duration
	timers   *scenarioTimers
	player   *player
	store    *MemoryStore
	calls    *scenarioCalls

	mu   sync.Mutex // of the listener's events
	last string
	told []string
}

func newScenarioRun(t *testing.T, s scenario, fixtures map[string]any, seen *transitionsSeen) *scenarioRun {
	t.Helper()
	c := &clock{at: time.Unix(1767225600, 0)}
	r := &scenarioRun{
		T: t, s: s, fixtures: fixtures, server: c, player: &player{clock: c}, store: &MemoryStore{}, last: string(StatusLoading),
		timers: &scenarioTimers{clock: c, timers: map[int]scenarioTimer{}},
	}
	if s.Stored != nil {
		r.put(mustJSON(t, r.expand(s.Stored)))
	}
	client, err := NewClient(scenarioOrigin, WithHTTPClient(&http.Client{Transport: r.player}), WithTokenStore(r.store), WithAPIKey(s.Options.APIKey))
	if err != nil {
		t.Fatal(err)
	}
	client.wire.now = func() time.Time { return c.Now().Add(r.wrong) }
	client.wire.after = r.timers.after
	client.wire.pause = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	r.calls = &scenarioCalls{c: client}
	client.Subscribe(func(st State) {
		r.mu.Lock()
		defer r.mu.Unlock()
		status := string(st.Status)
		if status != r.last {
			seen.add(r.last, status)
		}
		if status != string(StatusLoading) || r.last != status {
			if n := len(r.told); n == 0 || r.told[n-1] != status {
				r.told = append(r.told, status)
			}
		}
		r.last = status
	})
	return r
}

// expand replaces the abbreviations of the scenarios.
func (r *scenarioRun) expand(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = r.expand(v[i])
		}
		return out
	case map[string]any:
		if n, ok := v["$now"].(float64); ok {
			return r.server.Now().Unix() + int64(n)
		}
		out := map[string]any{}
		if name, ok := v["$use"].(string); ok {
			base, ok := r.fixtures[name]
			if !ok {
				r.Fatalf("no fixture %q", name)
			}
			fixture := r.expand(base)
			members, ok := fixture.(map[string]any)
			if !ok {
				return fixture
			}
			maps.Copy(out, members)
		}
		for name, member := range v {
			if name != "$use" {
				out[name] = r.expand(member)
			}
		}
		return out
	}
	return v
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// put stores a session as another process would, or null.
func (r *scenarioRun) put(kept []byte) {
	var w *struct {
		sessionWire

		ExpiresAt int64 `json:"expires_at"`
	}
	if err := json.Unmarshal(kept, &w); err != nil {
		r.Fatal(err)
	}
	if w == nil {
		_ = r.store.Clear(r.Context())
		return
	}
	s := &Session{AccessToken: w.AccessToken, RefreshToken: w.RefreshToken, User: w.User}
	if w.ExpiresAt != 0 {
		s.ExpiresAt = time.Unix(w.ExpiresAt, 0)
	}
	_ = r.store.Save(r.Context(), s)
}

func (r *scenarioRun) run() {
	for i, raw := range r.s.Steps {
		if v, ok := raw["clock"].(float64); ok {
			r.wrong = time.Duration(v) * time.Second
		}
		if v, ok := raw["advance"].(float64); ok {
			r.timers.advance(time.Duration(v) * time.Second)
		}
		var step scenarioStep
		if err := json.Unmarshal(mustJSON(r.T, r.expand(raw)), &step); err != nil {
			r.Fatal(err)
		}
		if _, ok := raw["store"]; ok {
			if step.Store == nil {
				step.Store = []byte("null")
			}
			r.put(step.Store)
		}
		where := fmt.Sprintf("step %d (%s)", i+1, step.Do)
		r.step(where, step)
		_, keeps := raw["keeps"]
		_, tells := raw["tells"]
		r.check(where, step, keeps, tells)
		if r.Failed() {
			return
		}
	}
}

func (r *scenarioRun) step(where string, step scenarioStep) {
	r.player.expect(step.Server)
	together := step.Together
	if together == nil {
		together = []scenarioStep{step}
	}
	type outcome struct {
		data any
		err  error
	}
	results := make([]outcome, len(together))
	var wg sync.WaitGroup
	for i, one := range together {
		wg.Go(func() { results[i].data, results[i].err = r.calls.call(r.Context(), one.Do, one.With) })
	}
	wg.Wait()
	for i, one := range together {
		if one.Result == nil {
			continue
		}
		data, err := results[i].data, results[i].err
		if one.Result.Error == nil {
			if err != nil {
				r.Errorf("%s: %v", where, err)
			}
		} else {
			r.has(where+".error", errorShown(err), one.Result.Error)
		}
		if one.Result.Data != nil {
			var got, want any
			_ = json.Unmarshal(mustJSON(r.T, data), &got)
			_ = json.Unmarshal(one.Result.Data, &want)
			r.has(where+".data", got, want)
		}
	}
	for _, problem := range r.player.met() {
		r.Errorf("%s: %s", where, problem)
	}
}

// errorShown returns an error by the names of the scenarios.
func errorShown(err error) any {
	var e *Error
	if !errors.As(err, &e) {
		return fmt.Sprint(err)
	}
	reasons := []any{}
	for _, reason := range e.Reasons {
		reasons = append(reasons, reason)
	}
	return map[string]any{"code": string(e.Code), "status": float64(e.Status), "retryAfter": e.RetryAfter.Seconds(), "details": map[string]any{"reasons": reasons}}
}

// check compares the state after a step.
func (r *scenarioRun) check(where string, step scenarioStep, keeps, tells bool) {
	r.settle()
	for name, want := range step.State {
		r.has(where+".state."+name, r.known()[name], want)
	}
	if keeps {
		var got, want any
		kept, err := r.store.Load(r.Context())
		if err != nil {
			r.Fatal(err)
		}
		_ = json.Unmarshal(mustJSON(r.T, kept), &got)
		_ = json.Unmarshal(step.Keeps, &want)
		r.has(where+".keeps", got, want)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if tells && !slices.Equal(r.told, step.Tells) {
		r.Errorf("%s: told %v, not %v", where, r.told, step.Tells)
	}
	r.told = nil
}

// settle waits until the listener has got every event.
func (r *scenarioRun) settle() {
	c := r.calls.c
	for busy := true; busy; runtime.Gosched() {
		busy = false
		c.mu.Lock()
		for l := range c.listeners {
			busy = busy || l.running
		}
		c.mu.Unlock()
	}
}

// known is the state by the names of the scenarios. A session is shown without a token
// that has expired; the claims of its token are read there.
func (r *scenarioRun) known() map[string]any {
	c := r.calls.c
	st := c.State()
	out := map[string]any{"status": string(st.Status), "user": nil, "session": nil, "pending": nil}
	if st.User != nil {
		var u any
		_ = json.Unmarshal(mustJSON(r.T, st.User), &u)
		out["user"] = u
	}
	if p := st.Pending; p != nil {
		factors := []any{}
		for _, f := range p.Factors {
			factors = append(factors, f)
		}
		out["pending"] = map[string]any{"factors": factors, "expires_at": float64(p.ExpiresAt.Unix()), "email": p.Email}
	}
	if s, _ := c.current(); s != nil {
		session := map[string]any{}
		if parts := strings.Split(s.AccessToken, "."); len(parts) == 3 {
			claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
			_ = json.Unmarshal(claims, &session)
		}
		session["access_token"] = nil
		if s.valid(c.wire.now()) {
			session["access_token"] = s.AccessToken
		}
		out["session"] = session
	}
	return out
}

// has checks whether a value has at least the expected members.
func (r *scenarioRun) has(where string, got, want any) {
	if members, ok := want.(map[string]any); ok {
		object, ok := got.(map[string]any)
		if !ok {
			r.Errorf("%s: %v, not %v", where, got, want)
			return
		}
		for name, v := range members {
			r.has(where+"."+name, object[name], v)
		}
		return
	}
	if !reflect.DeepEqual(got, want) {
		r.Errorf("%s: %v, not %v", where, got, want)
	}
}
