package sqlitestore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/store"
)

const messageColumns = `m.id, coalesce(m.user_id, ''), m.recipient, m.purpose, m.hash, m.body, m.created_at, m.next_at, m.expires_at, m.attempts`

func scanMessage(scan row) (m store.SealedMessage) {
	scan(&m.ID, &m.UserID, &m.Recipient, &m.Token.Purpose, &m.Token.Hash, &m.Body, at{&m.CreatedAt}, at{&m.NextAt}, at{&m.ExpiresAt}, &m.Attempts)
	return m
}

// sendable is the condition that a message m has not expired at the time ?1 and its token,
// if any, is live.
const sendable = `m.expires_at > ?1 and (m.purpose = '' or exists (select 1 from auth_tokens t where t.purpose = m.purpose and t.hash = m.hash and t.expires_at > ?1))`

// addMessage stores a message, unless its user has been deleted, for example by the same
// change.
func (t *tx) addMessage(m store.SealedMessage) {
	if m.UserID != "" && !t.exists(`select 1 from auth_users where id = ?`, m.UserID) {
		return
	}
	t.exec(`insert or replace into auth_message_log (id, kind, channel, shown, user_id, recipient, state, created_at, updated_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		m.ID, m.Log.Kind, m.Log.Channel, m.Log.To, m.Log.UserID, m.Recipient, store.MessageQueued, micros(m.CreatedAt), micros(m.CreatedAt))
	t.exec(`insert or replace into auth_messages (id, user_id, recipient, purpose, hash, body, created_at, next_at, expires_at, attempts) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		m.ID, orNull(m.UserID), m.Recipient, m.Token.Purpose, blob(m.Token.Hash), blob(m.Body), micros(m.CreatedAt), micros(m.NextAt), micros(m.ExpiresAt), m.Attempts)
}

// ClaimMessages returns messages that are due. It reads before it takes the write lock,
// because every instance asks often, and mostly for nothing.
func (s *Store) ClaimMessages(ctx context.Context, c store.ClaimMessages) (claimed []store.SealedMessage, err error) {
	const due = `from auth_messages m where m.next_at <= ?1 and m.failed = 0 and ` + sendable
	some := false
	err = s.read(ctx, func(t *tx) error {
		some = t.exists(`select 1 `+due+` limit 1`, micros(c.Now))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !some {
		return []store.SealedMessage{}, nil
	}
	err = s.write(ctx, func(t *tx) error {
		// A claim without an outcome was no attempt, so the log counts.
		claimed = list(t, scanMessage, `update auth_messages as m set next_at = ?2, attempts = coalesce((select l.attempts from auth_message_log l where l.id = m.id), m.attempts) + 1
			where m.id in (select m.id `+due+` order by m.created_at, m.id limit ?3) returning `+strings.ReplaceAll(messageColumns, "m.", ""), micros(c.Now), micros(c.Until), max(c.Limit, 0))
		slices.SortFunc(claimed, func(a, b store.SealedMessage) int {
			if n := a.CreatedAt.Compare(b.CreatedAt); n != 0 {
				return n
			}
			return strings.Compare(a.ID, b.ID)
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// FinishMessage deletes a message, postpones it or keeps it as failed, and updates its
// record.
func (s *Store) FinishMessage(ctx context.Context, f store.FinishMessage) error {
	return s.write(ctx, func(t *tx) error {
		switch {
		case !f.RetryAt.IsZero():
			t.exec(`update auth_messages set next_at = ?, failed = 0 where id = ?`, micros(f.RetryAt), f.ID)
		case !f.KeepUntil.IsZero():
			t.exec(`update auth_messages set failed = 1, expires_at = min(expires_at, ?) where id = ?`, micros(f.KeepUntil), f.ID)
		default:
			t.exec(`delete from auth_messages where id = ?`, f.ID)
		}
		if f.State == "" {
			t.exec(`delete from auth_message_log where id = ? and state <> ?`, f.ID, store.MessageSent)
			return nil
		}
		t.exec(`update auth_message_log set state = ?, updated_at = ?, attempts = ?, error = ? where id = ? and state <> ?`, f.State, micros(f.At), f.Attempts, f.Error, f.ID, store.MessageSent)
		return nil
	})
}

// failed returns a failed message that can be sent again; nil if there is none.
func (t *tx) failed(id string, now time.Time) *store.SealedMessage {
	return first(t, scanMessage, `select `+messageColumns+` from auth_messages m where m.id = ?2 and m.failed = 1 and `+sendable, micros(now), id)
}

// FailedMessage returns a message that was kept as failed.
func (s *Store) FailedMessage(ctx context.Context, id string, now time.Time) (found store.SealedMessage, err error) {
	err = s.read(ctx, func(t *tx) error {
		m := t.failed(id, now)
		if m == nil {
			return store.ErrNotFound
		}
		found = *m
		return nil
	})
	return found, err
}

// RetryMessage lets a failed message be claimed again.
func (s *Store) RetryMessage(ctx context.Context, c store.RetryMessage) error {
	return s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		if t.failed(c.ID, c.Now) == nil {
			return nil, store.ErrStale
		}
		return &effect{apply: func() error {
			t.exec(`update auth_messages set failed = 0, attempts = 0, next_at = ? where id = ?`, micros(c.Now), c.ID)
			t.exec(`update auth_message_log set state = ?, updated_at = ?, attempts = 0 where id = ?`, store.MessageQueued, micros(c.Now), c.ID)
			return nil
		}}, nil
	})
}

// ListMessages lists the records of messages, newest first.
func (s *Store) ListMessages(ctx context.Context, q store.MessageQuery) ([]store.MessageRecord, error) {
	query := &query{sql: `select id, kind, channel, shown, user_id, state, attempts, created_at, updated_at, error from auth_message_log where kind <> ''`}
	query.same(`id`, q.ID)
	query.same(`state`, string(q.State))
	query.same(`kind`, string(q.Kind))
	query.same(`user_id`, q.UserID)
	query.within(`created_at`, q.From, q.To)
	if q.After != nil {
		query.where(`(created_at, id) < (?, ?)`, micros(q.After.Time), q.After.ID)
	}
	query.end(` order by created_at desc, id desc limit ?`, q.Limit)
	return listed(ctx, s, query, func(scan row) (r store.MessageRecord) {
		scan(&r.ID, &r.Kind, &r.Channel, &r.To, &r.UserID, &r.State, &r.Attempts, at{&r.CreatedAt}, at{&r.UpdatedAt}, &r.Error)
		return r
	})
}

// dropLog deletes the records of messages to a user or recipients, and their failed
// messages.
func (t *tx) dropLog(userID string, recipients ...string) {
	for _, id := range values[string](t, `delete from auth_message_log where user_id = ? or recipient <> '' and recipient in (select value from json_each(?)) returning id`, userID, jsonOf(append([]string{}, recipients...))) {
		t.exec(`delete from auth_messages where id = ? and failed = 1`, id)
	}
}

// sweepMessages deletes up to limit messages that will not be sent, and returns the count.
func (t *tx) sweepMessages(now time.Time, limit int) int {
	ids := values[string](t, `delete from auth_messages where id in (
			select m.id from auth_messages m where (m.expires_at <= ?1 or m.next_at <= ?1) and not (`+sendable+`) limit ?2) returning id`, micros(now), limit)
	for _, id := range ids {
		t.exec(`update auth_message_log set state = ?, updated_at = ? where id = ? and state = ?`, store.MessageDropped, micros(now), id, store.MessageQueued)
	}
	return len(ids)
}
