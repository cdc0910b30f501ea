package sqlitestore

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// The times for which counts and active accounts are kept. activeFor is longer than a
// month.
const (
	countsFor = 400 * 24 * time.Hour
	activeFor = 40 * 24 * time.Hour
)

// Sweep deletes expired rows. Changes wait meanwhile, so callers keep the limit small.
func (s *Store) Sweep(ctx context.Context, now time.Time, limit int) (n int, err error) {
	err = s.write(ctx, func(t *tx) error {
		// Messages come before the tokens that some of them depend on.
		n = t.sweepMessages(now, limit)
		for _, table := range []struct {
			sweep string
			until int64
		}{
			{`delete from auth_message_log where id in (select id from auth_message_log where created_at <= ? limit ?)`, micros(now.Add(-store.MessageLogLife))},
			{`delete from auth_tokens where (purpose, hash) in (select purpose, hash from auth_tokens where expires_at <= ? limit ?)`, micros(now)},
			{`delete from auth_sessions where ordinal in (select ordinal from auth_sessions where ends_at <= ? limit ?)`, micros(now)},
			{`delete from auth_limits where key in (select key from auth_limits where full_at <= ? limit ?)`, now.UnixNano()},
			{`delete from auth_idempotency where (actor, route, key) in (select actor, route, key from auth_idempotency where expires_at <= ? limit ?)`, micros(now)},
			{`delete from auth_counts where (at, metric, label) in (select at, metric, label from auth_counts where at < ? limit ?)`, micros(now.Add(-countsFor))},
			{`delete from auth_active where (since, period, user_id) in (select since, period, user_id from auth_active where since < ? limit ?)`, micros(now.Add(-activeFor))},
			{`delete from auth_impersonations where id in (select id from auth_impersonations where expires_at <= ? limit ?)`, micros(now)},
			{`delete from auth_jobs where id in (select id from auth_jobs where expires_at <= ? and state <> 'running' limit ?)`, micros(now)},
			{`delete from auth_revocations where n in (select n from auth_revocations where at <= ? limit ?)`, micros(time.Now().Add(-longestLife))}, // by the machine's clock, as the rows are
			{`delete from auth_devices where (user_id, device) in (select user_id, device from auth_devices where last_seen_at <= ? limit ?)`, micros(now.Add(-store.DeviceLife))},
		} {
			if n < limit {
				n += int(t.exec(table.sweep, table.until, limit-n))
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
