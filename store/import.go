package store

import "context"

// ImportStore creates many users at once, for imports. The rules of Store apply.
type ImportStore interface {
	// CreateUsers creates each of the users, or tells why not: the list it
	// returns has an entry for each, in their order, which is nil if the user was
	// created, and otherwise what CreateUser would have returned (a
	// *ConflictError). One that is refused keeps nothing and hinders no other; of
	// two in one call that want the same value the first is created. An error of
	// the call itself means that nobody was created and nothing recorded.
	CreateUsers(ctx context.Context, c CreateUsers) ([]error, error)
}

// CreateUsers is the parameter of ImportStore.CreateUsers. The change is about no
// one user; what it records is recorded if anybody was created.
type CreateUsers struct {
	Change
	Users []ImportedRow
}

// ImportedRow is a user to create among others, with what is created in the same
// step.
type ImportedRow struct {
	User         User // as in NewUser
	PasswordHash string
	Factors      []Factor // as in NewUser
	Events       []Event  // recorded if the user is created
}
