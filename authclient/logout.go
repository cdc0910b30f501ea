package authclient

import (
	"cmp"
	"context"
	"errors"
	"net/http"
)

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

// logout ends a session by its refresh token, which does not expire within minutes, and
// says whose with the access token, while that is good. One that has ended before is no
// error.
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
