package admin

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/authmount/auth"
)

// Identity is a person whom the application's own admin login signed in, as of one
// request.
type Identity struct {
	ID          string    // of the application; required
	Label       string    // a readable name, for the audit log; ID if empty
	Permissions []string  // or patterns of them; undeclared ones are ignored
	AAL         string    // store.LevelAAL2: the person has shown a second factor
	AuthTime    time.Time // time of the last authentication
}

// same reports whether two are the same person with the same permissions.
func (i Identity) same(o Identity) bool {
	sorted := func(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
	return i.ID == o.ID && i.AAL == o.AAL && slices.Equal(sorted(i.Permissions), sorted(o.Permissions))
}

// maxIdentity is the longest ID and Label, in bytes.
const maxIdentity = 255

// External is an actor whom the application's own admin login knows (Options.Authenticate).
// The rules for users apply: Permissions limit the operations and the targets, AAL reports
// the second factor (Options.RequireMFA), and AuthTime within the last 15 minutes is recent
// authentication. Such an actor has no account in Authmount and cannot impersonate.
//
// The permissions are read once, when the operation starts, because only the application
// knows them. They are not checked again at the instant of the change; the table of roles
// and the target are. For the same reason
// an operation that creates something with lasting permissions (keys, and invitations
// that give roles) requires an identity with "*".
func External(i Identity) Actor {
	i.Permissions = slices.Clone(i.Permissions)
	return Actor{external: &i}
}

// identifyExternal asks the application for the identity of a request.
func (m *Admin) identifyExternal(r *http.Request) (Actor, error) {
	i, err := m.authenticate(r)
	var refused *auth.Error
	switch {
	case errors.As(err, &refused) && refused != nil:
		return Actor{}, refused
	case err != nil:
		return Actor{}, m.fail(auth.CodeMissingToken, err)
	}
	return External(i), nil
}

// resolveExternal fills in an actor whom the application identified. Errors:
// CodeMissingToken.
func (m *Admin) resolveExternal(i Identity, a *acting) error {
	if i.Label == "" {
		i.Label = i.ID
	}
	if !isName(i.ID) || !isName(i.Label) {
		return m.fail(auth.CodeMissingToken, fmt.Errorf("an admin.Identity needs an ID; it and Label are text of up to %d bytes", maxIdentity))
	}
	a.external, a.label, a.permissions = &i, i.Label, []string{}
	for _, p := range i.Permissions {
		if m.permissions.known(p) {
			a.permissions = append(a.permissions, p)
		}
	}
	slices.Sort(a.permissions)
	a.permissions = slices.Compact(a.permissions)
	return nil
}

func isName(s string) bool {
	return s != "" && len(s) <= maxIdentity && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// untraceable reports whether the permissions of the actor cannot be checked later, and
// the actor does not hold "*" now.
func (a *acting) untraceable() bool { return a.external != nil && !a.may(permAll) }

// aal returns the assurance level of a person.
func (a *acting) aal() string {
	if a.external != nil {
		return a.external.AAL
	}
	return a.session.AAL
}

// recentlyAuthenticated reports whether a person authenticated recently.
func (m *Admin) recentlyAuthenticated(a *acting) bool {
	if a.external != nil {
		ago := m.kit.Now().Sub(a.external.AuthTime)
		return ago < m.kit.RecentPeriod() && ago > -clockSkew
	}
	return m.kit.RecentlyAuthenticated(*a.user, a.session)
}

// clockSkew is the tolerance for a clock of the application's login that is ahead.
const clockSkew = time.Minute
