package auth

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
)

// publicURL is the base URL that links begin with. The one that dev mode makes up
// has the port that was served last, which only requests tell: the address that
// they came in at is the server's own, and not what they say of a host.
func (a *Auth) publicURL() *url.URL {
	port := a.servedPort.Load()
	if port == 0 {
		return a.cfg.baseURL
	}
	u := *a.cfg.baseURL
	u.Host = net.JoinHostPort(u.Hostname(), strconv.Itoa(int(port)))
	return &u
}

// noteServed notes the port of this machine that a request came in at, where the
// base URL was made up.
func (a *Auth) noteServed(r *http.Request) {
	if !a.cfg.madeUpURL {
		return
	}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && at.IP.IsLoopback() {
		a.servedPort.Store(int32(at.Port)) //nolint:gosec // a port has 16 bits
	}
}
