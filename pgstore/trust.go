package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

// A device is trusted at one credential revision of its user. Every change that raises
// the revision ends all trust, without knowing of devices.
const (
	trustsDevice = `select exists (select from auth.devices d
		where d.user_id = $1::uuid and d.device = $2::text and d.trusted_until > $3::timestamptz and d.trusted_revision = $4::bigint)`
	trustDevice = `update auth.devices d set trusted_until = $3::timestamptz, trusted_revision = $4::bigint where d.user_id = $1::uuid and d.device = $2::text`
	trustNone   = `update auth.devices d set trusted_until = null, trusted_revision = null where d.user_id = $1::uuid and d.trusted_until is not null`
)

// mayPass checks whether a locked user may have a session at its level without a second
// factor. Errors: ErrMFARequired.
func (s *Store) mayPass(ctx context.Context, tx pgx.Tx, of *lockedUser, c *store.NewSession, now time.Time) error {
	trusted := !of.mfaEnabled || c.Session.AAL == store.LevelAAL2
	if !trusted && c.OnTrustedDevice {
		err := tx.QueryRow(ctx, s.sql(trustsDevice), of.id, asText(c.Session.Device), now, of.credentialRevision).Scan(&trusted)
		if err != nil {
			return err
		}
	}
	if !trusted {
		return store.ErrMFARequired
	}
	return nil
}

// trust marks the device of a new session as trusted by its user, who is locked.
func (s *Store) trust(ctx context.Context, tx pgx.Tx, of *lockedUser, c *store.NewSession) error {
	if c.TrustUntil.IsZero() || c.Session.AAL != store.LevelAAL2 {
		return nil
	}
	_, err := tx.Exec(ctx, s.sql(trustDevice), of.id, asText(c.Session.Device), c.TrustUntil, of.credentialRevision)
	return err
}
