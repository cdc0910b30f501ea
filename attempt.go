package auth

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// Rate limits of secrets that an attacker could find by trying: passwords, second
// factors, recovery codes and phone codes.
//
//   - Every attempt is counted before the secret is checked, in a context that the
//     request does not cancel. An attempt therefore counts even if the client
//     disconnects.
//   - A right secret refunds its attempt and ends the run of failures. An attempt
//     that checked nothing is refunded, too.
//   - Every attempt also counts against the client's IP address. This stops a client
//     that tries many accounts, and keeps it from filling the store.
//   - A wrong secret emits EventSignInFailed. The account's owner is notified of a
//     long run of failures.

const (
	attemptTimeout      = 30 * time.Second // from counting the attempt to its end
	longestWait         = time.Hour        // the longest Retry-After; a user who is locked for longer has other sign-in methods
	noticeAfterFailures = 20               // failures in a row after which the owner is notified
	unknownRunLife      = 24 * time.Hour   // after which a run of failures of an unknown account is forgotten
)

// attemptLimit is one rate limit of an attempt, and how the attempt is refunded.
type attemptLimit struct {
	store.Draw
	refills      bool // a right secret fills the bucket; otherwise only the attempt is refunded
	consecutive  bool // it counts failures in a row
	noRefund     bool // right secrets count, too: they are not refunded
	knownAccount bool // the bucket of a known account; see attempt.unknownAccount

	captchaAfter int // more failures than this require a captcha; 0: never
}

// attemptLimit returns the draw of one attempt.
func (a *Auth) attemptLimit(r Rate, limit, value string) attemptLimit {
	return attemptLimit{Draw: a.draw(r, limit, value, 1)}
}

// clientLimits returns the draws of an attempt from the buckets of the client's IP
// address.
func (a *Auth) clientLimits(ctx context.Context, t attempt) (list []attemptLimit) {
	rate, limit := a.cfg.limits.CodesPerIP, "code-ip"
	if t.method == methodPassword {
		rate, limit = a.cfg.limits.LoginPerIP, "login-ip"
	}
	for i, draw := range a.perIP(ctx, rate, limit) {
		switch d := (attemptLimit{Draw: draw}); {
		case i == 0 && t.method == methodPassword:
			list = append(list, a.withCaptchaAfter(d, ipFailureFactor))
		case i == 0 || !t.knownDevice:
			list = append(list, d)
		}
	}
	return list
}

// refilled returns d as a draw from a bucket that a right secret fills.
func (d attemptLimit) refilled() attemptLimit { d.refills = true; return d }

// consecutiveFailures returns a draw that counts failures in a row. limit and value
// name the secret under attack; see deviceBucket for device.
func (a *Auth) consecutiveFailures(limit, value, device string) attemptLimit {
	limit, value = deviceBucket(limit, value, device)
	d := a.attemptLimit(a.cfg.limits.ConsecutiveFailures, limit+"-run", value).refilled()
	d.consecutive = true
	return d
}

// consecutiveFailuresOf returns the draws that count failures in a row for a name.
// Anybody can invent names, so the bucket of an unknown account lasts no longer than
// unknownRunLife. Within that time the responses do not depend on whether an account
// has the name (known), even if one is created meanwhile.
func (a *Auth) consecutiveFailuresOf(limit, name string, known bool, device string) []attemptLimit {
	long := a.consecutiveFailures(limit, name, device)
	if long.Rate.Per <= unknownRunLife || device != "" {
		return []attemptLimit{long}
	}
	long.knownAccount = true
	short := a.attemptLimit(Rate{Burst: long.Rate.Burst, Per: unknownRunLife}, limit+"-run-day", name).refilled()
	if known {
		return []attemptLimit{short, long}
	}
	short.consecutive = true // as many reads and writes as for a known account
	return []attemptLimit{short}
}

// deviceBucket names the bucket of a device that has signed in to the account
// before (deviceOf), so that strangers cannot lock the account for it. device is ""
// for every other device.
func deviceBucket(limit, value, device string) (string, string) {
	if device == "" {
		return limit, value
	}
	return limit + "-device", value + " " + device
}

// attempt is one check of a secret, and the rate limits that count it first. The first
// limit is that of the secret itself; only a passkey at sign-in has none.
type attempt struct {
	limits  []attemptLimit
	method  string // of the event; "": a failure emits no event
	userID  string // of the event; may be empty
	owner   func(ctx context.Context) (User, error)
	refills []attemptLimit // buckets that a right secret fills in addition

	// unknownAccount, if set, reports after a wrong secret whether the name's account
	// is unknown. A right secret does not need that read. Set it only if known was true
	// for consecutiveFailuresOf.
	unknownAccount func(ctx context.Context) bool

	knownDevice bool // the device is known to the account: only the client's own IP address counts, not the networks around it

	due func(draws []attemptLimit, d store.Decision) error // if set: called after counting and before the check; its error, such as a required captcha, stops the attempt
}

// countAttempt counts an attempt, has its secret checked, and refunds the attempt or
// reports a failure. check gets a context that the request does not cancel. It calls
// draw just before it checks the secret, and returns draw's error. It returns
// nil for a right secret and CodeInvalid… for a wrong one. Any other error means that
// nothing was checked, or that the operation failed after a right secret.
func (a *Auth) countAttempt(ctx context.Context, t attempt, check func(ctx context.Context, draw func() error) error) error {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var (
		d       store.Decision
		counted bool
		leave   = func() {}
	)
	defer func() { leave() }() // after the attempt is refunded
	timer := time.AfterFunc(attemptTimeout, cancel)
	defer timer.Stop()
	t.limits = append(slices.Clip(t.limits), a.clientLimits(ctx, t)...)
	err := check(own, func() error {
		timer.Reset(attemptTimeout) // waiting for earlier attempts does not count
		var err error
		if d, leave, err = a.drawAttempt(ctx, own, t.limits); err != nil {
			return err
		}
		counted = true
		if t.due != nil {
			return t.due(t.limits, d)
		}
		return nil
	})
	switch {
	case !counted && err == nil:
		return fail(CodeInternal, errors.New("an attempt was checked before it was counted"))
	case !counted:
		return err
	case err == nil:
		a.refunds.add(refundsOf(slices.Concat(t.limits, t.refills), true)...)
	case isWrongSecret(err):
		detached := context.WithoutCancel(ctx)
		if t.unknownAccount != nil && t.unknownAccount(own) {
			a.forgetKnown(t.limits)
		}
		if t.method != "" {
			a.emit(detached, Event{Type: EventSignInFailed, UserID: t.userID, Method: t.method, Err: err})
		}
		a.notifyOfFailures(detached, t, d)
	default:
		a.refunds.add(refundsOf(t.limits, false)...)
	}
	return err
}

// forgetKnown turns the draws of a known name into the draws that consecutiveFailuresOf
// returns for an unknown one.
func (a *Auth) forgetKnown(draws []attemptLimit) {
	for i := range draws {
		if draws[i].knownAccount {
			a.refunds.add(refundsOf(draws[i:i+1], false)...)
			draws[i].consecutive, draws[i-1].consecutive = false, true
		}
	}
}

// errChecked is the cause of a failure after a secret was checked, which counts even if the
// secret was right.
var errChecked = errors.New("the secret was checked")

// isWrongSecret reports whether err means that a secret was checked and was wrong.
func isWrongSecret(err error) bool {
	for _, c := range []Code{CodeInvalidCredentials, CodeInvalidTOTPCode, CodeInvalidPasskey, CodePasskeyRemoved, CodeInvalidCode, CodeRateLimited} {
		if errors.Is(err, c) {
			return true
		}
	}
	return errors.Is(err, errChecked)
}

// refundsOf returns the refunds of an attempt with a right secret, or of one that
// checked nothing.
func refundsOf(draws []attemptLimit, right bool) []store.Draw {
	var list []store.Draw
	for _, d := range draws {
		if d.Cost == 0 || right && d.noRefund {
			continue
		}
		d.Cost = -1
		if right && d.refills {
			d.Cost = -d.Rate.Burst
		}
		list = append(list, d.Draw)
	}
	return list
}

// drawAttempt counts an attempt, after the refunds that wait. If no attempt is left
// while others are in progress, it waits for them until the request ends, because
// they may succeed and be refunded. The caller must call leave when the attempt is
// over.
func (a *Auth) drawAttempt(request, own context.Context, all []attemptLimit) (d store.Decision, leave func(), err error) {
	leave = func() {}
	var draws []store.Draw
	for _, d := range all {
		if d.Rate.Burst > 0 {
			draws = append(draws, d.Draw)
		}
	}
	if err := request.Err(); err != nil { // the client has left: count and check nothing
		return d, leave, retryAfter(CodeUnavailable, time.Second, err)
	}
	if len(draws) == 0 {
		return store.Decision{Allowed: true}, leave, nil
	}
	about := all[0].Key
	at := a.pending.join(about)
	for {
		var others <-chan struct{}
		if d, others, err = a.drawInTurn(request, own, at, draws); err == nil {
			return d, func() { a.pending.leave(about, true) }, nil
		}
		if others == nil {
			break
		}
		select {
		case <-others:
			continue
		case <-request.Done():
			err = retryAfter(CodeUnavailable, time.Second, request.Err())
		}
		break
	}
	a.pending.leave(about, false)
	return d, leave, err
}

// drawInTurn waits for earlier draws from the same bucket, and then draws. With
// CodeRateLimited it returns a channel to wait on before the next draw, or nil.
func (a *Auth) drawInTurn(request, own context.Context, at *attemptGroup, draws []store.Draw) (d store.Decision, others <-chan struct{}, err error) {
	select {
	case at.drawing <- struct{}{}:
		defer func() { <-at.drawing }()
	case <-request.Done():
		return d, nil, retryAfter(CodeUnavailable, time.Second, request.Err())
	}
	others = a.pending.others(at) // before the draw, because an attempt that ends during it may be refunded too late for it
	if d, err = a.takeWithRefunds(own, draws, refundsAtOnce); err != nil {
		return d, nil, storeFailed(err)
	}
	if d.Allowed {
		a.pending.counted(at)
		return d, nil, nil
	}
	a.counter.Count(store.MetricLimits, "guesses")
	return d, others, retryAfter(CodeRateLimited, min(d.RetryAfter, longestWait), nil)
}

// notifyOfFailures notifies the account's owner of a long run of failures. It does so
// once, because only one attempt brings the bucket to this level.
func (a *Auth) notifyOfFailures(ctx context.Context, t attempt, d store.Decision) {
	remaining := d.Remaining
	for _, s := range t.limits {
		if s.Rate.Burst <= 0 || len(remaining) == 0 {
			continue
		}
		if s.consecutive && s.Rate.Burst-remaining[0] == noticeAfterFailures {
			a.notifyOwner(ctx, t.owner)
		}
		remaining = remaining[1:]
	}
}

// notifyOwner sends the notice of failures in a row. It reads the account in the
// background, so that the response time does not reveal whether there is one.
func (a *Auth) notifyOwner(request context.Context, owner func(context.Context) (User, error)) {
	a.outbox.Prepare(request, KindManyFailedSignIns, func(background context.Context) (*store.SealedMessage, error) {
		u, err := owner(background)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if !u.EmailVerified() {
			return nil, nil
		}
		c := a.newChange(request, byFlow("failures in a row"))
		a.enclose(request, &c, outbox.Outgoing{Kind: KindManyFailedSignIns, To: u.Email}, u, nil)
		if _, err := a.store.UpdateUser(background, store.UpdateUser{Change: c, UserID: u.ID}); errors.Is(err, store.ErrNotFound) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		return &c.Messages[0], nil
	})
}

// knownOwner returns an attempt's owner if the user has been read already.
func knownOwner(u User) func(context.Context) (User, error) {
	return func(context.Context) (User, error) { return u, nil }
}

// pendingAttempts holds the attempts in progress, by the secret under attack. A right
// secret refunds its attempt, so an attempt that finds none left waits for the
// earlier ones.
type pendingAttempts struct {
	mu       sync.Mutex
	bySecret map[string]*attemptGroup
}

// attemptGroup counts the attempts in progress at one secret.
type attemptGroup struct {
	joined   int
	drawing  chan struct{} // held by the attempt that draws
	checking int           // attempts that have drawn and are not over
	ended    chan struct{} // closed when one of those is over
}

// join adds an attempt at key, until leave.
func (p *pendingAttempts) join(key string) *attemptGroup {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bySecret[key] == nil {
		p.bySecret[key] = &attemptGroup{drawing: make(chan struct{}, 1), ended: make(chan struct{})}
	}
	p.bySecret[key].joined++
	return p.bySecret[key]
}

// leave undoes join. counted reports whether the attempt was counted.
func (p *pendingAttempts) leave(key string, counted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.bySecret[key]
	if counted {
		at.checking--
		close(at.ended)
		at.ended = make(chan struct{})
	}
	if at.joined--; at.joined == 0 {
		delete(p.bySecret, key)
	}
}

// counted counts an attempt that has drawn.
func (p *pendingAttempts) counted(at *attemptGroup) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.checking++
}

// others returns a channel that is closed when an attempt that has drawn ends, or
// nil if there is none.
func (p *pendingAttempts) others(at *attemptGroup) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.checking == 0 {
		return nil
	}
	return at.ended
}
