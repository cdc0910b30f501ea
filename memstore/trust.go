package memstore

import (
	"time"

	"github.com/authmount/auth/store"
)

// trust makes a session's device trusted by its user. The session was just added.
func (u *user) trust(c *store.NewSession) {
	d, known := u.devices[c.Session.Device]
	if c.TrustUntil.IsZero() || c.Session.AAL != store.LevelAAL2 || !known {
		return
	}
	d.TrustedUntil, d.TrustedAt = utc(c.TrustUntil), u.CredentialRevision
	u.devices[c.Session.Device] = d
}

// trustedUntil returns until when the user trusts a device. A rise of the user's
// CredentialRevision ends that.
func (u *user) trustedUntil(hash string) time.Time {
	d := u.devices[hash]
	if d.TrustedAt != u.CredentialRevision {
		return time.Time{}
	}
	return d.TrustedUntil
}

func (u *user) trustNone() {
	for hash, d := range u.devices {
		d.TrustedUntil, d.TrustedAt = time.Time{}, 0
		u.devices[hash] = d
	}
}
