package pgstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

// A stored value that this package never writes, by manual edit or bug, makes its reader
// fail, and does not return a user with half of their data.
func TestUnreadableRowsAreErrors(t *testing.T) {
	t.Parallel()
	s, schema := openSchema(t)
	at := time.Now().UTC().Truncate(time.Microsecond)
	until := at.Add(time.Hour)
	u, sess := withSession(t, s)
	acting := store.Impersonation{ID: uuid.NewString(), UserID: u.ID, ActorID: u.ID, ActorSessionID: sess.ID, CreatedAt: at, ExpiresAt: until}
	job := store.Job{ID: uuid.NewString(), Kind: "x", CreatedAt: at, ExpiresAt: until}
	key := store.APIKey{ID: uuid.NewString(), Name: "x", Hash: hashOf("key")}
	factor := pending(t, s, sess)
	token := ofUser(newCode("1", "about", 0), u.ID)
	failed := store.SealedMessage{ID: uuid.NewString(), Body: []byte("x"), CreatedAt: at, NextAt: at, ExpiresAt: until, Log: store.MessageLog{Kind: "x", Channel: "mail"}}
	ctx := t.Context()
	done(t, s.BeginImpersonation(ctx, store.BeginImpersonation{Change: byTest(), Impersonation: acting}))
	done(t, s.PutJob(ctx, job))
	done(t, s.AddJobChunk(ctx, store.JobChunk{JobID: job.ID, Rows: 1, Input: []byte("x")}))
	_, err := s.StartJob(ctx, store.StartJob{Change: byTest(), ID: job.ID, ExpiresAt: until})
	done(t, err)
	_, err = s.PutKey(ctx, store.PutKey{Change: byTest(), Key: key})
	done(t, err)
	done(t, put(ctx, s, token))
	c := with(byTest())
	c.Messages = []store.SealedMessage{failed}
	done(t, s.PutToken(ctx, store.PutToken{Change: c, Token: ofUser(newCode("2", "", 0), u.ID)}))
	_, err = s.PutSettings(ctx, store.PutSettings{Change: byTest(), Document: []byte("{}")})
	done(t, err)
	done(t, s.AddCounts(ctx, store.AddCounts{Counts: []store.Count{{Metric: "x", At: at, N: 1}}}))

	type reads map[string]func(context.Context) error
	users := reads{
		"User":      func(ctx context.Context) error { _, err := s.User(ctx, store.ByID(u.ID)); return err },
		"Account":   func(ctx context.Context) error { _, _, err := s.Account(ctx, store.ByID(u.ID), at); return err },
		"ListUsers": func(ctx context.Context) error { _, err := s.ListUsers(ctx, store.UserQuery{Limit: 9}); return err },
		"Session":   func(ctx context.Context) error { _, _, err := s.Session(ctx, sess.ID, at); return err },
		"UpdateUser": func(ctx context.Context) error {
			_, err := patch(ctx, s, u.ID, store.UserPatch{Notes: &u.FullName})
			return err
		},
		"ListUserRows": func(ctx context.Context) error {
			_, err := s.ListUserRows(ctx, store.UserQuery{Limit: 9})
			return err
		},
		"Impersonation": func(ctx context.Context) error { _, _, err := s.Impersonation(ctx, acting.ID, at); return err },
		"AddAuthentication": func(ctx context.Context) error {
			_, _, err := s.AddAuthentication(ctx, store.AddAuthentication{Change: byTest(), SessionID: sess.ID, Proof: store.AMR{Method: "x"}})
			return err
		},
	}
	sessions := reads{
		"Session":  func(ctx context.Context) error { _, _, err := s.Session(ctx, sess.ID, at); return err },
		"Sessions": func(ctx context.Context) error { _, err := s.Sessions(ctx, u.ID, at); return err },
		"ListSessions": func(ctx context.Context) error {
			_, err := s.ListSessions(ctx, store.SessionQuery{Now: at, Limit: 9})
			return err
		},
		"AddAuthentication": users["AddAuthentication"],
		"AdvanceSession": func(ctx context.Context) error {
			_, _, err := s.AdvanceSession(ctx, store.Advance{Change: byTest(), SessionID: sess.ID, IdleUntil: until})
			return err
		},
	}
	events := reads{
		"Events": func(ctx context.Context) error { _, err := s.Events(ctx, store.EventQuery{UserID: u.ID}); return err },
		"AnonymizeUser": func(ctx context.Context) error {
			_, err := s.AnonymizeUser(ctx, store.AnonymizeUser{Change: byTest(), UserID: u.ID})
			return err
		},
	}
	acts := reads{
		"Impersonation":  users["Impersonation"],
		"Impersonations": func(ctx context.Context) error { _, err := s.Impersonations(ctx, u.ID, at); return err },
	}
	documents := reads{
		"Settings": func(ctx context.Context) error { _, err := s.Settings(ctx); return err },
		"PutSettings": func(ctx context.Context) error {
			_, err := s.PutSettings(ctx, store.PutSettings{Change: byTest()})
			return err
		},
	}
	for column, row := range map[string]struct {
		value string // its own invalid value; empty: null, which it does not accept
		reads reads
	}{
		"users.full_name":       {"", users},
		"users.user_metadata":   {"'[]'", reads{"User": users["User"], "ListUsers": users["ListUsers"], "Session": users["Session"], "ListUserRows": users["ListUserRows"], "UpdateUser": users["UpdateUser"]}},
		"users.app_metadata":    {"'\"x\"'", users},
		"sessions.ip":           {"", sessions},
		"sessions.amr":          {"'{}'", sessions},
		"events.type":           {"", reads{"Events": events["Events"]}},
		"events.data":           {"'[]'", events},
		"impersonations.reason": {"", acts},
		"jobs.kind": {"", reads{
			"Job": func(ctx context.Context) error { _, err := s.Job(ctx, job.ID, at); return err },
			"ClaimJob": func(ctx context.Context) error {
				_, err := s.ClaimJob(ctx, store.ClaimJob{Now: until, Until: until})
				return err
			},
		}},
		"job_chunks.rows_in": {"", reads{"JobChunk": func(ctx context.Context) error { _, err := s.JobChunk(ctx, job.ID, 0); return err }}},
		"api_keys.name": {"", reads{
			"Key":  func(ctx context.Context) error { _, err := s.Key(ctx, key.ID); return err },
			"Keys": func(ctx context.Context) error { _, err := s.Keys(ctx, store.KeyQuery{Limit: 9}); return err },
		}},
		"factors.label": {"", reads{"EnableFactor": func(ctx context.Context) error {
			f := factor
			f.Change = byTest()
			_, err := s.EnableFactor(ctx, f)
			return err
		}}},
		"tokens.subject": {"", reads{"PeekToken": func(ctx context.Context) error {
			_, err := s.PeekToken(ctx, token.Purpose, token.Hash, at)
			return err
		}}},
		"messages.recipient": {"", reads{"ClaimMessages": func(ctx context.Context) error {
			_, err := s.ClaimMessages(ctx, store.ClaimMessages{Now: at, Until: until, Limit: 9})
			return err
		}}},
		"message_log.channel": {"", reads{"ListMessages": func(ctx context.Context) error {
			_, err := s.ListMessages(ctx, store.MessageQuery{Limit: 9})
			return err
		}}},
		"settings.document": {"", documents},
		"counts.n": {"", reads{"Counts": func(ctx context.Context) error {
			_, err := s.Counts(ctx, store.CountQuery{Metrics: []store.Metric{"x"}, From: at.Add(-time.Hour), To: until})
			return err
		}}},
	} {
		table, name, _ := strings.Cut(column, ".")
		all := schema + "." + table
		inTx(t, s, func(ctx context.Context, tx pgx.Tx) error {
			spoil := []string{"alter table " + all + " disable trigger user"}
			if row.value == "" {
				row.value = "null"
				spoil = append(spoil, "alter table "+all+" alter "+name+" drop not null")
			}
			for _, sql := range append(spoil, "update "+all+" set "+name+" = "+row.value) {
				if _, err := tx.Exec(ctx, sql); err != nil {
					return err
				}
			}
			for method, read := range row.reads {
				if err := read(ctx); err == nil || errors.Is(err, store.ErrNotFound) {
					t.Errorf("%s is %s: %s says %v", column, row.value, method, err)
				}
			}
			return errRollback
		})
	}
}
