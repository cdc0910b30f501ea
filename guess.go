package auth

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Every secret that somebody could guess is judged here: passwords, second
// factors, recovery codes, phone codes.
//
//   - A try is drawn before the secret is judged, in a context that ends with
//     nobody's request. What was judged has been counted, whatever became of the
//     client.
//   - A right guess gives its try back, and ends the run of failures before it. So
//     does one that nothing was judged of.
//   - A wrong one is told (EventSignInFailed), and long runs are told to the
//     account's owner.

const (
	guessTimeout = 30 * time.Second // from the draw to the end
	longestWait  = time.Hour        // that a refusal tells of: who is closed out for longer has other ways in
	tellAtRun    = 20               // failures in a row, of which the owner is told
)

// stake is what a guess draws from one bucket.
type stake struct {
	Draw
	whole bool // a right guess fills the bucket, or else gives back what it drew
	run   bool // it counts failures in a row
	kept  bool // it counts right guesses, too
}

// stake makes the stake of one try.
func (a *Auth) stake(r Rate, limit, value string) stake {
	return stake{Draw: a.draw(r, limit, value, 1)}
}

func (s stake) wholly() stake { s.whole = true; return s }

// inARow is a stake that counts failures in a row. limit and value name what was
// guessed at; device, unless it is empty, a device that has signed in to the
// account before. Its failures count apart, so that strangers cannot close the
// account to it.
func (a *Auth) inARow(limit, value, device string) stake {
	if device != "" {
		limit, value = limit+"-device", value+" "+device
	}
	s := a.stake(a.cfg.limits.ConsecutiveFailures, limit+"-run", value).wholly()
	s.run = true
	return s
}

// tries is what a guess is about, and what it draws before it is judged. The
// first stake names what is guessed at.
type tries struct {
	stakes []stake
	method string // of the event; none: no sign-in failed
	userID string // likewise; may be empty
	owner  func(ctx context.Context) (User, error)
	opens  []stake // a right guess also fills these buckets
}

// guess draws, has a secret judged, and settles. judge gets a context that no
// request ends, and calls draw right before it judges; a refusal, which draw
// returns, it passes on. It returns nil for a right guess, and CodeInvalid… for a
// wrong one; after any other error nothing was judged, or what was right could
// not be carried out.
func (a *Auth) guess(ctx context.Context, t tries, judge func(ctx context.Context, draw func() error) error) error {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var (
		d     Decision
		drawn bool
		leave = func() {}
	)
	defer func() { leave() }() // once it is settled
	timer := time.AfterFunc(guessTimeout, cancel)
	defer timer.Stop()
	err := judge(own, func() error {
		timer.Reset(guessTimeout) // however long it waited for its turn
		var err error
		if d, leave, err = a.drawTries(ctx, own, t.stakes); err != nil {
			return err
		}
		drawn = true
		return nil
	})
	switch {
	case !drawn && err == nil:
		return fail(CodeInternal, errors.New("a guess was judged that was not drawn"))
	case !drawn:
		return err
	case err == nil:
		a.returns.add(settled(slices.Concat(t.stakes, t.opens), true)...)
	case wrongGuess(err):
		told := context.WithoutCancel(ctx)
		if t.method != "" {
			a.emit(told, Event{Type: EventSignInFailed, UserID: t.userID, Method: t.method, Err: err})
		}
		a.tellOfRun(told, t, d)
	default:
		a.returns.add(settled(t.stakes, false)...)
	}
	return err
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

// settled is what is given back of stakes.
func settled(stakes []stake, right bool) []Draw {
	var list []Draw
	for _, s := range stakes {
		if right && s.kept {
			continue
		}
		s.Cost = -1
		if right && s.whole {
			s.Cost = -s.Rate.Burst
		}
		list = append(list, s.Draw)
	}
	return list
}

// drawTries draws, with what waits to be given back in front. Where no try is
// left but others are being judged, it waits for them as long as the request does:
// they may be right, and many right guesses at once are no failures. leave has to
// be called when the guess is over.
func (a *Auth) drawTries(request, own context.Context, stakes []stake) (d Decision, leave func(), err error) {
	leave = func() {}
	var draws []Draw
	for _, s := range stakes {
		if s.Rate.Burst > 0 {
			draws = append(draws, s.Draw)
		}
	}
	if err := request.Err(); err != nil { // nobody waits for it: nothing is drawn or judged
		return d, leave, retryAfter(CodeUnavailable, time.Second, err)
	}
	if len(draws) == 0 {
		return Decision{Allowed: true}, leave, nil
	}
	about := stakes[0].Key
	at := a.flights.hold(about)
	for {
		var others <-chan struct{}
		if d, others, err = a.drawInTurn(request, own, at, draws); err == nil {
			return d, func() { a.flights.leave(about, true) }, nil
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
	a.flights.leave(about, false)
	return d, leave, err
}

// drawInTurn draws once those are done that draw from the same. With
// CodeRateLimited it returns what to wait for before trying again, if anything.
func (a *Auth) drawInTurn(request, own context.Context, at *flight, draws []Draw) (d Decision, others <-chan struct{}, err error) {
	select {
	case at.turn <- struct{}{}:
		defer func() { <-at.turn }()
	case <-request.Done():
		return d, nil, retryAfter(CodeUnavailable, time.Second, request.Err())
	}
	back := a.returns.pick(returnsAtOnce, draws)
	d, err = a.store.Take(own, append(back, draws...), a.now())
	if err != nil {
		return d, nil, storeFailed(err)
	}
	d.Remaining = d.Remaining[min(len(back), len(d.Remaining)):]
	if d.Allowed {
		a.flights.drew(at)
		return d, nil, nil
	}
	a.returns.add(back...)
	return d, a.flights.others(at), retryAfter(CodeRateLimited, min(d.RetryAfter, longestWait), nil)
}

// tellOfRun tells an account's owner of a long run of failures, once: of those
// that draw from a bucket, one finds it at this level.
func (a *Auth) tellOfRun(ctx context.Context, t tries, d Decision) {
	left := d.Remaining
	for _, s := range t.stakes {
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
	a.outbox.prepare(asked, KindManyFailedSignIns, func(background context.Context) (*SealedMessage, error) {
		u, err := owner(background)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if !u.EmailVerified() {
			return nil, nil
		}
		c := a.newChange(asked, byStranger("failures in a row"))
		a.enclose(asked, &c, outgoing{Kind: KindManyFailedSignIns, To: u.Email}, u, nil)
		if _, err := a.store.UpdateUser(background, UpdateUser{Change: c, UserID: u.ID}); errors.Is(err, ErrNotFound) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		return &c.Messages[0], nil
	})
}

// deviceOf is the device that asks, if the user has signed in on it before.
func deviceOf(ctx context.Context, c Credentials) string {
	if !c.KnownDevice {
		return ""
	}
	return clientFrom(ctx).Device
}

// onThisDevice asks for Credentials.KnownDevice, too.
func onThisDevice(ctx context.Context, key UserKey) UserKey {
	key.Device = clientFrom(ctx).Device
	return key
}

// knownDevice is deviceOf for flows that have not read the credentials.
func (a *Auth) knownDevice(ctx context.Context, userID string) (string, error) {
	key := onThisDevice(ctx, ByID(userID))
	if key.Device == "" {
		return "", nil
	}
	c, err := a.store.Credentials(ctx, key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return "", storeFailed(err)
	}
	return deviceOf(ctx, c), nil
}

// itself is a user who is known already.
func itself(u User) func(context.Context) (User, error) {
	return func(context.Context) (User, error) { return u, nil }
}
