package pgstore_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// A value that JSON cannot express is refused by every method that would write it, and
// nothing of the call remains: neither an account without its metadata nor one without its
// event.
func TestUnwritableValuesAreErrors(t *testing.T) {
	t.Parallel()
	s, schema := openSchema(t)
	u := withUser(t, s)
	bad := map[string]any{"x": make(chan int)}
	inUser, inApp := store.User{UserMetadata: bad}, store.User{AppMetadata: bad}
	create := func(of store.User, roles ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			c := newUser("")
			c.User.UserMetadata, c.User.AppMetadata, c.User.Roles = of.UserMetadata, of.AppMetadata, roles
			_, err := s.CreateUser(ctx, c)
			return err
		}
	}
	imported := func(of store.User, events ...store.Event) func(context.Context) error {
		return func(ctx context.Context) error {
			of.ID, of.CreatedAt, of.UpdatedAt = newUser("").User.ID, u.CreatedAt, u.UpdatedAt
			results, err := s.CreateUsers(ctx, store.CreateUsers{Change: byTest(), Users: []store.ImportedRow{{User: of, Events: events}}})
			return errors.Join(append(results, err)...)
		}
	}
	changed := func(p store.UserPatch) func(context.Context) error {
		return func(ctx context.Context) error { _, err := patch(ctx, s, u.ID, p); return err }
	}
	event := store.Event{ID: newUser("").User.ID, Type: store.EventSignedIn, At: time.Now(), Record: &store.Record{Changes: map[string]store.FieldChange{"x": {After: math.Inf(1)}}}}
	for name, call := range map[string]func(context.Context) error{
		"a user's own metadata":             create(inUser),
		"an application's metadata":         create(inApp),
		"metadata beside roles":             create(inUser, "editor"),
		"an imported user's own metadata":   imported(inUser),
		"an imported application's":         imported(inApp),
		"an imported user's event":          imported(store.User{}, event),
		"a change of a user's own metadata": changed(store.UserPatch{UserMetadata: bad}),
		"a change of an application's":      changed(store.UserPatch{AppMetadata: bad}),
	} {
		if err := call(t.Context()); err == nil || !strings.Contains(err.Error(), "json: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := count(t, s.Pool(), "select count(*) from "+schema+".users"); n != 1 {
		t.Errorf("%d users", n)
	}
}

// An import that the database refuses fails with the reason. If it omits rows without a
// reason, that is an error, too, and no endless loop.
func TestImportsSayWhatWentWrong(t *testing.T) {
	t.Parallel()
	s, schema := openSchema(t)
	for name, test := range map[string]struct {
		does  string // the trigger
		state string
	}{
		"a trigger that refuses":         {"raise exception 'on purpose'", "P0001"},
		"a trigger that leaves rows out": {"return null", ""},
	} {
		exec(t, s.Pool(), "create or replace function "+schema+".keeps_out() returns trigger language plpgsql as $$ begin "+test.does+"; end $$")
		exec(t, s.Pool(), "create or replace trigger keeps_out before insert on "+schema+".users for each row execute function "+schema+".keeps_out()")
		results, err := s.CreateUsers(t.Context(), store.CreateUsers{Change: byTest(), Users: []store.ImportedRow{{User: newUser("").User}}})
		if err == nil || sqlState(err) != test.state {
			t.Errorf("%s: %v, %v", name, results, err)
		}
	}
}

// If the number of accounts cannot be estimated, that is an error, not zero.
func TestCountsThatCannotBeGuessedAreErrors(t *testing.T) {
	t.Parallel()
	b := &breaker{seen: map[string]bool{}}
	s := openTraced(t, b)
	exec(t, s.Pool(), "insert into auth.users (id, full_name, user_metadata, app_metadata, roles, password_hash, created_at, updated_at) select gen_random_uuid(), '', '{}', '{}', '{}', '', now(), now() from generate_series(1, $1::integer)", store.CountedExactly+1)
	var n store.Total
	done(t, b.until(t.Context(), t, func(ctx context.Context) (err error) {
		n, err = s.CountUsers(ctx, store.UserQuery{})
		return err
	}))
	if n.Exact || n.N <= store.CountedExactly {
		t.Errorf("in the end %+v", n)
	}
	exec(t, s.Pool(), "drop table auth.users cascade")
	if n, err := s.CountUsers(t.Context(), store.UserQuery{}); err == nil {
		t.Errorf("%+v without accounts to count", n)
	}
}

// An account with JSON null as its metadata is listed with empty metadata, like one that
// never had any.
func TestRowsWithNullMetadataAreListed(t *testing.T) {
	t.Parallel()
	s, schema := openSchema(t)
	withUser(t, s)
	exec(t, s.Pool(), "update "+schema+".users set user_metadata = 'null', app_metadata = 'null'")
	rows, err := s.ListUserRows(t.Context(), store.UserQuery{Limit: 9})
	if err != nil || len(rows) != 1 || string(rows[0].UserMetadataJSON) != "{}" || string(rows[0].AppMetadataJSON) != "{}" {
		t.Errorf("%+v, %v", rows, err)
	}
}

// A token without a user is not stored, even if the other conditions of its change hold.
func TestTokensOfNobodyAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	u, nobody := withUser(t, s), newUser("").User.ID
	for name, c := range map[string]store.PutToken{
		"alone":                       {Change: byTest()},
		"beside a condition":          {Change: with(byTest(), store.UserAt{ID: u.ID})},
		"in place of an older one":    {Change: byTest(), Supersedes: new([]byte)},
		"with somebody else's letter": {Change: store.Change{Now: now, By: byTest().By, Messages: []store.SealedMessage{{ID: nobody, UserID: u.ID, Body: []byte("x"), CreatedAt: now, NextAt: now, ExpiresAt: now}}}},
	} {
		c.Token = ofUser(newCode("1", "", 0), nobody)
		if err := s.PutToken(t.Context(), c); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A caller who has left by the time there is a connection gets no success for a statement
// that was never sent.
func TestCallersWhoHaveGoneAreTold(t *testing.T) {
	t.Parallel()
	plain, schema := openSchema(t)
	ctx, cancel := context.WithCancel(t.Context())
	cfg := plain.Pool().Config()
	cfg.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) { cancel(); return true, nil }
	p, err := pgxpool.NewWithConfig(ctx, cfg)
	done(t, err)
	t.Cleanup(p.Close)
	s, err := pgstore.New(p, pgstore.WithSchema(schema))
	done(t, err)
	if _, err := s.CreateUser(ctx, newUser("")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if n := count(t, plain.Pool(), "select count(*) from "+schema+".users"); n != 0 {
		t.Errorf("%d users", n)
	}
}
