package auth

import (
	"context"
	"net/http"

	"github.com/authmount/auth/internal/host"
)

type jarKey struct{}

// jarOf is the jar of a request's pages; nil: the application's.
func jarOf(ctx context.Context) *host.Jar {
	jar, _ := ctx.Value(jarKey{}).(*host.Jar)
	return jar
}

func (k kit) InJar(jar host.Jar, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), jarKey{}, &jar)))
	})
}

func (k kit) RequirePage(next http.Handler, live bool) http.Handler {
	var reqs []Requirement
	if live {
		reqs = append(reqs, CheckSession())
	}
	return k.a.requirePage(next, reqs)
}

func (k kit) ClearCookies(w http.ResponseWriter, r *http.Request) { k.a.clearCookies(r.Context(), w) }

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
