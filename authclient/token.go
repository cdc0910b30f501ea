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

// Token returns an access token that is valid for at least 30 seconds, after a refresh
// if necessary. If the refresh fails, it returns the current token until that expires.
// Errors: CodeNoSession if no user is signed in; the error of the refresh that ended
// the session; CodeNetwork or another error if the session cannot be refreshed now.
func (c *Client) Token(ctx context.Context) (string, error) {
	if err := c.load(ctx); err != nil {
		return "", err
	}
	s, _ := c.current()
	if s == nil {
		return "", &Error{Code: CodeNoSession, Message: "No user is signed in."}
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
		return &Error{Code: CodeNoSession, Message: "No user is signed in."}
	}
	_, err := c.renewed(ctx, s.AccessToken)
	return err
}

// as sends a call as the signed-in user. If the server rejects the token, as refreshes
// it once: it may be stale (auth.CodeTokenStale), or a clock may be wrong. The refresh
// also shows whether the session has ended.
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

// sameOwner reports whether two access tokens are of the same account. Another user may
// have signed in during a request, which must not be repeated as that user.
func sameOwner(a, b string) bool {
	one, other := subject(a), subject(b)
	return one != "" && one == other
}

// subject returns the user id in an access token, without verifying it, or "" if it
// cannot be read.
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
