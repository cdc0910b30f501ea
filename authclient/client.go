package authclient

import (
	"context"
	"sync"
)

// Client acts as one user: it signs in, stores the session, refreshes it and calls the
// endpoints with it. It is safe for concurrent use, and needs no closing. A server must
// use one Client for each user, never one for all.
//
// Only the server ends a session: a refresh that answers invalid_refresh_token,
// refresh_token_reused or session_ended, or any call that answers user_banned. After
// any other error the session remains, and the next call tries again.
type Client struct {
	wire  *wire
	store TokenStore

	writing sync.Mutex // held while store and session change

	mu          sync.Mutex
	session     *Session
	loaded      bool
	outage      outage
	mfa         pending
	endWait     func() // stops mfa's timer
	unconfirmed *User
	generation  uint64 // incremented by every sign-in and sign-out
	flight      *flight
	listeners   map[*listener]struct{}
	told        State
	toldToken   string
}

// NewClient returns a client for the project at a URL. If the URL is a bare origin,
// /auth/v1 is added. NewClient sends no request. The error names every invalid option.
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

// Restore reads the store, unless that was done before, and returns the state. It calls
// the server only if the store holds nothing but a refresh token, to read its user.
// While the server does not answer, the status is StatusLoading. Calling Restore is
// optional: calls that need a session restore it themselves.
func (c *Client) Restore(ctx context.Context) (State, error) {
	err := c.load(ctx)
	if s, _ := c.current(); err == nil && s != nil && s.User.ID == "" {
		_, err = c.renewed(ctx, s.AccessToken)
	}
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

// storeFailed wraps an error of a token store, which is the application's.
func storeFailed(err error) error {
	return &Error{Code: CodeStorage, Message: "The stored session cannot be read or written.", cause: err}
}

// adopt stores a session and makes it the client's; nil deletes it. ok is false if
// there was another sign-in or sign-out since generation; then nothing is stored.
func (c *Client) adopt(ctx context.Context, s *Session, generation uint64) (ok bool, err error) {
	return c.replace(ctx, s, generation, false)
}

// replace is adopt. If voids is set, the new session also cancels calls that are under
// way.
func (c *Client) replace(ctx context.Context, s *Session, generation uint64, voids bool) (ok bool, err error) {
	ctx = context.WithoutCancel(ctx) // the server has carried out its part
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
	c.session, c.loaded, c.outage = s.clone(), true, outage{}
	c.waitFor(pending{})
	c.unconfirmed = nil
	c.changed()
	if err != nil {
		return true, storeFailed(err)
	}
	return true, nil
}

// signedIn stores the session of a sign-in that started in a generation. If there was
// another sign-in or sign-out since then, that takes precedence, and signedIn ends the
// new session.
func (c *Client) signedIn(ctx context.Context, s *Session, generation uint64) error {
	ok, err := c.replace(ctx, s, generation, true)
	if ok || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	if err := c.logout(ctx, s, ScopeLocal); err != nil {
		c.wire.log.WarnContext(ctx, "authclient: the session of an outdated sign-in cannot be revoked", "error", err)
	}
	return &Error{Code: CodeNoSession, Message: "Another sign-in or sign-out happened in the meantime."}
}

// void discards the results of all calls under way, and returns the new generation.
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

// Session returns the session, or nil if no user is signed in. Its tokens may have
// expired. It sends no request. See Token for a token to use.
func (c *Client) Session(ctx context.Context) (*Session, error) {
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	s, _ := c.current()
	return s, nil
}
