// Package admin provides the operations of operators, support and back-office jobs:
// accounts, sessions, roles and the audit log.
//
//	adm, err := admin.New(ctx, a, admin.Options{Permissions: []admin.Permission{{Name: "notes.write"}}})
//	mux.Handle("/auth/v1/admin/", adm.Handler())
//
// Every operation is a method that takes an [Actor], and an endpoint below /admin that
// does the same. Roles are data: an operation requires a permission, roles list the
// permissions that they hold, and the role "owner" holds all. The store checks all
// conditions of an operation again at the instant of the change, including the
// permissions of the target and of the actor, unless the actor is [External].
package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// Options configure an Admin.
type Options struct {
	// Permissions of the application, for its roles to hold and its routes to require
	// (auth.HasPermission).
	Permissions []Permission

	// RequireMFA requires of every admin a second factor, and a session that has shown
	// it. On by default; Off requires such a session only of admins who have a factor.
	RequireMFA auth.Switch

	// Authenticate identifies the caller of a request to /admin, for applications with their
	// own admin login. If it is set, it decides about every request except those with
	// secret keys, and sessions of Authmount are not accepted. Requests of other origins
	// are rejected before, unless they have a bearer token and no cookie. The identity has
	// only its own Permissions, see [External]. An error of package auth is returned as
	// it is; any other becomes 401 missing_token without its text. Authenticate is called
	// concurrently, and must not read the body. Default: none.
	Authenticate func(*http.Request) (Identity, error)

	// SameOriginCookies accepts the application's session cookies (auth.WithCookies) at
	// /admin, for a back office on the service's own origin. Every script that runs on that
	// origin can then act as an operator who visits it. Requests of other origins, those of
	// auth.WithCORS included, need a bearer token. Default: off, so that the endpoints take
	// bearer tokens and secret keys only. The dashboard has cookies of its own.
	SameOriginCookies bool

	// NotifyImpersonated sends a message to a user's verified email address when another
	// user starts to act as that user. Default: off.
	NotifyImpersonated bool
}

// Admin carries out the operations. It is safe for concurrent use.
type Admin struct {
	auth         *auth.Auth
	kit          host.Kit
	store        auth.Store
	journal      store.Journal
	project      store.ProjectStore
	admin        store.AdminStore
	permissions  catalog
	privileged   []string // names of roles that are always privileged
	requireMFA   bool
	authenticate func(*http.Request) (Identity, error)

	notifyImpersonated bool

	endsAtOnce int           // see revokedAtOnce
	importSize int64         // see maxImportSize
	importRows int           // see maxImportRows
	exportPage int           // see usersAtOnce
	wake       chan struct{} // signals new jobs

	handler http.Handler
}

// New returns an Admin on a. The store has to be a store.Journal, a store.ProjectStore
// and a store.AdminStore, as those of this module are; the error names each that is
// missing. New adds the roles admin, support and auditor to a table of roles that was
// never changed.
func New(ctx context.Context, a *auth.Auth, o Options) (*Admin, error) {
	m := &Admin{auth: a, kit: host.Of(a), requireMFA: o.RequireMFA != auth.Off, authenticate: o.Authenticate, notifyImpersonated: o.NotifyImpersonated, wake: make(chan struct{}, 1), endsAtOnce: revokedAtOnce, importSize: maxImportSize, importRows: maxImportRows, exportPage: usersAtOnce}
	m.store = m.kit.Store()
	faults := []error{
		capability(m.store, &m.journal),
		capability(m.store, &m.project),
		capability(m.store, &m.admin),
	}
	var err error
	if m.permissions, err = newCatalog(o.Permissions); err != nil {
		faults = append(faults, err)
	}
	if m.requireMFA {
		declared, err := m.kit.Settings(store.StoredSettings{})
		if err != nil {
			return nil, err
		}
		off := func(name string) bool {
			return slices.ContainsFunc(declared, func(s host.Setting) bool { return s.Name == name && s.Locked && s.Value == false })
		}
		if off("totp_enabled") && (m.kit.PasskeyRPID() == "" || off("passkey_enabled")) {
			faults = append(faults, errors.New("operators need a second factor, and WithSettings turns every kind off: turn TOTP or passkeys on, or set Options.RequireMFA to auth.Off"))
		}
	}
	for _, k := range m.kit.SecretKeys() {
		if problem, ok := m.checkScopes(k.Scopes); !ok {
			faults = append(faults, fmt.Errorf("WithSecretKeys: the scope %s", problem))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	var declared, privileged []string
	for _, p := range m.permissions {
		declared = append(declared, p.Name)
	}
	for _, p := range o.Permissions {
		if p.Privileged {
			privileged = append(privileged, p.Name)
		}
	}
	m.kit.DeclarePermissions(declared)
	m.kit.DeclarePrivileged(privileged)
	m.privileged = append([]string{auth.RoleOwner, RoleAdmin}, m.kit.PrivilegedRoles()...)
	if err := m.addReadyRoles(ctx); err != nil {
		return nil, fmt.Errorf("admin: add the first roles: %w", err)
	}
	if err := m.logWaiting(ctx); err != nil {
		return nil, fmt.Errorf("admin: count the accounts that wait: %w", err)
	}
	m.kit.CheckInvitations(m.checkInvitation)
	m.kit.CheckLinks(m.checkLink)
	m.kit.DecideKeys(m.keyPermissions)
	if m.handler, err = m.mount(o.SameOriginCookies); err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	if m.kit.HasCookies() && m.authenticate == nil && !o.SameOriginCookies {
		m.kit.Log().InfoContext(ctx, "admin: /admin takes bearer tokens and secret keys only; for a back office with session cookies on the service's own origin set Options.SameOriginCookies")
	}
	m.kit.Background(m.runJobs)
	return m, nil
}

// capability finds an optional interface of the store.
func capability[T any](s auth.Store, into *T) error {
	found, ok := store.Capability[T](s)
	if !ok {
		return fmt.Errorf("the store does not implement %s", reflect.TypeFor[T]())
	}
	*into = found
	return nil
}

// addReadyRoles fills a table of roles that was never changed. Several processes may do
// so at once, and the next process continues for one that was killed.
func (m *Admin) addReadyRoles(ctx context.Context) error {
	ready := readyRoles()
	for {
		t, err := m.project.Roles(ctx)
		if err != nil {
			return err
		}
		n := len(t.Roles)
		begun := t.Revision == int64(n) && n < len(ready) && !slices.ContainsFunc(t.Roles, func(r store.RolePermissions) bool {
			return !slices.ContainsFunc(ready[:n], func(q store.RolePermissions) bool { return q.Name == r.Name })
		})
		if !begun {
			return nil
		}
		c := m.kit.Change(ctx, System("first start").authority())
		c.IfRoles = &t.Revision
		if _, err := m.project.PutRole(ctx, store.PutRole{Change: c, Role: ready[n]}); err != nil && !errors.Is(err, store.ErrStale) {
			return err
		}
	}
}

// Handler serves the endpoints, which are below "/admin" of the mount:
//
//	mux.Handle("/auth/v1/admin/", adm.Handler())
func (m *Admin) Handler() http.Handler { return m.handler }

// fail returns the error of a code; cause, which may be nil, appears only in the log.
func (m *Admin) fail(c auth.Code, cause error) *auth.Error {
	return host.As[*auth.Error](m.kit.Error(string(c), cause))
}
