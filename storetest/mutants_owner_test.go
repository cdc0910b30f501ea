package storetest_test

import (
	"context"

	"github.com/authmount/auth/store"
)

// forgetsOwners reports whether there is an owner now instead of whether there ever was
// one.
type forgetsOwners struct{ base }

func (s forgetsOwners) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	if c.FirstOwner {
		list, err := capability[store.AdminStore](s.base).ListUsers(ctx, store.UserQuery{Role: store.RoleOwner, Limit: 1, Now: c.Now})
		if err != nil {
			return store.User{}, err
		}
		if len(list) > 0 {
			return store.User{}, store.ErrOwned
		}
		c.FirstOwner = false
	}
	return s.base.UpdateUser(ctx, c)
}
