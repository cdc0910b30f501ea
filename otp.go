package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// PhoneOptions are the settings of phone codes.
type PhoneOptions struct {
	CodeLength int           // digits; default 6, from 6 to 10
	Life       time.Duration // of a code; default 5 min, at most 10 (NIST SP 800-63B-4)
	Allow      []string      // country prefixes that may be sent to, such as "+49"; none: all
	Deny       []string      // prefixes that may not, whatever Allow says
}

// maxCodeTries is how many wrong guesses a code survives.
const maxCodeTries = 5

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

var e164 = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)

// NormalizePhone brings a number to E.164. Spaces, hyphens, dots, slashes and
// parentheses are left out; the country code has to be there.
func NormalizePhone(phone string) (string, error) {
	phone = strings.Map(func(r rune) rune {
		if strings.ContainsRune(" -./()\u00a0", r) {
			return -1
		}
		return r
	}, strings.TrimSpace(phone))
	if !e164.MatchString(phone) {
		return "", errors.New("is not a phone number with country code, such as +4930123456")
	}
	return phone, nil
}

// requiredPhone is NormalizePhone for a field that must be there, under the
// lists of prefixes.
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

// phoneOff tells that codes cannot be sent.
func (a *Auth) phoneOff() bool { return a.cfg.sms == nil || a.cfg.settings.PhoneDisabled }

// SendPhoneCode sends a code to sign in with. The answer is the same whether or
// not there is an account; without one, the code creates it when it is used,
// unless noCreate is set or sign-up is switched off. Errors: CodeMethodDisabled,
// CodeValidationFailed, CodeRateLimited (also when the budget is spent).
func (a *Auth) SendPhoneCode(ctx context.Context, phone string, noCreate bool) error {
	if a.phoneOff() {
		return fail(CodeMethodDisabled, nil)
	}
	phone, err := a.requiredPhone(phone)
	if err != nil {
		return invalid("phone", err.Error())
	}
	if err := a.takeSMS(ctx, phone); err != nil {
		return err
	}
	u, err := a.store.User(ctx, ByPhone(phone))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return storeFailed(err)
	}
	create := !noCreate && !a.cfg.settings.SignupDisabled
	to := u.Phone
	if to == "" && create {
		to = phone
	}
	code, t := a.newPhoneCode(PurposePhoneCode, phone, linkData{CreateUser: create})
	t.UserID = u.ID
	if err := a.store.PutToken(ctx, t); err != nil && !errors.Is(err, ErrNotFound) {
		return storeFailed(err)
	}
	a.sendSMS(ctx, to, code, u)
	return nil
}

// takeSMS draws for a text message: like any send, and from the budget that
// bounds what fraud can cost.
func (a *Auth) takeSMS(ctx context.Context, phone string) error {
	if err := a.takeSend(ctx, KindPhoneCode, phone); err != nil {
		return err
	}
	_, err := a.take(ctx, a.draw(a.cfg.limits.SMSBudget, "sms-budget", "", 1))
	if errors.Is(err, CodeRateLimited) {
		a.emit(ctx, Event{Type: EventSMSBudgetExceeded})
	}
	return err
}

// newPhoneCode makes a code and the token that judges it. Only a MAC is kept: a
// code alone could be found by trying all of them.
func (a *Auth) newPhoneCode(p Purpose, subject string, d linkData) (code string, t Token) {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(a.cfg.phone.CodeLength)), nil)
	n, err := rand.Int(rand.Reader, limit)
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	code = fmt.Sprintf("%0*d", a.cfg.phone.CodeLength, n)
	data, err := json.Marshal(d)
	if err != nil {
		panic(err) // strings only
	}
	now := a.now()
	return code, Token{
		Purpose: p, Subject: subject, Hash: a.phoneCodeHash(p, subject, code), Data: data,
		CreatedAt: now, ExpiresAt: now.Add(a.cfg.phone.Life), MaxTries: maxCodeTries,
	}
}

func (a *Auth) phoneCodeHash(p Purpose, subject, code string) []byte {
	h := hmac.New(sha256.New, a.keys.codes)
	h.Write([]byte(string(p) + "\x00" + subject + "\x00" + code))
	return h.Sum(nil)
}

func (a *Auth) sendSMS(ctx context.Context, to, code string, u User) {
	a.sendMail(ctx, outgoing{Kind: KindPhoneCode, Channel: ChannelSMS, To: to, Code: code, ExpiresIn: a.cfg.phone.Life}, u)
}

// tryCode judges a guess under the cap on wrong ones, which sending again does
// not reset. Errors: CodeInvalidCode, CodeRateLimited when the code is dead.
func (a *Auth) tryCode(ctx context.Context, p Purpose, subject, code string) (linkData, User, error) {
	var d linkData
	wrong := func(cost int) error {
		_, err := a.take(ctx, a.draw(a.cfg.limits.CodesPerPhone, "code", subject, cost))
		return err
	}
	if err := wrong(0); err != nil {
		return d, User{}, err
	}
	t, u, err := a.store.TryCode(ctx, p, subject, a.phoneCodeHash(p, subject, code), a.now())
	switch {
	case errors.Is(err, ErrWrongCode):
		if err := wrong(1); err != nil {
			return d, User{}, err
		}
		return d, User{}, fail(CodeInvalidCode, err)
	case errors.Is(err, ErrNotFound):
		return d, User{}, fail(CodeInvalidCode, err)
	case errors.Is(err, ErrTooManyTries):
		return d, User{}, retryAfter(CodeRateLimited, a.cfg.limits.SendGap.Per, err)
	case err != nil:
		return d, User{}, storeFailed(err)
	}
	if err := json.Unmarshal(t.Data, &d); err != nil {
		return d, User{}, fail(CodeInternal, err)
	}
	return d, u, nil
}

// VerifyPhoneCode signs in with a code, and creates the account at its first
// use. Wrong, used and expired codes and unknown numbers are the same error,
// CodeInvalidCode; after five wrong guesses the code is dead, CodeRateLimited.
// Also CodeUserBanned, CodeValidationFailed, CodeMethodDisabled.
func (a *Auth) VerifyPhoneCode(ctx context.Context, phone, code, totpCode string) (*Tokens, error) {
	if a.phoneOff() {
		return nil, fail(CodeMethodDisabled, nil)
	}
	phone, err := a.requiredPhone(phone)
	if err != nil {
		return nil, invalid("phone", err.Error())
	}
	if code == "" {
		return nil, invalid("otp", "is required")
	}
	d, u, err := a.tryCode(ctx, PurposePhoneCode, phone, code)
	if err != nil {
		return nil, err
	}
	if u.Phone != phone || !u.PhoneVerified { // else it is the number's owner already
		if u, err = a.phoneUser(ctx, phone, d); err != nil {
			return nil, err
		}
	}
	return a.completeSignIn(ctx, signIn{user: u, by: provenBy{Phone: phone}, amr: a.proof(methodPhoneCode), totp: totpCode, gone: CodeInvalidCode})
}

// phoneUser is the account of a number that was just proved: the one there is,
// or a new one. As with magic links, holding the number outranks the password, the
// address and the sessions that were set up before it was proved, unless the
// code is the one that the sign-up itself sent.
func (a *Auth) phoneUser(ctx context.Context, phone string, d linkData) (User, error) {
	for range attempts {
		u, err := a.store.User(ctx, ByPhone(phone))
		switch {
		case errors.Is(err, ErrNotFound):
			u, err = a.createByPhone(ctx, phone, d)
			if errors.Is(err, ErrConflict) {
				continue // signed up meanwhile
			}
			return u, err
		case err != nil:
			return u, storeFailed(err)
		case u.PhoneVerified || u.Banned(a.now()):
			return u, nil
		}
		yes, no, none := true, false, ""
		patch := UserPatch{IfRevision: &u.Revision, PhoneVerified: &yes}
		takenOver := d.Verifies != u.ID
		if takenOver {
			patch.PasswordHash, patch.Email, patch.EmailVerified, patch.Revoke = &none, &none, &no, &SessionFilter{}
			patch.DropTokens, patch.RemoveFactor = slices.Concat(pendingSignIns, pendingChanges), !u.MFAEnabled
			patch.DropIdentities = true
		}
		u, err = a.store.UpdateUser(ctx, u.ID, patch, a.now())
		if errors.Is(err, ErrStale) {
			continue
		}
		if err != nil {
			return u, storeFailed(err)
		}
		if takenOver {
			a.emit(ctx, Event{Type: EventPasswordRemoved, UserID: u.ID})
		}
		a.emit(ctx, Event{Type: EventPhoneVerified, UserID: u.ID})
		return u, nil
	}
	return User{}, retryAfter(CodeUnavailable, time.Second, ErrStale)
}

func (a *Auth) createByPhone(ctx context.Context, phone string, d linkData) (User, error) {
	if !d.CreateUser || a.cfg.settings.SignupDisabled {
		return User{}, fail(CodeInvalidCode, errors.New("no such account"))
	}
	if err := a.beforeSignUp(ctx, SignUpAttempt{Phone: phone, Method: methodPhoneCode}); err != nil {
		return User{}, err
	}
	now := a.now()
	u, err := a.store.CreateUser(ctx, NewUser{Creating: a.creating(), User: User{
		ID: a.newID(), Phone: phone, PhoneVerified: true, UserMetadata: map[string]any{}, CreatedAt: now, UpdatedAt: now,
	}})
	if errors.Is(err, ErrConflict) {
		return u, err
	}
	if err != nil {
		return u, storeFailed(err)
	}
	a.emit(ctx, Event{Type: EventSignedUp, UserID: u.ID, Method: methodPhoneCode})
	return u, nil
}

// startPhoneChange sends a code that makes phone the user's number. A number
// that is taken gets none; the answer is the same.
func (a *Auth) startPhoneChange(ctx context.Context, u User, phone string) error {
	_, err := a.store.User(ctx, ByPhone(phone))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return storeFailed(err)
	}
	to := phone
	if err == nil {
		to = ""
	}
	code, t := a.newPhoneCode(PurposePhoneChange, u.ID+" "+phone, linkData{})
	t.UserID = u.ID
	if err := a.store.PutToken(ctx, t); err != nil {
		return linkFailed(err)
	}
	a.sendSMS(ctx, to, code, u)
	return nil
}

// ConfirmPhone makes a number the user's own with the code that UpdateMe had
// sent to it. Errors: CodeInvalidCode, CodeRateLimited, CodeUserAlreadyExists if
// the number was taken meanwhile.
func (a *Auth) ConfirmPhone(ctx context.Context, userID, phone, code string) (User, error) {
	if a.phoneOff() {
		return User{}, fail(CodeMethodDisabled, nil)
	}
	phone, err := a.requiredPhone(phone)
	if err != nil {
		return User{}, invalid("phone", err.Error())
	}
	if _, _, err := a.tryCode(ctx, PurposePhoneChange, userID+" "+phone, code); err != nil {
		return User{}, err
	}
	yes := true
	u, err := a.store.UpdateUser(ctx, userID, UserPatch{Phone: &phone, PhoneVerified: &yes}, a.now())
	switch {
	case errors.Is(err, ErrConflict):
		return u, fail(CodeUserAlreadyExists, err)
	case errors.Is(err, ErrNotFound):
		return u, fail(CodeInvalidCode, err)
	case err != nil:
		return u, storeFailed(err)
	}
	a.emit(ctx, Event{Type: EventPhoneVerified, UserID: u.ID})
	return u, nil
}

func (a *Auth) handleOTPSend(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Phone      string `json:"phone"`
		CreateUser *bool  `json:"create_user"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if err := a.SendPhoneCode(r.Context(), p.Phone, p.CreateUser != nil && !*p.CreateUser); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// handleOTPVerify signs in; with a bearer token it confirms a new number, and
// answers the session that asked for it.
func (a *Auth) handleOTPVerify(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Phone string `json:"phone"`
		OTP   string `json:"otp"`
		TOTP  string `json:"totp_code"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	ctx := r.Context()
	claims, err := a.authenticate(r)
	if errors.Is(err, CodeMissingToken) {
		tokens, err := a.VerifyPhoneCode(ctx, p.Phone, p.OTP, p.TOTP)
		if err != nil {
			return err
		}
		return a.writeTokens(w, tokens)
	}
	if err != nil {
		return err
	}
	s, _, err := a.Current(ctx, claims)
	if err != nil {
		return err
	}
	u, err := a.ConfirmPhone(ctx, claims.UserID, p.Phone, p.OTP)
	if err != nil {
		return err
	}
	tokens, err := a.mint(ctx, u, s)
	if err != nil {
		return err
	}
	return a.writeTokens(w, tokens)
}
