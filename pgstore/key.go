package pgstore

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/store"
)

const keyColumns = `k.id, k.name, k.is_public, k.environment, k.hash, k.scopes, k.networks, coalesce(k.created_by::text, ''), k.adopted, k.hourly_limit,
	k.revision, k.created_at, k.expires_at, k.revoked_at, k.last_used_at, k.previous_hash, k.previous_until, k.rotated_at,
	coalesce(k.text_user::text, ''), k.text_sequence`

func keyOf(row pgx.CollectableRow) (store.APIKey, error) {
	var k store.APIKey
	var created, expires, revoked, used, previous, rotated pgtype.Timestamptz
	err := row.Scan(&k.ID, &k.Name, &k.Public, &k.Environment, &k.Hash, &k.Scopes, &k.Networks, &k.CreatedBy, &k.Adopted, &k.HourlyLimit,
		&k.Revision, &created, &expires, &revoked, &used, &k.PreviousHash, &previous, &rotated, &k.TextUser, &k.TextSequence)
	k.CreatedAt, k.ExpiresAt, k.RevokedAt, k.LastUsedAt, k.PreviousUntil, k.RotatedAt = at(created), at(expires), at(revoked), at(used), at(previous), at(rotated)
	return k, err
}

const selectKey = `select ` + keyColumns + ` from auth.api_keys k where k.id = $1::uuid`

// listKeys is the beginning of lists of keys; each query adds only its own conditions.
const listKeys = `select ` + keyColumns + ` from auth.api_keys k where true`

const putKey = `insert into auth.api_keys as k (id, name, is_public, environment, hash, scopes, networks, created_by, adopted, created_at, expires_at, revoked_at, previous_hash, previous_until, rotated_at, hourly_limit, text_user, text_sequence)
	values ($1::uuid, $2::text, $3::boolean, $4::text, $5::bytea, $6::text[], $7::text[], $8::uuid, $9::boolean, $10::timestamptz, $11::timestamptz, $12::timestamptz, $13::bytea, $14::timestamptz, $15::timestamptz, $16::integer, $17::uuid, $18::bigint)
	on conflict (id) do update set name = excluded.name, is_public = excluded.is_public, environment = excluded.environment, hash = excluded.hash,
		scopes = excluded.scopes, networks = excluded.networks, created_by = excluded.created_by, adopted = excluded.adopted, revision = k.revision + 1,
		expires_at = excluded.expires_at, revoked_at = excluded.revoked_at, previous_hash = excluded.previous_hash, previous_until = excluded.previous_until,
		rotated_at = excluded.rotated_at, hourly_limit = excluded.hourly_limit,
		text_user = case when k.hash = excluded.hash then k.text_user else excluded.text_user end,
		text_sequence = case when k.hash = excluded.hash then k.text_sequence else excluded.text_sequence end
	returning ` + keyColumns

// useKey does not wait for a lock: if a change has locked the key, its next use is
// noted instead.
const useKey = `update auth.api_keys k set last_used_at = $2::timestamptz
	where k.id = (select u.id from auth.api_keys u
		where u.id = $1::uuid and (u.last_used_at is null or u.last_used_at <= $2::timestamptz - interval '1 minute')
		for no key update skip locked)`

// Key reads an API key.
func (s *Store) Key(ctx context.Context, id string) (store.APIKey, error) {
	id, ok := canonical(id)
	if !ok {
		return store.APIKey{}, cmp.Or(ctx.Err(), store.ErrNotFound)
	}
	var k store.APIKey
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		rows, err := q.Query(ctx, s.sql(selectKey), id)
		if err == nil {
			k, err = pgx.CollectExactlyOneRow(rows, keyOf)
		}
		return err
	})
	if err != nil {
		return store.APIKey{}, err
	}
	return k, nil
}

// Keys lists API keys.
func (s *Store) Keys(ctx context.Context, q store.KeyQuery) ([]store.APIKey, error) {
	b := &query{}
	b.sql.WriteString(listKeys)
	if q.Public != nil && *q.Public {
		b.where(`k.is_public`)
	} else if q.Public != nil {
		b.where(`not k.is_public`)
	}
	if !q.LiveAt.IsZero() {
		b.where(`k.revoked_at is null and (k.expires_at is null or k.expires_at > ?::timestamptz)`, q.LiveAt)
	}
	if q.After != nil {
		b.where(`(k.created_at, k.id) < (?::timestamptz, ?::uuid)`, q.After.CreatedAt, q.After.ID)
	}
	b.add(` order by k.created_at desc, k.id desc limit ?::integer`, q.Limit)
	list := []store.APIKey{}
	err := s.do(ctx, func(ctx context.Context, on querier) error {
		list = list[:0]
		rows, err := on.Query(ctx, s.sql(b.sql.String()), b.args...)
		if err == nil {
			list, err = pgx.AppendRows(list, rows, keyOf)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// UseKey stores the time at which an API key was last used.
func (s *Store) UseKey(ctx context.Context, id string, at time.Time) error {
	id, ok := canonical(id)
	if !ok {
		return ctx.Err()
	}
	return s.do(ctx, func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, s.sql(useKey), id, micro(at))
		return err
	})
}

// PutKey adds or replaces an API key.
func (s *Store) PutKey(ctx context.Context, c store.PutKey) (store.APIKey, error) {
	k := c.Key
	var kept store.APIKey
	err := s.change(ctx, &c.Change, target{keys: []string{k.ID}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		if older := h.key(k.ID); c.IfRevision != nil && (older == nil || older.Revision != *c.IfRevision) {
			return nil, store.ErrStale
		}
		var user string
		var sequence int64
		if by := c.By.Session; by != nil {
			user, sequence = by.UserID, h.session(by.ID).s.Sequence
		}
		rows, err := tx.Query(ctx, s.sql(putKey), k.ID, k.Name, k.Public, k.Environment, nonNil(k.Hash), nonNil(k.Scopes), nonNil(k.Networks), orNull(k.CreatedBy), k.Adopted,
			c.Now, moment(k.ExpiresAt), moment(k.RevokedAt), maybeBytes(k.PreviousHash), moment(k.PreviousUntil), moment(k.RotatedAt), k.HourlyLimit, orNull(user), sequence)
		if err == nil {
			kept, err = pgx.CollectExactlyOneRow(rows, keyOf)
		}
		return &result{}, err
	})
	if err != nil {
		return store.APIKey{}, err
	}
	return kept, nil
}
