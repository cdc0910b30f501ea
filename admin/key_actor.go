package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// Key is a program, by its secret key. Every operation reads the key and its creator's
// permissions again: the key has the permissions in its scopes that its creator also has.
// It gives and takes a role if its scopes also name the role, "role/editor", and
// PermRolesAssign, not by a pattern. No key may manage keys or settings, define roles or
// impersonate. A key that is bound to networks needs the client's IP address in the
// context, see auth.ContextWithClient.
func Key(text string) Actor { return Actor{key: Secret{&text}} }

// notForKeys returns the permissions that no key may have, whether or not its scopes name
// them. A key that leaks from a repository or a log must not create other keys, or change
// what a role permits.
func notForKeys() []string {
	return []string{PermKeysRead, PermKeysWrite, PermRolesWrite, PermSettingsWrite, PermImpersonate}
}

// resolveKey fills in an actor with a key. Errors: CodeInvalidAPIKey, CodeRateLimited.
func (m *Admin) resolveKey(ctx context.Context, who Actor, a *acting) error {
	k, err := m.actingKey(ctx, who)
	if err != nil {
		return err
	}
	a.key, a.label, a.by = &k, k.Name, auth.Authority{Key: &auth.KeyRef{ID: k.ID, Revision: k.Revision}}
	if k.ID == "" { // in the options
		a.by = auth.Authority{System: k.Name}
	}
	a.permissions, a.creator, err = m.keyMay(ctx, k, a.roles)
	return err
}

// actingKey reads the key of an actor: by its text, or for a job by its id or name.
func (m *Admin) actingKey(ctx context.Context, who Actor) (store.APIKey, error) {
	if who.key.text != nil {
		return m.kit.SecretKey(ctx, who.key.Reveal())
	}
	if who.keyID == "" {
		k, _, there := m.kit.SecretKeyNamed(who.keyName)
		if !there {
			return k, m.fail(auth.CodeInvalidAPIKey, errors.New("the options no longer have a key of this name"))
		}
		return k, nil
	}
	k, err := m.project.Key(ctx, who.keyID)
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && (!k.Live(m.kit.Now()) || k.Revision != who.keyAt):
		return k, m.fail(auth.CodeInvalidAPIKey, errors.New("the key was revoked, has expired or was changed"))
	case err != nil:
		return k, m.kit.StoreError(err)
	}
	return k, nil
}

// keyMay returns the permissions of a key by a table of roles, and the user who answers
// for it; nil: the service owns the key. Errors: CodeInvalidAPIKey.
func (m *Admin) keyMay(ctx context.Context, k store.APIKey, roles store.RoleTable) ([]string, *auth.User, error) {
	scopes := m.permissions.forKeys(slices.DeleteFunc(slices.Clone(k.Scopes), func(s string) bool {
		role, named := strings.CutPrefix(s, rolePrefix)
		return named && !m.isPrivileged(roles, role) // no part of anybody's strength
	}))
	if k.OfService() {
		return scopes, nil, nil
	}
	u, err := m.store.User(ctx, store.ByID(k.CreatedBy))
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && u.Banned(m.kit.Now()):
		return nil, nil, m.fail(auth.CodeInvalidAPIKey, errors.New("the key's creator is banned or was deleted"))
	case err != nil:
		return nil, nil, m.kit.StoreError(err)
	}
	return intersect(scopes, m.strengthOf(roles, u)), &u, nil
}

// keyPermissions returns the present permissions of a key, for the application's routes.
// Errors: CodeInvalidAPIKey.
func (m *Admin) keyPermissions(ctx context.Context, k store.APIKey) ([]string, error) {
	roles, err := m.kit.Roles(ctx)
	if err != nil {
		return nil, m.kit.StoreError(err)
	}
	list, _, err := m.keyMay(ctx, k, roles)
	return withoutNames(list), err
}

// VerifyKeyParams name a secret key.
type VerifyKeyParams struct {
	Key string `json:"key"` // its text
}

// LogValue keeps the key out of the log.
func (VerifyKeyParams) LogValue() slog.Value { return slog.StringValue(hidden) }

// Format keeps the key out of printed text, for every verb.
func (VerifyKeyParams) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// VerifiedKey is a secret key that a program sent to another service. If it is not Active,
// at most Bound is set.
type VerifiedKey struct {
	Active      bool     `json:"active"`
	Bound       bool     `json:"bound_to_networks"` // a valid key, but only at this server
	ID          *string  `json:"id"`                // nil: a key of auth.WithSecretKeys
	Name        string   `json:"name"`              // for people
	CreatedBy   *string  `json:"created_by"`        // nil: the application
	Permissions []string `json:"permissions"`       // those that it has now
}

// VerifyKey checks a secret key for another service, which got it from a program. A key
// that is bound to networks is never active here, because only that service knows the
// program's IP address. Services call it through a Verifier of package authclient. Many
// wrong keys from one IP address are refused. Errors: CodeRateLimited.
func (m *Admin) VerifyKey(ctx context.Context, who Actor, p VerifyKeyParams) (VerifiedKey, error) {
	inactive := VerifiedKey{Permissions: []string{}}
	if _, err := m.reader(ctx, who, opVerifyKey); err != nil {
		return inactive, err
	}
	k, err := m.kit.SecretKey(ctx, p.Key)
	var permissions []string
	if err == nil {
		permissions, err = m.keyPermissions(ctx, k)
	}
	switch {
	case errors.Is(err, auth.CodeInvalidAPIKey):
		m.kit.Log().DebugContext(ctx, "auth: a secret key was refused for another service", "error", err)
		return inactive, nil
	case err == nil && len(k.Networks) > 0:
		m.kit.Log().InfoContext(ctx, "auth: a secret key that is bound to networks was refused for another service, which alone knows the program's IP address", "key_id", k.ID)
		inactive.Bound = true
		return inactive, nil
	case err != nil:
		return inactive, err
	}
	return VerifiedKey{Active: true, ID: optional(k.ID), Name: k.Name, CreatedBy: optional(k.CreatedBy), Permissions: permissions}, nil
}

// intersect returns the permissions that both lists grant, sorted.
func intersect(a, b []string) []string {
	list := []string{}
	for _, p := range a {
		for _, q := range b {
			switch {
			case grants([]string{q}, p):
				list = append(list, p)
			case grants([]string{p}, q):
				list = append(list, q)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// forKeys returns the permissions of a key with such scopes. A pattern that covers a
// permission that no key may have, or PermRolesAssign, is replaced by the remaining
// permissions, so that a key never has "*".
func (c catalog) forKeys(scopes []string) []string {
	list, onlyByName := []string{}, append(notForKeys(), PermRolesAssign)
	for _, p := range scopes {
		if p == PermRolesAssign || !slices.ContainsFunc(onlyByName, func(not string) bool { return grants([]string{p}, not) }) {
			list = append(list, p)
			continue
		}
		for _, d := range c {
			if grants([]string{p}, d.Name) && !slices.Contains(onlyByName, d.Name) {
				list = append(list, d.Name)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// checkScopes checks the form of a key's scopes, and returns the problem.
func (m *Admin) checkScopes(scopes []string) (string, bool) {
	for _, s := range scopes {
		role, named := strings.CutPrefix(s, rolePrefix)
		switch {
		case named && roleName.MatchString(role):
		case !m.permissions.known(s):
			return strings.ToValidUTF8(s[:min(len(s), maxPermissionName)], "?") + " is not declared", false
		case len(m.permissions.forKeys([]string{s})) == 0:
			return s + " is nothing that keys may do", false
		}
	}
	return "", true
}

// mayScope checks whether the actor may give a key its scopes; before are those that it
// has. The name of a role needs what giving the role needs. Errors: CodeTargetStronger,
// CodeValidationFailed.
func (m *Admin) mayScope(t *attempt, scopes, before []string) error {
	if err := m.mayGive(t.acting, m.strengthOfScopes(t.roles, scopes)); err != nil {
		return err
	}
	for _, s := range scopes {
		role, named := strings.CutPrefix(s, rolePrefix)
		if !named || slices.Contains(before, s) {
			continue
		}
		switch {
		case role != auth.RoleOwner && find(t.roles, role).Name == "":
			return m.kit.Invalid("scopes", "name a role that does not exist: "+role)
		case !m.forSomeKey(t.roles, role):
			return m.kit.Invalid("scopes", s+" is nothing that keys may give: the role has permissions that no key may have")
		}
	}
	return nil
}

// forSomeKey reports whether a key can have all permissions of a role.
func (m *Admin) forSomeKey(t store.RoleTable, role string) bool {
	needs := m.strengthIn(t, []string{role})
	return covers(m.permissions.forKeys(needs), needs)
}

// strengthOfScopes returns the permissions that an actor needs to edit a key with such
// scopes.
func (m *Admin) strengthOfScopes(t store.RoleTable, scopes []string) []string {
	list := []string{}
	for _, s := range scopes {
		if role, named := strings.CutPrefix(s, rolePrefix); named {
			list = append(append(list, PermRolesAssign), m.strengthIn(t, []string{role})...)
		} else {
			list = append(list, s)
		}
	}
	return list
}

// view returns the actor for the wire.
func (a *acting) view() actorView {
	switch {
	case a.user != nil:
		return actorView{ptr(string(store.ActorUser)), ptr(a.user.ID), ptr(a.session.ID), ptr(a.label)}
	case a.by.Key != nil:
		return actorView{ptr(string(store.ActorKey)), ptr(a.by.Key.ID), nil, ptr(a.label)}
	case a.external != nil:
		return actorView{ptr(string(store.ActorExternal)), ptr(a.external.ID), nil, ptr(a.label)}
	}
	return actorView{ptr(string(store.ActorSystem)), ptr(a.by.System), nil, ptr(a.label)}
}
