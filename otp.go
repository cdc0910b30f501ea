package auth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/authmount/auth/internal/address"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// PhoneOptions are the settings of phone codes.
type PhoneOptions struct {
	CodeLength int           // digits; default 6, from 6 to 10
	Life       time.Duration // of a code; default 5 min, at most 10 (NIST SP 800-63B-4)
	Allow      []string      // permitted country prefixes, such as "+49"; none: all
	Deny       []string      // refused prefixes, even if they are in Allow

	// Possible, if set, judges the phone numbers, in E.164, that a sign-up, an operator or a
	// change of the profile adds to an account. It never judges one that signs in or is
	// imported. An unknown number that is not possible gets no code, and the same answer.
	// Package phonecheck has one that knows the numbering plans.
	Possible func(phone string) bool
}

func (o *PhoneOptions) check() error {
	if o.CodeLength == 0 {
		o.CodeLength = 6
	}
	if o.Life == 0 {
		o.Life = 5 * time.Minute
	}
	switch {
	case o.CodeLength < 6 || o.CodeLength > 10:
		return errors.New("WithPhone: a code has 6 to 10 digits")
	case o.Life < time.Minute || o.Life > 10*time.Minute:
		return errors.New("WithPhone: a code lives 1 to 10 minutes (NIST SP 800-63B-4)")
	}
	for _, p := range append(append([]string{}, o.Allow...), o.Deny...) {
		if !regexp.MustCompile(`^\+[1-9][0-9]{0,14}$`).MatchString(p) {
			return fmt.Errorf("WithPhone: %q is not a prefix like +49", p)
		}
	}
	return nil
}

// NormalizePhone returns a phone number in E.164, the one form in which accounts are found.
// It removes spaces, invisible marks, hyphens, dots, slashes and parentheses, reads digits
// of any script, and drops a zero in parentheses after the country code, which is required.
func NormalizePhone(phone string) (string, error) { return address.NormalizePhone(phone) }

// requiredPhone is NormalizePhone for a required field, with the lists of prefixes.
func (a *Auth) requiredPhone(s string) (string, error) {
	if s == "" {
		return "", errors.New("is required")
	}
	phone, err := NormalizePhone(s)
	if err != nil {
		return "", err
	}
	begins := func(prefixes []string) bool {
		for _, p := range prefixes {
			if strings.HasPrefix(phone, p) {
				return true
			}
		}
		return false
	}
	if begins(a.cfg.phone.Deny) || (len(a.cfg.phone.Allow) > 0 && !begins(a.cfg.phone.Allow)) {
		return "", errors.New("is in a country that is not served")
	}
	return phone, nil
}

// addedPhone is requiredPhone for a number that is added to an account, which has the
// present number or none.
func (a *Auth) addedPhone(s, present string) (string, error) {
	phone, err := a.requiredPhone(s)
	if err == nil && phone != present {
		err = a.checkPossible(phone)
	}
	return phone, err
}

// checkPossible refuses a number in E.164 that PhoneOptions.Possible refuses.
func (a *Auth) checkPossible(phone string) error {
	if possible := a.cfg.phone.Possible; possible != nil && !possible(phone) {
		return errors.New("is not a possible phone number")
	}
	return nil
}

// phoneOn reports whether codes can be sent.
func (a *Auth) phoneOn(ctx context.Context) bool {
	return a.cfg.sms != nil && a.Settings(ctx).Phone.On()
}

// SendPhoneCodeParams are the parameters of SendPhoneCode.
type SendPhoneCodeParams struct {
	Phone    string
	NoCreate bool // do not create an account for an unknown number
}

// SentCode describes a requested code, by text or mail.
type SentCode struct {
	RequestID string `json:"request_id"` // opaque; a client that sends it with the code has its own attempts
}

// SendPhoneCode sends a code to sign in with. The response is the same whether or not
// there is an account. Without one, the code creates it when it is used, unless
// NoCreate is set or sign-up is off. Errors: CodeMethodDisabled, CodeValidationFailed,
// CodeRateLimited (also if SMSBudget is used up). If only the part of it that is open to
// unverified phone numbers is used up, they get the same response and no text.
func (a *Auth) SendPhoneCode(ctx context.Context, p SendPhoneCodeParams) (SentCode, error) {
	if !a.phoneOn(ctx) {
		return SentCode{}, fail(CodeMethodDisabled, nil)
	}
	phone, err := a.requiredPhone(p.Phone)
	if err != nil {
		return SentCode{}, invalid("phone", err.Error())
	}
	c, err := a.store.Credentials(ctx, onThisDevice(ctx, store.ByPhone(phone)))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return SentCode{}, storeFailed(err)
	}
	u, source := c.User, atOwners
	if u.PhoneVerified() && deviceOf(ctx, c) != "" {
		source = atKnownDevice
	}
	if err := a.takeSMS(ctx, source, phone); err != nil {
		return SentCode{}, err
	}
	create := !p.NoCreate && a.Settings(ctx).SignUp.On()
	to := u.Phone
	if to == "" && create && a.checkPossible(phone) == nil {
		to = phone
	}
	allowed, err := a.spendSMS(ctx, to, u.PhoneVerified())
	if err != nil {
		return SentCode{}, err
	}
	code, t := a.newPhoneCode(store.PurposePhoneCode, phone)
	t.UserID = u.ID
	err = a.sendCode(ctx, byFlow("send"), t, a.phoneMessage(allowed, allowed.to, code), u)
	if err != nil && !errors.Is(err, CodeInvalidToken) { // the user was deleted since the look-up
		return SentCode{}, err
	}
	return SentCode{RequestID: a.keys.RequestID(phone, t.ExpiresAt)}, nil
}

// newPhoneCode creates a code for a phone number and its token. The token has only a
// MAC of the code, because a plain hash could be reversed by trying all codes.
func (a *Auth) newPhoneCode(p store.Purpose, subject string) (code string, t store.Token) {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(a.cfg.phone.CodeLength)), nil)
	n, _ := rand.Int(rand.Reader, limit) // crypto/rand never fails
	code = fmt.Sprintf("%0*d", a.cfg.phone.CodeLength, n)
	now := a.now()
	return code, store.Token{
		Purpose: p, Subject: subject, Hash: a.phoneCodeHash(p, subject, code),
		CreatedAt: now, ExpiresAt: now.Add(a.cfg.phone.Life), MaxAttempts: maxSharedCodeAttempts,
	}
}

// sendCode is mailToken for a code. A new code has new attempts, within the limits of
// its phone number. No attempt matches a decoy.
func (a *Auth) sendCode(ctx context.Context, by Authority, t store.Token, o outbox.Outgoing, u User) error {
	if o.To == "" {
		_, t.Hash = newLinkToken()
	}
	err := a.mailToken(ctx, by, t, o, u)
	if err == nil {
		a.refillCode(ctx, t.Purpose, t.Subject)
	}
	return err
}

func (a *Auth) phoneCodeHash(p store.Purpose, subject, code string) []byte {
	return a.keys.PhoneCode(string(p), subject, code)[0]
}

// VerifyPhoneCodeParams are the parameters of VerifyPhoneCode.
type VerifyPhoneCodeParams struct {
	Phone    string
	Code     string
	TOTPCode string // of a user with a second factor; VerifyMFA accepts it later, too

	TrustDevice bool // with TOTPCode: as VerifyMFAParams.TrustDevice

	RequestID string // of SentCode; without it, other clients' wrong attempts at the number count, too
}

// VerifyPhoneCode signs a user in with a code, and creates the account at the first
// use. Wrong, used and expired codes and unknown numbers are the same error,
// CodeInvalidCode. After five of them the client's code is invalid, CodeRateLimited.
// Other errors: CodeUserBanned, CodeValidationFailed, CodeMethodDisabled,
// CodeMFARequired, CodeMFAEnrollmentRequired, CodeInvalidTOTPCode.
func (a *Auth) VerifyPhoneCode(ctx context.Context, p VerifyPhoneCodeParams) (*Tokens, error) {
	phone, err := a.checkPhoneCode(ctx, p.Phone, p.Code)
	if err != nil {
		return nil, err
	}
	u, err := a.useCode(ctx, store.PurposePhoneCode, phoneAttempt(phone, p.Code, p.RequestID), Caller{})
	if err != nil {
		return nil, err
	}
	a.unlockPassword(ctx, u, false)
	return a.completeSignIn(ctx, signIn{user: u, by: credentialRef{Phone: phone}, amr: a.newAMR(methodPhoneCode), code: factorCode{totp: p.TOTPCode}, trust: p.TrustDevice, gone: CodeInvalidCode})
}

func (a *Auth) checkPhoneCode(ctx context.Context, number, code string) (string, error) {
	if !a.phoneOn(ctx) {
		return "", fail(CodeMethodDisabled, nil)
	}
	phone, err := a.requiredPhone(number)
	if err != nil {
		return "", invalid("phone", err.Error())
	}
	if code == "" {
		return "", invalid("otp", "is required")
	}
	return phone, nil
}

// createByPhone returns the effect of a code for a number without an account.
func (a *Auth) createByPhone(ctx context.Context, in *accountPermit, phone string) (store.Redemption, error) {
	if !a.Settings(ctx).SignUp.On() {
		return store.Redemption{}, fail(CodeInvalidCode, errors.New("no such account"))
	}
	if err := a.allowAccount(ctx, in, SignUpAttempt{Phone: phone, Method: methodPhoneCode}); err != nil {
		return store.Redemption{}, err
	}
	now := a.now()
	u := User{ID: a.newID(), Phone: phone, PhoneVerifiedAt: now, UserMetadata: map[string]any{}, CreatedAt: now, UpdatedAt: now}
	c := a.newChange(ctx, byAuthentication(), done(Event{Type: EventSignedUp, UserID: u.ID, Method: methodPhoneCode}))
	nu := a.newUser(ctx, *in, u)
	return store.Redemption{Change: c, Effect: store.Effect{Create: &nu}}, nil
}

// startPhoneChange sends a code that makes phone the user's number. A taken number gets
// no code; the response is the same.
func (a *Auth) startPhoneChange(ctx context.Context, by Caller, u User, phone string) error {
	_, err := a.store.User(ctx, store.ByPhone(phone))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return storeFailed(err)
	}
	to := phone
	if err == nil && phone != u.Phone {
		to = ""
	}
	allowed, err := a.spendSMS(ctx, to, phone == u.Phone && u.PhoneVerified())
	if err != nil {
		return err
	}
	purpose, subject := phoneVerification(by, u, phone)
	code, t := a.newPhoneCode(purpose, subject)
	t.UserID = u.ID
	return a.sendCode(ctx, by.authority(), t, a.phoneMessage(allowed, allowed.to, code), u)
}

// phoneVerification returns the purpose and the subject of the code that verifies the
// user's number within a session. For the number of an unverified sign-up, that is a
// sign-in code. Otherwise it is a code of the session, which no other request replaces,
// and which is revoked with the session.
func phoneVerification(by Caller, u User, phone string) (p store.Purpose, subject string) {
	if phone == u.Phone && !u.PhoneVerified() {
		return store.PurposePhoneCode, phone
	}
	return store.PurposePhoneChange, u.ID + " " + by.SessionID + " " + phone
}

// ConfirmPhoneParams are the parameters of ConfirmPhone.
type ConfirmPhoneParams struct {
	Caller
	Phone     string
	Code      string
	RequestID string // of SentCode, if SendPhoneCode sent the code
}

// ConfirmPhone verifies a phone number within a session: a new one with the code that
// UpdateMe sent, or the number of the sign-up with the sign-up's code. Errors:
// CodeInvalidCode, CodeRateLimited, CodeUserAlreadyExists if the number was taken
// meanwhile, CodeEmailNotVerified, CodeSessionEnded, CodeUserBanned,
// CodeMethodDisabled, CodeValidationFailed, CodeTargetStronger (the account waits for an
// acceptance), CodeInsufficientAAL as of UpdateMe.
func (a *Auth) ConfirmPhone(ctx context.Context, p ConfirmPhoneParams) (User, error) {
	if err := p.notActing(); err != nil {
		return User{}, err
	}
	phone, err := a.checkPhoneCode(ctx, p.Phone, p.Code)
	if err != nil {
		return User{}, err
	}
	return change(func() (User, error) {
		u, err := a.store.User(ctx, store.ByID(p.UserID))
		if err != nil {
			return u, goneOr(CodeSessionEnded, err)
		}
		if phone != u.Phone {
			if err = a.requireMove(ctx, u, p.Caller, false); err == nil && u.Email != "" { // a second identifier; the first may be unverified by now
				err = requireVerified(u)
			}
			if err != nil {
				return u, err
			}
		}
		now := a.now()
		patch := store.UserPatch{Phone: &phone, PhoneVerifiedAt: &now}
		c := a.newChangeOf(ctx, p.authority(), account{User: u, to: maskAddress(phone)}, done(Event{Type: EventPhoneVerified, UserID: u.ID}))
		c.IfUsers = []UserAt{ifCredentialsUnchanged(u)}
		t := store.CodeAttempt{Change: c, Effect: store.Effect{UserID: u.ID, Patch: &patch}}
		t.Purpose, t.Subject = phoneVerification(p.Caller, u, phone)
		u, err = a.tryCode(ctx, phoneAttempt(phone, p.Code, p.RequestID), t)
		if errors.Is(err, store.ErrConflict) {
			err = fail(CodeUserAlreadyExists, err)
		}
		return u, err
	})
}

func (a *Auth) handleOTPSend(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Phone      string `json:"phone"`
		CreateUser *bool  `json:"create_user"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	sent, err := a.SendPhoneCode(r.Context(), SendPhoneCodeParams{Phone: p.Phone, NoCreate: p.CreateUser != nil && !*p.CreateUser})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, sent)
}

// handleOTPVerify signs in. With a bearer token it verifies a new number instead, and
// returns the session.
func (a *Auth) handleOTPVerify(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Phone string `json:"phone"`
		OTP   string `json:"otp"`
		TOTP  string `json:"totp_code"`

		RequestID   string `json:"request_id"`
		TrustDevice bool   `json:"trust_device"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	ctx := r.Context()
	me, err := a.live(r)
	if errors.Is(err, CodeMissingToken) || a.staleCookie(r, err) {
		tokens, err := a.VerifyPhoneCode(ctx, VerifyPhoneCodeParams{Phone: p.Phone, Code: p.OTP, TOTPCode: p.TOTP, TrustDevice: p.TrustDevice, RequestID: p.RequestID})
		if err != nil {
			return err
		}
		return a.writeTokens(w, r, tokens)
	}
	if err != nil {
		return err
	}
	if err := a.mayContinue(ctx, me.user, me.caller(), CodeSessionEnded); err != nil {
		return err
	}
	u, err := a.ConfirmPhone(ctx, ConfirmPhoneParams{me.caller(), p.Phone, p.OTP, p.RequestID})
	if err != nil {
		return err
	}
	tokens, err := a.mint(ctx, u, me.session)
	if err != nil {
		return err
	}
	return a.writeTokens(w, r, tokens)
}
