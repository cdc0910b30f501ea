package main

import (
	"context"
	"time"

	"github.com/authmount/auth/authclient"
)

// cleanUp deletes the accounts that were created before a time and have no verified
// address, and returns their number. Its key's scopes are its only permissions:
// auth.users.read and auth.users.delete. It can be interrupted and run again at any time.
func cleanUp(ctx context.Context, c *authclient.Admin, before time.Time) (deleted int, err error) {
	for u, err := range c.Users(ctx, authclient.UserQuery{Status: "unconfirmed", CreatedTo: before}) {
		if err != nil {
			return deleted, err
		}
		if err := c.DeleteUser(ctx, u.ID, "never confirmed"); err != nil {
			return deleted, err
		}
		deleted++
	}
	return deleted, nil
}
