package auth

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/authmount/auth/internal/token"
	"github.com/authmount/auth/store"
)

// Ways of signing in, as amr and events name them.
const (
	methodPassword  = token.MethodPassword
	methodMagicLink = "magic_link"
	methodPhoneCode = token.MethodPhoneCode
)

// LoginParams are a password login.
type LoginParams struct {
	Email    string `json:"email"` // or Phone
	Phone    string `json:"phone"`
	Password string `json:"password"`
	TOTPCode string `json:"totp_code"` // of a user with a second factor; may come later, see VerifyMFA

	TrustDevice bool `json:"trust_device"` // with TOTPCode: as VerifyMFAParams.TrustDevice
}

// Login signs in with a password. An unknown address, an account without a
// password and a wrong password are the same error, CodeInvalidCredentials, for
// the same work; where confirmation is required so is the right password of an
// account that is not confirmed, which gets its mail once more. Only after the
// right password: CodeUserBanned, and CodeMFARequired or CodeMFAEnrollmentRequired, whose Error
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

// loginAs is Login as whoever was found under a name, or nobody.
func (a *Auth) loginAs(ctx context.Context, c store.Credentials, name string, p LoginParams) (*Tokens, error) {
	g := passwordGuess{of: c, name: name, password: p.Password}
	if a.unconfirmed(ctx, c.User) {
		g.hidden = func(ctx context.Context) {
			if !c.User.Banned(a.now()) {
				a.resendVerification(ctx, c.User)
			}
		}
	}
	g.asks = true
	rehash, err := a.judgePassword(ctx, g)
	if errors.Is(err, errCaptchaAsked) { // not while it holds a place where passwords are hashed
		if err := a.solved(ctx); err != nil {
			return nil, err
		}
		g.asks = false
		rehash, err = a.judgePassword(ctx, g)
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
	return a.completeSignIn(ctx, signIn{user: c.User, amr: a.proof(methodPassword), by: byPassword(c.PasswordHash), code: factorCode{totp: p.TOTPCode}, trust: p.TrustDevice, gone: CodeInvalidCredentials, newDevice: onNewDevice(ctx, c)})
}

// unconfirmed tells whether a user may not sign in with a password yet. Whoever
// signed up with an address must not learn from that whether it was taken.
func (a *Auth) unconfirmed(ctx context.Context, u User) bool {
	return a.Settings(ctx).RequireConfirmation.On() && !u.EmailVerified() && !u.PhoneVerified()
}

// loginKey is whom a login names, and the name in its one form.
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

// rehash brings a hash up to the present parameters while the password is at
// hand. It may fail without harm, and gives way to a change made meanwhile.
func (a *Auth) rehash(ctx context.Context, c store.Credentials, password string) string {
	hash, err := a.passwords.hash(ctx, c.User.ID, password)
	if err == nil {
		ch := a.newChange(ctx, byProof())
		ch.IfUsers = []UserAt{{ID: c.User.ID, PasswordHash: &c.PasswordHash}}
		_, err = a.store.UpdateUser(ctx, store.UpdateUser{Change: ch, UserID: c.User.ID, Patch: store.UserPatch{Rehash: &hash}})
	}
	if err == nil {
		return hash
	}
	if errors.Is(err, store.ErrStale) { // somebody else rehashed the same password, or it was changed
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
