package auth

import "github.com/authmount/auth/store"

// Stale refuses in this process, at once, the access tokens that a change of roles
// has made stale; a feed tells the others (Revoke). u is the user as changed.
func (k kit) Stale(u User) {
	k.a.Revoke(store.Revocation{UserID: u.ID, Stale: u.CredentialRevision, At: k.a.now()})
}

// StaleRole is Stale for those who have a role whose permissions have changed; t is
// the table as changed.
func (k kit) StaleRole(role string, t store.RoleTable) {
	k.a.Revoke(store.Revocation{Role: role, Stale: t.Revision, At: k.a.now()})
}
