package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"

	"github.com/authmount/auth/internal/token"
	"github.com/authmount/auth/store"
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
	methodTOTP     = token.MethodTOTP
	methodRecovery = token.MethodRecovery
)

// Factors that CodeMFARequired names.
var factorNames = []string{methodTOTP, methodRecovery}

// mfaRequired tells whether a user has to have a second factor.
func (a *Auth) mfaRequired(ctx context.Context, u User) bool {
	return a.mfaRequiredBy(a.Settings(ctx), u)
}

func (a *Auth) mfaRequiredBy(s Settings, u User) bool {
	own, _ := u.AppMetadata["mfa_required"].(bool)
	return own || s.MFARequired.On() || slices.ContainsFunc(u.Roles, func(role string) bool { return slices.Contains(s.MFARequiredFor, role) }) ||
		(a.cfg.mfa.RequiredFor != nil && a.cfg.mfa.RequiredFor(u))
}

// totpOn tells that second factors can be set up.
func (a *Auth) totpOn(ctx context.Context) bool {
	return a.factors != nil && a.Settings(ctx).TOTP.On()
}

// secondFactor is the part of completeSignIn that decides between a session and
// a question: it returns all proofs, the level that was reached, and whether the
// device stands in for what that lacks.
func (a *Auth) secondFactor(ctx context.Context, s signIn) (proofs []AMR, aal string, onTrusted bool, err error) {
	switch {
	case s.second:
		return s.amr, store.LevelAAL2, false, nil
	case s.user.MFAEnabled && s.totp == "":
		onTrusted, err := a.onTrustedDevice(ctx, s.user)
		if err == nil && !onTrusted {
			err = a.ask(ctx, CodeMFARequired, store.PurposeMFA, s)
		}
		return s.amr, store.LevelAAL1, onTrusted, err
	case s.user.MFAEnabled:
		second, err := a.judgeFactor(ctx, byProof(), s.user, factorCode{totp: s.totp})
		return withProof(s.amr, second.proof), store.LevelAAL2, false, err
	case a.mfaRequired(ctx, s.user):
		return nil, "", false, a.ask(ctx, CodeMFAEnrollmentRequired, store.PurposeEnroll, s)
	}
	return s.amr, store.LevelAAL1, false, nil
}

// ask stops a sign-in with a token that carries the proof already given on to
// /2fa/verify or to the enrolment.
func (a *Auth) ask(ctx context.Context, c Code, p store.Purpose, s signIn) error {
	secret, t := a.newLink(p, mfaLife, linkData{AMR: s.amr, By: s.by, Remember: s.remember})
	t.UserID = s.user.ID
	err := a.putToken(ctx, byProof(), t, credentialsStill(s.user))
	if errors.Is(err, store.ErrStale) || errors.Is(err, CodeInvalidToken) {
		return fail(s.gone, err)
	}
	if err != nil {
		return err
	}
	e := fail(c, nil)
	e.MFAToken, e.ExpiresIn = secret, int(mfaLife/time.Second)
	if c == CodeMFARequired {
		e.Factors = slices.Clone(factorNames)
	}
	return e
}

// factorCode is what somebody offers as second factor; one of the two.
type factorCode struct {
	totp, recovery string
	disables       bool // the recovery code also removes the second factors
}

// shown is a second factor that was right.
type shown struct {
	proof AMR
	left  *int // recovery codes that are left, after one was used
}

// useFactor uses a code up, in the name of a session or of a proof that was just
// given, and only while the user's ways in are as they were read.
func (a *Auth) useFactor(ctx context.Context, by Authority, u User, code factorCode) (shown, error) {
	if a.factors == nil {
		return shown{}, fail(CodeInvalidTOTPCode, lacks[store.FactorStore]())
	}
	if code.recovery != "" {
		return a.useRecoveryCode(ctx, by, u, code)
	}
	c := a.newChange(ctx, by)
	c.IfUsers = []UserAt{credentialsStill(u)}
	list, err := a.factors.Factors(ctx, u.ID)
	if err != nil {
		return shown{}, storeFailed(err)
	}
	for _, f := range list.List {
		if f.Kind != store.FactorTOTP { // one that is not enabled, the store refuses
			continue
		}
		m, err := a.matchTOTP(f, code.totp, c.Now)
		if err != nil {
			return shown{}, err
		}
		if !m.ok {
			continue
		}
		if err := a.factors.UseTOTPStep(ctx, store.UseTOTPStep{Change: c, UserID: u.ID, FactorID: f.ID, Step: m.step, Secret: m.sealed}); err != nil {
			return shown{}, factorFailed(err)
		}
		return shown{AMR{Method: methodTOTP, Timestamp: c.Now.Unix()}, nil}, nil
	}
	return shown{}, fail(CodeInvalidTOTPCode, nil)
}

// useRecoveryCode uses a code up, also one that was made under a previous secret,
// in one step with what it is shown for if that is to remove the second factors.
func (a *Auth) useRecoveryCode(ctx context.Context, by Authority, u User, code factorCode) (shown, error) {
	tells := []store.OutcomeEvent{done(Event{Type: EventRecoveryCodeUsed, UserID: u.ID})}
	if code.disables {
		tells = append(tells, done(Event{Type: EventMFADisabled, UserID: u.ID}))
	}
	c := a.newChangeOf(ctx, by, account{User: u}, tells...)
	c.IfUsers = []UserAt{credentialsStill(u)}
	hashes := a.keys.RecoveryCode(u.ID, code.recovery)
	left, err := 0, error(nil)
	if code.disables {
		_, err = a.factors.RemoveFactor(ctx, store.RemoveFactor{Change: c, UserID: u.ID, Recovery: hashes})
	} else {
		left, err = a.factors.UseRecoveryCode(ctx, store.UseRecoveryCode{Change: c, UserID: u.ID, Hashes: hashes})
	}
	if err != nil {
		return shown{}, factorFailed(err)
	}
	a.committed(ctx, c, store.OutcomeDone, func(e *Event) { e.Left = left })
	return shown{AMR{Method: methodRecovery, Timestamp: c.Now.Unix()}, &left}, nil
}

// factorFailed makes absent, used and outdated the same error.
func factorFailed(err error) error {
	if errors.Is(err, store.ErrUsed) || errors.Is(err, store.ErrStale) {
		return fail(CodeInvalidTOTPCode, err)
	}
	return goneOr(CodeInvalidTOTPCode, err)
}

// match is the time step that a code belongs to, if it is right.
type match struct {
	step   int64
	ok     bool
	sealed []byte // the factor's secret, sealed anew, if it was sealed under a previous key
}

// matchTOTP finds the time step that a code belongs to. A secret that cannot be
// opened is an error, which is logged: no code is right then, and whoever runs
// the service has to know why.
func (a *Auth) matchTOTP(f Factor, code string, now time.Time) (m match, err error) {
	secret, current, err := a.keys.Open(f.Secret, []byte(f.UserID))
	if err != nil {
		return m, fail(CodeInternal, fmt.Errorf("the second factor of user %s: %w", f.UserID, err))
	}
	if !current {
		m.sealed = a.keys.Seal(secret, []byte(f.UserID))
	}
	encoded := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret)
	step := now.Unix() / totpPeriod
	for s := step - totpSkew; s <= step+totpSkew; s++ {
		want, err := hotp.GenerateCodeCustom(encoded, uint64(s), hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1}) //nolint:gosec // after 1970
		if err == nil && subtle.ConstantTimeCompare([]byte(want), []byte(strings.ReplaceAll(code, " ", ""))) == 1 {
			m.step, m.ok = s, true
		}
	}
	return m, nil
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
		hashes = append(hashes, a.keys.RecoveryCode(userID, code)[0])
	}
	return codes, hashes
}

// judgeFactor judges a second factor, at whichever door, in the name of by; more
// are draws of that door. A TOTP code is good once, and never older than the
// newest one used (RFC 6238, 5.2). Errors: CodeInvalidTOTPCode, CodeRateLimited.
func (a *Auth) judgeFactor(ctx context.Context, by Authority, u User, c factorCode, more ...guessDraw) (shown, error) {
	device, err := a.knownDevice(ctx, u.ID)
	if err != nil {
		return shown{}, err
	}
	t := a.factorAttempt(u, more)
	totp, recovery := a.inARow("factor", u.ID, device), a.inARow("recovery", u.ID, device)
	if c.recovery != "" {
		t.method = methodRecovery
		t.draws = append(t.draws, recovery)
		t.refills = append(a.passwordLocks(ctx, u), a.inARow("factor", u.ID, ""), totp)
	} else {
		t.draws = append(t.draws, totp)
	}
	var proof shown
	err = a.guess(ctx, t, func(own context.Context, draw func() error) error {
		if err := draw(); err != nil {
			return err
		}
		var err error
		proof, err = a.useFactor(own, by, u, c)
		return err
	})
	return proof, err
}

// judgeFirstCode judges the code that ends an enrolment. What it is compared with
// is nobody's second factor yet, so no run of failures is counted.
func (a *Auth) judgeFirstCode(ctx context.Context, e enrollee, f Factor, code string) (match, error) {
	var more []guessDraw
	if e.token != nil {
		more = append(more, a.perMFAToken(e.token.Hash))
	}
	t := a.factorAttempt(e.user, more)
	t.method = ""
	var m match
	err := a.guess(ctx, t, func(_ context.Context, draw func() error) error {
		if err := draw(); err != nil {
			return err
		}
		var err error
		if m, err = a.matchTOTP(f, code, a.now()); err == nil && !m.ok {
			err = fail(CodeInvalidTOTPCode, nil)
		}
		return err
	})
	return m, err
}

// factorAttempt are those of any second factor: one count for each user, whichever
// the door and the factor.
func (a *Auth) factorAttempt(u User, more []guessDraw) attempt {
	return attempt{
		draws:  append([]guessDraw{a.guessDraw(a.cfg.limits.FactorPerUser, "factor", u.ID)}, more...),
		method: methodTOTP, userID: u.ID, owner: itself(u),
	}
}

// perMFAToken is the draw of a try with a token of CodeMFARequired or
// CodeMFAEnrollmentRequired.
func (a *Auth) perMFAToken(hash []byte) guessDraw {
	return a.guessDraw(a.always(Rate{Burst: maxCodeTries, Per: mfaLife}), "mfa-token", string(hash))
}
