package pgstore

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth"
)

const keyColumns = `k.id, k.name, k.hash, k.scopes, coalesce(k.created_by::text, ''), k.revision, k.created_at, k.expires_at, k.revoked_at`

func keyOf(row pgx.CollectableRow) (auth.APIKey, error) {
	var k auth.APIKey
	var created, expires, revoked pgtype.Timestamptz
	err := row.Scan(&k.ID, &k.Name, &k.Hash, &k.Scopes, &k.CreatedBy, &k.Revision, &created, &expires, &revoked)
	k.CreatedAt, k.ExpiresAt, k.RevokedAt = at(created), at(expires), at(revoked)
	return k, err
}

const selectKey = `select ` + keyColumns + ` from auth.api_keys k where k.id = $1::uuid`

const putKey = `insert into auth.api_keys as k (id, name, hash, scopes, created_by, created_at, expires_at, revoked_at)
	values ($1::uuid, $2::text, $3::bytea, $4::text[], $5::uuid, $6::timestamptz, $7::timestamptz, $8::timestamptz)
	on conflict (id) do update set name = excluded.name, hash = excluded.hash, scopes = excluded.scopes, created_by = excluded.created_by,
		revision = k.revision + 1, expires_at = excluded.expires_at, revoked_at = excluded.revoked_at
	returning ` + keyColumns

// Key reads an API key.
func (s *Store) Key(ctx context.Context, id string) (auth.APIKey, error) {
	id, ok := canonical(id)
	if !ok {
		return auth.APIKey{}, cmp.Or(ctx.Err(), auth.ErrNotFound)
	}
	var k auth.APIKey
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		rows, err := q.Query(ctx, s.sql(selectKey), id)
		if err == nil {
			k, err = pgx.CollectExactlyOneRow(rows, keyOf)
		}
		return err
	})
	if err != nil {
		return auth.APIKey{}, err
	}
	return k, nil
}

// PutKey adds or replaces an API key.
func (s *Store) PutKey(ctx context.Context, c auth.PutKey) (auth.APIKey, error) {
	k := c.Key
	var kept auth.APIKey
	err := s.change(ctx, &c.Change, target{keys: []string{k.ID}}, func(ctx context.Context, tx pgx.Tx, _ *held) (*result, error) {
		rows, err := tx.Query(ctx, s.sql(putKey), k.ID, k.Name, orEmpty(k.Hash), orEmpty(k.Scopes), orNull(k.CreatedBy), c.Now, moment(k.ExpiresAt), moment(k.RevokedAt))
		if err == nil {
			kept, err = pgx.CollectExactlyOneRow(rows, keyOf)
		}
		return &result{}, err
	})
	if err != nil {
		return auth.APIKey{}, err
	}
	return kept, nil
}
