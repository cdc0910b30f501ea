package sqlitestore

import (
	"time"

	"github.com/authmount/auth/store"
)

// forgotten is the device of a row that says that devices were forgotten, for as long as
// those would have been remembered. It makes a client that sends no device still count as
// new.
const forgotten = "-" // no device has this hash

// onDevice checks whether the device of a new session is new to the user.
func (t *tx) onDevice(e *effect, u *user, s *store.Session, on *store.NewDevice) error {
	known := t.exists(`select 1 from auth_devices where user_id = ? and device = ?`, u.ID, s.Device)
	if s.Device == "" {
		known = !t.exists(`select 1 from auth_devices where user_id = ? limit 1`, u.ID)
	}
	switch {
	case known || u.LastSignInAt.IsZero():
		return nil
	case on.Refuse:
		return store.ErrNewDevice
	}
	e.news = on
	return nil
}

// see remembers a device and forgets the least recently seen ones if there are too many.
func (t *tx) see(u *user, hash string, now time.Time, origin store.Origin) {
	if hash == "" {
		return
	}
	t.exec(`insert into auth_devices (user_id, device, first_seen_at, last_seen_at, sequence, added_by) values (?, ?, ?, ?, ?, ?)
		on conflict (user_id, device) do update set last_seen_at = max(last_seen_at, excluded.last_seen_at)`,
		u.ID, hash, micros(now), micros(now), origin.Sequence, origin.AddedBy)
	t.exec(`delete from auth_devices where user_id = ?1 and device in (
		select device from auth_devices where user_id = ?1 and device <> ?2 order by last_seen_at desc, device desc limit -1 offset ?3)`, u.ID, hash, store.MaxDevices-1)
}

// dropDevices forgets the user's devices, as RevokeSessions.DropDevices says.
func (t *tx) dropDevices(userID string, f store.SessionFilter) {
	of := func(id string) string {
		return value[string](t, `select device from auth_sessions where id = ? and user_id = ?`, id, userID)
	}
	only, except := of(f.ID), of(f.Except)
	latest := values[int64](t, `delete from auth_devices where user_id = ? and device <> ? and (? = '' or device = ?) returning last_seen_at`, userID, except, f.ID, only)
	for _, seen := range latest {
		t.exec(`insert into auth_devices (user_id, device, first_seen_at, last_seen_at, sequence, added_by) values (?, ?, ?, ?, 0, 0)
			on conflict (user_id, device) do update set last_seen_at = max(last_seen_at, excluded.last_seen_at)`, userID, forgotten, seen, seen)
	}
	if f.ID == "" {
		t.trustNone(userID)
	}
}

// trust makes a session's device trusted by its user. The session was just added.
func (t *tx) trust(u *user, n *store.NewSession) {
	if n.TrustUntil.IsZero() || n.Session.AAL != store.LevelAAL2 {
		return
	}
	t.exec(`update auth_devices set trusted_until = ?, trusted_revision = ? where user_id = ? and device = ?`, micros(n.TrustUntil), u.CredentialRevision, u.ID, n.Session.Device)
}

// trustedUntil returns until when the user trusts a device. A rise of the user's
// CredentialRevision ends that.
func (t *tx) trustedUntil(u *user, hash string) (until time.Time) {
	if found := first(t, func(scan row) (v time.Time) {
		scan(at{&v})
		return v
	}, `select trusted_until from auth_devices where user_id = ? and device = ? and trusted_revision = ?`, u.ID, hash, u.CredentialRevision); found != nil {
		until = *found
	}
	return until
}

func (t *tx) trustNone(userID string) {
	t.exec(`update auth_devices set trusted_until = null where user_id = ?`, userID)
}
