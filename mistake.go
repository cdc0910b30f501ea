package auth

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/authmount/auth/internal/clientip"
	"github.com/authmount/auth/internal/keys"
	"github.com/authmount/auth/internal/redirect"
)

// mistake is the cause of a refusal that only the application's developer or operator
// can fix. Users see a code that does not explain it, so the log reports a mistake at
// level info instead of debug.
type mistake struct{ error }

func (m mistake) Unwrap() error { return m.error }

// The mistakes without another error as their cause.
var (
	errNoAPIKey      = mistake{errors.New("no API key in the apikey or X-API-Key header")}
	errUnknownAPIKey = mistake{errors.New("the API key is neither in WithAPIKeys nor a live public key of the store")}
	errOtherSecret   = mistake{errors.New("the refresh token was created with another secret, or is forged: do all instances have the same WithSecret, followed by the previous secrets?")}
	errOtherKey      = mistake{errors.New("the access token names this issuer but was signed by another key, or is forged: do all instances have the same WithSecret or WithSigningKeys, followed by the previous ones?")}
)

// otherSecret returns the cause for a refresh token of another secret; nil if the token
// is no refresh token.
func otherSecret(token string) error {
	if keys.IsRefreshToken(token) {
		return errOtherSecret
	}
	return nil
}

// noteSetup logs settings that are valid but often unintended.
func (a *Auth) noteSetup(ctx context.Context) {
	c := &a.cfg
	a.noteStoreParts(ctx)
	if c.devMode && a.inbox != nil {
		c.log.InfoContext(ctx, "auth: dev mode: messages go to Auth.Inbox; mount it to see them: mux.Handle(\"/dev/\", a.Inbox())")
	}
	if !c.prefixed && c.baseURL.Path == "" {
		c.log.WarnContext(ctx, "auth: the base URL has no path, so links lead to the root of its host, where endpoints are found only if the handler is mounted there: "+
			"name the path of the mount in WithBaseURL, or WithPrefix(\"\") if it is the root", "base_url", c.baseURL.String(), "link", c.baseURL.JoinPath("verify-email").String())
	}
}

// insecure logs, once, a browser that signs in over http while the cookies are for
// https. The browser refuses them, and stays on the sign-in page.
func (a *Auth) insecure(r *http.Request) {
	if origin := r.Header.Get("Origin"); a.cfg.baseURL.Scheme == "https" && strings.HasPrefix(origin, "http://") {
		a.insecureOnce.Do(func() {
			a.cfg.log.WarnContext(r.Context(), "auth: a browser signs in over http, where it refuses the cookies of https: serve the pages over https, or set WithBaseURL to the URL that browsers see",
				"origin", origin, "base_url", a.cfg.baseURL.String())
		})
	}
}

// atOwnHost returns the URL of a page at the host of the base URL, if the browser opened it
// at another name of this machine, such as localhost for 127.0.0.1, and "" otherwise. Links
// and providers lead to the base URL, where the cookies of the other name are missing. It
// logs the first such request.
func (a *Auth) atOwnHost(r *http.Request) string {
	own := a.cfg.baseURL
	if isUnsafe(r) || r.Host == own.Host || !isLoopbackHost(own.Hostname()) {
		return ""
	}
	asked := url.URL{Host: r.Host}
	if !isLoopbackHost(asked.Hostname()) || asked.Port() != own.Port() {
		return ""
	}
	to := url.URL{Scheme: own.Scheme, Host: own.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	a.loopbackOnce.Do(func() {
		a.cfg.log.WarnContext(r.Context(), "auth: pages were opened at another host than that of the base URL, where browsers have other cookies; they redirect to the base URL", "host", r.Host, "base_url", own.String())
	})
	return to.String()
}

// logLevel returns the log level of a refused request.
func logLevel(e *Error, err error) slog.Level {
	switch {
	case e.Code == CodeOverloaded: // logOverload logs one line a second
		return slog.LevelDebug
	case e.Status >= http.StatusInternalServerError && !errors.Is(err, context.Canceled):
		return slog.LevelError
	case errors.As(err, &mistake{}), e.Code == CodeCrossSiteRequest: // often because WithCORS is missing
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// notListed returns the cause of a refused redirect_to: the URL without parts that may
// contain secrets, and the allowed URLs.
func notListed(target string, patterns []redirect.Pattern, reason error) error {
	const maxListed = 5
	var list []string
	for _, p := range patterns[:min(maxListed, len(patterns))] {
		list = append(list, p.String())
	}
	switch {
	case len(list) == 0:
		list = []string{"nothing"}
	case len(patterns) > maxListed:
		list = append(list, "…")
	}
	return mistake{&refusedRedirect{target: describedURL(target), listed: strings.Join(list, ", "), reason: reason}}
}

type refusedRedirect struct {
	target, listed string
	reason         error
}

func (e *refusedRedirect) Error() string {
	return "redirect_to " + e.target + ": " + e.reason.Error() + "; WithRedirectURLs has " + e.listed
}

func (e *refusedRedirect) Unwrap() error { return e.reason }

// describedURL returns a URL for the log. It has bounded length and no query, fragment
// or user, because these may contain secrets.
func describedURL(raw string) string {
	const longest = 200
	u, err := url.Parse(raw)
	if err != nil {
		return "(not a URL)"
	}
	s := (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	if len(s) > longest {
		s = s[:longest] + "…"
	}
	return s
}

// clientOf returns the client of a request. It logs, once, forwarding headers from a
// peer that is no trusted proxy: behind a proxy, all clients would count as one.
func (a *Auth) clientOf(r *http.Request) requestClient {
	if clientip.HeadersIgnored(r, a.cfg.trustedProxies) {
		a.proxyHeadersOnce.Do(func() {
			a.cfg.log.InfoContext(r.Context(), "auth: X-Forwarded-For or Forwarded was ignored, because its sender is not a trusted proxy: if it is your proxy, name it in WithTrustedProxies", "peer", r.RemoteAddr)
		})
	}
	ip, known := clientip.Of(r, a.cfg.trustedProxies)
	return requestClient{Client: Client{IP: ip, UserAgent: clientip.CleanUserAgent(r.UserAgent())}, unsure: !known}
}
