package auth

import (
	"context"
	"net/http"
)

// KitJar is where the pages of a room keep sessions that are not the application's:
// cookies with names of their own, so that a browser signed in to one is not signed in to
// the other, and which no other origin can make a browser use, those of WithCORS neither.
// The tokens in them are tokens like any: who holds one can use it anywhere.
type KitJar struct {
	Name      string // "admin"
	SignInURL string // where RequirePage sends visitors
}

type jarKey struct{}

// jarOf is the jar of a request's pages; nil: the application's.
func jarOf(ctx context.Context) *KitJar {
	jar, _ := ctx.Value(jarKey{}).(*KitJar)
	return jar
}

// InJar serves pages whose sessions are in a jar. It goes around [Kit.Page].
func (k Kit) InJar(jar KitJar, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), jarKey{}, &jar)))
	})
}

// RequirePage is [Auth.RequirePage] of pages that may be in a jar.
func (k Kit) RequirePage(next http.Handler, reqs ...Requirement) http.Handler {
	return k.a.requirePage(next, reqs)
}

// ClearCookies signs a browser out of the pages that a request is of.
func (k Kit) ClearCookies(w http.ResponseWriter, r *http.Request) { k.a.clearCookies(r.Context(), w) }

// hasCookies tells whether sessions of a request may be in cookies.
func (a *Auth) hasCookies(ctx context.Context) bool { return a.cfg.cookies != nil || jarOf(ctx) != nil }

// cookieNames are the names of the tokens' cookies.
func (a *Auth) cookieNames(ctx context.Context) (access, refresh string) {
	of := ""
	if jar := jarOf(ctx); jar != nil {
		of = jar.Name + "-"
	}
	return a.cookieNamed(of + "access"), a.cookieNamed(of + "refresh")
}

// signInPage is where visitors without a session are sent.
func (a *Auth) signInPage(ctx context.Context) string {
	if jar := jarOf(ctx); jar != nil {
		return jar.SignInURL
	}
	return a.cfg.cookies.SignInURL
}
