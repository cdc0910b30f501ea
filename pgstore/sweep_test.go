package pgstore_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/pgstore"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// over keeps tokens that have expired.
func over(t *testing.T, s *pgstore.Store, names ...string) {
	t.Helper()
	for _, name := range names {
		hash := make([]byte, 32)
		copy(hash, name)
		if err := s.PutToken(t.Context(), auth.Token{Purpose: auth.PurposeMagicLink, Hash: hash, CreatedAt: now.Add(-time.Hour), ExpiresAt: now.Add(-time.Minute)}); err != nil {
			t.Fatal(err)
		}
	}
}

// Of several instances one sweeps, until it has not done so for a while.
func TestOneInstanceSweeps(t *testing.T) {
	first, schema := openSchema(t)
	second, err := pgstore.New(first.Pool(), pgstore.InSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	sweep := func(s *pgstore.Store, at time.Time) int {
		t.Helper()
		n, err := s.Sweep(t.Context(), at, 100)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	over(t, first, "a")
	if n := sweep(first, now); n != 1 {
		t.Errorf("the first swept %d", n)
	}
	over(t, first, "b")
	if n := sweep(second, now.Add(time.Minute)); n != 0 {
		t.Errorf("the second swept %d while the first does", n)
	}
	if n := sweep(second, now.Add(time.Hour)); n != 1 {
		t.Errorf("the second swept %d once the first is gone", n)
	}
}

// A sweep goes past what somebody holds.
func TestSweepWaitsForNobody(t *testing.T) {
	s, schema := openSchema(t)
	over(t, s, "held", "free")
	ctx := t.Context()
	err := pgx.BeginFunc(ctx, s.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select from "+schema+".tokens where get_byte(hash, 0) = ascii('h') for update"); err != nil {
			return err
		}
		if n, err := s.Sweep(ctx, now, 100); n != 1 || err != nil {
			t.Errorf("swept %d, %v", n, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Sweep(ctx, now, 100); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
}
