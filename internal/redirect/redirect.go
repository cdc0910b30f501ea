// Package redirect checks the URLs to which a browser may be redirected.
package redirect

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"strings"
)

// ErrNotListed: the URL is valid, but no pattern matches it.
var ErrNotListed = errors.New("not on the allow-list")

// Pattern is one entry of an allow-list.
type Pattern struct {
	Scheme string
	Host   string
	Port   string // empty: the scheme's default
	Path   string // with a trailing slash if Below
	Below  bool   // also everything below Path
}

// ParsePattern reads an exact URL, or one that ends in "/*" for everything below. The
// error quotes the pattern, describes the problem and shows valid forms.
func ParsePattern(s string) (Pattern, error) {
	base, below := strings.CutSuffix(s, "/*")
	if below {
		base += "/"
	}
	u, err := parse(base)
	switch {
	case err != nil:
	case strings.Contains(base, "*"):
		err = errors.New("a wildcard may only be a trailing /*")
	case u.RawQuery != "" || u.Fragment != "":
		err = errors.New("a pattern has no query or fragment")
	case u.Scheme == "http" && !IsLoopback(strings.ToLower(u.Hostname())): // codes would be sent unencrypted
		err = errors.New("http is only allowed for loopback hosts")
	}
	if err != nil {
		return Pattern{}, fmt.Errorf("%q: %w; want https://host/path, or https://host/* for all below", s, err)
	}
	return Pattern{Scheme: u.Scheme, Host: u.Hostname(), Port: u.Port(), Path: pathOf(u), Below: below}, nil
}

// String returns the pattern in the form that ParsePattern reads.
func (p Pattern) String() string {
	u := url.URL{Scheme: p.Scheme, Host: p.Host, Path: p.Path}
	if strings.Contains(p.Host, ":") {
		u.Host = "[" + strings.Trim(p.Host, "[]") + "]"
	}
	if p.Port != "" {
		u.Host += ":" + p.Port
	}
	if p.Below {
		return u.String() + "*"
	}
	return u.String()
}

// Check returns nil if target is a plain URL that matches a pattern, ErrNotListed if no
// pattern matches, and otherwise an error that describes the problem of the URL.
func Check(target string, patterns []Pattern) error {
	u, err := parse(target)
	if err != nil {
		return err
	}
	for _, p := range patterns {
		if p.matches(u) {
			return nil
		}
	}
	return ErrNotListed
}

// IsLocal reports whether every browser reads target as a path of the current origin,
// perhaps with a query: "/notes?page=2", but not "//host", "/\\host" or a path that
// servers read in different ways.
func IsLocal(target string) bool {
	if !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") {
		return false
	}
	u, err := parse("https://local.invalid" + target)
	return err == nil && u.Host == "local.invalid"
}

// parse rejects URLs that parsers are known to read differently.
func parse(s string) (*url.URL, error) {
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
	if ambiguous(u.EscapedPath()) {
		return nil, errors.New("has a path that servers read in different ways")
	}
	u.Host = strings.ToLower(u.Host)
	return u, nil
}

// ambiguous reports whether a server could read a path as another one outside its
// prefix: by removing parameters of a segment ("..;x"), by decoding escaped dots and
// separators, by decoding twice, or by trimming segments.
func ambiguous(escaped string) bool {
	lower := strings.ToLower(escaped)
	for _, s := range []string{";", "%3b", "%2e", "%2f", "%5c", "%25"} {
		if strings.Contains(lower, s) {
			return true
		}
	}
	for _, segment := range strings.Split(strings.ReplaceAll(lower, "%20", " "), "/") {
		if strings.Contains(segment, ".") && strings.Trim(segment, ". ") == "" {
			return true
		}
	}
	return false
}

func pathOf(u *url.URL) string {
	if u.Path == "" {
		return "/"
	}
	return u.Path
}

func (p Pattern) matches(u *url.URL) bool {
	if u.Scheme != p.Scheme || strings.Trim(u.Hostname(), "[]") != strings.Trim(p.Host, "[]") {
		return false
	}
	if portOf(u.Scheme, u.Port()) != portOf(p.Scheme, p.Port) && !IsLoopback(u.Hostname()) {
		return false
	}
	if p.Below {
		return strings.HasPrefix(pathOf(u)+"/", p.Path)
	}
	return pathOf(u) == p.Path
}

func portOf(scheme, port string) string {
	switch {
	case port != "":
		return port
	case scheme == "https":
		return "443"
	}
	return ""
}

// IsLoopback reports whether a URL's host, without port and brackets, is this machine.
func IsLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// WithQuery returns target with these parameters, which replace existing ones of the same
// name. It returns an invalid target unchanged.
func WithQuery(target string, add url.Values) string {
	u, err := url.Parse(target)
	if err != nil {
		return target
	}
	q := u.Query()
	for k, v := range add {
		q[k] = v
	}
	u.RawQuery = q.Encode()
	return u.String()
}
