package pgstore_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// trips counts the statements and batches that are sent.
type trips struct {
	mu   sync.Mutex
	list []string
}

func (c *trips) add(sql string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, sql)
}

func (c *trips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	c.add(d.SQL)
	return ctx
}
func (c *trips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *trips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.add("a batch")
	return ctx
}
func (c *trips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (c *trips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// taken returns the entries since the last call.
func (c *trips) taken() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.list
	c.list = nil
	return list
}

// Frequent operations are one statement, with its event and messages; everything else is a
// few round trips. The same holds without prepared statements, as with a pooler.
func TestStatements(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) { checkStatements(t, mode) })
	}
}

func checkStatements(t *testing.T, mode pgx.QueryExecMode) {
	cfg, err := pgxpool.ParseConfig(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	c := &trips{}
	cfg.ConnConfig.Tracer, cfg.ConnConfig.DefaultQueryExecMode = c, mode
	p, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	s, err := pgstore.New(p)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := s.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	ada, err := s.CreateUser(ctx, newUser("ada@example.com"))
	if err != nil {
		t.Fatal(err)
	}
	hers := addSession(t, s, ada.ID)
	for _, tok := range []store.Token{
		ofUser(newCode("1", "right", 5), ada.ID), ofUser(newCode("2", "wrong", 5), ada.ID), ofUser(newCode("3", "judged", 5), ada.ID),
		ofUser(newCode("4", "redeemed", 0), ada.ID), ofUser(newCode("5", "patched", 0), ada.ID), newCode("6", "nobody's", 0),
	} {
		if err := put(ctx, s, tok); err != nil {
			t.Fatal(err)
		}
	}
	factor := pending(t, s, hers)
	named := func(id string) store.UserAt {
		return store.UserAt{ID: id, CredentialRevision: new(int64), EmailVerified: new(bool), Email: &ada.Email}
	}
	redeem := func(code string, e store.Effect) error {
		_, _, err := s.RedeemToken(ctx, store.Redemption{Change: with(byTest()), Purpose: store.PurposePhoneCode, Hash: hashOf(code), Effect: e})
		return err
	}
	guess := func(subject, code string, want error, still ...store.UserAt) func() error {
		return func() error {
			_, _, err := s.RedeemCode(ctx, store.CodeAttempt{Change: with(byTest(), still...), Purpose: store.PurposePhoneCode, Subject: subject, Hash: hashOf(code)})
			if err == want { //nolint:errorlint // the very one
				return nil
			}
			return err
		}
	}
	message := []store.SealedMessage{{ID: newSession("").ID, Body: []byte("sealed"), CreatedAt: now, NextAt: now, ExpiresAt: now}}
	byAda := store.Change{Now: time.Now(), By: store.Authority{Session: &store.SessionRef{ID: hers.ID, UserID: ada.ID}}}
	for _, flow := range []struct {
		name string
		most int
		run  func() error
	}{
		{"read", 1, func() error { _, err := s.Credentials(ctx, store.ByEmail("Ada@example.com")); return err }},
		{"session", 1, func() error {
			_, err := s.CreateSession(ctx, store.CreateSession{Change: with(byTest(), named(ada.ID)), NewSession: store.NewSession{Session: newSession(ada.ID)}})
			return err
		}},
		{"refresh", 1, func() error {
			_, _, err := s.AdvanceSession(ctx, store.Advance{Change: ifReused(byTest()), SessionID: hers.ID, IdleUntil: time.Now().Add(time.Hour)})
			return err
		}},
		{"me", 1, func() error { _, _, err := s.Session(ctx, hers.ID, time.Now()); return err }},
		{"sign-up", 1, func() error {
			nu, first := newUser("bob@example.com"), newSession("")
			nu.Change, nu.Messages = with(nu.Change), message
			first.UserID, nu.Session, nu.Tokens = nu.User.ID, &first, []store.Token{ofUser(newCode("7", "", 0), nu.User.ID)}
			_, err := s.CreateUser(ctx, nu)
			return err
		}},
		{"put a token", 1, func() error {
			p := store.PutToken{Change: with(byTest()), Token: ofUser(newCode("8", "put", 0), ada.ID)}
			p.Messages = message
			return s.PutToken(ctx, p)
		}},
		{"refresh with an event", 5, func() error {
			_, _, err := s.AdvanceSession(ctx, store.Advance{Change: with(byTest()), SessionID: hers.ID, Counter: 1, IdleUntil: time.Now().Add(time.Hour)})
			return err
		}},
		{"right code", 1, guess("right", "1", nil)},
		{"wrong code", 1, guess("wrong", "x", store.ErrWrongCode)},
		{"right code of a user who is still so", 1, guess("judged", "3", nil, named(""))},
		{"redeem", 1, func() error { return redeem("4", store.Effect{}) }},
		{"redeem nobody's", 1, func() error { return redeem("6", store.Effect{}) }},
		{"redeem with an effect", 7, func() error { return redeem("5", store.Effect{Patch: &store.UserPatch{FullName: &ada.Email}}) }},
		{"edit a profile", 5, func() error {
			_, err := s.UpdateUser(ctx, store.UpdateUser{Change: byAda, UserID: ada.ID, Patch: store.UserPatch{FullName: &ada.Email}})
			return err
		}},
		{"enable a factor", 8, func() error { _, err := s.EnableFactor(ctx, factor); return err }},
	} {
		c.taken()
		if err := flow.run(); err != nil {
			t.Errorf("%s: %v", flow.name, err)
		}
		if sent := c.taken(); len(sent) > flow.most {
			t.Errorf("%s: %d round trips, want %d:\n%s", flow.name, len(sent), flow.most, strings.Join(sent, "\n"))
		}
	}
}
