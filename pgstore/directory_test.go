package pgstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/pgtest"
)

// directoryPopulation are people who differ in everything that lists are picked by,
// a few of them in what few have.
const directoryPopulation = `
	insert into auth.users (id, email, email_key, email_verified_at, phone, full_name, name_key, linked, roles, mfa_enabled, app_metadata, banned_until, created_at, updated_at, last_sign_in_at)
		select gen_random_uuid(), g || '@example.org', g || '@example.org', case when g % 1000 > 0 then now() end, case when g % 10 = 0 then '+4930' || (1000000 + g) end,
			'Person ' || g, 'person ' || g, true, case when g % 1000 = 1 then '{editor}'::text[] else '{}' end, g % 1000 = 2,
			case when g % 1000 = 3 then jsonb_build_object('plan', 'pro', 'seats', g) else '{}' end, case when g % 1000 = 4 then 'infinity'::timestamptz end,
			now() - g * interval '1 minute', now(), case when g % 2 = 0 then now() - g * interval '1 minute' end
		from generate_series(1, 30000) g;
	insert into auth.identities (id, user_id, provider, subject, created_at)
		select gen_random_uuid(), id, case when email_key like '%001@example.org' then 'rare' else 'google' end, email_key, created_at from auth.users where email_verified_at is not null;
	analyze`

// However many accounts there are, each filter finds those that match by an index,
// in every order, and so do filters together if one of them picks few.
func TestDirectoryPlans(t *testing.T) {
	planner := &pgtest.Planner{Lists: true}
	store := openTraced(t, planner)
	if _, err := store.Pool().Exec(t.Context(), directoryPopulation); err != nil {
		t.Fatal(err)
	}
	var id string
	if err := store.Pool().QueryRow(t.Context(), "select id::text from auth.users where email_key = '7@example.org'").Scan(&id); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	yes, no := true, false
	orders := []string{"users_created_at_idx", "users_signed_in_idx", "users_email_order_idx"}
	for name, list := range map[string]struct {
		q       auth.UserQuery
		indexes []string // nil: any order's
		few     bool     // a count is exact, and reads no more than the list
	}{
		"all":              {},
		"id":               {auth.UserQuery{ID: id}, []string{"users_pkey"}, true},
		"ids":              {auth.UserQuery{IDs: []string{id, "00000000-0000-7000-8000-000000000000"}}, []string{"users_pkey"}, true},
		"address":          {auth.UserQuery{Email: "7@example.org"}, []string{"users_email_key_key"}, true},
		"number":           {auth.UserQuery{Phone: "+49301000010"}, []string{"users_phone_key"}, true},
		"identity":         {auth.UserQuery{Provider: "google", Subject: "7@example.org"}, []string{"users_pkey"}, true},
		"provider of few":  {auth.UserQuery{Provider: "rare"}, []string{"identities_provider_subject_key"}, true},
		"provider of most": {auth.UserQuery{Provider: "google"}, nil, false},
		"prefix of mail":   {auth.UserQuery{Prefix: "2999"}, []string{"users_email_order_idx"}, true},
		"prefix of a name": {auth.UserQuery{Prefix: "Person 2999"}, []string{"users_name_prefix_idx"}, true},
		"prefix of many":   {auth.UserQuery{Prefix: "Person"}, nil, false},
		"role":             {auth.UserQuery{Role: "editor"}, []string{"users_roles_idx"}, true},
		"metadata":         {auth.UserQuery{Metadata: map[string]string{"plan": "pro"}}, []string{"users_app_metadata_idx"}, true},
		"a number in it":   {auth.UserQuery{Metadata: map[string]string{"seats": "3"}}, []string{"users_app_metadata_idx"}, true},
		"banned":           {auth.UserQuery{Banned: &yes}, []string{"users_banned_idx"}, true},
		"not banned":       {auth.UserQuery{Banned: &no}, nil, false},
		"unproved":         {auth.UserQuery{Confirmed: &no}, []string{"users_unproved_idx"}, true},
		"invited":          {auth.UserQuery{Confirmed: &no, Password: &no}, []string{"users_invited_idx", "users_unproved_idx"}, true},
		"no password":      {auth.UserQuery{Password: &no}, nil, false},
		"proved":           {auth.UserQuery{Confirmed: &yes}, nil, false},
		"factor":           {auth.UserQuery{MFA: &yes}, []string{"users_with_factor_idx", "users_mfa_idx"}, true},
		"no factor":        {auth.UserQuery{MFA: &no}, nil, false},
		"made of late":     {auth.UserQuery{CreatedFrom: now.Add(-time.Hour)}, []string{"users_created_at_idx"}, true},
		"made long ago":    {auth.UserQuery{CreatedTo: now.Add(-29990 * time.Minute)}, []string{"users_created_at_idx"}, true},
		"seen of late":     {auth.UserQuery{SignedInFrom: now.Add(-time.Hour)}, []string{"users_signed_in_idx"}, true},
		"few and many":     {auth.UserQuery{Role: "editor", MFA: &no, Confirmed: &yes, Provider: "google", Prefix: "2"}, []string{"users_roles_idx"}, false},
		"a page far down":  {auth.UserQuery{After: &auth.UserCursor{ID: id, Time: now.Add(-20000 * time.Minute)}, Desc: true}, []string{"users_created_at_idx"}, false},
	} {
		for _, list.q.Sort = range []auth.UserSort{auth.SortCreated, auth.SortSignedIn, auth.SortEmail} {
			if list.indexes != nil && list.q.Sort != auth.SortCreated {
				continue // sorted once they are found
			}
			list.q.Limit, list.q.Now = 50, now
			indexes := list.indexes
			if indexes == nil {
				indexes = orders
			}
			check(t, planner, name+" by "+string(list.q.Sort), indexes, func() error {
				_, err := store.ListUsers(t.Context(), list.q)
				return err
			})
		}
		if list.few {
			check(t, planner, "count "+name, list.indexes, func() error {
				n, err := store.CountUsers(t.Context(), list.q)
				if err == nil && !n.Exact {
					t.Errorf("%s: %+v", name, n)
				}
				return err
			})
		}
	}
}

// An account with what is held about it is found by keys, whatever it is named by.
func TestAccountPlans(t *testing.T) {
	planner := &pgtest.Planner{Lists: true}
	store := openTraced(t, planner)
	u := newUser("ada@example.com")
	u.User.Phone = "+4930123456"
	u.User.Identities = []auth.Identity{{ID: uuid.NewString(), Provider: "google", Subject: "ada", CreatedAt: u.Now}}
	ada, err := store.CreateUser(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Pool().Exec(t.Context(), strings.Replace(population, "analyze", `insert into auth.messages (id, user_id, body, created_at, next_at, expires_at)
		select gen_random_uuid(), id, '', now(), now(), now() + interval '1 day' from auth.users;
	analyze`, 1)); err != nil {
		t.Fatal(err)
	}
	for index, key := range map[string]auth.UserKey{
		"users_pkey": auth.ByID(ada.ID), "users_email_key_key": auth.ByEmail(ada.Email), "users_phone_key": auth.ByPhone(ada.Phone), "identities_provider_subject_key": auth.ByIdentity("google", "ada"),
	} {
		check(t, planner, "account by "+index, []string{index}, func() error {
			_, _, err := store.Account(t.Context(), key, time.Now())
			return err
		})
	}
}

// check explains what f sends.
func check(t *testing.T, planner *pgtest.Planner, name string, indexes []string, f func() error) {
	t.Helper()
	plans, err := planner.Explain(f)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	for _, p := range plans {
		if strings.Contains(p.SQL, "set_config") {
			continue
		}
		t.Logf("%s: %v", name, p)
		if err := p.CheckList(600, indexes...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(plans) != 2 {
		t.Errorf("%s: %d statements, want the bounds and the list", name, len(plans))
	}
}

// Beyond what is counted one by one, a count is the planner's estimate, and never
// below what was counted.
func TestCountsAreEstimated(t *testing.T) {
	store := openTraced(t, nil)
	if _, err := store.Pool().Exec(t.Context(), directoryPopulation); err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]auth.UserQuery{"all": {}, "those that a filter leaves": {MFA: new(bool), Provider: "google"}} {
		n, err := store.CountUsers(t.Context(), q)
		if err != nil || n.Exact || n.N < auth.UserCountExact || n.N > 40_000 {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
	}
}

// A list that takes too long is ended by the server, as one that asks for too much;
// the connection serves on, and without that bound.
func TestListTooBroad(t *testing.T) {
	store := openTraced(t, nil)
	tx, err := store.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.ListUsers(t.Context(), auth.UserQuery{Limit: 1}); err != nil { // prepared on the connection that serves next
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "lock table auth.users in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	_, err = store.ListUsers(t.Context(), auth.UserQuery{Limit: 1})
	if !errors.Is(err, auth.ErrTooBroad) {
		t.Errorf("%v, want %v", err, auth.ErrTooBroad)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := store.ListUsers(t.Context(), auth.UserQuery{Limit: 1}); err != nil {
		t.Error(err)
	}
	err = pgx.BeginFunc(t.Context(), store.Pool(), func(tx pgx.Tx) error {
		var left string
		if err := tx.QueryRow(t.Context(), "select current_setting('statement_timeout') || current_setting('plan_cache_mode')").Scan(&left); err != nil {
			return err
		}
		if left != "0auto" {
			t.Errorf("a list leaves %s behind", left)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
