package sqlitestore

import (
	"slices"

	"github.com/authmount/auth/store"
)

// factorsClash reports whether new factors exclude each other.
func factorsClash(all []store.Factor) bool {
	for n, f := range all {
		if slices.ContainsFunc(all[:n], func(o store.Factor) bool {
			return o.ID == f.ID || o.Kind == f.Kind && !f.Several
		}) {
			return true
		}
	}
	return false
}

// factorsTaken reports whether the id or credential of a new factor is taken.
func (t *tx) factorsTaken(all []store.Factor) bool {
	for n, f := range all {
		if t.exists(`select 1 from auth_factors where id = ? or credential = ?`, f.ID, bytesOrNull(f.Credential)) ||
			len(f.Credential) > 0 && slices.ContainsFunc(all[:n], func(o store.Factor) bool { return string(o.Credential) == string(f.Credential) }) {
			return true
		}
	}
	return false
}

func (t *tx) insertFactor(f *store.Factor) {
	t.exec(`insert into auth_factors (id, user_id, kind, several, required, label, credential, secret, state, enabled, created_at, last_used_at, sequence, added_by)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		f.ID, f.UserID, f.Kind, f.Several, f.Required, f.Label, bytesOrNull(f.Credential), blob(f.Secret), blob(f.State), f.Enabled, micros(f.CreatedAt), maybe(f.LastUsedAt), f.Sequence, f.AddedBy)
}
