package pgstore

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/store"
)

// listMessages is the beginning of lists of messages; each query adds only its own
// conditions. It leaves out decoys. These are few, because a worker deletes their rows
// as soon as it claims them.
const listMessages = `select l.id, l.kind, l.channel, l.shown, coalesce(l.user_id::text, ''), l.state, l.attempts, l.created_at, l.updated_at, l.error
	from auth.message_log l where l.kind <> ''`

func messagesQuery(q store.MessageQuery) *query {
	b := &query{}
	b.sql.WriteString(listMessages)
	for _, eq := range []struct{ condition, value string }{
		{`l.id = ?::uuid`, q.ID}, {`l.state = ?::text`, string(q.State)}, {`l.kind = ?::text`, string(q.Kind)}, {`l.user_id = ?::uuid`, q.UserID},
	} {
		if eq.value != "" {
			b.where(eq.condition, eq.value)
		}
	}
	if !q.From.IsZero() {
		b.where(`l.created_at >= ?::timestamptz`, q.From)
	}
	if !q.To.IsZero() {
		b.where(`l.created_at < ?::timestamptz`, q.To)
	}
	if c := q.After; c != nil {
		b.where(`(l.created_at, l.id) < (?::text::timestamptz, ?::uuid)`, c.Time.UTC().Format(time.RFC3339Nano), c.ID)
	}
	b.add(` order by l.created_at desc, l.id desc limit ?::integer`, q.Limit)
	return b
}

// ListMessages lists the records of messages and their outcomes.
func (s *Store) ListMessages(ctx context.Context, q store.MessageQuery) ([]store.MessageRecord, error) {
	b := messagesQuery(q)
	var list []store.MessageRecord
	err := s.do(ctx, func(ctx context.Context, on querier) error {
		list = []store.MessageRecord{}
		rows, err := on.Query(ctx, s.sql(b.sql.String()), b.args...)
		if err != nil {
			return err
		}
		list, err = pgx.AppendRows(list, rows, func(row pgx.CollectableRow) (store.MessageRecord, error) {
			var r store.MessageRecord
			var created, updated pgtype.Timestamptz
			err := row.Scan(&r.ID, (*string)(&r.Kind), (*string)(&r.Channel), &r.To, &r.UserID, (*string)(&r.State), &r.Attempts, &created, &updated, &r.Error)
			r.CreatedAt, r.UpdatedAt = at(created), at(updated)
			return r, err
		})
		return err
	})
	return list, err
}

// ofUse is true if a failed message (m) can be sent at $2.
const ofUse = `m.failed and m.expires_at > $2::timestamptz
		and (m.purpose = '' or exists (select from auth.tokens t where t.purpose = m.purpose and t.hash = m.hash and t.expires_at > $2::timestamptz))`

const (
	selectFailed = `select ` + messageColumns + ` from auth.messages m where m.id = $1::uuid and ` + ofUse

	retryMessage = `with again as (
		update auth.messages m set failed = false, attempts = 0, next_at = $2::timestamptz where m.id = $1::uuid and ` + ofUse + `
		returning m.id
	), noted as (
		update auth.message_log l set state = '` + string(store.MessageQueued) + `', updated_at = $2::timestamptz, attempts = 0 from again where l.id = again.id
	)
	select count(*) from again`

	// deleteLogOf deletes the log of a user's messages, and the failed ones among
	// these.
	deleteLogOf = `with gone as (
		delete from auth.message_log l where l.user_id = $1::uuid or l.recipient = any ($2::text[]) and l.recipient <> ''
		returning l.id
	)
	delete from auth.messages m using gone where m.id = gone.id and m.failed`
)

// FailedMessage returns a failed message that can be sent again.
func (s *Store) FailedMessage(ctx context.Context, id string, now time.Time) (store.SealedMessage, error) {
	id, ok := canonical(id)
	if !ok {
		return store.SealedMessage{}, cmp.Or(ctx.Err(), store.ErrNotFound)
	}
	var list []store.SealedMessage
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		rows, err := q.Query(ctx, s.sql(selectFailed), id, now)
		if err == nil {
			list, err = pgx.CollectRows(rows, messageOf)
		}
		return err
	})
	switch {
	case err != nil:
		return store.SealedMessage{}, err
	case len(list) == 0:
		return store.SealedMessage{}, store.ErrNotFound
	}
	return list[0], nil
}

// RetryMessage queues a failed message again.
func (s *Store) RetryMessage(ctx context.Context, c store.RetryMessage) error {
	id, _ := canonical(c.ID)
	return s.change(ctx, &c.Change, target{}, func(ctx context.Context, tx pgx.Tx, _ *held) (*result, error) {
		var n int
		if err := tx.QueryRow(ctx, s.sql(retryMessage), orNull(id), c.Now).Scan(&n); err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, store.ErrStale
		}
		return &result{}, nil
	})
}
