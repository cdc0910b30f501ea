package pgstore_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authclient"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// hangingDatabase is a way to the tests' Postgres on which nothing arrives while its lock is
// held, though connections stay open, as from a backend that is stopped.
type hangingDatabase struct {
	sync.RWMutex
	direct string
}

func newHangingDatabase(t *testing.T, pool *pgxpool.Pool) *hangingDatabase {
	t.Helper()
	h, cfg := &hangingDatabase{}, pool.Config().ConnConfig
	network, address := pgconn.NetworkAddress(cfg.Host, cfg.Port)
	proxy, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	done(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	go func() {
		for {
			client, err := proxy.Accept()
			if err != nil {
				return
			}
			server, err := (&net.Dialer{}).DialContext(t.Context(), network, address)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go h.relay(client, server)
		}
	}()
	u := url.URL{Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password), Host: proxy.Addr().String(), Path: cfg.Database, RawQuery: "sslmode=disable"}
	h.direct = u.String()
	return h
}

func (h *hangingDatabase) relay(client io.WriteCloser, server io.Reader) {
	defer func() { _ = client.Close() }()
	for b := make([]byte, 64<<10); ; {
		n, err := server.Read(b)
		h.RLock()
		_, failed := client.Write(b[:n])
		h.RUnlock()
		if err != nil || failed != nil {
			return
		}
	}
}

// A feed whose connection hangs begins anew within about three seconds, and reports the
// revocations of that time. Until it does, it does not claim to know them.
func TestFeedsThatHangBeginAnew(t *testing.T) {
	t.Parallel()
	s := open(t)
	db := newHangingDatabase(t, s.Pool())
	lines, told := make(chan string, 100), make(chan store.Revocation, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		over <- s.WatchRevocations(ctx, pgstore.WatchParams{Direct: db.direct, Logger: slog.New(slog.NewTextHandler(lineWriter(lines), nil)), Notify: func(r store.Revocation) { told <- r }})
	}()
	for range 3 { // the second and the third are those of heartbeats
		if r := <-told; !r.CaughtUp {
			t.Errorf("reported %+v", r)
		}
	}
	sess := signUp(t, s)
	db.Lock()
	began := time.Now()
	end(t, s, sess.UserID)
	select {
	case line := <-lines:
		if took := time.Since(began); !strings.Contains(line, "broke off and begins anew") || !strings.Contains(line, "the database does not answer") || took > 3500*time.Millisecond {
			t.Errorf("logged after %s: %q", took, line)
		}
	case <-time.After(20 * time.Second):
		t.Error("nothing is logged")
	}
	if n := len(told); n > 0 {
		t.Errorf("%d reports from a connection that hangs", n)
	}
	db.Unlock()
	(&feed{told}).await(t, sess.ID)
	cancel()
	ended(t, over)
}

// If only the connection of the feed hangs at every instance, their streams end, and a
// verifier that fails closed refuses all tokens within six seconds.
func TestRevocationsOfAFeedThatHangs(t *testing.T) {
	t.Parallel()
	st := open(t)
	db := newHangingDatabase(t, st.Pool())
	one, two, address := twoInstancesOn(t, st, db.direct)
	ada, bob := one.LoginAs(t, "ada@example.com"), one.LoginAs(t, "bob@example.com")
	v := remote(t, one, address, authclient.RevocationOptions{FailClosed: true})
	accepted(t, v, ada.AccessToken)
	db.Lock()
	began := time.Now()
	two.signOut(t, ada)
	refusedSoon(t, v, ada.AccessToken, auth.CodeRevocationsUnavailable)
	if took := time.Since(began); took > 6500*time.Millisecond {
		t.Errorf("refused after %s", took)
	}
	if err := v.RevocationsError(); err == nil {
		t.Error("the outage is not reported")
	}
	db.Unlock()
	refusedSoon(t, v, ada.AccessToken, auth.CodeSessionEnded)
	accepted(t, v, bob.AccessToken)
}
