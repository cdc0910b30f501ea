package auth

import "slices"

// isOwner tells whether a user has the role that may do everything. Whatever
// takes it away, or its holder, must leave another one (Change.KeepOwner).
func isOwner(u User) bool { return slices.Contains(u.Roles, RoleOwner) }
