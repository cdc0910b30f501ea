package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/authmount/auth/internal/browsertest"
	"github.com/authmount/auth/internal/pgtest"
)

// shop is a server with demo data, as its owner sees it.
type shop struct {
	t               *testing.T
	url, token      string
	email, password string
	codes           []string // recovery codes
}

// open starts a server with -demo, and signs the owner in.
func open(t *testing.T, args ...string) *shop {
	t.Helper()
	at, shown, stop := launch(t, nil, append([]string{"-demo", "-app-name", "Notes"}, args...)...)
	t.Cleanup(func() { _ = stop() })
	said := func(what string) string {
		m := regexp.MustCompile(`(?m)^  ` + what + ` +(.+)$`).FindStringSubmatch(shown)
		if m == nil {
			t.Fatalf("it does not print %s:\n%s", what, shown)
		}
		return m[1]
	}
	s := &shop{t: t, url: at, email: said("email"), password: said("password"), codes: strings.Fields(said("recovery codes"))}
	if !strings.Contains(shown, at+"/dashboard/") {
		t.Errorf("it does not print the dashboard's address:\n%s", shown)
	}
	_, body := call(t, http.MethodPost, at+"/auth/v1/login", fmt.Sprintf(`{"email":%q,"password":%q}`, s.email, s.password))
	_, body = call(t, http.MethodPost, at+"/auth/v1/2fa/verify", fmt.Sprintf(`{"mfa_token":%q,"recovery_code":%q}`, decode(t, body)["mfa_token"], s.codes[0]))
	s.token, _ = decode(t, body)["access_token"].(string)
	if s.token == "" {
		t.Fatal(body)
	}
	return s
}

func decode(t *testing.T, body string) (o map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return o
}

// read returns an answer of the admin API.
func (s *shop) read(path string) map[string]any {
	s.t.Helper()
	status, body := call(s.t, http.MethodGet, s.url+"/auth/v1/admin/"+path, "", "Authorization", "Bearer "+s.token)
	if status != http.StatusOK {
		s.t.Fatalf("%s: %d %s", path, status, body)
	}
	return decode(s.t, body)
}

// all returns the rows of all pages of a list.
func (s *shop) all(name, path string) (rows []map[string]any) {
	s.t.Helper()
	for cursor := ""; ; {
		page := s.read(path + "&limit=200&cursor=" + url.QueryEscape(cursor))
		for _, r := range page[name].([]any) {
			rows = append(rows, r.(map[string]any))
		}
		next, more := page["next_cursor"].(string)
		if !more {
			return rows
		}
		cursor = next
	}
}

// With -demo there is something to see of everything that the dashboard shows.
func TestDemo(t *testing.T) {
	database := ""
	for store, args := range map[string]func(t *testing.T) []string{
		"memory": func(*testing.T) []string { return nil },
		"postgres": func(t *testing.T) []string {
			t.Helper()
			database = pgtest.Database(t)
			return []string{"-database-url", database, "-secret", secret}
		},
	} {
		t.Run(store, func(t *testing.T) {
			s := open(t, args(t)...)
			s.people()
			s.messages()
			s.records()
			s.limited()
			if store == "memory" {
				s.browse()
				return
			}
			err := run([]string{"-addr", "127.0.0.1:0", "-demo", "-database-url", database, "-secret", secret})
			if err == nil || !strings.Contains(err.Error(), "the database has accounts") {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// atLeast fails unless a list has some rows.
func (s *shop) atLeast(n int, name, path string) []map[string]any {
	s.t.Helper()
	rows := s.all(name, path)
	if len(rows) < n {
		s.t.Errorf("%s: %d rows, want %d: %v", path, len(rows), n, rows)
	}
	return rows
}

func (s *shop) people() {
	s.t.Helper()
	users := s.atLeast(45, "users", "users?order=asc")
	if len(users) > 60 {
		s.t.Errorf("%d users", len(users))
	}
	address := regexp.MustCompile(`^[a-z0-9._@-]+@(example\.(com|org|net)|anonymized\.invalid)$`)
	phones := 0
	for _, u := range users {
		if email, _ := u["email"].(string); email != "" && !address.MatchString(email) {
			s.t.Errorf("the address %s may belong to somebody", email)
		}
		if u["phone"] != nil {
			phones++
		}
	}
	if phones < 2 {
		s.t.Errorf("%d accounts with a phone number", phones)
	}
	for query, n := range map[string]int{
		"role=owner": 1, "role=admin": 1, "role=support": 2, "role=editor": 3, "status=waiting": 1, "status=banned": 2, "status=unconfirmed": 1,
		"mfa=true": 7, "provider=github": 2, "provider=google": 3,
	} {
		s.atLeast(n, "users", "users?"+query)
	}
	victim := s.atLeast(1, "users", "users?email=gerald.whitcombe@example.org")[0]
	if locks := s.read("users/" + victim["id"].(string))["locks"].([]any); len(locks) == 0 {
		s.t.Error("no account is locked")
	}
	if gone := s.all("users", "users?status=banned"); !slices.ContainsFunc(gone, func(u map[string]any) bool { return u["email"] == nil && u["full_name"] == nil }) {
		s.t.Errorf("no account is anonymised: %v", gone)
	}
	agents, devices := map[string]bool{}, map[string]int{}
	for _, row := range s.atLeast(40, "sessions", "sessions?") {
		agents[row["session"].(map[string]any)["device"].(string)] = true
		devices[row["user_id"].(string)]++
	}
	several := 0
	for _, n := range devices {
		if n > 1 {
			several++
		}
	}
	if len(agents) < 7 || several < 5 {
		s.t.Errorf("%d kinds of devices, %d people with several: %v", len(agents), several, agents)
	}
}

func (s *shop) messages() {
	s.t.Helper()
	for state, n := range map[string]int{"sent": 20, "failed": 1, "queued": 1} {
		s.atLeast(n, "messages", "messages?state="+state)
	}
	open := s.atLeast(3, "invitations", "invitations?") // two, and the waiting operator's
	if slices.ContainsFunc(open, func(i map[string]any) bool { return i["email"] == "former.intern@example.net" }) {
		s.t.Error("the invitation that expired is open")
	}
}

func (s *shop) records() {
	s.t.Helper()
	for action, n := range map[string]int{
		"user.signed_up": 25, "user.signed_in": 60, "sign_in.failed": 100, "device.new": 10, "user.imported": 10, "mfa.enabled": 7,
		"recovery_code.used": 1, "recovery_codes.replaced": 1, "password.reset": 2, "message.failed": 1,
		"invitation.sent": 4, "invitation.accepted": 2, "key.created": 4, "key.revoked": 1, "impersonation.begun": 1, "impersonation.ended": 1,
		"user.banned": 1, "user.anonymized": 1, "job.started": 2,
	} {
		s.atLeast(n, "events", "audit-logs?action="+action)
	}
	for _, e := range s.atLeast(6, "events", "audit-logs?action=user.roles_changed") {
		if by := e["actor"].(map[string]any); by["kind"] != "user" && (by["kind"] != "system" || by["label"] != "setup") {
			s.t.Errorf("a role was given by %v", by)
		}
	}
	first := s.all("events", "audit-logs?action=user.signed_up")
	if at, err := time.Parse(time.RFC3339Nano, first[len(first)-1]["at"].(string)); err != nil || time.Since(at) < 28*24*time.Hour {
		s.t.Errorf("the first sign-up was %v, %v", at, err)
	}
	s.atLeast(4, "keys", "keys?")
	id := s.all("events", "audit-logs?action=job.started")[0]["target"].(string)
	if job := s.read("jobs/" + id); job["failed"] != 3.0 || job["done"] != 1.0 {
		s.t.Errorf("the failed import: %v", job)
	}
	status, results := call(s.t, http.MethodGet, s.url+"/auth/v1/admin/jobs/"+id+"/results", "", "Authorization", "Bearer "+s.token)
	if status != http.StatusOK || !strings.Contains(results, `There is no role \"edtior\".`) {
		s.t.Errorf("its results: %d %s", status, results)
	}
	if denied := s.all("events", "audit-logs?action=admin.denied"); len(denied) > 0 {
		s.t.Errorf("the staff was refused: %v", denied[0])
	}
}

// limited fails unless the server limits attempts as ever.
func (s *shop) limited() {
	s.t.Helper()
	for range 10 {
		call(s.t, http.MethodPost, s.url+"/auth/v1/login", `{"email":"stranger@example.org","password":"wrong horse battery"}`)
	}
	if status, body := call(s.t, http.MethodPost, s.url+"/auth/v1/login", `{"email":"stranger@example.org","password":"wrong horse battery"}`); status != http.StatusTooManyRequests {
		s.t.Errorf("the eleventh attempt: %d %s", status, body)
	}
}

// browse looks at the dashboard with a browser, which complains about nothing.
func (s *shop) browse() {
	s.t.Helper()
	ctx := browsertest.New(s.t, 1440, 1600)
	browsertest.FailOnErrors(ctx, s.t)
	amara := s.all("users", "users?email=amara.nwosu@example.net")[0]["id"].(string)
	says := func(text string) chromedp.Action {
		return browsertest.Until(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
	}
	browsertest.Do(ctx, s.t, chromedp.Navigate(s.url+"/dashboard/?period=30d"),
		browsertest.Type(`[name=login]`, s.email), browsertest.Type(`[name=password]`, s.password+kb.Enter),
		browsertest.Click(`a[href$="with=recovery"]`), browsertest.Type(`[name=code][autocomplete=off]`, s.codes[1]+kb.Enter),
		browsertest.Visible(`nav.side`), chromedp.Navigate(s.url+"/dashboard/?period=30d"),
		browsertest.Visible(`.plot rect`), says("Active this month"), says("Messages cannot be sent"), browsertest.Shot(s.t, "demo-overview"),
		chromedp.Navigate(s.url+"/dashboard/users"), says("Zofia Kowalska"), says("Banned"), browsertest.Shot(s.t, "demo-users"),
		chromedp.Navigate(s.url+"/dashboard/users/"+amara), says("Amara Nwosu"), says("Verified"), browsertest.Shot(s.t, "demo-user"),
		chromedp.Navigate(s.url+"/dashboard/users/"+amara+"?tab=sessions"), says("iPhone"), says("Windows"), says("198.51.100."), browsertest.Shot(s.t, "demo-sessions"),
		chromedp.Navigate(s.url+"/dashboard/users/"+amara+"?tab=timeline"), says("Recovery code"), browsertest.Shot(s.t, "demo-timeline"),
		chromedp.Navigate(s.url+"/dashboard/messages"), says("greylisted"), says("mailbox full"), browsertest.Shot(s.t, "demo-messages"),
		chromedp.Navigate(s.url+"/dashboard/audit"), says("helena.brandt@example.com"), browsertest.Shot(s.t, "demo-audit"))
}
