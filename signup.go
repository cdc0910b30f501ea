package auth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// SignUpParams are the particulars of a new account.
type SignUpParams struct {
	Email        string         `json:"email"` // or Phone
	Phone        string         `json:"phone"`
	Password     string         `json:"password"`
	FullName     string         `json:"full_name"`
	UserMetadata map[string]any `json:"user_metadata"`
	RedirectTo   string         `json:"redirect_to"` // where the confirmed link leads; on the allow-list
}

// SignUpResult is a new account: signed in, or waiting for its address to be
// confirmed.
type SignUpResult struct {
	Tokens               *Tokens // nil when confirmation is required
	User                 User
	ConfirmationRequired bool
}

// SignUp creates an account and sends the link that confirms its address.
//
// When confirmation is required, an address that has an account already gets the
// same answer with a made-up user, and a message that says so. Otherwise the
// error is CodeUserAlreadyExists. Other errors: CodeValidationFailed,
// CodeWeakPassword, CodeSignupDisabled, CodeMethodDisabled,
// CodeRedirectNotAllowed, CodeRateLimited, CodeOverloaded.
func (a *Auth) SignUp(ctx context.Context, p SignUpParams) (*SignUpResult, error) {
	if err := a.checkSignUp(&p); err != nil {
		return nil, err
	}
	if _, err := a.take(ctx, a.perIP(ctx, a.cfg.limits.SignupPerIP, "signup", 1)); err != nil {
		return nil, err
	}
	if err := a.checkPassword(ctx, p.Password, p.Email, p.Phone, p.FullName); err != nil {
		return nil, err
	}
	if err := a.beforeSignUp(ctx, SignUpAttempt{Email: p.Email, Phone: p.Phone, FullName: p.FullName, UserMetadata: p.UserMetadata, Method: "password"}); err != nil {
		return nil, err
	}
	hash, err := a.passwords.hash(ctx, p.Password)
	if err != nil {
		return nil, hashFailed(err)
	}
	return a.createAccount(ctx, p, hash)
}

// checkSignUp validates and normalises without looking anything up.
func (a *Auth) checkSignUp(p *SignUpParams) error {
	switch {
	case a.cfg.settings.SignupDisabled:
		return fail(CodeSignupDisabled, nil)
	case a.cfg.settings.PasswordDisabled:
		return fail(CodeMethodDisabled, nil)
	}
	bad := map[string]string{}
	var err error
	if p.Phone != "" && p.Email == "" {
		if a.phoneOff() {
			return fail(CodeMethodDisabled, nil)
		}
		if p.Phone, err = a.requiredPhone(p.Phone); err != nil {
			bad["phone"] = err.Error()
		}
	} else {
		if p.Email, err = requiredEmail(p.Email); err != nil {
			bad["email"] = err.Error()
		}
		p.Phone = "" // one at a time: the other is added to the account later
	}
	if p.Password == "" {
		bad["password"] = "is required"
	}
	if p.FullName, err = cleanName(p.FullName); err != nil {
		bad["full_name"] = err.Error()
	}
	if err := checkMetadata(p.UserMetadata); err != nil {
		bad["user_metadata"] = err.Error()
	}
	if len(bad) > 0 {
		e := fail(CodeValidationFailed, nil)
		e.Fields = bad
		return e
	}
	return a.allowRedirect(p.RedirectTo)
}

// createAccount stores the account, its first session and its link in one step.
func (a *Auth) createAccount(ctx context.Context, p SignUpParams, hash string) (*SignUpResult, error) {
	now := a.now()
	u := User{
		ID: a.newID(), Email: p.Email, Phone: p.Phone, FullName: p.FullName, UserMetadata: orEmptyMap(p.UserMetadata),
		CreatedAt: now, UpdatedAt: now,
	}
	proof, message := a.firstProof(u, p.RedirectTo)
	nu := NewUser{User: u, PasswordHash: hash, Tokens: []Token{proof}, Creating: a.creating()}
	var tokens *Tokens
	confirm := a.cfg.settings.RequireConfirmation
	enrol := !confirm && a.mfaRequired(u)
	if !confirm && !enrol {
		s := a.newSession(ctx, u.ID, a.proof(methodPassword), now)
		u.LastSignInAt = now
		if err := a.beforeSignIn(ctx, SignInAttempt{User: u, Method: methodPassword}); err != nil {
			return nil, err
		}
		var err error
		if tokens, err = a.mint(ctx, u, s); err != nil {
			return nil, err
		}
		nu.Session = &s
	}
	created, err := a.store.CreateUser(ctx, nu)
	switch {
	case errors.Is(err, ErrConflict) && confirm:
		a.sendAccountExists(ctx, u, p.RedirectTo)
		return &SignUpResult{User: u, ConfirmationRequired: true}, nil
	case errors.Is(err, ErrConflict):
		return nil, fail(CodeUserAlreadyExists, err)
	case err != nil:
		return nil, storeFailed(err)
	}
	a.sendMail(ctx, message, created)
	a.emit(ctx, Event{Type: EventSignedUp, UserID: u.ID, Method: methodPassword})
	if enrol {
		_, err := a.completeSignIn(ctx, signIn{user: created, amr: a.proof(methodPassword), by: provenBy{Password: &hash}, gone: CodeInvalidCredentials})
		return nil, err
	}
	if tokens != nil {
		if created.Claims != nil { // known only now
			if tokens, err = a.mint(ctx, created, *nu.Session); err != nil {
				return nil, err
			}
		}
		tokens.User = created
		a.emit(ctx, Event{Type: EventSignedIn, UserID: u.ID, SessionID: tokens.SessionID, Method: methodPassword})
	}
	return &SignUpResult{Tokens: tokens, User: created, ConfirmationRequired: confirm}, nil
}

// firstProof makes the link or code that proves a new account's address or
// number, and the message that carries it.
func (a *Auth) firstProof(u User, redirectTo string) (Token, outgoing) {
	if u.Phone != "" {
		code, t := a.newPhoneCode(PurposePhoneCode, u.Phone, linkData{Verifies: u.ID})
		t.UserID = u.ID
		return t, outgoing{Kind: KindPhoneCode, Channel: ChannelSMS, To: u.Phone, Code: code, ExpiresIn: a.cfg.phone.Life}
	}
	secret, t := a.newLink(PurposeVerifyEmail, verifyLife, linkData{Email: u.Email, RedirectTo: redirectTo})
	t.UserID, t.Subject = u.ID, u.ID
	return t, outgoing{Kind: KindVerifyEmail, To: u.Email, Name: u.FullName, Link: a.linkURL(KindVerifyEmail, secret), ExpiresIn: verifyLife}
}

// sendAccountExists tells an address's owner that somebody gave it for an account
// once more, with a link to choose a new password: whoever holds the mailbox
// owns the account, also when it was never confirmed. It is worked out behind
// the request's back, because taking longer would tell that the account exists;
// for the same reason too many such messages are left out silently.
//
// A number that is taken gets no message: texts cost money, and its owner signs
// in with a code as ever.
func (a *Auth) sendAccountExists(ctx context.Context, taken User, redirectTo string) {
	email := taken.Email
	if email == "" {
		a.outbox.send(ctx, outgoing{Kind: KindPhoneCode})
		return
	}
	locale := preferredLocale(ctx, User{})
	a.outbox.send(ctx, outgoing{Kind: KindAccountExists, prepare: func(ctx context.Context) (outgoing, error) {
		_, err := a.take(ctx, a.sendDraws(KindAccountExists, email)...)
		if errors.Is(err, CodeRateLimited) {
			return outgoing{}, nil
		}
		if err != nil {
			return outgoing{}, err
		}
		owner, err := a.store.User(ctx, ByEmail(email))
		if errors.Is(err, ErrNotFound) {
			return outgoing{}, nil // deleted a moment ago
		}
		if err != nil {
			return outgoing{}, err
		}
		secret, link := a.newLink(PurposeReset, resetLife, linkData{Email: owner.Email, RedirectTo: redirectTo})
		link.UserID, link.Subject = owner.ID, EmailKey(owner.Email)
		if err := a.store.PutToken(ctx, link); err != nil {
			return outgoing{}, err
		}
		return outgoing{
			Kind: KindAccountExists, To: owner.Email, Name: owner.FullName, Locale: locale,
			Link: a.linkURL(KindResetPassword, secret), ExpiresIn: resetLife,
		}, nil
	}})
}

func (a *Auth) handleSignUp(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Email        string         `json:"email"`
		Phone        string         `json:"phone"`
		Password     string         `json:"password"`
		FullName     string         `json:"full_name"`
		UserMetadata map[string]any `json:"user_metadata"`
		RedirectTo   string         `json:"redirect_to"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	res, err := a.SignUp(r.Context(), SignUpParams(p))
	if err != nil {
		return err
	}
	if res.ConfirmationRequired {
		return writeJSON(w, http.StatusOK, map[string]any{"user": res.User, "confirmation_required": true})
	}
	return a.writeTokens(w, res.Tokens)
}

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
// CodeUserBanned. Also CodeValidationFailed, CodeMethodDisabled,
// CodeRateLimited (after too many failures), CodeOverloaded.
func (a *Auth) Login(ctx context.Context, p LoginParams) (*Tokens, error) {
	if a.cfg.settings.PasswordDisabled {
		return nil, fail(CodeMethodDisabled, nil)
	}
	key, name, err := loginKey(p)
	if err != nil {
		return nil, err
	}
	if p.Password == "" {
		return nil, invalid("password", "is required")
	}
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
	if a.cfg.settings.RequireConfirmation && !c.User.EmailVerified && !c.User.PhoneVerified {
		if err := a.resendVerification(ctx, c.User); err != nil {
			return nil, err
		}
		return nil, fail(CodeEmailNotVerified, nil)
	}
	if rehash {
		c.PasswordHash = a.rehash(ctx, c, p.Password)
	}
	return a.completeSignIn(ctx, signIn{user: c.User, amr: a.proof(methodPassword), by: provenBy{Password: &c.PasswordHash}, totp: p.TOTPCode, gone: CodeInvalidCredentials})
}

// judgePassword compares a password under the limits on failures, and does the
// same work when there is no hash. Only failures count: the buckets are asked
// right before the comparison and drawn from after a wrong one, so that of many
// parallel guesses no more than the cap are answered as wrong, and right
// passwords never use the cap up.
func (a *Auth) judgePassword(ctx context.Context, account, hash, password string) (rehash bool, err error) {
	draws := func(cost int) []Draw {
		return []Draw{
			a.draw(a.cfg.limits.LoginPerAccount, "login", account, cost),
			a.perIP(ctx, a.cfg.limits.LoginPerIP, "login-ip", cost),
		}
	}
	var before Decision
	ok, rehash, err := a.passwords.verify(ctx, hash, password, func(ctx context.Context) error {
		var err error
		before, err = a.take(ctx, draws(0)...)
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
	hash, err := a.passwords.hash(ctx, password)
	if err == nil {
		_, err = a.store.UpdateUser(ctx, c.User.ID, UserPatch{IfPasswordHash: &c.PasswordHash, PasswordHash: &hash}, a.now())
	}
	if err != nil {
		a.cfg.log.WarnContext(ctx, "auth: password not rehashed", "user_id", c.User.ID, "error", err)
		return c.PasswordHash
	}
	return hash
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

// requiredEmail is NormalizeEmail for a field that must be there.
func requiredEmail(s string) (string, error) {
	if s == "" {
		return "", errors.New("is required")
	}
	return NormalizeEmail(s)
}

// Bounds of what people say of themselves.
const (
	maxName     = 200
	maxMetadata = 16 << 10
)

// cleanName trims a name and refuses what could not be printed on one line.
func cleanName(s string) (string, error) {
	s = norm.NFC.String(strings.TrimSpace(s))
	if utf8.RuneCountInString(s) > maxName {
		return "", errors.New("is too long")
	}
	for _, r := range s {
		// Joiners belong to names in some scripts; other format characters can
		// only disguise.
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError {
			return "", errors.New("has characters that cannot be printed")
		}
	}
	return s, nil
}

// checkMetadata bounds metadata and keeps out U+0000, which Postgres cannot
// hold.
func checkMetadata(m map[string]any) error {
	b, err := json.Marshal(m)
	if err != nil {
		return errors.New("is not a JSON object")
	}
	if len(b) > maxMetadata {
		return errors.New("is larger than 16 KiB")
	}
	if strings.Contains(strings.ReplaceAll(string(b), `\\`, ""), `\u0000`) {
		return errors.New("has a null character")
	}
	return nil
}

// checkPassword applies the password policy.
func (a *Auth) checkPassword(ctx context.Context, password string, about ...string) error {
	reasons, err := a.passwords.check(ctx, password, about...)
	switch {
	case err != nil:
		return hashFailed(err)
	case len(reasons) > 0:
		return weak(reasons)
	}
	return nil
}

// hashFailed passes typed errors on; what else stops a hash is the caller having
// gone.
func hashFailed(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return retryAfter(CodeUnavailable, time.Second, err)
}
