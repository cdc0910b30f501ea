package admin

import (
	"context"
	"errors"

	"github.com/authmount/auth"
)

// opFirstOwnerLink is only for code of the application: it has no endpoint.
var opFirstOwnerLink = operation{pattern: "first owner link"}

// FirstOwnerLink creates a link that makes a user the first owner: a signed-in user with a
// verified email address who opens it within 30 minutes. A new link replaces an older one.
// Show it only to the operator of the service, for example on a terminal, and never write it
// to a log. Errors: auth.CodeRoleInUse if there has ever been an owner, even a deleted one;
// auth.CodeInternal with Options.Authenticate.
func (m *Admin) FirstOwnerLink(ctx context.Context) (string, error) {
	if m.authenticate != nil {
		return "", m.fail(auth.CodeInternal, errors.New("with Options.Authenticate, operators sign in at the application: let it return an identity with the permission *"))
	}
	return carryOut(ctx, m, System("first owner"), opFirstOwnerLink, "", auth.EventLinkMade, func(t *attempt) (string, error) {
		t.record.Target = auth.RoleOwner
		return m.kit.PutFirstOwnerLink(ctx, t.change)
	})
}
