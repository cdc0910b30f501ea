package authclient

import (
	"context"
	"reflect"
)

// Status is what a client knows of who is signed in.
type Status string

// The statuses, and what leads on from them.
const (
	StatusLoading   Status = "loading"    // it is not known yet: signed-in or signed-out
	StatusSignedOut Status = "signed-out" // nobody
	StatusSignedIn  Status = "signed-in"  // a session with a token, or one that can be had
	StatusOffline   Status = "offline"    // a session whose token has expired, and the server cannot be asked
	StatusMFA       Status = "mfa"        // a second factor is asked for, see Client.VerifyMFA
	StatusEnroll    Status = "enroll"     // a second factor has to be set up, see Client.EnrollTOTP
	StatusConfirm   Status = "confirm"    // an address has to be confirmed before the first sign-in
)

// State is a snapshot, the receiver's own. It holds no tokens.
type State struct {
	Status  Status
	User    *User    // signed-in and offline: who; else nil
	Pending *Pending // mfa, enroll and confirm: what is waited for
}

// listener gets states one after the other, never two at once.
type listener struct {
	tell    func(State)
	waiting []State
	running bool
}

// Subscribe has a function told of the present state, and of every change of status,
// user or token after it is stored. It runs on a goroutine of its own, one call at a
// time, so that it may call any method, the returned one included; a panic in it is
// logged. The returned function ends that; a call under way is not waited for.
func (c *Client) Subscribe(f func(State)) (cancel func()) {
	l := &listener{tell: f}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners[l] = struct{}{}
	c.queue(l, c.snapshot())
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listeners, l)
		l.waiting = nil
	}
}

// State is the present state. It asks nobody; Restore reads the store.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.snapshot()
}

// snapshot is the state. The caller holds the lock.
func (c *Client) snapshot() State {
	now := c.wire.now()
	switch {
	case c.session != nil && c.session.User.ID == "": // a refresh token alone was kept
		return State{Status: StatusLoading}
	case c.session != nil:
		u := cloneUser(c.session.User)
		if c.outage.err != nil && !c.session.valid(now) {
			return State{Status: StatusOffline, User: &u}
		}
		return State{Status: StatusSignedIn, User: &u}
	case c.mfa.token != "" && now.Before(c.mfa.until) && c.mfa.enroll:
		return State{Status: StatusEnroll, Pending: c.mfa.shown()}
	case c.mfa.token != "" && now.Before(c.mfa.until):
		return State{Status: StatusMFA, Pending: c.mfa.shown()}
	case c.unconfirmed != nil:
		return State{Status: StatusConfirm, Pending: &Pending{Email: orEmpty(c.unconfirmed.Email), Phone: orEmpty(c.unconfirmed.Phone)}}
	case !c.loaded:
		return State{Status: StatusLoading}
	}
	return State{Status: StatusSignedOut}
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// changed tells the listeners, if there is something to tell. The caller holds the lock.
func (c *Client) changed() {
	s, token := c.snapshot(), ""
	if c.session != nil {
		token = c.session.AccessToken
	}
	if token == c.toldToken && reflect.DeepEqual(s, c.told) {
		return
	}
	c.told, c.toldToken = s, token
	for l := range c.listeners {
		c.queue(l, c.snapshot())
	}
}

// queue has one listener told. The caller holds the lock.
func (c *Client) queue(l *listener, s State) {
	l.waiting = append(l.waiting, s)
	if !l.running {
		l.running = true
		go c.deliver(l)
	}
}

func (c *Client) deliver(l *listener) {
	for {
		c.mu.Lock()
		if len(l.waiting) == 0 {
			l.running = false
			c.mu.Unlock()
			return
		}
		s := l.waiting[0]
		l.waiting = l.waiting[1:]
		c.mu.Unlock()
		c.guarded(l.tell, s)
	}
}

func (c *Client) guarded(tell func(State), s State) {
	defer func() {
		if v := recover(); v != nil {
			c.wire.log.ErrorContext(context.Background(), "authclient: a listener panicked", "panic", v)
		}
	}()
	tell(s)
}
