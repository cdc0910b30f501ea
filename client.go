package auth

import (
	"context"
	"net/http"
	"net/netip"
)

type clientKey struct{}

// requestClient is a Client in a context.
type requestClient struct {
	Client
	unsure bool // IP is the nearest place that proxies vouch for, and may not be the client's
}

// ClientContext is r's context for operations called from Go: with the client's
// address by the rules of WithTrustedProxies, what it says of itself and its device,
// and the language that messages should have, as the endpoints have them.
func (a *Auth) ClientContext(r *http.Request) context.Context { return a.identify(r.Context(), r) }

// ContextWithClient says who is asking, for operations called from Go where there
// is no request; see [Auth.ClientContext]. Without it, limits per IP address do not
// apply.
func ContextWithClient(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, clientKey{}, requestClient{Client: c})
}

func clientFrom(ctx context.Context) Client {
	c, _ := ctx.Value(clientKey{}).(requestClient)
	return c.Client
}

// ipString is an address, or "" if it is not known.
func ipString(ip netip.Addr) string {
	if !ip.IsValid() {
		return ""
	}
	return ip.String()
}
