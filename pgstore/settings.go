package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/store"
)

const selectSettings = `select s.revision, s.document, s.updated_at from auth.settings s where s.one`

// putSettings runs after the locks. If two calls have the same revision, the second
// waits here, and then finds another revision. Before the first document there is no
// row, which is revision 0.
const putSettings = `insert into auth.settings as s (one, revision, document, updated_at)
	select true, 1, $2::text, $3::timestamptz where $1::bigint = 0 or exists (select from auth.settings)
	on conflict (one) do update set revision = s.revision + 1, document = excluded.document, updated_at = excluded.updated_at
		where s.revision = $1::bigint
	returning s.revision, s.document, s.updated_at`

func settingsOf(row pgx.Row) (store.StoredSettings, error) {
	var d store.StoredSettings
	var document string
	var updated pgtype.Timestamptz
	err := row.Scan(&d.Revision, &document, &updated)
	if err != nil {
		return store.StoredSettings{}, err
	}
	if document != "" {
		d.Document = []byte(document)
	}
	d.UpdatedAt = at(updated)
	return d, nil
}

// readSettings reads the document. If there is none yet, it returns the zero value.
func (s *Store) readSettings(ctx context.Context, q querier) (store.StoredSettings, error) {
	d, err := settingsOf(q.QueryRow(ctx, s.sql(selectSettings)))
	if errors.Is(err, pgx.ErrNoRows) {
		return store.StoredSettings{}, nil
	}
	return d, err
}

// Settings reads the document of settings.
func (s *Store) Settings(ctx context.Context) (store.StoredSettings, error) {
	var d store.StoredSettings
	err := s.do(ctx, func(ctx context.Context, q querier) (err error) {
		d, err = s.readSettings(ctx, q)
		return err
	})
	if err != nil {
		return store.StoredSettings{}, err
	}
	return d, nil
}

// PutSettings replaces the document of settings.
func (s *Store) PutSettings(ctx context.Context, c store.PutSettings) (store.StoredSettings, error) {
	var kept store.StoredSettings
	err := s.change(ctx, &c.Change, target{}, func(ctx context.Context, tx pgx.Tx, _ *held) (*result, error) {
		var err error
		if c.Document == nil {
			kept, err = s.readSettings(ctx, tx)
			return &result{}, err
		}
		kept, err = settingsOf(tx.QueryRow(ctx, s.sql(putSettings), c.Revision, string(c.Document), c.Now))
		if errors.Is(err, pgx.ErrNoRows) {
			err = store.ErrStale
		}
		return &result{}, err
	})
	if err != nil {
		return store.StoredSettings{}, err
	}
	return kept, nil
}
