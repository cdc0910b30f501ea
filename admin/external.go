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

// Identity is somebody whom an admin login of the application's own knows, as of one
// request.
type Identity struct {
	ID          string    // as the application has it; required
	Label       string    // what people call them, for the audit log; ID if empty
	Permissions []string  // or patterns of them; what nobody declared counts for nothing
	AAL         string    // store.LevelAAL2: they have shown a second factor
	AuthTime    time.Time // when they last proved who they are
}

// same tells whether two are one, who may do the same.
func (i Identity) same(o Identity) bool {
	sorted := func(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
	return i.ID == o.ID && i.AAL == o.AAL && slices.Equal(sorted(i.Permissions), sorted(o.Permissions))
}

// maxIdentity is how long ID and Label may be, in bytes.
const maxIdentity = 255

// External is somebody whom the application's own admin login knows
// (Options.Authorize). They are held to the rules that hold for users: Permissions say
// what they may do and whom they may touch, AAL stands for the second factor
// (Options.RequireMFA), and AuthTime, of the last 15 minutes, for the fresh proof.
// They have no account here, so that none is their own, and they act as nobody else.
//
// The application alone knows what they may do, and what it said when the operation
// began is what counts: of an actor like this nothing is judged once more at the
// instant of the change, only the table of roles and whom it is about. For the same
// reason, what is judged later by what its maker may do then (keys, and invitations
// that give roles) takes an identity with "*".
func External(i Identity) Actor {
	i.Permissions = slices.Clone(i.Permissions)
	return Actor{external: &i}
}

// asksElsewhere has the application say whose a request is.
func (m *Admin) asksElsewhere(r *http.Request) (Actor, error) {
	i, err := m.authorize(r)
	var refused *auth.Error
	switch {
	case errors.As(err, &refused) && refused != nil:
		return Actor{}, refused
	case err != nil:
		return Actor{}, m.fail(auth.CodeMissingToken, err)
	}
	return External(i), nil
}

// resolveExternal fills in who acts by the word of the application. Errors:
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

// untraceable tells whether nobody can ask later what the actor may do by then, and
// they may not do everything now.
func (a *acting) untraceable() bool { return a.external != nil && !a.may(permAll) }

// aal is what a person has shown.
func (a *acting) aal() string {
	if a.external != nil {
		return a.external.AAL
	}
	return a.session.AAL
}

// fresh tells whether a person proved who they are lately.
func (m *Admin) fresh(a *acting) bool {
	if a.external != nil {
		ago := m.kit.Now().Sub(a.external.AuthTime)
		return ago < m.kit.RecentPeriod() && ago > -clockSkew
	}
	return m.kit.RecentlyAuthenticated(*a.user, a.session)
}

// clockSkew is how far ahead the clock of the application's login may be.
const clockSkew = time.Minute
