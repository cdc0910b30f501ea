package admin

import (
	"context"
	"errors"

	"github.com/authmount/auth"
)

// opFirstOwnerLink is code of the application's alone: the wire has no such operation.
var opFirstOwnerLink = operation{pattern: "first owner link"}

// FirstOwnerLink makes the link by which somebody becomes the first owner: whoever is
// signed in with a proved address and opens it within 30 minutes. A new one supersedes
// the older. Show it to the operator of the service alone, on a terminal say, and never
// write it to a log. Errors: auth.CodeRoleInUse once there has ever been an owner,
// whatever became of them; auth.CodeInternal with Options.Authorize.
func (m *Admin) FirstOwnerLink(ctx context.Context) (string, error) {
	if m.authorize != nil {
		return "", m.fail(auth.CodeInternal, errors.New("with Options.Authorize nobody's account opens the admin side"))
	}
	return carryOut(ctx, m, System("first owner"), opFirstOwnerLink, "", auth.EventLinkMade, func(t *turn) (string, error) {
		t.record.Target = auth.RoleOwner
		return m.kit.PutFirstOwnerLink(ctx, t.change)
	})
}
