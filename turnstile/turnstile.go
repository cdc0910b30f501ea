// Package turnstile verifies captchas of Cloudflare Turnstile.
//
//	auth.WithCaptcha(auth.CaptchaOptions{Verifier: turnstile.New(os.Getenv("CAPTCHA_SECRET"))})
//
// See https://developers.cloudflare.com/turnstile/get-started/server-side-validation/
package turnstile

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/outbound"
	"github.com/authmount/auth/internal/siteverify"
)

// Client verifies tokens. It is safe for concurrent use.
type Client struct{ service siteverify.Service }

var _ auth.Verifier = (*Client)(nil)

// Option changes a Client.
type Option func(*Client)

// WithURL sets the URL of the service; default
// https://challenges.cloudflare.com/turnstile/v0/siteverify.
func WithURL(url string) Option { return func(c *Client) { c.service.URL = url } }

// WithHostname accepts only captchas that were solved on pages of this host. The default
// is every host that the service accepts for the secret.
func WithHostname(host string) Option { return func(c *Client) { c.service.Hostname = host } }

// WithHTTPClient sets the client; the default is a new one.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.service.Client = h } }

// New returns a Client with the secret key of a site.
func New(secret string, opts ...Option) *Client {
	c := &Client{siteverify.Service{Name: "turnstile", Refused: auth.ErrCaptcha, URL: "https://challenges.cloudflare.com/turnstile/v0/siteverify", Client: outbound.NewClient(), Fields: url.Values{"secret": {secret}}}}
	for _, o := range opts {
		o(c)
	}
	return c
}

// Verify checks a token. Errors: auth.ErrCaptcha for an invalid token; any other error if
// the service is unavailable. They contain neither the secret nor the token.
func (c *Client) Verify(ctx context.Context, token string, ip netip.Addr) error {
	return c.service.Verify(ctx, token, ip)
}
