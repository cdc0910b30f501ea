package auth

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// defaultPrefix is where the handler is mounted if nothing tells.
const defaultPrefix = "/auth/v1"

// settlePrefix finds out where the handler is mounted: at what WithPrefix says,
// else at the path of the base URL.
func (c *config) settlePrefix() {
	if c.prefixed {
		return
	}
	c.prefix = defaultPrefix
	if c.baseURL == nil || c.baseURL.Path == "" {
		return
	}
	if !plainPath(c.baseURL.Path) {
		c.fail("WithBaseURL", fmt.Errorf("%q is not a path to be mounted at: name that by WithPrefix", c.baseURL.Path))
		return
	}
	c.prefix = c.baseURL.Path
}

// plainPath tells whether a path can stand before the patterns of endpoints;
// http.ServeMux has other uses for some characters.
func plainPath(p string) bool { return path.Clean(p) == p && !strings.ContainsAny(p, "{} \t") }

// maxMissed is how long a path may be that tells of a mount.
const maxMissed = 256

// missed notes, once, a request for an endpoint below another prefix than the
// handler's: in all likelihood it is mounted there, and nothing will ever be found.
func (a *Auth) missed(ctx context.Context, endpoints *http.ServeMux, p string) {
	if len(p) > maxMissed || p != path.Clean(p) {
		return
	}
	for rest := p; ; {
		_, after, found := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
		if !found {
			return
		}
		rest = "/" + after
		if _, pattern := endpoints.Handler(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: rest}}); pattern != "/" {
			a.missedOnce.Do(func() {
				a.cfg.log.WarnContext(ctx, "auth: a request missed the mount: if the handler is mounted there, set WithPrefix, or WithBaseURL, to that path", "seen", p, "prefix", a.cfg.prefix)
			})
			return
		}
	}
}

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

// byPrefix tells a path with the mount's prefix from one without. A path
// that is not in its plain form is not found, where a mux would redirect.
func (a *Auth) byPrefix(bare, mounted, notFound http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect || r.URL.Path != path.Clean("/"+r.URL.Path):
			notFound.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, a.cfg.prefix+"/"):
			mounted.ServeHTTP(w, r)
		default:
			bare.ServeHTTP(w, r)
		}
	})
}
