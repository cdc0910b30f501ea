package authclient

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/authmount/auth"
)

// Token is an access token that is good for half a minute at least, refreshed if need
// be; while no other is to be had, it is the one that there is, until it expires. Errors: CodeNoSession if nobody is signed in; what ended the session, if that just
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
	token, err := c.renewed(ctx, s.AccessToken)
	if err != nil && ctx.Err() == nil {
		if now, _ := c.current(); now != nil && now.AccessToken == s.AccessToken && now.valid(c.wire.now()) {
			return now.AccessToken, nil
		}
	}
	return token, err
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
	if refused := err; isUnauthorized(err) {
		if k.bearer, err = c.renewed(ctx, token); err != nil {
			return err
		}
		if !sameOwner(token, k.bearer) {
			return refused
		}
		err = c.wire.do(ctx, k, out)
	}
	if errors.Is(err, auth.CodeUserBanned) && endsSession(err) {
		_, generation := c.current()
		_, _ = c.adopt(ctx, nil, generation)
	}
	return err
}

// sameOwner tells whether two access tokens are of one account. Somebody else may have
// signed in while a request was on its way: what one asked for is not sent again in
// another's name.
func sameOwner(a, b string) bool {
	one, other := subject(a), subject(b)
	return one != "" && one == other
}

// subject is whom an access token is of, as it says itself; "" where it cannot be read.
func subject(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	var claims struct {
		Subject string `json:"sub"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return ""
	}
	return claims.Subject
}

func isUnauthorized(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusUnauthorized &&
		(e.Code == auth.CodeTokenStale || e.Code == auth.CodeBadToken || e.Code == auth.CodeSessionEnded)
}
