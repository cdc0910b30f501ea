package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
	"github.com/skip2/go-qrcode"
)

// The parameters that authenticator apps agree on (RFC 6238, section 4).
const (
	totpPeriod  = 30 // seconds
	totpSkew    = 1  // steps either way
	totpSecret  = 20 // bytes, as RFC 4226 asks
	recoveryN   = 10
	recoveryLen = 10 // characters of 5 bits
	mfaLife     = 5 * time.Minute
)

const (
	methodTOTP     = "totp"
	methodRecovery = "recovery_code"
)

// Factors that CodeMFARequired names.
var factorNames = []string{methodTOTP, methodRecovery}

// mfaRequired tells whether a user has to have a second factor.
func (a *Auth) mfaRequired(u User) bool {
	own, _ := u.AppMetadata["mfa_required"].(bool)
	return own || a.cfg.mfaRequired || (a.cfg.mfaRequiredFor != nil && a.cfg.mfaRequiredFor(u))
}

// totpOff tells that second factors cannot be set up.
func (a *Auth) totpOff() bool { return a.factors == nil || a.cfg.settings.TOTPDisabled }

// secondFactor is the part of completeSignIn that decides between a session and
// a question: it answers the further proof and the level that was reached.
func (a *Auth) secondFactor(ctx context.Context, s signIn) (proofs []AMR, aal string, err error) {
	switch {
	case s.second:
		return s.amr, LevelAAL2, nil
	case s.user.MFAEnabled && s.totp == "":
		return nil, "", a.ask(ctx, CodeMFARequired, PurposeMFA, s)
	case s.user.MFAEnabled:
		second, err := a.judgeFactor(ctx, s.user.ID, factorCode{totp: s.totp})
		return append(s.amr, second.proof), LevelAAL2, err
	case a.mfaRequired(s.user):
		return nil, "", a.ask(ctx, CodeMFAEnrollmentRequired, PurposeEnroll, s)
	}
	return s.amr, LevelAAL1, nil
}

// ask stops a sign-in with a token that carries the proof already given on to
// /2fa/verify or to the enrolment.
func (a *Auth) ask(ctx context.Context, c Code, p Purpose, s signIn) error {
	secret, t := a.newLink(p, mfaLife, linkData{AMR: s.amr, By: s.by})
	t.UserID = s.user.ID
	if err := a.store.PutToken(ctx, t); err != nil {
		return storeFailed(err)
	}
	e := fail(c, nil)
	e.MFAToken, e.ExpiresIn = secret, int(mfaLife/time.Second)
	if c == CodeMFARequired {
		e.Factors = factorNames
	}
	return e
}

// factorCode is what somebody offers as second factor; one of the two.
type factorCode struct{ totp, recovery string }

// shown is a second factor that was right.
type shown struct {
	proof AMR
	left  *int // recovery codes that are left, after one was used
}

// judgeFactor judges a second factor, at whichever door. Every try draws from
// one bucket of the user before it is judged, and only a right one is given
// back, so that of parallel guesses no more than the cap are judged. A TOTP code
// is good once, and never older than the newest one used (RFC 6238, 5.2).
// Errors: CodeInvalidTOTPCode, CodeRateLimited.
func (a *Auth) judgeFactor(ctx context.Context, userID string, c factorCode, more ...Draw) (shown, error) {
	draw := a.draw(a.cfg.limits.FactorPerUser, "factor", userID, 1)
	if _, err := a.take(ctx, append(more, draw)...); err != nil {
		return shown{}, err
	}
	proof, err := a.useFactor(ctx, userID, c)
	if err != nil {
		if errors.Is(err, CodeInvalidTOTPCode) {
			a.emit(ctx, Event{Type: EventSignInFailed, UserID: userID, Method: methodTOTP, Err: err})
		}
		return shown{}, err
	}
	draw.Cost = -1
	if _, err := a.take(ctx, draw); err != nil {
		return shown{}, err
	}
	return proof, nil
}

func (a *Auth) useFactor(ctx context.Context, userID string, c factorCode) (shown, error) {
	if a.factors == nil {
		return shown{}, fail(CodeInvalidTOTPCode, nil)
	}
	now := a.now()
	if c.recovery != "" {
		left, err := a.useRecoveryCode(ctx, userID, c.recovery)
		if err != nil {
			return shown{}, factorFailed(err)
		}
		a.emit(ctx, Event{Type: EventRecoveryCodeUsed, UserID: userID, Left: left})
		return shown{AMR{Method: methodRecovery, Timestamp: now.Unix()}, &left}, nil
	}
	f, err := a.factors.Factor(ctx, userID)
	if err != nil {
		return shown{}, factorFailed(err)
	}
	step, ok, err := a.matchTOTP(f, c.totp, now)
	if err != nil {
		return shown{}, err
	}
	if !ok || !f.Enabled {
		return shown{}, fail(CodeInvalidTOTPCode, nil)
	}
	if err := a.factors.UseTOTPStep(ctx, userID, step); err != nil {
		return shown{}, factorFailed(err)
	}
	return shown{AMR{Method: methodTOTP, Timestamp: now.Unix()}, nil}, nil
}

// useRecoveryCode uses a code up, also one that was made under a previous secret.
func (a *Auth) useRecoveryCode(ctx context.Context, userID, code string) (left int, err error) {
	for _, key := range a.keys.recovery {
		left, err = a.factors.UseRecoveryCode(ctx, userID, recoveryHash(key, userID, code))
		if !errors.Is(err, ErrNotFound) {
			break
		}
	}
	return left, err
}

// factorFailed makes absent, used and outdated the same error.
func factorFailed(err error) error {
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrStale) {
		return fail(CodeInvalidTOTPCode, err)
	}
	return storeFailed(err)
}

// matchTOTP finds the time step that a code belongs to. A secret that cannot be
// opened is an error, which is logged: no code is right then, and whoever runs
// the service has to know why.
func (a *Auth) matchTOTP(f Factor, code string, now time.Time) (step int64, ok bool, err error) {
	secret, err := a.keys.open(f.Secret, f.UserID)
	if err != nil {
		return 0, false, fail(CodeInternal, fmt.Errorf("the second factor of user %s: %w", f.UserID, err))
	}
	encoded := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret)
	current := now.Unix() / totpPeriod
	for s := current - totpSkew; s <= current+totpSkew; s++ {
		want, err := hotp.GenerateCodeCustom(encoded, uint64(s), hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1}) //nolint:gosec // after 1970
		if err == nil && subtle.ConstantTimeCompare([]byte(want), []byte(strings.ReplaceAll(code, " ", ""))) == 1 {
			step, ok = s, true
		}
	}
	return step, ok, nil
}

// recoveryAlphabet has 32 characters that are hard to confuse.
const recoveryAlphabet = "abcdefghjkmnpqrstuvwxyz023456789"

// newRecoveryCodes makes codes of 50 bits each, in readable groups, and what is
// stored of them.
func (a *Auth) newRecoveryCodes(userID string) (codes []string, hashes [][]byte) {
	for range recoveryN {
		b := make([]byte, recoveryLen)
		_, _ = rand.Read(b) // never fails (crypto/rand)
		for i := range b {
			b[i] = recoveryAlphabet[b[i]&31]
		}
		code := string(b[:recoveryLen/2]) + "-" + string(b[recoveryLen/2:])
		codes = append(codes, code)
		hashes = append(hashes, recoveryHash(a.keys.recovery[0], userID, code))
	}
	return codes, hashes
}

// TOTPSetup is what an authenticator app needs to know.
type TOTPSetup struct {
	Secret string `json:"secret"`  // base32
	URI    string `json:"uri"`     // otpauth://
	QRCode string `json:"qr_code"` // PNG of the URI, as data URI

	png []byte
}

// SetupTOTP begins the enrolment of a second factor; repeating it replaces the
// pending secret. Errors: CodeMFAAlreadyEnabled, CodeMethodDisabled.
func (a *Auth) SetupTOTP(ctx context.Context, u User) (*TOTPSetup, error) {
	if a.totpOff() {
		return nil, fail(CodeMethodDisabled, nil)
	}
	secret := make([]byte, totpSecret)
	_, _ = rand.Read(secret) // never fails (crypto/rand)
	err := a.factors.PutFactor(ctx, u.ID, a.keys.seal(secret, u.ID), a.now())
	switch {
	case errors.Is(err, ErrConflict):
		return nil, fail(CodeMFAAlreadyEnabled, err)
	case errors.Is(err, ErrNotFound):
		return nil, fail(CodeSessionEnded, err)
	case err != nil:
		return nil, storeFailed(err)
	}
	s := &TOTPSetup{Secret: base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret)}
	account := u.Email
	if account == "" {
		account = u.Phone
	}
	app := printable(a.cfg.mail.AppName)
	s.URI = "otpauth://totp/" + url.PathEscape(app+":"+account) + "?" + strings.ReplaceAll(url.Values{
		"secret": {s.Secret}, "issuer": {app}, "algorithm": {"SHA1"}, "digits": {"6"}, "period": {fmt.Sprint(totpPeriod)},
	}.Encode(), "+", "%20") // apps read the plus sign as itself
	if s.png, err = qrcode.Encode(s.URI, qrcode.Medium, 256); err != nil {
		return nil, fail(CodeInternal, fmt.Errorf("QR code: %w", err))
	}
	s.QRCode = "data:image/png;base64," + base64.StdEncoding.EncodeToString(s.png)
	return s, nil
}

// EnableTOTP ends the enrolment with a first code. The session named rises to
// AAL2, or with an enrolment token a new one is made; every other session of the
// user ends. It answers the recovery codes, once. Errors: CodeInvalidTOTPCode,
// CodeMFANotPending, CodeMFAAlreadyEnabled, CodeRateLimited.
func (a *Auth) EnableTOTP(ctx context.Context, u User, s Session, code string) ([]string, *Tokens, error) {
	if a.totpOff() {
		return nil, nil, fail(CodeMethodDisabled, nil)
	}
	f, err := a.factors.Factor(ctx, u.ID)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, nil, fail(CodeMFANotPending, err)
	case err != nil:
		return nil, nil, storeFailed(err)
	case f.Enabled:
		return nil, nil, fail(CodeMFAAlreadyEnabled, nil)
	}
	draw := a.draw(a.cfg.limits.FactorPerUser, "factor", u.ID, 1)
	if _, err := a.take(ctx, draw); err != nil {
		return nil, nil, err
	}
	now := a.now()
	step, ok, err := a.matchTOTP(f, code, now)
	if err != nil {
		return nil, nil, err
	}
	if !ok {
		return nil, nil, fail(CodeInvalidTOTPCode, nil)
	}
	codes, hashes := a.newRecoveryCodes(u.ID)
	s.AAL = LevelAAL2
	s.AMR = append(append([]AMR{}, s.AMR...), AMR{Method: methodTOTP, Timestamp: now.Unix()})
	u, err = a.factors.EnableFactor(ctx, EnableFactor{UserID: u.ID, Secret: f.Secret, Step: step, Recovery: hashes, Session: s, Now: now})
	switch {
	case errors.Is(err, ErrStale), errors.Is(err, ErrNotFound):
		return nil, nil, fail(CodeMFANotPending, err)
	case errors.Is(err, ErrConflict):
		return nil, nil, fail(CodeMFAAlreadyEnabled, err)
	case err != nil:
		return nil, nil, storeFailed(err)
	}
	tokens, err := a.mint(ctx, u, s)
	if err != nil {
		return nil, nil, err
	}
	draw.Cost = -1
	_, _ = a.take(ctx, draw) // a bonus: the factor is on
	a.sendMail(ctx, outgoing{Kind: KindMFAEnabled, To: u.Email, Name: u.FullName}, u)
	a.emit(ctx, Event{Type: EventMFAEnabled, UserID: u.ID, SessionID: s.ID})
	return codes, tokens, nil
}

// DisableTOTP removes the second factor; the caller has seen to the proof.
func (a *Auth) DisableTOTP(ctx context.Context, u User) error {
	if a.factors == nil {
		return fail(CodeMFANotEnabled, nil)
	}
	_, err := a.factors.RemoveFactor(ctx, u.ID, a.now())
	if errors.Is(err, ErrNotFound) {
		return fail(CodeMFANotEnabled, err)
	}
	if err != nil {
		return storeFailed(err)
	}
	a.sendMail(ctx, outgoing{Kind: KindMFADisabled, To: u.Email, Name: u.FullName}, u)
	a.emit(ctx, Event{Type: EventMFADisabled, UserID: u.ID})
	return nil
}

// VerifyMFA completes a sign-in that was answered CodeMFARequired. Errors:
// CodeInvalidToken, CodeInvalidTOTPCode, CodeRateLimited (five tries a token).
func (a *Auth) VerifyMFA(ctx context.Context, mfaToken, totpCode, recoveryCode string) (*Tokens, error) {
	t, d, err := a.peek(ctx, PurposeMFA, mfaToken)
	if err != nil {
		return nil, err
	}
	perToken := a.draw(Rate{Burst: maxCodeTries, Per: mfaLife}, "mfa-token", string(t.Hash), 1)
	if a.cfg.limits.Off {
		perToken = Draw{}
	}
	second, err := a.judgeFactor(ctx, t.UserID, factorCode{totpCode, recoveryCode}, perToken)
	if err != nil {
		return nil, err
	}
	_, u, err := a.store.RedeemToken(ctx, Redemption{Purpose: PurposeMFA, Hash: t.Hash, Now: a.now()})
	if err != nil {
		return nil, linkFailed(err)
	}
	tokens, err := a.completeSignIn(ctx, signIn{user: u, by: d.By, amr: append(d.AMR, second.proof), second: true, gone: CodeInvalidToken})
	if err == nil {
		tokens.RecoveryCodesLeft = second.left
	}
	return tokens, err
}

// StepUp raises a session to AAL2 with a second factor. Errors:
// CodeMFANotEnabled, CodeInvalidTOTPCode, CodeRateLimited.
func (a *Auth) StepUp(ctx context.Context, u User, s Session, totpCode, recoveryCode string) (*Tokens, error) {
	if !u.MFAEnabled {
		return nil, fail(CodeMFANotEnabled, nil)
	}
	second, err := a.judgeFactor(ctx, u.ID, factorCode{totpCode, recoveryCode})
	if err != nil {
		return nil, err
	}
	raised, u, err := a.factors.RaiseSession(ctx, s.ID, second.proof, a.now())
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrSessionEnded) {
		return nil, fail(CodeSessionEnded, err)
	}
	if err != nil {
		return nil, storeFailed(err)
	}
	tokens, err := a.mint(ctx, u, raised)
	if err == nil {
		tokens.RecoveryCodesLeft = second.left
	}
	return tokens, err
}

// NewRecoveryCodes replaces the recovery codes. Errors: CodeMFANotEnabled.
func (a *Auth) NewRecoveryCodes(ctx context.Context, userID string) ([]string, error) {
	if a.factors == nil {
		return nil, fail(CodeMFANotEnabled, nil)
	}
	codes, hashes := a.newRecoveryCodes(userID)
	err := a.factors.PutRecoveryCodes(ctx, userID, hashes)
	if errors.Is(err, ErrNotFound) {
		return nil, fail(CodeMFANotEnabled, err)
	}
	if err != nil {
		return nil, storeFailed(err)
	}
	a.emit(ctx, Event{Type: EventRecoveryCodesReplaced, UserID: userID})
	return codes, nil
}
