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

// defaultPrefix is the default path of the handler.
const defaultPrefix = "/auth/v1"

// settlePrefix determines the path of the handler: that in WithPrefix, or else the path
// of the base URL. Where WithPrefix is the end of that path, a proxy strips the start.
func (c *config) settlePrefix() {
	defer func() {
		if c.cookies != nil && c.cookies.SignInURL == "" {
			c.cookies.SignInURL = c.publicPath + "/account/sign-in"
		}
	}()
	if c.prefixed {
		if c.baseURL != nil && c.prefix != "" {
			if public, stripped := strings.CutSuffix(c.baseURL.Path, c.prefix); stripped {
				c.publicPath = public
			}
		}
		return
	}
	c.prefix = defaultPrefix
	if c.baseURL == nil || c.baseURL.Path == "" {
		return
	}
	if !plainPath(c.baseURL.Path) {
		c.fail("WithBaseURL", fmt.Errorf("%q is not a path to mount at: set WithPrefix", c.baseURL.Path))
		return
	}
	c.prefix = c.baseURL.Path
}

// plainPath reports whether a path can precede the patterns of endpoints. Some
// characters have another meaning in http.ServeMux.
func plainPath(p string) bool { return path.Clean(p) == p && !strings.ContainsAny(p, "{} \t") }

// maxMissed limits the length of a path that missed checks.
const maxMissed = 256

// logMissedRequest logs, once, a request for an endpoint below another prefix than the
// handler's. The handler is probably mounted there, and then no endpoint is ever found.
func (a *Auth) logMissedRequest(ctx context.Context, endpoints *http.ServeMux, p string) {
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

// publicURL returns the base URL of links. The default of dev mode has the port of the
// latest request. The port comes from the server's own local address, and not from the
// request's Host header.
func (a *Auth) publicURL() *url.URL {
	port := a.servedPort.Load()
	if port == 0 {
		return a.cfg.baseURL
	}
	u := *a.cfg.baseURL
	u.Host = net.JoinHostPort(u.Hostname(), strconv.Itoa(int(port)))
	return &u
}

// noteServed records the loopback port of a request, if the base URL is the default of
// dev mode.
func (a *Auth) noteServed(r *http.Request) {
	if !a.cfg.assumedURL {
		return
	}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && at.IP.IsLoopback() {
		a.servedPort.Store(int32(at.Port)) //nolint:gosec // a port has 16 bits
	}
}

// byPrefix dispatches a path with the mount's prefix to mounted, and one without it to
// bare. A path that is not clean is not found, whereas a mux would redirect.
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
