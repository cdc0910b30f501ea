package auth

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/authmount/auth/internal/token"
	"github.com/authmount/auth/store"
)

// Sign-in methods, as in amr and events.
const (
	methodPassword  = token.MethodPassword
	methodMagicLink = "magic_link"
	methodPhoneCode = token.MethodPhoneCode
)

// LoginParams are the parameters of Login.
type LoginParams struct {
	Email    string `json:"email"` // or Phone
	Phone    string `json:"phone"`
	Password string `json:"password"`
	TOTPCode string `json:"totp_code"` // of a user with a second factor; may also follow later, see VerifyMFA

	TrustDevice bool `json:"trust_device"` // with TOTPCode: as VerifyMFAParams.TrustDevice

	// With Email, if confirmation is required: the code that the page of the confirmation
	// link shows, or the code in the mail. It confirms an unconfirmed account and is ignored
	// for every other one.
	ConfirmationCode string `json:"confirmation_code"`
}

// Login signs a user in with a password. An unknown address, an account without a
// password and a wrong password are the same error, CodeInvalidCredentials, after the
// same work. If confirmation is required, the right password of an unconfirmed account
// gets the same error, and the confirmation message is sent again. With a right
// ConfirmationCode, the sign-in confirms the account; a wrong one is
// CodeInvalidCredentials, and counts as a wrong code and as a wrong password.
//
// Errors: CodeValidationFailed, CodeMethodDisabled, CodeInvalidCredentials,
// CodeRateLimited (too many failures), CodeOverloaded, CodeNotFound (the service is
// switched off). Only after the right password:
// CodeUserBanned, CodeInvalidTOTPCode (a wrong TOTPCode), CodeMFARequired and
// CodeMFAEnrollmentRequired, with the MFAToken to continue.
func (a *Auth) Login(ctx context.Context, p LoginParams) (*Tokens, error) {
	if !a.Settings(ctx).Password.On() {
		return nil, fail(CodeMethodDisabled, nil)
	}
	key, name, err := loginKey(p)
	if err != nil {
		return nil, err
	}
	if p.Password == "" {
		return nil, invalid("password", "is required")
	}
	c, err := a.store.Credentials(ctx, onThisDevice(ctx, key))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, storeFailed(err)
	}
	tokens, err := a.loginAs(ctx, c, name, p)
	var e *Error
	if a.Settings(ctx).RequireConfirmation.On() && errors.As(err, &e) && e.Code == CodeInvalidCredentials {
		e.Message = "The credentials are not right, or the address is not confirmed yet."
	}
	return tokens, err
}

// loginAs is Login for the account found under a name, which may be unknown.
func (a *Auth) loginAs(ctx context.Context, c store.Credentials, name string, p LoginParams) (*Tokens, error) {
	g := passwordAttempt{credentials: c, name: name, password: p.Password}
	unconfirmed := a.unconfirmed(ctx, c.User)
	switch {
	case a.Settings(ctx).RequireConfirmation.On() && p.ConfirmationCode != "" && p.Phone == "":
		g.confirm = func(ctx context.Context, right bool) (err error) {
			switch {
			case !right:
				err = a.tryDecoy(ctx, name, p.ConfirmationCode)
			case unconfirmed:
				var u User
				if u, err = a.confirmAtSignIn(ctx, c.User, byPassword(c.PasswordHash), p.ConfirmationCode); err == nil {
					c.User = u
				}
			}
			var e *Error
			switch {
			case err == nil:
				return nil
			case errors.As(err, &e) && e.Status >= http.StatusInternalServerError: // for a wrong password, too
				e.cause = errors.Join(errChecked, e.cause)
				return e
			}
			return fail(CodeInvalidCredentials, err)
		}
	case unconfirmed:
		g.confirm = func(ctx context.Context, right bool) error {
			if right && !c.User.Banned(a.now()) {
				a.resendVerification(ctx, c.User)
			}
			return fail(CodeInvalidCredentials, nil)
		}
	}
	g.mayNeedCaptcha = true
	rehash, err := a.checkPassword(ctx, g)
	if errors.Is(err, errCaptchaRequired) { // solved before the retry, so that a slow Verifier does not hold a hashing slot
		if err := a.verifyCaptcha(ctx); err != nil {
			return nil, err
		}
		g.mayNeedCaptcha = false
		rehash, err = a.checkPassword(ctx, g)
	}
	if err != nil {
		return nil, err
	}
	if c.User.Banned(a.now()) {
		return nil, fail(CodeUserBanned, nil)
	}
	if rehash {
		c.PasswordHash = a.rehash(ctx, c, p.Password)
	}
	return a.completeSignIn(ctx, signIn{user: c.User, amr: a.newAMR(methodPassword), by: byPassword(c.PasswordHash), code: factorCode{totp: p.TOTPCode}, trust: p.TrustDevice, gone: CodeInvalidCredentials, newDevice: onNewDevice(ctx, c)})
}

// unconfirmed reports whether a user must verify an address before a password sign-in.
// Otherwise a sign-up followed by a login would reveal whether the address was taken.
func (a *Auth) unconfirmed(ctx context.Context, u User) bool {
	return a.Settings(ctx).RequireConfirmation.On() && !u.EmailVerified() && !u.PhoneVerified()
}

// loginKey returns the key of the account, and the name in normal form.
func loginKey(p LoginParams) (store.UserKey, string, error) {
	if p.Phone != "" && p.Email == "" {
		phone, err := NormalizePhone(p.Phone)
		if err != nil {
			return store.UserKey{}, "", invalid("phone", err.Error())
		}
		return store.ByPhone(phone), phone, nil
	}
	email, err := requiredEmail(p.Email)
	if err != nil {
		return store.UserKey{}, "", invalid("email", err.Error())
	}
	return store.ByEmail(email), store.EmailKey(email), nil
}

// rehash renews a hash with the current parameters while the password is known. A
// failure does no harm. A concurrent change of the password wins.
func (a *Auth) rehash(ctx context.Context, c store.Credentials, password string) string {
	hash, err := a.passwords.hash(ctx, hashOwner{c.User.ID, deviceOf(ctx, c)}, password)
	if err == nil {
		ch := a.newChange(ctx, byAuthentication())
		ch.IfUsers = []UserAt{{ID: c.User.ID, PasswordHash: &c.PasswordHash}}
		_, err = a.store.UpdateUser(ctx, store.UpdateUser{Change: ch, UserID: c.User.ID, Patch: store.UserPatch{Rehash: &hash}})
	}
	if err == nil {
		return hash
	}
	if errors.Is(err, store.ErrStale) { // another login rehashed it, or the password was changed
		now, err := a.store.Credentials(ctx, store.ByID(c.User.ID))
		if err == nil && now.User.CredentialRevision == c.User.CredentialRevision {
			return now.PasswordHash
		}
	}
	a.cfg.log.WarnContext(ctx, "auth: password not rehashed", "user_id", c.User.ID, "error", err)
	return c.PasswordHash
}

func (a *Auth) handleLogin(w http.ResponseWriter, r *http.Request) error {
	var p LoginParams
	if err := decode(r, &p); err != nil {
		return err
	}
	tokens, err := a.Login(r.Context(), p)
	if err != nil {
		return err
	}
	return a.writeTokens(w, r, tokens)
}

// LogValue keeps the password out of the log.
func (p LoginParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("email", maskEmail(p.Email)), slog.String("password", redacted))
}
