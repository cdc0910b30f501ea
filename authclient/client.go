package authclient

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/authmount/auth"
)

// Client acts as one person: it signs in, keeps the session, refreshes it and calls the
// endpoints in its name. It is safe for concurrent use, and needs no closing. A server
// makes one for each person it acts for, never one for all.
//
// Only the server's word ends a session: invalid_refresh_token, refresh_token_reused and
// session_ended of a refresh, and user_banned. Whatever else goes wrong leaves it, and
// the next call tries again.
type Client struct {
	wire  *wire
	store TokenStore

	writing sync.Mutex // held while store and session change together

	mu          sync.Mutex
	session     *Session
	loaded      bool
	offline     bool // the last refresh got no answer
	mfa         pending
	unconfirmed *User
	generation  uint64 // rises with every sign-in and sign-out
	flight      *flight
	listeners   map[*listener]struct{}
	told        State
	toldToken   string
}

// NewClient makes a client for the project at a URL, to which /auth/v1 is added if it
// is a bare origin. It contacts nobody. The error names every option that is wrong.
func NewClient(url string, opts ...Option) (*Client, error) {
	cfg, err := newConfig(forClient, url, opts)
	if err != nil {
		return nil, err
	}
	c := &Client{wire: newWire(cfg), store: cfg.store, listeners: map[*listener]struct{}{}, told: State{Status: StatusLoading}}
	if c.store == nil {
		c.store = &MemoryStore{}
	}
	return c, nil
}

// Restore reads the store, if that was not done yet, and returns the state. It does not
// contact the server. Calls that need a session do so themselves.
func (c *Client) Restore(ctx context.Context) (State, error) {
	err := c.load(ctx)
	return c.State(), err
}

func (c *Client) load(ctx context.Context) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	loaded := c.loaded
	c.mu.Unlock()
	if loaded {
		return nil
	}
	s, err := c.store.Load(ctx)
	if err != nil {
		return storeFailed(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.loaded = s, true
	c.changed()
	return nil
}

// storeFailed is the error of a token store, which is the application's.
func storeFailed(err error) error {
	return &Error{Code: CodeNetwork, Message: "The stored session cannot be read or written.", cause: err}
}

// adopt stores a session and makes it the client's; nil forgets it. Of a session that
// was begun before another sign-in or sign-out, nothing is kept: ok is false.
func (c *Client) adopt(ctx context.Context, s *Session, generation uint64) (ok bool, err error) {
	return c.replace(ctx, s, generation, false)
}

// replace is adopt; a new sign-in voids what else is under way.
func (c *Client) replace(ctx context.Context, s *Session, generation uint64, voids bool) (ok bool, err error) {
	ctx = context.WithoutCancel(ctx) // what the server did has been done
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	current := c.generation == generation
	if current && voids {
		c.generation++
	}
	c.mu.Unlock()
	if !current {
		return false, nil
	}
	if s != nil {
		err = c.store.Save(ctx, s)
	} else {
		err = c.store.Clear(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.loaded, c.offline = s.clone(), true, false
	c.mfa, c.unconfirmed = pending{}, nil
	c.changed()
	if err != nil {
		return true, storeFailed(err)
	}
	return true, nil
}

// signedIn keeps the session of a sign-in that began in a generation. If there was a
// sign-out meanwhile, or another sign-in, that one wins, and the session is ended.
func (c *Client) signedIn(ctx context.Context, s *Session, generation uint64) error {
	ok, err := c.replace(ctx, s, generation, true)
	if ok || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	if err := c.logout(ctx, s, ScopeLocal); err != nil {
		c.wire.log.WarnContext(ctx, "authclient: a sign-in that came too late cannot be ended", "error", err)
	}
	return &Error{Code: CodeNoSession, Message: "Another sign-in or sign-out came in between."}
}

// void makes whatever is under way come to nothing.
func (c *Client) void() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	return c.generation
}

func (c *Client) current() (*Session, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.clone(), c.generation
}

// Session is the session as it is, with tokens that may have expired; nil: nobody is
// signed in. It contacts nobody. See Token for a token to use.
func (c *Client) Session(ctx context.Context) (*Session, error) {
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	s, _ := c.current()
	return s, nil
}

// Token is an access token that is good for half a minute at least, refreshed if need
// be. Errors: CodeNoSession if nobody is signed in; what ended the session, if that just
// came out; CodeNetwork and the like, if it cannot be refreshed now.
func (c *Client) Token(ctx context.Context) (string, error) {
	if err := c.load(ctx); err != nil {
		return "", err
	}
	s, _ := c.current()
	if s == nil {
		return "", &Error{Code: CodeNoSession, Message: "Nobody is signed in."}
	}
	if s.fresh(c.wire.now()) {
		return s.AccessToken, nil
	}
	return c.renewed(ctx, s.AccessToken)
}

// Refresh renews the session now, such as after a change of roles.
func (c *Client) Refresh(ctx context.Context) error {
	if err := c.load(ctx); err != nil {
		return err
	}
	s, _ := c.current()
	if s == nil {
		return &Error{Code: CodeNoSession, Message: "Nobody is signed in."}
	}
	_, err := c.renewed(ctx, s.AccessToken)
	return err
}

// renewed returns an access token in place of one that will not do. One caller
// refreshes for all, apart from any one's context.
func (c *Client) renewed(ctx context.Context, old string) (string, error) {
	c.mu.Lock()
	switch {
	case c.session == nil:
		c.mu.Unlock()
		return "", &Error{Code: CodeNoSession, Message: "Nobody is signed in."}
	case c.session.AccessToken != old && c.session.fresh(c.wire.now()):
		defer c.mu.Unlock()
		return c.session.AccessToken, nil
	}
	f := c.flight
	if f == nil {
		f = &flight{done: make(chan struct{})}
		c.flight = f
		apart, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
		f.cancel = cancel
		go c.fly(apart, f)
	}
	f.waiting++
	c.mu.Unlock()
	select {
	case <-ctx.Done():
		c.leave(f)
		return "", noAnswer(ctx.Err())
	case <-f.done:
	}
	s, _ := c.current()
	switch {
	case f.err != nil:
		return "", f.err
	case s == nil:
		return "", &Error{Code: CodeNoSession, Message: "Nobody is signed in."}
	}
	return s.AccessToken, nil
}

func (c *Client) fly(ctx context.Context, f *flight) {
	defer f.cancel()
	f.err = c.refresh(ctx)
	c.mu.Lock()
	if c.flight == f {
		c.flight = nil
	}
	c.mu.Unlock()
	close(f.done)
}

// leave gives a refresh up that nobody waits for any more, so that the next caller does
// not wait for a server that hangs. Whatever came of it: asked again, the server gives
// the same successor.
func (c *Client) leave(f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiting--; f.waiting > 0 {
		return
	}
	f.cancel()
	if c.flight == f {
		c.flight = nil
	}
}

// refresh trades the refresh token. The store is read before: another process may have
// been quicker, or have signed out. The server answers the same successor to whoever
// asks a second time, so that it may be repeated after a lost answer.
func (c *Client) refresh(ctx context.Context) error {
	mine, generation := c.current()
	if mine == nil {
		return &Error{Code: CodeNoSession, Message: "Nobody is signed in."}
	}
	if done, err := c.adoptStored(ctx, mine, generation); done {
		return err
	}
	if s, _ := c.current(); s != nil {
		mine = s
	}
	asked := c.wire.now()
	var w sessionWire
	err := c.wire.do(ctx, call{method: http.MethodPost, path: "/refresh", body: map[string]string{"refresh_token": mine.RefreshToken}, repeat: repeatAlways}, &w)
	if err == nil {
		var s *Session
		if s, err = w.session(asked); err == nil {
			_, err := c.adopt(ctx, s, generation)
			return err
		}
	}
	if endsSession(err) {
		if done, storeErr := c.adoptStored(ctx, mine, generation); done {
			return storeErr
		}
		_, _ = c.adopt(ctx, nil, generation)
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation == generation {
		c.offline = true
		c.changed()
	}
	return err
}

// adoptStored takes what another process has stored meanwhile. done: there is nothing
// left to refresh.
func (c *Client) adoptStored(ctx context.Context, mine *Session, generation uint64) (done bool, err error) {
	stored, err := c.store.Load(ctx)
	switch {
	case err != nil:
		c.wire.log.WarnContext(ctx, "authclient: the stored session cannot be read", "error", err)
		return false, nil
	case stored == nil:
		_, err = c.adopt(ctx, nil, generation)
		return true, errors.Join(&Error{Code: CodeNoSession, Message: "Nobody is signed in."}, err)
	case stored.RefreshToken == mine.RefreshToken:
		return false, nil
	}
	_, err = c.adopt(ctx, stored, generation)
	return stored.fresh(c.wire.now()), err
}

// as sends a call in the name of who is signed in. A token that the server does not take
// is refreshed once: it may be stale (auth.CodeTokenStale), or a clock wrong; a refresh
// also tells for sure whether the session has ended.
func (c *Client) as(ctx context.Context, k call, out any) error {
	token, err := c.Token(ctx)
	if err != nil {
		return err
	}
	k.bearer = token
	err = c.wire.do(ctx, k, out)
	if isUnauthorized(err) {
		if k.bearer, err = c.renewed(ctx, token); err != nil {
			return err
		}
		err = c.wire.do(ctx, k, out)
	}
	if errors.Is(err, auth.CodeUserBanned) && endsSession(err) {
		_, generation := c.current()
		_, _ = c.adopt(ctx, nil, generation)
	}
	return err
}

func isUnauthorized(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusUnauthorized &&
		(e.Code == auth.CodeTokenStale || e.Code == auth.CodeBadToken || e.Code == auth.CodeSessionEnded)
}

// signIn sends a call that completes a sign-in, or says which second factor it lacks.
func (c *Client) signIn(ctx context.Context, k call) (*Session, error) {
	if err := c.load(ctx); err != nil {
		c.wire.log.WarnContext(ctx, "authclient: the stored session cannot be read", "error", err)
	}
	_, generation := c.current()
	asked := c.wire.now()
	k.method = http.MethodPost
	var w sessionWire
	if err := c.wire.do(ctx, k, &w); err != nil {
		c.await(err, generation)
		return nil, err
	}
	s, err := w.session(asked)
	if err != nil {
		return nil, err
	}
	return orNil(s, c.signedIn(ctx, s, generation))
}

// await notes that a sign-in waits for a second factor.
func (c *Client) await(err error, generation uint64) {
	var e *Error
	if !errors.As(err, &e) || e.mfa.token == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation == generation {
		c.mfa = e.mfa
		c.mfa.until = c.wire.now().Add(max(e.mfa.life, time.Minute))
		c.changed()
	}
}

// waiting is the token of a sign-in that waits for a second factor, if there is one.
func (c *Client) waiting() (pending, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mfa, c.mfa.token != "" && c.wire.now().Before(c.mfa.until)
}

// Scope says which sessions a sign-out ends.
type Scope string

// The scopes.
const (
	ScopeLocal  Scope = "local"  // this one
	ScopeOthers Scope = "others" // all but this one
	ScopeGlobal Scope = "global" // all
)

// SignOut ends sessions; an empty scope is ScopeLocal. But for ScopeOthers the client is
// signed out whatever the server says: an error tells that the session may live on
// there. Signed out already is no error.
func (c *Client) SignOut(ctx context.Context, scope Scope) error {
	if err := c.load(ctx); err != nil && scope == ScopeOthers {
		return err
	}
	s, _ := c.current()
	if scope == ScopeOthers {
		return c.as(ctx, call{method: http.MethodPost, path: "/logout", query: map[string][]string{"scope": {string(scope)}}, repeat: repeatAlways}, nil)
	}
	_, storeErr := c.adopt(ctx, nil, c.void())
	if s == nil {
		return storeErr
	}
	return errors.Join(storeErr, c.logout(ctx, s, scope))
}

// logout ends a session by its refresh token, which does not expire within minutes. One
// that has ended before is no error.
func (c *Client) logout(ctx context.Context, s *Session, scope Scope) error {
	k := call{method: http.MethodPost, path: "/logout", body: map[string]string{"refresh_token": s.RefreshToken}, repeat: repeatAlways}
	if scope != "" {
		k.query = map[string][]string{"scope": {string(scope)}}
	}
	err := c.wire.do(ctx, k, nil)
	if endsSession(err) {
		return nil
	}
	return err
}
