// Package storetap lets a test in between a caller and its store: before and
// after each call, at what a change is conditional on, and as a store that fails,
// waits, loses its answer, or whose caller leaves at any moment.
//
//	tap := storetap.New(memstore.New())
//	a, err := auth.New(ctx, tap, …)
//	tap.Reset(storetap.Hooks{Before: func(ctx context.Context, method string, n int) {
//		if n == 2 { … } // somebody else is faster than the second call
//	}})
package storetap

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

// Hooks are what a Tap calls. All of them may be nil, and are called in the
// goroutine of the call that they are about, without a lock. Calls to the tap
// with the context that a hook is given pass unseen.
type Hooks struct {
	// Skip tells which calls are not of interest: they pass unseen and uncounted.
	Skip func(ctx context.Context, method string) bool
	// Before comes before the n-th call since Reset; the first is 1.
	Before func(ctx context.Context, method string, n int)
	// Edit may change the conditions of a call before the store gets them. What
	// they point to belongs to the caller: replace it, do not write into it.
	Edit func(method string, c *store.Change)
	// After comes after the n-th call, with the error that the store returned,
	// whatever a fault puts in its place.
	After func(ctx context.Context, method string, n int, err error)

	// Fault says what goes wrong with the n-th call, after Before and Edit.
	Fault func(ctx context.Context, method string, n int) Fault
	// Leave cancels the context of whoever calls; it is needed by the faults of
	// that name.
	Leave func()
	// Release ends Waits when it is closed.
	Release <-chan struct{}

	// Draws may change what is drawn from the limits; as many have to come back.
	Draws func(draws []store.Draw) []store.Draw
	// Took comes after draws that the store judged, whatever a fault makes of it.
	Took func(draws []store.Draw, d store.Decision)

	// Background makes the hooks see what no request does, too: ClaimMessages,
	// FinishMessage, AddEvents, SweepEvents, AddCounts, Settings, and what works jobs off,
	// which otherwise pass unseen and uncounted.
	Background bool
}

// Tap is a store that hands every call on to another one, with hooks around it.
// It has the optional interfaces that the other one has, found by store.Capability, and
// all of their calls pass the hooks, too. Other methods are not passed on. Safe for concurrent use.
type Tap struct {
	inner store.Store
	chain store.Store // what Unwrap returns: the optional interfaces, one link each

	mu    sync.Mutex
	hooks Hooks
	n     int
}

// New makes a tap without hooks.
func New(inner store.Store) *Tap {
	t := &Tap{inner: inner}
	end := link{Store: t}
	if c, ok := store.Capability[store.FactorStore](inner); ok {
		end.next = &factors{end, t, c}
	}
	if c, ok := store.Capability[store.Journal](inner); ok {
		end.next = &journal{end, t, c}
	}
	if c, ok := store.Capability[store.ProjectStore](inner); ok {
		end.next = &project{end, t, c}
	}
	if c, ok := store.Capability[store.AdminStore](inner); ok {
		end.next = &admin{end, t, c}
	}
	t.chain = end.next
	return t
}

// Reset sets the hooks and begins to count anew.
func (t *Tap) Reset(h Hooks) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hooks, t.n = h, 0
}

// Calls is how many calls there were since Reset.
func (t *Tap) Calls() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

// Inner is the store behind the tap, for those who interfere.
func (t *Tap) Inner() store.Store { return t.inner }

// Unwrap leads to the optional interfaces, not to the store behind.
func (t *Tap) Unwrap() store.Store { return t.chain }

// link is a store with one optional interface; next has the others.
type link struct {
	store.Store
	next store.Store
}

func (l *link) Unwrap() store.Store { return l.next }

type insideKey struct{}

// enter runs what comes before a call and returns what comes after it, which gets
// pointers to its error and its other results. c is nil if nothing changes; ctx
// may become another.
func (t *Tap) enter(ctx *context.Context, method string, c *store.Change) func(err *error, results ...any) {
	pass := func(*error, ...any) {}
	if (*ctx).Value(insideKey{}) != nil {
		return pass
	}
	inside := context.WithValue(*ctx, insideKey{}, true)
	t.mu.Lock()
	h := t.hooks
	t.mu.Unlock()
	if !h.Background && slices.Contains([]string{"ClaimMessages", "FinishMessage", "AddEvents", "SweepEvents", "AddCounts", "Settings", "ClaimJob", "JobChunk", "FinishJobChunk"}, method) {
		return pass
	}
	if h.Skip != nil && h.Skip(inside, method) {
		return pass
	}
	t.mu.Lock()
	t.n++
	n := t.n
	t.mu.Unlock()
	if h.Before != nil {
		h.Before(inside, method, n)
	}
	if h.Edit != nil && c != nil {
		h.Edit(method, c)
	}
	end := func(*error, []any) {}
	if h.Fault != nil {
		end = h.begin(h.Fault(inside, method, n), ctx)
	}
	return func(err *error, results ...any) {
		if h.After != nil {
			h.After(inside, method, n, *err)
		}
		end(err, results)
	}
}

// Contract is the other store's; it says nothing about accounts and is no call.
func (t *Tap) Contract() int { return t.inner.Contract() }

// CreateUser is store.Store's.
func (t *Tap) CreateUser(ctx context.Context, c store.CreateUser) (u store.User, err error) {
	defer t.enter(&ctx, "CreateUser", &c.Change)(&err, &u)
	return t.inner.CreateUser(ctx, c)
}

// User is store.Store's.
func (t *Tap) User(ctx context.Context, key store.UserKey) (u store.User, err error) {
	defer t.enter(&ctx, "User", nil)(&err, &u)
	return t.inner.User(ctx, key)
}

// Credentials is store.Store's.
func (t *Tap) Credentials(ctx context.Context, key store.UserKey) (c store.Credentials, err error) {
	defer t.enter(&ctx, "Credentials", nil)(&err, &c)
	return t.inner.Credentials(ctx, key)
}

// UpdateUser is store.Store's.
func (t *Tap) UpdateUser(ctx context.Context, c store.UpdateUser) (u store.User, err error) {
	defer t.enter(&ctx, "UpdateUser", &c.Change)(&err, &u)
	return t.inner.UpdateUser(ctx, c)
}

// DeleteUser is store.Store's.
func (t *Tap) DeleteUser(ctx context.Context, c store.DeleteUser) (err error) {
	defer t.enter(&ctx, "DeleteUser", &c.Change)(&err)
	return t.inner.DeleteUser(ctx, c)
}

// CreateSession is store.Store's.
func (t *Tap) CreateSession(ctx context.Context, c store.CreateSession) (u store.User, err error) {
	defer t.enter(&ctx, "CreateSession", &c.Change)(&err, &u)
	return t.inner.CreateSession(ctx, c)
}

// Session is store.Store's.
func (t *Tap) Session(ctx context.Context, id string, now time.Time) (s store.Session, u store.User, err error) {
	defer t.enter(&ctx, "Session", nil)(&err, &s, &u)
	return t.inner.Session(ctx, id, now)
}

// AdvanceSession is store.Store's.
func (t *Tap) AdvanceSession(ctx context.Context, c store.Advance) (s store.Session, u store.User, err error) {
	edit, took := t.taken(ctx)
	defer t.enter(&ctx, "AdvanceSession", &c.Change)(&err, &s, &u)
	if c.Draw.Rate.Burst > 0 { // as of Take
		draws := edit([]store.Draw{c.Draw})
		c.Draw = store.Draw{}
		if len(draws) > 0 {
			c.Draw = draws[0]
		}
		defer func() {
			if err == nil {
				took(draws, store.Decision{Allowed: true})
			}
		}()
	}
	return t.inner.AdvanceSession(ctx, c)
}

// Sessions is store.Store's.
func (t *Tap) Sessions(ctx context.Context, userID string, now time.Time) (list []store.Session, err error) {
	defer t.enter(&ctx, "Sessions", nil)(&err, &list)
	return t.inner.Sessions(ctx, userID, now)
}

// RevokeSessions is store.Store's.
func (t *Tap) RevokeSessions(ctx context.Context, c store.RevokeSessions) (ids []string, err error) {
	defer t.enter(&ctx, "RevokeSessions", &c.Change)(&err, &ids)
	return t.inner.RevokeSessions(ctx, c)
}

// PutToken is store.Store's.
func (t *Tap) PutToken(ctx context.Context, c store.PutToken) (err error) {
	defer t.enter(&ctx, "PutToken", &c.Change)(&err)
	return t.inner.PutToken(ctx, c)
}

// PeekToken is store.Store's.
func (t *Tap) PeekToken(ctx context.Context, p store.Purpose, hash []byte, now time.Time) (tok store.Token, err error) {
	defer t.enter(&ctx, "PeekToken", nil)(&err, &tok)
	return t.inner.PeekToken(ctx, p, hash, now)
}

// RedeemToken is store.Store's.
func (t *Tap) RedeemToken(ctx context.Context, c store.Redemption) (tok store.Token, u store.User, err error) {
	defer t.enter(&ctx, "RedeemToken", &c.Change)(&err, &tok, &u)
	return t.inner.RedeemToken(ctx, c)
}

// TryCode is store.Store's.
func (t *Tap) TryCode(ctx context.Context, c store.TryCode) (tok store.Token, u store.User, err error) {
	defer t.enter(&ctx, "TryCode", &c.Change)(&err, &tok, &u)
	return t.inner.TryCode(ctx, c)
}

// Take is store.Store's.
func (t *Tap) Take(ctx context.Context, draws []store.Draw, now time.Time) (d store.Decision, err error) {
	edit, took := t.taken(ctx)
	defer t.enter(&ctx, "Take", nil)(&err, &d)
	draws = edit(draws)
	if d, err = t.inner.Take(ctx, draws, now); err == nil {
		took(draws, d)
	}
	return d, err
}

// Sweep is store.Store's.
func (t *Tap) Sweep(ctx context.Context, now time.Time, limit int) (n int, err error) {
	defer t.enter(&ctx, "Sweep", nil)(&err, &n)
	return t.inner.Sweep(ctx, now, limit)
}

// AddProof is store.Store's.
func (t *Tap) AddProof(ctx context.Context, c store.AddProof) (sess store.Session, u store.User, err error) {
	defer t.enter(&ctx, "AddProof", &c.Change)(&err, &sess, &u)
	return t.inner.AddProof(ctx, c)
}

// Held is store.Store's.
func (t *Tap) Held(ctx context.Context, userID string, now time.Time) (h store.Held, err error) {
	defer t.enter(&ctx, "Held", nil)(&err, &h)
	return t.inner.Held(ctx, userID, now)
}

// Account is store.Store's.
func (t *Tap) Account(ctx context.Context, key store.UserKey, now time.Time) (c store.Credentials, h store.Held, err error) {
	defer t.enter(&ctx, "Account", nil)(&err, &c, &h)
	return t.inner.Account(ctx, key, now)
}

// EverOwned is store.Store's.
func (t *Tap) EverOwned(ctx context.Context) (owned bool, err error) {
	defer t.enter(&ctx, "EverOwned", nil)(&err, &owned)
	return t.inner.EverOwned(ctx)
}

// Ping is store.Store's.
func (t *Tap) Ping(ctx context.Context) (err error) {
	defer t.enter(&ctx, "Ping", nil)(&err)
	return t.inner.Ping(ctx)
}
