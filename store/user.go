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

// User is an account as the store keeps it. It survives a round trip through JSON.
// Responses show an auth.UserView instead.
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
	MFAEnabled      bool // has an enabled factor that is Required
	Identities      []Identity
	CreatedAt       time.Time
	UpdatedAt       time.Time
	LastSignInAt    time.Time // zero: never
	BannedUntil     time.Time // zero: not banned

	Revision           int64 // rises with every change of the user
	CredentialRevision int64 // rises only with credentials, second factors, roles, acceptances and bans

	// Handle is WebAuthn's user handle: 32 random bytes that name the account to
	// authenticators, in base64url without padding. Only UserPatch.Handle changes them, when
	// another person takes over the account. Empty: there is none.
	Handle string

	// AcceptedSequence is the Sequence at which the account's holder accepted the
	// permissions of an operator; 0: never (see Accepted). A store stores 1 for a new user
	// with any other value than 0, and otherwise ignores the field in parameters.
	AcceptedSequence int64
	AcceptedUntil    time.Time // the acceptance ends then; zero: it does not end

	// Sequence orders the changes that take effect for the account (see Origin). The store
	// sets it and the fields below, and ignores them in parameters.
	Sequence                                    int64
	PasswordSequence, PasswordAddedBy           int64
	EmailSequence, EmailAddedBy                 int64
	EmailVerifiedSequence, EmailVerifiedAddedBy int64
	PhoneSequence, PhoneAddedBy                 int64
	PhoneVerifiedSequence, PhoneVerifiedAddedBy int64

	// Claims go into the user's access tokens, like those of WithClaims. A store that can
	// compute them does so in the read before a sign-in or refresh. They are not stored.
	Claims map[string]any `json:"-"`
}

// EmailVerified reports whether the email address is verified.
func (u *User) EmailVerified() bool { return !u.EmailVerifiedAt.IsZero() }

// PhoneVerified reports whether the phone number is verified.
func (u *User) PhoneVerified() bool { return !u.PhoneVerifiedAt.IsZero() }

// Banned reports whether the user is banned at now.
func (u *User) Banned(now time.Time) bool { return now.Before(u.BannedUntil) }

// Accepted reports whether the holder's acceptance of the permissions of an operator is
// valid at now. An account that has such permissions without it waits for it: it cannot
// use them.
func (u *User) Accepted(now time.Time) bool {
	return u.AcceptedSequence > 0 && (u.AcceptedUntil.IsZero() || now.Before(u.AcceptedUntil))
}

// Unverified reports whether the account has no verified email address, no verified phone
// number and no identity. Such an account belongs to the first person who verifies one.
func (u *User) Unverified() bool {
	return !u.EmailVerified() && !u.PhoneVerified() && len(u.Identities) == 0
}

// Identity is a user's account at an external provider. (Provider, Subject) and ID are
// unique over all users, else a *ConflictError of "identity" or "id".
type Identity struct {
	ID           string    `json:"id"`
	Provider     string    `json:"provider"`
	Subject      string    `json:"subject"`
	Email        string    `json:"email"`
	CreatedAt    time.Time `json:"created_at"`
	LastSignInAt time.Time `json:"last_sign_in_at"`
	Origin
}

// Origin records when, in the order of an account's changes, a part of the account took
// effect, and which session or token added it. The store sets it and ignores it in
// parameters.
//
// A change raises User.Sequence by one, with the user locked, if it adds or replaces a
// session, device, password, enabled factor, set of recovery codes, identity, email address
// or phone number, verifies an email address or phone number, or issues an enrolment token
// (PurposeEnroll). Everything that the change adds has the raised value as its Sequence:
// records as Origin, fields of the user as User.PasswordSequence and so on. A removed field
// has sequence 0. A sign-in on a known device leaves the device's Origin as it was. Other
// tokens have the current value and do not raise it. Refresh, step-up, rehash, removal,
// anonymisation, bans, roles, trust in a device and revocation do not raise it. A new user, with everything created with it, starts at 1.
//
// Everything added "from a session on" has a Sequence of at least the session's. A sequence
// orders changes reliably; the clocks of different machines do not.
type Origin struct {
	Sequence int64 `json:"sequence"`

	// AddedBy is the Sequence of the session or enrolment token of the same user that was
	// the change's authority or, without such an authority, that the change redeemed. It is
	// 0 for a sign-in, the application, an operator or an import.
	AddedBy int64 `json:"added_by"`
}

// Credentials is the data for a password login, from one read.
type Credentials struct {
	User         User
	PasswordHash string    // PHC or another supported format; empty: no password
	KnownDevice  bool      // the user has signed in on UserKey.Device before
	TrustedUntil time.Time // the user trusts UserKey.Device until then, which may have passed; zero: no trust
	Notes        string    // operators' notes; never shown to the user
}

// UserRecords is the data that a store keeps about a user, without secrets.
type UserRecords struct {
	Devices  []DeviceRecord
	Pending  []TokenRecord    // live tokens and codes
	Messages []PendingMessage // waiting to be sent
}

// DeviceRecord is a device that the user signed in on.
type DeviceRecord struct {
	Device                  string // as Session.Device has it
	FirstSeenAt, LastSeenAt time.Time
	Origin
}

// TokenRecord is a token or code.
type TokenRecord struct {
	Purpose   Purpose
	Subject   string
	Data      []byte
	CreatedAt time.Time
	ExpiresAt time.Time
}

// PendingMessage is a message.
type PendingMessage struct{ CreatedAt, ExpiresAt time.Time }

// UserKey names one user by exactly one of its unique values.
type UserKey struct {
	ID       string
	Email    string // compared by EmailKey
	Phone    string
	Handle   string // User.Handle
	Provider string // with Subject
	Subject  string

	Device string // for Credentials.KnownDevice and TrustedUntil only; identifies no user
}

// ByID names a user by id.
func ByID(id string) UserKey { return UserKey{ID: id} }

// ByEmail names a user by email address, in any case.
func ByEmail(email string) UserKey { return UserKey{Email: email} }

// ByPhone names a user by phone number in E.164 form.
func ByPhone(phone string) UserKey { return UserKey{Phone: phone} }

// ByHandle names a user by its random handle.
func ByHandle(handle string) UserKey { return UserKey{Handle: handle} }

// ByIdentity names a user by its account at a provider.
func ByIdentity(provider, subject string) UserKey {
	return UserKey{Provider: provider, Subject: subject}
}

// NewUser is a user to create, with everything that is created in the same step. Identities
// come in User. The store sets MFAEnabled, the revisions and the sequences: MFAEnabled is
// true if one of Factors is Required, revisions start at 0, and User.Sequence at 1.
type NewUser struct {
	User         User
	PasswordHash string
	Notes        string   // operators' notes
	Session      *Session // first session; sets LastSignInAt
	Tokens       []Token  // as for PutToken
	// Factors are second factors, stored as enabled and under the user's id; their
	// UserID is ignored. At most one may be of a kind that is not Several, else a
	// *ConflictError of "factor". Only a FactorStore receives any. If one is Required, a
	// first session below AAL2 is ErrMFARequired.
	Factors []Factor

	// Creating, if set, is called in the step that creates the user, after all conditions
	// were checked, and must not call the store except within that step. If it fails, the
	// step is undone and its error returned. A store with transactions calls it inside the transaction, with a context
	// that gives access to it, and may roll back and call it again.
	Creating func(ctx context.Context, u User) error
}

// UserPatch is a change to one user, applied wholly or not at all. Nil fields are not
// changed. Every applied patch that is not empty sets UpdatedAt and raises Revision. It
// raises CredentialRevision if it names Email, Phone, either VerifiedAt, PasswordHash,
// Unlink, Roles, BannedUntil, DropFactors, DropCredentials, Accept or AcceptedUntil, or
// Link of an identity that the user does not have yet. It raises Sequence (see Origin) if it names an Email, Phone,
// VerifiedAt or PasswordHash that is not empty, or Link of such an identity.
type UserPatch struct {
	Email           *string    // EmailVerifiedAt is not changed by it: name both
	EmailVerifiedAt *time.Time // the zero time: not verified
	Phone           *string
	PhoneVerifiedAt *time.Time
	FullName        *string
	UserMetadata    map[string]any // replaces the whole map; empty and non-nil clears it
	AppMetadata     map[string]any // as UserMetadata
	PasswordHash    *string        // "" removes the password
	Rehash          *string        // the same password under other parameters: no change of a credential
	Roles           *[]string      // replaces the whole list
	BannedUntil     *time.Time     // the zero time lifts a ban
	Notes           *string        // Credentials.Notes
	Handle          *string        // User.Handle, which no longer finds the account by its old value

	Link   *Identity // add an identity, or replace the user's own of the same provider and subject completely, including zero fields
	Unlink *UserKey  // remove the identity with this Provider and Subject; no effect if there is none

	Revoke      *SessionFilter // end these sessions
	DropTokens  []Purpose      // remove the user's tokens of these purposes
	DropFactors bool           // remove every factor, pending or enabled, except KeepFactors, and the recovery codes unless a factor that stays is Required
	DropDevices bool           // forget the user's devices, by Revoke as RevokeSessions.DropDevices does by Filter
	RevokeKeys  int64          // revoke the API keys, adopted ones too, with a text that a session of the user from this Sequence on created; 0: none

	// DropCredentials removes every credential that the same patch does not name: the
	// password (unless PasswordHash is set), the email address (unless Email or
	// EmailVerifiedAt is set), the phone number (unless Phone or PhoneVerifiedAt is set),
	// all identities (except Link), all factors and recovery codes, all tokens, all
	// sessions and impersonations, and all devices, also that of KeepSession. It will also
	// remove kinds of credentials that are added to this package later.
	DropCredentials bool
	KeepFactors     []string // ids of factors that DropFactors and DropCredentials keep
	KeepSession     string   // the id of a session that DropCredentials keeps; empty: none

	// Accept sets AcceptedSequence to the Sequence after the patch, and AcceptedUntil to
	// zero. It also revokes the API keys that the user created, except adopted ones. Without
	// it, AcceptedSequence becomes 0 with DropCredentials, and if Origin.AddedBy is 0 with an
	// Email that is not empty, or with such a Phone if there is no email address, because
	// then somebody else chose the place that links are sent to.
	Accept        bool
	AcceptedUntil *time.Time
}

// Empty reports whether the patch would change nothing.
func (p *UserPatch) Empty() bool {
	return p.Email == nil && p.EmailVerifiedAt == nil && p.Phone == nil && p.PhoneVerifiedAt == nil && p.FullName == nil &&
		p.UserMetadata == nil && p.AppMetadata == nil && p.PasswordHash == nil && p.Rehash == nil && p.Roles == nil && p.BannedUntil == nil && p.Notes == nil && p.Handle == nil &&
		p.Link == nil && p.Unlink == nil && p.Revoke == nil && p.DropTokens == nil && !p.DropFactors && !p.DropDevices && p.RevokeKeys == 0 && !p.DropCredentials &&
		!p.Accept && p.AcceptedUntil == nil
}

// Apply returns the user and password hash after a patch, for stores that patch in Go, with
// the revisions, Sequence and UpdatedAt that the patch raises. It does not change c. The
// store itself applies Revoke to sessions, DropTokens to tokens, DropFactors to factors and
// DropDevices to devices, DropCredentials to all of them, and RevokeKeys and Accept to keys. If a kept factor is Required, it sets MFAEnabled again.
// addedBy is the Origin.AddedBy of everything that the patch adds.
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
	if p.DropCredentials { // the fields that the patch names are set below
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
	replace(&u.Handle, p.Handle)
	if p.Roles != nil {
		u.Roles = slices.Clone(*p.Roles)
	}
	replace(&u.AcceptedUntil, p.AcceptedUntil)
	switch {
	case p.Accept:
		u.AcceptedSequence, u.AcceptedUntil = u.Sequence, time.Time{}
	case p.DropCredentials, addedBy == 0 && (value(p.Email) != "" || value(p.Phone) != "" && u.Email == ""):
		u.AcceptedSequence = 0
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

// raisesCredentials reports whether a patch changes credentials, second factors, roles or a
// ban.
func (p *UserPatch) raisesCredentials(u User) bool {
	return p.Email != nil || p.EmailVerifiedAt != nil || p.Phone != nil || p.PhoneVerifiedAt != nil ||
		p.PasswordHash != nil || p.Unlink != nil || p.Roles != nil || p.BannedUntil != nil || p.DropFactors || p.DropCredentials || p.Accept || p.AcceptedUntil != nil ||
		(p.Link != nil && !slices.ContainsFunc(u.Identities, sameIdentity(p.Link.Provider, p.Link.Subject)))
}

// Adds reports whether the patch adds or replaces something and so raises the user's
// Sequence (see Origin).
func (p *UserPatch) Adds(u User) bool {
	return value(p.Email) != "" || value(p.Phone) != "" || value(p.PasswordHash) != "" ||
		!value(p.EmailVerifiedAt).IsZero() || !value(p.PhoneVerifiedAt).IsZero() ||
		p.Link != nil && (p.DropCredentials || !slices.ContainsFunc(u.Identities, sameIdentity(p.Link.Provider, p.Link.Subject)))
}

// Begin sets the sequences of a new user and its identities to 1, for stores that keep Go
// values.
func (u *User) Begin(hasPassword bool) {
	for sequence, there := range map[*int64]bool{
		&u.PasswordSequence: hasPassword, &u.EmailSequence: u.Email != "", &u.EmailVerifiedSequence: u.EmailVerified(),
		&u.PhoneSequence: u.Phone != "", &u.PhoneVerifiedSequence: u.PhoneVerified(),
	} {
		*sequence = 0
		if there {
			*sequence = 1
		}
	}
	u.Sequence = 1
	if u.AcceptedSequence != 0 {
		u.AcceptedSequence = 1
	}
	u.AcceptedUntil = time.Time{}
	u.PasswordAddedBy, u.EmailAddedBy, u.EmailVerifiedAddedBy, u.PhoneAddedBy, u.PhoneVerifiedAddedBy = 0, 0, 0, 0, 0
	for i := range u.Identities {
		u.Identities[i].Origin = Origin{Sequence: 1}
	}
}

// mark records the origin of a field that a patch names; the zero value removes the field.
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

// EmailKey returns the form in which email addresses are compared: two addresses belong to
// the same account if and only if their keys are equal. It is NormalizeEmail's form under
// Unicode's simple case folding, which is independent of locales. If NormalizeEmail refuses
// an address, its key matches no valid address. Stores keep the key, use it for lookups and
// uniqueness, and never compute or compare addresses in another way.
func EmailKey(email string) string { return address.EmailKey(email) }

// Revocation reports to other processes that sessions have ended: one session, all of a
// user, or all of all users up to a time. With Stale it reports instead that no session has
// ended, but that tokens are outdated because roles have changed.
type Revocation struct {
	SessionID string // only this session; empty: all of the user's that were created until At
	UserID    string // the user; may be empty if SessionID is set
	All       bool   // all sessions of all users that were created until At
	Spared    string // with All: the id of a session that continues; may be empty
	At        time.Time

	// Stale, if not zero, is the lowest valid revision of tokens: of the user UserID
	// (User.CredentialRevision), or of the table of roles, for tokens with Role. Older
	// tokens are refused with CodeTokenStale until the client refreshes. Revisions order
	// tokens and changes exactly; times in seconds of two clocks would not.
	Stale int64
	Role  string

	// CaughtUp is no revocation: the feed has reported everything that happened until At,
	// by the clock of the process, and the other fields are empty. A feed that is well
	// reports it again every second; after four seconds without, this process no longer
	// passes revocations on to other services.
	CaughtUp bool
}
