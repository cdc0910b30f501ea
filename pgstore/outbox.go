package pgstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/store"
)

const (
	messageNames   = `id, user_id, purpose, hash, body, created_at, next_at, expires_at, attempts, recipient`
	messageInputs  = `m.id, m.user_id, m.purpose, m.hash, m.body, m.created_at, m.next_at, m.expires_at, m.attempts, m.recipient`
	messageColumns = `m.id, coalesce(m.user_id::text, ''), m.purpose, m.hash, m.body, m.created_at, m.next_at, m.expires_at, m.attempts, m.recipient`
)

// insertPost and logPost store the messages of the statement's part post, and create
// their log.
const (
	insertPost = `insert into auth.messages (` + messageNames + `)
		select ` + messageInputs + ` from post m
		on conflict (id) do nothing`

	logPost = `insert into auth.message_log (id, kind, channel, shown, user_id, recipient, created_at, updated_at)
		select m.id, m.kind, m.channel, m.shown, m.about, m.recipient, m.created_at, m.created_at from post m
		on conflict (id) do nothing`
)

// insertMessages leaves out messages for a user who does not exist, as after the change
// that deletes the user.
const insertMessages = `with post as materialized (
		select m.* from jsonb_to_recordset($1::jsonb) as ` + messageRecord + `
		where m.user_id is null or exists (select from auth.users u where u.id = m.user_id)
	), messages as (
		` + insertPost + `
	)
	` + logPost

// claimMessages numbers attempts by their outcomes in the log: a claim without an outcome
// was no attempt.
const claimMessages = `with due as materialized (
		select m.id from auth.messages m
		where m.next_at <= $1::timestamptz and m.expires_at > $1::timestamptz and not m.failed
			and (m.purpose = '' or exists (select from auth.tokens t where t.purpose = m.purpose and t.hash = m.hash and t.expires_at > $1::timestamptz))
		order by m.created_at, m.id limit $3::integer for update skip locked
	)
	update auth.messages m set attempts = coalesce((select l.attempts from auth.message_log l where l.id = m.id), m.attempts) + 1,
		next_at = $2::timestamptz from due where m.id = due.id
	returning ` + messageColumns

// The statements that end an attempt: each changes or deletes the message and updates
// its log.
const (
	deleteMessage = `with finished as (
		delete from auth.messages m where m.id = $1::uuid
	)` + noteMessage

	// A failed message is not due until it expires, not even for versions that do not
	// know failed.
	keepMessage = `with finished as (
		update auth.messages m set failed = true, expires_at = least(m.expires_at, $6::timestamptz), next_at = least(m.expires_at, $6::timestamptz) where m.id = $1::uuid
	)` + noteMessage

	putOffMessage = `with finished as (
		update auth.messages m set failed = false, next_at = $6::timestamptz where m.id = $1::uuid
	)` + noteMessage

	noteMessage = `
	update auth.message_log l set state = $2::text, updated_at = $3::timestamptz, attempts = $4::integer, error = $5::text
	where l.id = $1::uuid and l.state <> '` + string(store.MessageSent) + `'`

	forgetMessage = `with finished as (
		delete from auth.messages m where m.id = $1::uuid
	)
	delete from auth.message_log l where l.id = $1::uuid and l.state <> '` + string(store.MessageSent) + `'`
)

// ClaimMessages claims messages that are due. It skips messages that another caller is
// claiming.
func (s *Store) ClaimMessages(ctx context.Context, c store.ClaimMessages) ([]store.SealedMessage, error) {
	var list []store.SealedMessage
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		list = []store.SealedMessage{}
		rows, err := q.Query(ctx, s.sql(claimMessages), c.Now, c.Until, max(c.Limit, 0))
		if err != nil {
			return err
		}
		list, err = pgx.AppendRows(list, rows, messageOf)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b store.SealedMessage) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// messageOf reads messageColumns.
func messageOf(row pgx.CollectableRow) (store.SealedMessage, error) {
	var m store.SealedMessage
	var created, next, expires pgtype.Timestamptz
	err := row.Scan(&m.ID, &m.UserID, (*string)(&m.Token.Purpose), &m.Token.Hash, &m.Body, &created, &next, &expires, &m.Attempts, &m.Recipient)
	m.CreatedAt, m.NextAt, m.ExpiresAt = at(created), at(next), at(expires)
	if m.Token.Purpose == "" {
		m.Token.Hash = nil
	}
	return m, err
}

// FinishMessage deletes a message, postpones it or keeps it as failed, and updates its
// log.
func (s *Store) FinishMessage(ctx context.Context, f store.FinishMessage) error {
	id, ok := canonical(f.ID)
	if !ok {
		return ctx.Err()
	}
	sql, args := deleteMessage, []any{id, string(f.State), micro(f.At), f.Attempts, clean(asText(f.Error))}
	switch {
	case !f.RetryAt.IsZero():
		sql, args = putOffMessage, append(args, f.RetryAt)
	case !f.KeepUntil.IsZero():
		sql, args = keepMessage, append(args, f.KeepUntil)
	case f.State == "":
		sql, args = forgetMessage, args[:1]
	}
	return s.do(ctx, func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, s.sql(sql), args...)
		return err
	})
}
