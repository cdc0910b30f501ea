package harness

import (
	"slices"

	"github.com/authmount/auth/store"
)

// In the tests of this class a person acts on an account, and between two of their store
// calls they lose it. TestTakeoverClass runs every route that needs a session or redeems
// a credential, performs each applicable act before each store call of the request, and
// checks that the person keeps no access.

// Act is a way of losing the account during a request.
type Act string

const (
	byProvider  Act = "provider"   // the owner signs in with an identity that vouches for the email address
	byMagicLink Act = "magic link" // the owner signs in with a link
	byReset     Act = "reset"      // the owner chooses a new password
	byCode      Act = "phone code" // the owner signs in with a code
	SignedOut   Act = "signed out" // all its sessions are revoked
	Banned      Act = "banned"
	deleted     Act = "deleted"
)

// takesOver reports whether an act gives an unverified account to the owner of the email
// address or phone number.
func (a Act) takesOver() bool {
	return a == byProvider || a == byMagicLink || a == byReset || a == byCode
}

// Kind is the person who uses the account before the act.
type Kind string

const (
	OnNothing  Kind = "nobody"    // there is no account yet
	OnAddress  Kind = "squatter"  // signed up with the owner's address and a password
	OnNumber   Kind = "caller"    // the same with the owner's number
	OnIdentity Kind = "lookalike" // signed up by an identity that claims the owner's address
	OnStolen   Kind = "thief"     // with stolen credentials on the owner's verified account
)

// acts returns the acts that apply to a kind.
func (k Kind) acts() []Act {
	return map[Kind][]Act{
		OnNothing:  {byProvider, byMagicLink, Banned, deleted},
		OnAddress:  {byProvider, byMagicLink, byReset, SignedOut, Banned, deleted},
		OnNumber:   {byCode, SignedOut, Banned, deleted},
		OnIdentity: {byProvider, byMagicLink, byReset, SignedOut, Banned, deleted},
		OnStolen:   {byReset, SignedOut, Banned, deleted},
	}[k]
}

// Row is one request of a person who will lose the account.
type Row struct {
	Name    string
	Kind    Kind
	Session bool           // depends on the session alone, so signing out cancels it
	Confirm bool           // with Settings.RequireConfirmation
	Cookies bool           // with sessions in cookies
	except  map[Act]string // acts that rightly change nothing, with the reason
	Prepare func(s *Scene) (request func() *Answer)
}

// Acts returns the acts that a row is run with.
func (r Row) Acts() []Act {
	return slices.DeleteFunc(r.Kind.acts(), func(a Act) bool {
		_, spared := r.except[a]
		return spared || (a == SignedOut && !r.Session)
	})
}

// Call is a change that a request attempted.
type Call struct {
	Method string
	Change store.Change
	Late   bool // after the act
	Err    error
}

// Edit changes a change's preconditions; see TestTakeoverClassBites.
type Edit func(method string, c *store.Change)
