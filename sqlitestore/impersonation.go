package sqlitestore

import (
	"time"

	"github.com/authmount/auth/store"
)

// liveImpersonation is the condition that an impersonation i is live at the time ?1 (see
// store.AdminStore).
const liveImpersonation = `i.ended = 0 and i.expires_at > ?1
	and exists (select 1 from auth_sessions s where s.id = i.actor_session and s.user_id = i.actor_id and s.revoked = 0 and s.ends_at > ?1)
	and exists (select 1 from auth_users a where a.id = i.actor_id and (a.banned_until is null or a.banned_until <= ?1) and a.credential_revision = i.actor_revision)
	and exists (select 1 from auth_users u where u.id = i.user_id and (u.banned_until is null or u.banned_until <= ?1) and u.credential_revision = i.user_revision)
	and i.roles_revision = (select roles_revision from auth_project)`

// revokeImpersonations ends a user's impersonations that match, and returns their ids.
func (t *tx) revokeImpersonations(userID string, f store.SessionFilter, now time.Time) []string {
	return values[string](t, `update auth_impersonations as i set ended = 1 where `+liveImpersonation+` and i.user_id = ?2
		and (?3 = '' or i.id = ?3) and i.id <> ?4 and i.sequence >= ?5 and (?6 is null or i.created_at < ?6) and (?7 = '' or i.ip = ?7) returning id`,
		micros(now), userID, f.ID, f.Except, f.FromSequence, maybe(f.Before), f.IP)
}
