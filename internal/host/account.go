package host

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/authmount/auth/store"
)

// Changes makes changes of the store, and the errors of changes that fail.
type Changes interface {
	Store() store.Store
	// Now is the clock, in the precision that stores keep.
	Now() time.Time
	// NewID makes a UUIDv7 (RFC 9562).
	NewID() string

	// Change starts a change of the store by an authority, with its events. It sends no
	// notices.
	Change(ctx context.Context, by store.Authority, events ...store.OutcomeEvent) store.Change
	// ChangeOf is Change of a user, as read before it, with the notices that its events
	// call for.
	ChangeOf(ctx context.Context, by store.Authority, u store.User, events ...store.OutcomeEvent) store.Change
	// Committed sends the messages of a change that took effect and calls the hooks.
	// edit, which may be nil, completes the events with facts that only the store knew.
	Committed(ctx context.Context, c store.Change, edit func(*store.Event))
	// Emit calls the hooks for an event without a change.
	Emit(ctx context.Context, by store.Authority, e store.Event)
	// Draw names the bucket of a rate limit and the value it counts by.
	Draw(r store.Rate, limit, value string, cost int) store.Draw
	// Take draws from rate limits. Errors: rate_limited.
	Take(ctx context.Context, draws ...store.Draw) error
	// Fingerprint is a keyed hash of sum: without the service's secret nobody can search
	// for the content.
	Fingerprint(sum []byte) []byte
	// EventsLost is how many events this process could not record.
	EventsLost() int

	// Error makes the *auth.Error of a code; cause, which may be nil, goes to the log only.
	Error(code string, cause error) error
	// Invalid is validation_failed for one field.
	Invalid(field, problem string) error
	// StoreError makes an error of an error that a store returned.
	StoreError(err error) error
	// Busy is unavailable for a call that may be repeated at once.
	Busy(cause error) error
}

// Accounts changes accounts by the rules that hold at every endpoint.
type Accounts interface {
	// Account reads an account whole. Errors are the store's.
	Account(ctx context.Context, key store.UserKey) (Account, error)
	// NewAccount checks an account that is to be created. A password is checked by the
	// same rules as everywhere, and hashed; a second call with the same p does not hash
	// it again. Errors as of ImportUser, and weak_password, overloaded.
	NewAccount(ctx context.Context, p *NewAccount) (store.NewUser, error)
	// Taken is the error for a value that another account has; other errors of stores are
	// returned as they are.
	Taken(err error) error
	// Edit checks a change of an account as it was read, and adds to c the notices that
	// it calls for and its conditions. An operator may declare an address verified.
	// Links and codes to the former address or phone number are removed, and nothing
	// else. Errors: validation_failed.
	Edit(ctx context.Context, c *store.Change, u store.User, e Edit) (store.UserPatch, error)
	// PasswordOf is the patch of a new password, or of no password (nil): all sessions
	// end, with everything that was started by the password. Errors: weak_password,
	// validation_failed, overloaded, and the errors of hooks.
	PasswordOf(ctx context.Context, u store.User, password *string) (store.UserPatch, error)
	// WithHash adds to the edit of an account a password hash of another system, unless
	// the account has that hash: it is a change of the password, with its consequences
	// and notice. Errors: validation_failed, those of hooks, and the store's.
	WithHash(ctx context.Context, c *store.Change, u store.User, hash string, p *store.UserPatch) error
	// OtherWayIn reports whether the user could still sign in without a provider.
	OtherWayIn(ctx context.Context, c store.Credentials, provider string) bool
	// Unlinking removes an identity from an account, with everything it started.
	Unlinking(i store.Identity) store.UserPatch
	// EndingAll adds to the end of all sessions of a user the removal of tokens and
	// devices, so that a sign-in under way cannot complete.
	EndingAll(c store.RevokeSessions) store.RevokeSessions
	// DeleteUser deletes an account as it was read, if Hooks.BeforeDelete agrees.
	DeleteUser(ctx context.Context, u store.User, c store.DeleteUser) error
	// Anonymize removes from an account everything that identifies a person. Events that
	// this process still holds are written first; events that another process still
	// holds, for a second at most, are missed. Errors: the store's.
	Anonymize(ctx context.Context, c store.Change, u store.User, label string) (store.User, error)
	// Export reads everything that is stored about a user, as an *auth.Export. Errors:
	// user_not_found.
	Export(ctx context.Context, userID string) (any, error)
	// WriteExport responds with an *auth.Export.
	WriteExport(w http.ResponseWriter, r *http.Request, export any) error
	// TOTPSecret is the secret of an account's authenticator app, in base32 as
	// ImportUserParams has it; "" without an enabled one.
	TOTPSecret(ctx context.Context, userID string) (string, error)
	// Factors is the store of second factors; nil: there is none.
	Factors() store.FactorStore
	// Fresh reports whether there was recent authentication in this session, with the
	// second factor if the user has one.
	Fresh(u store.User, s store.Session) bool
	// ForgiveFailures resets the counts of failed passwords, after a new password.
	ForgiveFailures(ctx context.Context, u store.User)
	// LockKeys names the buckets of all limits on failures at an account (AdminStore).
	LockKeys(ctx context.Context, u store.User) ([]string, error)

	// Roles is the table of roles as this process knows it: a second old at most, and
	// never older than a change that this process made. It is shared; do not change it.
	Roles(ctx context.Context) (store.RoleTable, error)
	// ForgetRoles makes this process read the table of roles again.
	ForgetRoles()
	// Stale makes this process refuse at once the access tokens that a change of roles
	// has made stale; other processes learn of it from the feed. u is the user as
	// changed.
	Stale(u store.User)
	// StaleRole is Stale for the bearers of a role whose permissions have changed; t is
	// the table as changed.
	StaleRole(role string, t store.RoleTable)

	// SessionInfo is a session as an auth.SessionInfo; current, which may be empty, is the
	// id of the caller's own.
	SessionInfo(s store.Session, current string) any
	// SessionView is the JSON form of an auth.SessionInfo, for pages that read it.
	SessionView(info any) any
	// NewSessionID makes an id that contains the time at which its session started, as
	// those of sign-ins.
	NewSessionID() string
	// ImpersonationTokens makes the access token of a live impersonation, as an
	// *auth.Tokens. Errors: ErrSessionEnded, ErrNotFound, and those of custom claims.
	ImpersonationTokens(ctx context.Context, id string) (any, error)
	// ImpersonationURL is redirectTo, which was checked, with a code for POST /exchange:
	// the address at which a browser starts to act as the user.
	ImpersonationURL(ctx context.Context, by store.Authority, id, redirectTo string) (string, error)
}

// Lock is a limit that holds an account's owner off.
type Lock struct {
	Limit string    // "password", "code", "factor"
	Until time.Time // the next try
}

// Account is everything that operators see of an account.
type Account struct {
	store.Credentials
	Factors store.Factors // without their secrets; none while none is enabled
	Pending []Pending
	Locks   []Lock
}

// Pending is an address or number that an account is to have once it is proved.
type Pending struct {
	Field     string // "email", "phone"
	Value     string
	ExpiresAt time.Time
}

// Edit is a change of an account by an operator. A nil field is not changed.
type Edit struct {
	FullName      *string        // "" removes it
	UserMetadata  map[string]any // merge patches (RFC 7396)
	AppMetadata   map[string]any
	Email         *string // "" removes it; not verified unless EmailVerified says so
	EmailVerified *bool
	Phone         *string
	PhoneVerified *bool
	Notes         *string
}

// NewAccount is an account that an operator creates. NewAccount fills in an empty ID.
type NewAccount struct {
	ImportUser
	Password string // or PasswordHash
	Notes    string
	Hash     string // of Password, once it is computed; leave it empty
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
	Identities      []store.Identity
	UserMetadata    map[string]any
	AppMetadata     map[string]any
	Roles           []string
	BannedUntil     time.Time
	CreatedAt       time.Time
	LastSignInAt    time.Time
}

// LogValue keeps secrets out of the log.
func (p ImportUser) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", p.ID), slog.String("email", p.Email), slog.String("phone", p.Phone))
}
