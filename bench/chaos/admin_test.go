//go:build faults

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// key is a secret key of the servers under test.
const key = "sk_test_chaos_0123456789"

// office runs operators on several servers in turn and records the responses.
type office struct {
	t       *testing.T
	servers []*server
	owner   string // an access token
	bans    string // a key that may ban more than 50 accounts an hour
	people  []string
	turn    atomic.Int64
	stop    chan struct{}
	workers sync.WaitGroup

	mu     sync.Mutex
	acked  map[string]int
	jobs   []string // acknowledged
	failed int      // no response, or 503
}

const (
	importRows = 1100 // rows per import: three chunks
	staffed    = 40
)

// openOffice creates an owner and accounts, and starts to work.
func openOffice(t *testing.T, servers ...*server) *office {
	t.Helper()
	s := servers[0]
	o := &office{t: t, servers: servers, stop: make(chan struct{}), acked: map[string]int{}}
	signedUp := s.must(t, 200, "POST", "/signup", obj{"email": "owner@example.com", "password": "tigers of owner 47"}).body
	link := s.message(t, "owner@example.com", "/verify-email")
	s.must(t, 200, "POST", "/verify-email", obj{"token": link.token()}, bearer(signedUp.AccessToken)...)
	eventually(t, 10*time.Second, "the owner", func() bool { // becomes owner in the background
		o.signIn(s)
		return o.asOwner(s, "GET", "/admin/keys", nil).status == 200
	})
	made := o.asOwner(s, "POST", "/admin/keys", obj{"name": "bans", "scopes": []string{"*"}, "hourly_limit": 100_000})
	o.bans = string(bytes.Trim(made.field("key"), `"`))
	// A role with permissions of the application only: one with operator permissions would
	// mail a link at each grant.
	if r := o.asOwner(s, "POST", "/admin/roles", obj{"name": "editor", "permissions": []string{}}); r.status != 201 {
		t.Fatal(r)
	}
	for i := range staffed {
		s.must(t, 201, "POST", "/admin/users", obj{"email": fmt.Sprintf("person%d@example.com", i)}, bearer(key)...)
		o.people = append(o.people, string(bytes.Trim(s.must(t, 200, "GET", fmt.Sprintf("/admin/users/lookup?email=person%d@example.com", i), nil, bearer(key)...).field("id"), `"`)))
	}
	for _, work := range []func(s *server, n int){o.roles, o.settings, o.bulk, o.imports} {
		o.workers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-o.stop:
					return
				default:
					work(o.servers[o.turn.Add(1)%int64(len(o.servers))], n)
				}
			}
		})
	}
	t.Cleanup(o.close)
	return o
}

func (o *office) close() {
	select {
	case <-o.stop:
	default:
		close(o.stop)
	}
	o.workers.Wait()
}

// signIn gets the owner a new access token.
func (o *office) signIn(s *server) {
	if r := s.call("POST", "/login", obj{"email": "owner@example.com", "password": "tigers of owner 47"}); r.status == 200 {
		o.mu.Lock()
		o.owner = r.body.AccessToken
		o.mu.Unlock()
	}
}

// asOwner sends a request as the owner, and gets a new token if the response requires
// that, as clients do.
func (o *office) asOwner(s *server, method, path string, body obj) reply {
	for again := false; ; again = true {
		o.mu.Lock()
		token := o.owner
		o.mu.Unlock()
		r := s.call(method, path, body, bearer(token)...)
		if r.code != "token_stale" || again {
			return r
		}
		pause(time.Second) // times in tokens are in seconds
		o.signIn(s)
	}
}

// note records a response. A response that is neither a success nor explained by the
// fault fails the test.
func (o *office) note(what string, r reply, ok int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case r.status == ok:
		o.acked[what]++
		return true
	case r.err != nil, r.status == 503:
		o.failed++
		pauseABit()
	default:
		o.t.Errorf("%s: %v", what, r)
	}
	return false
}

func pauseABit() { pause(20 * time.Millisecond) }

func (o *office) roles(s *server, n int) {
	id, method := o.people[n/2%staffed], "POST"
	if n%2 == 1 {
		method = "DELETE"
	}
	o.note("roles", o.asOwner(s, method, "/admin/users/"+id+"/roles/editor", nil), 200)
}

func (o *office) settings(s *server, n int) {
	o.note("settings", o.asOwner(s, "PATCH", "/admin/settings", obj{"password_min_length": 8 + n%5}), 200)
	pauseABit()
}

func (o *office) bulk(s *server, n int) {
	action := []string{"ban", "unban"}[n%2]
	r := s.call("POST", "/admin/users/bulk", obj{"action": action, "reason": "chaos", "ids": o.people}, bearer(o.bans)...)
	if o.note("bulk", r, 200) && !bytes.Contains(r.raw, []byte(fmt.Sprintf(`"done":%d`, staffed))) && !bytes.Contains(r.raw, []byte("unavailable")) {
		o.t.Errorf("bulk: %s", r.raw)
	}
}

func (o *office) imports(s *server, n int) {
	var rows strings.Builder
	for i := range importRows {
		fmt.Fprintf(&rows, "{\"email\":\"import-%d-%d@example.com\",\"full_name\":\"Person %d\"}\n", n, i, i)
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.url+"/auth/v1/admin/users/import", strings.NewReader(rows.String()))
	if err != nil {
		o.t.Error(err)
		return
	}
	r := s.send(req, append(bearer(key), "Content-Type", "application/x-ndjson")...)
	if o.note("imports", r, 202) {
		o.mu.Lock()
		o.jobs = append(o.jobs, string(bytes.Trim(r.field("job_id"), `"`)))
		o.mu.Unlock()
	}
	pause(200 * time.Millisecond)
}

// until waits until each kind of work was acknowledged this many more times.
func (o *office) until(more int) {
	o.t.Helper()
	o.mu.Lock()
	var before [4]int
	kinds := []string{"roles", "settings", "bulk", "imports"}
	for i, what := range kinds {
		before[i] = o.acked[what]
	}
	o.mu.Unlock()
	eventually(o.t, 60*time.Second, fmt.Sprintf("%d more of each", more), func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		for i, what := range kinds {
			if o.acked[what] < before[i]+more {
				return false
			}
		}
		return true
	})
}

// verify compares the acknowledged work, its effects and the audit log: every change of
// an account or of the settings has one row, and every job is done.
func (o *office) verify(database string) {
	t := o.t
	t.Helper()
	o.close()
	s := o.servers[0]
	for _, id := range o.jobs {
		eventually(t, 60*time.Second, "job "+id, func() bool {
			return string(s.call("GET", "/admin/jobs/"+id, nil, bearer(key)...).field("state")) == `"done"`
		})
		if r := s.must(t, 200, "GET", "/admin/jobs/"+id+"/results", nil, bearer(key)...); bytes.Count(r.raw, []byte("\n")) != importRows || bytes.Count(r.raw, []byte(`"result":"done"`)) != importRows {
			t.Errorf("job %s has %d results, %d of them done: %.300s", id, bytes.Count(r.raw, []byte("\n")), bytes.Count(r.raw, []byte(`"result":"done"`)), r.raw)
		}
	}
	eventually(t, 60*time.Second, "all jobs are done", func() bool { // also jobs without a response
		return ask[int](t, database, "select count(*)::int from auth.jobs where state = 'running'") == 0
	})
	const done = "from auth.events e where e.data ? 'record' and not coalesce((e.data->'record'->>'denied')::boolean, false)"
	for what, query := range map[string]string{
		"accounts whose changes and rows differ":  "select count(*)::int from auth.users u where u.email like 'person%' and u.revision <> (select count(*) - 1 " + done + " and e.user_id = u.id)",
		"imported accounts without their one row": "select count(*)::int from auth.users u where u.email like 'import-%' and 1 <> (select count(*) " + done + " and e.user_id = u.id)",
		"rows of imports without an account":      "select count(*)::int " + done + " and e.type = 'user.imported' and not exists (select from auth.users u where u.id = e.user_id)",
		"halves of imports":                       "select count(*)::int from (select split_part(u.email, '-', 2) as n from auth.users u where u.email like 'import-%' group by 1 having count(*) <> 1100) as h",
		"settings that differ from their rows":    "select (coalesce((select revision from auth.settings), 0) - (select count(*) " + done + " and e.type = 'settings.changed'))::int",
	} {
		if n := ask[int](t, database, query); n != 0 {
			t.Errorf("%s: %d", what, n)
		}
	}
	if n := ask[int](t, database, "select count(*)::int from auth.users where email like 'import-%'"); n < o.acked["imports"]*importRows {
		t.Errorf("%d accounts of %d imports", n, o.acked["imports"])
	}
	t.Logf("acknowledged %v; %d requests without an answer, or 503", o.acked, o.failed)
}

func theOffice(t *testing.T, database string) []*server {
	var servers []*server
	for range 2 {
		servers = append(servers, serve(t, database, "-no-rate-limit", "-owner", "owner@example.com", "-admin-mfa=false", "-secret-key", key+"=*"))
	}
	return servers
}

// Operators continue while servers are killed: no acknowledged work is lost, no work is
// done partially, and the audit log has exactly one row for each effect.
func TestServersKilledWhileOperatorsWork(t *testing.T) {
	pg := postgres(t)
	servers := theOffice(t, pg.URL)
	o := openOffice(t, servers...)
	o.until(2)
	for range 2 {
		for _, s := range servers {
			eventually(t, 30*time.Second, "requests in flight", func() bool { return s.inflight.Load() >= 1 })
			s.p.kill(syscall.SIGKILL)
			pause(300 * time.Millisecond)
			s.start(t)
			o.until(2)
		}
	}
	o.verify(pg.URL)
}

// The same while the database crashes and restarts.
func TestPostgresStoppedHardWhileOperatorsWork(t *testing.T) {
	pg := postgres(t)
	servers := theOffice(t, pg.URL)
	o := openOffice(t, servers...)
	for range 2 {
		o.until(2)
		pg.Stop(syscall.SIGQUIT)
		crashed(t, pg)
		pause(time.Second)
		if err := pg.Run("max_connections=100"); err != nil {
			t.Fatal(err)
		}
	}
	o.until(2)
	o.verify(pg.URL)
}
