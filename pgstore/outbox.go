package pgstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth"
)

const (
	messageNames   = `id, user_id, purpose, hash, body, created_at, next_at, expires_at, attempts, recipient`
	messageInputs  = `m.id, m.user_id, m.purpose, m.hash, m.body, m.created_at, m.next_at, m.expires_at, m.attempts, m.recipient`
	messageColumns = `m.id, coalesce(m.user_id::text, ''), m.purpose, m.hash, m.body, m.created_at, m.next_at, m.expires_at, m.attempts, m.recipient`
)

// insertMessages leaves out those for a user who is gone, as after the change
// that removed them.
const insertMessages = `insert into auth.messages (` + messageNames + `)
	select ` + messageInputs + ` from jsonb_to_recordset($1::jsonb) as ` + messageRecord + `
	where m.user_id is null or exists (select from auth.users u where u.id = m.user_id)
	on conflict (id) do nothing`

const claimMessages = `with due as materialized (
		select m.id from auth.messages m
		where m.next_at <= $1::timestamptz and m.expires_at > $1::timestamptz
			and (m.purpose = '' or exists (select from auth.tokens t where t.purpose = m.purpose and t.hash = m.hash and t.expires_at > $1::timestamptz))
		order by m.created_at, m.id limit $3::integer for update skip locked
	)
	update auth.messages m set attempts = m.attempts + 1, next_at = $2::timestamptz from due where m.id = due.id
	returning ` + messageColumns

const deleteMessage = `delete from auth.messages where id = $1::uuid`

const putOffMessage = `update auth.messages set next_at = $2::timestamptz where id = $1::uuid`

// ClaimMessages hands out messages that are due. It goes past those that another
// caller is just being given.
func (s *Store) ClaimMessages(ctx context.Context, c auth.ClaimMessages) ([]auth.SealedMessage, error) {
	var list []auth.SealedMessage
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		list = []auth.SealedMessage{}
		rows, err := q.Query(ctx, s.sql(claimMessages), c.Now, c.Until, max(c.Limit, 0))
		if err != nil {
			return err
		}
		list, err = pgx.AppendRows(list, rows, func(row pgx.CollectableRow) (auth.SealedMessage, error) {
			var m auth.SealedMessage
			var created, next, expires pgtype.Timestamptz
			err := row.Scan(&m.ID, &m.UserID, (*string)(&m.Token.Purpose), &m.Token.Hash, &m.Body, &created, &next, &expires, &m.Attempts, &m.Recipient)
			m.CreatedAt, m.NextAt, m.ExpiresAt = at(created), at(next), at(expires)
			if m.Token.Purpose == "" {
				m.Token.Hash = nil
			}
			return m, err
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b auth.SealedMessage) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// FinishMessage erases a message or puts it off.
func (s *Store) FinishMessage(ctx context.Context, f auth.FinishMessage) error {
	id, ok := canonical(f.ID)
	if !ok {
		return ctx.Err()
	}
	return s.do(ctx, func(ctx context.Context, q querier) (err error) {
		if f.RetryAt.IsZero() {
			_, err = q.Exec(ctx, s.sql(deleteMessage), id)
		} else {
			_, err = q.Exec(ctx, s.sql(putOffMessage), id, f.RetryAt)
		}
		return err
	})
}
