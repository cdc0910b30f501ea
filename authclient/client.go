package authclient

import (
	"context"
	"sync"
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
	outage      outage
	mfa         pending
	endWait     func() // stops the timer of mfa
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

// Restore reads the store, if that was not done yet, and returns the state. It contacts
// the server only if the store holds a refresh token alone, to learn whose it is; while
// it cannot be asked, the status is StatusLoading. Calls that need a session do all of
// it themselves.
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
	c.session, c.loaded, c.outage = s.clone(), true, outage{}
	c.waitFor(pending{})
	c.unconfirmed = nil
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
