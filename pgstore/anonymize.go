package pgstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

const (
	deleteSessions = `delete from auth.sessions s where s.user_id = $1::uuid`

	//nolint:gosec // names of columns
	deleteTokensAbout = `delete from auth.tokens t using auth.tokens o where o.purpose = any ($2::text[]) and o.subject = any ($1::text[]) and o.subject <> ''
		and t.purpose = o.purpose and t.hash = o.hash`

	deleteMessagesTo = `delete from auth.messages m where m.user_id = $1::uuid or m.recipient = any ($2::text[]) and m.recipient <> ''`

	// selectEventsTelling reads a page of the events about a user or caused by the
	// user.
	selectEventsTelling = `select e.id, coalesce(e.user_id::text, ''), e.data from auth.events e where e.user_id = $1::uuid and e.id > $2::uuid
		union
		select e.id, coalesce(e.user_id::text, ''), e.data from auth.events e
		where (e.data -> 'actor' ->> 'id') = $1::uuid::text and (e.data -> 'actor' ->> 'id') is distinct from e.user_id::text and (e.data -> 'actor' ->> 'id') is not null and e.id > $2::uuid
		union
		select e.id, coalesce(e.user_id::text, ''), e.data from auth.events e
		where e.user_id is null and (e.data -> 'record' ->> 'target') = any ($4::text[]) and e.id > $2::uuid
		order by 1 limit $3::integer`

	rewriteEvents = `update auth.events e set data = n.data from jsonb_to_recordset($1::jsonb) as n (id uuid, data jsonb) where e.id = n.id`
)

// rewritten is the number of events that are rewritten at a time.
const rewritten = 500

// AnonymizeUser removes all personal data from an account.
func (s *Store) AnonymizeUser(ctx context.Context, c store.AnonymizeUser) (store.User, error) {
	var u store.User
	p := c.Patch()
	err := s.change(ctx, &c.Change, target{users: []string{c.UserID}, roles: rolesOfPatch(p)}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		r, err := s.patch(ctx, tx, h.user(c.UserID), p, c.Now, 0, &u)
		if err != nil {
			return nil, err
		}
		b := &pgx.Batch{}
		b.Queue(s.sql(deleteSessions), u.ID)
		b.Queue(s.sql(deleteTokensAbout), nonNil(c.Subjects), tokenPurposes())
		b.Queue(s.sql(deleteMessagesTo), u.ID, nonNil(c.Recipients))
		b.Queue(s.sql(deleteLogOf), u.ID, nonNil(c.Recipients))
		if err := send(ctx, tx, b); err != nil {
			return nil, err
		}
		return r, s.rewriteEvents(ctx, tx, &c)
	})
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}

// tokenPurposes returns the purposes of tokens that have a subject, for an index that
// begins with the purpose.
func tokenPurposes() []string {
	return purposes([]store.Purpose{
		store.PurposeMagicLink, store.PurposeVerifyEmail, store.PurposeReset, store.PurposeExchange, store.PurposePhoneCode, store.PurposeMFA, store.PurposeEnroll,
		store.PurposePhoneChange, store.PurposeOAuth, store.PurposeStop, store.PurposeInvitation,
	})
}

// rewriteEvents removes a user from the events, a page at a time.
func (s *Store) rewriteEvents(ctx context.Context, tx pgx.Tx, c *store.AnonymizeUser) error {
	type row struct {
		ID   string    `json:"id"`
		Data eventData `json:"data"`
	}
	last := "00000000-0000-0000-0000-000000000000"
	for {
		rows, err := tx.Query(ctx, s.sql(selectEventsTelling), c.UserID, last, rewritten, nonNil(c.Names))
		if err != nil {
			return err
		}
		var page []row
		var id, about string
		var data []byte
		_, err = pgx.ForEachRow(rows, []any{&id, &about, &data}, func() error {
			var d eventData
			if err := json.Unmarshal(data, &d); err != nil {
				return fmt.Errorf("pgstore: event %s: %w", id, err)
			}
			e := d.event()
			e.ID, e.UserID = id, about
			page = append(page, row{id, dataOf(c.Rewrite(e))})
			return nil
		})
		if err != nil || len(page) == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, s.sql(rewriteEvents), text(page)); err != nil {
			return err
		}
		last = page[len(page)-1].ID
	}
}

// event returns an event with the fields that are not in columns of their own.
func (d eventData) event() store.Event {
	return store.Event{
		Actor: d.Actor, SessionIDs: d.SessionIDs, Method: d.Method, Provider: d.Provider, Message: d.Message, Left: d.Left, Reason: d.Reason,
		Client: d.Client, Other: d.Other, Record: d.Record,
	}
}
