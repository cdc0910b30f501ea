package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

// isNewDevice reports, for a locked user, whether a device is new, as the statements of
// CreateSession do.
const isNewDevice = `select u.last_sign_in_at is not null and not ` + seenOn + ` from auth.users u where u.id = $1::uuid`

// onDevice checks the device of a session that is to be created for a locked user.
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

// made calls NewDevice.Made if the device was new.
func made(on *store.NewDevice, isNew bool) {
	if isNew && on.Made != nil {
		on.Made()
	}
}

// forgotten replaces the devices that were forgotten, for as long as these would have
// been kept. A client that sends no device is then still reported as a new one.
const forgotten = "-" // the hash of none

// forgetDevices deletes devices of a locked user: only that of session $2 if given, and
// never that of session $3.
const forgetDevices = `with gone as (
		delete from auth.devices d where d.user_id = $1::uuid and d.device <> '` + forgotten + `'
			and ($2::uuid is null or d.device = (select s.device from auth.sessions s where s.id = $2::uuid and s.user_id = $1::uuid))
			and not exists (select from auth.sessions s where s.id = $3::uuid and s.user_id = $1::uuid and s.device = d.device)
		returning d.last_seen_at
	)
	insert into auth.devices as d (user_id, device, first_seen_at, last_seen_at)
	select $1::uuid, '` + forgotten + `', max(gone.last_seen_at), max(gone.last_seen_at) from gone having count(*) > 0
	on conflict (user_id, device) do update set last_seen_at = greatest(d.last_seen_at, excluded.last_seen_at)`

// queueForget adds to a batch the statements of store.RevokeSessions.DropDevices.
func (s *Store) queueForget(b *pgx.Batch, userID string, f store.SessionFilter) {
	only, ok := canonical(f.ID)
	if f.ID != "" && !ok {
		return // no session has this id
	}
	except, _ := canonical(f.Except)
	b.Queue(s.sql(forgetDevices), userID, orNull(only), orNull(except))
	if f.ID == "" {
		b.Queue(s.sql(trustNone), userID)
	}
}

func whenNewDevice(o store.OutcomeEvent) bool { return o.On == store.OutcomeNewDevice }
