package storetest_test

import (
	"context"

	"github.com/authmount/auth"
)

// forgetsOwners asks who is owner now in place of who ever was.
type forgetsOwners struct{ base }

func (s forgetsOwners) UpdateUser(ctx context.Context, c auth.UpdateUser) (auth.User, error) {
	if c.FirstOwner {
		list, err := capability[auth.DirectoryStore](s.base).ListUsers(ctx, auth.UserQuery{Role: auth.RoleOwner, Limit: 1, Now: c.Now})
		if err != nil {
			return auth.User{}, err
		}
		if len(list) > 0 {
			return auth.User{}, auth.ErrOwned
		}
		c.FirstOwner = false
	}
	return s.base.UpdateUser(ctx, c)
}
