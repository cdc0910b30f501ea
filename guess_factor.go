package auth

import "context"

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
