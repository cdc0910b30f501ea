package store

import "context"

// FirstOwnerStore remembers whether there has ever been an owner, and judges
// Change.FirstOwner: of several changes at once, through whichever door, one is first.
type FirstOwnerStore interface {
	// EverOwned tells whether anybody has ever had RoleOwner, whatever became of them.
	EverOwned(ctx context.Context) (bool, error)
}
