package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

// isNewDevice asks of a user who is locked what the statements above find out.
const isNewDevice = `select u.last_sign_in_at is not null and not ` + seenOn + ` from auth.users u where u.id = $1::uuid`

// onDevice judges the device of a session that is to be made for a user who is
// locked.
func (s *Store) onDevice(ctx context.Context, tx pgx.Tx, of *lockedUser, sess *store.Session, on *store.NewDevice, r *result) error {
	var isNew bool
	if err := tx.QueryRow(ctx, s.sql(isNewDevice), of.id, asText(sess.Device)).Scan(&isNew); err != nil || !isNew {
		return err
	}
	if on.Refuse {
		return store.ErrNewDevice
	}
	r.tells = on
	return nil
}

// made tells the caller of a device that was new.
func made(on *store.NewDevice, isNew bool) {
	if isNew && on.Made != nil {
		on.Made()
	}
}

// forgotten is remembered in place of devices that were forgotten, as long as they
// would have been: a client that says nothing of its device is told of still.
const forgotten = "-" // the hash of none

// forgetDevices forgets devices of a user who is locked: that of the session $2
// only, if there is one, and not that of $3.
const forgetDevices = `with gone as (
		delete from auth.devices d where d.user_id = $1::uuid and d.device <> '` + forgotten + `'
			and ($2::uuid is null or d.device = (select s.device from auth.sessions s where s.id = $2::uuid and s.user_id = $1::uuid))
			and not exists (select from auth.sessions s where s.id = $3::uuid and s.user_id = $1::uuid and s.device = d.device)
		returning d.last_seen_at
	)
	insert into auth.devices as d (user_id, device, first_seen_at, last_seen_at)
	select $1::uuid, '` + forgotten + `', max(gone.last_seen_at), max(gone.last_seen_at) from gone having count(*) > 0
	on conflict (user_id, device) do update set last_seen_at = greatest(d.last_seen_at, excluded.last_seen_at)`

// queueForget adds to a batch what store.RevokeSessions.DropDevices says.
func (s *Store) queueForget(b *pgx.Batch, userID string, f store.SessionFilter) {
	only, ok := canonical(f.ID)
	if f.ID != "" && !ok {
		return // nobody's
	}
	except, _ := canonical(f.Except)
	b.Queue(s.sql(forgetDevices), userID, orNull(only), orNull(except))
	if f.ID == "" {
		b.Queue(s.sql(trustNone), userID)
	}
}

func whenNewDevice(o store.OutcomeEvent) bool { return o.On == store.OutcomeNewDevice }
