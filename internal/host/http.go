package host

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/authmount/auth/internal/webpage"
	"github.com/authmount/auth/store"
)

// HTTP serves endpoints as the root package serves its own.
type HTTP interface {
	// Handler serves routes below a path of the mount, such as "/admin", with and
	// without the mount's own prefix: request ids, panics, errors, access and settings
	// as the other endpoints have them.
	Handler(below string, routes []Route) http.Handler
	// Describe adds routes to the OpenAPI document, with the schemas and prose that were
	// written for them (see package internal/openapi). Call it before the document is
	// read.
	Describe(below string, routes []Route, schemas, prose []byte)
	// Current is the session and user of a request that was let through as SignedIn.
	Current(ctx context.Context) (store.Session, store.User)
	// RequestID is the id of the request that a context belongs to, or "".
	RequestID(ctx context.Context) string
	// Seen is a request's context, with the facts about the request that Diagnose
	// reports.
	Seen(r *http.Request) context.Context

	// Decode reads a JSON object into the struct that v points to, strictly.
	Decode(r *http.Request, v any) error
	// DecodeOptional is Decode for endpoints whose body may be absent.
	DecodeOptional(r *http.Request, v any) error
	// ReadForm reads a posted form. Each name may occur once, except those in boxes. Errors: unsupported_media_type, bad_json.
	ReadForm(r *http.Request, boxes ...string) (url.Values, error)
	// WriteJSON writes a response.
	WriteJSON(w http.ResponseWriter, status int, v any) error
	// WriteError prepares the response to an error: it logs the error as the endpoints
	// do, and sets the headers that its status promises. It returns an *auth.Error.
	WriteError(w http.ResponseWriter, r *http.Request, err error) error
	// CheckRedirect checks a redirect_to. Errors: redirect_not_allowed.
	CheckRedirect(target string) error
	// Log is the service's log.
	Log() *slog.Logger
}

// Pages draws pages beside the pages of links.
type Pages interface {
	// Site describes the service to its pages.
	Site() Site
	// UsePages gives the pages of links the look of other pages, and lets providers and
	// links lead back there. A second call replaces the first; pages that are apart
	// replace only such pages.
	UsePages(p PageOptions)
	// Page serves a page as the endpoints are served: request ids, settings, client,
	// panics, the whole request before any check, and a post only from the same origin.
	// problem draws the page for an *auth.Error, whose headers are set by then.
	Page(h func(http.ResponseWriter, *http.Request) error, problem func(http.ResponseWriter, *http.Request, error)) http.Handler
	// RequirePage is Auth.RequirePage for pages that may be in a jar. live asks the store
	// whether the session is live, as CheckSession does.
	RequirePage(next http.Handler, live bool) http.Handler
	// InJar serves pages whose sessions are in a jar. It goes around Page.
	InJar(jar Jar, h http.Handler) http.Handler
	// ClearCookies signs a browser out of the pages that a request belongs to.
	ClearCookies(w http.ResponseWriter, r *http.Request)
	// Cookie is the value of a cookie that SetCookie has set, or "".
	Cookie(r *http.Request, name string) string
	// SetCookie sets a cookie that scripts and other hosts cannot read or set; a maxAge
	// of -1 removes it.
	SetCookie(w http.ResponseWriter, name, value string, maxAge int)
	// BindBrowser sets the cookie that a provider's callback has to bring, and returns
	// its secret. Errors: unknown_provider, method_disabled.
	BindBrowser(w http.ResponseWriter, r *http.Request, provider string) (string, error)
	// PreferredLocale is the language that the visitor prefers.
	PreferredLocale(ctx context.Context, u store.User) string
	// FreshFor is how long a sign-in counts as recent.
	FreshFor() time.Duration
	// TrustDevices is how long a device can be trusted for the second factor; 0: never.
	TrustDevices() time.Duration
}

// Jar is a separate set of session cookies, so that a browser that is signed in to the
// dashboard is not signed in to the application. Other origins cannot make a browser use
// them, not even those of WithCORS. The tokens in them are ordinary tokens.
type Jar struct {
	Name      string // "admin"
	SignInURL string // where RequirePage sends visitors
}

// Access says who may call an endpoint of a package built on Auth.
type Access int

// The accesses.
const (
	Open      Access = iota // anybody: navigations of a browser
	Keyed                   // the public API key, where keys are configured
	SignedIn                // the API key and a live session; see HTTP.Current
	Operating               // SignedIn, or a secret key in place of both; see Keys.GivenKey
	Elsewhere               // a secret key, or a same-origin request whose caller the package identifies
)

// Route is one row of the route table of a package.
type Route struct {
	Pattern string // method and path below the package's prefix
	Access  Access
	WhenOff bool     // it is served while Settings.Enabled is off; the handler decides for whom
	Errors  []string // codes, beyond those that follow from the access and a body
	Handle  func(http.ResponseWriter, *http.Request) error

	// Streams leaves the body to Handle, which judges who asks once more when it has
	// read the last of it.
	Streams bool

	Form func(http.ResponseWriter, *http.Request) error // of a link's page, which posts to itself
}

// Codes are error codes as a Route has them.
func Codes[C ~string](list ...C) []string {
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = string(c)
	}
	return out
}

// PageOptions are pages that another package draws for the application.
type PageOptions struct {
	Look    webpage.Look
	Returns string // path of the page that providers and links lead back to

	// Apart are pages whose look and way in are not the application's: links keep theirs.
	Apart bool

	// Holds tells whether a browser has the verifier of a code challenge. Where it
	// has not, a link that leads back to Returns is not spent: its page shows the
	// code to type where it was asked for.
	Holds func(r *http.Request, challenge string) bool
}

// Site is what pages need to know of the service that they are of.
type Site struct {
	App       string // name of the application
	Locale    string // the language of those who prefer none
	Origin    string // "https://app.example.com"
	Mount     string // "https://app.example.com/auth/v1"
	SignInURL string // where RequirePage sends visitors; "" without WithCookies
	Style     []byte // the style sheet of the link pages
	Captcha   bool   // WithCaptcha is on: endpoints ask for one, methods do not

	Redirects []string // WithRedirectURLs: what browsers may be sent to
}
