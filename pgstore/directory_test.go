package pgstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/store"
)

// directoryPopulation are users who differ in every field that lists filter by, some of
// them in rare values.
const directoryPopulation = `
	insert into auth.users (id, email, email_key, email_verified_at, phone, full_name, name_key, linked, roles, mfa_enabled, app_metadata, banned_until, created_at, updated_at, last_sign_in_at)
		select gen_random_uuid(), g || '@' || d, g || '@' || d, case when g % 1000 > 0 then now() end, case when g % 10 = 0 then '+4930' || (1000000 + g) end,
			'Person ' || g, 'person ' || g, true, case when g % 1000 = 1 then '{editor}'::text[] else '{}' end, g % 1000 = 2,
			case when g % 1000 = 3 then jsonb_build_object('plan', 'pro', 'seats', g) else '{}' end, case when g % 1000 = 4 then 'infinity'::timestamptz end,
			now() - g * interval '1 minute', now(), case when g % 2 = 0 then now() - g * interval '1 minute' end
		from generate_series(1, 30000) g, lateral (select case when g % 1000 = 5 then 'few.example' else 'example.org' end as d) as domain;
	insert into auth.user_words (user_id, word) select id, split_part(name_key, ' ', 2) from auth.users;
	insert into auth.identities (id, user_id, provider, subject, created_at)
		select gen_random_uuid(), id, case when email_key like '%001@example.org' then 'rare' else 'google' end, email_key, created_at from auth.users where email_verified_at is not null;
	analyze`

// For any number of accounts, each filter finds its matches by an index, in every order,
// and so do several filters if one of them matches few.
func TestDirectoryPlans(t *testing.T) {
	planner := &pgtest.Planner{Lists: true}
	st := openTraced(t, planner)
	if _, err := st.Pool().Exec(t.Context(), directoryPopulation); err != nil {
		t.Fatal(err)
	}
	var id string
	if err := st.Pool().QueryRow(t.Context(), "select id::text from auth.users where email_key = '7@example.org'").Scan(&id); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	yes, no := true, false
	orders := []string{"users_created_at_idx", "users_signed_in_idx", "users_email_order_idx"}
	for name, list := range map[string]struct {
		q       store.UserQuery
		indexes []string // nil: any index with the order
		few     bool     // a count is exact, and reads no more than the list
	}{
		"all":              {},
		"id":               {store.UserQuery{ID: id}, []string{"users_pkey"}, true},
		"ids":              {store.UserQuery{IDs: []string{id, "00000000-0000-7000-8000-000000000000"}}, []string{"users_pkey"}, true},
		"address":          {store.UserQuery{Email: "7@example.org"}, []string{"users_email_key_key"}, true},
		"number":           {store.UserQuery{Phone: "+49301000010"}, []string{"users_phone_key"}, true},
		"identity":         {store.UserQuery{Provider: "google", Subject: "7@example.org"}, []string{"users_pkey"}, true},
		"provider of few":  {store.UserQuery{Provider: "rare"}, []string{"identities_provider_subject_key"}, true},
		"provider of most": {store.UserQuery{Provider: "google"}, nil, false},
		"prefix of mail":   {store.UserQuery{Prefix: "2999"}, []string{"users_email_order_idx"}, true},
		"prefix of a name": {store.UserQuery{Prefix: "Person 2999"}, []string{"users_name_prefix_idx"}, true},
		"a word of a name": {store.UserQuery{Prefix: "29999"}, []string{"user_words_word_idx"}, true},
		"domain of few":    {store.UserQuery{Domain: "few.example"}, []string{"users_domain_idx"}, true},
		"domain of many":   {store.UserQuery{Domain: "example.org"}, nil, false},
		"prefix of many":   {store.UserQuery{Prefix: "Person"}, nil, false},
		"role":             {store.UserQuery{Role: "editor"}, []string{"users_roles_idx"}, true},
		"metadata":         {store.UserQuery{Metadata: map[string]string{"plan": "pro"}}, []string{"users_app_metadata_idx"}, true},
		"a number in it":   {store.UserQuery{Metadata: map[string]string{"seats": "3"}}, []string{"users_app_metadata_idx"}, true},
		"banned":           {store.UserQuery{Banned: &yes}, []string{"users_banned_idx"}, true},
		"not banned":       {store.UserQuery{Banned: &no}, nil, false},
		"unproved":         {store.UserQuery{Confirmed: &no}, []string{"users_unproved_idx"}, true},
		"invited":          {store.UserQuery{Confirmed: &no, Password: &no}, []string{"users_invited_idx", "users_unproved_idx"}, true},
		"no password":      {store.UserQuery{Password: &no}, nil, false},
		"proved":           {store.UserQuery{Confirmed: &yes}, nil, false},
		"factor":           {store.UserQuery{MFA: &yes}, []string{"users_with_factor_idx", "users_mfa_idx"}, true},
		"no factor":        {store.UserQuery{MFA: &no}, nil, false},
		"made of late":     {store.UserQuery{CreatedFrom: now.Add(-time.Hour)}, []string{"users_created_at_idx"}, true},
		"made long ago":    {store.UserQuery{CreatedTo: now.Add(-29990 * time.Minute)}, []string{"users_created_at_idx"}, true},
		"seen of late":     {store.UserQuery{SignedInFrom: now.Add(-time.Hour)}, []string{"users_signed_in_idx"}, true},
		"few and many":     {store.UserQuery{Role: "editor", MFA: &no, Confirmed: &yes, Provider: "google", Prefix: "2"}, []string{"users_roles_idx"}, false},
		"a page far down":  {store.UserQuery{After: &store.UserCursor{ID: id, Time: now.Add(-20000 * time.Minute)}, Desc: true}, []string{"users_created_at_idx"}, false},
	} {
		for _, list.q.Sort = range []store.UserSort{store.SortCreated, store.SortSignedIn, store.SortEmail} {
			if list.indexes != nil && list.q.Sort != store.SortCreated {
				continue // sorted after the rows are found
			}
			list.q.Limit, list.q.Now = 50, now
			indexes := list.indexes
			if indexes == nil {
				indexes = orders
			}
			check(t, planner, name+" by "+string(list.q.Sort), indexes, func() error {
				_, err := st.ListUsers(t.Context(), list.q)
				return err
			})
		}
		if list.few {
			check(t, planner, "count "+name, list.indexes, func() error {
				n, err := st.CountUsers(t.Context(), list.q)
				if err == nil && !n.Exact {
					t.Errorf("%s: %+v", name, n)
				}
				return err
			})
		}
	}
}

// An account and its data are found by keys, for every kind of name.
func TestAccountPlans(t *testing.T) {
	planner := &pgtest.Planner{Lists: true}
	st := openTraced(t, planner)
	u := newUser("ada@example.com")
	u.User.Phone = "+4930123456"
	u.User.Identities = []store.Identity{{ID: uuid.NewString(), Provider: "google", Subject: "ada", CreatedAt: u.Now}}
	ada, err := st.CreateUser(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Pool().Exec(t.Context(), strings.Replace(population, "analyze", `insert into auth.messages (id, user_id, body, created_at, next_at, expires_at)
		select gen_random_uuid(), id, '', now(), now(), now() + interval '1 day' from auth.users;
	analyze`, 1)); err != nil {
		t.Fatal(err)
	}
	for index, key := range map[string]store.UserKey{
		"users_pkey": store.ByID(ada.ID), "users_email_key_key": store.ByEmail(ada.Email), "users_phone_key": store.ByPhone(ada.Phone), "identities_provider_subject_key": store.ByIdentity("google", "ada"),
	} {
		check(t, planner, "account by "+index, []string{index}, func() error {
			_, _, err := st.Account(t.Context(), key, time.Now())
			return err
		})
	}
}

// check explains the statements of f.
func check(t *testing.T, planner *pgtest.Planner, name string, indexes []string, f func() error) {
	t.Helper()
	plans, err := planner.Explain(f)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	statements := 2
	for _, p := range plans {
		if strings.Contains(p.SQL, "set_config") {
			continue
		}
		t.Logf("%s: %v", name, p)
		if strings.HasPrefix(p.SQL, "select array[") { // counts matches up to a limit, by a scan if many are expected
			statements += 2
			continue
		}
		if err := p.CheckList(600, indexes...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(plans) != statements {
		t.Errorf("%s: %d statements, want %d: the bounds and the list, after a count that chooses its form", name, len(plans), statements)
	}
}

// Above the limit of exact counting, a count is the planner's estimate, and never below
// the exact part.
func TestCountsAreEstimated(t *testing.T) {
	st := openTraced(t, nil)
	if _, err := st.Pool().Exec(t.Context(), directoryPopulation); err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]store.UserQuery{"all": {}, "those that a filter leaves": {MFA: new(bool), Provider: "google"}} {
		n, err := st.CountUsers(t.Context(), q)
		if err != nil || n.Exact || n.N < store.CountedExactly || n.N > 40_000 {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
	}
}

// The server cancels a list that takes too long, as too broad. The connection remains
// usable, without that timeout.
func TestListTooBroad(t *testing.T) {
	st := openTraced(t, nil)
	tx, err := st.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.ListUsers(t.Context(), store.UserQuery{Limit: 1}); err != nil { // prepared on the next connection in use
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "lock table auth.users in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	_, err = st.ListUsers(t.Context(), store.UserQuery{Limit: 1})
	if !errors.Is(err, store.ErrTooBroad) {
		t.Errorf("%v, want %v", err, store.ErrTooBroad)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := st.ListUsers(t.Context(), store.UserQuery{Limit: 1}); err != nil {
		t.Error(err)
	}
	err = pgx.BeginFunc(t.Context(), st.Pool(), func(tx pgx.Tx) error {
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
