package sqlitestore

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// Diagnose counts the messages that wait to be sent.
func (s *Store) Diagnose(ctx context.Context) (d store.StoreDiagnosis, err error) {
	err = s.snapshot(ctx, func(t *tx) error {
		d.Schema = value[int](t, `select version from auth_schema`)
		d.Waiting = value[int](t, `select count(*) from auth_messages where failed = 0`)
		if oldest := values[int64](t, `select created_at from auth_messages where failed = 0 order by created_at limit 1`); len(oldest) > 0 {
			d.Oldest = time.UnixMicro(oldest[0]).UTC()
		}
		return nil
	})
	if err != nil {
		return store.StoreDiagnosis{}, err
	}
	return d, nil
}

// KeyUses counts the stored data of each key.
func (s *Store) KeyUses(ctx context.Context, now time.Time) (uses store.KeyUses, err error) {
	err = s.snapshot(ctx, func(t *tx) error {
		count := func(query string, args ...any) map[string]int {
			of := map[string]int{}
			list(t, func(scan row) (none struct{}) {
				var key []byte
				var n int
				scan(&key, &n)
				of[string(key)] = n
				return none
			}, query, args...)
			return of
		}
		uses.Factors = count(`select substr(secret, 1, ?) as key, count(*) from auth_factors group by key`, store.KeyIDSize)
		uses.RecoveryCodes = count(`select substr(hash, 1, ?) as key, count(*) from auth_recovery_codes group by key`, store.KeyIDSize)
		uses.Messages = count(`select substr(body, 1, ?) as key, count(*) from auth_messages where expires_at > ? group by key`, store.KeyIDSize, micros(now))
		if oldest := values[int64](t, `select rotated_at from auth_sessions where revoked = 0 and ends_at > ? order by rotated_at limit 1`, micros(now)); len(oldest) > 0 {
			uses.OldestRefresh = time.UnixMicro(oldest[0]).UTC()
		}
		return nil
	})
	if err != nil {
		return store.KeyUses{}, err
	}
	return uses, nil
}
