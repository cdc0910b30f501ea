package pgstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/store"
)

// For any number of API keys, each is read and updated by its id, and lists use the index
// with their order. The live public keys, which every instance reads often, have an index
// of their own.
func TestPlansOfKeys(t *testing.T) {
	planner := &pgtest.Planner{}
	st := openTraced(t, planner)
	ctx, yes := t.Context(), true
	key := store.APIKey{ID: uuid.NewString(), Hash: hashOf("key"), Public: true}
	if _, err := st.PutKey(ctx, store.PutKey{Change: byTest(), Key: key}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Pool().Exec(ctx, `insert into auth.api_keys (id, hash, created_at)
		select gen_random_uuid(), sha256(g::text::bytea), now() + g * interval '1 s' from generate_series(1, 20000) g;
		analyze auth.api_keys`); err != nil {
		t.Fatal(err)
	}
	list := func(q store.KeyQuery) func() error {
		q.Limit = 50
		return func() error {
			_, err := st.Keys(ctx, q)
			return err
		}
	}
	after := &store.KeyCursor{CreatedAt: time.Now().Add(time.Hour), ID: uuid.NewString()}
	for name, flow := range map[string]struct {
		index string
		run   func() error
	}{
		"read":   {"api_keys_pkey", func() error { _, err := st.Key(ctx, key.ID); return err }},
		"use":    {"api_keys_pkey", func() error { return st.UseKey(ctx, key.ID, time.Now()) }},
		"list":   {"api_keys_created_at_idx", list(store.KeyQuery{})},
		"page":   {"api_keys_created_at_idx", list(store.KeyQuery{After: after})},
		"public": {"api_keys_public_idx", list(store.KeyQuery{Public: &yes, LiveAt: time.Now()})},
	} {
		plans, err := planner.Explain(flow.run)
		if err != nil || len(plans) == 0 {
			t.Errorf("%s: %d statements, %v", name, len(plans), err)
		}
		used := false
		for _, p := range plans {
			text := fmt.Sprint(p)
			used = used || strings.Contains(text, flow.index)
			if strings.Contains(text, "Seq Scan") || strings.Contains(text, "Sort") {
				t.Errorf("%s: %s", name, text)
			}
		}
		if !used {
			t.Errorf("%s: not by %s: %v", name, flow.index, plans)
		}
	}
}
