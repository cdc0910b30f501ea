package sqlitestore

import (
	"context"

	"github.com/authmount/auth/store"
)

func (t *tx) rolesRevision() int64 { return value[int64](t, `select roles_revision from auth_project`) }

// raiseRoles raises the revision of the table. It comes before the change, with which the
// new revision is reported to other processes.
func (t *tx) raiseRoles() { t.exec(`update auth_project set roles_revision = roles_revision + 1`) }

// Roles reads the whole table of roles.
func (s *Store) Roles(ctx context.Context) (table store.RoleTable, err error) {
	err = s.snapshot(ctx, func(t *tx) error {
		table = t.roleTable()
		return nil
	})
	if err != nil {
		return store.RoleTable{}, err
	}
	return table, nil
}

func (t *tx) roleTable() store.RoleTable {
	return store.RoleTable{
		Revision: t.rolesRevision(),
		Roles: list(t, func(scan row) (r store.RolePermissions) {
			scan(&r.Name, &r.Description, parsed{&r.Permissions}, at{&r.CreatedAt}, at{&r.UpdatedAt}, &r.Privileged)
			return r
		}, `select r.name, r.description, r.permissions, r.created_at, r.updated_at, exists (select 1 from auth_privileged_roles p where p.name = r.name) from auth_roles r order by r.name`),
		Privileged: values[string](t, `select name from auth_privileged_roles order by name`),
	}
}

// PutRole adds or replaces a role.
func (s *Store) PutRole(ctx context.Context, c store.PutRole) (table store.RoleTable, err error) {
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		return &effect{apply: func() error {
			t.raiseRoles()
			t.exec(`insert into auth_roles (name, description, permissions, created_at, updated_at) values (?, ?, ?, ?, ?)
				on conflict (name) do update set description = excluded.description, permissions = excluded.permissions, updated_at = excluded.updated_at`,
				c.Role.Name, c.Role.Description, t.text(c.Role.Permissions), micros(c.Now), micros(c.Now))
			t.exec(`delete from auth_privileged_roles where name = ?`, c.Role.Name)
			if c.Role.Privileged {
				t.exec(`insert into auth_privileged_roles (name) values (?)`, c.Role.Name)
			}
			table = t.roleTable()
			return nil
		}}, nil
	})
	if err != nil {
		return store.RoleTable{}, err
	}
	return table, nil
}

// DeleteRole removes a role that no user has.
func (s *Store) DeleteRole(ctx context.Context, c store.DeleteRole) (table store.RoleTable, err error) {
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		switch {
		case !t.exists(`select 1 from auth_roles where name = ?`, c.Name):
			return nil, store.ErrNotFound
		case t.exists(`select 1 from auth_user_roles where role = ? limit 1`, c.Name):
			return nil, &store.ConflictError{Field: "role"}
		}
		return &effect{apply: func() error {
			t.raiseRoles()
			t.exec(`delete from auth_roles where name = ?`, c.Name)
			table = t.roleTable()
			return nil
		}}, nil
	})
	if err != nil {
		return store.RoleTable{}, err
	}
	return table, nil
}
