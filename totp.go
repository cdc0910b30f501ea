package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"

	"github.com/authmount/auth/internal/address"
	"github.com/authmount/auth/internal/token"
	"github.com/authmount/auth/store"
)

// The parameters that authenticator apps support (RFC 6238, section 4).
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

// The methods of second factors: those by code, and all.
var (
	codeFactors = []string{methodTOTP, methodRecovery}
	factorNames = append([]string{methodPasskey}, codeFactors...)
)

// isFactor reports whether a session's method is a second factor.
func isFactor(m AMR) bool { return slices.Contains(factorNames, m.Method) }

// mfaRequired reports whether a user must have a second factor.
func (a *Auth) mfaRequired(ctx context.Context, u User) bool {
	return a.mfaRequiredBy(a.Settings(ctx), u)
}

func (a *Auth) mfaRequiredBy(s Settings, u User) bool {
	return factorRule(s).Names(u) || (a.cfg.mfa.RequiredFor != nil && a.cfg.mfa.RequiredFor(u))
}

// factorRule is mfaRequiredBy without the application's own function.
func factorRule(s Settings) *store.FactorRule {
	return &store.FactorRule{Everybody: s.MFARequired.On(), Roles: s.MFARequiredFor}
}

// rolesWithoutFactor returns the user's roles that need no second factor.
func rolesWithoutFactor(s Settings, u User) []string {
	return slices.DeleteFunc(slices.Clone(u.Roles), func(role string) bool { return slices.Contains(s.MFARequiredFor, role) })
}

// rolesIn returns the roles of u that count in a session, for every token of it. A
// second factor that the session lacks may have become required since it was created. If
// only roles require it, they are left out; otherwise the error is that of
// interruptSignIn, whose token raises the session.
func (a *Auth) rolesIn(ctx context.Context, u User, s Session) ([]string, error) {
	roles, due, err := a.rolesAt(ctx, u, s)
	if err != nil || !due {
		return roles, err
	}
	return nil, a.interruptSession(ctx, u, s)
}

// rolesAt returns the roles of u that count in a session, and whether the session needs a
// second factor to continue.
func (a *Auth) rolesAt(ctx context.Context, u User, s Session) (roles []string, due bool, err error) {
	settings := a.Settings(ctx)
	if s.AAL == store.LevelAAL2 || !a.mfaRequiredBy(settings, u) {
		return u.Roles, false, nil
	}
	if u.MFAEnabled {
		if trusted, err := a.onTrustedDevice(ctx, u, s.Device); err != nil || trusted {
			return u.Roles, false, err
		}
	}
	u.Roles = rolesWithoutFactor(settings, u)
	return u.Roles, a.mfaRequiredBy(settings, u), nil
}

// withheldIn returns the roles of u that do not count in a session, because they require
// a second factor that it lacks. An account that waits for an acceptance cannot set up a
// factor before, so none are named then.
func (a *Auth) withheldIn(ctx context.Context, u User, s Session) ([]string, error) {
	counting, _, err := a.rolesAt(ctx, u, s)
	if err != nil {
		return nil, err
	}
	withheld := slices.DeleteFunc(slices.Clone(u.Roles), func(role string) bool { return slices.Contains(counting, role) })
	if len(withheld) > 0 && !u.MFAEnabled {
		if has, err := a.standing(ctx, u); err != nil || has.waits {
			return nil, err
		}
	}
	return withheld, nil
}

// interruptSession returns the error of interruptSignIn for a session that continues with
// its account's second factor.
func (a *Auth) interruptSession(ctx context.Context, u User, s Session) error {
	return a.interruptForFactor(ctx, signIn{user: u, amr: s.AMR, within: s.ID, gone: CodeSessionEnded})
}

// interruptForFactor is interruptSignIn for a factor that the account has, or has to set up.
func (a *Auth) interruptForFactor(ctx context.Context, s signIn) error {
	due := s.user.MFAEnabled
	if !due {
		var err error
		if due, err = a.passkeyDue(ctx, s.user, s.amr, s.by); err != nil {
			return err
		}
	}
	if due {
		return a.interruptSignIn(ctx, CodeMFARequired, store.PurposeMFA, s)
	}
	return a.interruptSignIn(ctx, CodeMFAEnrollmentRequired, store.PurposeEnroll, s)
}

// interruptWithheld is interruptSession if roles do not count in the session by. To set up
// a factor takes a recent sign-in: an older session gets no error, and its account page leads
// to both.
func (a *Auth) interruptWithheld(ctx context.Context, by Caller) error {
	s, u, err := a.liveSession(ctx, by, CodeSessionEnded)
	if err != nil {
		return err
	}
	withheld, err := a.withheldIn(ctx, u, s)
	if err != nil || len(withheld) == 0 {
		return err
	}
	if !u.MFAEnabled && !a.recentlyAuthenticated(s) {
		if due, err := a.passkeyDue(ctx, u, s.AMR, credentialRef{}); err != nil || !due {
			return err
		}
	}
	return a.interruptSession(ctx, u, s)
}

// mayContinue returns the error of rolesIn for the session by of u. An operation that
// answers with the session's tokens calls it before it takes effect.
func (a *Auth) mayContinue(ctx context.Context, u User, by Caller, gone Code) error {
	if !a.mfaRequired(ctx, u) {
		return nil
	}
	s, u, err := a.liveSession(ctx, by, gone)
	if err == nil {
		_, err = a.rolesIn(ctx, u, s)
	}
	return err
}

// totpOn reports whether authenticator apps can be set up.
func (a *Auth) totpOn(ctx context.Context) bool {
	return a.factors != nil && a.Settings(ctx).TOTP.On()
}

// withoutFactor decides whether a sign-in without a second factor may have a session:
// it reports whether a trusted device replaces the factor, or returns the error that asks
// for a factor or for its enrolment.
func (a *Auth) withoutFactor(ctx context.Context, s signIn) (onTrusted bool, err error) {
	switch {
	case s.user.MFAEnabled:
		onTrusted, err = a.onTrustedDevice(ctx, s.user, clientFrom(ctx).Device)
		if err == nil && !onTrusted {
			err = a.interruptSignIn(ctx, CodeMFARequired, store.PurposeMFA, s)
		}
		return onTrusted, err
	case a.mfaRequired(ctx, s.user):
		return false, a.interruptForFactor(ctx, s)
	}
	return false, nil
}

// interruptSignIn interrupts a sign-in, or a session until it has a second factor. Its
// error has a token that carries the first factor to /2fa/verify or to the enrolment.
func (a *Auth) interruptSignIn(ctx context.Context, c Code, p store.Purpose, s signIn) error {
	var kinds []string
	if c == CodeMFARequired {
		var err error
		if kinds, err = a.factorsFor(ctx, s.user, s.by); err != nil {
			return err
		}
	}
	secret, t := a.newLink(p, mfaLife, linkData{AMR: s.amr, By: s.by, Accepts: s.accepts, Remember: s.remember, SessionID: s.within})
	t.UserID = s.user.ID
	err := a.putToken(ctx, byAuthentication(), t, ifCredentialsUnchanged(s.user))
	if errors.Is(err, store.ErrStale) || errors.Is(err, CodeInvalidToken) {
		return fail(s.gone, err)
	}
	if err != nil {
		return err
	}
	e := fail(c, nil)
	e.MFAToken, e.ExpiresIn = secret, int(mfaLife/time.Second)
	e.Factors = kinds
	if s.accepts != nil { // the acceptance ends the recovery codes
		e.Factors = slices.DeleteFunc(kinds, func(k string) bool { return k == methodRecovery })
	}
	return e
}

// factorCode is the code of a second factor, or its assertion: one of totp, recovery and
// passkey.
type factorCode struct {
	totp, recovery string
	passkey        *assertedPasskey
	removes        *factorRemoval // by the recovery code
}

// factorRemoval is the removal of a factor.
type factorRemoval struct {
	id     string
	events []store.OutcomeEvent
}

// factorUse is the use of a second factor's code, and the operation that it completes.
type factorUse struct {
	by     Authority // the user's session, or byAuthentication
	user   User
	code   factorCode
	limits []attemptLimit // of this entry point, in addition to those of every factor

	alone bool // a passkey that counts as one factor

	// complete, if set, consumes the factor by factorChange.store and commits the change.
	// An app's code was checked before; a recovery code is checked by the store. It is
	// called again if another request used the factor meanwhile. Without it the change
	// completes nothing else.
	complete func(ctx context.Context, f *factorChange) (store.FactorResult, error)
}

// factorChange is the change that consumes a second factor.
type factorChange struct {
	store.Change
	amr   AMR
	alone bool // the factor confirms a session and does not raise it
	store func(c store.Change, done store.Completion) (store.FactorResult, error)
	edit  func(*Event) // completes the events, for committed
}

// usedFactor is a second factor that was valid and has been consumed.
type usedFactor struct {
	store.FactorResult
	amr       AMR
	id        string // of the factor; "" of a recovery code
	alone     bool   // see factorUse
	codesLeft *int   // the remaining recovery codes, after one was used

	codesGone int64 // of an app's code: the sequence of the recovery codes, if none is left
}

// useFactor consumes a code, on the condition that the user's credentials are as they
// were read.
func (a *Auth) useFactor(ctx context.Context, f factorUse) (usedFactor, error) {
	if a.factors == nil {
		return usedFactor{}, fail(CodeInvalidTOTPCode, lacks[store.FactorStore]())
	}
	switch {
	case f.code.passkey != nil:
		return a.usePasskey(ctx, f)
	case f.code.recovery != "":
		return a.useRecoveryCode(ctx, f)
	}
	for range attempts {
		used, err := a.useTOTP(ctx, f)
		if !errors.Is(err, store.ErrUsed) || errors.Is(err, CodeInvalidTOTPCode) {
			return used, err
		}
	}
	return usedFactor{}, retryAfter(CodeUnavailable, time.Second, store.ErrUsed)
}

// useTOTP is useFactor for the code of an authenticator app. ErrUsed: another request
// used the factor meanwhile.
func (a *Auth) useTOTP(ctx context.Context, f factorUse) (usedFactor, error) {
	list, err := a.factors.Factors(ctx, f.user.ID)
	if err != nil {
		return usedFactor{}, storeFailed(err)
	}
	for _, factor := range list.List {
		if factor.Kind != store.FactorTOTP || !factor.Enabled {
			continue
		}
		m, err := a.matchTOTP(factor, f.code.totp, a.now())
		if err != nil {
			return usedFactor{}, err
		}
		switch {
		case !m.ok:
			continue
		case m.step <= totpStep(factor.State): // used before, or older (RFC 6238, section 5.2)
			return usedFactor{}, fail(CodeInvalidTOTPCode, store.ErrUsed)
		}
		used, err := a.consumeFactor(ctx, f, methodTOTP, nil, func(c store.Change, done store.Completion) (store.FactorResult, error) {
			return a.factors.UseFactor(ctx, store.UseFactor{
				Change: c, UserID: f.user.ID, FactorID: factor.ID, State: factor.State, NewState: totpState(m.step), Secret: m.sealed, Completion: done,
			})
		})
		used.id = factor.ID
		if list.RecoveryLeft == 0 {
			used.codesGone = list.Recovery.Sequence
		}
		return used, err
	}
	return usedFactor{}, fail(CodeInvalidTOTPCode, nil)
}

// useRecoveryCode consumes a recovery code, also one that was created under a previous
// secret, and removes a factor in the same change if the code says so.
func (a *Auth) useRecoveryCode(ctx context.Context, f factorUse) (usedFactor, error) {
	hashes := a.keys.RecoveryCode(f.user.ID, address.Code(f.code.recovery))
	events, removes := []store.OutcomeEvent{done(Event{Type: EventRecoveryCodeUsed, UserID: f.user.ID})}, f.code.removes
	if removes != nil {
		events = append(events, removes.events...)
	}
	used, err := a.consumeFactor(ctx, f, methodRecovery, events, func(c store.Change, done store.Completion) (store.FactorResult, error) {
		if removes != nil {
			u, err := a.factors.RemoveFactor(ctx, store.RemoveFactor{Change: c, UserID: f.user.ID, FactorID: removes.id, Recovery: hashes})
			return store.FactorResult{User: u}, err
		}
		return a.factors.UseRecoveryCode(ctx, store.UseRecoveryCode{Change: c, UserID: f.user.ID, Hashes: hashes, Completion: done})
	})
	if err == nil {
		used.codesLeft = &used.RecoveryLeft
	}
	return used, err
}

// consumeFactor makes the change of a factor's use, with the events of the factor in
// front.
func (a *Auth) consumeFactor(ctx context.Context, f factorUse, method string, events []store.OutcomeEvent, st func(store.Change, store.Completion) (store.FactorResult, error)) (used usedFactor, err error) {
	c := factorChange{Change: a.newChangeOf(ctx, f.by, account{User: f.user}, events...)}
	c.IfUsers = []UserAt{ifCredentialsUnchanged(f.user)}
	c.alone, c.amr = f.alone, AMR{Method: method, Timestamp: c.Now.Unix()}
	codesLeft := 0
	c.store = func(ch store.Change, done store.Completion) (store.FactorResult, error) {
		r, err := st(ch, done)
		codesLeft = r.RecoveryLeft
		return r, err
	}
	c.edit = func(e *Event) {
		if e.Type == EventRecoveryCodeUsed {
			e.Left = codesLeft
		}
	}
	if f.complete != nil {
		used.FactorResult, err = f.complete(ctx, &c)
	} else if used.FactorResult, err = c.store(c.Change, store.Completion{}); err == nil {
		a.committed(ctx, c.Change, store.OutcomeDone, c.edit)
	}
	used.amr = c.amr
	switch {
	case errors.Is(err, store.ErrUsed):
		return usedFactor{}, err
	case err != nil:
		return usedFactor{}, factorFailed(err)
	}
	return used, nil
}

// totpState returns Factor.State of an authenticator app: the newest time step that was
// used.
func totpState(step int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(step)) } //nolint:gosec // after 1970

func totpStep(state []byte) int64 {
	if len(state) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(state)) //nolint:gosec // as totpState wrote it
}

// factorFailed returns the same error for an absent, a used and an outdated factor.
func factorFailed(err error) error {
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	if errors.Is(err, store.ErrUsed) || errors.Is(err, store.ErrStale) {
		return fail(CodeInvalidTOTPCode, err)
	}
	return goneOr(CodeInvalidTOTPCode, err)
}

// match is the time step of a code, if the code is right.
type match struct {
	step   int64
	ok     bool
	sealed []byte // the factor's secret, sealed anew, if it was sealed under a previous key
}

// matchTOTP finds the time step of a code. If the factor's secret cannot be decrypted,
// matchTOTP returns an error, which is logged: no code is right then, and the operator
// needs to know the reason.
func (a *Auth) matchTOTP(f Factor, code string, now time.Time) (m match, err error) {
	secret, current, err := a.keys.Open(f.Secret, []byte(f.UserID))
	if err != nil {
		return m, fail(CodeInternal, fmt.Errorf("the second factor of user %s: %w", f.UserID, err))
	}
	if !current {
		m.sealed = a.keys.Seal(secret, []byte(f.UserID))
	}
	code = address.Code(code)
	encoded := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret)
	step := now.Unix() / totpPeriod
	for s := step - totpSkew; s <= step+totpSkew; s++ {
		want, err := hotp.GenerateCodeCustom(encoded, uint64(s), hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1}) //nolint:gosec // after 1970
		if err == nil && subtle.ConstantTimeCompare([]byte(want), []byte(code)) == 1 {
			m.step, m.ok = s, true
		}
	}
	return m, nil
}

// recoveryAlphabet has 32 characters that are hard to confuse.
const recoveryAlphabet = "abcdefghjkmnpqrstuvwxyz023456789"

// newRecoveryCodes returns new codes of 50 bits each, in readable groups, and their
// hashes.
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

// checkFactor checks and consumes a second factor, at every endpoint that takes one.
// The code of an app is valid once, and never if it is older than the newest one used
// (RFC 6238, section 5.2). Errors: CodeInvalidTOTPCode, CodeRateLimited, those of
// factorUse.complete.
func (a *Auth) checkFactor(ctx context.Context, f factorUse) (usedFactor, error) {
	u, c := f.user, f.code
	if c.passkey != nil { // it cannot be guessed, and trying shall lock nobody out
		return a.useFactor(ctx, f)
	}
	device, err := a.knownDevice(ctx, u.ID)
	if err != nil {
		return usedFactor{}, err
	}
	t := a.attemptAtFactor(u, f.limits)
	t.knownDevice = device != ""
	totp, recovery := a.consecutiveFailures("factor", u.ID, device), a.consecutiveFailures("recovery", u.ID, device)
	if c.recovery != "" {
		t.method = methodRecovery
		t.limits = append(t.limits, recovery)
		t.refills = append(a.passwordLocks(ctx, u), a.consecutiveFailures("factor", u.ID, ""), totp)
	} else {
		t.limits = append(t.limits, totp)
	}
	var used usedFactor
	err = a.countAttempt(ctx, t, func(own context.Context, draw func() error) error {
		if err := draw(); err != nil {
			return err
		}
		var err error
		used, err = a.useFactor(own, f)
		return err
	})
	return used, err
}

// checkFirstCode checks the code that completes an enrolment. No run of failures is
// counted, because the new factor does not protect an account yet.
func (a *Auth) checkFirstCode(ctx context.Context, e enrollee, f Factor, code string) (match, error) {
	var more []attemptLimit
	if e.token != nil {
		more = append(more, a.mfaTokenLimit(e.token.Hash))
	}
	t := a.attemptAtFactor(e.user, more)
	t.method = ""
	var m match
	err := a.countAttempt(ctx, t, func(_ context.Context, draw func() error) error {
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

// attemptAtFactor returns the attempt at a second factor. All endpoints and factors of
// a user share one count.
func (a *Auth) attemptAtFactor(u User, more []attemptLimit) attempt {
	return attempt{
		limits: append([]attemptLimit{a.attemptLimit(a.cfg.limits.FactorPerUser, "factor", u.ID)}, more...),
		method: methodTOTP, userID: u.ID, owner: knownOwner(u),
	}
}

// mfaTokenLimit returns the draw of an attempt with a token of CodeMFARequired or
// CodeMFAEnrollmentRequired.
func (a *Auth) mfaTokenLimit(hash []byte) attemptLimit {
	return a.attemptLimit(a.always(Rate{Burst: maxCodeAttempts, Per: mfaLife}), "mfa-token", string(hash))
}
