package authclient

import (
	"cmp"
	"context"
	"errors"
	"net/http"
)

// Scope selects the sessions that a sign-out ends.
type Scope string

// The scopes.
const (
	ScopeLocal  Scope = "local"  // this one
	ScopeOthers Scope = "others" // all but this one
	ScopeGlobal Scope = "global" // all
)

// SignOut ends sessions; an empty scope is ScopeLocal. Except with ScopeOthers the
// client is signed out even if it returns an error, which means that the server may not
// have ended the session. It is no error if no user is signed in.
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

// logout ends a session by its refresh token, which lives longer than the access token.
// It also sends the access token while that is valid, to identify the user. A session
// that has already ended is no error.
func (c *Client) logout(ctx context.Context, s *Session, scope Scope) error {
	k := call{
		method: http.MethodPost, path: "/logout", query: map[string][]string{"scope": {string(cmp.Or(scope, ScopeLocal))}},
		body: map[string]string{"refresh_token": s.RefreshToken}, repeat: repeatAlways,
	}
	if s.valid(c.wire.now()) {
		k.bearer = s.AccessToken
	}
	err := c.wire.do(ctx, k, nil)
	if endsSession(err) {
		return nil
	}
	return err
}
