package pgstore_test

import (
	"net/netip"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
)

// population fills every table that the flows reach, so that reading one whole
// would cost more than its index.
const population = `
	insert into auth.users (id, email, email_key, linked, created_at, updated_at)
		select gen_random_uuid(), g || '@example.org', g || '@example.org', true, now(), now() from generate_series(1, 20000) g;
	insert into auth.sessions (id, user_id, counter, rotated_at, aal, created_at, last_active_at, idle_until)
		select gen_random_uuid(), id, 0, now(), 'aal1', now(), now(), now() + interval '30 days' from auth.users, generate_series(1, 3);
	update auth.users set linked = true;
	insert into auth.identities (id, user_id, provider, subject, created_at) select gen_random_uuid(), id, 'google', id::text, now() from auth.users;
	insert into auth.limits (key, tat) select 'somebody ' || g, 0 from generate_series(1, 20000) g;
	analyze`

// However many users there are, what everybody does all the time finds its rows
// by keys: no statement reads a table whole, nor do the functions and triggers
// that it sets off.
func TestPlans(t *testing.T) {
	cfg, err := pgxpool.ParseConfig(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	planner := &pgtest.Planner{}
	cfg.ConnConfig.Tracer = planner
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	store, err := pgstore.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	env := authtest.NewOn(t, store)
	ada := env.LoginAs(t, "ada@example.com")
	if _, err := pool.Exec(t.Context(), population); err != nil {
		t.Fatal(err)
	}
	ctx := auth.ContextWithClient(t.Context(), auth.Client{IP: netip.MustParseAddr("192.0.2.1")})
	for name, flow := range map[string]struct {
		indexes []string
		run     func() error
	}{
		"login": {[]string{"users_email_key_key", "users_pkey"}, func() error {
			_, err := env.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
			return err
		}},
		"refresh": {[]string{"sessions_pkey", "users_pkey"}, func() error { _, err := env.Refresh(ctx, ada.RefreshToken); return err }},
		"me":      {[]string{"sessions_pkey", "users_pkey"}, func() error { return me(ctx, env, ada) }},
	} {
		plans, err := planner.Explain(flow.run)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(plans) == 0 {
			t.Errorf("%s: no statement", name)
		}
		for _, p := range plans {
			t.Logf("%s: %v", name, p)
			if err := p.Check(flow.indexes...); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
