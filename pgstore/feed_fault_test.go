package pgstore_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// spoiler is a tracer that makes the next statement with a text in it fail.
type spoiler struct {
	part string
	on   atomic.Bool
}

func (s *spoiler) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	if !strings.Contains(d.SQL, s.part) || !s.on.CompareAndSwap(true, false) {
		return ctx
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	return gone
}

func (*spoiler) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A feed that fails in any step starts again, which is logged, and then reports the events
// it missed: no instance continues with a dead feed.
func TestFeedsThatFailBeginAnew(t *testing.T) {
	t.Parallel()
	plain, schema := openSchema(t)
	sess := signUp(t, plain)
	end(t, plain, sess.UserID)
	errOnce := errors.New("fails once")
	for name, spoil := range map[string]func(*pgxpool.Config, *atomic.Bool, *spoiler){
		"no password": func(cfg *pgxpool.Config, on *atomic.Bool, _ *spoiler) {
			cfg.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
				if on.CompareAndSwap(true, false) {
					return errOnce
				}
				return nil
			}
		},
		"a connection that is refused": func(cfg *pgxpool.Config, on *atomic.Bool, _ *spoiler) {
			cfg.AfterConnect = func(context.Context, *pgx.Conn) error {
				if on.CompareAndSwap(true, false) {
					return errOnce
				}
				return nil
			}
		},
		"listening": func(_ *pgxpool.Config, _ *atomic.Bool, s *spoiler) { s.part = "listen " },
		"the look":  func(_ *pgxpool.Config, _ *atomic.Bool, s *spoiler) { s.part = ".revocations where" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, on, tracer := plain.Pool().Config(), &atomic.Bool{}, &spoiler{part: "\x00"}
			cfg.ConnConfig.Tracer = tracer
			spoil(cfg, on, tracer)
			p, err := pgxpool.NewWithConfig(t.Context(), cfg)
			done(t, err)
			t.Cleanup(p.Close)
			s, err := pgstore.New(p, pgstore.WithSchema(schema))
			done(t, err)
			done(t, s.Ping(t.Context())) // the pool has its own connection
			on.Store(true)
			tracer.on.Store(true)
			began := time.Now()
			lines, told := make(chan string, 100), make(chan store.Revocation, 100)
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan error, 1)
			go func() {
				over <- s.WatchRevocations(ctx, pgstore.WatchParams{Logger: slog.New(slog.NewTextHandler(lineWriter(lines), nil)), Notify: func(r store.Revocation) { told <- r }})
			}()
			select {
			case line := <-lines:
				if !strings.Contains(line, "broke off and begins anew") || !strings.Contains(line, "fails once") && !strings.Contains(line, "canceled") {
					t.Errorf("logged %q", line)
				}
			case <-time.After(10 * time.Second):
				t.Error("nothing is logged")
			}
			(&feed{told}).await(t, sess.ID)
			// It reports the time of its last read, for operators.
			for range 500 {
				d, err := s.Diagnose(t.Context())
				done(t, err)
				if d.FeedAt.IsZero() {
					pause(10 * time.Millisecond)
					continue
				}
				if d.FeedAt.Before(began) || d.FeedAt.After(time.Now()) || d.FeedAt.Location() != time.UTC {
					t.Errorf("looked at %s", d.FeedAt)
				}
				began = time.Time{}
				break
			}
			if !began.IsZero() {
				t.Error("it never looked")
			}
			cancel()
			ended(t, over)
		})
	}
}

// Without a logger of its own, a feed that cannot start logs to the default one.
func TestFeedsLogByDefault(t *testing.T) {
	t.Parallel()
	if err := open(t).WatchRevocations(t.Context(), pgstore.WatchParams{}); err == nil || !strings.Contains(err.Error(), "Notify is missing") {
		t.Errorf("%v", err)
	}
}
