package store_test

import (
	"errors"
	"testing"
	"time"

	example "github.com/authmount/auth/examples/store"
	"github.com/authmount/auth/store"
	"github.com/authmount/auth/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return example.New() })
}

// The record of an idempotency key is swept when it expires, not before.
func TestSweepOfKeys(t *testing.T) {
	ctx, s, now := t.Context(), example.New(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := store.PutToken{Token: store.Token{Purpose: store.PurposeReset, Hash: []byte("h"), ExpiresAt: now.Add(time.Hour)}}
	c.Now, c.By.System = now, "test"
	c.Idempotency = &store.Idempotency{Key: "k", ExpiresAt: now.Add(time.Minute)}
	if err := s.PutToken(ctx, c); err != nil {
		t.Fatal(err)
	}
	if err := s.PutToken(ctx, c); !errors.Is(err, store.ErrRepeated) {
		t.Errorf("again: %v", err)
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{time.Minute - 1, 0}, {time.Minute, 1}, {time.Hour - 1, 0}, {time.Hour, 1}} {
		if n, err := s.Sweep(ctx, now.Add(step.after), 10); err != nil || n != step.want {
			t.Errorf("after %v: swept %d, %v, want %d", step.after, n, err, step.want)
		}
	}
}
