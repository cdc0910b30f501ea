package main

import (
	"fmt"
	"net/http"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
)

// routes lists the access rules: users for themselves, the back office, and operators of
// accounts.
func routes(a *auth.Auth, adm *admin.Admin) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/auth/v1/", a.Handler())
	mux.Handle("/auth/v1/admin/", adm.Handler())
	mux.Handle("GET /articles", a.Optional(http.HandlerFunc(readArticles)))
	mux.Handle("POST /articles", a.Require(http.HandlerFunc(publish), auth.HasPermission(publishArticles)))
	// Refunds require a live session of a person.
	mux.Handle("POST /orders/{id}/refund", a.Require(http.HandlerFunc(refund), auth.HasPermission(refundOrders), auth.CheckSession(), auth.NotImpersonated()))
	return mux
}

func readArticles(w http.ResponseWriter, r *http.Request) {
	reader := "stranger"
	if c := auth.ClaimsFrom(r.Context()); c != nil {
		reader = c.Email
	}
	_, _ = fmt.Fprintf(w, "Nothing new, %s.\n", reader)
}

func publish(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, "Published by %s.\n", auth.ClaimsFrom(r.Context()).Email)
}

func refund(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintf(w, "Order %q is paid back by %s.\n", r.PathValue("id"), auth.ClaimsFrom(r.Context()).Email) //nolint:gosec // plain text
}
