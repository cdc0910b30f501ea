package admin

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/wire"
	"github.com/authmount/auth/store"
)

var (
	opLookupUser = operation{pattern: "GET /users/lookup", permission: PermUsersRead, fails: []auth.Code{auth.CodeUserNotFound}}
	opUser       = operation{pattern: "GET /users/{id}", permission: PermUsersRead, fails: []auth.Code{auth.CodeUserNotFound}}
	opCreateUser = operation{created: http.StatusCreated, pattern: "POST /users", permission: PermUsersWrite, fails: []auth.Code{
		auth.CodeReauthNeeded, auth.CodeTargetStronger, auth.CodeRoleNotFound, auth.CodeUserAlreadyExists, auth.CodeIdentityAlreadyExists, auth.CodeWeakPassword, auth.CodeRateLimited, auth.CodeOverloaded, auth.CodeMethodDisabled,
	}}
	opUpdateUser = operation{pattern: "PATCH /users/{id}", permission: PermUsersWrite, against: managing, self: true, fails: []auth.Code{
		auth.CodeReauthNeeded, auth.CodeUserAlreadyExists, auth.CodePreconditionFailed, auth.CodeRateLimited,
	}}
)

// Account is all of an account that operators see.
type Account struct {
	auth.User

	HasPassword       bool
	Factors           []auth.Factor // the enabled ones, without secrets
	RecoveryCodesLeft int
	Pending           []PendingChange
	Locks             []Lock   // rate limits that keep its owner from signing in
	Notes             string   // of operators; never shown to the user
	Waiting           *Waiting // nil: it does not wait for an acceptance
}

// PendingChange is a new email address or phone number of an account that its owner has
// not verified yet.
type PendingChange struct {
	Field     string // "email", "phone"
	Value     string
	ExpiresAt time.Time
}

// Lock is a rate limit that is used up: "password", "code" or "factor".
type Lock struct {
	Limit string
	Until time.Time // time of the next attempt
}

// User reads all of one account. Errors: CodeUserNotFound.
func (m *Admin) User(ctx context.Context, who Actor, id string) (Account, error) {
	if _, err := m.reader(ctx, who, opUser); err != nil {
		return Account{}, err
	}
	return m.account(ctx, store.ByID(id))
}

func (m *Admin) account(ctx context.Context, key store.UserKey) (Account, error) {
	k, err := m.kit.Account(ctx, key)
	if err != nil {
		return Account{}, m.notFound(err)
	}
	a := Account{User: k.User, HasPassword: k.PasswordHash != "", Factors: []auth.Factor{}, RecoveryCodesLeft: k.Factors.RecoveryLeft, Pending: []PendingChange{}, Locks: []Lock{}, Notes: k.Notes}
	for _, p := range k.Pending {
		a.Pending = append(a.Pending, PendingChange(p))
	}
	for _, l := range k.Locks {
		a.Locks = append(a.Locks, Lock(l))
	}
	for _, f := range k.Factors.List {
		if f.Enabled {
			a.Factors = append(a.Factors, f)
		}
	}
	waiting, err := m.waiting(ctx, []auth.User{a.User})
	if w, ok := waiting[a.ID]; ok {
		a.Waiting = &w
	}
	return a, err
}

// LookupUser reads the one account that has a value: an email address (in any case), a
// phone number, or an identity, exactly one of them. Errors: CodeValidationFailed,
// CodeUserNotFound.
func (m *Admin) LookupUser(ctx context.Context, who Actor, key store.UserKey) (Account, error) {
	if _, err := m.reader(ctx, who, opLookupUser); err != nil {
		return Account{}, err
	}
	named := 0
	for _, set := range []bool{key.ID != "", key.Email != "", key.Phone != "", key.Provider != "" || key.Subject != ""} {
		if set {
			named++
		}
	}
	if named != 1 || (key.Provider == "") != (key.Subject == "") {
		return Account{}, m.kit.Invalid("email", "or phone, or provider and subject, are required: one of them")
	}
	return m.account(ctx, key)
}

// lookupParams name an account by one value.
type lookupParams struct {
	Email    string `query:"email"`
	Phone    string `query:"phone"`
	Provider string `query:"provider"`
	Subject  string `query:"subject"`
}

func (m *Admin) lookupUser(ctx context.Context, who Actor, p lookupParams) (Account, error) {
	email, phone, err := m.addresses(p.Email, p.Phone)
	if err != nil {
		return Account{}, err
	}
	return m.LookupUser(ctx, who, store.UserKey{Email: email, Phone: phone, Provider: p.Provider, Subject: p.Subject})
}

// CreateUserParams describe a new account.
type CreateUserParams struct {
	ID            string         `json:"id"`             // any UUID; empty: a new one
	Email         string         `json:"email"`          // or Phone, or both
	EmailVerified bool           `json:"email_verified"` // the operator vouches for it; needs auth.credentials
	Phone         string         `json:"phone"`
	PhoneVerified bool           `json:"phone_verified"` // needs auth.credentials
	FullName      string         `json:"full_name"`
	Password      string         `json:"password"`      // needs auth.credentials; empty: none
	PasswordHash  string         `json:"password_hash"` // instead of Password, as in auth.ImportUserParams; needs auth.credentials
	Roles         []string       `json:"roles"`         // needs auth.roles.assign, and the permissions of the roles
	Accepted      bool           `json:"accepted"`      // the roles take effect at once, see auth.ImportUserParams; needs a person with "*"
	UserMetadata  map[string]any `json:"user_metadata"`
	AppMetadata   map[string]any `json:"app_metadata"`
	Locale        string         `json:"locale"` // language of the account, such as "de"; stored as user_metadata.locale
	Notes         string         `json:"notes"`  // of operators; never shown to the user

	// Send is SendVerification or SendInvitation; empty: a notice that the account was
	// created (auth.KindAccountCreated), unless the actor is System or a key of the options.
	Send string `json:"send"`
}

// Values of CreateUserParams.Send.
const (
	SendVerification = "verify" // the link that verifies the email address
	SendInvitation   = "invite" // the link to choose a password, for an account that has none; it is valid for seven days, and verifies the email address
)

// CreateUser creates an account. Fields of other operations also need the permissions of
// these operations, and recent authentication (15 minutes). Errors: CodeValidationFailed,
// CodeWeakPassword, CodeUserAlreadyExists (an id, email address or phone number is
// taken), CodeMissingPermission, CodeReauthNeeded, CodeTargetStronger, CodeRoleNotFound,
// CodeRateLimited, CodeOverloaded, CodeMethodDisabled (there are no passwords to choose),
// those of Hooks.OnUserCreating.
func (m *Admin) CreateUser(ctx context.Context, who Actor, p CreateUserParams) (auth.User, error) {
	if p.Send != "" && p.Send != SendVerification && p.Send != SendInvitation {
		return auth.User{}, m.kit.Invalid("send", "has to be verify or invite")
	}
	if p.Send == SendVerification && (p.Email == "" || p.EmailVerified) {
		return auth.User{}, m.kit.Invalid("send", "needs an address that is not verified")
	}
	if p.Send == SendInvitation && (p.Email == "" || p.Password != "" || p.PasswordHash != "") {
		return auth.User{}, m.kit.Invalid("send", "needs an address, and an account without a password")
	}
	n := &host.NewAccount{ImportUser: host.ImportUser{
		ID: p.ID, Email: p.Email, EmailVerified: p.EmailVerified, Phone: p.Phone, PhoneVerified: p.PhoneVerified, FullName: p.FullName,
		PasswordHash: p.PasswordHash, UserMetadata: p.UserMetadata, AppMetadata: p.AppMetadata, Roles: slices.Compact(slices.Sorted(slices.Values(p.Roles))), Accepted: p.Accepted || who.accepting,
	}, Password: p.Password, Notes: p.Notes, Locale: p.Locale}
	f := fieldsOfNew(n.ImportUser)
	f.credentials = f.credentials || p.Password != ""
	var permit *host.Permit
	var send host.Send
	id, err := carryOut(ctx, m, who, opCreateUser, "", auth.EventUserCreated, func(t *attempt) (string, error) {
		if err := m.mayWriteFields(t, f); err != nil {
			return "", err
		}
		if err := m.mayAccept(t, n.Accepted); err != nil {
			return "", err
		}
		ofService := t.system() || t.key != nil && t.creator == nil
		announces := p.Send == "" && p.Email != "" && !ofService
		if p.Send != "" || announces {
			if err := m.spend(ctx, t); err != nil {
				return "", err
			}
		}
		nu, err := m.kit.NewAccount(ctx, n)
		if err == nil && p.ID != "" {
			_, err = m.neverUsed(ctx, nu.User.ID)
		}
		if err == nil {
			err = t.keep(nu.User.ID)
		}
		if err != nil {
			return "", err
		}
		t.change.Events[0].Event.UserID, t.record.Target = nu.User.ID, labelOf(nu.User)
		t.recordCreated(nu)
		if p.Send == SendVerification {
			if permit == nil { // counted once, however often the change is attempted
				granted, err := m.kit.PermitVerification(ctx, nu.User.Email)
				if err != nil {
					return "", err
				}
				permit = &granted
			}
			m.kit.SendVerification(ctx, &t.change, &nu, *permit)
		}
		if p.Send == SendInvitation {
			if err := m.kit.InviteNew(ctx, &t.change, &send, &nu); err != nil {
				return "", err
			}
		}
		if announces {
			m.kit.Announce(ctx, &t.change, nu.User)
		}
		_, err = m.store.CreateUser(ctx, store.CreateUser{Change: t.change, NewUser: nu})
		return nu.User.ID, m.kit.DuplicateError(err)
	})
	if err != nil {
		return auth.User{}, err
	}
	u, err := m.store.User(ctx, store.ByID(id))
	if err != nil {
		return auth.User{}, m.notFound(err)
	}
	return u, nil
}

// neverUsed rejects the id of a deleted account, because its records and the keys that it
// answered for must not pass to a new account. The id of an existing account is rejected,
// too, because the account may be deleted before the new one is created; exists reports
// whether it does.
func (m *Admin) neverUsed(ctx context.Context, id string) (exists bool, err error) {
	conflict := m.fail(auth.CodeUserAlreadyExists, &store.ConflictError{Field: "id"})
	switch _, err := m.store.User(ctx, store.ByID(id)); {
	case err == nil:
		return true, conflict
	case !errors.Is(err, store.ErrNotFound):
		return false, m.kit.StoreError(err)
	}
	deleted, err := m.admin.UserDeleted(ctx, id)
	switch {
	case err != nil:
		return false, m.kit.StoreError(err)
	case deleted:
		return false, conflict
	}
	return false, nil
}

// recordCreated records a new account in the audit log.
func (t *attempt) recordCreated(nu store.NewUser) {
	u := nu.User
	for field, v := range map[string]string{"email": u.Email, "phone": u.Phone, "full_name": u.FullName} {
		if v != "" {
			t.changed(field, nil, v)
		}
	}
	for field, v := range map[string]bool{"email_verified": u.EmailVerified(), "phone_verified": u.PhoneVerified(), "password": nu.PasswordHash != ""} {
		if v {
			t.changed(field, nil, v)
		}
	}
	if len(u.Roles) > 0 {
		t.changed("roles", nil, u.Roles)
	}
	if len(u.AppMetadata) > 0 {
		t.changed("app_metadata", nil, u.AppMetadata)
	}
	if n := passkeysIn(nu.Factors); n > 0 {
		t.changed("passkeys", nil, n)
	}
}

func passkeysIn(list []auth.Factor) (n int) {
	for _, f := range list {
		if f.Kind == store.FactorPasskey {
			n++
		}
	}
	return n
}

// UpdateUserParams change an account; nil keeps a field.
type UpdateUserParams struct {
	UserID   string
	Revision *int64 // of the account that the caller saw; nil: any

	FullName     *string        // "" removes it
	UserMetadata map[string]any // merged into the present metadata; null removes a member (RFC 7396)
	AppMetadata  map[string]any // merged, too; an actor cannot write the actor's own
	Notes        *string

	// These need auth.credentials, and an actor cannot write the actor's own. A new email
	// address or phone number is unverified unless the same call verifies it; "" removes
	// one.
	Email         *string
	EmailVerified *bool
	Phone         *string
	PhoneVerified *bool
}

// credentials reports whether a credential is among the changes.
func (p *UpdateUserParams) credentials() bool {
	return p.Email != nil || p.EmailVerified != nil || p.Phone != nil || p.PhoneVerified != nil
}

// UpdateUser changes an account. The former and the new email address are notified. Links
// that were sent to a former email address become invalid; sessions continue. Errors:
// CodeValidationFailed, CodeUserNotFound, CodeUserAlreadyExists, CodeTargetStronger,
// CodeMissingPermission, CodeReauthNeeded, CodePreconditionFailed.
func (m *Admin) UpdateUser(ctx context.Context, who Actor, p UpdateUserParams) (auth.User, error) {
	return carryOut(ctx, m, who, opUpdateUser, p.UserID, auth.EventUserUpdated, func(t *attempt) (auth.User, error) {
		if err := m.mayWriteFields(t, writtenFields{credentials: p.credentials()}); err != nil { // an actor without the permission learns nothing about validation errors
			return auth.User{}, err
		}
		if p.AppMetadata != nil && t.own(t.target.ID) {
			return auth.User{}, auth.Reject(auth.CodeTargetStronger, "You cannot change your own app_metadata.")
		}
		if err := m.at(t, p.Revision); err != nil {
			return auth.User{}, err
		}
		patch, err := m.kit.Edit(ctx, &t.change, t.target, host.Edit{
			FullName: p.FullName, UserMetadata: p.UserMetadata, AppMetadata: p.AppMetadata, Notes: p.Notes,
			Email: p.Email, EmailVerified: p.EmailVerified, Phone: p.Phone, PhoneVerified: p.PhoneVerified,
		})
		if err != nil {
			return auth.User{}, err
		}
		if p.Notes != nil {
			c, err := m.store.Credentials(ctx, store.ByID(t.target.ID))
			if err != nil {
				return auth.User{}, err
			}
			if c.Notes == *p.Notes {
				patch.Notes = nil
			}
		}
		t.recordPatch(patch)
		if t.unchanged(len(t.record.Changes) == 0) {
			return t.target, nil
		}
		u, err := m.updateTarget(ctx, t, patch)
		if errors.Is(err, store.ErrConflict) {
			err = m.fail(auth.CodeUserAlreadyExists, err)
		}
		if err == nil && u.AcceptedSequence != t.target.AcceptedSequence {
			m.kit.MarkStale(u) // it waits from now on
		}
		return u, err
	})
}

// recordPatch records a patch in the audit log. Of notes it records only that they changed,
// because their text should not outlive the account.
func (t *attempt) recordPatch(p store.UserPatch) {
	u := t.target
	for field, c := range map[string]struct {
		before string
		after  *string
	}{"full_name": {u.FullName, p.FullName}, "email": {u.Email, p.Email}, "phone": {u.Phone, p.Phone}} {
		if c.after != nil && *c.after != c.before {
			t.changed(field, optional(c.before), optional(*c.after))
		}
	}
	if at := p.EmailVerifiedAt; at != nil && u.EmailVerified() == at.IsZero() {
		t.changed("email_verified", u.EmailVerified(), !at.IsZero())
	}
	if at := p.PhoneVerifiedAt; at != nil && u.PhoneVerified() == at.IsZero() {
		t.changed("phone_verified", u.PhoneVerified(), !at.IsZero())
	}
	if p.UserMetadata != nil && !wire.SameJSON(u.UserMetadata, p.UserMetadata) {
		t.changed("user_metadata", u.UserMetadata, p.UserMetadata)
	}
	if p.AppMetadata != nil && !wire.SameJSON(u.AppMetadata, p.AppMetadata) {
		t.changed("app_metadata", u.AppMetadata, p.AppMetadata)
	}
	if p.Notes != nil {
		t.changed("notes", nil, nil)
	}
}
