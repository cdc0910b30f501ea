package host

import (
	"net/url"
	"time"

	"github.com/authmount/auth/store"
)

// Passkeys checks the ceremonies of WebAuthn Level 3 for Auth. Package passkey implements
// it. It keeps no state and decides nothing about accounts: Auth supplies the challenges and
// the stored passkeys. It is safe for concurrent use after Bind.
type Passkeys interface {
	// Bind sets the service's public URL, whose port may follow later, and its name. New
	// calls it once. The error names the option that is wrong.
	Bind(base func() *url.URL, app func() string) error
	// RPID returns the relying party's id, and whether stored passkeys may have another.
	RPID() (id string, others bool)
	// RelatedOrigins returns the origins outside of the RP ID's domain.
	RelatedOrigins() []string

	// Creation returns the PublicKeyCredentialCreationOptionsJSON of a registration.
	Creation(PasskeyCreation) any
	// Register checks a RegistrationResponseJSON. judge checks the challenge; conditional
	// accepts a creation without gesture or verification of the user.
	Register(response []byte, judge func(challenge string) (ok, conditional bool)) (Passkey, error)
	// Request returns the PublicKeyCredentialRequestOptionsJSON of an authentication: with
	// one of the passkeys, or with any if there are none.
	Request(challenge string, allow []Passkey) any
	// Assertion reads an AuthenticationResponseJSON. Only the assertion's Verify checks it.
	Assertion(response []byte) (Assertion, error)
	// Confirmed returns the state of a passkey that was used together with another factor:
	// from then on its verification of the user counts. It returns nil if it did before.
	Confirmed(state []byte) []byte
	// Describe returns what a list of passkeys shows.
	Describe(Passkey) PasskeyInfo
	// Record returns a passkey as exports carry it, without the facts that Auth keeps: name,
	// times and whether it is a second factor.
	Record(Passkey) (store.PasskeyRecord, error)
	// Import checks an exported passkey by the rules of Register, except for its attestation,
	// which no record has. A record without authenticator data gets some from its other
	// fields. Errors: *store.InvalidError.
	Import(store.PasskeyRecord) (Passkey, error)
}

// PasskeyCreation is the input of Passkeys.Creation.
type PasskeyCreation struct {
	Challenge   string // base64url
	Handle      []byte // the user handle
	Name        string // the user's email address or phone number, for authenticators to show
	DisplayName string
	Exclude     []Passkey // of the account
}

// Passkey is a stored passkey.
type Passkey struct {
	ID     []byte // the credential id
	Record []byte // constant
	State  []byte // changes with each use
}

// Assertion is an authentication that was read but not checked.
type Assertion interface {
	ID() []byte        // the credential id
	Handle() []byte    // the user handle; empty if the authenticator returned none
	Challenge() string // base64url
	// Verify checks the assertion against the passkey, at a time. An assertion that
	// Passkey.State remembers is refused. With an error, PasskeyUse.Copied means that only
	// the counter was wrong; PasskeyUse.State then remembers the assertion.
	Verify(p Passkey, now time.Time) (PasskeyUse, error)
}

// PasskeyUse is the result of a valid assertion.
type PasskeyUse struct {
	// State replaces Passkey.State.
	State []byte
	// TwoFactors reports whether the passkey counts as two factors: possession, and the
	// verification of the user, which was trusted before this assertion.
	TwoFactors bool
	// Copied reports whether the signature counter did not grow (WebAuthn, section 6.1.1).
	Copied bool
	Synced bool // the passkey may be on several devices, and could be before
}

// PasskeyInfo is what a list of passkeys shows.
type PasskeyInfo struct {
	Authenticator string   // the product's name; "" if it is unknown
	AAGUID        string   // a UUID
	Transports    []string // "internal", "usb", …
	Synced        bool
}
