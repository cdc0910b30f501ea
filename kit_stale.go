package auth

import "github.com/authmount/auth/store"

func (k kit) Stale(u User) {
	k.a.Revoke(store.Revocation{UserID: u.ID, Stale: u.CredentialRevision, At: k.a.now()})
}

func (k kit) StaleRole(role string, t store.RoleTable) {
	k.a.Revoke(store.Revocation{Role: role, Stale: t.Revision, At: k.a.now()})
}
