package harness

import (
	"slices"

	"github.com/authmount/auth/store"
)

// The class: somebody acts on an account, and between two store calls of theirs
// it becomes another's. TestTakeoverClass runs every route that needs a session
// or redeems something as the one who loses the account, lets each way of losing
// it happen before each of the request's store calls, and looks for anything
// that is left to them.

// Act is how the account is lost in the middle of a request.
type Act string

const (
	byProvider  Act = "provider"   // its owner comes with an identity that vouches for the address
	byMagicLink Act = "magic link" // its owner comes with a link
	byReset     Act = "reset"      // its owner chooses a new password
	byCode      Act = "phone code" // its owner comes with a code
	SignedOut   Act = "signed out" // every session of it ends
	Banned      Act = "banned"
	deleted     Act = "deleted"
)

// takesOver tells whether an act gives an account that nobody had proved to its
// owner.
func (a Act) takesOver() bool {
	return a == byProvider || a == byMagicLink || a == byReset || a == byCode
}

// Kind is who is on the account before.
type Kind string

const (
	OnNothing  Kind = "nobody"    // there is no account yet
	OnAddress  Kind = "squatter"  // signed up with the owner's address and a password
	OnNumber   Kind = "caller"    // the same with the owner's number
	OnIdentity Kind = "lookalike" // signed up by an identity that claims the owner's address
	OnStolen   Kind = "thief"     // on the owner's own, proved account, with what was stolen
)

// acts are the ways of losing an account that concern a kind.
func (k Kind) acts() []Act {
	return map[Kind][]Act{
		OnNothing:  {byProvider, byMagicLink, Banned, deleted},
		OnAddress:  {byProvider, byMagicLink, byReset, SignedOut, Banned, deleted},
		OnNumber:   {byCode, SignedOut, Banned, deleted},
		OnIdentity: {byProvider, byMagicLink, byReset, SignedOut, Banned, deleted},
		OnStolen:   {byReset, SignedOut, Banned, deleted},
	}[k]
}

// Row is one request of somebody who is to lose the account.
type Row struct {
	Name    string
	Kind    Kind
	Session bool           // it rests on a session alone, so that signing out ends it
	Confirm bool           // under Settings.RequireConfirmation
	except  map[Act]string // acts that rightly change nothing, and why
	Prepare func(s *Scene) (request func() *Answer)
}

// Acts are those that a row is run with.
func (r Row) Acts() []Act {
	return slices.DeleteFunc(r.Kind.acts(), func(a Act) bool {
		_, spared := r.except[a]
		return spared || (a == SignedOut && !r.Session)
	})
}

// Call is a change that a request made or tried to make.
type Call struct {
	Method string
	Change store.Change
	Late   bool // after the act
	Err    error
}

// Edit changes what a change is conditional on; see TestTakeoverClassBites.
type Edit func(method string, c *store.Change)
