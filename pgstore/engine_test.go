package pgstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
	"github.com/authmount/auth/storetest"
)

// migrating is the application name of the connections that may take advisory locks.
const migrating = "migrating"

// unknown are the words that the engine behind the proxy does not know: system columns,
// listen and notify, and advisory locks.
var (
	unknown  = regexp.MustCompile(`(?i)\bctid\b|\bpg_notify\b|^\s*(un)?listen\b|^\s*notify\b`)
	advisory = regexp.MustCompile(`(?i)\bpg_(try_)?advisory_\w+`)
)

// refused collects the statements with missing words. The store may handle their errors.
type refused struct {
	mu   sync.Mutex
	list []string
}

// rename gives the missing words of a statement another name.
func (r *refused) rename(sql string, may bool) string {
	out := unknown.ReplaceAllString(sql, "no_such_word")
	if !may {
		out = advisory.ReplaceAllString(out, "no_such_lock")
	}
	if out != sql {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.list = append(r.list, sql)
	}
	return out
}

// otherEngine is a pool of a proxy of the tests' Postgres, at which other engines'
// missing words have another name. Statements with them fail as they fail there, also in
// functions that a migration creates.
func otherEngine(t *testing.T, name string) (*pgxpool.Pool, *refused) {
	t.Helper()
	r := &refused{}
	cfg, err := pgxpool.ParseConfig(pgtest.URL(t))
	done(t, err)
	network, address := pgconn.NetworkAddress(cfg.ConnConfig.Host, cfg.ConnConfig.Port)
	proxy, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	done(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	go func() {
		for {
			client, err := proxy.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = client.Close() }()
				if server, err := (&net.Dialer{}).DialContext(t.Context(), network, address); err == nil {
					defer func() { _ = server.Close() }()
					go func() { _, _ = io.Copy(client, server); _ = client.Close() }()
					r.relay(client, server)
				}
			}()
		}
	}()
	at := proxy.Addr().(*net.TCPAddr)
	cfg.ConnConfig.Host, cfg.ConnConfig.Port, cfg.ConnConfig.TLSConfig, cfg.ConnConfig.Fallbacks = "127.0.0.1", uint16(at.Port), nil, nil //nolint:gosec // a port
	cfg.ConnConfig.RuntimeParams["application_name"] = name
	cfg.ConnConfig.RuntimeParams["default_transaction_isolation"] = levels[0]
	cfg.MaxConns = 10
	p, err := pgxpool.NewWithConfig(t.Context(), cfg)
	done(t, err)
	t.Cleanup(p.Close)
	return p, r
}

// relay passes on the messages of a client, with other names for the missing words.
func (r *refused) relay(client io.Reader, server io.Writer) {
	var head [5]byte
	begin, may := 1, false // the first message, and requests to cancel, have no type
	for {
		if _, err := io.ReadFull(client, head[begin:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		out := append(append([]byte(nil), head[begin:]...), body...)
		var err error
		switch {
		case begin == 1:
			var m pgproto3.StartupMessage
			may = m.Decode(body) == nil && m.Parameters["application_name"] == migrating
		case head[0] == 'Q':
			var m pgproto3.Query
			if err = m.Decode(body); err == nil {
				m.String = r.rename(m.String, may)
				out, err = m.Encode(nil)
			}
		case head[0] == 'P':
			var m pgproto3.Parse
			if err = m.Decode(body); err == nil {
				m.Query = r.rename(m.Query, may)
				out, err = m.Encode(nil)
			}
		}
		if err == nil {
			_, err = server.Write(out)
		}
		if err != nil {
			return
		}
		begin = 0
	}
}

// openOtherEngine creates stores at such an engine, in schemas of their own.
func openOtherEngine(t *testing.T) (opens func() (*pgstore.Store, string), r *refused) {
	t.Helper()
	plain, r := otherEngine(t, "plain")
	migrates, _ := otherEngine(t, migrating)
	return func() (*pgstore.Store, string) {
		_, schema := openSchema(t) // drops it, too
		exec(t, migrates, "drop schema "+schema+" cascade")
		m, err := pgstore.New(migrates, pgstore.WithSchema(schema))
		done(t, err)
		done(t, m.Migrate(t.Context()))
		s, err := pgstore.New(plain, pgstore.WithSchema(schema))
		done(t, err)
		return s, schema
	}, r
}

// Other engines have no system columns, no listen and notify, few advisory locks, and often
// the strictest isolation level by default.
func TestConformanceAtOtherEngines(t *testing.T) {
	t.Parallel()
	opens, refused := openOtherEngine(t)
	r := &pgtest.Reused[*pgstore.Store]{As: open(t).Pool(), Open: opens}
	t.Cleanup(func() { // after the parallel tests
		if len(refused.list) > 0 {
			t.Errorf("%d statements were refused, such as %s", len(refused.list), refused.list[0])
		}
	})
	storetest.Run(t, func(t *testing.T) store.Store { return r.Store(t) })
}

// The proxy refuses all three, and advisory locks only outside migrations.
func TestOtherEngineRefuses(t *testing.T) {
	plain, refused := otherEngine(t, "plain")
	migrates, _ := otherEngine(t, migrating)
	for sql, code := range map[string]string{
		"select ctid from pg_class limit 1": "42703",
		"listen x":                          "42601",
		"notify x":                          "42601",
		"select pg_notify('x', '')":         "42883",
		"do $$ begin perform pg_notify('x', ''); end $$": "42883",
		"select pg_advisory_lock(1)":                     "42883",
		"select pg_try_advisory_xact_lock(1)":            "42883",
	} {
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
			_, err := plain.Exec(t.Context(), sql, mode)
			var e *pgconn.PgError
			if !errors.As(err, &e) || e.Code != code {
				t.Errorf("%s: %v", sql, err)
			}
			if n := len(refused.list); n == 0 || refused.list[n-1] != sql {
				t.Errorf("%s: %q", sql, refused.list)
			}
		}
	}
	if _, err := migrates.Exec(t.Context(), "select pg_advisory_xact_lock(1)"); err != nil {
		t.Error(err)
	}
}

// Without notifications the feed polls, and nothing is logged.
func TestRevocationsAtOtherEngines(t *testing.T) {
	opens, _ := openOtherEngine(t)
	s, _ := opens()
	lines, told := make(chan string, 100), make(chan store.Revocation, 100)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		over <- s.WatchRevocations(ctx, pgstore.WatchParams{Logger: slog.New(slog.NewTextHandler(lineWriter(lines), nil)), Notify: func(r store.Revocation) { told <- r }})
	}()
	f := &feed{told}
	ada, bob := signUp(t, s), signUp(t, s)
	ban(t, s, ada.UserID)
	f.await(t, ada.UserID)
	began := time.Now()
	end(t, s, bob.UserID)
	f.await(t, bob.ID)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("reported after %v", took)
	}
	cancel()
	ended(t, over)
	if len(lines) > 0 {
		t.Errorf("logged %q", <-lines)
	}
}
