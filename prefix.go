package auth

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
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
