package sqlitestore

import (
	"time"

	"github.com/authmount/auth/store"
)

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
			select m.id from auth_messages m where m.expires_at <= ?1 or m.next_at <= ?1 and m.purpose <> '' and not exists (
				select 1 from auth_tokens t where t.purpose = m.purpose and t.hash = m.hash and t.expires_at > ?1) limit ?2) returning id`, micros(now), limit)
	for _, id := range ids {
		t.exec(`update auth_message_log set state = ?, updated_at = ? where id = ? and state = ?`, store.MessageDropped, micros(now), id, store.MessageQueued)
	}
	return len(ids)
}
