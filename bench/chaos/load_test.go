//go:build faults

package chaos

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// person is a user with an account, and the latest acknowledged state.
type person struct {
	email, id, password string
	access, refresh     string
	reset, next         string // token of a reset link, and the new password
	doubted             bool   // a request got no response, or 503
}

func newPerson(name string) *person {
	return &person{email: name + "@example.com", password: "tigers of " + name + " 47", next: "lions of " + name + " 48"}
}

func (p *person) credentials(password string) obj { return obj{"email": p.email, "password": password} }

// load runs users who sign up, reset passwords, sign out and refresh on several servers
// in turn, and records the acknowledged results.
type load struct {
	t       *testing.T
	servers []*server
	cuts    bool // broken connections are part of the test
	turn    atomic.Int64
	number  atomic.Int64
	stop    chan struct{}
	workers sync.WaitGroup

	toReset, toLeave chan *person

	mu                        sync.Mutex
	acked                     map[string]int
	unavailable, refused, cut int
	slowest, gap              time.Duration
	last                      time.Time
	signedUp, wasReset, left  []*person // acknowledged
	maybeSignedUp, maybeReset []*person // no answer, or 503
	refreshing                []*person
}

const workers = 8

// begin prepares accounts with reset links and starts the load. It ends with the test at the
// latest.
func begin(t *testing.T, prepared int, servers ...*server) *load {
	t.Helper()
	l := &load{
		t: t, servers: servers, stop: make(chan struct{}), acked: map[string]int{},
		toReset: make(chan *person, prepared), toLeave: make(chan *person, 10_000),
	}
	// A server's inbox holds 200 messages; each of these people gets two.
	each(len(servers), len(servers), func(i int) {
		s, people := servers[i], make([]*person, min(90, prepared/len(servers)))
		each(len(people), 4, func(j int) {
			people[j] = l.account(s, fmt.Sprintf("prepared-%d-%d", i, j))
			if r := s.call("POST", "/forgot-password", obj{"email": people[j].email}); r.status != 200 {
				t.Errorf("forgot-password: %v", r)
			}
		})
		for _, p := range people {
			p.reset = ""
		}
		eventually(t, 30*time.Second, "reset links", func() bool {
			links := map[string]string{}
			for _, m := range s.messages(t) {
				if strings.Contains(m.Link, "/reset-password") {
					links[m.To] = m.token()
				}
			}
			for _, p := range people {
				p.reset = links[p.email]
			}
			return !slices.ContainsFunc(people, func(p *person) bool { return p.reset == "" })
		})
		for _, p := range people {
			l.toReset <- p
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	l.last = time.Now()
	for i := range workers {
		own := l.account(servers[0], fmt.Sprintf("refresher-%d", i))
		l.refreshing = append(l.refreshing, own)
		l.workers.Go(func() { l.work(i, own) })
	}
	t.Cleanup(l.end)
	return l
}

// account signs somebody up who has to get an account.
func (l *load) account(s *server, name string) *person {
	p := newPerson(name)
	r := s.call("POST", "/signup", p.credentials(p.password))
	if r.status != 200 {
		l.t.Errorf("sign-up: %v", r)
	}
	p.id, p.access, p.refresh = r.body.User.ID, r.body.AccessToken, r.body.RefreshToken
	return p
}

// end stops the load and waits until the last request has its answer.
func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.workers.Wait()
}

func (l *load) work(i int, own *person) {
	for n := i; ; n++ {
		select {
		case <-l.stop:
			return
		case <-time.After(15 * time.Millisecond):
		}
		switch n % 4 {
		case 0:
			l.signUp()
		case 1:
			l.resetOne()
		case 2:
			l.leave()
		default:
			l.refreshOwn(own)
		}
	}
}

// ask sends a request to the next server and enters the answer into the ledger. Both
// results are false if the answer is neither the wanted one nor explained by the fault.
func (l *load) ask(kind string, want int, path string, body obj) (r reply, acknowledged, doubtful bool) {
	s := l.servers[l.turn.Add(1)%int64(len(l.servers))]
	r = s.call("POST", path, body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowest = max(l.slowest, r.took)
	if r.took > patience {
		l.t.Errorf("%s took %v: %v", kind, r.took, r)
	}
	switch {
	case r.err != nil && l.cuts:
		if errors.Is(r.err, syscall.ECONNREFUSED) {
			l.refused++
		} else {
			l.cut++
		}
		return r, false, true
	case r.status == 503:
		l.unavailable++
		if err := unavailable(r); err != nil {
			l.t.Errorf("%s: %v", kind, err)
		}
		return r, false, true
	case r.status == want:
		now := time.Now()
		l.gap, l.last = max(l.gap, now.Sub(l.last)), now
		l.acked[kind]++
		return r, true, false
	}
	return r, false, false
}

func (l *load) signUp() {
	p := newPerson(fmt.Sprintf("signup-%d", l.number.Add(1)))
	r, ok, doubtful := l.ask("sign-up", 200, "/signup", p.credentials(p.password))
	p.id, p.access, p.refresh = r.body.User.ID, r.body.AccessToken, r.body.RefreshToken
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case ok:
		l.signedUp = append(l.signedUp, p)
		l.toLeave <- p
	case doubtful:
		l.maybeSignedUp = append(l.maybeSignedUp, p)
	default:
		l.t.Errorf("sign-up: %v", r)
	}
}

func (l *load) resetOne() {
	var p *person
	select {
	case p = <-l.toReset:
	default:
		return // all done
	}
	r, ok, doubtful := l.ask("reset", 200, "/reset-password", obj{"token": p.reset, "new_password": p.next})
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case ok:
		l.wasReset = append(l.wasReset, p)
	case doubtful:
		p.doubted = true
		l.toReset <- p // people try again
	case p.doubted && r.code == "invalid_token": // the one without an answer had worked
		l.maybeReset = append(l.maybeReset, p)
	default:
		l.t.Errorf("reset: %v", r)
	}
}

func (l *load) leave() {
	var p *person
	select {
	case p = <-l.toLeave:
	default:
		return
	}
	r, ok, doubtful := l.ask("logout", 204, "/logout", obj{"refresh_token": p.refresh})
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case ok:
		l.left = append(l.left, p)
	case doubtful:
		l.toLeave <- p
	default:
		l.t.Errorf("logout: %v", r)
	}
}

func (l *load) refreshOwn(p *person) {
	r, ok, doubtful := l.ask("refresh", 200, "/refresh", obj{"refresh_token": p.refresh})
	switch {
	case ok:
		p.refresh, p.access = r.body.RefreshToken, r.body.AccessToken
	case !doubtful:
		l.t.Errorf("refresh: %v", r)
	}
}

// count is how many requests were acknowledged and how many were answered with
// 503.
func (l *load) count() (acked, unavailable int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.acked {
		acked += n
	}
	return acked, l.unavailable
}

// flows waits until that many more requests have been acknowledged.
func (l *load) flows(more int, patience time.Duration) {
	l.t.Helper()
	before, _ := l.count()
	eventually(l.t, patience, fmt.Sprintf("%d requests acknowledged", more), func() bool {
		now, _ := l.count()
		return now >= before+more
	})
}

// report logs the figures.
func (l *load) report() {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(l.acked)) {
		parts = append(parts, fmt.Sprintf("%d %s", l.acked[kind], kind))
	}
	l.t.Logf("acknowledged: %s; answered 503: %d; connections cut: %d, refused: %d; sign-ups in doubt: %d, resets: %d; slowest answer %v; longest time without one acknowledged %v",
		strings.Join(parts, ", "), l.unavailable, l.cut, l.refused, len(l.maybeSignedUp), len(l.maybeReset), l.slowest.Round(time.Millisecond), l.gap.Round(time.Millisecond))
}

// verify checks on one server that every acknowledged change holds, and that no doubtful
// one is partial. database is the server's database, for direct checks.
func (l *load) verify(s *server, database string) {
	t := l.t
	t.Helper()
	l.end()
	for _, kind := range []string{"sign-up", "reset", "logout", "refresh"} {
		if l.acked[kind] == 0 {
			t.Errorf("no %s was acknowledged", kind)
		}
	}
	login := func(p *person, password string) reply { return s.call("POST", "/login", p.credentials(password)) }
	works := func(p *person, password string) bool {
		r := login(p, password)
		if r.status != 200 && r.code != "invalid_credentials" {
			t.Errorf("login of %s: %v", p.email, r)
		}
		return r.status == 200
	}
	ended := func(p *person) bool {
		r := s.call("POST", "/refresh", obj{"refresh_token": p.refresh})
		if r.status != 200 && r.code != "session_ended" {
			t.Errorf("refresh of %s: %v", p.email, r)
		}
		return r.status == 400
	}
	each(len(l.signedUp), 4, func(i int) {
		if p := l.signedUp[i]; true {
			if r := login(p, p.password); r.status != 200 || r.body.User.ID != p.id {
				t.Errorf("%s signed up as %s, and login says: %v", p.email, p.id, r)
			}
		}
	})
	each(len(l.wasReset), 4, func(i int) {
		p := l.wasReset[i]
		s.refused(t, 400, "invalid_token", "POST", "/reset-password", obj{"token": p.reset, "new_password": p.next + " again"})
		if !works(p, p.next) || works(p, p.password) || !ended(p) {
			t.Errorf("the reset of %s was acknowledged, and is not so", p.email)
		}
	})
	each(len(l.left), 4, func(i int) {
		if p := l.left[i]; !ended(p) || s.call("GET", "/me", nil, bearer(p.access)...).status != 401 {
			t.Errorf("the logout of %s was acknowledged, and is not so", p.email)
		}
	})
	each(len(l.refreshing), 4, func(i int) {
		if p := l.refreshing[i]; ended(p) {
			t.Errorf("the session of %s was lost", p.email)
		}
	})
	// A change without an answer happened wholly or not at all.
	close(l.toReset)
	for p := range l.toReset {
		if p.doubted {
			l.maybeReset = append(l.maybeReset, p)
		}
	}
	each(len(l.maybeReset), 4, func(i int) {
		p := l.maybeReset[i]
		if done := works(p, p.next); done == works(p, p.password) || done != ended(p) {
			t.Errorf("the reset of %s happened by half (new password: %v)", p.email, done)
		}
	})
	var there atomic.Int32
	each(len(l.maybeSignedUp), 4, func(i int) {
		if p := l.maybeSignedUp[i]; works(p, p.password) {
			there.Add(1)
		} else if r := s.call("POST", "/signup", p.credentials(p.password)); r.status != 200 {
			t.Errorf("%s has no account, and gets none: %v", p.email, r)
		}
	})
	if n := len(l.maybeSignedUp); n > 0 {
		t.Logf("of %d sign-ups without an answer, %d had worked", n, there.Load())
	}
	whole(t, database)
}

// whole checks that there is no half of anything.
func whole(t *testing.T, database string) {
	t.Helper()
	if path, ok := strings.CutPrefix(database, "sqlite:"); ok {
		wholeFile(t, path)
		return
	}
	for what, sql := range map[string]string{
		"accounts with a password and no session ever": "select count(*) from auth.users u where password_hash <> '' and not exists (select from auth.sessions s where s.user_id = u.id)",
		"unconfirmed accounts without a link":          "select count(*) from auth.users u where email_verified_at is null and email is not null and not exists (select from auth.tokens t where t.user_id = u.id and t.purpose = 'verify_email')",
		"sessions of nobody":                           "select count(*) from auth.sessions s where not exists (select from auth.users u where u.id = s.user_id)",
		"tokens of nobody":                             "select count(*) from auth.tokens t where t.user_id is not null and not exists (select from auth.users u where u.id = t.user_id)",
		"identities of nobody":                         "select count(*) from auth.identities i where not exists (select from auth.users u where u.id = i.user_id)",
	} {
		if n := ask[int](t, database, sql); n != 0 {
			t.Errorf("%s: %d", what, n)
		}
	}
}
