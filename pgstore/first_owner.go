package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

// selectFirstOwner reads the id of the first owner ever; "" if there was none.
const selectFirstOwner = `select coalesce(o.user_id::text, '') from auth.first_owner o`

// EverOwned reports whether there has ever been an owner.
func (s *Store) EverOwned(ctx context.Context) (bool, error) {
	var first string
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, s.sql(selectFirstOwner)).Scan(&first)
	})
	return first != "", err
}

// checkFirstOwner checks FirstOwner after the effect. The effect has waited at the one row
// of first_owner for any other change that makes a user an owner. If the row now names
// another user, that user was first. No other change can have made this change's user
// an owner since h.first was read, because the user was locked before.
func (s *Store) checkFirstOwner(ctx context.Context, tx pgx.Tx, h *held, r *result) error {
	var first string
	if err := tx.QueryRow(ctx, s.sql(selectFirstOwner)).Scan(&first); err != nil {
		return err
	}
	if h.first != "" || first != "" && first != r.about {
		return store.ErrOwned
	}
	return nil
}
