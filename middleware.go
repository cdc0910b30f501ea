package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/authmount/auth/internal/apikey"
	"github.com/authmount/auth/internal/token"
	"github.com/authmount/auth/store"
)

// Requirement is an additional condition of Require. If Check returns an *Error, the
// response is that error, see [Reject]. A requirement of the application is a
// [RequirementFunc].
type Requirement interface {
	// Check checks a request with the claims of its access token. The claims of a
	// request with a secret key ([AllowKeys]) have only Permissions, those of the key.
	Check(s Service, r *http.Request, c *Claims) error
}

// RequirementFunc is a function as a Requirement.
type RequirementFunc func(s Service, r *http.Request, c *Claims) error

// Check calls f.
func (f RequirementFunc) Check(s Service, r *http.Request, c *Claims) error { return f(s, r, c) }

// Service is the service that a requirement is checked for: an [Auth], or the Verifier
// of package authclient, which verifies the tokens of an Auth in another process.
type Service interface {
	// Now is the time by the service's clock.
	Now() time.Time

	// LiveSession returns nil if the session of a request's access token is live and
	// its user is not banned. It asks the store, or the other process. c is the
	// token's claims.
	LiveSession(r *http.Request, c *Claims) error
}

// Now is the time by the clock of the service.
func (a *Auth) Now() time.Time { return a.now() }

// LiveSession is [Auth.Current] for requirements, see [CheckSession].
func (a *Auth) LiveSession(r *http.Request, c *Claims) error {
	_, _, err := a.Current(r.Context(), c)
	return err
}

// HasPermission requires a permission in the token, see [Claims.HasPermission], or of the
// secret key, see [AllowKeys]. Errors: CodeMissingPermission; CodeInsufficientAAL if the
// account has the permission by a role that requires a second factor (Settings.MFARequiredFor),
// which the session lacks. A verifier in another process cannot tell these two apart.
func HasPermission(p string) Requirement {
	return RequirementFunc(func(_ Service, _ *http.Request, c *Claims) error {
		if c.HasPermission(p) {
			return nil
		}
		err := fail(CodeMissingPermission, nil)
		err.Permission = p
		return err
	})
}

// fromUser is a requirement that only the access token of a user can meet.
func fromUser(check RequirementFunc) Requirement {
	return RequirementFunc(func(s Service, r *http.Request, c *Claims) error {
		if apikey.FromContext(r.Context()) != nil {
			return Reject(CodeMissingPermission, "This is for signed-in users, not for secret keys.")
		}
		return check(s, r, c)
	})
}

// HasRole requires a role in the token: the role itself, not its permissions. Prefer
// [HasPermission]: an operator who may give roles may give every role whose permissions the
// operator holds, unless its name is privileged (WithPrivilegedRoles). Errors: as those of
// HasPermission.
func HasRole(role string) Requirement {
	rolesAskedFor.add(role)
	return fromUser(func(_ Service, _ *http.Request, c *Claims) error {
		if c.HasRole(role) {
			return nil
		}
		err := fail(CodeMissingPermission, nil)
		err.Role = role
		return err
	})
}

// CheckSession requires that the session is live and the user is not banned. It costs
// one read of the store. Without it, an access token is valid until it expires.
func CheckSession() Requirement {
	return fromUser(func(s Service, r *http.Request, c *Claims) error { return s.LiveSession(r, c) })
}

// AAL2 requires a session that has used a second factor. Errors: CodeInsufficientAAL,
// CodeImpersonationForbidden.
func AAL2() Requirement {
	return fromUser(func(_ Service, _ *http.Request, c *Claims) error {
		if c.AAL == store.LevelAAL2 {
			return nil
		}
		return notImpersonatedOr(c, CodeInsufficientAAL)
	})
}

// FreshAuth requires an authentication in the session no longer than d ago. A refresh
// does not count. Errors: CodeReauthNeeded, CodeImpersonationForbidden.
func FreshAuth(d time.Duration) Requirement {
	return fromUser(func(s Service, _ *http.Request, c *Claims) error {
		for _, m := range c.AMR {
			if c.Impersonator == nil && s.Now().Sub(time.Unix(m.Timestamp, 0)) < d {
				return nil
			}
		}
		return notImpersonatedOr(c, CodeReauthNeeded)
	})
}

// notImpersonatedOr returns the error other for a user, and CodeImpersonationForbidden for
// an operator, who cannot authenticate as the user.
func notImpersonatedOr(c *Claims, other Code) error {
	if c.Impersonator != nil {
		other = CodeImpersonationForbidden
	}
	return fail(other, nil)
}

// NotImpersonated requires that the caller is the user and not an impersonator. Error:
// CodeImpersonationForbidden.
func NotImpersonated() Requirement {
	return fromUser(func(_ Service, _ *http.Request, c *Claims) error {
		if c.Impersonator == nil {
			return nil
		}
		return fail(CodeImpersonationForbidden, nil)
	})
}

// ClaimsFrom returns the claims of a request's verified access token, or nil if the
// request has none ([Auth.Optional], [AllowKeys]). They are the caller's own copy.
func ClaimsFrom(ctx context.Context) *Claims {
	c := token.FromContext(ctx)
	if c == nil {
		return nil
	}
	return (*Claims)(c.Clone())
}

// Require passes only requests with a valid access token to next, which reads the
// claims with [ClaimsFrom]. Other requests get the error: 401 without a valid token or
// with a stale one (token_stale: roles have changed, refresh), 403 if a requirement is
// not met. With [AllowKeys] it also passes requests with a secret key.
func (a *Auth) Require(next http.Handler, reqs ...Requirement) http.Handler {
	return a.RequireAll(reqs...)(next)
}

// RequireAll is Require as middleware of a router:
//
//	r.Use(a.RequireAll(auth.HasPermission("notes.read")))
func (a *Auth) RequireAll(reqs ...Requirement) func(http.Handler) http.Handler {
	keys := apikey.Allowed(reqs)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			passed, err := a.passed(r, reqs, keys)
			if err != nil {
				a.refuse(w, r, err)
				return
			}
			next.ServeHTTP(w, passed)
		})
	}
}

// passed returns a request as next receives it. keys reports whether the route takes
// secret keys.
func (a *Auth) passed(r *http.Request, reqs []Requirement, keys bool) (*http.Request, error) {
	if text, sent := token.SecretKey(r); keys && sent {
		return a.admittedKey(r, text, reqs)
	}
	c, err := a.admitted(r)
	if err == nil {
		err = a.checkRequirements(r, c, reqs)
	}
	if err != nil {
		return nil, err
	}
	return withClaimsOf(r, c), nil
}

// checkRequirements checks requirements. They get a copy of the claims, because they
// may be the application's.
func (a *Auth) checkRequirements(r *http.Request, c *Claims, reqs []Requirement) error {
	if len(reqs) == 0 {
		return nil
	}
	own := c.clone()
	for _, req := range reqs {
		if err := req.Check(a, r, own); err != nil {
			return a.undeclared(a.withheldOr(r, c, err))
		}
	}
	return nil
}

// withheldOr returns CodeInsufficientAAL if err is the refusal of a permission or role that
// the account has, and that its session lacks without the second factor. It reads the store,
// and returns err if that fails.
func (a *Auth) withheldOr(r *http.Request, c *Claims, err error) error {
	var e *Error
	ctx := r.Context()
	if !errors.As(err, &e) || e.Code != CodeMissingPermission || c.SessionID == "" || c.Impersonator != nil || c.AAL == store.LevelAAL2 || len(a.Settings(ctx).MFARequiredFor) == 0 {
		return err
	}
	s, u, failed := a.liveSession(ctx, c.Caller(), CodeSessionEnded)
	if failed != nil {
		return err
	}
	if u.Roles, failed = a.withheldIn(ctx, u, s); failed != nil {
		return err
	}
	counts, failed := a.standing(ctx, u)
	withheld := Claims{Permissions: counts.permissions}
	if failed != nil || !slices.Contains(counts.roles, e.Role) && (e.Permission == "" || !withheld.HasPermission(e.Permission)) {
		return err
	}
	needed := fail(CodeInsufficientAAL, nil)
	needed.Permission, needed.Role = e.Permission, e.Role
	return needed
}

// undeclared adds to a refusal for a missing permission that no role can hold it, because
// its name is misspelt or missing in admin.Options.Permissions.
func (a *Auth) undeclared(err error) error {
	var e *Error
	declared := a.declaredPermissions.Load()
	if declared == nil || !errors.As(err, &e) || e.Code != CodeMissingPermission || e.Permission == "" || slices.Contains(*declared, e.Permission) {
		return err
	}
	explained := fail(CodeMissingPermission, mistake{fmt.Errorf("no role can hold %q: admin.Options.Permissions does not declare it", e.Permission)})
	explained.Permission = e.Permission
	return explained
}

func withClaimsOf(r *http.Request, c *Claims) *http.Request {
	return r.WithContext(token.NewContext(r.Context(), (*token.Claims)(c)))
}

// refuse writes the response to a request that the middleware refuses.
func (a *Auth) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if a.cfg.onRefused == nil {
		a.WriteError(w, r, err)
		return
	}
	a.endpoint(func(w http.ResponseWriter, r *http.Request) error {
		a.cfg.onRefused(w, r, a.logged(r, err))
		return nil
	}).ServeHTTP(w, r)
}

// WriteError writes an error as the endpoints do: its status, and its code and message
// as JSON. An err that is no *Error is CodeInternal. It logs the cause.
func (a *Auth) WriteError(w http.ResponseWriter, r *http.Request, err error) {
	a.endpoint(func(http.ResponseWriter, *http.Request) error { return err }).ServeHTTP(w, r)
}

// init gives package authclient the errors of tokens and the responses to refused
// requests.
func init() {
	token.Root.Error = tokenFailed
	token.Root.SecretInBrowser = secretInBrowser
	token.Root.WriteError = func(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
		r = r.WithContext(withRequestID(w, r))
		e := asError(err)
		logFailure(log, r, e, err)
		respond(w, e)
	}
}

// authenticate verifies the access token of a request. Errors: CodeMissingToken,
// CodeBadToken.
func (a *Auth) authenticate(r *http.Request) (*Claims, token.Revisions, error) {
	text, err := a.bearer(r)
	if err != nil {
		return nil, token.Revisions{}, err
	}
	return a.verify(text)
}

// admitted is authenticate for the application's handlers, which do not read the store.
// It refuses tokens that Revoke has reported, with CodeSessionEnded or CodeTokenStale.
func (a *Auth) admitted(r *http.Request) (*Claims, error) {
	text, err := a.bearer(r)
	if err != nil {
		return nil, err
	}
	c, err := a.verifyShared(text)
	if err != nil {
		return nil, err
	}
	return a.completeClaims(r.Context(), c)
}

// givenBearer returns the bearer token in the Authorization header, and whether there
// is one at all, valid or not; see token.Bearer.
func (a *Auth) givenBearer(r *http.Request) (text string, given bool) {
	text, given, _ = a.readBearer(r)
	return text, given
}

// readBearer is token.Bearer for a service with API keys, which are not access tokens.
func (a *Auth) readBearer(r *http.Request) (text string, given bool, err error) {
	text, given, err = token.Bearer(r)
	if given && a.isAPIKey(text) {
		return "", false, token.ErrMissing
	}
	return text, given, err
}

// bearer returns a request's access token (RFC 6750, section 2.1), in cookie mode also
// from its cookie. A bearer token takes precedence over cookies, even if it is invalid.
// Tokens in URLs and forms are ignored.
func (a *Auth) bearer(r *http.Request) (string, error) {
	text, given, err := a.readBearer(r)
	if given {
		return text, tokenFailed(err)
	}
	if cookie, err := a.accessCookie(r); cookie != "" || err != nil {
		return cookie, err
	}
	return "", tokenFailed(err)
}
