package sqlitestore

func (t *tx) rolesRevision() int64 { return value[int64](t, `select roles_revision from auth_project`) }
