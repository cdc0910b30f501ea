package apikey

import (
	"context"
	"net/http"
	"slices"
)

// Admitted has the fields of auth.Key: each type converts to the other.
type Admitted struct {
	ID          string
	Name        string
	CreatedBy   string
	Permissions []string
}

// Clone returns a deep copy.
func (k *Admitted) Clone() *Admitted {
	out := *k
	out.Permissions = slices.Clone(k.Permissions)
	return &out
}

type admittedKey struct{}

// NewContext returns a context with the secret key that sent an admitted request.
func NewContext(ctx context.Context, k *Admitted) context.Context {
	return context.WithValue(ctx, admittedKey{}, k)
}

// FromContext returns the key that NewContext added, or nil. Callers must not change it.
func FromContext(ctx context.Context) *Admitted {
	k, _ := ctx.Value(admittedKey{}).(*Admitted)
	return k
}

// Allower is the requirement auth.AllowKeys.
type Allower interface{ AllowsKeys() }

// Allowed reports whether the requirements of a route include an Allower.
func Allowed[R any](reqs []R) bool {
	return slices.ContainsFunc(reqs, func(r R) bool {
		_, ok := any(r).(Allower)
		return ok
	})
}

// FromBrowser reports whether a page sent a request: programs send neither header.
func FromBrowser(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}
