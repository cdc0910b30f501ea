package sqlitestore

import (
	"context"

	"github.com/authmount/auth/store"
)

// CreateUsers creates each of the users that it can.
func (s *Store) CreateUsers(ctx context.Context, c store.CreateUsers) (results []error, err error) {
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		e := &effect{noChange: true}
		e.apply = func() error {
			results = make([]error, len(c.Users))
			for i, r := range c.Users {
				if results[i] = t.addImported(&r); results[i] != nil {
					continue
				}
				e.noChange = false
				for _, event := range r.Events {
					t.addEvent(event, &effect{about: r.User.ID}, nil)
				}
			}
			return nil
		}
		return e, nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// addImported adds a user, or returns the error that CreateUser would have returned.
func (t *tx) addImported(r *store.ImportedRow) error {
	u := newUser(r.User, r.Factors)
	u.hash = r.PasswordHash
	u.Begin(u.hash != "")
	if t.exists(`select 1 from auth_users where id = ?`, u.ID) {
		return &store.ConflictError{Field: "id"}
	}
	if field := t.taken(&u.User); field != "" {
		return &store.ConflictError{Field: field}
	}
	if t.factorsTaken(r.Factors) || factorsClash(r.Factors) {
		return &store.ConflictError{Field: "factor"}
	}
	t.insertUser(u, r.Factors)
	return nil
}
