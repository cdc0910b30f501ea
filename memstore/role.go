package memstore

import (
	"context"
	"maps"
	"slices"

	"github.com/authmount/auth/store"
)

// Roles reads the whole table of roles.
func (s *Store) Roles(ctx context.Context) (store.RoleTable, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return store.RoleTable{}, err
	}
	defer unlock()
	return s.roleTable(), nil
}

func (s *Store) roleTable() store.RoleTable {
	t := store.RoleTable{Revision: s.rolesRevision, Roles: []store.RolePermissions{}, Privileged: slices.Sorted(maps.Keys(s.privileged))}
	for _, name := range slices.Sorted(maps.Keys(s.roles)) {
		t.Roles = append(t.Roles, copyRole(s.roles[name]))
	}
	return t
}

// EverOwned reports whether there has been an owner at some time.
func (s *Store) EverOwned(ctx context.Context) (bool, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	return s.owned, nil
}

// PutRole adds or replaces a role.
func (s *Store) PutRole(ctx context.Context, c store.PutRole) (t store.RoleTable, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		return &effect{apply: func() error {
			role := copyRole(c.Role)
			role.CreatedAt, role.UpdatedAt = c.Now, c.Now
			if older, ok := s.roles[role.Name]; ok {
				role.CreatedAt = older.CreatedAt
			}
			s.roles[role.Name] = role
			delete(s.privileged, role.Name)
			if role.Privileged {
				s.privileged[role.Name] = true
			}
			s.rolesRevision++
			t = s.roleTable()
			return nil
		}}, nil
	})
	return t, err
}

// DeleteRole removes a role that no user has.
func (s *Store) DeleteRole(ctx context.Context, c store.DeleteRole) (t store.RoleTable, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		if _, ok := s.roles[c.Name]; !ok {
			return nil, store.ErrNotFound
		}
		for _, u := range s.users {
			if slices.Contains(u.Roles, c.Name) {
				return nil, &store.ConflictError{Field: "role"}
			}
		}
		return &effect{apply: func() error {
			delete(s.roles, c.Name)
			s.rolesRevision++
			t = s.roleTable()
			return nil
		}}, nil
	})
	return t, err
}

func copyRole(r store.RolePermissions) store.RolePermissions {
	r.Permissions = slices.Clone(r.Permissions)
	return r
}
