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

// Every secret that somebody could guess is judged here: passwords, second
// factors, recovery codes, phone codes.
//
//   - A try is drawn before the secret is judged, in a context that ends with
//     nobody's request. What was judged has been counted, whatever became of the
//     client.
//   - A right guess gives its try back, and ends the run of failures before it. So
//     does one that nothing was judged of.
//   - Whatever is guessed at, the address of the client counts, too: who guesses at
//     many things at once is stopped, and fills no store.
//   - A wrong one is told (EventSignInFailed), and long runs are told to the
//     account's owner.

const (
	guessTimeout = 30 * time.Second // from the draw to the end
	longestWait  = time.Hour        // that a refusal tells of: who is closed out for longer has other ways in
	tellAtRun    = 20               // failures in a row, of which the owner is told
	runOfNames   = 24 * time.Hour   // in which a run of failures is forgotten that is nobody's
)

// guessDraw is what an attempt draws from one bucket, and what becomes of that.
type guessDraw struct {
	store.Draw
	whole bool // a right guess fills the bucket, or else gives back what it drew
	run   bool // it counts failures in a row
	kept  bool // it counts right guesses, too
	known bool // it is for what is known to be somebody's; see attempt.nobodys

	captchaAfter int // with more failures than so many a captcha is due; 0: it says nothing of that
}

// guessDraw draws one try.
func (a *Auth) guessDraw(r Rate, limit, value string) guessDraw {
	return guessDraw{Draw: a.draw(r, limit, value, 1)}
}

// byClient is the draw of every guess, by the address of the client.
func (a *Auth) byClient(ctx context.Context, t attempt) guessDraw {
	if t.method == methodPassword {
		return a.withCaptchaAfter(guessDraw{Draw: a.perIP(ctx, a.cfg.limits.LoginPerIP, "login-ip")}, ipFailureFactor)
	}
	return guessDraw{Draw: a.perIP(ctx, a.cfg.limits.CodesPerIP, "code-ip")}
}

// refilled is a draw from a bucket that a right guess fills.
func (d guessDraw) refilled() guessDraw { d.whole = true; return d }

// inARow is a draw that counts failures in a row. limit and value name what was
// guessed at; see countedApart for device.
func (a *Auth) inARow(limit, value, device string) guessDraw {
	limit, value = countedApart(limit, value, device)
	d := a.guessDraw(a.cfg.limits.ConsecutiveFailures, limit+"-run", value).refilled()
	d.run = true
	return d
}

// inARowBy are the draws that count failures in a row at what goes by a name, which
// may be nobody's: anybody can think of names, so what is kept of them lasts no
// longer than runOfNames. Within that time a name answers alike whether it is an
// account's (known) or not, also when it becomes one's meanwhile.
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
	short.run = true // which costs what an account's costs
	return []guessDraw{short}
}

// countedApart names the bucket of a device that has signed in to the account
// before (deviceOf), so that strangers cannot close the account to it. "" is any
// other device.
func countedApart(limit, value, device string) (string, string) {
	if device == "" {
		return limit, value
	}
	return limit + "-device", value + " " + device
}

// attempt is what a guess is about, and what it draws before it is judged. The
// first draw names what is guessed at.
type attempt struct {
	draws   []guessDraw
	method  string // of the event; none: no sign-in failed
	userID  string // likewise; may be empty
	owner   func(ctx context.Context) (User, error)
	refills []guessDraw // a right guess also fills these buckets

	// nobodys, if set, tells after a wrong guess whether its name is nobody's, so that
	// a right one need not read that. inARowBy was told that it is known.
	nobodys func(ctx context.Context) bool

	due func(draws []guessDraw, d store.Decision) error // if set: what has to come first, by what was drawn; then nothing is judged
}

// guess draws, has a secret judged, and gives back what it drew or tells of a
// failure. judge gets a context that no request ends, and calls draw right before
// it judges; a refusal, which draw returns, it passes on. It returns nil for a right guess, and CodeInvalid… for a
// wrong one; after any other error nothing was judged, or what was right could
// not be carried out.
func (a *Auth) guess(ctx context.Context, t attempt, judge func(ctx context.Context, draw func() error) error) error {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var (
		d     store.Decision
		drawn bool
		leave = func() {}
	)
	defer func() { leave() }() // once its tries are given back
	timer := time.AfterFunc(guessTimeout, cancel)
	defer timer.Stop()
	t.draws = append(slices.Clip(t.draws), a.byClient(ctx, t))
	err := judge(own, func() error {
		timer.Reset(guessTimeout) // however long it waited for its turn
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

// forgetKnown makes of the draws at a name what inARowBy makes of one that is
// nobody's.
func (a *Auth) forgetKnown(draws []guessDraw) {
	for i := range draws {
		if draws[i].known {
			a.refunds.add(refundsOf(draws[i:i+1], false)...)
			draws[i].run, draws[i-1].run = false, true
		}
	}
}

// wrongGuess tells whether an error means that a guess was judged and was wrong.
func wrongGuess(err error) bool {
	for _, c := range []Code{CodeInvalidCredentials, CodeInvalidTOTPCode, CodeInvalidCode, CodeRateLimited} {
		if errors.Is(err, c) {
			return true
		}
	}
	return false
}

// refundsOf is what is given back of the draws of a guess, whether it was right
// or not judged at all.
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

// drawAttempt draws, with what waits to be given back in front. Where no try is
// left but others are being judged, it waits for them as long as the request does:
// they may be right, and many right guesses at once are no failures. leave has to
// be called when the guess is over.
func (a *Auth) drawAttempt(request, own context.Context, all []guessDraw) (d store.Decision, leave func(), err error) {
	leave = func() {}
	var draws []store.Draw
	for _, d := range all {
		if d.Rate.Burst > 0 {
			draws = append(draws, d.Draw)
		}
	}
	if err := request.Err(); err != nil { // nobody waits for it: nothing is drawn or judged
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

// drawInTurn draws once those are done that draw from the same. With
// CodeRateLimited it returns what to wait for before trying again, if anything.
func (a *Auth) drawInTurn(request, own context.Context, at *pendingGuess, draws []store.Draw) (d store.Decision, others <-chan struct{}, err error) {
	select {
	case at.turn <- struct{}{}:
		defer func() { <-at.turn }()
	case <-request.Done():
		return d, nil, retryAfter(CodeUnavailable, time.Second, request.Err())
	}
	others = a.pending.others(at) // first: what ends from here on may have given back too late for this draw
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

// tellOfRun tells an account's owner of a long run of failures, once: of those
// that draw from a bucket, one finds it at this level.
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

// tellOwner sends the notice of failures in a row. It is worked out behind the
// request's back, where its duration does not tell whether there is an account.
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

// itself is a user who is known already.
func itself(u User) func(context.Context) (User, error) {
	return func(context.Context) (User, error) { return u, nil }
}

// pendingGuesses are the guesses that are drawn and not judged yet, by what they are
// about. A right one gives its try back, so that a guess that finds none left
// waits for those before it.
type pendingGuesses struct {
	mu sync.Mutex
	of map[string]*pendingGuess
}

// pendingGuess is all that go on about one thing.
type pendingGuess struct {
	joined  int
	turn    chan struct{} // held by the one that draws
	judging int           // how many have drawn, and are not over
	ended   chan struct{} // closed when one of those has ended
}

// join adds one to the guesses about key, until leave.
func (p *pendingGuesses) join(key string) *pendingGuess {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[key] == nil {
		p.of[key] = &pendingGuess{turn: make(chan struct{}, 1), ended: make(chan struct{})}
	}
	p.of[key].joined++
	return p.of[key]
}

// leave undoes join; drawn tells that the guess had drawn.
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

// drew counts a guess that has drawn.
func (p *pendingGuesses) drew(at *pendingGuess) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.judging++
}

// others is closed when one of the guesses that have drawn ends; nil if there are
// none.
func (p *pendingGuesses) others(at *pendingGuess) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.judging == 0 {
		return nil
	}
	return at.ended
}
