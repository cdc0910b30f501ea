package auth

import (
	"cmp"
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// ImportUserParams describe a user of another system. The import trusts the
// application: it verifies nothing again.
type ImportUserParams struct {
	ID              string // any UUID except the nil UUID; empty: a new one
	Email           string // one of Email, Phone and Identities is required
	EmailVerified   bool   // at EmailVerifiedAt, or now if that is zero
	EmailVerifiedAt time.Time
	Phone           string // with the country code
	PhoneVerified   bool   // at PhoneVerifiedAt, or now if that is zero
	PhoneVerifiedAt time.Time
	FullName        string
	PasswordHash    string // see ValidPasswordHash for the formats; empty: no password

	// TOTPSecret is the secret of an authenticator app, in base32: six digits, SHA-1,
	// 30 seconds, 10 to 64 bytes. It is stored sealed and enabled at once. Recovery codes
	// are not imported: the user creates new ones.
	TOTPSecret string

	// UserHandle is the user handle of the account's passkeys: 32 bytes in base64url without
	// padding. Empty: a new one.
	UserHandle string

	// Passkeys are those of a service with the same RP ID (see passkey.Options.OtherRPID), as
	// its export has them, and at most 20. They need WithPasskeys and the UserHandle. Each has
	// to fulfil the rules of a registration; a zero CreatedAt becomes the user's.
	Passkeys []PasskeyRecord

	// Identities are accounts at providers, at most one for each provider. They get
	// new ids; a zero CreatedAt becomes the user's.
	Identities []Identity

	UserMetadata map[string]any
	AppMetadata  map[string]any

	// Roles have to exist. On a store that package admin has never run on, no role exists,
	// and any name may be given, for HasRole.
	Roles []string

	// Accepted lets Roles take effect at once. Otherwise the account waits, if the roles
	// hold permissions of operators, until its holder has accepted them through a link to
	// the account's address. Everything that is imported stays valid then; it does not after
	// an acceptance. So set it only if nobody but the holder knows the password, and only
	// the holder can use the phone number and the identities.
	Accepted bool

	BannedUntil  time.Time // zero: not banned
	CreatedAt    time.Time // zero: now
	LastSignInAt time.Time // in the other system; zero: never
}

// LogValue keeps the password hash and the TOTP secret out of the log.
func (p ImportUserParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", p.ID), slog.String("email", p.Email), slog.String("phone", p.Phone), slog.String("password_hash", redacted), slog.String("totp_secret", redacted))
}

// ImportUser creates a user with data of another system: a password hash, which is
// renewed at the first login, a second factor, identities. See ValidPasswordHash for
// bcrypt hashes. It sends no message (see SendWelcome), and no limit applies. Errors:
// CodeValidationFailed with the field; CodeRoleNotFound with a message that names the role;
// CodeUserAlreadyExists and, for an identity or a passkey, CodeIdentityAlreadyExists or
// CodePasskeyAlreadyExists, each with a *ConflictError that names the taken value ("id",
// "email", "phone", "identity", "user_handle", "passkeys"); CodeUnavailable.
func (a *Auth) ImportUser(ctx context.Context, p ImportUserParams) (User, error) {
	im, err := a.newImport(ctx, p)
	if err == nil {
		err = a.requireRolesExist(ctx, p.Roles)
	}
	if err != nil {
		return User{}, err
	}
	return a.importOne(ctx, im)
}

// requireRolesExist refuses a misspelt role, which would permit nothing until somebody
// creates a role of that name.
func (a *Auth) requireRolesExist(ctx context.Context, roles []string) error {
	unknown := func(k *knownRoles) int {
		return slices.IndexFunc(roles, func(r string) bool {
			_, exists := k.perms[r]
			return !exists && r != RoleOwner
		})
	}
	if len(roles) == 0 {
		return nil
	}
	known, err := a.rolePermissions(ctx)
	if err == nil && unknown(known) >= 0 {
		known, err = a.currentRoles(ctx) // another instance may have created it just now
	}
	if err != nil {
		return err
	}
	if i := unknown(known); i >= 0 && len(known.table.Roles) > 0 {
		return Reject(CodeRoleNotFound, fmt.Sprintf("There is no role %.64q.", roles[i]))
	}
	return nil
}

// importOne creates one user, with the application's hook.
func (a *Auth) importOne(ctx context.Context, im store.NewUser) (User, error) {
	if err := a.recordImportedRPID(ctx, im.Factors); err != nil {
		return User{}, err
	}
	im.Creating = a.creating()
	c := a.newChange(ctx, ByApplication("").authority(), done(imported(im.User)))
	u, err := a.store.CreateUser(ctx, store.CreateUser{Change: c, NewUser: im})
	if err != nil {
		return User{}, importRefused(err)
	}
	a.committed(ctx, c, store.OutcomeDone, nil)
	return u, nil
}

func imported(u User) Event { return Event{Type: EventUserImported, UserID: u.ID} }

// importRefused converts a conflict into its code, and other errors with storeFailed.
func importRefused(err error) error {
	var taken *store.ConflictError
	switch {
	case errors.As(err, &taken) && taken.Field == "identity":
		return fail(CodeIdentityAlreadyExists, err)
	case errors.As(err, &taken) && taken.Field == "factor":
		return fail(CodePasskeyAlreadyExists, &store.ConflictError{Field: "passkeys"})
	case errors.As(err, &taken) && taken.Field == "handle":
		return fail(CodeUserAlreadyExists, &store.ConflictError{Field: "user_handle"})
	case errors.Is(err, store.ErrConflict):
		return fail(CodeUserAlreadyExists, err)
	}
	return storeFailed(err)
}

// newImport checks the parameters of an import, and returns the user.
func (a *Auth) newImport(ctx context.Context, p ImportUserParams) (store.NewUser, error) {
	now := a.now()
	u := User{UserMetadata: orEmptyMap(p.UserMetadata), AppMetadata: p.AppMetadata, Roles: p.Roles, UpdatedAt: now, Handle: newHandle()}
	for _, check := range []func(*ImportUserParams, *User, time.Time) error{a.importID, importTimes, importAddresses, importFacts, importHandle, a.importIdentities} {
		if err := check(&p, &u, now); err != nil {
			return store.NewUser{}, err
		}
	}
	if p.Accepted {
		var err error
		if u.AcceptedSequence, err = a.acceptedWith(ctx, p.Roles); err != nil {
			return store.NewUser{}, err
		}
	}
	im := store.NewUser{User: u, PasswordHash: p.PasswordHash}
	if p.TOTPSecret != "" {
		f, err := a.importTOTP(u.ID, p.TOTPSecret, now)
		if err != nil {
			return store.NewUser{}, err
		}
		im.Factors = []Factor{f}
	}
	passkeys, err := a.importPasskeys(p, u)
	im.Factors = append(im.Factors, passkeys...)
	return im, err
}

func (a *Auth) importID(p *ImportUserParams, u *User, _ time.Time) error {
	if p.ID == "" {
		u.ID = a.newID()
		return nil
	}
	u.ID = strings.ToLower(p.ID)
	if !isID(u.ID) || u.ID == uuid.Nil.String() {
		return invalid("id", "is not a UUID")
	}
	return nil
}

// clockSkew is the time by which another system's clock may be ahead.
const clockSkew = time.Minute

// importTimes checks that the times are in a range that stores can keep and, except
// BannedUntil, not in the future.
func importTimes(p *ImportUserParams, u *User, now time.Time) error {
	type moment struct {
		field string
		at    *time.Time
	}
	times := []moment{
		{"banned_until", &p.BannedUntil}, {"created_at", &p.CreatedAt}, {"last_sign_in_at", &p.LastSignInAt},
		{"email_verified_at", &p.EmailVerifiedAt}, {"phone_verified_at", &p.PhoneVerifiedAt},
	}
	p.Identities = slices.Clone(p.Identities)
	for i := range p.Identities {
		times = append(times, moment{"identities", &p.Identities[i].CreatedAt}, moment{"identities", &p.Identities[i].LastSignInAt})
	}
	p.Passkeys = slices.Clone(p.Passkeys)
	for i := range p.Passkeys {
		k := &p.Passkeys[i]
		times = append(times, moment{"passkeys", &k.CreatedAt})
		if k.LastUsedAt != nil {
			at := *k.LastUsedAt
			k.LastUsedAt = &at
			times = append(times, moment{"passkeys", &at})
		}
	}
	for _, t := range times {
		if t.at.IsZero() {
			continue
		}
		*t.at = t.at.UTC().Truncate(time.Microsecond)
		switch {
		case t.at.Year() < 1 || t.at.Year() > 9999:
			return invalid(t.field, "is no time of years 1 to 9999")
		case t.at != &p.BannedUntil && t.at.After(now.Add(clockSkew)):
			return invalid(t.field, "is in the future")
		}
	}
	if p.BannedUntil.Equal(store.AnonymizedUntil()) { // that time marks anonymized accounts
		p.BannedUntil = p.BannedUntil.AddDate(-1, 0, 0)
	}
	u.CreatedAt, u.LastSignInAt, u.BannedUntil = cmp.Or(p.CreatedAt, now), p.LastSignInAt, p.BannedUntil
	return nil
}

func importAddresses(p *ImportUserParams, u *User, now time.Time) (err error) {
	switch {
	case p.Email == "" && p.Phone == "" && len(p.Identities) == 0:
		return invalid("email", "is required where there is neither a phone nor an identity")
	case p.Email == "" && (p.EmailVerified || !p.EmailVerifiedAt.IsZero()):
		return invalid("email", "is required if it was verified")
	case p.Phone == "" && (p.PhoneVerified || !p.PhoneVerifiedAt.IsZero()):
		return invalid("phone", "is required if it was verified")
	}
	if p.Email != "" {
		if u.Email, err = NormalizeEmail(p.Email); err != nil {
			return invalid("email", err.Error())
		}
	}
	if p.Phone != "" {
		if u.Phone, err = NormalizePhone(p.Phone); err != nil {
			return invalid("phone", err.Error())
		}
	}
	since := func(verified bool, at time.Time) time.Time {
		if verified && at.IsZero() {
			return now
		}
		return at
	}
	u.EmailVerifiedAt, u.PhoneVerifiedAt = since(p.EmailVerified, p.EmailVerifiedAt), since(p.PhoneVerified, p.PhoneVerifiedAt)
	return nil
}

// checkHash checks a password hash of another system.
func checkHash(hash string) error {
	if err := ValidPasswordHash(hash); err != nil {
		return invalid("password_hash", err.Error())
	}
	if !isLine(hash) {
		return invalid("password_hash", "has characters that no hash has")
	}
	return nil
}

func importFacts(p *ImportUserParams, u *User, _ time.Time) (err error) {
	if p.PasswordHash != "" {
		if err := checkHash(p.PasswordHash); err != nil {
			return err
		}
	}
	if u.FullName, err = cleanName(p.FullName); err != nil {
		return invalid("full_name", err.Error())
	}
	if err := checkMetadata(p.UserMetadata); err != nil {
		return invalid("user_metadata", err.Error())
	}
	if err := checkMetadata(p.AppMetadata); err != nil {
		return invalid("app_metadata", err.Error())
	}
	if slices.ContainsFunc(p.Roles, func(r string) bool { return !isRole(r) }) {
		return invalid("roles", "has one that is empty or has control characters")
	}
	return nil
}

// importIdentities checks identities by the rules for those that providers report.
func (a *Auth) importIdentities(p *ImportUserParams, u *User, _ time.Time) error {
	seen := map[string]bool{}
	for _, i := range p.Identities {
		switch {
		case !provider.ValidName(i.Provider):
			return invalid("identities", "has one of a provider that can have no such name")
		case seen[i.Provider]:
			return invalid("identities", "has two of one provider")
		case !isSubject(i.Subject):
			return invalid("identities", "has one without a subject, or with one that no provider gives")
		case !isLine(i.Email) || utf8.RuneCountInString(i.Email) > maxName+len("@")+maxName:
			return invalid("identities", "has one with an address that cannot be printed")
		}
		seen[i.Provider] = true
		i.ID, i.CreatedAt = a.newID(), cmp.Or(i.CreatedAt, u.CreatedAt)
		u.Identities = append(u.Identities, i)
	}
	return nil
}

// Bounds of an imported TOTP secret, in bytes. Google's secrets have 10, fewer than RFC
// 4226 requires, but losing the factor would be worse.
const (
	minImportedTOTP = 10
	maxImportedTOTP = 64
)

// importTOTP returns a second factor with the sealed secret.
func (a *Auth) importTOTP(userID, encoded string, now time.Time) (Factor, error) {
	if a.factors == nil {
		return Factor{}, invalid("totp_secret", "cannot be kept: the store is no FactorStore")
	}
	compact := strings.ToUpper(strings.TrimRight(strings.NewReplacer(" ", "", "-", "").Replace(encoded), "="))
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(compact)
	if err != nil || strings.ContainsAny(compact, "\r\n") {
		return Factor{}, invalid("totp_secret", "is not base32") // the error would quote it
	}
	if len(secret) < minImportedTOTP || len(secret) > maxImportedTOTP {
		return Factor{}, invalid("totp_secret", "has fewer than 10 bytes or more than 64")
	}
	return Factor{ID: a.newID(), UserID: userID, Kind: store.FactorTOTP, Required: true, Secret: a.keys.Seal(secret, []byte(userID)), CreatedAt: now}, nil
}
