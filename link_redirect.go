package auth

import (
	"fmt"
	"net/url"

	"github.com/authmount/auth/internal/redirect"
)

// redirectPattern is one entry of the allow-list.
type redirectPattern struct {
	scheme, host, port string
	path               string // with a trailing slash if below
	below              bool   // everything below path, too
}

// parseRedirectPattern reads an exact URL, or one that ends in "/*".
func parseRedirectPattern(s string) (redirectPattern, error) {
	p, err := redirect.ParsePattern(s)
	return redirectPattern{p.Scheme, p.Host, p.Port, p.Path, p.Below}, err
}

// allowRedirect checks redirect_to against the allow-list. Empty is allowed and
// means no redirect.
func (a *Auth) allowRedirect(target string) error {
	if target == "" {
		return nil
	}
	list := make([]redirect.Pattern, 0, len(a.cfg.redirects))
	for _, p := range a.cfg.redirects {
		list = append(list, redirect.Pattern{Scheme: p.scheme, Host: p.host, Port: p.port, Path: p.path, Below: p.below})
	}
	if err := redirect.Check(target, list); err != nil {
		host := "" // and no more: paths and queries may hold secrets
		if u, err := url.Parse(target); err == nil {
			host = u.Hostname()
		}
		return fail(CodeRedirectNotAllowed, fmt.Errorf("redirect_to on the host %q: %w (WithRedirectURLs)", host, err))
	}
	return nil
}

// withQuery adds parameters to an allowed redirect target.
func withQuery(target string, add url.Values) string { return redirect.WithQuery(target, add) }

// isLoopbackHost tells whether a URL's host is this machine.
func isLoopbackHost(host string) bool { return redirect.IsLoopback(host) }
