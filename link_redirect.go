package auth

import (
	"net/url"

	"github.com/authmount/auth/internal/redirect"
)

// allowRedirect checks redirect_to against the allow-list. Empty is allowed and
// means no redirect.
func (a *Auth) allowRedirect(target string) error {
	if target == "" {
		return nil
	}
	if err := redirect.Check(target, a.redirects()); err != nil {
		return fail(CodeRedirectNotAllowed, notListed(target, a.settings.now.Load().redirects, err))
	}
	return nil
}

// withQuery adds parameters to an allowed redirect target.
func withQuery(target string, add url.Values) string { return redirect.WithQuery(target, add) }

// isLoopbackHost tells whether a URL's host is this machine.
func isLoopbackHost(host string) bool { return redirect.IsLoopback(host) }
