package storetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/authmount/auth/store"
)

// importBase is a store with imports of its own.
type importBase struct {
	base
	store.AdminStore
}

// importedOtherwise is a mutant that edits a call of CreateUsers or its results.
type importedOtherwise struct {
	importBase
	call func(s importBase, ctx context.Context, c store.CreateUsers) ([]error, error)
}

func (s importedOtherwise) CreateUsers(ctx context.Context, c store.CreateUsers) ([]error, error) {
	return s.call(s.importBase, ctx, c)
}

func importMutants() map[string]mutant {
	of := func(check string, call func(s importBase, ctx context.Context, c store.CreateUsers) ([]error, error)) mutant {
		return caught("imports/"+check, func(b base) store.Store {
			i, _ := store.Capability[store.AdminStore](b.Store)
			return importedOtherwise{importBase{b, i}, call}
		})
	}
	edits := func(check string, edit func(*store.ImportedRow)) mutant {
		return of(check, func(s importBase, ctx context.Context, c store.CreateUsers) ([]error, error) {
			c.Users = slices.Clone(c.Users)
			for i := range c.Users {
				edit(&c.Users[i])
			}
			return s.CreateUsers(ctx, c)
		})
	}
	return map[string]mutant{
		"imports lose roles":     edits("all users come back as they went in", func(r *store.ImportedRow) { r.User.Roles = nil }),
		"imports lose handles":   edits("every member of an imported user is kept", func(r *store.ImportedRow) { r.User.Handle = "" }),
		"imports lose passwords": edits("all users come back as they went in", func(r *store.ImportedRow) { r.PasswordHash = "" }),
		"imports lose bans":      edits("all users come back as they went in", func(r *store.ImportedRow) { r.User.BannedUntil = r.User.CreatedAt }),
		"imports lose factors":   edits("an import makes second factors", func(r *store.ImportedRow) { r.Factors = nil }),
		"imports lose credential ids": edits("an import keeps passkeys", func(r *store.ImportedRow) {
			r.Factors = slices.Clone(r.Factors)
			for i := range r.Factors {
				r.Factors[i].Credential = nil
			}
		}),
		"imports make each factor required": edits("an import keeps passkeys", func(r *store.ImportedRow) {
			r.Factors = slices.Clone(r.Factors)
			for i := range r.Factors {
				r.Factors[i].Required = true
			}
		}),
		"imports lose events":     edits("events come with those who are created", func(r *store.ImportedRow) { r.Events = nil }),
		"imports make ids":        edits("an id of any version is kept", func(r *store.ImportedRow) { r.User.ID = strings.Repeat("0", 8) + r.User.ID[8:] }),
		"a refusal is all's":      of("one who is refused hinders nobody", allOrNothing),
		"refused ones are kept":   of("one who is refused hinders nobody", keepsHalves),
		"refusals are not told":   of("one who is refused hinders nobody", tellsNobody),
		"the last of two is made": of("of two in one call the first is created", backwards),
		"events of nobody":        of("events come with those who are created", tellsAnyway),
		"imports ask, then make":  of("of parallel imports of the same users one wins each", askThenMake),
		"refused ones take":       of("one who is refused takes no value from those after", takesAnyway),
		"imports are shared": caught("imports/values are copies", func(b base) store.Store {
			i, _ := store.Capability[store.AdminStore](b.Store)
			return &sharing{importBase{b, i}, map[string]store.User{}}
		}),
		"users are born without factors": caught("factors/a user comes with second factors", func(b base) store.Store {
			return born{b, func(nu *store.NewUser) { nu.Factors = nil }}
		}),
		"users are born at any level": caught("factors/a first session beside a second factor is at AAL2", func(b base) store.Store {
			return born{b, func(nu *store.NewUser) {
				if nu.Session != nil {
					s := *nu.Session
					s.AAL, nu.Session = store.LevelAAL2, &s
				}
			}}
		}),
	}
}

// born alters the users to create.
type born struct {
	base
	edit func(*store.NewUser)
}

func (s born) CreateUser(ctx context.Context, c store.CreateUser) (store.User, error) {
	s.edit(&c.NewUser)
	return s.Store.CreateUser(ctx, c)
}

func allOrNothing(s importBase, ctx context.Context, c store.CreateUsers) ([]error, error) {
	for _, row := range c.Users {
		if _, err := s.User(ctx, store.ByID(row.User.ID)); err == nil {
			return nil, &store.ConflictError{Field: "id"}
		}
		if row.User.Email != "" {
			if _, err := s.User(ctx, store.ByEmail(row.User.Email)); err == nil {
				return nil, &store.ConflictError{Field: "email"}
			}
		}
	}
	return s.CreateUsers(ctx, c)
}

// keepsHalves keeps a user without the identity that is taken.
func keepsHalves(s importBase, ctx context.Context, c store.CreateUsers) ([]error, error) {
	results, err := s.CreateUsers(ctx, c)
	for i, refused := range results {
		var taken *store.ConflictError
		if errors.As(refused, &taken) && taken.Field == "identity" {
			half := c.Users[i]
			half.User.Identities = nil
			_, _ = s.CreateUsers(ctx, store.CreateUsers{Change: change(c.Now), Users: []store.ImportedRow{half}})
		}
	}
	return results, err
}

func tellsNobody(s importBase, ctx context.Context, c store.CreateUsers) ([]error, error) {
	results, err := s.CreateUsers(ctx, c)
	clear(results)
	return results, err
}

func backwards(s importBase, ctx context.Context, c store.CreateUsers) ([]error, error) {
	reversed := c
	reversed.Users = nil
	for i := range c.Users {
		reversed.Users = append(reversed.Users, c.Users[len(c.Users)-1-i])
	}
	results, err := s.CreateUsers(ctx, reversed)
	var list []error
	for i := range results {
		list = append(list, results[len(results)-1-i])
	}
	return list, err
}

// tellsAnyway records the events of a change that created nobody.
func tellsAnyway(s importBase, ctx context.Context, c store.CreateUsers) ([]error, error) {
	results, err := s.CreateUsers(ctx, c)
	if err == nil && len(results) > 0 && results[0] != nil && len(results) == 1 {
		ghost := c
		ghost.Users = []store.ImportedRow{{User: store.User{ID: "00000000-0000-4000-8000-000000000001", CreatedAt: c.Now, UpdatedAt: c.Now}}}
		_, _ = s.CreateUsers(ctx, ghost)
		_ = s.DeleteUser(ctx, store.DeleteUser{Change: change(c.Now), UserID: ghost.Users[0].User.ID})
	}
	return results, err
}

// askThenMake looks for taken values, and reports that it created all others.
func askThenMake(s importBase, ctx context.Context, c store.CreateUsers) ([]error, error) {
	results := make([]error, len(c.Users))
	for i, row := range c.Users {
		if _, err := s.User(ctx, store.ByEmail(row.User.Email)); err == nil && row.User.Email != "" {
			results[i] = &store.ConflictError{Field: "email"}
		}
	}
	pause()
	_, err := s.CreateUsers(ctx, c)
	return results, err
}

// takesAnyway reserves the values of refused users.
func takesAnyway(s importBase, ctx context.Context, c store.CreateUsers) ([]error, error) {
	results, err := s.CreateUsers(ctx, c)
	for i := range results {
		if i > 0 && results[i-1] != nil && results[i] == nil {
			_ = s.DeleteUser(ctx, store.DeleteUser{Change: change(c.Now), UserID: c.Users[i].User.ID})
			results[i] = &store.ConflictError{Field: "phone"}
		}
	}
	return results, err
}

// sharing returns the same values that it was given.
type sharing struct {
	importBase
	given map[string]store.User
}

func (s *sharing) CreateUsers(ctx context.Context, c store.CreateUsers) ([]error, error) {
	for _, row := range c.Users {
		s.given[row.User.ID] = row.User
	}
	return s.AdminStore.CreateUsers(ctx, c)
}

func (s *sharing) User(ctx context.Context, key store.UserKey) (store.User, error) {
	if u, ok := s.given[key.ID]; ok {
		return u, nil
	}
	return s.Store.User(ctx, key)
}
