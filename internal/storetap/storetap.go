// Package storetap intercepts the calls to a store in tests. A test can run code before
// and after each call, change a change's preconditions, and inject faults: the store
// fails, waits or loses its response, or the caller leaves at any moment.
//
//	tap := storetap.New(memstore.New())
//	a, err := auth.New(ctx, tap, …)
//	tap.Reset(storetap.Hooks{Before: func(ctx context.Context, method string, n int) {
//		if n == 2 { … } // another caller is faster than the second call
//	}})
package storetap

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

// Hooks are functions that a Tap calls. Each may be nil. They run in the goroutine of the
// intercepted call, without a lock. Calls to the tap with a hook's context are neither
// intercepted nor counted.
type Hooks struct {
	// Skip reports whether a call passes without hooks and uncounted.
	Skip func(ctx context.Context, method string) bool
	// Before runs before the n-th call since Reset; the first is 1.
	Before func(ctx context.Context, method string, n int)
	// Edit may change a call's preconditions before the store receives them. Replace the
	// values they point to, because those belong to the caller.
	Edit func(method string, c *store.Change)
	// After runs after the n-th call with the store's own error, before a fault
	// replaces it.
	After func(ctx context.Context, method string, n int, err error)

	// Fault returns the fault of the n-th call. It runs after Before and Edit.
	Fault func(ctx context.Context, method string, n int) Fault
	// Leave cancels the caller's context. The faults LeavesBefore, LeavesDuring and
	// LeavesAfter need it.
	Leave func()
	// Release ends Waits when it is closed.
	Release <-chan struct{}

	// Draws may change the draws from the limits. It must return as many.
	Draws func(draws []store.Draw) []store.Draw
	// Took runs after the store has checked the draws, with or without a fault.
	Took func(draws []store.Draw, d store.Decision)

	// Background also runs the hooks for calls that no request makes: ClaimMessages,
	// FinishMessage, AddEvents, SweepEvents, AddCounts, Settings, and the calls that run
	// jobs. By default they pass without hooks and uncounted.
	Background bool
}

// Tap is a store that forwards every call to another store and runs hooks around it.
// store.Capability finds the optional interfaces of the other store, and their calls run
// the hooks, too. Other methods are not forwarded. A Tap is safe for concurrent use.
type Tap struct {
	inner store.Store
	chain store.Store // returned by Unwrap: the optional interfaces, one link each

	mu    sync.Mutex
	hooks Hooks
	n     int
}

// New returns a tap without hooks.
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

// Reset sets the hooks and restarts the count.
func (t *Tap) Reset(h Hooks) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hooks, t.n = h, 0
}

// Calls returns the number of calls since Reset.
func (t *Tap) Calls() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

// Inner returns the tapped store, for tests that bypass the tap.
func (t *Tap) Inner() store.Store { return t.inner }

// Unwrap leads to the optional interfaces, not to the inner store.
func (t *Tap) Unwrap() store.Store { return t.chain }

// link is a store with one optional interface; next has the others.
type link struct {
	store.Store
	next store.Store
}

func (l *link) Unwrap() store.Store { return l.next }

type insideKey struct{}

// enter runs the hooks before a call and returns the function to run after it, which
// gets pointers to the call's error and its other results. c is nil if the call changes
// nothing; ctx may be replaced.
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

// Contract returns the inner store's contract. It runs no hooks.
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
	if c.Draw.Rate.Burst > 0 { // as in Take
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

// RedeemCode is store.Store's.
func (t *Tap) RedeemCode(ctx context.Context, c store.CodeAttempt) (tok store.Token, u store.User, err error) {
	defer t.enter(&ctx, "RedeemCode", &c.Change)(&err, &tok, &u)
	return t.inner.RedeemCode(ctx, c)
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

// AddAuthentication is store.Store's.
func (t *Tap) AddAuthentication(ctx context.Context, c store.AddAuthentication) (sess store.Session, u store.User, err error) {
	defer t.enter(&ctx, "AddAuthentication", &c.Change)(&err, &sess, &u)
	return t.inner.AddAuthentication(ctx, c)
}

// UserRecords is store.Store's.
func (t *Tap) UserRecords(ctx context.Context, userID string, now time.Time) (h store.UserRecords, err error) {
	defer t.enter(&ctx, "UserRecords", nil)(&err, &h)
	return t.inner.UserRecords(ctx, userID, now)
}

// Account is store.Store's.
func (t *Tap) Account(ctx context.Context, key store.UserKey, now time.Time) (c store.Credentials, h store.UserRecords, err error) {
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
