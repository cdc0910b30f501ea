//go:build faults

package chaos

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
	"github.com/authmount/auth/storetest"
)

// connections is the number of PgBouncer's connections to Postgres; its clients have
// more.
const connections = 5

// bouncer runs PgBouncer in transaction mode in front of a cluster, and returns the
// connection string of the database through it.
func bouncer(t *testing.T, pg *pgtest.Server) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // not in every PATH
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	ini := filepath.Join(filepath.Dir(pg.Dir), "pgbouncer.ini")
	settings := fmt.Appendf(nil, `[databases]
* = host=127.0.0.1 port=%s user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 500
default_pool_size = %d
`, pg.Port(), port, connections)
	if err := os.WriteFile(ini, settings, 0o644); err != nil { //nolint:gosec // another user reads it
		t.Fatal(err)
	}
	cmd := pg.Command("", ini) // as the user that may run it
	cmd.Path, cmd.Args[0] = program, program
	spawn(t, cmd, regexp.MustCompile("process up"))
	return "host=127.0.0.1 port=" + port + " user=postgres dbname=postgres sslmode=disable"
}

// The required connection string behind PgBouncer in transaction mode: no prepared
// statement may remain on a connection between statements.
var modes = []string{"cache_describe", "exec", "simple_protocol"}

func TestStoreBehindPgBouncer(t *testing.T) {
	pg := postgres(t, "synchronous_commit=off") // the suite tests correctness
	url := bouncer(t, pg)
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			cfg, err := pgxpool.ParseConfig(url + " default_query_exec_mode=" + mode)
			if err != nil {
				t.Fatal(err)
			}
			cfg.MaxConns = 20
			pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			n := 0
			r := &pgtest.Reused[auth.Store]{As: pool, Open: func() (auth.Store, string) {
				n++ // stores are opened one at a time
				schema := fmt.Sprintf("%s_%d", mode, n)
				s, err := pgstore.New(pool, pgstore.WithSchema(schema))
				if err == nil {
					err = s.Migrate(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				return s, schema
			}}
			storetest.Run(t, func(t *testing.T) auth.Store { return r.Store(t) })
			clients, backends := pool.Stat().TotalConns(), ask[int32](t, pg.URL, "select count(*)::int from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()")
			t.Logf("%d connections to PgBouncer, %d from there to Postgres", clients, backends)
			if clients <= connections || backends > connections {
				t.Error("nothing was shared")
			}
		})
	}
}

// The reason for the setting: without it pgx prepares statements that the next connection
// does not have.
func TestPreparedStatementsFailBehindPgBouncer(t *testing.T) {
	pg := postgres(t)
	s, err := pgstore.Open(t.Context(), bouncer(t, pg)+" pool_max_conns=20")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	direct, err := pgstore.Open(t.Context(), pg.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(direct.Close)
	if err := direct.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var failed error
	each(200, 20, func(int) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := s.PeekToken(ctx, store.PurposeReset, []byte("x"), time.Now()); err != nil && strings.Contains(err.Error(), "prepared statement") {
			mu.Lock()
			defer mu.Unlock()
			failed = err
		}
	})
	if failed == nil {
		t.Error("prepared statements work behind this PgBouncer; README.md says otherwise")
	}
	t.Log(failed)
}

func TestServersBehindPgBouncer(t *testing.T) {
	pg := postgres(t)
	url := bouncer(t, pg)
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			schemaGone(t, pg)
			servers := trio(t, url+" default_query_exec_mode="+mode)
			l := begin(t, 15, servers...)
			l.flows(60, 30*time.Second)
			l.end()
			l.report()
			if l.unavailable > 0 {
				t.Errorf("%d answers of 503", l.unavailable)
			}
			p := l.account(servers[0], "ada")
			in := servers[1].must(t, 200, "POST", "/login", p.credentials(p.password)).body
			again := servers[2].must(t, 200, "POST", "/refresh", obj{"refresh_token": in.RefreshToken}).body
			servers[0].must(t, 200, "GET", "/me", nil, bearer(again.AccessToken)...)
			l.verify(servers[0], pg.URL)
		})
	}
}

// schemaGone gives the next servers an empty database.
func schemaGone(t *testing.T, pg *pgtest.Server) {
	t.Helper()
	execute(t, pg.URL, "drop schema if exists auth cascade")
}
