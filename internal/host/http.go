package host

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/authmount/auth/internal/webpage"
	"github.com/authmount/auth/store"
)

// HTTP serves endpoints as the root package serves its own.
type HTTP interface {
	// Handler serves routes below a path of the mount, such as "/admin", with and without
	// the mount's prefix. Request ids, panics, errors, access and settings work as at the
	// other endpoints.
	Handler(below string, routes []Route) http.Handler
	// Describe adds routes to the OpenAPI document, with their schemas and prose (see
	// package internal/openapi). Call it before the document is read.
	Describe(below string, routes []Route, schemas, prose []byte)
	// Current returns the session and user of a request that was admitted as SignedIn.
	Current(ctx context.Context) (store.Session, store.User)
	// RequestIDs returns the id of a context's request, or "". server is the id that the
	// client could not choose, if it chose id.
	RequestIDs(ctx context.Context) (id, server string)
	// WithFacts returns a request's context with the facts that Diagnose reports.
	WithFacts(r *http.Request) context.Context

	// Decode reads a JSON object into the struct that v points to, strictly.
	Decode(r *http.Request, v any) error
	// DecodeOptional is Decode for endpoints whose body may be absent.
	DecodeOptional(r *http.Request, v any) error
	// ReadForm reads a posted form. Each name may occur once, except those in boxes.
	// Errors: unsupported_media_type, bad_json.
	ReadForm(r *http.Request, boxes ...string) (url.Values, error)
	// WriteJSON writes v as the body of a response.
	WriteJSON(w http.ResponseWriter, status int, v any) error
	// WriteError prepares the response to an error: it logs the error as the endpoints
	// do, and sets the headers that its status promises. It returns an *auth.Error.
	WriteError(w http.ResponseWriter, r *http.Request, err error) error
	// Log is the service's log.
	Log() *slog.Logger
}

// Pages serves pages next to the pages of links.
type Pages interface {
	// Site describes the service to its pages.
	Site() Site
	// PageTexts returns the texts of all pages, in all languages.
	PageTexts() *webpage.Languages
	// DashboardTexts loads the texts of the dashboard, and logs the missing ones.
	DashboardTexts() (*webpage.Languages, error)
	// UsePages gives the pages of links the look of other pages, and lets providers and
	// links redirect to them. A second call is an error; separate pages replace earlier
	// separate pages.
	UsePages(p PageOptions) error
	// SeparateHome returns the path of the start page of separate pages, such as those of the
	// dashboard, or "".
	SeparateHome() string
	// Page serves a page as endpoints are served: request ids, settings, client, panics,
	// the whole body before any check, and posts only from the same origin. problem
	// writes the page for an *auth.Error; the error's headers are already set.
	Page(h func(http.ResponseWriter, *http.Request) error, problem func(http.ResponseWriter, *http.Request, error)) http.Handler
	// RequirePage is Auth.RequirePage for pages that may be in a jar. If live is set, it
	// asks the store whether the session is live, as CheckSession does.
	RequirePage(next http.Handler, live bool) http.Handler
	// FactorDue returns the error of a refresh by cookie that needs a second factor, with
	// its token, or nil. Optional puts it into the context.
	FactorDue(ctx context.Context) error
	// InJar serves pages with sessions in a jar. It wraps Page.
	InJar(jar Jar, h http.Handler) http.Handler
	// HasCookies reports whether the application keeps sessions in cookies.
	HasCookies() bool
	// ClearCookies signs a browser out of the pages that a request belongs to.
	ClearCookies(w http.ResponseWriter, r *http.Request)
	// Cookie returns the value of a cookie of SetCookie, or "".
	Cookie(r *http.Request, name string) string
	// SetCookie sets a cookie that scripts cannot read and other hosts cannot set. A
	// maxAge of -1 removes it.
	SetCookie(w http.ResponseWriter, name, value string, maxAge int)
	// SetSignUp stores SignUpResult.RequestID in the browser, so that the link in the mail
	// completes there by one press.
	SetSignUp(w http.ResponseWriter, r *http.Request, requestID string)
	// SignUps returns the ids of the browser's sign-ups, as VerifyEmailParams.RequestID.
	SignUps(r *http.Request) string
	// BindBrowser sets the cookie that a provider's callback requires, and returns its
	// secret. Errors: unknown_provider, method_disabled.
	BindBrowser(w http.ResponseWriter, r *http.Request, provider string) (string, error)
	// BeginPasskeySignIn starts a sign-in with a passkey that ends in the same browser. It
	// returns the *auth.PasskeyRequest. Errors: method_disabled.
	BeginPasskeySignIn(w http.ResponseWriter, r *http.Request) (any, error)
	// PasskeySignIn returns FinishPasskeySignInParams.RequestID of a browser, or "".
	PasskeySignIn(r *http.Request) string
	// PostedCredential returns the credential in a form of the script for passkeys. Errors:
	// invalid_passkey, passkey_already_exists.
	PostedCredential(form url.Values, begin func() error) (json.RawMessage, error)
	// PasskeyRPID returns the RP ID of passkeys, or "" without WithPasskeys.
	PasskeyRPID() string
	// PreferredLocale returns the visitor's preferred language.
	PreferredLocale(ctx context.Context, u store.User) string
	// WithPageLocale returns a context in which new accounts keep the language of the page,
	// unless the application chose one.
	WithPageLocale(ctx context.Context, locale string) context.Context
	// RecentPeriod returns how long a sign-in counts as recent.
	RecentPeriod() time.Duration
	// TrustDevices returns how long a device can be trusted for the second factor; 0:
	// never.
	TrustDevices() time.Duration
}

// Jar is a separate set of session cookies, so that a browser that is signed in to the
// dashboard is not signed in to the application. Other origins cannot make a browser send
// them, not even those of WithCORS. The tokens in them are ordinary tokens.
type Jar struct {
	Name      string // "admin"
	SignInURL string // where RequirePage sends visitors
}

// Access says who may call an endpoint of a package built on Auth.
type Access int

// The kinds of access.
const (
	Open      Access = iota // everyone: for navigations of a browser
	Keyed                   // the public API key, if keys are configured
	SignedIn                // the API key and a live session; see HTTP.Current
	Operating               // a bearer token of a live session and the API key, or a secret key in place of both; see Keys.RequestKey
	Elsewhere               // a secret key, or a request of the same origin, or with a bearer token and no cookie, whose caller the package identifies
)

// Route is one row of a package's route table.
type Route struct {
	Pattern      string // method and path below the package's prefix
	Access       Access
	WhenDisabled bool     // served while Settings.Enabled is off; the handler checks the caller
	NoKeys       bool     // the handler refuses every secret key, and the document offers none
	Cookies      bool     // Operating: the application's session cookies count, too, on requests of the service's own origin
	Errors       []string // codes in addition to those of the access and the body
	Handle       func(http.ResponseWriter, *http.Request) error

	// Streams leaves reading the body to Handle, which checks the caller again after the
	// last byte.
	Streams bool

	Form func(http.ResponseWriter, *http.Request) error // handles the post of a link's page to itself
}

// Codes returns error codes as strings, for Route.Errors.
func Codes[C ~string](list ...C) []string {
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = string(c)
	}
	return out
}

// PageOptions are pages that another package serves for the application.
type PageOptions struct {
	Look       webpage.Look
	ReturnPath string // path of the page to which providers and links redirect
	ActPath    string // path of the page where operators begin to act as a user; "" if Separate

	// Apart: the pages have their own look and sign-in, and the pages of links do not use
	// them.
	Separate bool

	// HasVerifier reports whether a browser has the verifier of a code challenge. If it has
	// not, a link with a redirect to ReturnPath stays unused: its page shows the code, to be
	// typed in the browser that requested it.
	HasVerifier func(r *http.Request, challenge string) bool
}

// Unstripped returns a request with the start of prefix that a proxy or http.StripPrefix
// stripped from its path, or r if its path begins with no end of prefix.
func Unstripped(prefix string, r *http.Request) *http.Request {
	for at := range len(prefix) {
		left := prefix[at:]
		if left[0] != '/' || r.URL.Path != left && !strings.HasPrefix(r.URL.Path, left+"/") {
			continue
		}
		return Below(prefix[:at], r)
	}
	return r
}

// Below returns a request with a path below stripped.
func Below(stripped string, r *http.Request) *http.Request {
	if stripped == "" {
		return r
	}
	r = r.Clone(r.Context())
	r.RequestURI = stripped + r.URL.RequestURI()
	r.URL.Path = stripped + r.URL.Path
	if r.URL.RawPath != "" {
		r.URL.RawPath = stripped + r.URL.RawPath
	}
	return r
}

// Site describes the service to its pages.
type Site struct {
	App    string // name of the application
	Locale string // the default language
	Origin string // "https://app.example.com"
	Mount  string // "https://app.example.com/auth/v1"
	// PublicPath is what a proxy strips from the path of each request, such as "/app", or "".
	PublicPath string
	SignInURL  string // where RequirePage sends visitors; "" without WithCookies
	Style      []byte // the style sheet of the link pages
	Script     string // path of the script for passkeys
	Captcha    bool   // WithCaptcha is set: endpoints require one, methods do not

	Redirects []string // WithRedirectURLs: allowed targets of redirects
}
