// Package host is the internal API of auth.Auth, for the packages of this module that are
// built on Auth (admin, dashboard, pages, passkey,
// authtest). It gives them the rules of the root
// package, so that no rule has a second copy. Importers of the module do not see it.
//
// The root package implements [Kit] and registers itself; the others call [Of]. This
// package cannot name types of the root: error codes are strings, errors are error,
// results such as auth.Tokens are any, and parameters are structs with the same fields.
package host

import (
	"errors"
	"sync/atomic"
)

// Kit is the whole internal API. It is safe for concurrent use.
type Kit interface {
	HTTP
	Pages
	Changes
	Accounts
	Messages
	Links
	Keys
	Revocations
	Settings
	Jobs
	Testing
}

type registration struct {
	of       func(a any) Kit
	settings []SettingDeclaration
}

var registered atomic.Pointer[registration]

// Register sets the results of Of and DeclaredSettings. The root package calls it in its
// init.
func Register(of func(a any) Kit, settings []SettingDeclaration) {
	registered.Store(&registration{of, settings})
}

// Of returns the internal API of a, which is an *auth.Auth or embeds one.
func Of(a any) Kit { return registered.Load().of(a) }

// DeclaredSettings are the declarations of all settings, in their order. They are shared:
// do not change them.
func DeclaredSettings() []SettingDeclaration { return registered.Load().settings }

// As returns the first error of type T in the tree of err, or the zero value.
func As[T error](err error) T {
	var e T
	errors.As(err, &e)
	return e
}
