package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
)

// isNewDevice asks of a user who is locked what the statements above find out.
const isNewDevice = `select u.last_sign_in_at is not null and not ` + seenOn + ` from auth.users u where u.id = $1::uuid`

// onDevice judges the device of a session that is to be made for a user who is
// locked.
func (s *Store) onDevice(ctx context.Context, tx pgx.Tx, of *lockedUser, sess *auth.Session, on *auth.NewDevice, r *result) error {
	var isNew bool
	if err := tx.QueryRow(ctx, s.sql(isNewDevice), of.id, asText(sess.Device)).Scan(&isNew); err != nil || !isNew {
		return err
	}
	if on.Refuse {
		return auth.ErrNewDevice
	}
	r.tells = on
	return nil
}

// made tells the caller of a device that was new.
func made(on *auth.NewDevice, isNew bool) {
	if isNew && on.Made != nil {
		on.Made()
	}
}

func whenNewDevice(o auth.OutcomeEvent) bool { return o.On == auth.OutcomeNewDevice }
