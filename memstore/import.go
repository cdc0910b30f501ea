package memstore

import (
	"context"
	"slices"

	"github.com/authmount/auth/store"
)

// claim is a unique value that a user has.
type claim struct{ field, value string }

// CreateUsers creates each of the users that it can.
func (s *Store) CreateUsers(ctx context.Context, c store.CreateUsers) (results []error, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		e := &effect{noChange: true}
		results = make([]error, len(c.Users))
		made, claimed := make([]*user, len(c.Users)), map[claim]bool{}
		for i, row := range c.Users {
			u := newUser(row.User, row.PasswordHash)
			u.Revision, u.CredentialRevision = 0, 0
			u.Begin(u.hash != "")
			if results[i] = s.mayAdd(u, row.Factors, claimed); results[i] != nil {
				continue
			}
			for _, v := range claimsOf(&u.User, row.Factors) {
				claimed[v] = true
			}
			made[i], e.noChange = u, false
			if slices.Contains(u.Roles, store.RoleOwner) && !u.Banned(c.Now) && u.AcceptedSequence > 0 {
				e.after = &u.User
			}
		}
		e.apply = func() error {
			for i, u := range made {
				if u == nil {
					continue
				}
				s.users[u.ID] = u
				s.index(u)
				for _, event := range c.Users[i].Events {
					s.addEvent(event, &effect{about: u.ID}, nil)
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

// mayAdd returns the error that prevents adding a user next to the users of claimed.
func (s *Store) mayAdd(u *user, factors []store.Factor, claimed map[claim]bool) error {
	if s.users[u.ID] != nil {
		return &store.ConflictError{Field: "id"}
	}
	if err := s.conflict(&u.User, ""); err != nil {
		return err
	}
	if err := s.factorTaken(factors); err != nil {
		return err
	}
	for _, v := range claimsOf(&u.User, factors) {
		if claimed[v] {
			return &store.ConflictError{Field: v.field}
		}
	}
	return u.arm(factors)
}

// claimsOf returns the unique values of a user and its factors.
func claimsOf(u *store.User, factors []store.Factor) []claim {
	list := []claim{{"id", u.ID}}
	if u.Email != "" {
		list = append(list, claim{"email", store.EmailKey(u.Email)})
	}
	if u.Phone != "" {
		list = append(list, claim{"phone", u.Phone})
	}
	if u.Handle != "" {
		list = append(list, claim{"handle", u.Handle})
	}
	for _, i := range u.Identities {
		list = append(list, claim{"identity", i.Provider + "\x00" + i.Subject})
	}
	for _, f := range factors {
		list = append(list, claim{"factor", "id " + f.ID})
		if len(f.Credential) > 0 {
			list = append(list, claim{"factor", "credential " + string(f.Credential)})
		}
	}
	return list
}

// arm gives a new user enabled second factors.
func (u *user) arm(factors []store.Factor) error {
	u.MFAEnabled = false
	for _, f := range factors {
		f = copyFactor(f)
		if u.hasKind(&f) || u.factors[f.ID] != nil {
			return &store.ConflictError{Field: "factor"}
		}
		f.UserID, f.Enabled, f.Origin = u.ID, true, store.Origin{Sequence: u.Sequence}
		u.MFAEnabled = u.MFAEnabled || f.Required
		u.factors[f.ID] = &f
	}
	return nil
}
