package auth

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"strings"
)

// redirectPattern is one entry of the allow-list.
type redirectPattern struct {
	scheme, host, port string
	path               string // with a trailing slash if below
	below              bool   // everything below path, too
}

// parseRedirectPattern reads an exact URL, or one that ends in "/*".
func parseRedirectPattern(s string) (redirectPattern, error) {
	base, below := strings.CutSuffix(s, "/*")
	if below {
		base += "/"
	}
	u, err := parseRedirect(base)
	if err != nil {
		return redirectPattern{}, fmt.Errorf("%q: %w", s, err)
	}
	if strings.Contains(base, "*") {
		return redirectPattern{}, fmt.Errorf("%q: a wildcard may only be a trailing /*", s)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return redirectPattern{}, fmt.Errorf("%q: a pattern has no query or fragment", s)
	}
	return redirectPattern{scheme: u.Scheme, host: u.Hostname(), port: u.Port(), path: pathOf(u), below: below}, nil
}

// parseRedirect parses an address that a browser will be sent to, and refuses
// all in which parsers have been known to disagree.
func parseRedirect(s string) (*url.URL, error) {
	if s == "" || len(s) > 2048 || strings.ContainsAny(s, "\\ \t\r\n") {
		return nil, errors.New("is not a plain URL")
	}
	for i := 0; i < len(s); i++ {
		if s[i] < 0x21 || s[i] > 0x7e {
			return nil, errors.New("has characters that need escaping")
		}
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, errors.New("is not a URL")
	}
	switch {
	case u.Opaque != "" || u.User != nil || strings.Contains(u.Host, "@"):
		return nil, errors.New("has user information or no host")
	case u.Scheme == "javascript" || u.Scheme == "data" || u.Scheme == "vbscript" || u.Scheme == "file" || u.Scheme == "blob" || u.Scheme == "":
		return nil, errors.New("has a scheme that is not allowed")
	case (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() == "":
		return nil, errors.New("has no host")
	}
	for _, p := range []string{u.Path, u.EscapedPath()} {
		if strings.ContainsAny(p, "\\") || strings.Contains(p, "//") || strings.ContainsFunc(p, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
			return nil, errors.New("has a path that can be misread")
		}
	}
	if p := u.Path; p != "" && p != path.Clean(p) && p != path.Clean(p)+"/" {
		return nil, errors.New("has dots in its path")
	}
	u.Host = strings.ToLower(u.Host)
	return u, nil
}

func pathOf(u *url.URL) string {
	if u.Path == "" {
		return "/"
	}
	return u.Path
}

func (p redirectPattern) matches(u *url.URL) bool {
	if u.Scheme != p.scheme || strings.Trim(u.Hostname(), "[]") != strings.Trim(p.host, "[]") {
		return false
	}
	if defaultPort(u.Scheme, u.Port()) != defaultPort(p.scheme, p.port) && !isLoopbackHost(u.Hostname()) {
		return false
	}
	if p.below {
		return strings.HasPrefix(pathOf(u)+"/", p.path)
	}
	return pathOf(u) == p.path
}

func defaultPort(scheme, port string) string {
	switch {
	case port != "":
		return port
	case scheme == "https":
		return "443"
	case scheme == "http":
		return "80"
	}
	return ""
}

// isLoopbackHost tells whether a URL's host is this machine.
func isLoopbackHost(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// allowRedirect checks redirect_to against the allow-list. Empty is allowed and
// means no redirect.
func (a *Auth) allowRedirect(target string) error {
	if target == "" {
		return nil
	}
	u, err := parseRedirect(target)
	if err != nil {
		return fail(CodeRedirectNotAllowed, err)
	}
	for _, p := range a.cfg.redirects {
		if p.matches(u) {
			return nil
		}
	}
	return fail(CodeRedirectNotAllowed, errors.New("not on the allow-list"))
}

// withQuery adds parameters to an allowed redirect target.
func withQuery(target string, add url.Values) string {
	u, err := url.Parse(target)
	if err != nil {
		return target // was parsed when it was allowed
	}
	q := u.Query()
	for k, v := range add {
		q[k] = v
	}
	u.RawQuery = q.Encode()
	return u.String()
}
