package traces_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// All effects of a request are recorded in testdata: the answer with its headers, each store
// call with the conditions of its change, the draws from limits, the differences in the
// store, the events and the sent messages. So a missing or additional effect of a flow is
// visible and must be intended.

// tracing has the observed effects of a request.
type tracing struct {
	*words
	*harness.Played
	mu     sync.Mutex
	lines  []string
	events []auth.Event

	failing bool // the current call
}

func (tr *tracing) say(format string, args ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.lines = append(tr.lines, fmt.Sprintf(format, args...))
}

// traceWorld is a hostile world with a store that can be read as a whole.
type traceWorld struct {
	*harness.HostileWorld
	rows func() map[string]any // of the store, by table
	says []harness.Header      // of the request, in addition to the row's

	mu   sync.Mutex
	told func(what string, v any)
}

func newTraceWorld(t *testing.T, r harness.Row, more ...auth.Option) *traceWorld {
	t.Helper()
	w := &traceWorld{}
	st := memstore.New()
	w.rows = func() map[string]any { return dumpedRows(t, st) }
	w.start(t, st, r, more...)
	return w
}

func (w *traceWorld) start(t *testing.T, st auth.Store, r harness.Row, more ...auth.Option) {
	t.Helper()
	w.HostileWorld = harness.NewHostileWorldOn(t, st, r, append([]auth.Option{auth.WithHooks(w.hooks())}, more...)...)
	w.Known = true
}

// hooks report events, and the arguments of the other hooks, to the current trace.
func (w *traceWorld) hooks() auth.Hooks {
	return auth.Hooks{
		OnEvent:              func(_ context.Context, e auth.Event) { _ = w.heard("", e) },
		BeforeSignUp:         func(_ context.Context, s auth.SignUpAttempt) error { return w.heard("asked of a sign-up", s) },
		BeforePasswordChange: func(_ context.Context, p auth.PasswordChange) error { return w.heard("asked of a password", p.Method) },
		BeforeDelete:         func(_ context.Context, u auth.User) error { return w.heard("asked of an end", u.Email+u.Phone) },
	}
}

func (w *traceWorld) heard(what string, v any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told != nil {
		w.told(what, v)
	}
	return nil
}

func (w *traceWorld) tell(f func(what string, v any)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = f
}

// whole returns all data of the store.
func (w *traceWorld) whole() map[string]any {
	w.T.Helper()
	if err := host.Of(w).Flush(w.T.Context()); err != nil {
		w.T.Fatal(err)
	}
	return w.rows()
}

// dumpedRows are the rows of a store in memory.
func dumpedRows(t *testing.T, st *memstore.Store) (all map[string]any) {
	t.Helper()
	raw, err := st.Dump(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// trace plays a trial some time after its preparation and records its effects.
func (w *traceWorld) trace(of harness.Trial, later time.Duration) *tracing {
	w.T.Helper()
	p := &harness.Played{Scene: w.NewScene(of.Row), Trial: of, Limits: w.Limits}
	tr := &tracing{Played: p, words: &words{names: map[string]string{}}}
	p.Request = of.Row.Prepare(p.Scene)
	w.Clock.Advance(later)
	if later > time.Minute && p.Session.RefreshToken != "" { // the sign-in is not recent any more; the session is alive
		if a := p.Evil.Send("POST", "/refresh", map[string]any{"refresh_token": p.Session.RefreshToken}); a.Status == http.StatusOK {
			p.Enter(a)
		}
	}
	tr.now = w.Clock.Now()
	w.Refund()
	was, mails := w.whole(), len(p.Inbox.Messages())
	w.Tap.Reset(tr.hooks())
	p.Evil.Edit, p.Evil.Device = p.Attempt, append(p.Evil.Device, w.says...)
	w.tell(func(what string, v any) {
		if e, ok := v.(auth.Event); ok {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			tr.events = append(tr.events, e)
			return
		}
		tr.say("%s %s", what, tr.line(v))
	})
	p.Answers = append(p.Answers, p.Request())
	p.N = w.Tap.Calls()
	w.givenBack(tr)
	w.tell(nil)
	is := w.whole()
	tr.answered(p.Answer())
	tr.lines = append(tr.lines, brief(tr.difference(was, is))...)
	for _, e := range tr.events {
		line := "+ events " + tr.line(e)
		if i := slices.Index(tr.lines, line); i >= 0 {
			tr.lines[i] = strings.Replace(line, "+ events", "+ told events", 1)
		} else {
			tr.say("told %s", tr.line(e))
		}
	}
	for _, m := range p.Inbox.Messages()[mails:] {
		m.Text, m.HTML = "", ""
		tr.say("sent %s", traceCode.ReplaceAllString(tr.line(m), "<code>"))
	}
	return tr
}

// took records draws by their limits. Two keys are the same only if they have one name.
// Refunds come first, and in any order.
func (tr *tracing) took(draws []store.Draw, d store.Decision) {
	var back, lines []string
	for _, draw := range draws {
		limit := tr.Limits[draw.Rate.Burst]
		if limit == "" {
			limit = fmt.Sprintf("%d in %v", draw.Rate.Burst, draw.Rate.Per)
		}
		if draw.Cost < 0 {
			back = append(back, fmt.Sprintf("  gives back %d of %s by %s", -draw.Cost, limit, cmp.Or(tr.names[draw.Key], "another")))
		} else {
			lines = append(lines, fmt.Sprintf("  draws %d of %s by %s: %t", draw.Cost, limit, tr.name("key", draw.Key), d.Allowed))
		}
	}
	slices.Sort(back)
	for _, line := range append(back, lines...) {
		tr.say("%s", line)
	}
}

// givenBack records the refunds after a request, in any number of calls.
func (w *traceWorld) givenBack(tr *tracing) {
	first := len(tr.lines)
	w.Tap.Reset(storetap.Hooks{Took: tr.took})
	w.Refund()
	w.Tap.Reset(storetap.Hooks{})
	slices.Sort(tr.lines[first:])
}

func (tr *tracing) hooks() storetap.Hooks {
	var method string
	var c *store.Change
	return storetap.Hooks{
		Skip: func(_ context.Context, method string) bool { // Roles are read when the cached ones are a second old
			return method == "Roles" || method == "Sweep" || method == "ClaimMessages" || method == "FinishMessage"
		},
		Before: func(_ context.Context, m string, _ int) { method, c = m, nil },
		Fault: func(_ context.Context, _ string, n int) storetap.Fault {
			if n != tr.K {
				return storetap.NoFault
			}
			tr.Hit, tr.failing = true, true
			return tr.Fault
		},
		Edit: func(_ string, change *store.Change) { kept := *change; c = &kept },
		After: func(_ context.Context, _ string, _ int, err error) {
			if c == nil {
				tr.say("%s%s", method, tr.failed(err))
				return
			}
			on := map[store.Outcome][]auth.EventType{}
			for _, e := range c.Events {
				on[e.On] = append(on[e.On], e.Event.Type)
			}
			tr.say("%s %s%s", method, tr.line(map[string]any{
				"by": c.By, "now": c.Now, "users": tr.conditions(c.IfUsers), "roles": c.IfRoles, "owner": c.KeepOwner, "first": c.FirstOwner, "events": on, "messages": len(c.Messages),
			}), tr.failed(err))
		},
		Took: tr.took,
	}
}

// conditions are the conditions that are set, including conditions of being false or nothing.
func (tr *tracing) conditions(users []auth.UserAt) []string {
	var list []string
	for _, u := range users {
		v, text := reflect.ValueOf(u), ""
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() {
				text += fmt.Sprintf(" %s=%v", v.Type().Field(i).Name, tr.text(fmt.Sprint(f.Elem().Interface())))
			}
		}
		list = append(list, fmt.Sprint(tr.text(u.ID))+":"+text)
	}
	return list
}

func (tr *tracing) failed(err error) string {
	if tr.failing {
		tr.failing, err = false, storetap.ErrFault
	}
	if err == nil {
		return ""
	}
	return ": " + fmt.Sprint(tr.text(err.Error()))
}

// usualHeaders are the headers of every answer. They are recorded only if they are missing
// or have another value.
var usualHeaders = map[string]string{
	"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Request-Id": ".+", "Content-Type": "application/json; charset=utf-8",
}

// answered writes down a response.
func (tr *tracing) answered(a *harness.Answer) {
	tr.say("answer %d", a.Status)
	for _, name := range slices.Sorted(maps.Keys(usualHeaders)) {
		if a.Status > 0 && a.Header.Get(name) == "" {
			tr.say("  without %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Header)) {
		for _, value := range a.Header[name] {
			if usual := usualHeaders[name]; usual != "" && regexp.MustCompile("^("+usual+")$").MatchString(value) {
				continue
			}
			if name == "Location" {
				value = unescaped(value)
			}
			tr.say("  %s: %v", name, tr.text(value))
		}
	}
	body := a.Body
	if strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
		body = []byte(tr.page(string(body)))
	}
	if len(body) > 4<<10 {
		body = fmt.Appendf(nil, "%d KiB", len(body)>>10)
	}
	tr.zeros = true
	tr.say("  %s", tr.json(body))
	tr.zeros = false
}

func unescaped(query string) string {
	if s, err := url.QueryUnescape(query); err == nil {
		return s
	}
	return query
}

var (
	traceHead  = regexp.MustCompile(`(?s)^.*<body[^>]*>`)
	traceSpace = regexp.MustCompile(`\s+`)
)

// page is the body of a page on one line.
func (tr *tracing) page(html string) string {
	html = traceCode.ReplaceAllString(traceHead.ReplaceAllString(html, ""), "<code>")
	return strings.TrimSpace(traceSpace.ReplaceAllString(html, " "))
}

// The effects of each request are as recorded.
func TestTracesOfRequests(t *testing.T) {
	t.Parallel()
	traceTable(t, "", harness.HostileRows(), func(t *testing.T, r harness.Row) []string { return traced(t, r) })
}

// traced is the whole record of a row: of its request as it is, and with each secret in it
// made wrong.
func traced(t *testing.T, r harness.Row, more ...auth.Option) (lines []string) {
	t.Helper()
	w := newTraceWorld(t, r, more...)
	play := func(wrong string) []string {
		tr := w.trace(harness.Trial{Row: r, Wrong: wrong}, 7*time.Second)
		lines = append(append(append(lines, title(r, wrong)), tr.lines...), "")
		return slices.Sorted(slices.Values(tr.Fields))
	}
	for _, field := range play("") {
		play(field)
	}
	return lines
}

func title(r harness.Row, wrong string) string {
	s := "# " + r.Name + " by " + string(r.Kind)
	if wrong != "" {
		s += ", wrong " + wrong
	}
	return s
}

// brief omits the log's line of a sent message, because the message itself is recorded, and
// reduces counts to their kind.
func brief(lines []string) (list []string) {
	var counts []string
	for _, line := range lines {
		if counted := countOf.FindStringSubmatch(line); counted != nil {
			counts = append(counts, counted[1]+" "+counted[2])
		} else if !strings.HasPrefix(line, "~ counts ") && (!strings.HasPrefix(line, "+ message_log ") || !strings.Contains(line, `"State":"sent"`)) {
			list = append(list, line)
		}
	}
	if len(counts) > 0 {
		list = append(list, "counts "+strings.Join(counts, ", "))
	}
	return list
}

var countOf = regexp.MustCompile(`^\+ counts .*"Label":"([^"]*)","Metric":"([^"]*)"`)

// Once a sign-in is not fresh any more, links and codes have expired and the session was
// refreshed, requests are answered as it is written down, and a refused one changes nothing
// of an account.
func TestTracesOfLateRequests(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, pattern := range slices.Sorted(maps.Keys(harness.HostileRows())) {
		for _, r := range harness.HostileRows()[pattern] {
			tr := newTraceWorld(t, r).trace(harness.Trial{Row: r}, 20*time.Minute)
			lines = append(lines, pattern+": "+title(r, "")[2:]+": "+harness.ResultOf(tr.Answer()))
			for _, line := range tr.lines {
				if tr.Answer().Status >= 400 && tr.Answer().Status != 403 && strings.Contains(line, " users ") || strings.HasPrefix(line, "+ sessions ") && tr.Answer().Status >= 400 {
					t.Errorf("%s is refused, and there is %s", lines[len(lines)-1], line)
				}
			}
		}
	}
	slices.Sort(lines)
	compareTrace(t, "late", lines)
}
