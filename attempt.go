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
	guessTimeout = 30 * time.Second // from counting the attempt to its end
	longestWait  = time.Hour        // the longest Retry-After; a user who is locked for longer has other sign-in methods
	tellAtRun    = 20               // failures in a row after which the owner is notified
	runOfNames   = 24 * time.Hour   // after which a run of failures of an unknown account is forgotten
)

// guessDraw is one rate limit of an attempt, and how the attempt is refunded.
type guessDraw struct {
	store.Draw
	whole bool // a right secret fills the bucket; otherwise only the attempt is refunded
	run   bool // it counts failures in a row
	kept  bool // right secrets count, too: they are not refunded
	known bool // the bucket of a known account; see attempt.nobodys

	captchaAfter int // more failures than this require a captcha; 0: never
}

// guessDraw returns the draw of one attempt.
func (a *Auth) guessDraw(r Rate, limit, value string) guessDraw {
	return guessDraw{Draw: a.draw(r, limit, value, 1)}
}

// byClient returns the draw of an attempt from the bucket of the client's IP address.
func (a *Auth) byClient(ctx context.Context, t attempt) guessDraw {
	if t.method == methodPassword {
		return a.withCaptchaAfter(guessDraw{Draw: a.perIP(ctx, a.cfg.limits.LoginPerIP, "login-ip")}, ipFailureFactor)
	}
	return guessDraw{Draw: a.perIP(ctx, a.cfg.limits.CodesPerIP, "code-ip")}
}

// refilled returns d as a draw from a bucket that a right secret fills.
func (d guessDraw) refilled() guessDraw { d.whole = true; return d }

// inARow returns a draw that counts failures in a row. limit and value name the
// secret under attack; see countedApart for device.
func (a *Auth) inARow(limit, value, device string) guessDraw {
	limit, value = countedApart(limit, value, device)
	d := a.guessDraw(a.cfg.limits.ConsecutiveFailures, limit+"-run", value).refilled()
	d.run = true
	return d
}

// inARowBy returns the draws that count failures in a row for a name. Anybody can
// invent names, so the bucket of an unknown account lasts no longer than runOfNames.
// Within that time the responses do not depend on whether an account has the name
// (known), even if one is created meanwhile.
func (a *Auth) inARowBy(limit, name string, known bool, device string) []guessDraw {
	long := a.inARow(limit, name, device)
	if long.Rate.Per <= runOfNames || device != "" {
		return []guessDraw{long}
	}
	long.known = true
	short := a.guessDraw(Rate{Burst: long.Rate.Burst, Per: runOfNames}, limit+"-run-day", name).refilled()
	if known {
		return []guessDraw{short, long}
	}
	short.run = true // as many reads and writes as for a known account
	return []guessDraw{short}
}

// countedApart names the bucket of a device that has signed in to the account
// before (deviceOf), so that strangers cannot lock the account for it. device is ""
// for every other device.
func countedApart(limit, value, device string) (string, string) {
	if device == "" {
		return limit, value
	}
	return limit + "-device", value + " " + device
}

// attempt is one check of a secret, and the rate limits that count it first. The
// first draw names the secret under attack.
type attempt struct {
	draws   []guessDraw
	method  string // of the event; "": a failure emits no event
	userID  string // of the event; may be empty
	owner   func(ctx context.Context) (User, error)
	refills []guessDraw // buckets that a right secret fills in addition

	// nobodys, if set, reports after a wrong secret whether the name's account is
	// unknown. A right secret does not need that read. inARowBy must have got known.
	nobodys func(ctx context.Context) bool

	due func(draws []guessDraw, d store.Decision) error // if set: returns an error, after counting and before the check, if another step is due first
}

// guess counts an attempt, has its secret checked, and refunds the attempt or
// reports a failure. judge gets a context that the request does not cancel. It
// calls draw right before it checks the secret, and returns draw's error. It returns
// nil for a right secret and CodeInvalid… for a wrong one. Any other error means that
// nothing was checked, or that the operation failed after a right secret.
func (a *Auth) guess(ctx context.Context, t attempt, judge func(ctx context.Context, draw func() error) error) error {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var (
		d     store.Decision
		drawn bool
		leave = func() {}
	)
	defer func() { leave() }() // after the attempt is refunded
	timer := time.AfterFunc(guessTimeout, cancel)
	defer timer.Stop()
	t.draws = append(slices.Clip(t.draws), a.byClient(ctx, t))
	err := judge(own, func() error {
		timer.Reset(guessTimeout) // waiting for earlier attempts does not count
		var err error
		if d, leave, err = a.drawAttempt(ctx, own, t.draws); err != nil {
			return err
		}
		drawn = true
		if t.due != nil {
			return t.due(t.draws, d)
		}
		return nil
	})
	switch {
	case !drawn && err == nil:
		return fail(CodeInternal, errors.New("a guess was judged that was not drawn"))
	case !drawn:
		return err
	case err == nil:
		a.refunds.add(refundsOf(slices.Concat(t.draws, t.refills), true)...)
	case wrongGuess(err):
		told := context.WithoutCancel(ctx)
		if t.nobodys != nil && t.nobodys(own) {
			a.forgetKnown(t.draws)
		}
		if t.method != "" {
			a.emit(told, Event{Type: EventSignInFailed, UserID: t.userID, Method: t.method, Err: err})
		}
		a.tellOfRun(told, t, d)
	default:
		a.refunds.add(refundsOf(t.draws, false)...)
	}
	return err
}

// forgetKnown turns the draws of a known name into the draws that inARowBy returns
// for an unknown one.
func (a *Auth) forgetKnown(draws []guessDraw) {
	for i := range draws {
		if draws[i].known {
			a.refunds.add(refundsOf(draws[i:i+1], false)...)
			draws[i].run, draws[i-1].run = false, true
		}
	}
}

// wrongGuess reports whether err means that a secret was checked and was wrong.
func wrongGuess(err error) bool {
	for _, c := range []Code{CodeInvalidCredentials, CodeInvalidTOTPCode, CodeInvalidCode, CodeRateLimited} {
		if errors.Is(err, c) {
			return true
		}
	}
	return false
}

// refundsOf returns the refunds of an attempt with a right secret, or of one that
// checked nothing.
func refundsOf(draws []guessDraw, right bool) []store.Draw {
	var list []store.Draw
	for _, d := range draws {
		if right && d.kept {
			continue
		}
		d.Cost = -1
		if right && d.whole {
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
func (a *Auth) drawAttempt(request, own context.Context, all []guessDraw) (d store.Decision, leave func(), err error) {
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
// CodeRateLimited it returns a channel to wait on before the next try, or nil.
func (a *Auth) drawInTurn(request, own context.Context, at *pendingGuess, draws []store.Draw) (d store.Decision, others <-chan struct{}, err error) {
	select {
	case at.turn <- struct{}{}:
		defer func() { <-at.turn }()
	case <-request.Done():
		return d, nil, retryAfter(CodeUnavailable, time.Second, request.Err())
	}
	others = a.pending.others(at) // before the draw, because an attempt that ends during it may be refunded too late for it
	if d, err = a.takeWithRefunds(own, draws, refundsAtOnce); err != nil {
		return d, nil, storeFailed(err)
	}
	if d.Allowed {
		a.pending.drew(at)
		return d, nil, nil
	}
	a.counter.Count(store.MetricLimits, "guesses")
	return d, others, retryAfter(CodeRateLimited, min(d.RetryAfter, longestWait), nil)
}

// tellOfRun notifies the account's owner of a long run of failures. It does so once,
// because only one attempt brings the bucket to this level.
func (a *Auth) tellOfRun(ctx context.Context, t attempt, d store.Decision) {
	left := d.Remaining
	for _, s := range t.draws {
		if s.Rate.Burst <= 0 || len(left) == 0 {
			continue
		}
		if s.run && s.Rate.Burst-left[0] == tellAtRun {
			a.tellOwner(ctx, t.owner)
		}
		left = left[1:]
	}
}

// tellOwner sends the notice of failures in a row. It reads the account in the
// background, so that the response time does not reveal whether there is one.
func (a *Auth) tellOwner(asked context.Context, owner func(context.Context) (User, error)) {
	a.outbox.Prepare(asked, KindManyFailedSignIns, func(background context.Context) (*store.SealedMessage, error) {
		u, err := owner(background)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if !u.EmailVerified() {
			return nil, nil
		}
		c := a.newChange(asked, byStranger("failures in a row"))
		a.enclose(asked, &c, outbox.Outgoing{Kind: KindManyFailedSignIns, To: u.Email}, u, nil)
		if _, err := a.store.UpdateUser(background, store.UpdateUser{Change: c, UserID: u.ID}); errors.Is(err, store.ErrNotFound) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		return &c.Messages[0], nil
	})
}

// itself returns an attempt's owner if the user has been read already.
func itself(u User) func(context.Context) (User, error) {
	return func(context.Context) (User, error) { return u, nil }
}

// pendingGuesses holds the attempts in progress, by the secret under attack. A right
// secret refunds its attempt, so an attempt that finds none left waits for the
// earlier ones.
type pendingGuesses struct {
	mu sync.Mutex
	of map[string]*pendingGuess
}

// pendingGuess counts the attempts in progress at one secret.
type pendingGuess struct {
	joined  int
	turn    chan struct{} // held by the attempt that draws
	judging int           // attempts that have drawn and are not over
	ended   chan struct{} // closed when one of those is over
}

// join adds an attempt at key, until leave.
func (p *pendingGuesses) join(key string) *pendingGuess {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[key] == nil {
		p.of[key] = &pendingGuess{turn: make(chan struct{}, 1), ended: make(chan struct{})}
	}
	p.of[key].joined++
	return p.of[key]
}

// leave undoes join. drawn reports whether the attempt had drawn.
func (p *pendingGuesses) leave(key string, drawn bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.of[key]
	if drawn {
		at.judging--
		close(at.ended)
		at.ended = make(chan struct{})
	}
	if at.joined--; at.joined == 0 {
		delete(p.of, key)
	}
}

// drew counts an attempt that has drawn.
func (p *pendingGuesses) drew(at *pendingGuess) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.judging++
}

// others returns a channel that is closed when an attempt that has drawn ends, or
// nil if there is none.
func (p *pendingGuesses) others(at *pendingGuess) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.judging == 0 {
		return nil
	}
	return at.ended
}
