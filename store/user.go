package store

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/internal/address"
	"github.com/authmount/auth/internal/jsonvalue"
)

// User is a person as the store keeps it. It survives a round trip through JSON;
// what the wire shows of it is an auth.UserView.
type User struct {
	ID              string // a UUID
	Email           string // as given, normalised; compare by EmailKey
	EmailVerifiedAt time.Time
	Phone           string // E.164
	PhoneVerifiedAt time.Time
	FullName        string
	UserMetadata    map[string]any // the user's own; never trusted
	AppMetadata     map[string]any // the server's
	Roles           []string
	MFAEnabled      bool // has an enabled factor
	Identities      []Identity
	CreatedAt       time.Time
	UpdatedAt       time.Time
	LastSignInAt    time.Time // zero: never
	BannedUntil     time.Time // zero: not banned

	Revision           int64 // rises with every change of the user
	CredentialRevision int64 // rises with credentials, second factors, roles and bans only

	// Handle is random, names the account to authenticators (WebAuthn's user handle), and
	// never changes: base64url, without padding, of 32 bytes. Empty: there is none.
	Handle string

	// Sequence orders what takes effect for the account (see Origin). The store sets it
	// and the fields below, whatever a parameter has in them.
	Sequence                                    int64
	PasswordSequence, PasswordAddedBy           int64
	EmailSequence, EmailAddedBy                 int64
	EmailVerifiedSequence, EmailVerifiedAddedBy int64
	PhoneSequence, PhoneAddedBy                 int64
	PhoneVerifiedSequence, PhoneVerifiedAddedBy int64

	// Claims go into the user's access tokens, as those of WithClaims do. They
	// are worked out by stores that can, in the read before a sign-in or refresh,
	// and are kept nowhere.
	Claims map[string]any `json:"-"`
}

// EmailVerified tells whether the address was proved.
func (u *User) EmailVerified() bool { return !u.EmailVerifiedAt.IsZero() }

// PhoneVerified tells whether the number was proved.
func (u *User) PhoneVerified() bool { return !u.PhoneVerifiedAt.IsZero() }

// Banned tells whether the user is banned at now.
func (u *User) Banned(now time.Time) bool { return now.Before(u.BannedUntil) }

// Unproved tells whether nobody ever proved an address, number or identity of
// the account. Such an account belongs to whoever first does.
func (u *User) Unproved() bool {
	return !u.EmailVerified() && !u.PhoneVerified() && len(u.Identities) == 0
}

// Identity is a user's account at an outside provider; (Provider, Subject) is
// unique over all users.
type Identity struct {
	ID           string    `json:"id"`
	Provider     string    `json:"provider"`
	Subject      string    `json:"subject"`
	Email        string    `json:"email"`
	CreatedAt    time.Time `json:"created_at"`
	LastSignInAt time.Time `json:"last_sign_in_at"`
	Origin
}

// Origin is when, in the order of an account's changes, something of the account took
// effect, and who added it. The store sets it, whatever a parameter has in it.
//
// A change raises User.Sequence by one, with the user locked, if it adds or replaces a
// session, device, password, enabled factor, set of recovery codes, identity, email
// address or phone number, verifies one of the last two, or issues an enrolment token
// (PurposeEnroll). All that the change adds has the raised value as its Sequence: records
// as Origin, fields of the user as User.PasswordSequence and so on. A field that is
// removed has the sequence 0. Other tokens have the present value and do not raise it.
// Refresh, step-up, rehash, removal, anonymisation, bans, roles, trust in a device and
// revocation do not raise it. A new user begins at 1, with all that comes with it.
//
// What came "from a session on" has a Sequence of at least the session's. Clocks of
// different machines cannot tell before from after; this can.
type Origin struct {
	Sequence int64 `json:"sequence"`

	// AddedBy is the Sequence of the session or enrolment token of the same user in
	// whose name it was added, or which the change redeemed; 0 if there was none: by a
	// sign-in, the application, an operator or an import.
	AddedBy int64 `json:"added_by"`
}

// Credentials is what a password login needs to know, from one read.
type Credentials struct {
	User         User
	PasswordHash string    // PHC or another supported format; empty: no password
	KnownDevice  bool      // the user has signed in on UserKey.Device before
	TrustedUntil time.Time // the user trusts UserKey.Device until then, which may have passed; zero: not, or not any more
	Notes        string    // what operators noted; never shown to the user
}

// Held is what a store keeps about a user, without anything secret.
type Held struct {
	Devices  []HeldDevice
	Pending  []HeldToken   // tokens and codes that are live
	Messages []HeldMessage // that wait to be sent
}

// HeldDevice is a device that the user signed in on.
type HeldDevice struct {
	Device                  string // as Session.Device has it
	FirstSeenAt, LastSeenAt time.Time
	Origin
}

// HeldToken is a token or code.
type HeldToken struct {
	Purpose   Purpose
	Subject   string
	Data      []byte
	CreatedAt time.Time
	ExpiresAt time.Time
}

// HeldMessage is a message.
type HeldMessage struct{ CreatedAt, ExpiresAt time.Time }

// UserKey names one user by exactly one of its unique values.
type UserKey struct {
	ID       string
	Email    string // compared by EmailKey
	Phone    string
	Handle   string // User.Handle
	Provider string // with Subject
	Subject  string

	Device string // for Credentials.KnownDevice and TrustedUntil only; names nobody
}

// ByID names a user by id.
func ByID(id string) UserKey { return UserKey{ID: id} }

// ByEmail names a user by e-mail address, whatever its case.
func ByEmail(email string) UserKey { return UserKey{Email: email} }

// ByPhone names a user by E.164 number.
func ByPhone(phone string) UserKey { return UserKey{Phone: phone} }

// ByHandle names a user by its random handle.
func ByHandle(handle string) UserKey { return UserKey{Handle: handle} }

// ByIdentity names a user by its account at a provider.
func ByIdentity(provider, subject string) UserKey {
	return UserKey{Provider: provider, Subject: subject}
}

// NewUser is a user to create, with all that is created in the same step.
// Identities come in User; MFAEnabled, the revisions and sequences are the store's own:
// MFAEnabled tells whether one of Factors is Required, the revisions begin at 0, and
// User.Sequence at 1.
type NewUser struct {
	User         User
	PasswordHash string
	Notes        string   // of operators
	Session      *Session // first session; sets LastSignInAt
	Tokens       []Token  // as for PutToken
	// Factors are second factors, enabled, and the user's whatever their UserID says;
	// of a kind that is not Several at most one. Only a FactorStore is given any. A first session
	// has to be AAL2 then: ErrMFARequired.
	Factors []Factor

	// Creating, if set, is called in the step that creates the user, and its
	// error undoes the step and is returned. A store with transactions calls it
	// inside the one and gives it a context to reach it by; it may undo that and
	// call it again.
	Creating func(ctx context.Context, u User) error
}

// UserPatch is a change to one user, applied wholly or not at all. Nil fields
// stay as they are. Every applied patch that is not empty sets UpdatedAt and
// raises Revision. It raises CredentialRevision if it names Email, Phone, either
// VerifiedAt, PasswordHash, Unlink, Roles, BannedUntil, DropFactors or
// DropCredentials, or Link of an identity that the user does not have yet. It raises
// Sequence (see Origin) if it names an Email, a Phone, a VerifiedAt or a PasswordHash
// that is not empty, or Link of such an identity.
type UserPatch struct {
	Email           *string    // EmailVerifiedAt stays as it is: name both
	EmailVerifiedAt *time.Time // the zero time: not verified
	Phone           *string
	PhoneVerifiedAt *time.Time
	FullName        *string
	UserMetadata    map[string]any // replaces the whole; empty and non-nil clears
	AppMetadata     map[string]any // likewise
	PasswordHash    *string        // "" removes the password
	Rehash          *string        // the same password under other parameters: no change of a way in
	Roles           *[]string      // replaces the whole
	BannedUntil     *time.Time     // the zero time lifts a ban
	Notes           *string        // Credentials.Notes

	Link   *Identity // add an identity, or replace the user's own of the same provider and subject whole: a field left zero becomes zero
	Unlink *UserKey  // remove the identity with this Provider and Subject; none: no change

	Revoke      *SessionFilter // end these sessions
	DropTokens  []Purpose      // remove the user's tokens of these purposes
	DropFactors bool           // remove every second factor, pending or enabled, and the recovery codes
	DropDevices bool           // forget the devices that the user signed in on, by Revoke as RevokeSessions.DropDevices says by Filter

	// DropCredentials removes every way in but those that the same patch names:
	// the password (unless PasswordHash is set), the address (unless Email or
	// EmailVerifiedAt is set), the number (unless Phone or PhoneVerifiedAt is
	// set), all identities (but Link), all factors and recovery codes, all tokens
	// and all sessions; with them the devices are forgotten. A kind of way in that comes later is removed, too.
	DropCredentials bool
}

// Empty tells whether the patch would change nothing.
func (p *UserPatch) Empty() bool {
	return p.Email == nil && p.EmailVerifiedAt == nil && p.Phone == nil && p.PhoneVerifiedAt == nil && p.FullName == nil &&
		p.UserMetadata == nil && p.AppMetadata == nil && p.PasswordHash == nil && p.Rehash == nil && p.Roles == nil && p.BannedUntil == nil && p.Notes == nil &&
		p.Link == nil && p.Unlink == nil && p.Revoke == nil && p.DropTokens == nil && !p.DropFactors && !p.DropDevices && !p.DropCredentials
}

// Apply returns what a patch makes of a user and the password hash, for stores
// that patch in Go; c is left as it is. Beside it the store has to do what the
// patch says of sessions (Revoke), tokens (DropTokens) and factors (DropFactors)
// and devices (DropDevices), and of all of them for DropCredentials. addedBy is
// Origin.AddedBy of what it adds.
func (p *UserPatch) Apply(c Credentials, now time.Time, addedBy int64) Credentials {
	u := c.User
	var by Origin
	if p.Adds(c.User) {
		u.Sequence++
		by = Origin{u.Sequence, addedBy}
	}
	u.Roles, u.Identities = slices.Clone(u.Roles), slices.Clone(u.Identities)
	u.UpdatedAt = now
	u.Revision++
	if p.raisesCredentials(c.User) {
		u.CredentialRevision++
	}
	replace(&c.PasswordHash, p.Rehash)
	if p.DropCredentials { // all but what the patch names, which comes below
		c.PasswordHash, u.Identities = "", nil
		u.PasswordSequence, u.PasswordAddedBy = 0, 0
		if p.Email == nil && p.EmailVerifiedAt == nil {
			u.Email, u.EmailVerifiedAt = "", time.Time{}
			u.EmailSequence, u.EmailAddedBy, u.EmailVerifiedSequence, u.EmailVerifiedAddedBy = 0, 0, 0, 0
		}
		if p.Phone == nil && p.PhoneVerifiedAt == nil {
			u.Phone, u.PhoneVerifiedAt = "", time.Time{}
			u.PhoneSequence, u.PhoneAddedBy, u.PhoneVerifiedSequence, u.PhoneVerifiedAddedBy = 0, 0, 0, 0
		}
	}
	if p.DropCredentials || p.DropFactors {
		u.MFAEnabled = false
	}
	replace(&c.PasswordHash, p.PasswordHash)
	replace(&u.Email, p.Email)
	replace(&u.EmailVerifiedAt, p.EmailVerifiedAt)
	replace(&u.Phone, p.Phone)
	replace(&u.PhoneVerifiedAt, p.PhoneVerifiedAt)
	mark(&u.PasswordSequence, &u.PasswordAddedBy, p.PasswordHash, by)
	mark(&u.EmailSequence, &u.EmailAddedBy, p.Email, by)
	mark(&u.EmailVerifiedSequence, &u.EmailVerifiedAddedBy, p.EmailVerifiedAt, by)
	mark(&u.PhoneSequence, &u.PhoneAddedBy, p.Phone, by)
	mark(&u.PhoneVerifiedSequence, &u.PhoneVerifiedAddedBy, p.PhoneVerifiedAt, by)
	replace(&u.FullName, p.FullName)
	replace(&u.BannedUntil, p.BannedUntil)
	replace(&c.Notes, p.Notes)
	if p.Roles != nil {
		u.Roles = slices.Clone(*p.Roles)
	}
	u.UserMetadata, u.AppMetadata = jsonvalue.CloneObject(u.UserMetadata), jsonvalue.CloneObject(u.AppMetadata)
	if p.UserMetadata != nil {
		u.UserMetadata = jsonvalue.CloneObject(p.UserMetadata)
	}
	if p.AppMetadata != nil {
		u.AppMetadata = jsonvalue.CloneObject(p.AppMetadata)
	}
	if p.Unlink != nil {
		u.Identities = slices.DeleteFunc(u.Identities, sameIdentity(p.Unlink.Provider, p.Unlink.Subject))
	}
	if p.Link != nil {
		linked, same := *p.Link, sameIdentity(p.Link.Provider, p.Link.Subject)
		linked.Origin = by
		if i := slices.IndexFunc(u.Identities, same); i >= 0 {
			linked.Origin = u.Identities[i].Origin
		}
		u.Identities = append(slices.DeleteFunc(u.Identities, same), linked)
		slices.SortStableFunc(u.Identities, func(a, b Identity) int {
			if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
				return c
			}
			return strings.Compare(a.ID, b.ID)
		})
	}
	c.User = u
	return c
}

// raisesCredentials tells whether a patch touches ways in, second factors, roles
// or a ban.
func (p *UserPatch) raisesCredentials(u User) bool {
	return p.Email != nil || p.EmailVerifiedAt != nil || p.Phone != nil || p.PhoneVerifiedAt != nil ||
		p.PasswordHash != nil || p.Unlink != nil || p.Roles != nil || p.BannedUntil != nil || p.DropFactors || p.DropCredentials ||
		(p.Link != nil && !slices.ContainsFunc(u.Identities, sameIdentity(p.Link.Provider, p.Link.Subject)))
}

// Adds reports whether the patch adds or replaces something that raises the user's
// Sequence (see Origin).
func (p *UserPatch) Adds(u User) bool {
	return value(p.Email) != "" || value(p.Phone) != "" || value(p.PasswordHash) != "" ||
		!value(p.EmailVerifiedAt).IsZero() || !value(p.PhoneVerifiedAt).IsZero() ||
		p.Link != nil && (p.DropCredentials || !slices.ContainsFunc(u.Identities, sameIdentity(p.Link.Provider, p.Link.Subject)))
}

// Begin sets the sequences of a new user and of its identities, for stores that keep Go
// values: everything begins at 1.
func (u *User) Begin(hasPassword bool) {
	first := func(there bool) (sequence, addedBy int64) {
		if there {
			return 1, 0
		}
		return 0, 0
	}
	u.Sequence = 1
	u.PasswordSequence, u.PasswordAddedBy = first(hasPassword)
	u.EmailSequence, u.EmailAddedBy = first(u.Email != "")
	u.EmailVerifiedSequence, u.EmailVerifiedAddedBy = first(u.EmailVerified())
	u.PhoneSequence, u.PhoneAddedBy = first(u.Phone != "")
	u.PhoneVerifiedSequence, u.PhoneVerifiedAddedBy = first(u.PhoneVerified())
	for i := range u.Identities {
		u.Identities[i].Origin = Origin{Sequence: 1}
	}
}

// mark notes when a field that a patch names was set; a zero value is a removal.
func mark[T comparable](sequence, addedBy *int64, to *T, by Origin) {
	var none T
	switch {
	case to == nil:
	case *to == none:
		*sequence, *addedBy = 0, 0
	default:
		*sequence, *addedBy = by.Sequence, by.AddedBy
	}
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func sameIdentity(provider, subject string) func(Identity) bool {
	return func(i Identity) bool { return i.Provider == provider && i.Subject == subject }
}

func replace[T any](field, to *T) {
	if to != nil {
		*field = *to
	}
}

// LogValue keeps the hash out of the log.
func (c Credentials) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user_id", c.User.ID), slog.String("password_hash", "[redacted]"))
}

// EmailKey is the form in which addresses are compared: two addresses are the
// same account if and only if their keys are equal. It is NormalizeEmail's form
// under Unicode's simple case folding, which knows no locale; of what
// NormalizeEmail refuses, it is the key of no address. Stores keep it, use it for
// lookups and uniqueness, and never compute or compare addresses otherwise.
func EmailKey(email string) string { return address.EmailKey(email) }

// Revocation says that one session has ended, that all sessions of a user have, or
// everybody's, at a time; or that nothing has ended, and tokens are stale, because
// what they say of roles is not so any more (Stale).
type Revocation struct {
	SessionID string // only this session; empty: all of the user's that began until At
	UserID    string // whose; may be empty beside a SessionID
	All       bool   // everybody's sessions that began until At
	Spared    string // with All: the id of a session that goes on; may be empty
	At        time.Time

	// Stale, if it is not zero, is the revision that tokens have to rest on from now
	// on: of the user UserID (User.CredentialRevision), or of the table of roles, for
	// the tokens of whoever has Role. Older ones are refused with CodeTokenStale,
	// which a refresh mends. Revisions tell exactly which tokens were made before a
	// change and which after it, where times of two clocks, in seconds, would not.
	Stale int64
	Role  string
}
