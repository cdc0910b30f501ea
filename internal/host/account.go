package host

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/authmount/auth/store"
)

// Changes creates changes of the store, and the errors of failed changes.
type Changes interface {
	Store() store.Store
	// Now returns the time, in the precision of stores.
	Now() time.Time
	// NewID returns a new UUIDv7 (RFC 9562).
	NewID() string

	// Change returns a change of the store by an authority, with its events and without
	// notices.
	Change(ctx context.Context, by store.Authority, events ...store.OutcomeEvent) store.Change
	// ChangeOf is Change for a user, as read before the change, with the notices for its
	// events.
	ChangeOf(ctx context.Context, by store.Authority, u store.User, events ...store.OutcomeEvent) store.Change
	// Committed sends the messages of a successful change and calls the hooks. edit,
	// which may be nil, adds facts to the events that only the store knew.
	Committed(ctx context.Context, c store.Change, edit func(*store.Event))
	// Emit calls the hooks for an event without a change.
	Emit(ctx context.Context, by store.Authority, e store.Event)
	// Draw returns the rate limit's bucket for a value, and the cost to count.
	Draw(r store.Rate, limit, value string, cost int) store.Draw
	// CheckLimits counts against rate limits. Errors: rate_limited.
	CheckLimits(ctx context.Context, draws ...store.Draw) error
	// LimitsLeft returns what remains of rate limits, in the order of draws. It counts
	// nothing.
	LimitsLeft(ctx context.Context, draws ...store.Draw) ([]int, error)
	// Fingerprint returns a keyed hash of sum. Without the service's secret nobody can
	// search for the content.
	Fingerprint(sum []byte) []byte
	// EventsLost returns how many events this process could not record.
	EventsLost() int

	// Error returns the *auth.Error of a code. cause, which may be nil, is only logged.
	Error(code string, cause error) error
	// Invalid returns validation_failed for one field.
	Invalid(field, problem string) error
	// StoreError returns the error for an error of a store.
	StoreError(err error) error
	// Busy returns unavailable for a call that may be repeated at once.
	Busy(cause error) error
}

// Accounts changes accounts by the rules that hold at every endpoint.
type Accounts interface {
	// Account reads a whole account. Errors are the store's.
	Account(ctx context.Context, key store.UserKey) (Account, error)
	// NewAccount checks an account before its creation. It checks a password by the usual
	// rules and hashes it; a second call with the same p does not hash it again. Errors:
	// those of ImportUser, weak_password, overloaded.
	NewAccount(ctx context.Context, p *NewAccount) (store.NewUser, error)
	// DuplicateError returns the error for a value that another account has. It returns other
	// errors of stores unchanged.
	DuplicateError(err error) error
	// Edit checks a change of an account as it was read, and adds the change's notices
	// and conditions to c. An operator may declare an email address or phone number
	// verified. Links and codes to the former ones are removed, nothing else. Errors:
	// validation_failed.
	Edit(ctx context.Context, c *store.Change, u store.User, e Edit) (store.UserPatch, error)
	// PasswordPatch returns the patch for a new password, or for none (nil): all sessions
	// end, with everything that the password started. Errors: weak_password,
	// validation_failed, overloaded, and those of hooks.
	PasswordPatch(ctx context.Context, u store.User, password *string) (store.UserPatch, error)
	// AddPasswordHash adds a password hash of another system to the edit of an account, unless
	// the account has that hash already. It is a change of the password, with its
	// consequences and notice. Errors: validation_failed, those of hooks, and the
	// store's.
	AddPasswordHash(ctx context.Context, c *store.Change, u store.User, hash string, p *store.UserPatch) error
	// CanSignInWithout reports whether the user could still sign in without a provider.
	CanSignInWithout(ctx context.Context, c store.Credentials, provider string) (bool, error)
	// UnlinkPatch returns the patch that removes an identity, with everything it started.
	UnlinkPatch(i store.Identity) store.UserPatch
	// RemoveTokens adds the removal of tokens and devices to the revocation of all sessions
	// of a user, so that a sign-in in progress cannot complete.
	RemoveTokens(c store.RevokeSessions) store.RevokeSessions
	// DeleteUser deletes an account as it was read, if Hooks.BeforeDelete agrees.
	DeleteUser(ctx context.Context, u store.User, c store.DeleteUser) error
	// Anonymize removes everything that identifies a person from an account. It writes
	// waiting events of this process first; events that wait in another process, for a
	// second at most, are missed. Errors: the store's.
	Anonymize(ctx context.Context, c store.Change, u store.User, label string) (store.User, error)
	// Export reads everything that is stored about a user, as an *auth.Export. Errors:
	// user_not_found.
	Export(ctx context.Context, userID string) (any, error)
	// WriteExport writes an *auth.Export as the response.
	WriteExport(w http.ResponseWriter, r *http.Request, export any) error
	// TOTPSecret returns the secret of an account's authenticator app, in base32 as in
	// ImportUserParams; "" without an enabled one.
	TOTPSecret(ctx context.Context, userID string) (string, error)
	// PasskeyRecords returns an account's passkeys as in ImportUserParams; none without
	// WithPasskeys.
	PasskeyRecords(ctx context.Context, userID string) ([]store.PasskeyRecord, error)
	// RecordImportedRPID stores the RP ID of the service before factors of new accounts are
	// stored, if they include a passkey of it.
	RecordImportedRPID(ctx context.Context, factors []store.Factor) error
	// RememberRemoved remembers a factor that is about to be removed, if it is a passkey.
	RememberRemoved(ctx context.Context, f store.Factor) error
	// Factors returns the store of second factors, or nil.
	Factors() store.FactorStore
	// RecentlyAuthenticated reports whether the session has recent authentication, with the second factor
	// if the user has one.
	RecentlyAuthenticated(u store.User, s store.Session) bool
	// ResetFailures resets the counts of failed passwords after a new password.
	ResetFailures(ctx context.Context, u store.User)
	// Unlock counts an unlock against the account's limit of three a day, and returns what
	// AdminStore.FillLimits needs to let ten more attempts through. undo uncounts it. Errors:
	// CodeRateLimited.
	Unlock(ctx context.Context, u store.User) (fill []store.Draw, undo func(), err error)

	// Roles returns this process's table of roles: at most a second old, and never older
	// than a change by this process. It is shared; do not change it.
	Roles(ctx context.Context) (store.RoleTable, error)
	// PrivilegedRoles returns the names of WithPrivilegedRoles.
	PrivilegedRoles() []string
	// DeclarePermissions sets the permissions that roles may hold.
	DeclarePermissions(names []string)
	// DeclarePrivileged sets the permissions that the application declared privileged.
	DeclarePrivileged(permissions []string)
	// RolesIn returns the roles of u that count in a session: without a second factor, not
	// those that require one.
	RolesIn(ctx context.Context, u store.User, s store.Session) ([]string, error)
	// WithheldIn returns the other roles of u.
	WithheldIn(ctx context.Context, u store.User, s store.Session) ([]string, error)
	// Standing returns the part of an account's roles that counts when it acts.
	Standing(t store.RoleTable, u store.User) Standing
	// SetRoles makes a patch replace the roles of u, by the rules about acceptance. Every
	// change of roles calls it, with the table and the user among the conditions. asks
	// reports whether the change adds operator permissions that wait.
	SetRoles(p *store.UserPatch, t store.RoleTable, u store.User, roles []string) (asks bool)
	// OperatorRoles returns the names of the roles that hold operator permissions, sorted,
	// and of all privileged roles.
	OperatorRoles(t store.RoleTable) []string
	// RolesAskedFor returns the names that HasRole was asked for in this process, sorted.
	RolesAskedFor() []string
	// ReloadRoles makes this process read the table of roles again.
	ReloadRoles()
	// MarkStale makes this process reject the access tokens that a change of roles or a ban
	// made stale. Other processes receive it from the feed. u is the changed user.
	MarkStale(u store.User)
	// MarkRoleStale is MarkStale for all users with a role whose permissions changed. t is the
	// changed table.
	MarkRoleStale(role string, t store.RoleTable)

	// SessionInfo returns a session as an auth.SessionInfo. current, which may be empty,
	// is the id of the caller's session.
	SessionInfo(s store.Session, current string) any
	// SessionView returns the JSON form of an auth.SessionInfo, for pages.
	SessionView(info any) any
	// NewSessionID returns a new session id. It contains the start time, as those of
	// sign-ins.
	NewSessionID() string
	// ImpersonationTokens returns the access token of a live impersonation, as an
	// *auth.Tokens. Errors: ErrSessionEnded, ErrNotFound, and those of custom claims.
	ImpersonationTokens(ctx context.Context, id string) (any, error)
	// CheckActing checks where an impersonation continues: an allowed redirect, with the
	// code challenge of the browser that will exchange the code, or neither. A code without
	// a challenge would let an operator plant the session in somebody else's browser.
	CheckActing(redirectTo, challenge string) error
	// ImpersonationURL returns redirectTo, which the caller checked, with a code for POST
	// /exchange. The browser with the verifier of the challenge starts to act as the user.
	ImpersonationURL(ctx context.Context, by store.Authority, id, redirectTo, challenge string) (string, error)
	// ActPage returns the URL of the application's page where a browser exchanges such a
	// code; "" without package pages.
	ActPage() string
	// StartActing keeps a new verifier in a cookie of the browser, for a minute, with the
	// path where the browser continues, and returns its code challenge.
	StartActing(w http.ResponseWriter, returnTo string) (challenge string)
	// Acting returns what StartActing kept in the browser of r, or "".
	Acting(r *http.Request) (verifier, returnTo string)
	// StopActing deletes that cookie.
	StopActing(w http.ResponseWriter)
	// ActingAs returns the user of a code of ImpersonationURL, and does not use it up.
	// Errors: CodeInvalidCode.
	ActingAs(ctx context.Context, code string) (store.User, error)
}

// Standing is the part of an account's roles that counts when the account acts.
type Standing struct {
	Roles       []string
	Permissions []string
	Waits       bool // the account has operator permissions that it has not accepted
}

// Lock is a rate limit that currently locks an account's owner out.
type Lock struct {
	Limit string    // "password", "code", "factor"
	Until time.Time // time of the next attempt
}

// Account is everything that operators see of an account.
type Account struct {
	store.Credentials
	Factors store.Factors // without secrets; empty if none is enabled
	Pending []Pending
	Locks   []Lock
}

// Pending is an email address or phone number that waits for verification.
type Pending struct {
	Field     string // "email", "phone"
	Value     string
	ExpiresAt time.Time
}

// Edit is a change of an account by an operator. Nil fields do not change.
type Edit struct {
	FullName      *string        // "" removes it
	UserMetadata  map[string]any // merge patches (RFC 7396)
	AppMetadata   map[string]any
	Email         *string // "" removes it; unverified unless EmailVerified is true
	EmailVerified *bool
	Phone         *string
	PhoneVerified *bool
	Notes         *string
}

// NewAccount is an account that an operator creates. Accounts.NewAccount sets an empty
// ID.
type NewAccount struct {
	ImportUser
	Password string // or PasswordHash
	Notes    string
	Locale   string // becomes user_metadata.locale, if not empty
	Hash     string // set by Accounts.NewAccount; leave it empty
	Imported bool   // its phone number was in use elsewhere, so that auth.PhoneOptions.Possible does not judge it
}

// ImportUser has the fields of auth.ImportUserParams, and converts to it.
type ImportUser struct {
	ID              string
	Email           string
	EmailVerified   bool
	EmailVerifiedAt time.Time
	Phone           string
	PhoneVerified   bool
	PhoneVerifiedAt time.Time
	FullName        string
	PasswordHash    string
	TOTPSecret      string
	UserHandle      string
	Passkeys        []store.PasskeyRecord
	Identities      []store.Identity
	UserMetadata    map[string]any
	AppMetadata     map[string]any
	Roles           []string
	Accepted        bool
	BannedUntil     time.Time
	CreatedAt       time.Time
	LastSignInAt    time.Time
}

// LogValue keeps secrets out of the log.
func (p ImportUser) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", p.ID), slog.String("email", p.Email), slog.String("phone", p.Phone))
}
