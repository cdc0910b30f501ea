package auth

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
)

// Ways of signing in, as amr and events name them.
const (
	methodPassword  = "password"
	methodMagicLink = "magic_link"
	methodPhoneCode = "otp"
)

// LoginParams are a password login.
type LoginParams struct {
	Email    string `json:"email"` // or Phone
	Phone    string `json:"phone"`
	Password string `json:"password"`
	TOTPCode string `json:"totp_code"` // of a user with a second factor; may come later, see VerifyMFA
}

// Login signs in with a password. An unknown address, an account without a
// password and a wrong password are the same error, CodeInvalidCredentials, for
// the same work. Only after the right password: CodeEmailNotVerified,
// CodeUserBanned, and CodeMFARequired or CodeMFAEnrollmentRequired, whose Error
// carries the MFAToken to go on with; CodeInvalidTOTPCode for a TOTPCode that is
// wrong. Also CodeValidationFailed, CodeMethodDisabled, CodeRateLimited (after too
// many failures), CodeOverloaded.
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
	key.Device = clientFrom(ctx).Device
	c, err := a.store.Credentials(ctx, key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, storeFailed(err)
	}
	account := c.User.ID
	if account == "" {
		account = name
	}
	rehash, err := a.judgePassword(ctx, account, c.PasswordHash, p.Password)
	if err != nil {
		if errors.Is(err, CodeInvalidCredentials) {
			a.emit(ctx, Event{Type: EventSignInFailed, UserID: c.User.ID, Method: methodPassword, Err: err})
		}
		return nil, err
	}
	return a.afterPassword(ctx, c, p, rehash)
}

// loginKey is whom a login names, and the name in its one form.
func loginKey(p LoginParams) (UserKey, string, error) {
	if p.Phone != "" && p.Email == "" {
		phone, err := NormalizePhone(p.Phone)
		if err != nil {
			return UserKey{}, "", invalid("phone", err.Error())
		}
		return ByPhone(phone), phone, nil
	}
	email, err := requiredEmail(p.Email)
	if err != nil {
		return UserKey{}, "", invalid("email", err.Error())
	}
	return ByEmail(email), EmailKey(email), nil
}

// afterPassword goes on once the password was right.
func (a *Auth) afterPassword(ctx context.Context, c Credentials, p LoginParams, rehash bool) (*Tokens, error) {
	if c.User.Banned(a.now()) {
		return nil, fail(CodeUserBanned, nil)
	}
	if a.Settings(ctx).RequireConfirmation.On() && !c.User.EmailVerified() && !c.User.PhoneVerified() {
		if err := a.resendVerification(ctx, c.User); err != nil {
			return nil, err
		}
		return nil, fail(CodeEmailNotVerified, nil)
	}
	if rehash {
		c.PasswordHash = a.rehash(ctx, c, p.Password)
	}
	return a.completeSignIn(ctx, signIn{user: c.User, amr: a.proof(methodPassword), by: byPassword(c.PasswordHash), totp: p.TOTPCode, gone: CodeInvalidCredentials})
}

// judgePassword compares a password under the limits on failures, and does the
// same work when there is no hash. Only failures count: the buckets are asked
// right before the comparison and drawn from after a wrong one, so that of many
// parallel guesses no more than the cap are answered as wrong, and right
// passwords never use the cap up. What both cost is limited too, generously.
func (a *Auth) judgePassword(ctx context.Context, account, hash, password string) (rehash bool, err error) {
	draws := func(cost int) []Draw {
		return []Draw{
			a.draw(a.cfg.limits.LoginPerAccount, "login", account, cost),
			a.perIP(ctx, a.cfg.limits.LoginPerIP, "login-ip", cost),
		}
	}
	var before Decision
	ok, rehash, err := a.passwords.verify(ctx, account, hash, password, func(ctx context.Context) error {
		var err error
		before, err = a.take(ctx, append(draws(0), a.draw(a.cfg.limits.SignInsPerAccount, "sign-ins", account, 1))...)
		return err
	})
	if err != nil {
		return false, hashFailed(err)
	}
	if !ok {
		if _, err := a.take(ctx, draws(1)...); err != nil {
			return false, err
		}
		return false, fail(CodeInvalidCredentials, nil)
	}
	limit := a.cfg.limits.LoginPerAccount.Burst
	if len(before.Remaining) > 0 && before.Remaining[0] < limit {
		if _, err := a.take(ctx, a.draw(a.cfg.limits.LoginPerAccount, "login", account, -limit)); err != nil {
			return false, err
		}
	}
	return rehash, nil
}

// rehash brings a hash up to the present parameters while the password is at
// hand. It may fail without harm, and gives way to a change made meanwhile.
func (a *Auth) rehash(ctx context.Context, c Credentials, password string) string {
	hash, err := a.passwords.hash(ctx, c.User.ID, password)
	if err == nil {
		ch := a.newChange(ctx, byProof())
		ch.IfUsers = []UserAt{{ID: c.User.ID, PasswordHash: &c.PasswordHash}}
		_, err = a.store.UpdateUser(ctx, UpdateUser{Change: ch, UserID: c.User.ID, Patch: UserPatch{Rehash: &hash}})
	}
	if err == nil {
		return hash
	}
	if errors.Is(err, ErrStale) { // somebody else rehashed the same password, or it was changed
		now, err := a.store.Credentials(ctx, ByID(c.User.ID))
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
	return a.writeTokens(w, tokens)
}

// LogValue keeps the password out of the log.
func (p LoginParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("email", maskEmail(p.Email)), slog.String("password", redacted))
}
