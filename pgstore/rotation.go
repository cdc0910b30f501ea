package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/store"
)

// keyUses counts sealed data by its first $2 bytes, which identify the key, and finds
// the oldest refresh token among the sessions that are live at $1. It reads whole
// tables.
const keyUses = `select 'factor', substring(f.secret from 1 for $2::integer) as key, count(*), null::timestamptz from auth.factors f group by key
	union all
	select 'code', substring(c.hash from 1 for $2::integer) as key, count(*), null::timestamptz from auth.recovery_codes c group by key
	union all
	select 'message', substring(m.body from 1 for $2::integer) as key, count(*), null::timestamptz from auth.messages m
		where m.expires_at > $1::timestamptz group by key
	union all
	select 'session', ''::bytea, count(*), min(s.rotated_at) from auth.sessions s
		where s.revoked_at is null and least(s.idle_until, s.expires_at) > $1::timestamptz`

// KeyUses counts the stored data that depends on each key, and returns the time of the
// oldest refresh token.
func (s *Store) KeyUses(ctx context.Context, now time.Time) (store.KeyUses, error) {
	var uses store.KeyUses
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		uses = store.KeyUses{Factors: map[string]int{}, RecoveryCodes: map[string]int{}, Messages: map[string]int{}}
		rows, err := q.Query(ctx, s.sql(keyUses), now, store.KeyIDSize)
		if err != nil {
			return err
		}
		var kind string
		var key []byte
		var n int
		var oldest pgtype.Timestamptz
		_, err = pgx.ForEachRow(rows, []any{&kind, &key, &n, &oldest}, func() error {
			switch kind {
			case "factor":
				uses.Factors[string(key)] = n
			case "code":
				uses.RecoveryCodes[string(key)] = n
			case "message":
				uses.Messages[string(key)] = n
			case "session":
				uses.OldestRefresh = at(oldest)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return store.KeyUses{}, err
	}
	return uses, nil
}
