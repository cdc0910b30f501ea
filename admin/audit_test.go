package admin_test

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// written waits until all events are recorded and counted.
func (o *office) written() {
	o.t.Helper()
	if err := host.Of(o).Flush(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
}

// events are the types of the events on a page, oldest first.
func (a *answer) events() (types []string) {
	a.t.Helper()
	list, _ := a.body["events"].([]any)
	for _, e := range list {
		e, _ := e.(map[string]any)
		types = append(types, fmt.Sprint(e["type"]))
	}
	slices.Reverse(types)
	return types
}

// A denied attempt is in the audit log with its actor, operation, target and reason. That
// includes operations that only read.
func TestDeniedAttemptsAreRecorded(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		support := o.operator("support@example.com", admin.PermUsersBan)
		o.do(support, "POST /users/"+owner.User.ID+"/ban", `{"reason":"x"}`, "X-Request-Id: req-1").want(403, auth.CodeTargetStronger)
		o.do(support, "GET /roles", "").want(403, auth.CodeMissingPermission)
		o.do(owner, "GET /me", "").want(200)
		o.written()
		page := o.do(owner, "GET /audit-logs?outcome=denied", "").want(200)
		list, _ := page.body["events"].([]any)
		if len(list) != 2 {
			t.Fatalf("%v", page.body)
		}
		for i, want := range []struct{ operation, target, reason string }{{"GET /roles", "", "missing_permission"}, {"POST /users/{id}/ban", "owner@example.com", "target_stronger"}} {
			e, _ := list[i].(map[string]any)
			who, _ := e["actor"].(map[string]any)
			if e["operation"] != want.operation || who["id"] != support.User.ID || who["label"] != "support@example.com" || !strings.Contains(fmt.Sprint(e["reason"]), want.reason) ||
				want.target != "" && (e["target"] != want.target || e["request_id"] != "req-1" || e["user_id"] != owner.User.ID) {
				t.Errorf("%v, want %v", e, want)
			}
		}
	})
}

// Failed sign-ins are in the audit log and in the timeline, with their IP addresses.
func TestFailedSignInsAreRecorded(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		ada := o.LoginAs(t, "ada@example.com")
		ctx := auth.ContextWithClient(t.Context(), auth.Client{IP: netip.MustParseAddr("192.0.2.7"), UserAgent: "guesser"})
		for range 3 {
			if _, err := o.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: "wrong password 1"}); !errors.Is(err, auth.CodeInvalidCredentials) {
				t.Fatal(err)
			}
		}
		o.written()
		for _, list := range []string{"/audit-logs?action=sign_in.failed&ip=192.0.2.7&outcome=failed", "/users/" + ada.User.ID + "/events?limit=3"} {
			got := o.do(owner, "GET "+list, "").want(200).events()
			if len(got) != 3 || got[0] != string(auth.EventSignInFailed) {
				t.Errorf("%s: %v", list, got)
			}
		}
	})
}

// Invalid queries of the audit log are refused, including the cursor of another list.
func TestAuditQueriesAreStrict(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		cursor := func(path string) string {
			c, _ := o.do(owner, "GET "+path, "").want(200).body["next_cursor"].(string)
			if c == "" {
				t.Fatalf("%s has one page", path)
			}
			return c
		}
		audit, users, timeline := cursor("/audit-logs?limit=1"), cursor("/users?limit=1"), cursor("/users/"+owner.User.ID+"/events?limit=1")
		o.do(owner, "GET /audit-logs?action=user.*&cursor="+audit, "").want(200)
		other := o.LoginAs(t, "other@example.com").User.ID
		for _, path := range []string{
			"/audit-logs?cursor=" + users, "/audit-logs?cursor=" + timeline, "/audit-logs?cursor=x", "/audit-logs?cursor=e30",
			"/users/" + owner.User.ID + "/events?cursor=" + audit, "/users/" + other + "/events?cursor=" + timeline,
			"/audit-logs?action=user*", "/audit-logs?action=%25", "/audit-logs?outcome=bad", "/audit-logs?ip=localhost", "/audit-logs?user=me", "/audit-logs?who=me",
			"/audit-logs?from=yesterday", "/audit-logs?actor=" + strings.Repeat("x", 400), "/audit-logs/export?format=xml", "/audit-logs/export?limit=5",
			"/stats?metrics=logins", "/stats?interval=week", "/stats?from=2020-01-01T00:00:00Z", "/overview?period=1y",
		} {
			o.do(owner, "GET "+path, "").want(422, auth.CodeValidationFailed)
		}
		o.do(owner, "GET /users/me/events", "").want(404, auth.CodeUserNotFound)
		for _, id := range []string{"x", other} {
			o.do(owner, "GET /audit-logs/"+id, "").want(404, auth.CodeNotFound)
		}
	})
}

// An export holds the events that its filters select, in either format. It is recorded
// before its first byte, and a cell that a spreadsheet would calculate is text.
func TestAuditExport(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		events, _ := store.Capability[store.Journal](st)
		var many []auth.Event
		for i := range 1201 { // more than two pages
			e := auth.Event{ID: host.Of(o).NewID(), Type: auth.EventSignInFailed, At: o.Clock.Now().Add(-time.Hour).UTC(), Reason: "plain"}
			if i < 6 {
				e.Client.UserAgent = []string{"=HYPERLINK(1)", "+1", "-1", "@x", "\tx", "\rx"}[i] //nolint:gosec // there are six
			}
			many = append(many, e)
		}
		if err := events.AddEvents(t.Context(), many); err != nil {
			t.Fatal(err)
		}
		const filter = "?action=sign_in.*"
		a := o.do(owner, "GET /audit-logs/export"+filter, "").want(200)
		lines := bufio.NewScanner(strings.NewReader(a.text))
		n := 0
		for ; lines.Scan(); n++ {
			var e map[string]any
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e["type"] != string(auth.EventSignInFailed) {
				t.Fatalf("%v: %s", err, lines.Text())
			}
		}
		if n != len(many) || a.header.Get("Content-Type") != "application/x-ndjson" || !strings.Contains(a.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%d lines, %v", n, a.header)
		}
		a = o.do(owner, "GET /audit-logs/export"+filter+"&format=csv", "").want(200)
		table, err := csv.NewReader(strings.NewReader(a.text)).ReadAll()
		if err != nil || len(table) != len(many)+1 {
			t.Fatalf("%d rows, %v", len(table), err)
		}
		agent, marked := slices.Index(table[0], "user_agent"), 0
		for _, row := range table[1:] {
			for _, cell := range row {
				if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
					t.Errorf("a cell begins so: %q", cell)
				}
			}
			if strings.HasPrefix(row[agent], "'") {
				marked++
			}
		}
		if marked != 6 {
			t.Errorf("%d cells are marked", marked)
		}
		rows := o.audit()
		if len(rows) < 2 || rows[0].Type != auth.EventAuditExported || rows[0].Actor.ID != owner.User.ID || rows[0].Record.Changes["action"].After != "sign_in.*" || rows[0].Record.Changes["format"].After != "csv" {
			t.Errorf("recorded %+v", rows[0])
		}
		if a := o.do(owner, "HEAD /audit-logs/export", "").want(200); a.text != "" {
			t.Errorf("HEAD: %q", a.text)
		}
		if len(o.audit()) != len(rows) {
			t.Error("HEAD is recorded")
		}
	})
}

// An export that cannot be recorded writes nothing. An export stops if its client leaves
// or the store fails, and does not look complete then.
func TestAuditExportBreaksOff(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		tap := storetap.New(st)
		o := newOffice(t, tap)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		var list []auth.Event
		for range 1100 {
			list = append(list, auth.Event{ID: host.Of(o).NewID(), Type: auth.EventSignInFailed, At: o.Clock.Now().UTC()})
		}
		events, _ := store.Capability[store.Journal](st)
		if err := events.AddEvents(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		failing := func(method string, nth int) {
			n := 0
			tap.Reset(storetap.Hooks{Background: true, Fault: func(_ context.Context, m string, _ int) storetap.Fault {
				if m == method {
					n++
				}
				if m == method && n == nth {
					return storetap.FailsBefore
				}
				return storetap.NoFault
			}})
		}
		failing("AddEvents", 1)
		a := o.do(owner, "GET /audit-logs/export?format=csv", "")
		if a.status < 500 || strings.Contains(a.text, "actor_id") {
			t.Errorf("not recorded: %d %.100s", a.status, a.text)
		}
		failing("Events", 2)
		func() {
			defer func() {
				if v := recover(); v != http.ErrAbortHandler { //nolint:errorlint // the very one
					t.Errorf("recovered %v", v)
				}
			}()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/auth/v1/admin/audit-logs/export", http.NoBody)
			owner.Sign(r)
			o.mux.ServeHTTP(httptest.NewRecorder(), r)
		}()
		tap.Reset(storetap.Hooks{})
		ctx, leave := context.WithCancel(t.Context())
		read := 0
		err := o.adm.ExportAuditLog(ctx, admin.System("test").Accepting(), admin.ExportAuditLogParams{}, writerFunc(func(b []byte) (int, error) {
			read += strings.Count(string(b), "\n")
			leave()
			return len(b), nil
		}))
		if err == nil || read > 600 {
			t.Errorf("%d lines after the client had gone, %v", read, err)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Revoking sessions leaves a row with their ids, for the hooks as well.
func TestEndedSessionsAreNamed(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		var told []auth.Event
		o := newOffice(t, store, auth.WithHooks(auth.Hooks{OnEvent: func(_ context.Context, e auth.Event) { told = append(told, e) }}))
		first := o.LoginAs(t, "ada@example.com")
		second, third := o.LoginAs(t, "ada@example.com"), o.LoginAs(t, "ada@example.com")
		if err := o.adm.EndSession(t.Context(), admin.System("test").Accepting(), first.SessionID, "lost"); err != nil {
			t.Fatal(err)
		}
		ended, err := o.adm.EndSessions(t.Context(), admin.System("test").Accepting(), first.User.ID, "lost")
		if err != nil || len(ended) != 2 {
			t.Fatalf("%v, %v", ended, err)
		}
		both := []string{second.SessionID, third.SessionID}
		slices.Sort(both)
		rows := o.audit()
		for i, want := range [][]string{both, {first.SessionID}} {
			hook := told[len(told)-1-i]
			if !slices.Equal(rows[i].SessionIDs, want) || hook.ID != rows[i].ID || !slices.Equal(hook.SessionIDs, want) {
				t.Errorf("recorded %v, told %v, want %v", rows[i].SessionIDs, hook.SessionIDs, want)
			}
		}
		fourth := o.LoginAs(t, "ada@example.com")
		if _, err := o.adm.RevokeSessions(t.Context(), admin.System("test").Accepting(), admin.RevokeSessionsParams{UserIDs: []string{first.User.ID}, Reason: "lost"}); err != nil {
			t.Fatal(err)
		}
		if row, hook := o.audit()[0], told[len(told)-1]; !slices.Equal(row.SessionIDs, []string{fourth.SessionID}) || hook.ID != row.ID || !slices.Equal(hook.SessionIDs, row.SessionIDs) {
			t.Errorf("recorded %v, told %v, want %v", row.SessionIDs, hook.SessionIDs, fourth.SessionID)
		}
		ban := o.LoginAs(t, "bob@example.com")
		if _, err := o.adm.BanUser(t.Context(), admin.System("test").Accepting(), admin.BanUserParams{UserID: ban.User.ID, Reason: "x"}); err != nil {
			t.Fatal(err)
		}
		if got := o.audit()[0]; !slices.Equal(got.SessionIDs, []string{ban.SessionID}) {
			t.Errorf("a ban: %v", got.SessionIDs)
		}
	})
}

// Statistics count the events. The overview shows the totals, the span before and the
// problems that need attention.
func TestStatsAndOverview(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		o.LoginAs(t, "yesterday@example.com")
		o.Clock.Advance(24 * time.Hour)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		for _, name := range []string{"ada@example.com", "bob@example.com"} {
			o.LoginAs(t, name)
		}
		if _, err := o.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: "wrong password 1"}); !errors.Is(err, auth.CodeInvalidCredentials) {
			t.Fatal(err)
		}
		o.written()
		sum := func(series any, metric, label string) (n float64) {
			list, _ := series.([]any)
			for _, s := range list {
				s, _ := s.(map[string]any)
				points, _ := s["points"].([]any)
				for _, p := range points {
					p, _ := p.(map[string]any)
					if c, _ := p["count"].(float64); s["metric"] == metric && s["label"] == label {
						n += c
					}
				}
			}
			return n
		}
		a := o.do(owner, "GET /stats?interval=day&metrics=sign_ins,sign_in_failures,active_users", "").want(200)
		for _, c := range []struct {
			metric, label string
			want          float64
		}{{"sign_ins", "password", 4}, {"sign_in_failures", "invalid_credentials", 1}, {"active_users", "day", 4}, {"sign_ups", "password", 0}} {
			if got := sum(a.body["series"], c.metric, c.label); got != c.want && (c.metric != "sign_ins" || got < c.want) {
				t.Errorf("%s %s: %v, want %v: %v", c.metric, c.label, got, c.want, a.body)
			}
		}
		v, err := o.adm.Overview(t.Context(), admin.System("test").Accepting(), admin.OverviewParams{})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(v.Figures, func(f admin.Figure) bool { return f.Metric == store.MetricSignIns && f.Label == "password" })
		if at < 0 || v.Figures[at].Count < 3 || v.Figures[at].Before != 1 {
			t.Errorf("figures %+v", v.Figures)
		}
		if v.Totals.Users != (store.Total{N: 4, Exact: true}) || v.Totals.WithFactor.N != 1 || v.Active[store.PeriodDay] != 3 {
			t.Errorf("%+v", v)
		}
		o.do(owner, "GET /overview?period=7d", "").want(200)
	})
}

// A client may repeat the request id of another request, but rows of the audit log also
// have an id that it cannot choose.
func TestRequestIDsOfTheAuditLog(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.operator("owner@example.com", "*")
		target := o.LoginAs(t, "ada@example.com")
		servers := map[string]bool{}
		for range 2 {
			a := o.do(owner, "POST /users/"+target.User.ID+"/ban", `{"reason":"x"}`, "X-Request-Id: r-1").want(200)
			o.do(owner, "POST /users/"+target.User.ID+"/unban", "", "X-Request-Id: r-1").want(200)
			if got := a.header.Get("X-Request-Id"); got != "r-1" {
				t.Errorf("the answer has the id %q", got)
			}
		}
		list := o.do(owner, "GET /audit-logs?request_id=r-1", "").want(200).body["events"].([]any)
		for _, row := range list {
			id, _ := row.(map[string]any)["server_request_id"].(string)
			servers[id] = id != ""
		}
		if len(list) != 4 || len(servers) != 4 || servers[""] {
			t.Errorf("%d rows with the ids %v", len(list), servers)
		}
		o.do(owner, "POST /users/"+target.User.ID+"/ban", `{"reason":"x"}`).want(200)
		if r := o.audit()[0].Record; r.RequestID == "" || r.ServerID != "" {
			t.Errorf("a client that chooses none has %+v", r)
		}
	})
}
