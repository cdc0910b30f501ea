package auth

import (
	"context"
	"net/netip"
)

// Client is who is asking: for rate limits, sessions and the log.
type Client struct {
	IP        netip.Addr `json:"ip"`
	UserAgent string     `json:"user_agent,omitempty"`
	Device    string     `json:"-"` // hash of what the device says it is; empty: it does not say
}

type clientKey struct{}

// ContextWithClient says who is asking, for operations called from Go. The
// handlers do it themselves. Without it, limits per IP address do not apply.
func ContextWithClient(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

func clientFrom(ctx context.Context) Client {
	c, _ := ctx.Value(clientKey{}).(Client)
	return c
}

// ipString is the address, or "" if it is not known.
func (c Client) ipString() string {
	if !c.IP.IsValid() {
		return ""
	}
	return c.IP.String()
}
