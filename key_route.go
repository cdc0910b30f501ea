package auth

import (
	"context"
	"net/http"

	"github.com/authmount/auth/internal/apikey"
	"github.com/authmount/auth/internal/token"
)

// Key is the secret API key of a request that [AllowKeys] let through.
type Key struct {
	ID          string // empty for a key of WithSecretKeys
	Name        string
	CreatedBy   string   // the user who created it; empty: the application
	Permissions []string // those of its scopes that count now, as at the admin API
}

// HasPermission reports whether the key has a permission, by the rule of
// [Claims.HasPermission].
func (k *Key) HasPermission(p string) bool {
	return (&Claims{Permissions: k.Permissions}).HasPermission(p)
}

// KeyFrom returns the secret key that sent a request, or nil if a user did. It is the
// caller's own copy.
func KeyFrom(ctx context.Context) *Key {
	k := apikey.FromContext(ctx)
	if k == nil {
		return nil
	}
	return (*Key)(k.Clone())
}

// AllowKeys lets programs with a secret key use a route of [Auth.Require], in addition to
// users:
//
//	mux.Handle("POST /notes", a.Require(notes, auth.AllowKeys(), auth.HasPermission("notes.write")))
//
// The key is the bearer token: "Authorization: Bearer sk_…". It has the permissions that
// it has at the admin API, read from the store for each request: those of its scopes that
// its creator holds now, unless the service owns it. So package admin must run in this
// process (admin.New). An expired or revoked key, another network, and a browser get 401
// invalid_api_key, and many wrong keys from one IP address 429. The hourly limit of a key does
// not count requests: it counts the accounts that the key changes through the admin API.
//
// A key is no user. In next, [KeyFrom] returns it and [ClaimsFrom] returns nil. HasRole,
// AAL2, FreshAuth, CheckSession and NotImpersonated refuse it, and without HasPermission
// every valid key passes. RequirePage and Optional accept no keys.
func AllowKeys() Requirement { return allowKeys{} }

type allowKeys struct{}

func (allowKeys) Check(Service, *http.Request, *Claims) error { return nil }

func (allowKeys) AllowsKeys() {}

// admittedKey returns a request with a secret key as the application receives it. Errors:
// CodeInvalidAPIKey, CodeRateLimited, and those of the requirements.
func (a *Auth) admittedKey(r *http.Request, text string, reqs []Requirement) (*http.Request, error) {
	k, err := a.sentKey(r.WithContext(a.identify(r.Context(), r)), text)
	if err != nil {
		return nil, err
	}
	decide := a.keyPermissions.Load()
	if decide == nil {
		return nil, fail(CodeInvalidAPIKey, errKeysUndecided)
	}
	held, err := (*decide)(r.Context(), k)
	if err != nil {
		return nil, err
	}
	r = withKey(r, &Key{ID: k.ID, Name: k.Name, CreatedBy: k.CreatedBy, Permissions: held})
	return r, a.checkRequirements(r, &Claims{Permissions: held}, reqs)
}

// withKey returns a request of a key, and of no user.
func withKey(r *http.Request, k *Key) *http.Request {
	return r.WithContext(token.NewContext(apikey.NewContext(r.Context(), (*apikey.Admitted)(k)), nil))
}
