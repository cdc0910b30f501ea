package pgstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
)

// nth is a tracer that makes the n-th statement fail.
type nth struct {
	n, sent int
	broken  string
}

func (b *nth) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	if strings.HasPrefix(d.SQL, "rollback") {
		return ctx
	}
	if b.sent++; b.sent != b.n {
		return ctx
	}
	b.broken = d.SQL
	gone, cancel := context.WithCancel(ctx)
	cancel()
	return gone
}

func (*nth) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// If any statement of a migration fails, the migration returns an error, and leaves
// nothing that a later one would take for the whole.
func TestFaultsOfMigrationsAreTold(t *testing.T) {
	t.Parallel()
	b := &nth{}
	s := openTraced(t, b, pgstore.WithRowLevelSecurity())
	steps := b.sent
	for n := 1; ; n++ {
		exec(t, s.Pool(), "drop schema if exists auth cascade")
		*b = nth{n: n}
		err := s.Migrate(t.Context())
		told, at := errors.Is(err, context.Canceled), b.broken
		*b = nth{}
		switch {
		case at == "" && n < steps:
			t.Fatalf("only %d of %d statements were sent", n, steps)
		case at == "":
			done(t, err)
			return
		case n == 1: // this reads whether there is work: after a failure the migration assumes that there is
			done(t, err)
		case !told || strings.Contains(err.Error(), "migrations are missing"):
			t.Errorf("%v, though this failed: %.200s", err, at)
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Errorf("%v once nothing fails, after: %.200s", err, at)
		}
		done(t, s.Check(t.Context()))
	}
}

// A schema that cannot be read does not count as up to date.
func TestFaultsOfChecksAreTold(t *testing.T) {
	t.Parallel()
	b := &nth{}
	s := openTraced(t, b, pgstore.WithRowLevelSecurity())
	for n := 1; ; n++ {
		*b = nth{n: n}
		err := s.Check(t.Context())
		if b.broken == "" {
			done(t, err)
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, though this failed: %.200s", err, b.broken)
		}
	}
}

// Invalid options are an error of Open, too, and of Schema, and return no store.
func TestOpenRefusesWrongOptions(t *testing.T) {
	t.Parallel()
	wrong := pgstore.WithSchema("no name")
	if s, err := pgstore.Open(t.Context(), pgtest.URL(t), wrong); err == nil || s != nil {
		t.Errorf("%v, %v", s, err)
	}
	if text, err := pgstore.Schema(wrong); err == nil || text != "" {
		t.Errorf("%.100s, %v", text, err)
	}
}
