package authclient

import (
	"context"
	"errors"
	"net/http"
)

// renewed returns an access token in place of an unusable one. One refresh serves all
// callers, independently of the context of each.
func (c *Client) renewed(ctx context.Context, old string) (string, error) {
	c.mu.Lock()
	switch {
	case c.session == nil:
		c.mu.Unlock()
		return "", &Error{Code: CodeNoSession, Message: "No user is signed in."}
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
		return "", &Error{Code: CodeNoSession, Message: "No user is signed in."}
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

// leave cancels a refresh that no caller waits for any more, so that the next caller
// does not wait for a server that hangs. Cancelling is safe: the server returns the
// same successor when asked again.
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

// refresh exchanges the refresh token. It reads the store first, because another
// process may have refreshed the session or signed out. The call may be repeated after
// a lost answer, because the server returns the same successor. If a second factor has
// become required, the session waits for it.
func (c *Client) refresh(ctx context.Context) error {
	mine, generation := c.current()
	if mine == nil {
		return &Error{Code: CodeNoSession, Message: "No user is signed in."}
	}
	if done, err := c.adoptStored(ctx, mine, generation); done {
		return err
	}
	if s, _ := c.current(); s != nil {
		mine = s
	}
	if err := c.held(); err != nil {
		return err
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
	if c.await(err, generation) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation == generation {
		c.outage.note(err, c.wire.now())
		c.changed()
	}
	return err
}

// held returns the error of an outage until its pause has passed.
func (c *Client) held() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wire.now().Before(c.outage.resume) {
		return c.outage.err
	}
	return nil
}

// adoptStored takes over the session that another process has stored meanwhile. done
// reports that there is nothing left to refresh.
func (c *Client) adoptStored(ctx context.Context, mine *Session, generation uint64) (done bool, err error) {
	stored, err := c.store.Load(ctx)
	switch {
	case err != nil:
		c.wire.log.WarnContext(ctx, "authclient: the stored session cannot be read", "error", err)
		return false, nil
	case stored == nil:
		_, err = c.adopt(ctx, nil, generation)
		return true, errors.Join(&Error{Code: CodeNoSession, Message: "No user is signed in."}, err)
	case stored.RefreshToken == mine.RefreshToken:
		return false, nil
	}
	_, err = c.adopt(ctx, stored, generation)
	return stored.fresh(c.wire.now()), err
}
