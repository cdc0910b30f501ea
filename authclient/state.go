package authclient

import (
	"context"
	"reflect"
)

// Status is the sign-in status of a client.
type Status string

// The statuses, and the calls that follow.
const (
	StatusLoading   Status = "loading"    // not known yet: signed-in or signed-out
	StatusSignedOut Status = "signed-out" // no user is signed in
	StatusSignedIn  Status = "signed-in"  // a session with a valid token, or one that can be refreshed
	StatusOffline   Status = "offline"    // the session's token has expired, and the server does not answer
	StatusMFA       Status = "mfa"        // a second factor is required for a sign-in, or for the session to continue, see Client.VerifyMFA
	StatusEnroll    Status = "enroll"     // a second factor has to be set up, see Client.EnrollTOTP
	StatusConfirm   Status = "confirm"    // the email address or phone number has to be confirmed before the first sign-in
)

// State is a snapshot, which the receiver may change. It holds no tokens.
type State struct {
	Status  Status
	User    *User    // signed-in and offline: the user; otherwise nil
	Pending *Pending // mfa, enroll and confirm: the next step
}

// listener receives states one after the other, never two at the same time.
type listener struct {
	tell    func(State)
	waiting []State
	running bool
}

// Subscribe calls f with the current state, and after every stored change of status,
// user or token. f runs on a goroutine of its own, one call at a time. It may call any
// method, and also cancel; a panic in it is logged. cancel ends the subscription; it
// does not wait for a running call.
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

// State returns the current state. It sends no request and does not read the store;
// Restore does.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.snapshot()
}

// snapshot returns the current state. The caller holds the lock.
func (c *Client) snapshot() State {
	now := c.wire.now()
	switch {
	case c.mfa.token != "" && now.Before(c.mfa.until) && (c.session == nil || !c.session.valid(now)):
		if c.mfa.enroll {
			return State{Status: StatusEnroll, Pending: c.mfa.shown()}
		}
		return State{Status: StatusMFA, Pending: c.mfa.shown()}
	case c.session != nil && c.session.User.ID == "": // the store held a refresh token alone
		return State{Status: StatusLoading}
	case c.session != nil:
		u := cloneUser(c.session.User)
		if c.outage.err != nil && !c.session.valid(now) {
			return State{Status: StatusOffline, User: &u}
		}
		return State{Status: StatusSignedIn, User: &u}
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

// changed notifies the listeners if state or token have changed. The caller holds the
// lock.
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

// queue adds a state to one listener's queue. The caller holds the lock.
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
