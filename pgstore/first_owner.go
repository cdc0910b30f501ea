package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

// selectFirstOwner names the first owner ever, or nobody ("").
const selectFirstOwner = `select coalesce(o.user_id::text, '') from auth.first_owner o`

// EverOwned tells whether there has been an owner.
func (s *Store) EverOwned(ctx context.Context) (bool, error) {
	var first string
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, s.sql(selectFirstOwner)).Scan(&first)
	})
	return first != "", err
}

// judgeFirst judges FirstOwner after the effect, which has waited at the one row of
// first_owner for whoever else was making an owner: if it names somebody else by now,
// they were first. The user whom this change makes owner was locked when h.first was
// read, so that nobody made them one since.
func (s *Store) judgeFirst(ctx context.Context, tx pgx.Tx, h *held, r *result) error {
	var first string
	if err := tx.QueryRow(ctx, s.sql(selectFirstOwner)).Scan(&first); err != nil {
		return err
	}
	if h.first != "" || first != "" && first != r.about {
		return store.ErrOwned
	}
	return nil
}
