// Package host is the internal API of auth.Auth, for the packages of this module that are
// built on Auth (admin, dashboard, pages, authtest). It gives them the rules of the root
// package, so that no rule has a second copy. Importers of the module do not see it.
//
// The root package implements [Kit] and registers itself; the others call [Of]. This
// package cannot name types of the root: error codes are strings, errors are error,
// results such as auth.Tokens are any, and parameters are structs with the same fields.
// such as auth.Tokens as any, and parameters as structs with the same fields.
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
	Settings
	Jobs
	Testing
}

var registered atomic.Pointer[func(a any) Kit]

// Register sets the function that Of calls. The root package calls it in an init
// function.
func Register(of func(a any) Kit) { registered.Store(&of) }

// Of returns the internal API of a, which is an *auth.Auth or embeds one.
func Of(a any) Kit { return (*registered.Load())(a) }

// As returns the first error of type T in the tree of err, or the zero value.
func As[T error](err error) T {
	var e T
	errors.As(err, &e)
	return e
}
