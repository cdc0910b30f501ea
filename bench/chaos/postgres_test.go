//go:build faults

package chaos

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/internal/pgtest"
)

// trio starts three servers without rate limits.
func trio(t *testing.T, database string) []*server {
	t.Helper()
	var servers []*server
	for range 3 {
		servers = append(servers, serve(t, database, "-no-rate-limit"))
	}
	return servers
}

// down waits until every server has reported an outage, and for the duration of the
// fault.
func (l *load) down(d time.Duration) {
	l.t.Helper()
	_, before := l.count()
	for _, s := range l.servers {
		if err := unavailable(s.call("GET", "/healthz", nil)); err != nil {
			l.t.Errorf("health of %s: %v", s.addr, err)
		}
	}
	pause(d)
	eventually(l.t, 30*time.Second, "requests answered with 503", func() bool {
		_, now := l.count()
		return now >= before+workers
	})
}

// up waits until all of the same processes work again.
func (l *load) up() {
	l.t.Helper()
	l.flows(40, 30*time.Second)
	for _, s := range l.servers {
		s.alive(l.t)
		eventually(l.t, 10*time.Second, "health of "+s.addr, func() bool { return s.call("GET", "/healthz", nil).status == 200 })
	}
}

// crashed fails the test if a stopped cluster was shut down cleanly.
func crashed(t *testing.T, pg *pgtest.Server) {
	t.Helper()
	out, err := pg.Command("pg_controldata", pg.Dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out, []byte("shut down")) {
		t.Errorf("not a crash:\n%s", out)
	}
}

func TestPostgresStoppedHardUnderLoad(t *testing.T) {
	pg := postgres(t)
	servers := trio(t, pg.URL)
	l := begin(t, 90, servers...)
	for range 2 {
		l.flows(60, 30*time.Second)
		pg.Stop(syscall.SIGQUIT)
		crashed(t, pg)
		l.down(1500 * time.Millisecond)
		if err := pg.Run("max_connections=100"); err != nil {
			t.Fatal(err)
		}
		l.up()
	}
	l.end()
	l.report()
	l.verify(servers[0], pg.URL)
}

// A database that accepts connections and does not respond: a frozen machine, a hung
// disk.
func TestPostgresFrozenUnderLoad(t *testing.T) {
	pg := postgres(t)
	servers := trio(t, pg.URL)
	l := begin(t, 60, servers...)
	l.flows(40, 30*time.Second)
	pids := []int{postmaster(t, pg)}
	for pid := range strings.FieldsSeq(ask[string](t, pg.URL, "select string_agg(pid::text, ' ') from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()")) {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, n)
	}
	if len(pids) < 2 {
		t.Fatal("no connections to freeze")
	}
	all := func(sig syscall.Signal) {
		for _, pid := range pids {
			_ = syscall.Kill(pid, sig) // it may have stopped
		}
	}
	defer all(syscall.SIGCONT)
	all(syscall.SIGSTOP)
	_, before := l.count()
	// Every worker gets an error before its client times out: pgstore's timeout.
	eventually(t, patience, "answers of 503", func() bool {
		_, now := l.count()
		return now >= before+workers
	})
	all(syscall.SIGCONT)
	l.up()
	l.end()
	l.report()
	if l.slowest < 5*time.Second {
		t.Errorf("the slowest answer took %v: nothing was frozen", l.slowest)
	}
	l.verify(servers[0], pg.URL)
}

func postmaster(t *testing.T, pg *pgtest.Server) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(pg.Dir, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestPrimaryKilledUnderLoad(t *testing.T) {
	primary := postgres(t, "synchronous_commit=on")
	standby := primary.Clone("standby")
	if out, err := primary.Command("pg_basebackup", "-D", standby.Dir, "-d", primary.URL, "-R", "-X", "stream", "-c", "fast").CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v\n%s", err, out)
	}
	t.Cleanup(func() { standby.Stop(syscall.SIGINT) })
	if err := standby.Run("max_connections=100"); err != nil {
		t.Fatal(err)
	}
	// Only now, so that the standby does not wait for its own standby later.
	execute(t, primary.URL, "alter system set synchronous_standby_names = '*'", "select pg_reload_conf()")
	eventually(t, 30*time.Second, "synchronous standby", func() bool {
		return ask[bool](t, primary.URL, "select exists (select from pg_stat_replication where sync_state = 'sync')")
	})
	servers := trio(t, "host=127.0.0.1,127.0.0.1 port="+primary.Port()+","+standby.Port()+" user=postgres dbname=postgres sslmode=disable target_session_attrs=read-write")

	l := begin(t, 90, servers...)
	l.flows(60, 30*time.Second)
	if !ask[bool](t, standby.URL, "select pg_is_in_recovery()") {
		t.Fatal("the standby is none")
	}
	primary.Stop(syscall.SIGKILL)
	crashed(t, primary)
	l.down(500 * time.Millisecond) // the standby runs and accepts no writes
	began := time.Now()
	if !ask[bool](t, standby.URL, "select pg_promote(true, 30)") {
		t.Fatal("not promoted")
	}
	promoted := time.Since(began)
	l.up()
	t.Logf("promoted in %v; every server worked %v after that was asked for", promoted.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	l.end()
	l.report()
	l.verify(servers[2], standby.URL)
}

// held takes a lock in a separate transaction until it is released.
func held(t *testing.T, url, sql string, args ...any) (release func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	c, err := pgx.Connect(ctx, url)
	if err == nil {
		_, err = c.Exec(ctx, "begin")
	}
	if err == nil {
		_, err = c.Exec(ctx, sql, args...)
	}
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		_ = c.Close(ctx)
		cancel()
	})
	t.Cleanup(release)
	return release
}
