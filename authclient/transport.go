package authclient

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"

	"github.com/authmount/auth"
)

// Transport returns an http.RoundTripper that adds the access token as bearer token to
// requests to the project's origin and those of WithTokenOrigins, and to no others, not
// even after a redirect. It does not change a request that has an Authorization header.
// It refreshes the token if necessary. If the answer's code is auth.CodeTokenStale, it
// refreshes the token and sends the request once more, provided that the body can be
// read again (http.Request.GetBody). A nil base is http.DefaultTransport.
//
//	app := &http.Client{Transport: client.Transport(nil)}
func (c *Client) Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{c: c, base: base, origins: append(slices.Clone(c.wire.origins), originOf(c.wire.base))}
}

type transport struct {
	c       *Client
	base    http.RoundTripper
	origins []string
}

// RoundTrip implements http.RoundTripper. It does not change the request.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !slices.Contains(t.origins, originOf(r.URL)) || r.Header.Get("Authorization") != "" {
		return t.base.RoundTrip(r)
	}
	token, err := t.c.Token(r.Context())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	res, err := t.base.RoundTrip(signed(r, token))
	if err != nil || res.StatusCode != http.StatusUnauthorized || !saysStale(res) {
		return res, err
	}
	again := r
	if r.Body != nil && r.Body != http.NoBody {
		if r.GetBody == nil {
			return res, nil
		}
		body, err := r.GetBody()
		if err != nil {
			return res, nil //nolint:nilerr // the answer that there is
		}
		again = r.Clone(r.Context())
		again.Body = body
	}
	newer, err := t.c.renewed(r.Context(), token)
	if err != nil || !sameOwner(token, newer) {
		return res, nil //nolint:nilerr // likewise
	}
	_ = res.Body.Close()
	return t.base.RoundTrip(signed(again, newer))
}

func signed(r *http.Request, token string) *http.Request {
	out := r.Clone(r.Context())
	out.Header.Set("Authorization", "Bearer "+token)
	return out
}

// saysStale reports whether an answer's code is auth.CodeTokenStale. It leaves the body
// readable.
func saysStale(res *http.Response) bool {
	head, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), res.Body), res.Body}
	var w struct {
		Code auth.Code `json:"code"`
	}
	return err == nil && json.Unmarshal(head, &w) == nil && w.Code == auth.CodeTokenStale
}
