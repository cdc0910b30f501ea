package pgstore

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/store"
)

// selectRoles reads the roles together with their revision. "limit 1" tells Postgres
// that there is one revision. Without it, Postgres assumes a never-analysed table to be
// large and JIT-compiles the query.
const selectRoles = `select v.revision, v.privileged, r.name, r.description, r.permissions, r.created_at, r.updated_at
	from (select revision, privileged from auth.role_revision limit 1) v left join auth.roles r on true order by r.name collate "C"`

const putRole = `with revision as (
		update auth.role_revision set revision = revision + 1,
			privileged = array_remove(privileged, $1::text) || case when $5::boolean then array[$1::text] else '{}' end
	)
	insert into auth.roles (name, description, permissions, created_at, updated_at)
	values ($1::text, $2::text, $3::text[], $4::timestamptz, $4::timestamptz)
	on conflict (name) do update set description = excluded.description, permissions = excluded.permissions, updated_at = excluded.updated_at`

const deleteRole = `with gone as (
		delete from auth.roles where name = $1::text returning name
	)
	update auth.role_revision set revision = revision + 1 where exists (select from gone)`

const roleIsHeld = `select exists (select from auth.users u where u.roles <> '{}' and u.roles @> array[$1::text])`

// Roles reads the whole table of roles.
func (s *Store) Roles(ctx context.Context) (store.RoleTable, error) {
	var t store.RoleTable
	err := s.do(ctx, func(ctx context.Context, q querier) (err error) {
		t, err = s.readRoles(ctx, q)
		return err
	})
	return t, err
}

func (s *Store) readRoles(ctx context.Context, q querier) (store.RoleTable, error) {
	t := store.RoleTable{Roles: []store.RolePermissions{}}
	rows, err := q.Query(ctx, s.sql(selectRoles))
	if err != nil {
		return store.RoleTable{}, err
	}
	var name, description pgtype.Text
	var permissions []string
	var created, updated pgtype.Timestamptz
	_, err = pgx.ForEachRow(rows, []any{&t.Revision, &t.Privileged, &name, &description, &permissions, &created, &updated}, func() error {
		if name.Valid {
			t.Roles = append(t.Roles, store.RolePermissions{Name: name.String, Description: description.String, Permissions: permissions, CreatedAt: at(created), UpdatedAt: at(updated)})
		}
		return nil
	})
	if err != nil {
		return store.RoleTable{}, err
	}
	slices.Sort(t.Privileged)
	for i := range t.Roles {
		_, t.Roles[i].Privileged = slices.BinarySearch(t.Privileged, t.Roles[i].Name)
	}
	return t, nil
}

// PutRole adds or replaces a role.
func (s *Store) PutRole(ctx context.Context, c store.PutRole) (store.RoleTable, error) {
	return s.changeRoles(ctx, &c.Change, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, s.sql(putRole), c.Role.Name, c.Role.Description, nonNil(c.Role.Permissions), c.Now, c.Role.Privileged)
		return err
	})
}

// DeleteRole deletes a role that no user has.
func (s *Store) DeleteRole(ctx context.Context, c store.DeleteRole) (store.RoleTable, error) {
	return s.changeRoles(ctx, &c.Change, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, s.sql(deleteRole), c.Name)
		if err == nil && tag.RowsAffected() == 0 {
			err = store.ErrNotFound
		}
		if err != nil {
			return err
		}
		var isHeld bool
		if err := tx.QueryRow(ctx, s.sql(roleIsHeld), c.Name).Scan(&isHeld); err != nil {
			return err
		}
		if isHeld {
			return &store.ConflictError{Field: "role"}
		}
		return nil
	})
}

// changeRoles locks the revision of the table of roles while f changes the table.
func (s *Store) changeRoles(ctx context.Context, c *store.Change, f func(context.Context, pgx.Tx) error) (store.RoleTable, error) {
	var t store.RoleTable
	err := s.change(ctx, c, target{roles: rolesChange}, func(ctx context.Context, tx pgx.Tx, _ *held) (*result, error) {
		err := f(ctx, tx)
		if err == nil {
			t, err = s.readRoles(ctx, tx)
		}
		return &result{}, err
	})
	if err != nil {
		return store.RoleTable{}, err
	}
	return t, nil
}
