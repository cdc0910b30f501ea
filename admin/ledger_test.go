package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// ledger plays the requests of a scene and writes down all results of each: the whole
// answer, the terms of each change of the store, every new row of the audit log and every
// mail. It compares its text with a file below testdata/ledger, so that a change of any
// member is seen; -update writes the file. Ids are written by names, random values as
// such, and times as they are: the clock advances only one second between two requests.
type ledger struct {
	*office
	tap   *storetap.Tap
	who   map[string]*authtest.SignedIn
	ids   map[string]string // by name
	names map[string]string // by id
	known map[string]bool   // rows and mails that were written down

	naming    string // the name for the next created id
	contested bool   // another change precedes the first attempt of each change
	outages   bool   // each call of the store by a request fails in turn, before it is answered

	text strings.Builder
}

// ledgerKey marks the context of a request: its background work is no part of it.
type ledgerKey struct{}

// whereFails starts the lines on calls that may fail without a reported outage. No other
// line depends on whether there were outages.
const whereFails = "  where it fails,"

// scenes are played twice: once as they are, and once with every recorded change decided
// again, which must have the same result.
func scenes(t *testing.T, name string, of admin.Options, play func(l *ledger), opts ...auth.Option) {
	t.Helper()
	t.Parallel()
	path := filepath.Join("testdata", "ledger", name+".txt")
	for _, contested := range []bool{false, true} {
		t.Run(map[bool]string{false: "as it is", true: "decided anew"}[contested], func(t *testing.T) {
			if !*update || contested {
				t.Parallel()
			}
			tap := storetap.New(memstore.New())
			l := &ledger{
				office: newOfficeWith(t, tap, of, append([]auth.Option{auth.WithLogger(slog.New(slog.DiscardHandler))}, opts...)...), tap: tap, contested: contested,
				outages: true, who: map[string]*authtest.SignedIn{"nobody": nil}, ids: map[string]string{}, names: map[string]string{}, known: map[string]bool{},
			}
			l.mark = func(ctx context.Context) context.Context { return context.WithValue(ctx, ledgerKey{}, true) }
			play(l)
			got := l.text.String()
			if *update && !contested {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if contested {
				want = withoutOutages.ReplaceAll(want, nil)
			}
			compareLedgers(t, string(want), got)
		})
	}
}

var withoutOutages = regexp.MustCompile("(?m)^" + whereFails + ".*\n")

// compareLedgers reports the first line that differs, below its request.
func compareLedgers(t *testing.T, want, got string) {
	t.Helper()
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	request := ""
	for i := range max(len(a), len(b)) {
		var was, is string
		if i < len(a) {
			was = a[i]
		}
		if i < len(b) {
			is = b[i]
		}
		if was != is {
			same := 0
			for same < min(len(was), len(is)) && was[same] == is[same] {
				same++
			}
			if same > 200 {
				was, is = "…"+was[same-100:], "…"+is[same-100:]
			}
			t.Fatalf("%s\nwant %s\n got %s\nif this is meant, write it down with -update", request, was, is)
		}
		if strings.HasPrefix(is, "> ") {
			request = is
		}
	}
}

// signIn signs a user in by a name.
func (l *ledger) signIn(name string, opts ...authtest.UserOption) {
	l.t.Helper()
	l.Clock.Advance(time.Second)
	s := l.LoginAs(l.t, name+"@example.com", opts...)
	l.who[name] = s
	l.call(name, s.User.ID)
	l.call(name+".session", s.SessionID)
	l.settled()
}

// call gives an id a name.
func (l *ledger) call(name, id string) {
	l.ids[name] = id
	l.names[id] = name
}

// made is once for a request that creates something, and gives its id a name.
func (l *ledger) made(name, who, pattern, body string, headers ...string) *answer {
	l.t.Helper()
	l.naming = name
	return l.once(who, pattern, body, headers...)
}

// terms are the conditions of a change, and the events recorded with it.
func (l *ledger) terms(c *store.Change) string {
	out := map[string]any{"by": c.By, "users": c.IfUsers, "roles": c.IfRoles}
	if c.KeepOwner {
		out["keep_owner"] = true
	}
	if c.Idempotency != nil {
		once := *c.Idempotency
		once.RequestHash, once.Result = nil, nil
		out["once"], out["result"] = once, string(c.Idempotency.Result)
	}
	var types []string
	for _, e := range c.Events {
		types = append(types, fmt.Sprint(e.On, " ", e.Event.Type))
	}
	if len(c.Messages) > 0 {
		out["messages"] = len(c.Messages)
	}
	return terse(l.t, out) + " " + strings.Join(types, ", ")
}

// attempt sends a request during which the k-th call of the store fails, and returns that
// call, or "" if there were fewer, and the request's changes.
func (l *ledger) attempt(k int, reads bool, send func() *answer) (a *answer, failed string, changes []string) {
	var mu sync.Mutex
	tried, asked := map[string]bool{}, map[string]string{}
	h := storetap.Hooks{
		Edit: func(method string, c *store.Change) {
			mu.Lock()
			defer mu.Unlock()
			text := "  " + method + " " + l.terms(c)
			asked[method] = text
			if l.contested && len(c.Events) > 0 {
				if tried[method] = !tried[method]; tried[method] {
					c.IfUsers = append(slices.Clone(c.IfUsers), auth.UserAt{ID: uuid.NewString()})
				}
			}
		},
		After: func(_ context.Context, method string, _ int, err error) {
			mu.Lock()
			defer mu.Unlock()
			if text, ok := asked[method]; ok && !errors.Is(err, store.ErrStale) {
				changes = append(changes, text)
			}
			delete(asked, method)
		},
		Skip: func(ctx context.Context, method string) bool {
			return ctx.Value(ledgerKey{}) == nil || k > 0 && (method == "Take" || reads && method == "Roles") // some requests succeed without these calls
		},
	}
	if k > 0 {
		h.Fault = func(_ context.Context, method string, n int) storetap.Fault {
			if n != k {
				return storetap.NoFault
			}
			mu.Lock()
			defer mu.Unlock()
			failed = method
			return storetap.FailsBefore
		}
	}
	if k > 0 && !reads {
		h.Draws = func(draws []store.Draw) []store.Draw { // the remaining draws are for the request that succeeds
			mu.Lock()
			defer mu.Unlock()
			draws = slices.Clone(draws)
			for i := range draws {
				draws[i].Key = fmt.Sprint("try ", k, draws[i].Key)
			}
			return draws
		}
	}
	l.tap.Reset(h)
	a = send()
	l.settled()
	l.tap.Reset(storetap.Hooks{})
	mu.Lock()
	defer mu.Unlock()
	return a, failed, changes
}

// play sends a request as a user, and writes down its results. $ada in it is the id of
// ada.
func (l *ledger) play(who, pattern, body string, headers ...string) {
	l.t.Helper()
	l.request(false, who, pattern, body, headers...)
}

// list is play that writes down only the listed ids.
func (l *ledger) list(who, pattern string) *answer {
	l.t.Helper()
	return l.request(true, who, "GET "+pattern, "")
}

// once is play without outages, for effects that may happen although the answer is lost.
func (l *ledger) once(who, pattern, body string, headers ...string) *answer {
	l.t.Helper()
	l.outages = false
	defer func() { l.outages = true }()
	return l.request(false, who, pattern, body, headers...)
}

func (l *ledger) request(short bool, who, pattern, body string, headers ...string) *answer {
	l.t.Helper()
	s, ok := l.who[who]
	if !ok {
		l.t.Fatalf("nobody is called %s", who)
	}
	l.after(func(string, string) {}) // skips the events of the setup
	l.Clock.Advance(time.Second)
	l.write(">", strings.TrimSpace(strings.Join(append([]string{who, pattern, body}, headers...), " ")))
	send := func() *answer { return l.do(s, l.filled(pattern), l.filled(body), headers...) }
	var a *answer
	var changes []string
	reads := strings.HasPrefix(pattern, "GET ")
	if l.outages && !l.contested {
		failed := "the first"
		for k := 1; failed != "" && !l.t.Failed(); k++ {
			a, failed, changes = l.attempt(k, reads, send)
			if failed != "" && a.status >= 500 && a.body["code"] != string(auth.CodeUnavailable) && a.body != nil {
				l.t.Errorf("%s %s, where %s fails: %d %v", who, pattern, failed, a.status, a.body)
			}
			if failed != "" && a.status < 500 {
				l.write(whereFails, fmt.Sprint(failed, ": ", a.status, " ", a.body["code"]))
			}
		}
	} else {
		a, _, changes = l.attempt(0, reads, send)
	}
	for _, member := range []string{"id", "job_id", "selection_id", "message_id", "session_id"} {
		if id, _ := a.body[member].(string); id != "" && l.naming != "" {
			l.call(l.naming, id)
			l.naming = ""
		}
	}
	if id, _ := a.body["job_id"].(string); id != "" {
		l.done(id)
	}
	for _, line := range changes {
		l.write(line[:2], line[2:])
	}
	for _, name := range []string{"ETag", "Location", "Retry-After", "Content-Disposition", "Cache-Control", "Idempotency-Replayed"} {
		if v := a.header.Get(name); v != "" && (name != "Cache-Control" || v != "no-store") {
			l.write("  "+name+":", v)
		}
	}
	l.write("  "+fmt.Sprint(a.status), l.body(a, short))
	l.after(l.write)
	return a
}

// body is an answer's body, in one form.
func (l *ledger) body(a *answer, short bool) string {
	if a.body == nil {
		return strings.ReplaceAll(strings.TrimSpace(a.text), "\n", "\n    ")
	}
	if short {
		for member, list := range a.body {
			if list, ok := list.([]any); ok {
				a.body[member] = idsOf(list)
			}
		}
	}
	delete(a.body, "request_id")
	if a.body["user_handle"] != nil {
		a.body["user_handle"] = "<random>"
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(a.body); err != nil {
		l.t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

func idsOf(list []any) (ids []any) {
	for _, v := range list {
		m, _ := v.(map[string]any)
		for _, name := range []string{"id", "session", "metric", "type"} {
			if inner, ok := m[name].(map[string]any); ok {
				m, name = inner, "id"
			}
			if id, ok := m[name]; ok {
				ids = append(ids, id)
				break
			}
		}
	}
	return ids
}

// after writes down the new entries of the audit log and the new mail.
func (l *ledger) after(write func(what, text string)) {
	l.t.Helper()
	l.settled()
	l.written()
	st, _ := store.Capability[store.Journal](l.behind())
	list, err := st.Events(l.t.Context(), store.EventQuery{Limit: 200})
	if err != nil {
		l.t.Fatal(err)
	}
	var lines []string
	for _, e := range slices.Backward(list) {
		if !l.known[e.ID] {
			l.known[e.ID] = true
			e.ID = ""
			if e.Record != nil {
				e.Record = e.Record.Clone()
				e.Record.RequestID = strings.Repeat("x", min(1, len(e.Record.RequestID)))
			}
			lines = append(lines, terse(l.t, e))
		}
	}
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(l.plain(a), l.plain(b)) })
	for _, line := range lines {
		write("  audit", line)
	}
	lines = nil
	for _, m := range l.Inbox.Messages() {
		if id := "mail " + m.ID; !l.known[id] {
			l.known[id] = true
			link, _, _ := strings.Cut(m.Link, "#")
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s to %s: %s %s", m.Kind, m.To, m.Subject, link)))
		}
	}
	slices.Sort(lines)
	for _, line := range lines {
		write("  mail", line)
	}
}
